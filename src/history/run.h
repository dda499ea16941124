/* A run as the history keeps it: plain data, and who owns it.
 *
 * A run is one execution of a command: what it was (context), what it cost (metrics), what it left
 * (outputs). Names of metrics carry their unit at the end (`_sec`, `_kb`, `_bytes`); a value that
 * is not known is NaN here and null in the store, never 0. */
#ifndef PYROMETER_HISTORY_RUN_H
#define PYROMETER_HISTORY_RUN_H

#include "base/vec.h"

#include <stdbool.h>

enum {
    HISTORY_MAX_NAME = 512,        /* bytes of a metric's, tag's or output's name */
    HISTORY_MAX_TEXT = 64 << 10,   /* of a fact's value */
    HISTORY_MAX_COMMAND = 1 << 20, /* of a command, all arguments */
    HISTORY_MAX_OUTPUT = 64 << 20, /* of one kept output */
    HISTORY_MAX_METRICS = 20000,   /* of one run */
    HISTORY_MAX_FACTS = 20000,
    HISTORY_MAX_OUTPUTS = 256,
    HISTORY_UID_LEN = 32,
};

/* What kind of context a fact is. The numbers are in the databases. */
#define HISTORY_FACT_KINDS(X)                                                                      \
    X(TAG, 1, "tag")         /* --tag k=v */                                                       \
    X(PACKAGE, 2, "package") /* distribution and version of what was imported */                   \
    X(HOST, 3, "host")       /* the machine: cpu, cores, memory, kernel, … */                    \
    X(ENV, 4, "env")         /* chosen environment variables */                                    \
    X(LAUNCH, 5, "launch")   /* launcher, rank, world_size, job, … */

enum history_fact_kind {
#define X(name, number, text) HISTORY_FACT_##name = number,
    HISTORY_FACT_KINDS(X)
#undef X
};

struct history_fact {
    enum history_fact_kind kind;
    char *key, *value; /* owned */
};

struct history_metric {
    char *name;   /* owned */
    double value; /* NaN: not known */
};

/* Bytes kept of something the program wrote: "stdout", "stderr", "tiledb_stats", a collected file. */
struct history_output {
    char *name;     /* owned */
    uint8_t *bytes; /* owned; the beginning, and for a stream also the end, of what there was */
    size_t len;
    uint64_t total; /* how many bytes there were; > len: cut */
};

struct history_run {
    int64_t id;                    /* its number in the store, from 1; 0 before it is there */
    char uid[HISTORY_UID_LEN + 1]; /* 32 hexadecimal digits, its name in every store */
    char *key;                     /* owned; the normalised command, by which runs are compared */
    char *command;                 /* owned; as one would type it: arguments quoted */
    char *argv;                    /* owned; exact: each argument ends with a NUL; */
    size_t argv_len;               /* NULL and 0 where only the text is known (imports) */
    int64_t started_us;            /* UTC, microseconds since 1970 */
    int exit_status;               /* as a shell would see it */
    bool has_exit_status;
    char *cwd;      /* owned, like all below; NULL: not known */
    char *python;   /* version of the first interpreter that was seen */
    char *hostname; /* */
    char *git_commit, *git_branch;
    int git_dirty;           /* 1, 0, or -1: not known */
    char *group;             /* uid of the first run of a --repeat; NULL: alone */
    int repeat;              /* number in its group, from 0 */
    bool warmup;             /* not to be counted */
    char *profile;           /* path of its recording; NULL: none */
    char *source;            /* "run", or what it was imported from */
    bool stderr_with_stdout; /* one stream: both are in "stdout" */
    VEC(struct history_metric) metrics;
    VEC(struct history_fact) facts;
    VEC(struct history_output) outputs;
};

/* Zero-initialised is an empty run (git_dirty is then "clean": set it). */
void history_run_release(struct history_run *run);

/* Add one; texts are copied. E_LIMIT past a maximum, E_NOMEM. A metric of the same name is
 * replaced, a fact of the same kind and key too. Infinite values are kept as not known. */
int history_run_add_metric(struct history_run *run, const char *name, double value);
int history_run_add_fact(struct history_run *run, enum history_fact_kind kind, const char *key,
                         const char *value);
int history_run_add_output(struct history_run *run, const char *name, const void *bytes, size_t len,
                           uint64_t total);

/* NaN where there is none. */
double history_run_metric(const struct history_run *run, const char *name);
const char *history_run_fact(const struct history_run *run, enum history_fact_kind kind,
                             const char *key);
const struct history_output *history_run_output(const struct history_run *run, const char *name);

const char *history_fact_kind_name(enum history_fact_kind kind);

/* The name under which a metric is stored: `peak_memory` is an alias of `max_res_set_sz_kb`. */
const char *history_metric_canonical(const char *name);

/* --- commands --- */

/* argv as one would type it in a shell, and the key: the same, but for a program from a `bin` folder without
 * its folder, so that the same script under another virtual environment is the same command, and
 * without a leading "./". Owned by the caller; NULL without memory. */
char *history_command_text(const char *const *argv, size_t count);
char *history_command_key(const char *const *argv, size_t count);

/* The key of a command that somebody typed as one text. Quotes are understood; a text that is no
 * command line (an open quote) is its own key. */
char *history_command_key_of_text(const char *text);

#endif
