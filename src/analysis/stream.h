/* The samples that a query takes, one run at a time, cut to its range and weighed. For what needs
 * more than the sums in weights.h: which thread a stack belongs to, and when. Filters mean here
 * exactly what they mean there; a test compares the totals. */
#ifndef PYROMETER_ANALYSIS_STREAM_H
#define PYROMETER_ANALYSIS_STREAM_H

#include "analysis/weights.h"

/* A run of samples of one thread in one stack, and what it weighs. */
struct analysis_run {
    uint32_t thread, stack;
    uint64_t start_ns, duration_ns;
    struct analysis_weight weight;
};

/* Pushes the runs in batches, so that who looks things up by stack can ask memory for the next ones
 * while it works on this one. What `fn` returns non-zero stops the stream and is returned; else 0
 * or a code. The runs of one thread come in the order of time. */
int analysis_stream_batches(const struct profile *profile, const struct analysis_query *query,
                            int (*fn)(void *ctx, const struct analysis_run *runs, size_t n),
                            void *ctx);

/* The same, one run at a time. What `fn` returns non-zero stops the stream and is returned. */
int analysis_stream_each(const struct profile *profile, const struct analysis_query *query,
                         int (*fn)(void *ctx, const struct analysis_run *run), void *ctx);

#endif
