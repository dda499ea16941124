/* A query made ready for many samples: what it says of threads and stacks is found out beforehand, one
 * byte each, so that a sample costs a load and a test. Whoever goes over samples asks here, so that
 * filters mean the same everywhere. */
#ifndef PYROMETER_ANALYSIS_FILTER_H
#define PYROMETER_ANALYSIS_FILTER_H

#include "analysis/query.h"
#include "base/attr.h"

struct analysis_filter {
    const struct analysis_query *query;   /* borrowed */
    const struct analysis_metric *metric; /* that the profile really has */
    uint8_t *thread;                      /* owned; for each thread: is it taken? */
    uint8_t *stack;                       /* owned; for each node of the trie; NULL: all are */
    bool clips;                           /* there is a range */
};

int analysis_filter_init(const struct profile *profile, const struct analysis_query *query,
                         struct analysis_filter *ret);
void analysis_filter_release(struct analysis_filter *f);

/* Is it wanted, and what does it weigh? Where a range cuts it, `*sample` is `*clipped` then. Only for
 * metrics of samples. */
static inline bool analysis_filter_take(const struct analysis_filter *f,
                                        const struct record_sample **sample,
                                        struct record_sample *clipped, uint64_t *ret_weight)
{
    const struct record_sample *s = *sample;
    if (!f->thread[s->thread] || (f->stack && !f->stack[s->stack]))
        return false;
    if (unlikely(f->clips)) {
        *clipped = *s;
        if (!analysis_query_clip(f->query, clipped))
            return false;
        *sample = s = clipped;
    }
    return f->metric->weigh_sample(s, ret_weight);
}

#endif
