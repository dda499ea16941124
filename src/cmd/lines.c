/* `pyrometer lines`: the source, with what was seen of each line beside it: samples, or, where the
 * recording has them, exact hits and times. */
#include "view/lines.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/list.h"
#include "cmd/load.h"
#include "cmd/progress.h"
#include "view/exact_lines.h"
#include "view/heading.h"

#include <errno.h>

/* Of lines in a table when the user does not say: the rest of a program is long. */
#define TEXT_MIN_PERCENT 1.0

struct lines_options {
    const char *style;
    struct cmd_query_options query;
    struct cmd_list_options list;
    uint64_t min_samples, min_hits, context;
    bool has_min_samples, has_min_hits, has_context;
};

/* --style; without: exact lines as pprofile if there are any. */
enum style { STYLE_PPROFILE, STYLE_LINE_PROFILER, STYLE_SAMPLES, STYLE_NONE };
static const char *const STYLES[] = {"pprofile", "line_profiler", "samples", NULL};

struct lines_request {
    struct analysis_query query;
    struct analysis_lines_select select;
    bool whole_files;
    enum view_format format;
    enum style style;
};

/* 0, or the exit status after a line. */
static int understand(struct lines_options *o, struct lines_request *q)
{
    const regex_t *match;
    int status = cmd_query_make(&o->query, &q->query);
    if (!status)
        status = cmd_list_make(&o->list, &q->format, &match);
    if (status)
        return status;
    int style = o->style ? cmd_choose("--style", o->style, STYLES) : STYLE_NONE;
    if (style < 0)
        return CMD_USAGE;
    q->style = (enum style)style;
    bool chosen = match || o->list.has_min_percent || o->has_min_samples || o->has_min_hits;
    q->whole_files = o->list.has_min_percent && o->list.min_percent == 0 && !match &&
                     !o->has_min_hits && !o->has_context;
    q->select = (struct analysis_lines_select){
        .match = match,
        .min_percent = chosen || q->format != VIEW_TEXT ? o->list.min_percent : TEXT_MIN_PERCENT,
        .min_samples = o->has_min_hits ? o->min_hits : o->min_samples,
        .has_context = o->has_context,
        .context = o->context,
    };
    return 0;
}

/* The time of lines, to stand beside their memory: sampled, or else exact. */
struct beside {
    struct analysis_weights weights;
    struct analysis_lines sampled;
    struct analysis_exact_lines exact;
    const struct analysis_lines *lines; /* one of them; NULL: no time was recorded */
};

static int beside_init(const struct lines_request *q, const struct profile *profile,
                       struct beside *b)
{
    struct analysis_query time = q->query;
    time.metric = ANALYSIS_METRICS;
    time.has_at = false;
    int r = 0;
    if (profile_sample_records(profile)) {
        r = analysis_weights_init(profile, &time, &b->weights);
        if (r == 0)
            r = analysis_lines_init(&b->weights, &b->sampled);
        b->lines = &b->sampled;
    } else if (analysis_exact_lines_has(profile)) {
        r = analysis_exact_lines_init(profile, &time, &b->exact);
        b->lines = &b->exact.lines;
    }
    return r;
}

static void beside_release(struct beside *b)
{
    analysis_lines_release(&b->sampled);
    analysis_weights_release(&b->weights);
    analysis_exact_lines_release(&b->exact);
}

/* The numbers of memory, and those of time beside them. */
static int print_memory(const struct lines_request *q, const struct view_lines *plain,
                        bool *ret_output)
{
    struct beside b = {0};
    int r = beside_init(q, plain->lines->weights->profile, &b);
    const struct view_lines_column all[] = {
        {.title = "self", .lines = plain->lines, .is_self = true},
        {.key = "error", .title = "±", .lines = plain->lines, .is_self = true, .is_error = true},
        {.title = "self %", .lines = plain->lines, .is_self = true, .is_percent = true},
        {.title = "total", .lines = plain->lines},
        {.key = "total_error", .title = "±", .lines = plain->lines, .is_error = true},
        {"time_self", "time %", b.lines, true, true, false},
        {"time_total", "with calls", b.lines, false, true, false},
    };
    struct view_lines_column columns[ARRAY_LEN(all)];
    struct view_lines view = *plain;
    view.column = columns;
    view.columns = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i].lines && (!all[i].is_error || plain->lines->weights->variance))
            columns[view.columns++] = all[i];
    view.beside = b.lines;
    if (r == 0) {
        *ret_output = true;
        errno = 0;
        r = view_lines_print(&view, cmd_stdout(), q->format, view_style_of(stdout));
    }
    beside_release(&b);
    return r;
}

/* Analysis and printing; a negative code, with what it was in *ret_output. */
static int make_and_print(const struct lines_request *q, const struct analysis_weights *weights,
                          bool *ret_output)
{
    struct analysis_lines lines = {0};
    struct profile_sources *sources = NULL;
    *ret_output = false;
    int r = analysis_lines_init(weights, &lines);
    if (r == 0)
        r = profile_sources_new(weights->profile, &sources);
    struct view_lines view = {.lines = &lines, .select = &q->select, .sources = sources};
    if (r == 0 && weights->memory) {
        r = print_memory(q, &view, ret_output);
    } else if (r == 0) {
        *ret_output = true;
        errno = 0;
        r = view_lines_print(&view, cmd_stdout(), q->format, view_style_of(stdout));
    }
    profile_sources_free(sources);
    analysis_lines_release(&lines);
    return r;
}

/* Exact lines were added up where they were recorded: they have no moments and no stacks. */
static int check_exact(const struct analysis_query *q)
{
    if (q->has_from || q->has_to)
        return cmd_fail(CMD_USAGE, "--range: exact lines have no moments; --style samples has");
    if (q->include || q->exclude)
        return cmd_fail(CMD_USAGE, "--include and --exclude: exact lines have no stacks; "
                                   "--match chooses lines");
    if (q->metric != ANALYSIS_METRICS && !analysis_exact_has_metric(q->metric))
        return cmd_fail(CMD_USAGE, "--metric %s: exact lines have time only", q->metric->name);
    return 0;
}

static int show_exact(const struct lines_request *q, const struct profile *profile)
{
    struct analysis_exact_lines exact;
    struct profile_sources *sources = NULL;
    int status = check_exact(&q->query);
    if (!status)
        status = cmd_query_check(&q->query, profile);
    if (status)
        return status;
    int r = analysis_exact_lines_init(profile, &q->query, &exact);
    if (r < 0)
        return cmd_load_failed(profile_path(profile), r);
    r = profile_sources_new(profile, &sources);
    if (!exact.weights.total.samples && !q->query.thread && !q->query.has_process) {
        status =
            cmd_list_no_exact_lines(profile, NULL); /* functions have time, but no line a hit */
    } else if (r < 0) {
        status = cmd_fail(CMD_FAILED, "cannot make the lines: %s", err_text(r));
    } else {
        struct view_exact_lines view = {
            .exact = &exact,
            .select = &q->select,
            .sources = sources,
            .style = q->style == STYLE_LINE_PROFILER ? VIEW_LINE_PROFILER : VIEW_PPROFILE,
            .whole_files = q->whole_files,
        };
        errno = 0;
        r = view_exact_lines_print(&view, cmd_stdout(), q->format, view_style_of(stdout));
        if (r < 0)
            status = cmd_output_failed("the lines", r, errno);
        else
            cmd_list_warn(q->format, &exact.weights);
    }
    profile_sources_free(sources);
    analysis_exact_lines_release(&exact);
    return status;
}

static int show(const struct lines_request *q, const struct profile *profile)
{
    bool has_exact = analysis_exact_lines_has(profile);
    if (!has_exact && (q->style == STYLE_PPROFILE || q->style == STYLE_LINE_PROFILER))
        return cmd_list_no_exact_lines(profile, STYLES[q->style]);
    bool is_memory = analysis_metric_of(profile, q->query.metric)->weigh_site != NULL;
    if (has_exact && q->style != STYLE_SAMPLES &&
        (!is_memory || q->query.metric == ANALYSIS_METRICS))
        return show_exact(q, profile);
    struct analysis_weights weights;
    int r = analysis_weights_init(profile, &q->query, &weights);
    if (r < 0)
        return cmd_load_failed(profile_path(profile), r);
    int status = 0;
    if (!view_is_too_short(&weights))
        status = cmd_query_check(&q->query, profile);
    if (!status)
        status = cmd_list_check_lines(&weights);
    if (!status) {
        bool output;
        r = make_and_print(q, &weights, &output);
        status = cmd_list_status("the lines", r, output, errno);
    }
    if (!status)
        cmd_list_warn(q->format, &weights);
    analysis_weights_release(&weights);
    return status;
}

int cmd_lines(int argc, char **argv)
{
    struct lines_options o = {0};
    const struct cmd_option options[] = {
        CMD_LIST_OPTIONS(&o.list),
        CMD_LIST_MIN_PERCENT(&o.list),
        {"min-samples", 0, CMD_COUNT, &o.min_samples, &o.has_min_samples},
        {"min-hits", 0, CMD_COUNT, &o.min_hits, &o.has_min_hits},
        {"style", 0, CMD_TEXT, &o.style, NULL},
        {"context", 0, CMD_COUNT, &o.context, &o.has_context},
        CMD_QUERY_OPTIONS(&o.query),
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands > 1)
        return cmd_fail(CMD_USAGE, "lines takes one RUN, not %d", operands);

    struct lines_request q = {0};
    struct profile *profile = NULL;
    int status = understand(&o, &q);
    if (!status)
        status = cmd_load_run(operands ? argv[first] : "@", &profile);
    if (!status)
        status = show(&q, profile);
    profile_free(profile);
    cmd_list_release(&o.list);
    cmd_query_release(&o.query);
    return status;
}
