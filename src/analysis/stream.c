/* One pass over the samples, over the exact calls, or over the sites of memory. */
#include "analysis/stream.h"

#include "analysis/filter.h"

/* Runs in a batch: 40 kB of stack. */
enum { BATCH_RUNS = 1024 };

struct stream {
    struct analysis_filter filter;
    int (*fn)(void *, const struct analysis_run *, size_t);
    void *ctx;
};

/* Is the sample wanted, and as what run? */
static inline bool take(const struct stream *s, const struct record_sample *sample,
                        struct analysis_run *ret)
{
    struct record_sample clipped;
    uint64_t weight;
    if (!analysis_filter_take(&s->filter, &sample, &clipped, &weight))
        return false;
    *ret = (struct analysis_run){.thread = sample->thread,
                                 .stack = sample->stack,
                                 .start_ns = sample->start_ns,
                                 .duration_ns = sample->duration_ns,
                                 .weight = {weight, sample->count}};
    return true;
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
    int r = analysis_calls_new(profile, s->filter.query, &calls);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < calls->count; i++) {
        const struct analysis_calls_entry *e = &calls->entry[i];
        uint64_t weight = s->filter.metric->weigh_calls(&e->sums);
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

/* Nor have the sums of memory. */
static int push_sites(const struct profile *profile, const struct stream *s)
{
    struct analysis_memory *memory;
    int r = analysis_memory_new(profile, s->filter.query, &memory);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < memory->count; i++) {
        const struct analysis_site *site = &memory->site[i];
        struct analysis_site_weight w = analysis_memory_weigh(s->filter.metric, site);
        struct analysis_run run = {.thread = site->thread,
                                   .stack = site->stack,
                                   .duration_ns = w.weight,
                                   .weight = {w.weight, w.blocks}};
        if (w.blocks || w.weight)
            r = s->fn(s->ctx, &run, 1);
    }
    analysis_memory_free(memory);
    return r;
}

int analysis_stream_batches(const struct profile *profile, const struct analysis_query *query,
                            int (*fn)(void *ctx, const struct analysis_run *runs, size_t n),
                            void *ctx)
{
    struct stream s = {.fn = fn, .ctx = ctx};
    int r = analysis_filter_init(profile, query, &s.filter);
    if (r < 0)
        return r;
    r = s.filter.metric->weigh_calls  ? push_calls(profile, &s)
        : s.filter.metric->weigh_site ? push_sites(profile, &s)
                                      : profile_each_sample(profile, on_samples, &s, NULL);
    analysis_filter_release(&s.filter);
    return r;
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
