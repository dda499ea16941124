/* The one pass over the samples. Filters are resolved to one byte a thread and one a stack before
 * it starts, so that the loop is a load, a test, a call of the metric and two adds. */
#include "analysis/weights.h"

#include "analysis/match.h"
#include "base/attr.h"
#include "base/err.h"

#include <math.h>

/* Nodes are met in no order: each is asked for this many samples before its turn. */
enum { PREFETCH_AHEAD = 12 };

struct pass {
    const struct analysis_query *query;
    struct analysis_weights *weights;
    const uint8_t *takes;       /* for each thread */
    const uint8_t *takes_stack; /* for each node of the trie; NULL: all */
    bool clips;
};

static int on_samples(void *ctx, const struct record_sample *samples, size_t n)
{
    struct pass *pass = ctx;
    struct analysis_weights *w = pass->weights;
    bool (*weigh)(const struct record_sample *, uint64_t *) = w->metric->weigh_sample;
    for (size_t i = 0; i < n; i++) {
        struct record_sample clipped;
        const struct record_sample *s = &samples[i];
        if (i + PREFETCH_AHEAD < n)
            __builtin_prefetch(&w->node[samples[i + PREFETCH_AHEAD].stack], 1);
        w->recorded_samples += s->count;
        if (!pass->takes[s->thread] || (pass->takes_stack && !pass->takes_stack[s->stack]))
            continue;
        if (unlikely(pass->clips)) {
            clipped = *s;
            if (!analysis_query_clip(pass->query, &clipped))
                continue;
            s = &clipped;
        }
        struct analysis_weight add = {.samples = s->count};
        if (!weigh(s, &add.weight))
            continue;
        analysis_weight_add(&w->node[s->stack], add);
        analysis_weight_add(&w->thread[s->thread], add);
    }
    return 0;
}

static void sum_up(struct analysis_weights *w, const struct profile_tables *t)
{
    for (size_t i = 0; i < t->thread_count; i++) {
        analysis_weight_add(&w->process[t->threads[i].process], w->thread[i]);
        analysis_weight_add(&w->total, w->thread[i]);
    }
}

/* Counts cannot be cut: any filter makes do with the tree that was estimated from them. */
static bool is_exact(const struct profile_tables *t, const struct analysis_query *q)
{
    return t->counts && !q->has_from && !q->has_to && !q->include && !q->exclude && !q->thread &&
           !q->has_process && q->metric == ANALYSIS_METRICS;
}

int analysis_weights_init(const struct profile *profile, const struct analysis_query *query,
                          struct analysis_weights *ret)
{
    const struct profile_tables *t = profile_tables(profile);
    _cleanup_free_ uint8_t *takes = calloc(t->thread_count + 1, 1);
    _cleanup_free_ uint8_t *takes_stack = NULL;
    struct analysis_weights w = {.profile = profile,
                                 .metric = analysis_metric_of(profile, query->metric),
                                 .exact = is_exact(t, query)};
    w.node = calloc(t->node_count + 1, sizeof *w.node);
    w.thread = calloc(t->thread_count + 1, sizeof *w.thread);
    w.process = calloc(t->process_count + 1, sizeof *w.process);
    int r = takes && w.node && w.thread && w.process ? 0 : E_NOMEM;
    if (r == 0)
        r = analysis_match_nodes(t, query, &takes_stack);
    if (r == 0) {
        for (size_t i = 0; i < t->thread_count; i++) {
            takes[i] = analysis_query_takes_thread(query, t, (uint32_t)i);
            w.threads_taken += takes[i] && analysis_thread_is_known(t, (uint32_t)i);
        }
        struct pass pass = {query, &w, takes, takes_stack, query->has_from || query->has_to};
        r = profile_each_sample(profile, on_samples, &pass, &w.damaged_chunks);
    }
    if (r < 0) {
        analysis_weights_release(&w);
        return r;
    }
    sum_up(&w, t);
    if (w.exact) {
        w.total.samples = 0;
        for (size_t i = 0; i < t->code_count; i++)
            w.total.samples += t->counts[i].calls;
    }
    *ret = w;
    return 0;
}

void analysis_weights_release(struct analysis_weights *w)
{
    free(w->node);
    free(w->thread);
    free(w->process);
    *w = (struct analysis_weights){0};
}

void analysis_weights_accumulate(const struct profile_tables *t, struct analysis_weight *node)
{
    for (size_t i = t->node_count; i-- > 1;)
        analysis_weight_add(&node[t->node_parent[i]], node[i]);
}

double analysis_share_error(double share, uint64_t samples)
{
    static const double z = 1.959963984540054; /* 97.5 % point of the normal distribution */
    if (!samples)
        return 100;
    double n = (double)samples;
    double p = share < 0 ? 0 : share > 1 ? 1 : share;
    double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    return half * 100;
}
