#include "cmd/history_set.h"

#include "base/err.h"
#include "cmd/cmd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { COMMIT_SHOWN = 10 };

/* --- what a run is grouped by --- */

int cmd_run_label_check(const char *option, const char *by)
{
    static const char *const plain[] = {"commit", "branch", "python", "host", "group"};
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        if (!strcmp(by, plain[i]))
            return 0;
    bool is_named = (!strncmp(by, "tag:", 4) && by[4]) || (!strncmp(by, "version:", 8) && by[8]);
    if (is_named)
        return 0;
    return cmd_fail(CMD_USAGE,
                    "%s '%s': it is one of commit, branch, python, host, group, tag:NAME or "
                    "version:PACKAGE",
                    option, by);
}

static const char *label_of(const struct history_run *run, const char *by)
{
    if (!strcmp(by, "commit"))
        return run->git_commit;
    if (!strcmp(by, "branch"))
        return run->git_branch;
    if (!strcmp(by, "python"))
        return run->python;
    if (!strcmp(by, "host"))
        return run->hostname;
    if (!strcmp(by, "group"))
        return run->group ? run->group : run->uid;
    if (!strncmp(by, "tag:", 4))
        return history_run_fact(run, HISTORY_FACT_TAG, by + 4);
    return history_run_fact(run, HISTORY_FACT_PACKAGE, by + 8);
}

/* Hashes are long; their beginning is how people know them. */
static char *copy_label(const struct history_run *run, const char *by)
{
    const char *label = label_of(run, by);
    bool is_hash = !strcmp(by, "commit") || !strcmp(by, "group");
    return label ? strndup(label, is_hash ? COMMIT_SHOWN : HISTORY_MAX_TEXT) : strdup("(none)");
}

/* --- loading --- */

static void release_run(struct cmd_run_fact *f)
{
    free(f->profile);
    free(f->commit);
    free(f->host);
    free(f->group);
    free(f->label);
    free(f->instruments);
    free(f->value);
}

static bool copy_text(char **to, const char *text)
{
    return !text || (*to = strdup(text)) != NULL;
}

static int on_run(void *ctx, const struct history_run *run)
{
    struct cmd_run_set *set = ctx;
    if (set->runs.len >= CMD_RUN_SET_MAX)
        return E_LIMIT;
    struct cmd_run_fact *f = vec_push(&set->runs);
    if (!f)
        return E_NOMEM;
    f->id = run->id;
    f->started_us = run->started_us;
    memcpy(f->uid, run->uid, sizeof f->uid);
    f->value = malloc((set->metrics + 1) * sizeof *f->value);
    bool good =
        f->value && copy_text(&f->profile, run->profile) &&
        copy_text(&f->commit, run->git_commit) && copy_text(&f->host, run->hostname) &&
        copy_text(&f->group, run->group) &&
        copy_text(&f->instruments, history_run_fact(run, HISTORY_FACT_LAUNCH, "instruments")) &&
        (!set->label_by || (f->label = copy_label(run, set->label_by)));
    if (!good)
        return E_NOMEM;
    for (size_t i = 0; i < set->metrics; i++)
        f->value[i] = history_run_metric(run, history_metric_canonical(set->metric[i]));
    return 0;
}

/* One value of one run, before they are put together. */
struct loose {
    struct history_point point;
    size_t metric;
};
typedef VEC(struct loose) loose_vec;

static int by_run(const void *a, const void *b)
{
    const struct loose *x = a, *y = b;
    if (x->point.started_us != y->point.started_us)
        return x->point.started_us < y->point.started_us ? -1 : 1;
    return x->point.id != y->point.id ? (x->point.id < y->point.id ? -1 : 1)
                                      : (x->metric > y->metric) - (x->metric < y->metric);
}

static int put_together(const loose_vec *values, struct cmd_run_set *set)
{
    struct cmd_run_fact *run = NULL;
    for (size_t i = 0; i < values->len; i++) {
        const struct loose *v = &values->data[i];
        if (!run || run->id != v->point.id) {
            if (set->runs.len >= CMD_RUN_SET_MAX)
                return E_LIMIT;
            run = vec_push(&set->runs);
            if (!run || !(run->value = malloc((set->metrics + 1) * sizeof *run->value)))
                return E_NOMEM;
            run->id = v->point.id;
            run->started_us = v->point.started_us;
            for (size_t m = 0; m < set->metrics; m++)
                run->value[m] = NAN;
        }
        run->value[v->metric] = v->point.value;
    }
    return 0;
}

/* Series by series: the store has an index for that. A run may lack some of the metrics. */
static int load_light(struct history_store *store, const struct history_filter *filter,
                      struct cmd_run_set *set)
{
    loose_vec values = {0};
    int r = 0;
    for (size_t m = 0; r == 0 && m < set->metrics; m++) {
        struct history_series series = {0};
        r = history_store_series(store, filter, set->metric[m], &series);
        if (r == E_NOENT)
            r = 0;
        for (size_t i = 0; r == 0 && i < series.points.len; i++) {
            struct loose *v = vec_push(&values);
            r = v ? 0 : E_NOMEM;
            if (v)
                *v = (struct loose){series.points.data[i], m};
        }
        history_series_release(&series);
    }
    if (r == 0 && set->metrics > 1 && values.len)
        qsort(values.data, values.len, sizeof *values.data, by_run);
    if (r == 0)
        r = put_together(&values, set);
    vec_release(&values);
    return r;
}

int cmd_run_set_load(struct history_store *store, const struct history_filter *filter,
                     struct cmd_run_set *set)
{
    if (set->is_light)
        return load_light(store, filter, set);
    return history_store_runs(store, filter, false, on_run, set);
}

void cmd_run_set_release(struct cmd_run_set *set)
{
    for (size_t i = 0; i < set->runs.len; i++)
        release_run(&set->runs.data[i]);
    vec_release(&set->runs);
}

void cmd_run_set_filter(struct cmd_run_set *set, bool (*keep)(const struct cmd_run_fact *, void *),
                        void *ctx)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->runs.len; i++) {
        if (keep(&set->runs.data[i], ctx))
            set->runs.data[kept++] = set->runs.data[i];
        else
            release_run(&set->runs.data[i]);
    }
    set->runs.len = kept;
}

void cmd_run_set_last(struct cmd_run_set *set, size_t count)
{
    size_t drop = set->runs.len > count ? set->runs.len - count : 0;
    for (size_t i = 0; i < drop; i++)
        release_run(&set->runs.data[i]);
    if (drop)
        memmove(set->runs.data, set->runs.data + drop,
                (set->runs.len - drop) * sizeof *set->runs.data);
    set->runs.len -= drop;
}

size_t cmd_run_set_values(const struct cmd_run_set *set, size_t metric, double *ret,
                          size_t *ret_run)
{
    size_t count = 0;
    for (size_t i = 0; i < set->runs.len; i++) {
        double value = set->runs.data[i].value[metric];
        if (!isfinite(value))
            continue;
        if (ret_run)
            ret_run[count] = i;
        ret[count++] = value;
    }
    return count;
}

/* --- words --- */

void cmd_time_text(int64_t us, char *out, size_t size)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm local;
    if (!localtime_r(&seconds, &local) || !strftime(out, size, "%Y-%m-%d %H:%M", &local))
        snprintf(out, size, "?");
}

void cmd_run_describe(const struct cmd_run_fact *run, char *out, size_t size)
{
    char when[32];
    cmd_time_text(run->started_us, when, sizeof when);
    if (run->commit)
        snprintf(out, size, "run %lld, %s, commit %.*s", (long long)run->id, when, COMMIT_SHOWN,
                 run->commit);
    else
        snprintf(out, size, "run %lld, %s", (long long)run->id, when);
}

int cmd_run_failed(const char *what, int code)
{
    if (code == E_NOENT)
        return cmd_fail(CMD_FAILED, "there is no run '%s' in the history", what);
    if (code == E_AMBIGUOUS)
        return cmd_fail(CMD_FAILED, "'%s' fits more than one run", what);
    if (code == E_INVALID)
        return cmd_fail(CMD_USAGE, "'%s' names no run: write its number, its id, @ or @~1", what);
    return cmd_fail(CMD_FAILED, "cannot read the history: %s", err_text(code));
}
