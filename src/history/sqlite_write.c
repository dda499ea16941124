/* The SQLite backend: adding and removing runs. */
#include "history/sqlite.h"

#include "base/err.h"

#include <math.h>

/* The row of the command, made or counted up. */
static int count_command(sqlite3 *db, const struct history_run *run, int64_t *ret)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db,
                            "INSERT INTO command(key, command, runs, first_us, last_us)"
                            " VALUES(?1, ?2, 1, ?3, ?3) ON CONFLICT(key) DO UPDATE SET"
                            " runs = runs + 1, first_us = min(first_us, ?3),"
                            " command = CASE WHEN ?3 >= last_us THEN ?2 ELSE command END,"
                            " last_us = max(last_us, ?3) RETURNING id",
                            &stmt);
    if (rc < 0)
        return rc;
    sqlite3_bind_text(stmt, 1, run->key, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 2, run->command, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 3, run->started_us);
    rc = sqlite_step(db, stmt);
    if (rc == 1) {
        *ret = sqlite3_column_int64(stmt, 0);
        rc = sqlite_step(db, stmt); /* to its end, or the row is not written */
    }
    return rc < 0 ? rc : 0;
}

static int add_row(sqlite3 *db, const struct history_run *run, int64_t command, int64_t *ret)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc =
        sqlite_prepare(db,
                       "INSERT INTO run(uid, command, started_us, exit_status, python,"
                       " hostname, git_commit, git_branch, git_dirty, run_group, repeat,"
                       " warmup, merged, profile, source, text, argv, cwd)"
                       " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18)",
                       &stmt);
    if (rc < 0)
        return rc;
    sqlite3_bind_text(stmt, 1, run->uid, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 2, command);
    sqlite3_bind_int64(stmt, 3, run->started_us);
    if (run->has_exit_status)
        sqlite3_bind_int(stmt, 4, run->exit_status);
    sqlite_bind_opt(stmt, 5, run->python);
    sqlite_bind_opt(stmt, 6, run->hostname);
    sqlite_bind_opt(stmt, 7, run->git_commit);
    sqlite_bind_opt(stmt, 8, run->git_branch);
    if (run->git_dirty >= 0)
        sqlite3_bind_int(stmt, 9, run->git_dirty);
    sqlite_bind_opt(stmt, 10, run->group);
    sqlite3_bind_int(stmt, 11, run->repeat);
    sqlite3_bind_int(stmt, 12, run->warmup);
    sqlite3_bind_int(stmt, 13, run->stderr_with_stdout);
    sqlite_bind_opt(stmt, 14, run->profile);
    sqlite_bind_opt(stmt, 15, run->source);
    sqlite3_bind_text(stmt, 16, run->command, -1, SQLITE_STATIC);
    if (run->argv)
        sqlite3_bind_blob64(stmt, 17, run->argv, run->argv_len, SQLITE_STATIC);
    sqlite_bind_opt(stmt, 18, run->cwd);
    rc = sqlite_step(db, stmt);
    if (rc == 0)
        *ret = sqlite3_last_insert_rowid(db);
    return rc;
}

/* The number of a metric's name, given to it now if it is new. */
static int metric_number(sqlite3 *db, sqlite3_stmt *find, const char *name, int64_t *ret)
{
    sqlite3_reset(find);
    sqlite3_bind_text(find, 1, name, -1, SQLITE_STATIC);
    int rc = sqlite_step(db, find);
    if (rc == 1) {
        *ret = sqlite3_column_int64(find, 0);
        return 0;
    }
    _cleanup_stmt_ sqlite3_stmt *add = NULL;
    if (rc == 0)
        rc = sqlite_prepare(db, "INSERT INTO metric(name) VALUES(?1)", &add);
    if (rc < 0)
        return rc;
    sqlite3_bind_text(add, 1, name, -1, SQLITE_STATIC);
    rc = sqlite_step(db, add);
    if (rc == 0)
        *ret = sqlite3_last_insert_rowid(db);
    return rc;
}

static int add_values(sqlite3 *db, const struct history_run *run, int64_t command, int64_t id)
{
    _cleanup_stmt_ sqlite3_stmt *find = NULL, *add = NULL;
    int rc = sqlite_prepare(db, "SELECT id FROM metric WHERE name = ?1", &find);
    if (rc == 0)
        rc = sqlite_prepare(db,
                            "INSERT INTO value(command, metric, started_us, run, value, warmup)"
                            " VALUES(?1,?2,?3,?4,?5,?6)",
                            &add);
    for (size_t i = 0; rc == 0 && i < run->metrics.len; i++) {
        const struct history_metric *m = &run->metrics.data[i];
        int64_t metric = 0;
        rc = metric_number(db, find, m->name, &metric);
        if (rc < 0)
            return rc;
        sqlite3_reset(add);
        sqlite3_bind_int64(add, 1, command);
        sqlite3_bind_int64(add, 2, metric);
        sqlite3_bind_int64(add, 3, run->started_us);
        sqlite3_bind_int64(add, 4, id);
        if (isnan(m->value))
            sqlite3_bind_null(add, 5);
        else
            sqlite3_bind_double(add, 5, m->value);
        sqlite3_bind_int(add, 6, run->warmup);
        rc = sqlite_step(db, add);
    }
    return rc;
}

static int add_facts(sqlite3 *db, const struct history_run *run, int64_t id)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc =
        sqlite_prepare(db, "INSERT INTO fact(run, kind, key, value) VALUES(?1,?2,?3,?4)", &stmt);
    for (size_t i = 0; rc == 0 && i < run->facts.len; i++) {
        const struct history_fact *f = &run->facts.data[i];
        sqlite3_reset(stmt);
        sqlite3_bind_int64(stmt, 1, id);
        sqlite3_bind_int(stmt, 2, (int)f->kind);
        sqlite3_bind_text(stmt, 3, f->key, -1, SQLITE_STATIC);
        sqlite3_bind_text(stmt, 4, f->value, -1, SQLITE_STATIC);
        rc = sqlite_step(db, stmt);
    }
    return rc;
}

static int add_outputs(sqlite3 *db, const struct history_run *run, int64_t id)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(
        db, "INSERT OR REPLACE INTO output(run, name, total, bytes) VALUES(?1,?2,?3,?4)", &stmt);
    for (size_t i = 0; rc == 0 && i < run->outputs.len; i++) {
        const struct history_output *o = &run->outputs.data[i];
        sqlite3_reset(stmt);
        sqlite3_bind_int64(stmt, 1, id);
        sqlite3_bind_text(stmt, 2, o->name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(stmt, 3, (sqlite3_int64)o->total);
        sqlite3_bind_blob64(stmt, 4, o->len ? (const void *)o->bytes : "", o->len, SQLITE_STATIC);
        rc = sqlite_step(db, stmt);
    }
    return rc;
}

int sqlite_add(void *b, const struct history_run *run, int64_t *ret_id)
{
    struct sqlite_store *s = b;
    if (!s->writable)
        return E_ACCESS;
    int64_t command = 0, id = 0;
    int rc = sqlite_begin(s->db);
    if (rc < 0)
        return rc;
    rc = count_command(s->db, run, &command);
    if (rc == 0)
        rc = add_row(s->db, run, command, &id);
    if (rc == 0)
        rc = add_values(s->db, run, command, id);
    if (rc == 0)
        rc = add_facts(s->db, run, id);
    if (rc == 0)
        rc = add_outputs(s->db, run, id);
    rc = sqlite_end(s->db, rc);
    if (rc == 0)
        *ret_id = id;
    return rc;
}

/* --- removing --- */

static int exec_for(sqlite3 *db, const char *sql, int64_t one, int64_t two)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db, sql, &stmt);
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, one);
    sqlite3_bind_int64(stmt, 2, two);
    rc = sqlite_step(db, stmt);
    return rc < 0 ? rc : 0;
}

static int place_of(sqlite3 *db, int64_t id, int64_t *ret_command, int64_t *ret_started)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db, "SELECT command, started_us FROM run WHERE id = ?1", &stmt);
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, id);
    rc = sqlite_step(db, stmt);
    if (rc <= 0)
        return rc < 0 ? rc : E_NOENT;
    *ret_command = sqlite3_column_int64(stmt, 0);
    *ret_started = sqlite3_column_int64(stmt, 1);
    return 0;
}

/* Its values lie one for each metric: looked up by all four parts of their key. */
static int remove_values(sqlite3 *db, int64_t id, int64_t command, int64_t started)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db,
                            "DELETE FROM value WHERE command = ?1 AND metric IN"
                            " (SELECT id FROM metric) AND started_us = ?2 AND run = ?3",
                            &stmt);
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, command);
    sqlite3_bind_int64(stmt, 2, started);
    sqlite3_bind_int64(stmt, 3, id);
    return sqlite_step(db, stmt);
}

static int uncount_command(sqlite3 *db, int64_t command)
{
    int rc =
        exec_for(db,
                 "UPDATE command SET runs = runs - 1,"
                 " first_us = coalesce((SELECT min(started_us) FROM run WHERE command = ?1), 0),"
                 " last_us = coalesce((SELECT max(started_us) FROM run WHERE command = ?1), 0)"
                 " WHERE id = ?1",
                 command, 0);
    return rc < 0 ? rc
                  : exec_for(db, "DELETE FROM command WHERE id = ?1 AND runs <= 0", command, 0);
}

int sqlite_remove(void *b, int64_t id)
{
    struct sqlite_store *s = b;
    if (!s->writable)
        return E_ACCESS;
    int64_t command = 0, started = 0;
    int rc = sqlite_begin(s->db);
    if (rc < 0)
        return rc;
    rc = place_of(s->db, id, &command, &started);
    if (rc == 0)
        rc = remove_values(s->db, id, command, started);
    if (rc == 0)
        rc = exec_for(s->db, "DELETE FROM fact WHERE run = ?1", id, 0);
    if (rc == 0)
        rc = exec_for(s->db, "DELETE FROM output WHERE run = ?1", id, 0);
    if (rc == 0)
        rc = exec_for(s->db, "DELETE FROM run WHERE id = ?1", id, 0);
    if (rc == 0)
        rc = uncount_command(s->db, command);
    return sqlite_end(s->db, rc);
}

int sqlite_shrink(void *b)
{
    struct sqlite_store *s = b;
    return s->writable ? sqlite_exec(s->db, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)") : E_ACCESS;
}
