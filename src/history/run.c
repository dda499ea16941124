#include "history/run.h"

#include "base/buf.h"
#include "base/err.h"

#include <math.h>

void history_run_release(struct history_run *run)
{
    char *texts[] = {run->key,    run->command,  run->argv,       run->cwd,
                     run->python, run->hostname, run->git_commit, run->git_branch,
                     run->group,  run->profile,  run->source};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < run->metrics.len; i++)
        free(run->metrics.data[i].name);
    for (size_t i = 0; i < run->facts.len; i++) {
        free(run->facts.data[i].key);
        free(run->facts.data[i].value);
    }
    for (size_t i = 0; i < run->outputs.len; i++) {
        free(run->outputs.data[i].name);
        free(run->outputs.data[i].bytes);
    }
    vec_release(&run->metrics);
    vec_release(&run->facts);
    vec_release(&run->outputs);
    *run = (struct history_run){0};
}

static bool fits(const char *text, size_t max)
{
    return strnlen(text, max + 1) <= max;
}

int history_run_add_metric(struct history_run *run, const char *name, double value)
{
    if (!*name || !fits(name, HISTORY_MAX_NAME))
        return E_LIMIT;
    if (!isfinite(value))
        value = NAN;
    for (size_t i = 0; i < run->metrics.len; i++)
        if (strcmp(run->metrics.data[i].name, name) == 0) {
            run->metrics.data[i].value = value;
            return 0;
        }
    if (run->metrics.len >= HISTORY_MAX_METRICS)
        return E_LIMIT;
    char *copy = strdup(name);
    struct history_metric *m = copy ? vec_push(&run->metrics) : NULL;
    if (!m) {
        free(copy);
        return E_NOMEM;
    }
    *m = (struct history_metric){copy, value};
    return 0;
}

int history_run_add_fact(struct history_run *run, enum history_fact_kind kind, const char *key,
                         const char *value)
{
    if (!fits(key, HISTORY_MAX_NAME) || !fits(value, HISTORY_MAX_TEXT))
        return E_LIMIT;
    char *v = strdup(value);
    if (!v)
        return E_NOMEM;
    for (size_t i = 0; i < run->facts.len; i++) {
        struct history_fact *f = &run->facts.data[i];
        if (f->kind == kind && strcmp(f->key, key) == 0) {
            free(f->value);
            f->value = v;
            return 0;
        }
    }
    char *k = run->facts.len < HISTORY_MAX_FACTS ? strdup(key) : NULL;
    struct history_fact *f = k ? vec_push(&run->facts) : NULL;
    if (!f) {
        free(k);
        free(v);
        return run->facts.len < HISTORY_MAX_FACTS ? E_NOMEM : E_LIMIT;
    }
    *f = (struct history_fact){kind, k, v};
    return 0;
}

int history_run_add_output(struct history_run *run, const char *name, const void *bytes, size_t len,
                           uint64_t total)
{
    if (!*name || !fits(name, HISTORY_MAX_NAME) || len > HISTORY_MAX_OUTPUT ||
        run->outputs.len >= HISTORY_MAX_OUTPUTS)
        return E_LIMIT;
    char *n = strdup(name);
    uint8_t *copy = malloc(len ? len : 1);
    struct history_output *o = n && copy ? vec_push(&run->outputs) : NULL;
    if (!o) {
        free(n);
        free(copy);
        return E_NOMEM;
    }
    if (len)
        memcpy(copy, bytes, len);
    *o = (struct history_output){n, copy, len, total};
    return 0;
}

double history_run_metric(const struct history_run *run, const char *name)
{
    name = history_metric_canonical(name);
    for (size_t i = 0; i < run->metrics.len; i++)
        if (strcmp(run->metrics.data[i].name, name) == 0)
            return run->metrics.data[i].value;
    return NAN;
}

const char *history_run_fact(const struct history_run *run, enum history_fact_kind kind,
                             const char *key)
{
    for (size_t i = 0; i < run->facts.len; i++)
        if (run->facts.data[i].kind == kind && strcmp(run->facts.data[i].key, key) == 0)
            return run->facts.data[i].value;
    return NULL;
}

const struct history_output *history_run_output(const struct history_run *run, const char *name)
{
    for (size_t i = 0; i < run->outputs.len; i++)
        if (strcmp(run->outputs.data[i].name, name) == 0)
            return &run->outputs.data[i];
    return NULL;
}

const char *history_fact_kind_name(enum history_fact_kind kind)
{
    switch (kind) {
#define X(name, number, text)                                                                      \
    case HISTORY_FACT_##name:                                                                      \
        return text;
        HISTORY_FACT_KINDS(X)
#undef X
    }
    return "other";
}

const char *history_metric_canonical(const char *name)
{
    return strcmp(name, "peak_memory") == 0 ? "max_res_set_sz_kb" : name;
}
