/* What the parts of `pyrometer history` share: its options, and the way into the store. */
#ifndef PYROMETER_CMD_HISTORY_H
#define PYROMETER_CMD_HISTORY_H

#include "cmd/cmd.h"
#include "cmd/history_check.h"
#include "cmd/history_plot.h"
#include "history/store.h"
#include "view/emit.h"

struct cmd_history_options {
    const char *db;
    const char *json; /* NULL: no; "" a list of runs; "columns" */
    bool csv, all;
    const char *since, *tag, *commit, *branch;
    uint64_t last;
    bool has_last;
    /* gc */
    const char *max_size, *older_than;
    bool dry_run, keep_profiles;
    struct cmd_plot_options plot;
    struct cmd_check_options check;
};

/* Opens the history that is there. 0, or the exit status after a line. */
int cmd_history_open(const struct cmd_history_options *o, enum history_access access,
                     char **ret_path, struct history_store **ret);

/* The line for a failure, and the exit status. */
int cmd_history_failed(const char *path, int code);

/* The options' filter; `key` is borrowed. 0, or the status after a line. */
int cmd_history_filter(const struct cmd_history_options *o, const char *key,
                       struct history_filter *ret);

/* The key of a command whose words are operands, alone or in quotes. Owned by the caller; NULL
 * without memory. */
char *cmd_history_key(int count, char **argv);

/* The run that an operand names. 0, or the status after a line. */
int cmd_history_find(struct history_store *s, const char *path, const char *text, int64_t *ret);

/* "7d", "36h", "2026-01-31", "2026-01-31T12:30", as microseconds since 1970. */
bool cmd_history_parse_time(const char *text, int64_t *ret_us);

enum view_format cmd_history_format(const struct cmd_history_options *o);

/* The words after `history`: operands are argv[0] to argv[count - 1]. Each returns the exit status. */
int cmd_history_show(const struct cmd_history_options *o, int count, char **argv);
int cmd_history_rm(const struct cmd_history_options *o, int count, char **argv);
int cmd_history_gc(const struct cmd_history_options *o, int count, char **argv);
int cmd_history_import(const struct cmd_history_options *o, int count, char **argv);
int cmd_history_check(const struct cmd_history_options *o, int count, char **argv);
int cmd_history_plot(const struct cmd_history_options *o, int count, char **argv); /* --metric */

#endif
