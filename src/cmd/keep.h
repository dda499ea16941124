/* A run on its way into the history: `run` gathers it here and hands it to the store.
 *
 * The store is opened on a thread of its own while the command runs, so that neither the start nor
 * the end waits for a disk. Whatever goes wrong is one warning after the command has ended: the
 * command itself is never touched by it. */
#ifndef PYROMETER_CMD_KEEP_H
#define PYROMETER_CMD_KEEP_H

#include "cmd/cmd.h"
#include "meter/meter.h"

#include <stdint.h>
#include <sys/stat.h>

struct history_store;
struct history_run;

enum { CMD_KEEP_BYTES = 1 << 20, CMD_KEEP_BYTES_MAX = 32 << 20 };

/* What `run` was asked for. */
struct cmd_keep_options {
    bool no_history, no_capture;
    const char *db;
    struct cmd_each tags, variables, files; /* --tag, --env, --collect */
    uint64_t keep_bytes;
    bool has_keep_bytes;
};

/* clang-format off */
#define CMD_KEEP_OPTIONS(k)                                                                        \
    {"no-history", 0, CMD_FLAG, &(k)->no_history, NULL},                                           \
    {"no-capture", 0, CMD_FLAG, &(k)->no_capture, NULL},                                           \
    {"db", 0, CMD_TEXT, &(k)->db, NULL},                                                           \
    {"tag", 0, CMD_EACH, &(k)->tags, NULL},                                                        \
    {"env", 0, CMD_EACH, &(k)->variables, NULL},                                                   \
    {"collect", 0, CMD_EACH, &(k)->files, NULL},                                                   \
    {"keep-output", 0, CMD_COUNT, &(k)->keep_bytes, &(k)->has_keep_bytes}
/* clang-format on */

struct cmd_keep;

/* 0, or the exit status after a line (wrong usage). */
int cmd_keep_new(const struct cmd_keep_options *options, struct cmd_keep **ret);
void cmd_keep_free(struct cmd_keep *k); /* NULL is fine */

/* Before each start of the command: the meter for it, or NULL where nothing is to be kept. Owned by
 * the caller. */
struct meter *cmd_keep_meter(struct cmd_keep *k);

struct cmd_kept {
    const uint8_t *run_id; /* 16 bytes */
    char *const *argv;     /* NULL-terminated */
    const char *profile;   /* path; NULL: none */
    int exit_status;
    int repeat;
    bool grouped, warmup;
    const char *instruments; /* that slow it down, "calls,lines"; NULL: none. Kept as a fact: such
                                runs are compared with their like only */
    int64_t deepens;         /* the run that it repeats with more instruments; 0: none */
};

/* After its end: keeps the run. Its number, or 0 after a warning. */
int64_t cmd_keep_run(struct cmd_keep *k, struct meter *m, const struct cmd_kept *kept);

/* Where the history is: `option` (--db), PYROMETER_DB, or history.db in the nearest .pyrometer; that is
 * made if there is none and `make`. 0 or a negative code; *ret is owned by the caller. */
int cmd_history_path(const char *option, bool make, char **ret);

#endif
