/* Some runs of the history, with the values of some metrics: what is compared. */
#ifndef PYROMETER_CMD_HISTORY_SET_H
#define PYROMETER_CMD_HISTORY_SET_H

#include "history/store.h"

enum { CMD_RUN_SET_MAX = 100000 };

/* What is kept of a run. Texts are owned; NULL: not known. */
struct cmd_run_fact {
    int64_t id, started_us;
    char uid[HISTORY_UID_LEN + 1];
    char *profile, *commit, *host, *group, *label, *instruments;
    double *value; /* of each metric asked for; NaN: not known */
};

struct cmd_run_set {
    VEC(struct cmd_run_fact) runs; /* oldest first */
    const char *const *metric;     /* borrowed */
    size_t metrics;
    const char *label_by; /* what `label` is (cmd_run_label_check); NULL: nothing */
    bool is_light;        /* only number, moment and values: quick, of any number of runs */
};

/* Adds what the filter leaves. 0 or a negative code. */
int cmd_run_set_load(struct history_store *store, const struct history_filter *filter,
                     struct cmd_run_set *set);
void cmd_run_set_release(struct cmd_run_set *set);

/* Drops runs: keeps those for which `keep` is true. */
void cmd_run_set_filter(struct cmd_run_set *set, bool (*keep)(const struct cmd_run_fact *, void *),
                        void *ctx);
/* Drops all but the last `count`. */
void cmd_run_set_last(struct cmd_run_set *set, size_t count);

/* The known values of a metric, in order; room for all runs. Returns how many. `ret_run` (may be
 * NULL) gets the place in the set of each. */
size_t cmd_run_set_values(const struct cmd_run_set *set, size_t metric, double *ret,
                          size_t *ret_run);

/* "commit", "branch", "python", "host", "group", "tag:NAME", "version:PACKAGE": 0, or the status
 * after a line. */
int cmd_run_label_check(const char *option, const char *by);

/* "run 31, 2026-11-14 12:30, commit 1f2e3d4": for people; into `out`. */
void cmd_run_describe(const struct cmd_run_fact *run, char *out, size_t size);

/* "2026-11-14 12:30", local time. */
void cmd_time_text(int64_t us, char *out, size_t size);

/* The line for a store that cannot be read or a run that is not there, and the status. */
int cmd_run_failed(const char *what, int code);

#endif
