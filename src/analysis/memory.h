/* The memory of a recording, site by site: what the query leaves of it, added up over checkpoints.
 *
 * A site is a thread, a stack and an allocator of one process. What it allocated is known from
 * checkpoint to checkpoint, so a range is cut there: A:B takes the checkpoints after A and not after
 * B, and neighbouring ranges add up to the whole. What is alive is known at checkpoints, too: a
 * moment means the last checkpoint of each process by then, and `at_ns` says when that was. What a
 * process had at its peak is known exactly, whenever that was. */
#ifndef PYROMETER_ANALYSIS_MEMORY_H
#define PYROMETER_ANALYSIS_MEMORY_H

#include "analysis/query.h"

struct analysis_site {
    uint32_t process, thread, stack, allocator;
    uint64_t count, bytes;           /* allocated, in the query's range */
    uint64_t freed, freed_bytes;     /* of its blocks, given back in the range */
    uint64_t brief, brief_bytes;     /* of these, before their thread allocated anything else */
    uint64_t live_count, live_bytes; /* alive at the query's moment, or in the end */
    uint64_t peak_count, peak_bytes; /* alive when its process had most */
    double variance, live_variance, peak_variance; /* of the bytes, where they are estimates */
};

/* A process, whole: filters of threads and stacks do not touch it. */
struct analysis_memory_process {
    uint32_t checkpoints;      /* 0: its memory was not recorded */
    struct record_memory last; /* its last checkpoint: the peak, and what was left */
    uint64_t at_ns;            /* the checkpoint that `live` is of; 0: none, or it had ended */
    uint64_t count, bytes, freed, freed_bytes;
};

struct analysis_memory {
    struct analysis_site *site; /* that the query takes */
    size_t count;
    struct analysis_memory_process *process; /* by id, tables->process_count */
    uint32_t processes_taken;                /* with checkpoints, and not left out by the query */
    bool sampled;                            /* bytes and counts are estimates with variances */
    bool unfinished; /* of a process taken the last checkpoint is not the last word */
    uint32_t damaged_chunks;
};

/* One pass over the checkpoints, O(sites) memory. */
int analysis_memory_new(const struct profile *profile, const struct analysis_query *query,
                        struct analysis_memory **ret);
void analysis_memory_free(struct analysis_memory *memory);

/* Does the query take the checkpoint's sums: of this process, and in its range? */
bool analysis_memory_takes(const struct analysis_query *q, const struct profile_tables *t,
                           const struct record_memory *memory);

/* What the site weighs. Where there are bytes there is a block at least: an estimate may say otherwise. */
struct analysis_site_weight analysis_memory_weigh(const struct analysis_metric *metric,
                                                  const struct analysis_site *site);

/* Half of the 95 % interval around an estimate of that variance. */
double analysis_memory_error(double variance);

#endif
