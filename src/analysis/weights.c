/* The one pass over the samples. Filters are resolved before it starts (filter.h), so that the loop is
 * a load, a test, a call of the metric and two adds. */
#include "analysis/weights.h"

#include "analysis/filter.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/large.h"
#include "base/progress.h"

#include <math.h>
#include <pthread.h>

/* Nodes are met in no order: each is asked for this many samples before its turn. */
enum { PREFETCH_AHEAD = 12 };

/* A long recording is shared out to a few threads; below this many runs one is quicker. */
enum { PARALLEL_RECORDS = 1 << 20, MAX_PARTS = 4 };

struct pass {
    const struct analysis_filter *filter;
    struct analysis_weights *weights;
    size_t nodes; /* that have a place: all, or the root alone */
    unsigned part, parts;
    uint32_t damaged;
    int result;
};

static int on_samples(void *ctx, const struct record_sample *samples, size_t n)
{
    struct pass *pass = ctx;
    struct analysis_weights *w = pass->weights;
    for (size_t i = 0; i < n; i++) {
        struct record_sample clipped;
        const struct record_sample *s = &samples[i];
        if (i + PREFETCH_AHEAD < n && pass->nodes > 1)
            __builtin_prefetch(&w->node[samples[i + PREFETCH_AHEAD].stack], 1);
        w->recorded_samples += s->count;
        uint64_t weight;
        if (!analysis_filter_take(pass->filter, &s, &clipped, &weight))
            continue;
        struct analysis_weight add = {weight, s->count};
        w->squares += (double)weight * (double)weight / s->count;
        if (s->stack < pass->nodes)
            analysis_weight_add(&w->node[s->stack], add);
        analysis_weight_add(&w->thread[s->thread], add);
    }
    return 0;
}

/* Exact calls have been filtered and added up by path already. */
static int weigh_exact(struct analysis_weights *w, const struct analysis_query *query, size_t nodes)
{
    int r = analysis_calls_new(w->profile, query, &w->calls);
    for (size_t i = 0; r == 0 && i < w->calls->count; i++) {
        const struct analysis_calls_entry *e = &w->calls->entry[i];
        struct analysis_weight add = {w->metric->weigh_calls(&e->sums), analysis_calls_entered(e)};
        if (e->sums.stack < nodes)
            analysis_weight_add(&w->node[e->sums.stack], add);
        analysis_weight_add(&w->thread[e->sums.thread], add);
    }
    if (r == 0)
        w->damaged_chunks += w->calls->damaged_chunks;
    return r;
}

/* Sites of memory have been filtered and added up, too. */
static int weigh_sites(struct analysis_weights *w, const struct analysis_query *query, size_t nodes)
{
    int r = analysis_memory_new(w->profile, query, &w->memory);
    if (r == 0 && w->memory->sampled) {
        w->variance = large_calloc(nodes + 1, sizeof *w->variance);
        r = w->variance ? 0 : E_NOMEM;
    }
    for (size_t i = 0; r == 0 && i < w->memory->count; i++) {
        const struct analysis_site *s = &w->memory->site[i];
        struct analysis_site_weight site = analysis_memory_weigh(w->metric, s);
        struct analysis_weight add = {site.weight, site.blocks};
        if (s->stack < nodes)
            analysis_weight_add(&w->node[s->stack], add);
        analysis_weight_add(&w->thread[s->thread], add);
        w->total_variance += site.variance;
        if (w->variance && s->stack < nodes)
            w->variance[s->stack] += site.variance;
    }
    if (r == 0)
        w->damaged_chunks += w->memory->damaged_chunks;
    return r;
}

static void *run_part(void *arg)
{
    struct pass *pass = arg;
    pass->result = profile_each_sample_part(pass->weights->profile, pass->part, pass->parts,
                                            on_samples, pass, &pass->damaged);
    return NULL;
}

static int columns_init(struct analysis_weights *w, const struct profile_tables *t, size_t nodes)
{
    w->node = large_calloc(nodes + 1, sizeof *w->node);
    w->thread = calloc(t->thread_count + 1, sizeof *w->thread);
    w->process = calloc(t->process_count + 1, sizeof *w->process);
    return w->node && w->thread && w->process ? 0 : E_NOMEM;
}

/* Adds what another part of the recording carries. */
static void add_columns(struct analysis_weights *to, const struct analysis_weights *from,
                        const struct profile_tables *t, size_t nodes)
{
    for (size_t i = 0; i < nodes; i++)
        analysis_weight_add(&to->node[i], from->node[i]);
    for (size_t i = 0; i < t->thread_count; i++)
        analysis_weight_add(&to->thread[i], from->thread[i]);
    to->recorded_samples += from->recorded_samples;
    to->squares += from->squares;
}

/* Goes over the samples, on several threads with columns of their own if there are many. */
static int weigh_all(const struct pass *first, const struct profile_tables *t)
{
    struct analysis_weights *w = first->weights;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned parts = 1;
    /* columns must not outweigh the samples that are spread over them */
    uint64_t records = profile_sample_records(w->profile);
    if (records >= PARALLEL_RECORDS && records >= first->nodes && cores > 1)
        parts = cores < MAX_PARTS ? (unsigned)cores : MAX_PARTS;
    struct pass pass[MAX_PARTS];
    struct analysis_weights own[MAX_PARTS];
    pthread_t thread[MAX_PARTS];
    unsigned started = 1;
    int r = 0;
    progress_begin("adding up samples", records);
    for (unsigned i = 0; i < parts; i++) {
        pass[i] = *first;
        pass[i].part = i;
        pass[i].parts = parts;
        if (i == 0)
            continue;
        own[i] = (struct analysis_weights){.profile = w->profile, .metric = w->metric};
        pass[i].weights = &own[i];
        r = columns_init(&own[i], t, first->nodes);
        if (r == 0 && pthread_create(&thread[i], NULL, run_part, &pass[i]) != 0)
            r = E_NOMEM;
        if (r < 0) {
            analysis_weights_release(&own[i]);
            break;
        }
        started++;
    }
    if (r == 0)
        run_part(&pass[0]);
    for (unsigned i = 0; i < started; i++) {
        if (i > 0)
            pthread_join(thread[i], NULL);
        if (r == 0)
            r = pass[i].result;
        if (r == 0 && i > 0)
            add_columns(w, &own[i], t, first->nodes);
        w->damaged_chunks += pass[i].damaged;
        if (i > 0)
            analysis_weights_release(&own[i]);
    }
    return r;
}

static void sum_up(struct analysis_weights *w, const struct profile_tables *t)
{
    for (size_t i = 0; i < t->thread_count; i++) {
        analysis_weight_add(&w->process[t->threads[i].process], w->thread[i]);
        analysis_weight_add(&w->total, w->thread[i]);
    }
}

/* Counts cannot be cut: any filter makes do with the tree that was estimated from them. */
static bool is_exact(const struct profile *profile, const struct analysis_query *q)
{
    const struct profile_tables *t = profile_tables(profile);
    const struct analysis_metric *metric = analysis_metric_of(profile, q->metric);
    if (metric->weigh_calls || metric->weigh_site)
        return true;
    return t->counts && !q->has_from && !q->has_to && !q->include && !q->exclude && !q->thread &&
           !q->has_process && q->metric == ANALYSIS_METRICS;
}

static int weigh(const struct profile *profile, const struct analysis_query *query, size_t nodes,
                 struct analysis_weights *ret)
{
    const struct profile_tables *t = profile_tables(profile);
    struct analysis_filter filter;
    int r = analysis_filter_init(profile, query, &filter);
    if (r < 0)
        return r;
    struct analysis_weights w = {
        .profile = profile, .metric = filter.metric, .exact = is_exact(profile, query)};
    for (size_t i = 0; i < t->thread_count; i++)
        w.threads_taken += filter.thread[i] && analysis_thread_is_known(t, (uint32_t)i);
    r = columns_init(&w, t, nodes);
    if (r == 0) {
        struct pass pass = {.filter = &filter, .weights = &w, .nodes = nodes};
        r = w.metric->weigh_calls  ? weigh_exact(&w, query, nodes)
            : w.metric->weigh_site ? weigh_sites(&w, query, nodes)
                                   : weigh_all(&pass, t);
    }
    analysis_filter_release(&filter);
    if (r < 0) {
        analysis_weights_release(&w);
        return r;
    }
    sum_up(&w, t);
    if (analysis_weights_counted(&w) && t->counts) {
        w.total.samples = 0;
        for (size_t i = 0; i < t->code_count; i++)
            w.total.samples += t->counts[i].calls;
    }
    *ret = w;
    return 0;
}

int analysis_weights_init(const struct profile *profile, const struct analysis_query *query,
                          struct analysis_weights *ret)
{
    return weigh(profile, query, profile_tables(profile)->node_count, ret);
}

int analysis_weights_init_sums(const struct profile *profile, const struct analysis_query *query,
                               struct analysis_weights *ret)
{
    return weigh(profile, query, 1, ret);
}

void analysis_weights_release(struct analysis_weights *w)
{
    free(w->node);
    free(w->thread);
    free(w->process);
    free(w->variance);
    analysis_calls_free(w->calls);
    analysis_memory_free(w->memory);
    *w = (struct analysis_weights){0};
}

void analysis_weights_accumulate(const struct profile_tables *t, struct analysis_weight *node)
{
    for (size_t i = t->node_count; i-- > 1;)
        analysis_weight_add(&node[t->node_parent[i]], node[i]);
}

uint64_t analysis_weights_worth(const struct analysis_weights *w)
{
    double total = (double)w->total.weight, worth = total * total / w->squares;
    if (!(worth < (double)w->total.samples)) /* also where there are no squares */
        return w->total.samples;
    return worth < 1 ? 1 : (uint64_t)(worth + 0.5);
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
