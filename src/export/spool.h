/* The samples of a query, sorted by thread: what comes in the order of time is given back thread by
 * thread, each in the order of time. For formats with one list for each thread.
 *
 * Memory does not grow with the samples: a thread keeps one block; full blocks go to a temporary
 * file that has no name. A small recording never gets that far. */
#ifndef PYROMETER_EXPORT_SPOOL_H
#define PYROMETER_EXPORT_SPOOL_H

#include "analysis/weights.h"

struct export_spool;

/* Samples in one stack. */
struct export_record {
    uint32_t stack;
    struct analysis_weight weight;
};

/* One pass over the samples; writing them begins with its end (base/progress.h), and
 * export_spool_each_stack() counts them. E_NOSPACE, E_IO, … if the temporary file cannot be written. */
int export_spool_new(const struct profile *profile, const struct analysis_query *query,
                     struct export_spool **ret);
void export_spool_free(struct export_spool *s);

/* Records of a thread: 0 means that there is nothing to list. Neighbours with the same stack were
 * joined. */
uint64_t export_spool_count(const struct export_spool *s, uint32_t thread);

/* What a thread carries in all. */
struct analysis_weight export_spool_total(const struct export_spool *s, uint32_t thread);

/* Pushes a thread's records, some at a time; what the callback returns non-zero stops and is
 * returned. */
typedef int export_spool_fn(void *ctx, const struct export_record *records, size_t n);
int export_spool_each(struct export_spool *s, uint32_t thread, export_spool_fn *fn, void *ctx);

/* The thread's records added up by stack, in the order of stack ids: one pass, O(stacks) memory,
 * shared by all threads. Stacks of the thread without records are not pushed. */
int export_spool_each_stack(struct export_spool *s, uint32_t thread, export_spool_fn *fn,
                            void *ctx);

#endif
