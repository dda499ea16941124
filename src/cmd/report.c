/* `pyrometer report`: where the time went, as a table. */
#include "view/report.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "view/heading.h"

#include <errno.h>
#include <stdio.h>

enum { TEXT_LIMIT = 30 }; /* rows of a text table when the user does not say */

struct report_options {
    const char *by, *sort, *match;
    struct cmd_query_options query;
    uint64_t limit;
    bool has_limit;
    double min_percent;
    bool callers, callees, json, csv;
};

/* The command line, understood. */
struct report_request {
    struct analysis_query query;
    enum analysis_by by;
    struct analysis_select select;
    regex_t match;
    bool has_match;
    bool callers, callees;
    enum view_format format;
};

static int compile_match(struct report_request *q, const char *pattern)
{
    int status = cmd_regex_compile("--match", pattern, &q->match);
    q->has_match = !status;
    q->select.match = q->has_match ? &q->match : NULL;
    return status;
}

/* 0, or the exit status after a line. Also on failure the request is to be released. */
static int understand(struct report_options *o, struct report_request *q)
{
    int status = cmd_query_make(&o->query, &q->query);
    if (status)
        return status;
    int by = cmd_choose("--by", o->by, ANALYSIS_BY_NAMES);
    int sort = by < 0 ? -1 : cmd_choose("--sort", o->sort, ANALYSIS_SORT_NAMES);
    if (sort < 0)
        return CMD_USAGE;
    if (o->json && o->csv)
        return cmd_fail(CMD_USAGE, "--json and --csv are one too many");
    if (o->min_percent > 100)
        return cmd_fail(CMD_USAGE, "--min-percent %g: it is between 0 and 100", o->min_percent);
    q->by = (enum analysis_by)by;
    if ((o->callers || o->callees) && !analysis_by_is_code(q->by))
        return cmd_fail(CMD_USAGE, "a %s has no callers: use --by function, line, file or module",
                        o->by);
    q->callers = o->callers;
    q->callees = o->callees;
    q->format = o->json ? VIEW_JSON : o->csv ? VIEW_CSV : VIEW_TEXT;
    q->select = (struct analysis_select){
        .sort = (enum analysis_sort)sort,
        .min_percent = o->min_percent,
        .limit = o->has_limit             ? o->limit
                 : q->format == VIEW_TEXT ? TEXT_LIMIT
                                          : 0,
    };
    return o->match ? compile_match(q, o->match) : 0;
}

/* Analysis and printing; a negative code, with what it was in *ret_output. */
static int make_and_print(const struct report_request *q, const struct analysis_weights *weights,
                          bool *ret_output)
{
    struct analysis_rows rows = {0};
    struct analysis_selection selection = {0};
    struct analysis_edges edges = {0};
    bool needs_edges = q->callers || q->callees;
    *ret_output = false;
    int r = analysis_rows_init(weights, q->by, &rows);
    if (r == 0)
        r = analysis_selection_init(&rows, &q->select, &selection);
    if (r == 0 && needs_edges)
        r = analysis_edges_init(&rows, &edges);
    if (r == 0) {
        struct view_report report = {weights,    &rows,     &selection, needs_edges ? &edges : NULL,
                                     q->callers, q->callees};
        *ret_output = true;
        r = view_report_print(&report, stdout, q->format, view_style_of(stdout));
    }
    analysis_edges_release(&edges);
    analysis_selection_release(&selection);
    analysis_rows_release(&rows);
    return r;
}

static int show(const struct report_request *q, const struct profile *profile)
{
    struct analysis_weights weights;
    int r = analysis_weights_init(profile, &q->query, &weights);
    if (r < 0)
        return cmd_load_failed(profile_path(profile), r);
    int status = 0;
    if (!view_is_too_short(&weights))
        status = cmd_query_check(&q->query, profile);
    if (!status) {
        bool output;
        errno = 0;
        r = make_and_print(q, &weights, &output);
        if (r < 0 && output)
            status = cmd_output_failed("the report", r, errno);
        else if (r < 0)
            status = cmd_fail(CMD_FAILED, "cannot make the report: %s", err_text(r));
    }
    analysis_weights_release(&weights);
    return status;
}

int cmd_report(int argc, char **argv)
{
    struct report_options o = {.by = "function", .sort = "self"};
    const struct cmd_option options[] = {
        {"by", 0, CMD_TEXT, &o.by, NULL},
        {"sort", 0, CMD_TEXT, &o.sort, NULL},
        {"match", 0, CMD_TEXT, &o.match, NULL},
        {"limit", 0, CMD_COUNT, &o.limit, &o.has_limit},
        {"min-percent", 0, CMD_REAL, &o.min_percent, NULL},
        CMD_QUERY_OPTIONS(&o.query),
        {"callers", 0, CMD_FLAG, &o.callers, NULL},
        {"callees", 0, CMD_FLAG, &o.callees, NULL},
        {"json", 0, CMD_FLAG, &o.json, NULL},
        {"csv", 0, CMD_FLAG, &o.csv, NULL},
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands > 1)
        return cmd_fail(CMD_USAGE, "report takes one RUN, not %d", operands);

    struct report_request q = {0};
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
