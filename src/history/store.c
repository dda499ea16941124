#include "history/store.h"

#include "base/err.h"
#include "history/internal.h"

struct history_store {
    const struct history_backend *backend;
    void *state;
};

int history_store_open(const char *where, enum history_access access, struct history_store **ret)
{
    if (strstr(where, "://"))
        return E_INVALID; /* servers: none yet */
    struct history_store *s = calloc(1, sizeof *s);
    if (!s)
        return E_NOMEM;
    s->backend = &HISTORY_SQLITE;
    int rc = s->backend->open(where, access, &s->state);
    if (rc < 0) {
        free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void history_store_close(struct history_store *s)
{
    if (!s)
        return;
    s->backend->close(s->state);
    free(s);
}

int history_store_add(struct history_store *s, const struct history_run *run, int64_t *ret_id)
{
    if (!run->key || !run->command || strlen(run->uid) != HISTORY_UID_LEN)
        return E_INVALID;
    if (strlen(run->command) > HISTORY_MAX_COMMAND || run->argv_len > HISTORY_MAX_COMMAND)
        return E_LIMIT;
    int64_t id = 0;
    int rc = s->backend->add(s->state, run, &id);
    if (rc == 0 && ret_id)
        *ret_id = id;
    return rc;
}

int history_store_remove(struct history_store *s, int64_t id)
{
    return s->backend->remove(s->state, id);
}

int history_store_shrink(struct history_store *s)
{
    return s->backend->shrink(s->state);
}

int history_store_commands(struct history_store *s, struct history_commands *ret)
{
    struct history_commands c = {0};
    int rc = s->backend->commands(s->state, &c);
    if (rc < 0)
        history_commands_release(&c);
    else
        *ret = c;
    return rc;
}

void history_commands_release(struct history_commands *c)
{
    for (size_t i = 0; i < c->list.len; i++) {
        free(c->list.data[i].key);
        free(c->list.data[i].command);
    }
    vec_release(&c->list);
}

int history_store_series(struct history_store *s, const struct history_filter *filter,
                         const char *metric, struct history_series *ret)
{
    if (!filter->key)
        return E_INVALID;
    struct history_series series = {0};
    int rc = s->backend->series(s->state, filter, history_metric_canonical(metric), &series);
    if (rc < 0)
        history_series_release(&series);
    else
        *ret = series;
    return rc;
}

void history_series_release(struct history_series *series)
{
    vec_release(&series->points);
}

int history_store_metrics(struct history_store *s, const char *key, struct history_names *ret)
{
    struct history_names names = {0};
    int rc = s->backend->metrics(s->state, key, &names);
    if (rc < 0)
        history_names_release(&names);
    else
        *ret = names;
    return rc;
}

void history_names_release(struct history_names *n)
{
    for (size_t i = 0; i < n->list.len; i++)
        free(n->list.data[i]);
    vec_release(&n->list);
}

int history_store_runs(struct history_store *s, const struct history_filter *filter, bool whole,
                       history_run_fn visit, void *ctx)
{
    return s->backend->runs(s->state, filter, whole, visit, ctx);
}

int history_store_run(struct history_store *s, int64_t id, struct history_run *ret)
{
    struct history_run run = {0};
    int rc = s->backend->run(s->state, id, &run);
    if (rc < 0)
        history_run_release(&run);
    else
        *ret = run;
    return rc;
}

int history_store_find(struct history_store *s, const char *text, int64_t *ret_id)
{
    return s->backend->find(s->state, text, ret_id);
}

int history_store_size(struct history_store *s, uint64_t *ret)
{
    return s->backend->size(s->state, ret);
}
