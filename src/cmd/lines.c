/* `pyrometer lines`: the source, with what was seen of each line beside it: samples, or, where the
 * recording has them, exact hits and times. */
#include "view/lines.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "view/exact_lines.h"
#include "view/heading.h"

#include <errno.h>

/* Of lines in a table when the user does not say: the rest of a program is long. */
#define TEXT_MIN_PERCENT 1.0

struct lines_options {
    const char *match, *style;
    struct cmd_query_options query;
    double min_percent;
    uint64_t min_samples, min_hits, context;
    bool has_min_percent, has_min_samples, has_min_hits, has_context, json, csv;
};

/* --style; without: exact lines as pprofile if there are any. */
enum style { STYLE_PPROFILE, STYLE_LINE_PROFILER, STYLE_SAMPLES, STYLE_NONE };
static const char *const STYLES[] = {"pprofile", "line_profiler", "samples", NULL};

struct lines_request {
    struct analysis_query query;
    struct analysis_lines_select select;
    regex_t match;
    bool has_match, whole_files;
    enum view_format format;
    enum style style;
};

/* 0, or the exit status after a line. Also on failure the request is to be released. */
static int understand(struct lines_options *o, struct lines_request *q)
{
    int status = cmd_query_make(&o->query, &q->query);
    if (status)
        return status;
    if (o->json && o->csv)
        return cmd_fail(CMD_USAGE, "--json and --csv are one too many");
    if (o->min_percent > 100)
        return cmd_fail(CMD_USAGE, "--min-percent %g: it is between 0 and 100", o->min_percent);
    int style = o->style ? cmd_choose("--style", o->style, STYLES) : STYLE_NONE;
    if (style < 0)
        return CMD_USAGE;
    q->style = (enum style)style;
    q->format = o->json ? VIEW_JSON : o->csv ? VIEW_CSV : VIEW_TEXT;
    bool chosen = o->match || o->has_min_percent || o->has_min_samples || o->has_min_hits;
    q->whole_files = o->has_min_percent && o->min_percent == 0 && !o->match && !o->has_min_hits &&
                     !o->has_context;
    q->select = (struct analysis_lines_select){
        .min_percent = chosen || q->format != VIEW_TEXT ? o->min_percent : TEXT_MIN_PERCENT,
        .min_samples = o->has_min_hits ? o->min_hits : o->min_samples,
        .has_context = o->has_context,
        .context = o->context,
    };
    if (o->match) {
        status = cmd_regex_compile("--match", o->match, &q->match);
        q->has_match = !status;
        q->select.match = q->has_match ? &q->match : NULL;
    }
    return status;
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
    if (r == 0) {
        struct view_lines view = {&lines, &q->select, sources};
        *ret_output = true;
        errno = 0;
        r = view_lines_print(&view, stdout, q->format, view_style_of(stdout));
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
    if (q->metric != ANALYSIS_METRICS)
        return cmd_fail(CMD_USAGE, "--metric %s: exact lines have wall time only", q->metric->name);
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
    if (r < 0) {
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
        r = view_exact_lines_print(&view, stdout, q->format, view_style_of(stdout));
        if (r < 0)
            status = cmd_output_failed("the lines", r, errno);
    }
    profile_sources_free(sources);
    analysis_exact_lines_release(&exact);
    return status;
}

static int show(const struct lines_request *q, const struct profile *profile)
{
    bool has_exact = analysis_exact_lines_has(profile);
    if (!has_exact && (q->style == STYLE_PPROFILE || q->style == STYLE_LINE_PROFILER))
        return cmd_fail(CMD_FAILED,
                        "--style %s: %s has no exact lines; record them with run --lines",
                        STYLES[q->style], profile_path(profile));
    if (has_exact && q->style != STYLE_SAMPLES)
        return show_exact(q, profile);
    struct analysis_weights weights;
    int r = analysis_weights_init(profile, &q->query, &weights);
    if (r < 0)
        return cmd_load_failed(profile_path(profile), r);
    int status = 0;
    if (!view_is_too_short(&weights))
        status = cmd_query_check(&q->query, profile);
    if (!status) {
        bool output;
        r = make_and_print(q, &weights, &output);
        if (r < 0 && output)
            status = cmd_output_failed("the lines", r, errno);
        else if (r < 0)
            status = cmd_fail(CMD_FAILED, "cannot make the lines: %s", err_text(r));
    }
    analysis_weights_release(&weights);
    return status;
}

int cmd_lines(int argc, char **argv)
{
    struct lines_options o = {0};
    const struct cmd_option options[] = {
        {"match", 0, CMD_TEXT, &o.match, NULL},
        {"min-percent", 0, CMD_REAL, &o.min_percent, &o.has_min_percent},
        {"min-samples", 0, CMD_COUNT, &o.min_samples, &o.has_min_samples},
        {"min-hits", 0, CMD_COUNT, &o.min_hits, &o.has_min_hits},
        {"style", 0, CMD_TEXT, &o.style, NULL},
        {"context", 0, CMD_COUNT, &o.context, &o.has_context},
        CMD_QUERY_OPTIONS(&o.query),
        {"json", 0, CMD_FLAG, &o.json, NULL},
        {"csv", 0, CMD_FLAG, &o.csv, NULL},
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
    if (q.has_match)
        regfree(&q.match);
    cmd_query_release(&o.query);
    return status;
}
