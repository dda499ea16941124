/* The memory of a recording in numbers: each process, how large allocations were, who was asked for them,
 * and who asked for most. For people, as JSON (docs/json.md is the contract) and, as one long table, CSV. */
#ifndef PYROMETER_VIEW_MEMORY_STATS_H
#define PYROMETER_VIEW_MEMORY_STATS_H

#include "analysis/sizes.h"
#include "view/memory.h"

struct view_memory_stats {
    const struct analysis_query *query;
    const struct analysis_sizes *sizes;
    struct view_memory by_size, by_count; /* the rows of the metric `allocated`, in two orders */
};

/* 0, E_NOMEM, or why the output could not be written. */
int view_memory_stats_print(const struct view_memory_stats *view, FILE *out,
                            enum view_format format, struct view_style style);

#endif
