/* `pyrometer memory plot`: memory over time. */
#include "view/memory_plot.h"
#include "base/err.h"
#include "cmd/memory.h"
#include "cmd/output.h"
#include "cmd/progress.h"

#include <errno.h>
#include <locale.h>

enum {
    PLACES_DATA = VIEW_PLOT_POINTS,
    PLACES_PICTURE = 600,
    PLACES_LEAST = 28,
    PLACES_OTHERWISE = 68, /* of a terminal of 80 columns */
    GUTTER = 12,           /* what the axis takes of it */
};
#define PNG_SCALE 2.0

static size_t places_for(const struct cmd_memory *m, struct view_style style)
{
    if (m->format != VIEW_TEXT)
        return PLACES_DATA;
    if (m->o->output)
        return PLACES_PICTURE;
    return !style.width                          ? PLACES_OTHERWISE
           : style.width > PLACES_LEAST + GUTTER ? style.width - GUTTER
                                                 : PLACES_LEAST;
}

static int write_picture(const struct view_plot *plot, const struct cmd_memory *m)
{
    struct cmd_output output;
    int status = cmd_output_open(m->o->output, m->o->force, profile_path(m->profile), &output);
    if (status)
        return status;
    int r = cmd_output_has_suffix(m->o->output, ".svg")
                ? view_plot_write_svg(plot, output.file)
                : view_plot_write_png(plot, PNG_SCALE, output.file);
    return cmd_output_close(&output, r);
}

static int print_plot(const struct view_plot *plot, const struct cmd_memory *m,
                      struct view_style style)
{
    setlocale(LC_CTYPE, "");
    enum view_plot_marks marks = m->o->ascii ? VIEW_PLOT_ASCII : view_plot_marks_for(style, true);
    errno = 0;
    int r = view_plot_print(plot, cmd_stdout(), style, marks);
    return r < 0 ? cmd_output_failed("the plot", r, errno) : CMD_OK;
}

static int draw(const struct cmd_memory *m, const struct analysis_curves *curves,
                struct view_style style)
{
    struct view_memory_plot *plot;
    int r = view_memory_plot_new(m->profile, curves, &plot);
    if (r < 0)
        return cmd_fail(CMD_FAILED, "cannot make the plot: %s", err_text(r));
    int status = m->o->output ? write_picture(view_memory_plot_of(plot), m)
                              : print_plot(view_memory_plot_of(plot), m, style);
    view_memory_plot_free(plot);
    return status;
}

int cmd_memory_plot(struct cmd_memory *m)
{
    const char *output = m->o->output;
    if (output && !cmd_output_has_suffix(output, ".svg") && !cmd_output_has_suffix(output, ".png"))
        return cmd_fail(CMD_USAGE,
                        "-o '%s': the name ends in .svg or .png, which says what to draw", output);
    if (output && m->format != VIEW_TEXT)
        return cmd_fail(CMD_USAGE, "-o is for a picture: --json and --csv go to the output");
    struct view_style style = view_style_of(stdout);
    struct analysis_curves curves;
    int r = analysis_curves_init(m->profile, &m->query, places_for(m, style), &curves);
    if (r < 0)
        return cmd_load_failed(profile_path(m->profile), r);
    int status;
    if (!curves.count) {
        status = cmd_fail(CMD_FAILED, "nothing to draw: the filters leave no memory");
    } else if (m->format != VIEW_TEXT) {
        errno = 0;
        r = view_memory_plot_data(m->profile, &curves, cmd_stdout(), m->format);
        status = r < 0 ? cmd_output_failed("the curves", r, errno) : CMD_OK;
    } else {
        status = draw(m, &curves, style);
    }
    analysis_curves_release(&curves);
    return status;
}
