/* Exact calls as a query sees them: one entry for each thread and path of calls, the time of the probes
 * taken out where the metric says so. Everything that shows exact calls starts here: weights.c adds
 * them up by node, stream.c pushes them thread by thread. */
#ifndef PYROMETER_ANALYSIS_CALLS_H
#define PYROMETER_ANALYSIS_CALLS_H

#include "analysis/query.h"

struct analysis_calls_entry {
    struct record_calls sums; /* self_ns as the metric wants it: corrected, or as it was stamped */
    uint64_t raw_ns;          /* self_ns as it was stamped */
};

struct analysis_calls_counts {
    uint64_t calls, resumes;
    uint64_t alive_ns; /* of coroutines that have ended: from begin to end, waiting included */
};

struct analysis_calls {
    /* By thread, and in a thread as a walk down the trie meets their stacks. */
    struct analysis_calls_entry *entry;
    size_t count;
    struct analysis_calls_counts *node; /* for each node of the trie */
    struct analysis_calls_counts total;
    /* What the probes cost. Known if a process of the query was calibrated and the metric is
     * corrected; else all are 0. */
    bool calibrated;
    uint64_t raw_ns;   /* all that was stamped */
    uint64_t taken_ns; /* of that, taken out */
    uint64_t error_ns; /* how far that may be wrong */
    uint32_t damaged_chunks;
};

/* One pass over the records of calls, O(entries) memory. The query's time range is not looked at:
 * calls are sums and know no moments (the commands refuse it). */
int analysis_calls_new(const struct profile *profile, const struct analysis_query *query,
                       struct analysis_calls **ret);
void analysis_calls_free(struct analysis_calls *calls);

/* How often a path was entered: calls and resumes. What ran already when tracing began was entered
 * once, or nothing would tell it from what never was. */
static inline uint64_t analysis_calls_entered(const struct analysis_calls_entry *e)
{
    uint64_t n = e->sums.calls + e->sums.resumes;
    return n ? n : 1;
}

#endif
