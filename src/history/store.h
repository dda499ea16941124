/* Where runs are kept, behind one small interface: `sqlite*.c` is the first thing behind it.
 *
 * A store is opened for reading or for writing and is used by one thread. Every call is one
 * transaction: whatever happens in the middle, the store holds all of it or nothing. Several
 * processes may write at once; each waits for its turn, up to HISTORY_BUSY_MS.
 *
 * Results are owned by the caller. Errors: E_NOENT (no store there, or no such run or command),
 * E_NEWER (made by a newer Pyrometer), E_HISTORY (not a history), E_CORRUPT, E_NOSPACE, E_ACCESS,
 * E_BUSY, E_IO, E_NOMEM, E_LIMIT. */
#ifndef PYROMETER_HISTORY_STORE_H
#define PYROMETER_HISTORY_STORE_H

#include "history/run.h"

enum { HISTORY_BUSY_MS = 30000 };

struct history_store;

enum history_access {
    HISTORY_READ,  /* must exist; an older schema is read as it is where that can be done */
    HISTORY_WRITE, /* made if missing, migrated if older */
};

int history_store_open(const char *where, enum history_access access, struct history_store **ret);
void history_store_close(struct history_store *s); /* NULL is fine */

/* --- writing --- */

/* Keeps the run whole, or not at all. Its number goes to *ret_id if that is not NULL. E_EXISTS: a run of
 * that uid is there already. */
int history_store_add(struct history_store *s, const struct history_run *run, int64_t *ret_id);
int history_store_remove(struct history_store *s, int64_t id);
/* Gives the space of removed runs back to the system. */
int history_store_shrink(struct history_store *s);

/* --- which runs --- */

struct history_filter {
    const char *key;    /* normalised command; NULL: all */
    int64_t since_us;   /* not before; 0: ever */
    int64_t until_us;   /* before; 0: ever */
    uint64_t last;      /* the newest N of what is left; 0: all */
    const char *tag;    /* "k=v", or "k" for any value; NULL: all */
    const char *commit; /* beginning of it; NULL: all */
    const char *branch; /* NULL: all */
    const char *group;  /* uid of a group; NULL: all */
    bool with_warmups;  /* else they are left out */
    bool only_success;  /* exit status 0 */
};

/* --- reading --- */

struct history_command {
    char *key;     /* owned */
    char *command; /* owned; as last typed */
    uint64_t runs;
    int64_t first_us, last_us;
};
struct history_commands {
    VEC(struct history_command) list; /* most recently run first */
};
int history_store_commands(struct history_store *s, struct history_commands *ret);
void history_commands_release(struct history_commands *c);

/* One metric over the runs of one command, oldest first. */
struct history_point {
    int64_t id; /* the run */
    int64_t started_us;
    double value; /* NaN: not known in that run */
};
struct history_series {
    VEC(struct history_point) points;
};
/* filter->key must be given. An alias of the metric will do. */
int history_store_series(struct history_store *s, const struct history_filter *filter,
                         const char *metric, struct history_series *ret);
void history_series_release(struct history_series *series);

/* Names of the metrics that runs of the command have (of all commands with a NULL key), sorted. */
struct history_names {
    VEC(char *) list;
};
int history_store_metrics(struct history_store *s, const char *key, struct history_names *ret);
void history_names_release(struct history_names *n);

/* Runs that fit, oldest first, without outputs (their names and sizes only) unless `whole`. The visitor may keep nothing;
 * it returns 0 to go on, or anything else to stop with that. */
typedef int (*history_run_fn)(void *ctx, const struct history_run *run);
int history_store_runs(struct history_store *s, const struct history_filter *filter, bool whole,
                       history_run_fn visit, void *ctx);

/* One run with all it has. */
int history_store_run(struct history_store *s, int64_t id, struct history_run *ret);

/* The run that a text names: its number ("17"), its uid or a beginning of it of 4 digits or more,
 * "@" the last and "@~N" the Nth before it. E_AMBIGUOUS, E_NOENT, E_INVALID. */
int history_store_find(struct history_store *s, const char *text, int64_t *ret_id);

/* Bytes the store takes. */
int history_store_size(struct history_store *s, uint64_t *ret);

#endif
