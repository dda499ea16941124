/* As in weights.c, filters are resolved to a byte a thread and a byte a stack before the pass. */
#include "analysis/stream.h"

#include "analysis/match.h"
#include "base/attr.h"
#include "base/err.h"

/* Runs in a batch: 40 kB of stack. */
enum { BATCH_RUNS = 1024 };

struct stream {
    const struct analysis_query *query;
    const struct analysis_metric *metric;
    const uint8_t *takes_thread;
    const uint8_t *takes_stack; /* NULL: all */
    bool clips;
    int (*fn)(void *, const struct analysis_run *, size_t);
    void *ctx;
};

/* Is the sample wanted, and as what run? */
static inline bool take(const struct stream *s, const struct record_sample *sample,
                        struct analysis_run *ret)
{
    if (!s->takes_thread[sample->thread] || (s->takes_stack && !s->takes_stack[sample->stack]))
        return false;
    struct record_sample clipped;
    if (unlikely(s->clips)) {
        clipped = *sample;
        if (!analysis_query_clip(s->query, &clipped))
            return false;
        sample = &clipped;
    }
    *ret = (struct analysis_run){.thread = sample->thread,
                                 .stack = sample->stack,
                                 .start_ns = sample->start_ns,
                                 .duration_ns = sample->duration_ns,
                                 .weight = {.samples = sample->count}};
    return s->metric->weigh_sample(sample, &ret->weight.weight);
}

static int on_samples(void *ctx, const struct record_sample *samples, size_t n)
{
    const struct stream *s = ctx;
    struct analysis_run runs[BATCH_RUNS];
    int r = 0;
    for (size_t i = 0; r == 0 && i < n;) {
        size_t taken = 0;
        for (; i < n && taken < BATCH_RUNS; i++)
            taken += take(s, &samples[i], &runs[taken]);
        if (taken)
            r = s->fn(s->ctx, runs, taken);
    }
    return r;
}

/* Exact calls have no moments: a thread's come in the order of its tree, in one piece each. */
static int push_calls(const struct profile *profile, const struct stream *s)
{
    struct analysis_calls *calls;
    int r = analysis_calls_new(profile, s->query, &calls);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < calls->count; i++) {
        const struct analysis_calls_entry *e = &calls->entry[i];
        uint64_t weight = s->metric->weigh_calls(&e->sums);
        struct analysis_run run = {.thread = e->sums.thread,
                                   .stack = e->sums.stack,
                                   .duration_ns = weight,
                                   .weight = {weight, analysis_calls_entered(e)}};
        if (run.weight.samples)
            r = s->fn(s->ctx, &run, 1);
    }
    analysis_calls_free(calls);
    return r;
}

int analysis_stream_batches(const struct profile *profile, const struct analysis_query *query,
                            int (*fn)(void *ctx, const struct analysis_run *runs, size_t n),
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
                       .clips = query->has_from || query->has_to,
                       .fn = fn,
                       .ctx = ctx};
    if (s.metric->weigh_calls)
        return push_calls(profile, &s);
    return profile_each_sample(profile, on_samples, &s, NULL);
}

struct single {
    int (*fn)(void *, const struct analysis_run *);
    void *ctx;
};

static int push_each(void *ctx, const struct analysis_run *runs, size_t n)
{
    const struct single *single = ctx;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = single->fn(single->ctx, &runs[i]);
    return r;
}

int analysis_stream_each(const struct profile *profile, const struct analysis_query *query,
                         int (*fn)(void *ctx, const struct analysis_run *run), void *ctx)
{
    struct single single = {fn, ctx};
    return analysis_stream_batches(profile, query, push_each, &single);
}
