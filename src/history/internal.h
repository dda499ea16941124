/* What a backend is: a table of functions behind store.h. Inside src/history only.
 *
 * To add one: a file with the table, and a row in store.c that says which names are its. Arguments
 * have been checked by store.c. */
#ifndef PYROMETER_HISTORY_INTERNAL_H
#define PYROMETER_HISTORY_INTERNAL_H

#include "history/store.h"

struct history_backend {
    int (*open)(const char *where, enum history_access access, void **ret);
    void (*close)(void *b);
    int (*add)(void *b, const struct history_run *run, int64_t *ret_id);
    int (*remove)(void *b, int64_t id);
    int (*shrink)(void *b);
    int (*commands)(void *b, struct history_commands *ret);
    int (*series)(void *b, const struct history_filter *f, const char *metric,
                  struct history_series *ret);
    int (*metrics)(void *b, const char *key, struct history_names *ret);
    int (*runs)(void *b, const struct history_filter *f, bool whole, history_run_fn visit,
                void *ctx);
    int (*run)(void *b, int64_t id, struct history_run *ret);
    int (*find)(void *b, const char *text, int64_t *ret_id);
    int (*size)(void *b, uint64_t *ret);
};

extern const struct history_backend HISTORY_SQLITE;

#endif
