/* The SQLite backend: commands, series, runs. */
#include "history/sqlite.h"

#include "base/buf.h"
#include "base/err.h"

#include <math.h>
#include <stdio.h>

enum { SQL_MAX = 8192 };

/* --- filters --- */

/* "AND …" for what the filter asks of run r. Numbers go into the text, texts are bound by name. */
static void put_filter(struct buf *sql, const struct history_filter *f)
{
    if (f->since_us)
        buf_printf(sql, " AND r.started_us >= %lld", (long long)f->since_us);
    if (f->until_us)
        buf_printf(sql, " AND r.started_us < %lld", (long long)f->until_us);
    if (!f->with_warmups)
        buf_puts(sql, " AND r.warmup = 0");
    if (f->only_success)
        buf_puts(sql, " AND r.exit_status = 0");
    if (f->tag)
        buf_printf(sql, " AND r.id IN (SELECT run FROM fact WHERE kind = 1 AND key = :tag_key%s)",
                   strchr(f->tag, '=') ? " AND value = :tag_value" : "");
    if (f->commit)
        buf_puts(sql, " AND substr(r.git_commit, 1, length(:commit)) = :commit");
    if (f->branch)
        buf_puts(sql, " AND r.git_branch = :branch");
    if (f->group)
        buf_puts(sql, " AND r.run_group = :run_group");
}

static bool needs_run(const struct history_filter *f)
{
    return f->only_success || f->tag || f->commit || f->branch || f->group;
}

static void bind_named(sqlite3_stmt *stmt, const char *name, const char *text, int len)
{
    int index = sqlite3_bind_parameter_index(stmt, name);
    if (index && text)
        sqlite3_bind_text(stmt, index, text, len, SQLITE_TRANSIENT);
}

static void bind_filter(sqlite3_stmt *stmt, const struct history_filter *f)
{
    bind_named(stmt, ":key", f->key, -1);
    bind_named(stmt, ":commit", f->commit, -1);
    bind_named(stmt, ":branch", f->branch, -1);
    bind_named(stmt, ":run_group", f->group, -1);
    if (!f->tag)
        return;
    const char *equals = strchr(f->tag, '=');
    bind_named(stmt, ":tag_key", f->tag, equals ? (int)(equals - f->tag) : -1);
    if (equals)
        bind_named(stmt, ":tag_value", equals + 1, -1);
}

static int prepare_buf(sqlite3 *db, struct buf *sql, sqlite3_stmt **ret)
{
    int rc = buf_error(sql) ? buf_error(sql) : sqlite_prepare(db, buf_cstr(sql), ret);
    buf_release(sql);
    return rc;
}

/* --- commands and metrics --- */

static char *column_copy(sqlite3_stmt *stmt, int column)
{
    const unsigned char *text = sqlite3_column_text(stmt, column);
    return text ? strdup((const char *)text) : NULL;
}

int sqlite_commands(void *b, struct history_commands *ret)
{
    struct sqlite_store *s = b;
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(s->db,
                            "SELECT key, command, runs, first_us, last_us FROM command"
                            " ORDER BY last_us DESC, id DESC",
                            &stmt);
    while (rc == 0 && (rc = sqlite_step(s->db, stmt)) == 1) {
        struct history_command *c = vec_push(&ret->list);
        if (!c)
            return E_NOMEM;
        c->key = column_copy(stmt, 0);
        c->command = column_copy(stmt, 1);
        c->runs = (uint64_t)sqlite3_column_int64(stmt, 2);
        c->first_us = sqlite3_column_int64(stmt, 3);
        c->last_us = sqlite3_column_int64(stmt, 4);
        rc = c->key && c->command ? 0 : E_NOMEM;
    }
    return rc;
}

int sqlite_metrics(void *b, const char *key, struct history_names *ret)
{
    struct sqlite_store *s = b;
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    /* one probe of the tree for each name, whatever the number of runs */
    int rc = sqlite_prepare(s->db,
                            key ? "SELECT name FROM metric m WHERE EXISTS (SELECT 1 FROM value v"
                                  " WHERE v.command = (SELECT id FROM command WHERE key = ?1)"
                                  " AND v.metric = m.id) ORDER BY name"
                                : "SELECT name FROM metric ORDER BY name",
                            &stmt);
    if (rc == 0 && key)
        sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
    while (rc == 0 && (rc = sqlite_step(s->db, stmt)) == 1) {
        char *name = column_copy(stmt, 0);
        char **slot = name ? vec_push(&ret->list) : NULL;
        if (!slot) {
            free(name);
            return E_NOMEM;
        }
        *slot = name;
        rc = 0;
    }
    return rc;
}

/* --- series --- */

int sqlite_series(void *b, const struct history_filter *f, const char *metric,
                  struct history_series *ret)
{
    struct sqlite_store *s = b;
    struct buf sql;
    buf_init(&sql, SQL_MAX);
    bool join = needs_run(f);
    /* without a question about the run itself, the one tree has all there is */
    buf_printf(&sql, "SELECT r.%s, r.started_us, %s FROM value %s%s WHERE", join ? "id" : "run",
               join ? "v.value" : "r.value", join ? "v" : "r",
               join ? " JOIN run r ON r.id = v.run" : "");
    buf_printf(&sql,
               " %s.command = (SELECT id FROM command WHERE key = :key)"
               " AND %s.metric = (SELECT id FROM metric WHERE name = :metric)",
               join ? "v" : "r", join ? "v" : "r");
    put_filter(&sql, f);
    const char *t = join ? "v" : "r";
    if (f->last)
        buf_printf(&sql, " ORDER BY %s.started_us DESC, %s.run DESC LIMIT %llu", t, t,
                   (unsigned long long)min_u64(f->last, INT64_MAX));
    else
        buf_printf(&sql, " ORDER BY %s.started_us, %s.run", t, t);
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = prepare_buf(s->db, &sql, &stmt);
    if (rc < 0)
        return rc;
    bind_filter(stmt, f);
    bind_named(stmt, ":metric", metric, -1);
    while (rc == 0 && (rc = sqlite_step(s->db, stmt)) == 1) {
        struct history_point *p = vec_push(&ret->points);
        if (!p)
            return E_NOMEM;
        bool known = sqlite3_column_type(stmt, 2) != SQLITE_NULL;
        *p = (struct history_point){sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1),
                                    known ? sqlite3_column_double(stmt, 2) : NAN};
        rc = 0;
    }
    for (size_t i = 0, n = ret->points.len; f->last && i < n / 2; i++) {
        struct history_point swap = ret->points.data[i];
        ret->points.data[i] = ret->points.data[n - 1 - i];
        ret->points.data[n - 1 - i] = swap;
    }
    return rc;
}

/* --- runs --- */

#define RUN_COLUMNS                                                                                \
    "r.id, r.uid, c.key, r.text, r.argv, r.started_us, r.exit_status, r.cwd, r.python,"            \
    " r.hostname, r.git_commit, r.git_branch, r.git_dirty, r.run_group, r.repeat, r.warmup,"       \
    " r.merged, r.profile, r.source, r.command"

static int read_row(sqlite3_stmt *stmt, struct history_run *run)
{
    run->id = sqlite3_column_int64(stmt, 0);
    const char *uid = (const char *)sqlite3_column_text(stmt, 1);
    snprintf(run->uid, sizeof run->uid, "%s", uid ? uid : "");
    run->key = column_copy(stmt, 2);
    run->command = column_copy(stmt, 3);
    int argv_len = sqlite3_column_bytes(stmt, 4);
    const void *argv = sqlite3_column_blob(stmt, 4);
    if (argv && argv_len > 0 && (run->argv = malloc((size_t)argv_len))) {
        memcpy(run->argv, argv, (size_t)argv_len);
        run->argv_len = (size_t)argv_len;
    }
    run->started_us = sqlite3_column_int64(stmt, 5);
    run->has_exit_status = sqlite3_column_type(stmt, 6) != SQLITE_NULL;
    run->exit_status = sqlite3_column_int(stmt, 6);
    run->cwd = column_copy(stmt, 7);
    run->python = column_copy(stmt, 8);
    run->hostname = column_copy(stmt, 9);
    run->git_commit = column_copy(stmt, 10);
    run->git_branch = column_copy(stmt, 11);
    run->git_dirty =
        sqlite3_column_type(stmt, 12) == SQLITE_NULL ? -1 : sqlite3_column_int(stmt, 12) != 0;
    run->group = column_copy(stmt, 13);
    run->repeat = sqlite3_column_int(stmt, 14);
    run->warmup = sqlite3_column_int(stmt, 15) != 0;
    run->stderr_with_stdout = sqlite3_column_int(stmt, 16) != 0;
    run->profile = column_copy(stmt, 17);
    run->source = column_copy(stmt, 18);
    return run->key && run->command ? 0 : E_NOMEM;
}

/* Everything that lies in other tables, by statements that serve one run after the other. */
struct details {
    sqlite3 *db;
    sqlite3_stmt *values, *facts, *outputs;
};

static int details_open(sqlite3 *db, bool whole, struct details *d)
{
    d->db = db;
    int rc =
        sqlite_prepare(db,
                       "SELECT m.name, v.value FROM metric m CROSS JOIN value v ON v.command = ?1"
                       " AND v.metric = m.id AND v.started_us = ?2 AND v.run = ?3"
                       " ORDER BY m.id",
                       &d->values);
    if (rc == 0)
        rc = sqlite_prepare(
            db, "SELECT kind, key, value FROM fact WHERE run = ?1 ORDER BY kind, key", &d->facts);
    if (rc == 0)
        rc = sqlite_prepare(db,
                            whole
                                ? "SELECT name, total, bytes FROM output WHERE run = ?1 ORDER BY id"
                                : "SELECT name, total, NULL FROM output WHERE run = ?1 ORDER BY id",
                            &d->outputs);
    return rc;
}

static void details_close(struct details *d)
{
    sqlite3_finalize(d->values);
    sqlite3_finalize(d->facts);
    sqlite3_finalize(d->outputs);
}

static int read_values(struct details *d, int64_t command, struct history_run *run)
{
    sqlite3_reset(d->values);
    sqlite3_bind_int64(d->values, 1, command);
    sqlite3_bind_int64(d->values, 2, run->started_us);
    sqlite3_bind_int64(d->values, 3, run->id);
    int rc;
    while ((rc = sqlite_step(d->db, d->values)) == 1) {
        char *name = column_copy(d->values, 0);
        struct history_metric *m = name ? vec_push(&run->metrics) : NULL;
        if (!m) {
            free(name);
            return E_NOMEM;
        }
        bool known = sqlite3_column_type(d->values, 1) != SQLITE_NULL;
        *m = (struct history_metric){name, known ? sqlite3_column_double(d->values, 1) : NAN};
    }
    return rc;
}

static int read_facts(struct details *d, struct history_run *run)
{
    sqlite3_reset(d->facts);
    sqlite3_bind_int64(d->facts, 1, run->id);
    int rc;
    while ((rc = sqlite_step(d->db, d->facts)) == 1) {
        char *key = column_copy(d->facts, 1), *value = column_copy(d->facts, 2);
        struct history_fact *f = key && value ? vec_push(&run->facts) : NULL;
        if (!f) {
            free(key);
            free(value);
            return E_NOMEM;
        }
        *f = (struct history_fact){(enum history_fact_kind)sqlite3_column_int(d->facts, 0), key,
                                   value};
    }
    return rc;
}

static int read_outputs(struct details *d, struct history_run *run)
{
    sqlite3_reset(d->outputs);
    sqlite3_bind_int64(d->outputs, 1, run->id);
    int rc;
    while ((rc = sqlite_step(d->db, d->outputs)) == 1) {
        const char *name = (const char *)sqlite3_column_text(d->outputs, 0);
        const void *bytes = sqlite3_column_blob(d->outputs, 2);
        rc = history_run_add_output(run, name ? name : "?", bytes,
                                    (size_t)sqlite3_column_bytes(d->outputs, 2),
                                    (uint64_t)sqlite3_column_int64(d->outputs, 1));
        if (rc < 0)
            return rc;
    }
    return rc;
}

static int read_whole(struct details *d, sqlite3_stmt *stmt, struct history_run *run)
{
    int rc = read_row(stmt, run);
    if (rc == 0)
        rc = read_values(d, sqlite3_column_int64(stmt, 19), run);
    if (rc == 0)
        rc = read_facts(d, run);
    return rc == 0 ? read_outputs(d, run) : rc;
}

int sqlite_runs(void *b, const struct history_filter *f, bool whole, history_run_fn visit,
                void *ctx)
{
    struct sqlite_store *s = b;
    struct buf sql;
    buf_init(&sql, SQL_MAX);
    /* CROSS: in this order. Left to itself the planner walks over all runs (and over all values of
     * a command for each run) when there are many. */
    buf_puts(&sql, "SELECT " RUN_COLUMNS " FROM (SELECT r.id AS id FROM run r WHERE 1");
    if (f->key)
        buf_puts(&sql, " AND r.command = (SELECT id FROM command WHERE key = :key)");
    put_filter(&sql, f);
    if (f->last)
        buf_printf(&sql, " ORDER BY r.started_us DESC, r.id DESC LIMIT %llu",
                   (unsigned long long)min_u64(f->last, INT64_MAX));
    buf_puts(&sql, ") AS chosen CROSS JOIN run r ON r.id = chosen.id"
                   " CROSS JOIN command c ON c.id = r.command ORDER BY r.started_us, r.id");
    struct details d = {0};
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = prepare_buf(s->db, &sql, &stmt);
    if (rc == 0)
        rc = details_open(s->db, whole, &d);
    if (rc == 0)
        bind_filter(stmt, f);
    while (rc == 0 && (rc = sqlite_step(s->db, stmt)) == 1) {
        struct history_run run = {0};
        rc = read_whole(&d, stmt, &run);
        if (rc == 0)
            rc = visit(ctx, &run);
        history_run_release(&run);
    }
    details_close(&d);
    return rc;
}

int sqlite_run(void *b, int64_t id, struct history_run *ret)
{
    struct sqlite_store *s = b;
    struct details d = {0};
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(s->db,
                            "SELECT " RUN_COLUMNS
                            " FROM run r JOIN command c ON c.id = r.command WHERE r.id = ?1",
                            &stmt);
    if (rc == 0)
        rc = details_open(s->db, true, &d);
    if (rc == 0) {
        sqlite3_bind_int64(stmt, 1, id);
        rc = sqlite_step(s->db, stmt);
        rc = rc == 1 ? read_whole(&d, stmt, ret) : rc < 0 ? rc : E_NOENT;
    }
    details_close(&d);
    return rc;
}

/* --- names of runs --- */

static int find_back(sqlite3 *db, const char *digits, int64_t *ret)
{
    return sqlite_number_of_text(
        db,
        "SELECT id FROM run ORDER BY started_us DESC, id DESC LIMIT 1 OFFSET CAST(?1 AS INTEGER)",
        digits, ret);
}

static int find_uid(sqlite3 *db, const char *text, int64_t *ret)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(
        db, "SELECT id FROM run WHERE uid >= ?1 AND uid < ?1 || 'g' ORDER BY uid LIMIT 2", &stmt);
    if (rc < 0)
        return rc;
    sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC);
    rc = sqlite_step(db, stmt);
    if (rc <= 0)
        return rc < 0 ? rc : E_NOENT;
    int64_t id = sqlite3_column_int64(stmt, 0);
    rc = sqlite_step(db, stmt);
    if (rc != 0)
        return rc < 0 ? rc : E_AMBIGUOUS;
    *ret = id;
    return 0;
}

int sqlite_find(void *b, const char *text, int64_t *ret_id)
{
    struct sqlite_store *s = b;
    enum { MAX_DIGITS = 18, MIN_UID = 4 };
    size_t len = strlen(text), digits = strspn(text, "0123456789");
    if (text[0] == '@') {
        const char *back = len == 1 ? "0" : text + 2;
        if (len > 1 && (text[1] != '~' || !*back || back[strspn(back, "0123456789")] ||
                        strlen(back) > MAX_DIGITS))
            return E_INVALID;
        return find_back(s->db, back, ret_id);
    }
    if (len && len == digits && len <= MAX_DIGITS) {
        int rc = sqlite_number_of_text(s->db, "SELECT id FROM run WHERE id = CAST(?1 AS INTEGER)",
                                       text, ret_id);
        if (rc != E_NOENT)
            return rc;
    }
    if (len < MIN_UID || len > HISTORY_UID_LEN || strspn(text, "0123456789abcdef") != len)
        return len ? E_NOENT : E_INVALID;
    return find_uid(s->db, text, ret_id);
}
