#include "cmd/check.h"

#include "base/err.h"
#include "base/progress.h"
#include "cmd/cmd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 512, RECORDINGS_MAX = 40 };

static void add_note(struct cmd_check *c, size_t count, const char *what)
{
    char *text;
    if (c->notes == CMD_CHECK_NOTES || asprintf(&text, "%zu %s", count, what) < 0)
        return;
    c->note[c->notes++] = text;
}

/* --- which runs --- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

struct comparison {
    const struct cmd_run_set *subject;
    int64_t before_us; /* runs of the baseline began before; 0: whenever */
    size_t other_hosts, other_instruments;
};

static bool is_of(const struct cmd_run_set *set, int64_t id)
{
    for (size_t i = 0; i < set->runs.len; i++)
        if (set->runs.data[i].id == id)
            return true;
    return false;
}

/* Another machine or other instruments make other times. */
static bool is_comparable(const struct cmd_run_fact *run, void *ctx)
{
    struct comparison *c = ctx;
    const struct cmd_run_fact *subject = &c->subject->runs.data[0];
    if (is_of(c->subject, run->id) || (c->before_us && run->started_us >= c->before_us))
        return false;
    if (!same_text(run->host, subject->host)) {
        c->other_hosts++;
        return false;
    }
    if (!same_text(run->instruments, subject->instruments)) {
        c->other_instruments++;
        return false;
    }
    return true;
}

static bool is_the_run(const struct cmd_run_fact *run, void *ctx)
{
    return run->id == *(const int64_t *)ctx;
}

static int find_subject(struct history_store *store, const struct cmd_check_request *q,
                        int64_t *ret_id)
{
    if (q->run || !q->key)
        return history_store_find(store, q->run ? q->run : "@", ret_id);
    struct history_filter newest = {.key = q->key, .last = 1};
    struct cmd_run_set last = {0};
    int r = cmd_run_set_load(store, &newest, &last);
    if (r == 0 && !last.runs.len)
        r = E_NOENT;
    if (r == 0)
        *ret_id = last.runs.data[0].id;
    cmd_run_set_release(&last);
    return r;
}

/* The run, or all of its group. */
static int load_subject(struct history_store *store, const struct cmd_check_request *q,
                        struct cmd_check *c, char **ret_key)
{
    struct history_run run = {0};
    int64_t id = 0;
    int r = find_subject(store, q, &id);
    if (r == 0)
        r = history_store_run(store, id, &run);
    if (r < 0)
        return cmd_run_failed(q->run ? q->run : q->key ? q->key : "@", r);
    struct history_filter filter = {.key = run.key, .group = run.group, .only_success = true};
    if (!run.group) { /* by its moment: the store has no filter by number */
        filter.since_us = run.started_us;
        filter.until_us = run.started_us + 1;
    }
    r = cmd_run_set_load(store, &filter, &c->subject);
    if (!run.group)
        cmd_run_set_filter(&c->subject, is_the_run, &id);
    int status = r < 0 ? cmd_run_failed("the run", r) : 0;
    if (!status && !c->subject.runs.len)
        status = cmd_fail(CMD_FAILED, "run %lld %s: there is nothing to compare", (long long)id,
                          run.warmup ? "was a warm-up" : "did not succeed");
    if (!status && run.command && run.key) {
        c->command = strdup(run.command);
        *ret_key = strdup(run.key);
    }
    if (!status && (!c->command || !*ret_key))
        status = cmd_fail(CMD_FAILED, "out of memory");
    history_run_release(&run);
    return status;
}

/* --baseline KIND:VALUE as a filter, and in words. */
static int understand_baseline(const struct cmd_check_request *q, struct history_filter *filter,
                               struct comparison *comparison, char text[TEXT_SIZE])
{
    static const char *const kinds[] = {"tag:", "branch:", "commit:", "group:"};
    const char *said = q->baseline ? q->baseline : "last";
    if (!strcmp(said, "last")) {
        snprintf(text, TEXT_SIZE, "before it");
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t len = strlen(kinds[i]);
        if (strncmp(said, kinds[i], len) != 0 || !said[len])
            continue;
        const char **slot = i == 0   ? &filter->tag
                            : i == 1 ? &filter->branch
                            : i == 2 ? &filter->commit
                                     : &filter->group;
        *slot = said + len;
        filter->until_us = 0;
        comparison->before_us = 0;
        snprintf(text, TEXT_SIZE, "of %.*s %.200s", (int)len - 1, said, said + len);
        return 0;
    }
    return cmd_fail(CMD_USAGE,
                    "--baseline '%s': it is last, tag:KEY=VALUE, branch:NAME, commit:HASH or "
                    "group:RUN",
                    said);
}

/* Some more than asked for are read, since other machines' are dropped. */
enum { SPARE = 4 };

static int load_baseline(struct history_store *store, const struct cmd_check_request *q,
                         struct cmd_check *c, const char *key)
{
    const struct cmd_run_fact *first = &c->subject.runs.data[0];
    struct comparison comparison = {.subject = &c->subject, .before_us = first->started_us};
    struct history_filter filter = {
        .key = key, .last = q->last * SPARE, .until_us = first->started_us, .only_success = true};
    char words[TEXT_SIZE];
    int status = understand_baseline(q, &filter, &comparison, words);
    if (status)
        return status;
    int r = cmd_run_set_load(store, &filter, &c->baseline);
    if (r < 0)
        return cmd_run_failed("the baseline", r);
    cmd_run_set_filter(&c->baseline, is_comparable, &comparison);
    cmd_run_set_last(&c->baseline, q->last);
    size_t count = c->baseline.runs.len;
    if (asprintf(&c->baseline_text, "the %zu run%s %s", count, count == 1 ? "" : "s", words) < 0)
        return cmd_fail(CMD_FAILED, "out of memory");
    if (comparison.other_hosts && count < q->last)
        add_note(c, comparison.other_hosts, "runs of other machines were left out.");
    if (comparison.other_instruments && count < q->last)
        add_note(c, comparison.other_instruments, "runs with other instruments were left out.");
    return 0;
}

/* All runs up to the one in question, comparable ones, for the look at the series. */
static int load_series(struct history_store *store, struct cmd_check *c, const char *key)
{
    const struct cmd_run_fact *last = &c->subject.runs.data[c->subject.runs.len - 1];
    struct cmd_run_set nobody = {0};
    struct cmd_run_fact like = c->subject.runs.data[0];
    struct comparison comparison = {.subject = &nobody};
    struct history_filter filter = {.key = key,
                                    .last = CMD_CHECK_SERIES,
                                    .until_us = last->started_us + 1,
                                    .only_success = true};
    nobody.runs.data = &like; /* what they must be like; its length of 0 excludes nobody */
    int r = cmd_run_set_load(store, &filter, &c->series);
    if (r < 0)
        return cmd_run_failed("the series", r);
    cmd_run_set_filter(&c->series, is_comparable, &comparison);
    return 0;
}

/* --- the questions --- */

struct work {
    double *before, *after, *series; /* owned */
    size_t *series_run;              /* owned: where in the set each value is */
};

static int work_init(struct work *w, const struct cmd_check *c)
{
    w->before = calloc(c->baseline.runs.len + 1, sizeof *w->before);
    w->after = calloc(c->subject.runs.len + 1, sizeof *w->after);
    w->series = calloc(c->series.runs.len + 1, sizeof *w->series);
    w->series_run = calloc(c->series.runs.len + 1, sizeof *w->series_run);
    return w->before && w->after && w->series && w->series_run ? 0 : E_NOMEM;
}

static void work_release(struct work *w)
{
    free(w->before);
    free(w->after);
    free(w->series);
    free(w->series_run);
}

static int ask_step(struct cmd_check *c, size_t at, const struct work *w,
                    const struct stats_gate_options *options, uint64_t recent)
{
    struct view_check_metric *m = &c->metric[at];
    size_t count = cmd_run_set_values(&c->series, at, w->series, w->series_run);
    int r = stats_gate_step(w->series, count, recent, options, &m->step, &m->has_step);
    if (r < 0 || !m->has_step)
        return r;
    char text[TEXT_SIZE];
    m->step.at = w->series_run[m->step.at];
    cmd_run_describe(&c->series.runs.data[m->step.at], text, sizeof text);
    c->since[at] = strdup(text);
    m->step_since = c->since[at];
    return c->since[at] ? 0 : E_NOMEM;
}

static int ask(struct cmd_check *c, size_t at, const struct cmd_limit *limit, const struct work *w,
               uint64_t recent)
{
    struct view_check_metric *m = &c->metric[at];
    /* all metrics together may give one false alarm in a hundred checks */
    struct stats_gate_options options = {.alpha = STATS_GATE_ALPHA / (double)c->view.count,
                                         .threshold = limit->threshold,
                                         .is_less_worse = limit->is_less_worse};
    size_t before = cmd_run_set_values(&c->baseline, at, w->before, NULL);
    size_t after = cmd_run_set_values(&c->subject, at, w->after, NULL);
    *m = (struct view_check_metric){.name = limit->metric,
                                    .threshold = limit->threshold,
                                    .is_less_worse = limit->is_less_worse,
                                    .limit = limit->limit};
    int r = stats_gate_decide(w->before, before, w->after, after, &options, &m->gate);
    if (r == 0)
        r = stats_bootstrap_ratio(w->before, before, w->after, after, 0.95, 1, &m->interval);
    if (r == 0 && after)
        r = ask_step(c, at, w, &options, recent);
    m->is_past_limit = isfinite(m->limit) && isfinite(m->gate.after) &&
                       (m->is_less_worse ? m->gate.after < m->limit : m->gate.after > m->limit);
    m->is_regression = m->is_past_limit || m->gate.verdict == STATS_WORSE || m->has_step;
    c->view.is_regression = c->view.is_regression || m->is_regression;
    return r;
}

/* --- who is to blame --- */

static bool is_time(const char *metric)
{
    size_t len = strlen(metric);
    return len > 4 && !strcmp(metric + len - 4, "_sec");
}

/* What the recordings are to be weighed by: the clock of the metric that got worse. NULL: none. */
static const struct view_check_metric *metric_to_explain(const struct cmd_check *c)
{
    for (size_t i = 0; i < c->view.count; i++)
        if (c->metric[i].is_regression && is_time(c->metric[i].name))
            return &c->metric[i];
    return NULL;
}

static int add_recordings(struct cmd_check *c, const struct cmd_run_fact *runs, size_t count,
                          bool is_after, const struct analysis_query *query)
{
    int r = 0;
    for (size_t i = count > RECORDINGS_MAX ? count - RECORDINGS_MAX : 0; r == 0 && i < count; i++)
        if (runs[i].profile)
            r = cmd_culprits_add(&c->culprits, is_after, runs[i].profile, query);
    return r;
}

static int explain(struct cmd_check *c)
{
    const struct view_check_metric *m = metric_to_explain(c);
    if (!m) {
        c->view.no_culprits =
            "Recordings hold times: which function uses more of this they do not tell.";
        return 0;
    }
    bool is_wall = !strcmp(m->name, "elapsed_time_sec");
    struct analysis_query query = {.metric = analysis_metric_find(is_wall ? "wall" : "cpu")};
    bool by_step = m->has_step && m->gate.verdict != STATS_WORSE;
    const struct cmd_run_fact *before = c->baseline.runs.data, *after = c->subject.runs.data;
    size_t before_count = c->baseline.runs.len, after_count = c->subject.runs.len;
    if (by_step) {
        before = c->series.runs.data;
        before_count = m->step.at;
        after = c->series.runs.data + m->step.at;
        after_count = c->series.runs.len - m->step.at;
    }
    int r = add_recordings(c, before, before_count, false, &query);
    if (r == 0)
        r = add_recordings(c, after, after_count, true, &query);
    if (r == 0)
        r = cmd_culprits_find(&c->culprits);
    if (r == 0)
        c->view.culprits = &c->culprits.found;
    else if (r == E_INVALID)
        c->view.no_culprits = "No function can be named: there are no recordings of both sides.";
    if (c->culprits.skipped)
        add_note(c, c->culprits.skipped,
                 "recordings are gone or of another kind, and were left out.");
    return r == E_INVALID ? 0 : r;
}

/* --- all together --- */

static int describe_subject(struct cmd_check *c)
{
    char run[TEXT_SIZE];
    size_t count = c->subject.runs.len;
    cmd_run_describe(&c->subject.runs.data[0], run, sizeof run);
    int n = count == 1 ? asprintf(&c->subject_text, "R%s", run + 1)
                       : asprintf(&c->subject_text, "%zu runs from %s on", count, run);
    return n < 0 ? E_NOMEM : 0;
}

static int make(struct cmd_check *c, const struct cmd_check_request *q)
{
    struct work w;
    int r = work_init(&w, c);
    progress_begin("comparing runs", q->settings->limits.len);
    c->view.count = q->settings->limits.len;
    for (size_t i = 0; r == 0 && i < c->view.count; i++) {
        r = ask(c, i, &q->settings->limits.data[i], &w, q->last);
        progress_add(1);
    }
    work_release(&w);
    if (r == 0 && c->view.is_regression)
        r = explain(c);
    if (r == 0)
        r = describe_subject(c);
    if (r < 0)
        return cmd_fail(CMD_FAILED, "cannot compare: %s", err_text(r));
    for (size_t i = 0; i < c->notes; i++)
        c->note_list[i] = c->note[i];
    c->view.command = c->command;
    c->view.subject = c->subject_text;
    c->view.baseline = c->baseline_text;
    c->view.subject_runs = c->subject.runs.len;
    c->view.baseline_runs = c->baseline.runs.len;
    c->view.metric = c->metric;
    c->view.note = c->note_list;
    c->view.notes = c->notes;
    return 0;
}

int cmd_check_make(struct history_store *store, const struct cmd_check_request *request,
                   struct cmd_check *ret)
{
    const char *names[CMD_LIMITS_MAX];
    size_t count = request->settings->limits.len;
    _cleanup_free_ char *key = NULL;
    for (size_t i = 0; i < count; i++)
        names[i] = request->settings->limits.data[i].metric;
    *ret = (struct cmd_check){0};
    struct cmd_run_set *sets[] = {&ret->subject, &ret->baseline, &ret->series};
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        sets[i]->metric = names;
        sets[i]->metrics = count;
    }
    int status = load_subject(store, request, ret, &key);
    if (!status)
        status = load_baseline(store, request, ret, key);
    if (!status)
        status = load_series(store, ret, key);
    if (!status)
        status = make(ret, request);
    if (status)
        cmd_check_release(ret);
    return status;
}

void cmd_check_release(struct cmd_check *c)
{
    cmd_culprits_release(&c->culprits);
    cmd_run_set_release(&c->subject);
    cmd_run_set_release(&c->baseline);
    cmd_run_set_release(&c->series);
    free(c->command);
    free(c->subject_text);
    free(c->baseline_text);
    for (size_t i = 0; i < CMD_LIMITS_MAX; i++)
        free(c->since[i]);
    for (size_t i = 0; i < c->notes; i++)
        free(c->note[i]);
    *c = (struct cmd_check){0};
}
