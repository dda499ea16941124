#include "cmd/diff_groups.h"

#include "base/err.h"
#include "cmd/culprits.h"
#include "cmd/history.h"
#include "cmd/history_set.h"
#include "cmd/load.h"
#include "cmd/progress.h"
#include "stats/gate.h"
#include "view/check.h"
#include "view/culprit.h"
#include "view/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { LAST = 20, LAST_MAX = 10000, NUMBER_DIGITS = 7, RECORDINGS_MAX = 40, TEXT_SIZE = 512 };

static const char *const KINDS[] = {"run:", "group:", "tag:", "branch:", "commit:"};
enum kind { RUN, GROUP, TAG, BRANCH, COMMIT, KIND_COUNT };

/* Which kind, and what stands behind the colon; KIND_COUNT: none. A number is a run. */
static enum kind parse(const char *operand, const char **ret_value)
{
    for (int i = 0; i < KIND_COUNT; i++)
        if (!strncmp(operand, KINDS[i], strlen(KINDS[i])) && operand[strlen(KINDS[i])]) {
            *ret_value = operand + strlen(KINDS[i]);
            return (enum kind)i;
        }
    size_t digits = strspn(operand, "0123456789");
    *ret_value = operand;
    /* longer ones are days, with which the ids of recordings begin */
    return digits && !operand[digits] && digits <= NUMBER_DIGITS ? RUN : KIND_COUNT;
}

bool cmd_diff_is_group(const struct cmd_diff_group_options *o, const char *operand)
{
    const char *value;
    (void)o;
    return operand && access(operand, F_OK) != 0 && parse(operand, &value) != KIND_COUNT;
}

/* --- one side --- */

struct side {
    struct cmd_run_set set;
    char *key;            /* owned */
    char text[TEXT_SIZE]; /* what it is */
};

struct comparison {
    struct history_store *store;
    const char *path;
    uint64_t last;
    struct side side[2];
    struct history_names names;
    struct view_check_metric *metric; /* owned */
    size_t metrics;
    size_t equal; /* metrics that are one value in all runs */
    struct cmd_culprits culprits;
};

static bool is_the_run(const struct cmd_run_fact *run, void *ctx)
{
    return run->id == *(const int64_t *)ctx;
}

/* One run is found by its moment: the store has no filter by number. */
static int load_run(struct comparison *c, struct side *s, const char *value, bool is_group)
{
    struct history_run run = {0};
    int64_t id = 0;
    int status = cmd_history_find(c->store, c->path, value, &id);
    if (status)
        return status;
    int r = history_store_run(c->store, id, &run);
    bool has_group = is_group && run.group;
    struct history_filter filter = {.key = run.key, .with_warmups = !has_group};
    if (has_group) {
        filter.group = run.group;
    } else {
        filter.since_us = run.started_us;
        filter.until_us = run.started_us + 1;
    }
    if (r == 0)
        r = cmd_run_set_load(c->store, &filter, &s->set);
    if (r == 0 && !(s->key = strdup(run.key)))
        r = E_NOMEM;
    history_run_release(&run);
    if (!has_group)
        cmd_run_set_filter(&s->set, is_the_run, &id);
    return r < 0 ? cmd_run_failed(value, r) : 0;
}

/* Runs by tag, branch or commit, of the command that the other side is about if that is known. */
static int load_selected(struct comparison *c, struct side *s, enum kind kind, const char *value,
                         const char *key)
{
    struct history_filter filter = {.key = key, .last = c->last, .only_success = true};
    *(kind == TAG ? &filter.tag : kind == BRANCH ? &filter.branch : &filter.commit) = value;
    int r = cmd_run_set_load(c->store, &filter, &s->set);
    return r < 0 ? cmd_run_failed(value, r) : 0;
}

static int load_side(struct comparison *c, int which, const char *operand)
{
    struct side *s = &c->side[which];
    const char *value, *known = c->side[!which].key;
    enum kind kind = parse(operand, &value);
    int status =
        kind == KIND_COUNT
            ? cmd_fail(CMD_USAGE,
                       "'%s' names no run of the history: both sides are recordings, or "
                       "both a number, group:RUN, tag:KEY=VALUE, branch:NAME or commit:HASH",
                       operand)
        : kind == RUN || kind == GROUP ? load_run(c, s, value, kind == GROUP)
                                       : load_selected(c, s, kind, value, known);
    if (!status && !s->set.runs.len)
        status = cmd_fail(CMD_FAILED, "no runs of '%s' in the history %s", operand, c->path);
    if (status)
        return status;
    char first[TEXT_SIZE / 2];
    cmd_run_describe(&s->set.runs.data[0], first, sizeof first);
    size_t count = s->set.runs.len;
    if (count == 1)
        snprintf(s->text, sizeof s->text, "%s", first);
    else
        snprintf(s->text, sizeof s->text, "%zu runs of %.100s, from %s on", count, operand, first);
    return 0;
}

/* --- metrics --- */

static bool is_constant(const double *a, size_t n, const double *b, size_t m)
{
    double one = n ? a[0] : b[0];
    for (size_t i = 0; i < n; i++)
        if (a[i] != one)
            return false;
    for (size_t i = 0; i < m; i++)
        if (b[i] != one)
            return false;
    return true;
}

static int compare_metric(struct comparison *c, size_t at, double *before, double *after,
                          double alpha)
{
    struct stats_gate_options options = {.alpha = alpha};
    size_t n = cmd_run_set_values(&c->side[0].set, at, before, NULL);
    size_t m = cmd_run_set_values(&c->side[1].set, at, after, NULL);
    if (!n && !m)
        return 0;
    if (is_constant(before, n, after, m)) {
        c->equal++;
        return 0;
    }
    struct view_check_metric *row = &c->metric[c->metrics++];
    *row = (struct view_check_metric){.name = c->names.list.data[at], .limit = NAN};
    int r = stats_gate_decide(before, n, after, m, &options, &row->gate);
    return r < 0 ? r : stats_bootstrap_ratio(before, n, after, m, 0.95, 1, &row->interval);
}

static int compare_metrics(struct comparison *c)
{
    size_t count = c->names.list.len;
    _cleanup_free_ double *before = calloc(c->side[0].set.runs.len + 1, sizeof *before);
    _cleanup_free_ double *after = calloc(c->side[1].set.runs.len + 1, sizeof *after);
    c->metric = calloc(count + 1, sizeof *c->metric);
    int r = before && after && c->metric ? 0 : E_NOMEM;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = compare_metric(c, i, before, after, STATS_GATE_ALPHA / (double)count);
    return r < 0 ? cmd_fail(CMD_FAILED, "cannot compare: %s", err_text(r)) : 0;
}

/* --- functions --- */

static int find_culprits(struct comparison *c, const struct analysis_query *query)
{
    int r = 0;
    for (int which = 0; which < 2; which++) {
        const struct cmd_run_set *set = &c->side[which].set;
        size_t from = set->runs.len > RECORDINGS_MAX ? set->runs.len - RECORDINGS_MAX : 0;
        for (size_t i = from; r == 0 && i < set->runs.len; i++)
            if (set->runs.data[i].profile)
                r = cmd_culprits_add(&c->culprits, which, set->runs.data[i].profile, query);
    }
    if (r == 0)
        r = cmd_culprits_find(&c->culprits);
    return r == 0 || r == E_INVALID ? r : cmd_fail(CMD_FAILED, "cannot compare: %s", err_text(r));
}

/* --- out --- */

static void print_json(struct comparison *c, struct json *j, bool has_culprits)
{
    static const char *const names[] = {"before", "after"};
    for (int i = 0; i < 2; i++) {
        json_key(j, names[i]);
        json_object_begin(j);
        json_kv_text(j, "subject", c->side[i].text);
        json_key(j, "runs");
        json_array_begin(j);
        for (size_t k = 0; k < c->side[i].set.runs.len; k++)
            json_i64(j, c->side[i].set.runs.data[k].id);
        json_array_end(j);
        json_object_end(j);
    }
    view_check_metrics_json(j, c->metric, c->metrics, false);
    if (has_culprits)
        view_culprits_json(j, &c->culprits.found);
}

static void print_text(struct comparison *c, struct view_emit *emit, bool has_culprits)
{
    view_emit_line(emit, "before  %s", c->side[0].text);
    view_emit_line(emit, "after   %s", c->side[1].text);
    view_emit_line(emit, "%s", "");
    view_check_table(emit, c->metric, c->metrics, false);
    if (c->equal)
        view_emit_line(emit, "… and %zu metrics that are one value in all runs", c->equal);
    view_emit_line(emit, "%s", "");
    if (has_culprits)
        view_culprits_print(emit, &c->culprits.found);
    else
        view_emit_line(emit, "No function can be named: there are no recordings of both sides.");
    if (c->culprits.skipped)
        view_emit_line(emit, "%zu recordings are gone or of another kind, and were left out.",
                       c->culprits.skipped);
}

static int print(struct comparison *c, enum view_format format, bool has_culprits)
{
    struct view_emit emit;
    view_emit_init(&emit, cmd_stdout(), format, view_style_of(stdout));
    if (format == VIEW_JSON)
        print_json(c, view_emit_json(&emit), has_culprits);
    else
        print_text(c, &emit, has_culprits);
    errno = 0;
    int r = view_emit_finish(&emit);
    return r < 0 ? cmd_output_failed("the diff", r, errno) : 0;
}

/* Both sides; the one that names a run first, since it says which command is meant. */
static int load_sides(struct comparison *c, const char *before, const char *after)
{
    const char *operand[2] = {before, after}, *value;
    enum kind first_kind = parse(before, &value);
    int first = first_kind == RUN || first_kind == GROUP ? 0 : 1;
    for (int i = 0; i < 2; i++) {
        c->side[i].set.metric = (const char *const *)c->names.list.data;
        c->side[i].set.metrics = c->names.list.len;
    }
    int status = load_side(c, first, operand[first]);
    return status ? status : load_side(c, !first, operand[!first]);
}

static int compare(struct comparison *c, const struct analysis_query *query,
                   enum view_format format, const char *before, const char *after)
{
    int r = history_store_metrics(c->store, NULL, &c->names);
    if (r < 0)
        return cmd_run_failed(before, r);
    int status = load_sides(c, before, after);
    if (!status)
        status = compare_metrics(c);
    if (status)
        return status;
    int found = find_culprits(c, query);
    return found > 0 ? found : print(c, format, found == 0);
}

int cmd_diff_groups(const struct cmd_diff_group_options *o, const struct analysis_query *query,
                    enum view_format format, const char *before, const char *after)
{
    if (format == VIEW_CSV)
        return cmd_fail(CMD_USAGE, "runs of the history are compared as text or with --json");
    if (o->has_last && (o->last < 1 || o->last > LAST_MAX))
        return cmd_fail(CMD_USAGE, "--last needs a number from 1 to %d", LAST_MAX);
    struct cmd_history_options history = {.db = o->db};
    struct comparison c = {.last = o->has_last ? o->last : LAST};
    char *path = NULL;
    int status = cmd_history_open(&history, HISTORY_READ, &path, &c.store);
    if (status)
        return status;
    c.path = path;
    status = compare(&c, query, format, before, after ? after : "run:@");
    cmd_culprits_release(&c.culprits);
    for (int i = 0; i < 2; i++) {
        cmd_run_set_release(&c.side[i].set);
        free(c.side[i].key);
    }
    history_names_release(&c.names);
    free(c.metric);
    history_store_close(c.store);
    free(path);
    return status;
}
