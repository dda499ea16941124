/* `pyrometer diff`: two runs side by side, with the change and how sure it is. */
#include "view/diff.h"

#include "analysis/culprit.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/diff_groups.h"
#include "cmd/list.h"
#include "cmd/load.h"
#include "cmd/progress.h"

#include <errno.h>

struct diff_options {
    const char *by, *sort;
    struct cmd_query_options query;
    struct cmd_diff_group_options groups;
    struct cmd_list_options list;
};

struct diff_request {
    struct analysis_query query;
    enum analysis_by by;
    struct analysis_diff_select select;
    enum view_format format;
};

/* 0, or the exit status after a line. */
static int understand(struct diff_options *o, struct diff_request *q)
{
    const regex_t *match;
    int status = cmd_query_make(&o->query, &q->query);
    if (!status)
        status = cmd_list_make(&o->list, &q->format, &match);
    if (status)
        return status;
    int by = cmd_choose("--by", o->by, ANALYSIS_BY_NAMES);
    int sort = by < 0 ? -1 : cmd_choose("--sort", o->sort, ANALYSIS_DIFF_SORT_NAMES);
    if (sort < 0)
        return CMD_USAGE;
    q->by = (enum analysis_by)by;
    q->select = (struct analysis_diff_select){
        .sort = (enum analysis_diff_sort)sort,
        .match = match,
        .limit = cmd_list_limit(&o->list, q->format),
    };
    return 0;
}

/* One run, as far as it is needed. */
struct side {
    struct profile *profile;
    struct analysis_weights weights;
    struct analysis_rows rows;
};

/* Of calls no lines are known but those that functions begin in, and exact lines have no stacks to be compared by. */
static int check_lines(const struct side *s, enum analysis_by by)
{
    if (by != ANALYSIS_BY_LINE || !s->weights.calls || !profile_calls_records(s->profile))
        return 0;
    return cmd_fail(CMD_FAILED,
                    "%s: lines of samples or of memory can be compared, not of calls: leave out "
                    "--by line",
                    profile_path(s->profile));
}

static int side_init(struct side *s, const char *run, const struct diff_request *q)
{
    int status = cmd_load_run(run, &s->profile);
    if (status)
        return status;
    int r = analysis_weights_init(s->profile, &q->query, &s->weights);
    if (r < 0)
        return cmd_load_failed(profile_path(s->profile), r);
    status = check_lines(s, q->by);
    if (status)
        return status;
    r = analysis_rows_init(&s->weights, q->by, &s->rows);
    return r < 0 ? cmd_fail(CMD_FAILED, "cannot make the rows: %s", err_text(r)) : 0;
}

static void side_release(struct side *s)
{
    analysis_rows_release(&s->rows);
    analysis_weights_release(&s->weights);
    profile_free(s->profile);
}

/* E_INVALID: they cannot be compared, being of different metrics or kinds. */
static int find_culprits(const struct side *before, const struct side *after,
                         struct analysis_blame **blame, struct analysis_culprits *ret)
{
    if (before->weights.exact != after->weights.exact || !before->weights.total.samples ||
        !after->weights.total.samples)
        return E_INVALID;
    int r = analysis_blame_new(blame);
    if (r == 0)
        r = analysis_blame_add(*blame, false, &before->weights);
    if (r == 0)
        r = analysis_blame_add(*blame, true, &after->weights);
    return r < 0 ? r : analysis_blame_find(*blame, ret);
}

static int show(const struct diff_request *q, const struct side *before, const struct side *after)
{
    struct analysis_diff diff;
    int r = analysis_diff_init(&before->rows, &after->rows, &q->select, &diff);
    if (r < 0)
        return cmd_fail(CMD_FAILED, "cannot make the diff: %s", err_text(r));
    struct analysis_blame *blame = NULL;
    struct analysis_culprits culprits = {0};
    r = find_culprits(before, after, &blame, &culprits);
    int status = 0;
    if (r < 0 && r != E_INVALID) {
        status = cmd_fail(CMD_FAILED, "cannot find what explains the difference: %s", err_text(r));
    } else {
        errno = 0;
        r = view_diff_print(&diff, r < 0 ? NULL : &culprits, cmd_stdout(), q->format,
                            view_style_of(stdout));
        status = r < 0 ? cmd_output_failed("the diff", r, errno) : 0;
    }
    analysis_culprits_release(&culprits);
    analysis_blame_free(blame);
    analysis_diff_release(&diff);
    return status;
}

static int diff_runs(const struct diff_request *q, const char *before_run, const char *after_run)
{
    struct side before = {0}, after = {0};
    int status = side_init(&before, before_run, q);
    if (!status)
        status = side_init(&after, after_run, q);
    /* a thread or process may well be in one of them only */
    if (!status && !before.weights.threads_taken && !after.weights.threads_taken)
        status = cmd_query_check(&q->query, after.profile);
    if (!status)
        status = show(q, &before, &after);
    if (!status) {
        cmd_list_warn(q->format, &before.weights);
        cmd_list_warn(q->format, &after.weights);
    }
    side_release(&before);
    side_release(&after);
    return status;
}

int cmd_diff(int argc, char **argv)
{
    struct diff_options o = {.by = "function", .sort = "self"};
    const struct cmd_option options[] = {
        {"by", 0, CMD_TEXT, &o.by, NULL},
        {"sort", 0, CMD_TEXT, &o.sort, NULL},
        CMD_LIST_OPTIONS(&o.list),
        CMD_LIST_LIMIT(&o.list),
        CMD_QUERY_OPTIONS(&o.query),
        CMD_DIFF_GROUP_OPTIONS(&o.groups),
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands > 2)
        return cmd_fail(CMD_USAGE, "diff takes two RUNs, not %d", operands);

    struct diff_request q = {0};
    int status = understand(&o, &q);
    const char *before = operands > 0 ? argv[first] : NULL;
    const char *after = operands > 1 ? argv[first + 1] : NULL;
    bool has_groups = cmd_diff_is_group(&o.groups, before) || cmd_diff_is_group(&o.groups, after);
    if (!status && has_groups)
        status = cmd_diff_groups(&o.groups, &q.query, q.format, before, after);
    else if (!status)
        status =
            diff_runs(&q, operands > 0 ? argv[first] : "@~1", operands > 1 ? argv[first + 1] : "@");
    cmd_list_release(&o.list);
    cmd_query_release(&o.query);
    return status;
}
