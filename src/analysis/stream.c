/* As in weights.c, filters are resolved to a byte a thread and a byte a stack before the pass. */
#include "analysis/stream.h"

#include "analysis/match.h"
#include "base/attr.h"
#include "base/err.h"

struct stream {
    const struct analysis_query *query;
    const struct analysis_metric *metric;
    const uint8_t *takes_thread;
    const uint8_t *takes_stack; /* NULL: all */
    int (*fn)(void *, const struct record_sample *, struct analysis_weight);
    void *ctx;
};

static int on_samples(void *ctx, const struct record_sample *samples, size_t n)
{
    const struct stream *s = ctx;
    for (size_t i = 0; i < n; i++) {
        struct record_sample run = samples[i];
        if (!s->takes_thread[run.thread] || (s->takes_stack && !s->takes_stack[run.stack]))
            continue;
        if (!analysis_query_clip(s->query, &run))
            continue;
        struct analysis_weight weight = {.samples = run.count};
        if (!s->metric->weigh_sample(&run, &weight.weight))
            continue;
        int r = s->fn(s->ctx, &run, weight);
        if (r)
            return r;
    }
    return 0;
}

/* A run counts to 32 bits, so what was entered more often is several. A program would take days for as
 * many as this; a file may claim any number. */
enum { RUNS_MAX = 1 << 10 };

/* Exact calls have no moments: a thread's come in the order of its tree, in one piece each. */
static int push_calls(const struct profile *profile, const struct stream *s)
{
    struct analysis_calls *calls;
    int r = analysis_calls_new(profile, s->query, &calls);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < calls->count; i++) {
        const struct analysis_calls_entry *e = &calls->entry[i];
        uint64_t entered = analysis_calls_entered(e);
        struct analysis_weight weight = {.weight = s->metric->weigh_calls(&e->sums)};
        for (size_t k = 0; r == 0 && entered && k < RUNS_MAX; k++) {
            struct record_sample run = {.thread = e->sums.thread, .stack = e->sums.stack};
            run.count = (uint32_t)min_u64(entered, UINT32_MAX);
            run.duration_ns = weight.weight;
            weight.samples = run.count;
            r = s->fn(s->ctx, &run, weight);
            entered -= run.count;
            weight.weight = 0;
        }
    }
    analysis_calls_free(calls);
    return r;
}

int analysis_stream_each(const struct profile *profile, const struct analysis_query *query,
                         int (*fn)(void *ctx, const struct record_sample *run,
                                   struct analysis_weight weight),
                         void *ctx)
{
    const struct profile_tables *t = profile_tables(profile);
    _cleanup_free_ uint8_t *threads = calloc(t->thread_count + 1, 1);
    _cleanup_free_ uint8_t *stacks = NULL;
    if (!threads)
        return E_NOMEM;
    int r = analysis_match_nodes(t, query, &stacks);
    if (r < 0)
        return r;
    for (size_t i = 0; i < t->thread_count; i++)
        threads[i] = analysis_query_takes_thread(query, t, (uint32_t)i);
    struct stream s = {.query = query,
                       .metric = analysis_metric_of(profile, query->metric),
                       .takes_thread = threads,
                       .takes_stack = stacks,
                       .fn = fn,
                       .ctx = ctx};
    if (s.metric->weigh_calls)
        return push_calls(profile, &s);
    return profile_each_sample(profile, on_samples, &s, NULL);
}
