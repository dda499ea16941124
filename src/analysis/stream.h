/* The samples that a query takes, one run at a time, cut to its range and weighed. For what needs
 * more than the sums in weights.h: which thread a stack belongs to, and when. Filters mean here
 * exactly what they mean there; a test compares the totals. */
#ifndef PYROMETER_ANALYSIS_STREAM_H
#define PYROMETER_ANALYSIS_STREAM_H

#include "analysis/weights.h"

/* What `fn` returns non-zero stops the stream and is returned; else 0 or a code. The runs of one
 * thread come in the order of time. */
int analysis_stream_each(const struct profile *profile, const struct analysis_query *query,
                         int (*fn)(void *ctx, const struct record_sample *run,
                                   struct analysis_weight weight),
                         void *ctx);

#endif
