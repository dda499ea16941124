/* `pyrometer timeline`: what ran when, as a picture or as numbers. */
#include "view/timeline.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "profile/events.h"

#include <errno.h>

enum { DEFAULT_PIXELS = 2000 };

struct timeline_options {
    const char *output;
    bool json, force;
    uint64_t pixels;
    bool has_pixels;
    struct cmd_query_options query;
};

static int write_picture(const struct timeline_options *o, const struct analysis_timeline *t)
{
    struct cmd_output out;
    int status = cmd_output_open(o->output, o->force, profile_path(t->profile), &out);
    if (status)
        return status;
    bool svg = cmd_output_has_suffix(o->output, ".svg");
    int r = svg ? view_timeline_write_svg(t, out.file) : view_timeline_write_html(t, out.file);
    return cmd_output_close(&out, r);
}

static int show(const struct timeline_options *o, const struct profile *profile,
                const struct analysis_query *query)
{
    struct analysis_timeline t;
    if (!profile_has_timeline(profile))
        return cmd_fail(CMD_FAILED, "%s has no timeline: record with pyrometer run --trace",
                        profile_path(profile));
    int r = analysis_timeline_init(profile, query, o->has_pixels ? o->pixels : DEFAULT_PIXELS, &t);
    if (r < 0)
        return cmd_load_failed(profile_path(profile), r);
    int status = CMD_OK;
    if (o->output) {
        status = write_picture(o, &t);
    } else {
        errno = 0;
        r = view_timeline_json(&t, cmd_stdout());
        if (r < 0)
            status = cmd_output_failed("the standard output", r, errno);
    }
    if (t.damaged)
        cmd_warn("%u parts of the timeline are damaged and not shown", t.damaged);
    if (t.coarse)
        cmd_warn("boxes are coarser than a pixel in places: choose a shorter --range");
    analysis_timeline_release(&t);
    return status;
}

int cmd_timeline(int argc, char **argv)
{
    struct timeline_options o = {0};
    const struct cmd_option options[] = {
        {"output", 'o', CMD_TEXT, &o.output, NULL},
        {"force", 0, CMD_FLAG, &o.force, NULL},
        {"json", 0, CMD_FLAG, &o.json, NULL},
        {"pixels", 0, CMD_COUNT, &o.pixels, &o.has_pixels},
        {"range", 0, CMD_TEXT, &o.query.range, NULL},
        {"thread", 0, CMD_TEXT, &o.query.thread, NULL},
        {"process", 0, CMD_COUNT, &o.query.process, &o.query.has_process},
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands > 1)
        return cmd_fail(CMD_USAGE, "timeline takes one RUN, not %d", operands);
    if (o.output && o.json)
        return cmd_fail(CMD_USAGE, "-o and --json are one too many: JSON goes to standard output");
    if (!o.output && !o.json)
        return cmd_fail(CMD_USAGE, "timeline needs -o FILE.html, -o FILE.svg or --json");
    if (o.output && !cmd_output_has_suffix(o.output, ".svg") &&
        !cmd_output_has_suffix(o.output, ".html"))
        return cmd_fail(CMD_USAGE, "'%s': the name of the file ends in .html or .svg", o.output);
    if (o.has_pixels && (o.pixels == 0 || o.pixels > ANALYSIS_TIMELINE_MAX_PIXELS))
        return cmd_fail(CMD_USAGE, "--pixels needs a number from 1 to %d",
                        ANALYSIS_TIMELINE_MAX_PIXELS);
    struct analysis_query query;
    struct profile *profile = NULL;
    int status = cmd_query_make(&o.query, &query);
    if (!status)
        status = cmd_load_run(operands ? argv[first] : "@", &profile);
    if (!status)
        status = cmd_query_check_threads(&query, profile);
    if (!status)
        status = show(&o, profile, &query);
    profile_free(profile);
    cmd_query_release(&o.query);
    return status;
}
