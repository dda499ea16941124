/* `pyrometer report`: where the time went, as a table. */
#include "view/report.h"

#include "analysis/exact_lines.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/list.h"
#include "cmd/load.h"
#include "cmd/progress.h"
#include "cmd/speak.h"
#include "view/heading.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SORT_WORDS_MAX = 32 };

struct report_options {
    const char *by;
    struct cmd_each sorts; /* --sort; none: self */
    struct cmd_query_options query;
    struct cmd_each restrictions; /* --match and --limit, in the order given */
    struct cmd_list_options list;
    bool callers, callees;
};

/* The command line, understood. */
struct report_request {
    struct analysis_query query;
    enum analysis_by by;
    struct analysis_select select;
    struct analysis_restriction restriction[CMD_EACH_MAX];
    regex_t match[CMD_EACH_MAX]; /* the first `matches` are owned */
    size_t matches;
    bool callers, callees;
    enum view_format format;
};

/* A whole number of rows, or a part of them: 15, 0.1. */
static int parse_limit(const char *text, struct analysis_restriction *ret)
{
    char *end = NULL;
    errno = 0;
    bool is_whole = *text && !text[strspn(text, "0123456789")];
    ret->limit = is_whole ? strtoull(text, &end, 10) : 0;
    if (is_whole && !errno)
        return 0;
    bool is_plain = *text && !text[strspn(text, ".0123456789")];
    ret->part = is_plain ? strtod(text, &end) : 0;
    if (ret->part > 0 && ret->part < 1 && end && !*end)
        return 0;
    return cmd_fail_in(
        "report", CMD_USAGE,
        "--limit needs a whole number of rows, or a part of them such as 0.1, not '%s'", text);
}

static int make_restrictions(const struct report_options *o, struct report_request *q)
{
    const struct cmd_each *each = &o->restrictions;
    bool has_limit = false;
    int status = 0;
    for (size_t i = 0; status == 0 && i < each->count; i++) {
        struct analysis_restriction *r = &q->restriction[i];
        r->text = each->use[i].value;
        if (strcmp(each->use[i].option, "limit") == 0) {
            has_limit = true;
            status = parse_limit(r->text, r);
            continue;
        }
        status = cmd_regex_compile("--match", r->text, &q->match[q->matches]);
        if (!status)
            r->match = &q->match[q->matches++];
    }
    q->select.restriction = q->restriction;
    q->select.restriction_count = each->count;
    q->select.limit = has_limit ? 0 : cmd_list_limit(&o->list, q->format);
    return status;
}

static int choose_sort(const char *word, enum analysis_sort *ret)
{
    int r = analysis_sort_find(word, ret);
    if (r == E_AMBIGUOUS)
        return cmd_fail(CMD_USAGE, "--sort '%s' is the beginning of several keys: write more of it",
                        word);
    if (r == 0)
        return 0;
    const char *words[SORT_WORDS_MAX + 1] = {0};
    for (size_t i = 0; i < SORT_WORDS_MAX && analysis_sort_word(i); i++)
        words[i] = analysis_sort_word(i);
    cmd_choose("--sort", word, words);
    return CMD_USAGE;
}

/* Keys in the order given, several of one option separated by commas. */
static int choose_sorts(const struct cmd_each *sorts, struct analysis_select *ret)
{
    size_t count = 0;
    ret->sort = ANALYSIS_SORT_SELF;
    for (size_t i = 0; i < sorts->count; i++)
        for (const char *at = sorts->use[i].value, *end; at; at = *end ? end + 1 : NULL) {
            end = at + strcspn(at, ",");
            _cleanup_free_ char *word = strndup(at, (size_t)(end - at));
            enum analysis_sort sort;
            if (!word)
                return cmd_fail(CMD_FAILED, "--sort: %s", err_text(E_NOMEM));
            if (choose_sort(word, &sort))
                return CMD_USAGE;
            if (count > ANALYSIS_SORT_MORE_MAX)
                return cmd_fail(CMD_USAGE, "--sort takes %d keys at most",
                                1 + ANALYSIS_SORT_MORE_MAX);
            *(count ? &ret->more[count - 1] : &ret->sort) = sort;
            count++;
        }
    ret->more_count = count ? count - 1 : 0;
    return 0;
}

/* 0, or the exit status after a line. Also on failure the request is to be released. */
static int understand(struct report_options *o, struct report_request *q)
{
    const regex_t *match;
    int status = cmd_query_make(&o->query, &q->query);
    if (!status)
        status = cmd_list_make(&o->list, &q->format, &match);
    if (status)
        return status;
    int by = cmd_choose("--by", o->by, ANALYSIS_BY_NAMES);
    if (by < 0)
        return CMD_USAGE;
    status = choose_sorts(&o->sorts, &q->select);
    if (status)
        return status;
    q->by = (enum analysis_by)by;
    if ((o->callers || o->callees) && !analysis_by_is_code(q->by))
        return cmd_fail(CMD_USAGE, "a %s has no callers: use --by function, line, file or module",
                        o->by);
    q->callers = o->callers;
    q->callees = o->callees;
    q->select.min_percent = o->list.min_percent;
    return make_restrictions(o, q);
}

/* Hits beside the lines of samples, where they were counted too; moments and stacks they do not
 * know. */
static int add_hits(const struct report_request *q, struct analysis_rows *rows)
{
    const struct profile *profile = rows->weights->profile;
    const struct analysis_query *query = &q->query;
    if (q->by != ANALYSIS_BY_LINE || rows->weights->calls || !analysis_exact_lines_has(profile) ||
        query->has_from || query->has_to || query->include || query->exclude)
        return 0;
    struct analysis_exact_lines exact;
    int r = analysis_exact_lines_init(profile, query, &exact);
    if (r < 0)
        return r;
    r = analysis_exact_count(&exact, rows);
    analysis_exact_lines_release(&exact);
    return r;
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
        r = add_hits(q, &rows);
    if (r == 0)
        r = analysis_selection_init(&rows, &q->select, &selection);
    if (r == 0 && needs_edges)
        r = analysis_edges_init(&rows, &edges);
    if (r == 0) {
        struct view_report report = {
            weights,    &rows,      &selection, needs_edges ? &edges : NULL,
            q->callers, q->callees, &q->select};
        *ret_output = true;
        r = view_report_print(&report, cmd_stdout(), q->format, view_style_of(stdout));
    }
    analysis_edges_release(&edges);
    analysis_selection_release(&selection);
    analysis_rows_release(&rows);
    return r;
}

static int print_exact(const struct report_request *q, const struct analysis_exact_lines *exact,
                       bool *ret_output)
{
    struct analysis_rows rows = {0};
    struct analysis_selection selection = {0};
    *ret_output = false;
    int r = analysis_exact_rows_init(exact, &rows);
    if (r == 0)
        r = analysis_selection_init(&rows, &q->select, &selection);
    if (r == 0) {
        struct view_report report = {.weights = &exact->weights,
                                     .rows = &rows,
                                     .selection = &selection,
                                     .select = &q->select};
        *ret_output = true;
        r = view_report_print(&report, cmd_stdout(), q->format, view_style_of(stdout));
    }
    analysis_selection_release(&selection);
    analysis_rows_release(&rows);
    return r;
}

/* Lines that were counted and timed. */
static int show_exact(const struct report_request *q, const struct profile *profile)
{
    if (q->callers || q->callees)
        return cmd_fail(CMD_USAGE,
                        "exact lines have no %s: pyrometer lines shows what they call, "
                        "and --by function has both",
                        q->callers ? "callers" : "callees");
    int status = cmd_query_check(&q->query, profile);
    if (status)
        return status;
    struct analysis_exact_lines exact;
    int r = analysis_exact_lines_init(profile, &q->query, &exact);
    if (r < 0)
        return cmd_load_failed(profile_path(profile), r);
    bool output;
    errno = 0;
    r = print_exact(q, &exact, &output);
    status = cmd_list_status("the report", r, output, errno);
    if (!status)
        cmd_list_warn(q->format, &exact.weights);
    analysis_exact_lines_release(&exact);
    return status;
}

static int show(const struct report_request *q, const struct profile *profile)
{
    if (q->by == ANALYSIS_BY_LINE && analysis_exact_answers(profile, &q->query))
        return show_exact(q, profile);
    struct analysis_weights weights;
    int r = analysis_weights_init(profile, &q->query, &weights);
    if (r < 0)
        return cmd_load_failed(profile_path(profile), r);
    int status = 0;
    if (!view_is_too_short(&weights))
        status = cmd_query_check(&q->query, profile);
    if (!status && q->by == ANALYSIS_BY_LINE)
        status = cmd_list_check_lines(&weights);
    if (!status) {
        bool output;
        errno = 0;
        r = make_and_print(q, &weights, &output);
        status = cmd_list_status("the report", r, output, errno);
    }
    if (!status)
        cmd_list_warn(q->format, &weights);
    analysis_weights_release(&weights);
    return status;
}

int cmd_report(int argc, char **argv)
{
    struct report_options o = {.by = "function"};
    const struct cmd_option options[] = {
        {"by", 0, CMD_TEXT, &o.by, NULL},
        {"sort", 0, CMD_EACH, &o.sorts, NULL},
        {"match", 0, CMD_EACH, &o.restrictions, NULL},
        {"limit", 0, CMD_EACH, &o.restrictions, NULL},
        {"json", 0, CMD_FLAG, &o.list.json, NULL},
        {"csv", 0, CMD_FLAG, &o.list.csv, NULL},
        CMD_LIST_MIN_PERCENT(&o.list),
        CMD_QUERY_OPTIONS(&o.query),
        {"callers", 0, CMD_FLAG, &o.callers, NULL},
        {"callees", 0, CMD_FLAG, &o.callees, NULL},
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
    while (q.matches)
        regfree(&q.match[--q.matches]);
    cmd_list_release(&o.list);
    cmd_query_release(&o.query);
    return status;
}
