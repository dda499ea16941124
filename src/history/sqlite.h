/* The SQLite backend's insides. Only src/history/sqlite*.c may include this.
 *
 * Schema (drawn here; sqlite.c has its text):
 *
 *     command(id, key, command, runs, first_us, last_us)      one row a normalised command
 *        │
 *     run(id, uid, command, started_us, …)                    one row a run: its context
 *        ├── fact(run, kind, key, value)                      tags, packages, host, environment
 *        ├── output(run, name, total, bytes)                  stdout, stderr, files
 *        └── value(command, metric, started_us, run, …)       its metrics
 *     metric(id, name)
 *
 * `value` is one tree ordered by command, metric and time: a series is one stretch of it, read in
 * order, however many other runs and metrics there are; the values of one run are looked up metric
 * by metric. The counts in `command` are kept by the transactions that add and remove runs. */
#ifndef PYROMETER_HISTORY_SQLITE_H
#define PYROMETER_HISTORY_SQLITE_H

#include "history/internal.h"

#include <sqlite3.h>

enum {
    HISTORY_SCHEMA = 2,                  /* in PRAGMA user_version */
    HISTORY_APPLICATION_ID = 0x5079726f, /* "Pyro" */
};

struct sqlite_store {
    sqlite3 *db;
    bool writable;
};

/* Our code for one of SQLite's. */
int sqlite_error(sqlite3 *db, int code);

/* Runs statements without results. */
int sqlite_exec(sqlite3 *db, const char *sql);

/* A transaction that may write; sqlite_end() commits if `rc` is 0 and it can, else takes all back. Returns what became of it. */
int sqlite_begin(sqlite3 *db);
int sqlite_end(sqlite3 *db, int rc);

/* 0 with a statement, to be finalized. */
int sqlite_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret);

/* One step: 1 a row, 0 done, or a negative code. */
int sqlite_step(sqlite3 *db, sqlite3_stmt *stmt);

/* The one whole number that a query with one text or number argument gives; E_NOENT if none. */
int sqlite_number_of_text(sqlite3 *db, const char *sql, const char *text, int64_t *ret);

/* Binds text that may be NULL. */
void sqlite_bind_opt(sqlite3_stmt *stmt, int index, const char *text);

static inline void sqlite_finalize_ptr(sqlite3_stmt **stmt)
{
    sqlite3_finalize(*stmt);
}
#define _cleanup_stmt_ _cleanup_(sqlite_finalize_ptr)

int sqlite_add(void *b, const struct history_run *run, int64_t *ret_id);
int sqlite_remove(void *b, int64_t id);
int sqlite_shrink(void *b);
int sqlite_commands(void *b, struct history_commands *ret);
int sqlite_series(void *b, const struct history_filter *f, const char *metric,
                  struct history_series *ret);
int sqlite_metrics(void *b, const char *key, struct history_names *ret);
int sqlite_runs(void *b, const struct history_filter *f, bool whole, history_run_fn visit,
                void *ctx);
int sqlite_run(void *b, int64_t id, struct history_run *ret);
int sqlite_find(void *b, const char *text, int64_t *ret_id);

#endif
