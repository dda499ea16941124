/* `pyrometer flame`: where the time went, as a flame graph in one file. */
#include "view/flame.h"

#include "base/buf.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "cmd/output.h"

#include <string.h>

enum { FILTERS_BYTES_MAX = 64 << 10 };

struct flame_options {
    const char *output, *colour, *title;
    bool bottom_up, by_time, by_line, by_thread, diff, force;
    struct cmd_query_options query;
};

/* The command line, understood. */
struct flame_request {
    const struct flame_options *options;
    struct analysis_query query;
    enum view_flame_colour colour;
    bool svg;
    struct buf filters; /* as the user gave them */
};

/* One run on its way to the picture. Zero-initialised it may be released. */
struct flame_run {
    struct profile *profile;
    struct analysis_weights weights;
    struct analysis_rows rows;
};

static int check_output(const char *output, bool *ret_svg)
{
    if (!output)
        return cmd_fail(CMD_USAGE, "flame needs a file to draw into: -o flame.html, or .svg");
    *ret_svg = cmd_output_has_suffix(output, ".svg");
    if (*ret_svg || cmd_output_has_suffix(output, ".html") || cmd_output_has_suffix(output, ".htm"))
        return 0;
    return cmd_fail(CMD_USAGE, "-o '%s': the name ends in .html or .svg, which says what to draw",
                    output);
}

static int check_options(const struct flame_options *o)
{
    if (o->by_time && (o->bottom_up || o->diff || o->by_thread))
        return cmd_fail(CMD_USAGE, "--by-time shows every thread along time: leave out %s",
                        o->bottom_up ? "--bottom-up"
                        : o->diff    ? "--diff"
                                     : "--by-thread");
    if (o->diff && o->by_thread)
        return cmd_fail(CMD_USAGE, "--diff compares functions, not threads: leave out --by-thread");
    return 0;
}

static int understand(struct flame_options *o, struct flame_request *q)
{
    int status = check_output(o->output, &q->svg);
    if (!status)
        status = check_options(o);
    if (!status)
        status = cmd_query_make(&o->query, &q->query);
    if (status)
        return status;
    const char *word = o->colour ? o->colour : o->diff ? "change" : "module";
    int colour = cmd_choose("--color", word, VIEW_FLAME_COLOURS);
    if (colour < 0)
        return CMD_USAGE;
    q->colour = (enum view_flame_colour)colour;
    if (q->colour == VIEW_FLAME_CHANGE && !o->diff)
        return cmd_fail(CMD_USAGE, "--color change compares two runs: add --diff and both RUNs");
    cmd_query_describe(&o->query, &q->filters);
    return 0;
}

/* --- one run --- */

static void run_release(struct flame_run *run)
{
    analysis_rows_release(&run->rows);
    analysis_weights_release(&run->weights);
    profile_free(run->profile);
}

/* Does the recording hold what the metric weighs, whatever the filters leave? */
static bool holds_any(const struct flame_run *run)
{
    const struct analysis_weights *w = &run->weights;
    return w->memory  ? profile_has_memory(run->profile)
           : w->calls ? profile_calls_records(run->profile)
                      : w->recorded_samples;
}

static int run_load(const struct flame_request *q, const char *name, struct flame_run *run)
{
    int status = cmd_load_run(name, &run->profile);
    if (status)
        return status;
    bool streams = q->options->by_time || q->options->by_thread;
    int r = streams ? analysis_weights_init_sums(run->profile, &q->query, &run->weights)
                    : analysis_weights_init(run->profile, &q->query, &run->weights);
    if (r < 0)
        return cmd_load_failed(profile_path(run->profile), r);
    status = cmd_query_check(&q->query, run->profile);
    if (status)
        return status;
    if (!run->weights.total.weight)
        return cmd_fail(CMD_FAILED, "nothing to draw: '%s' holds no %s%s",
                        profile_path(run->profile),
                        run->weights.calls    ? "calls"
                        : run->weights.memory ? "memory"
                                              : "samples",
                        holds_any(run) ? " that pass the filters" : "");
    bool has_time = strcmp(run->weights.metric->unit, "seconds") == 0 && !run->weights.exact;
    if (q->options->by_time && !has_time)
        return cmd_fail(CMD_FAILED,
                        "'%s' does not say when its stacks were seen: leave out --by-time",
                        profile_path(run->profile));
    enum analysis_by by = q->options->by_line ? ANALYSIS_BY_LINE : ANALYSIS_BY_FUNCTION;
    /* what is compared is compared by what it weighs, too */
    r = q->options->diff ? analysis_rows_init(&run->weights, by, &run->rows)
                         : analysis_rows_init_names(&run->weights, by, &run->rows);
    return r < 0 ? cmd_fail(CMD_FAILED, "cannot make the graph: %s", err_text(r)) : 0;
}

/* --- the picture --- */

static int write_picture(const struct flame_request *q, const struct view_flame *flame, FILE *out)
{
    return q->svg ? view_flame_write_svg(flame, out) : view_flame_write_html(flame, out);
}

static int make_forest(const struct flame_request *q, const struct flame_run *run,
                       const struct flame_run *before, struct analysis_forest *ret)
{
    if (before)
        return analysis_forest_init_diff(&before->rows, &run->rows, ret);
    if (q->options->by_thread)
        return analysis_forest_init_threads(&run->rows, &q->query, q->options->bottom_up, ret);
    analysis_forest_init(&run->rows, ret);
    return 0;
}

static int draw_tree(const struct flame_request *q, const struct flame_run *run,
                     const struct flame_run *before, struct view_flame *flame, FILE *out)
{
    struct analysis_forest forest = {0};
    struct analysis_tree tree = {0};
    struct analysis_tree_options options = {
        .bottom_up = q->options->bottom_up,
        .max_nodes = q->svg ? VIEW_FLAME_SVG_BLOCKS : VIEW_FLAME_HTML_BLOCKS,
    };
    int r = make_forest(q, run, before, &forest);
    if (r == 0)
        r = analysis_tree_init(&forest, &options, &tree);
    analysis_forest_release(&forest);
    flame->tree = &tree;
    if (r == 0)
        r = write_picture(q, flame, out);
    flame->tree = NULL;
    analysis_tree_release(&tree);
    return r;
}

static int draw_sequence(const struct flame_request *q, const struct flame_run *run,
                         struct view_flame *flame, FILE *out)
{
    struct analysis_sequence sequence = {0};
    size_t max = q->svg ? VIEW_FLAME_SVG_BLOCKS : VIEW_FLAME_HTML_BLOCKS;
    int r = analysis_sequence_init(&run->rows, &q->query, max, &sequence);
    flame->sequence = &sequence;
    if (r == 0)
        r = write_picture(q, flame, out);
    flame->sequence = NULL;
    analysis_sequence_release(&sequence);
    return r;
}

static int draw(struct flame_request *q, const struct flame_run *run,
                const struct flame_run *before)
{
    const struct flame_options *o = q->options;
    struct view_flame flame = {
        .rows = &run->rows,
        .before = before ? &before->rows : NULL,
        .bottom_up = o->bottom_up,
        .by_line = o->by_line,
        .by_thread = o->by_thread,
        .colour = q->colour,
        .title = o->title,
        .filters = buf_cstr(&q->filters),
    };
    struct cmd_output output;
    int status = cmd_output_open(o->output, o->force, profile_path(run->profile), &output);
    if (status)
        return status;
    int r = o->by_time ? draw_sequence(q, run, &flame, output.file)
                       : draw_tree(q, run, before, &flame, output.file);
    return cmd_output_close(&output, r);
}

static int draw_one(struct flame_request *q, const char *name)
{
    struct flame_run run = {0};
    int status = run_load(q, name, &run);
    if (!status)
        status = draw(q, &run, NULL);
    run_release(&run);
    return status;
}

static int draw_diff(struct flame_request *q, const char *name_before, const char *name)
{
    struct flame_run before = {0}, run = {0};
    int status = run_load(q, name_before, &before);
    if (!status)
        status = run_load(q, name, &run);
    if (!status)
        status = draw(q, &run, &before);
    run_release(&run);
    run_release(&before);
    return status;
}

int cmd_flame(int argc, char **argv)
{
    struct flame_options o = {0};
    const struct cmd_option options[] = {
        {"output", 'o', CMD_TEXT, &o.output, NULL},
        {"force", 0, CMD_FLAG, &o.force, NULL},
        {"bottom-up", 0, CMD_FLAG, &o.bottom_up, NULL},
        {"by-time", 0, CMD_FLAG, &o.by_time, NULL},
        {"by-line", 0, CMD_FLAG, &o.by_line, NULL},
        {"by-thread", 0, CMD_FLAG, &o.by_thread, NULL},
        {"diff", 0, CMD_FLAG, &o.diff, NULL},
        {"color", 0, CMD_TEXT, &o.colour, NULL},
        {"title", 0, CMD_TEXT, &o.title, NULL},
        CMD_QUERY_OPTIONS(&o.query),
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (o.diff && operands != 2)
        return cmd_fail(CMD_USAGE, "--diff takes two RUNs, the one before and the one after: "
                                   "pyrometer flame --diff @~1 @ -o diff.html");
    if (!o.diff && operands > 1)
        return cmd_fail(CMD_USAGE, "flame takes one RUN, not %d; --diff takes two", operands);

    struct flame_request q = {.options = &o};
    buf_init(&q.filters, FILTERS_BYTES_MAX);
    int status = understand(&o, &q);
    if (!status && o.diff)
        status = draw_diff(&q, argv[first], argv[first + 1]);
    else if (!status)
        status = draw_one(&q, operands ? argv[first] : "@");
    buf_release(&q.filters);
    cmd_query_release(&o.query);
    return status;
}
