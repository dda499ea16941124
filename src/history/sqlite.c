/* A store in one SQLite file: opening, the schema and its migrations, errors.
 *
 * The journal is a write-ahead log: readers and one writer do not wait for each other, and after a
 * crash the log is replayed or ignored as a whole. `synchronous` is NORMAL: a power cut may cost the
 * last runs, never the file.
 *
 * PRAGMA user_version is the schema's number. Each step of `steps` leads from one number to the
 * next, in one transaction, so that a kill in between leaves the older schema whole. */
#include "history/sqlite.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    LOG_BYTES =
        4 << 20, /* above that the log is carried over; its file then shrinks to a quarter */
    LOG_PAGES_MAX = 8000, /* one writer of very many runs */
};

static const char *const steps[HISTORY_SCHEMA] = {
    /* 0 -> 1 */
    "CREATE TABLE command("
    " id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, command TEXT NOT NULL,"
    " runs INTEGER NOT NULL, first_us INTEGER NOT NULL, last_us INTEGER NOT NULL);"
    "CREATE TABLE run("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE,"
    " command INTEGER NOT NULL REFERENCES command(id), started_us INTEGER NOT NULL,"
    " exit_status INTEGER, python TEXT, hostname TEXT, git_commit TEXT, git_branch TEXT,"
    " git_dirty INTEGER, run_group TEXT, repeat INTEGER NOT NULL DEFAULT 0,"
    " warmup INTEGER NOT NULL DEFAULT 0, merged INTEGER NOT NULL DEFAULT 0, profile TEXT,"
    " source TEXT, text TEXT NOT NULL, argv BLOB, cwd TEXT);"
    "CREATE INDEX run_by_command ON run(command, started_us);"
    "CREATE TABLE fact("
    " run INTEGER NOT NULL REFERENCES run(id), kind INTEGER NOT NULL, key TEXT NOT NULL,"
    " value TEXT NOT NULL, PRIMARY KEY(run, kind, key)) WITHOUT ROWID;"
    "CREATE TABLE output("
    " id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run(id), name TEXT NOT NULL,"
    " total INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE(run, name));"
    "CREATE TABLE metric(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE value("
    " command INTEGER NOT NULL, metric INTEGER NOT NULL, started_us INTEGER NOT NULL,"
    " run INTEGER NOT NULL, value REAL, warmup INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY(command, metric, started_us, run)) WITHOUT ROWID;",
    /* 1 -> 2: the last runs of all commands, and runs by tag, without reading every run */
    "CREATE INDEX run_by_time ON run(started_us);"
    "CREATE INDEX fact_tag ON fact(key, value, run) WHERE kind = 1;",
};

/* --- errors --- */

int sqlite_error(sqlite3 *db, int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_NOMEM:
        return E_NOMEM;
    case SQLITE_FULL:
        return E_NOSPACE;
    case SQLITE_CORRUPT:
        return E_CORRUPT;
    case SQLITE_NOTADB:
        return E_HISTORY;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return E_BUSY;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return E_ACCESS;
    case SQLITE_TOOBIG:
        return E_LIMIT;
    case SQLITE_CONSTRAINT:
        return E_EXISTS;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN: {
        int reason = db ? err_from_errno(sqlite3_system_errno(db)) : 0;
        return reason ? reason : E_IO;
    }
    default:
        return E_HISTORY;
    }
}

int sqlite_exec(sqlite3 *db, const char *sql)
{
    return sqlite_error(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int sqlite_begin(sqlite3 *db)
{
    return sqlite_exec(db, "BEGIN IMMEDIATE");
}

int sqlite_end(sqlite3 *db, int rc)
{
    if (rc == 0)
        rc = sqlite_exec(db, "COMMIT");
    if (rc < 0 && !sqlite3_get_autocommit(db))
        sqlite_exec(db, "ROLLBACK");
    return rc;
}

int sqlite_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
    return sqlite_error(db, sqlite3_prepare_v2(db, sql, -1, ret, NULL));
}

int sqlite_step(sqlite3 *db, sqlite3_stmt *stmt)
{
    int code = sqlite3_step(stmt);
    return code == SQLITE_ROW ? 1 : sqlite_error(db, code);
}

int sqlite_number_of_text(sqlite3 *db, const char *sql, const char *text, int64_t *ret)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db, sql, &stmt);
    if (rc < 0)
        return rc;
    if (text)
        sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC);
    rc = sqlite_step(db, stmt);
    if (rc <= 0)
        return rc < 0 ? rc : E_NOENT;
    *ret = sqlite3_column_int64(stmt, 0);
    return 0;
}

void sqlite_bind_opt(sqlite3_stmt *stmt, int index, const char *text)
{
    if (text)
        sqlite3_bind_text(stmt, index, text, -1, SQLITE_STATIC);
}

/* --- the schema --- */

/* Whose file is it, and how old? All of it at one moment: another process may be making it. */
static int read_version(sqlite3 *db, int64_t *ret)
{
    int64_t application = 0, version = 0, tables = 0;
    bool alone = sqlite3_get_autocommit(db);
    int rc = alone ? sqlite_exec(db, "BEGIN") : 0;
    if (rc == 0)
        rc = sqlite_number_of_text(db, "PRAGMA application_id", NULL, &application);
    if (rc == 0)
        rc = sqlite_number_of_text(db, "PRAGMA user_version", NULL, &version);
    if (rc == 0)
        rc = sqlite_number_of_text(db, "SELECT count(*) FROM sqlite_master", NULL, &tables);
    if (alone)
        rc = sqlite_end(db, rc);
    if (rc < 0)
        return rc;
    if (application != HISTORY_APPLICATION_ID && (application || version || tables))
        return E_HISTORY;
    if (application == HISTORY_APPLICATION_ID && version < 1)
        return E_HISTORY;
    if (version > HISTORY_SCHEMA)
        return E_NEWER;
    *ret = version;
    return 0;
}

static int migrate(sqlite3 *db)
{
    int64_t version;
    int rc = sqlite_begin(db);
    if (rc < 0)
        return rc;
    rc = read_version(db, &version); /* somebody may have been quicker */
    for (; rc == 0 && version < HISTORY_SCHEMA; version++) {
        char text[96];
        rc = sqlite_exec(db, steps[version]);
        snprintf(text, sizeof text, "PRAGMA application_id=%d;PRAGMA user_version=%lld",
                 HISTORY_APPLICATION_ID, (long long)version + 1);
        if (rc == 0)
            rc = sqlite_exec(db, text);
    }
    return sqlite_end(db, rc);
}

static int use_log(sqlite3 *db)
{
    _cleanup_stmt_ sqlite3_stmt *stmt = NULL;
    int rc = sqlite_prepare(db, "PRAGMA journal_mode", &stmt);
    if (rc == 0)
        rc = sqlite_step(db, stmt);
    if (rc < 0)
        return rc;
    const char *mode = rc ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    bool is_log = mode && strcmp(mode, "wal") == 0;
    sqlite3_finalize(stmt);
    stmt = NULL;
    return is_log ? 0 : sqlite_exec(db, "PRAGMA journal_mode=WAL");
}

/* The log is carried into the database when it has grown, and that is done here, for a store is opened
 * while the command runs; not at the end of every run, when somebody waits for it. So the log stays
 * beside the database. */
static void tend_log(sqlite3 *db, const char *path)
{
    char log[4200];
    struct stat st;
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_wal_autocheckpoint(db, LOG_PAGES_MAX);
    if (snprintf(log, sizeof log, "%s-wal", path) < (int)sizeof log && stat(log, &st) == 0 &&
        st.st_size > LOG_BYTES)
        sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

static int prepare_file(sqlite3 *db, enum history_access access)
{
    int64_t version;
    sqlite3_busy_timeout(db, HISTORY_BUSY_MS);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, HISTORY_MAX_OUTPUT + (1 << 20));
    int rc = read_version(db, &version);
    if (rc < 0 || access == HISTORY_READ)
        return rc < 0 || version ? rc : E_HISTORY;
    rc = use_log(db);
    if (rc == 0)
        rc = sqlite_exec(db, "PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY;"
                             "PRAGMA journal_size_limit=1048576");
    return rc == 0 && version < HISTORY_SCHEMA ? migrate(db) : rc;
}

/* --- open and close --- */

static int open_once(const char *path, enum history_access access, bool immutable, sqlite3 **ret)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    flags |=
        access == HISTORY_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    char *uri = immutable ? sqlite3_mprintf("file:%s?immutable=1", path) : NULL;
    if (immutable && !uri)
        return E_NOMEM;
    sqlite3 *db = NULL;
    int rc = sqlite_error(
        NULL, sqlite3_open_v2(uri ? uri : path, &db, flags | (uri ? SQLITE_OPEN_URI : 0), NULL));
    sqlite3_free(uri);
    if (rc < 0 && db && sqlite3_system_errno(db))
        rc = err_from_errno(sqlite3_system_errno(db));
    if (rc == 0)
        rc = prepare_file(db, access);
    if (rc == 0 && access == HISTORY_WRITE)
        tend_log(db, path);
    if (rc < 0)
        sqlite3_close(db);
    else
        *ret = db;
    return rc;
}

/* Turning the log on and ending it need the file alone; SQLite does not always wait for that. */
static int open_patiently(const char *path, enum history_access access, sqlite3 **ret)
{
    uint64_t give_up = clock_mono_ns() + HISTORY_BUSY_MS * NS_PER_MS;
    struct timespec pause = {0, 2 * (long)NS_PER_MS};
    int rc;
    while ((rc = open_once(path, access, false, ret)) == E_BUSY && clock_mono_ns() < give_up)
        nanosleep(&pause, NULL);
    return rc;
}

/* SQLite takes a file that is too short for one of its own as empty, and would write over it. */
static bool is_foreign(const char *path, const struct stat *st)
{
    char head[16] = "";
    _cleanup_close_ int fd = st->st_size ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    return fd >= 0 && (read(fd, head, sizeof head) != (ssize_t)sizeof head ||
                       memcmp(head, "SQLite format 3", sizeof head) != 0);
}

static int open_store(const char *path, enum history_access access, void **ret)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return E_ISDIR;
    if (!exists && access == HISTORY_READ)
        return err_from_errno(errno);
    if (exists && (!S_ISREG(st.st_mode) || is_foreign(path, &st)))
        return E_HISTORY;
    struct sqlite_store *s = calloc(1, sizeof *s);
    if (!s)
        return E_NOMEM;
    int rc = open_patiently(path, access, &s->db);
    /* a log needs files beside the database; where we may not make them there is no writer either */
    if (access == HISTORY_READ && (rc == E_ACCESS || rc == E_IO || rc == E_NOENT))
        rc = open_once(path, access, true, &s->db);
    s->writable = access == HISTORY_WRITE;
    if (rc < 0)
        free(s);
    else
        *ret = s;
    return rc;
}

static void close_store(void *b)
{
    struct sqlite_store *s = b;
    sqlite3_close(s->db);
    free(s);
}

static int size_of(void *b, uint64_t *ret)
{
    struct sqlite_store *s = b;
    int64_t pages = 0, free_pages = 0, size = 0;
    int rc = sqlite_number_of_text(s->db, "PRAGMA page_count", NULL, &pages);
    if (rc == 0)
        rc = sqlite_number_of_text(s->db, "PRAGMA freelist_count", NULL, &free_pages);
    if (rc == 0)
        rc = sqlite_number_of_text(s->db, "PRAGMA page_size", NULL, &size);
    if (rc == 0)
        *ret = (uint64_t)((pages - free_pages) * size);
    return rc;
}

const struct history_backend HISTORY_SQLITE = {
    .open = open_store,
    .close = close_store,
    .add = sqlite_add,
    .remove = sqlite_remove,
    .shrink = sqlite_shrink,
    .commands = sqlite_commands,
    .series = sqlite_series,
    .metrics = sqlite_metrics,
    .runs = sqlite_runs,
    .run = sqlite_run,
    .find = sqlite_find,
    .size = size_of,
};
