/* The recorder writes what changed twice a second, so a path has many records: they are added up in
 * one hash index first. Correcting needs the whole tree of a thread, also what the query leaves out
 * of it, so stacks are filtered last. */
#include "analysis/calls.h"

#include "analysis/calibration.h"
#include "analysis/match.h"
#include "analysis/trie.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"

struct gathering {
    const struct analysis_query *query;
    const struct profile_tables *t;
    const uint8_t *takes; /* for each thread */
    VEC(struct analysis_calls_entry) entries;
    struct idxmap map;
};

static int on_calls(void *ctx, const struct record_calls *calls)
{
    struct gathering *g = ctx;
    if (!g->takes[calls->thread])
        return 0;
    uint32_t hash = hash_u64((uint64_t)calls->thread << 32 | calls->stack), at;
    IDXMAP_FIND(&g->map, hash, i,
                g->entries.data[i].sums.stack == calls->stack &&
                    g->entries.data[i].sums.thread == calls->thread,
                at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)g->entries.len;
        struct analysis_calls_entry *e = vec_push(&g->entries);
        if (!e || idxmap_insert(&g->map, hash, at) < 0)
            return E_NOMEM;
        *e =
            (struct analysis_calls_entry){.sums = {.thread = calls->thread, .stack = calls->stack}};
    }
    struct analysis_calls_entry *e = &g->entries.data[at];
    e->sums.calls += calls->calls;
    e->sums.resumes += calls->resumes;
    e->sums.alive_ns += calls->alive_ns;
    e->sums.self_ns += calls->self_ns;
    e->sums.probes_ns += calls->probes_ns;
    e->raw_ns = e->sums.self_ns;
    return 0;
}

/* --- order --- */

static int compare_entries(const void *a, const void *b, void *ctx)
{
    const uint32_t *number = ctx;
    const struct record_calls *x = &((const struct analysis_calls_entry *)a)->sums;
    const struct record_calls *y = &((const struct analysis_calls_entry *)b)->sums;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return number[x->stack] < number[y->stack] ? -1 : number[x->stack] > number[y->stack];
}

/* Thread by thread, as a walk down the trie meets the paths. */
static int sort_entries(struct analysis_calls *c, const struct profile_tables *t)
{
    uint32_t *number, *end;
    int r = analysis_trie_number(t->node_parent, t->node_count, &number, &end);
    if (r < 0)
        return r;
    if (c->count)
        qsort_r(c->entry, c->count, sizeof *c->entry, compare_entries, number);
    free(number);
    free(end);
    return 0;
}

/* --- sums --- */

/* Takes the cost of the probes out, thread by thread; the error is left in each entry's place. */
static int correct(struct analysis_calls *c, const struct profile *profile)
{
    const struct profile_tables *t = profile_tables(profile);
    struct analysis_calibration calibration = {0};
    int r = 0;
    for (size_t from = 0, to; r == 0 && from < c->count; from = to) {
        uint32_t thread = c->entry[from].sums.thread;
        for (to = from; to < c->count && c->entry[to].sums.thread == thread;)
            to++;
        if (!analysis_calibration_find(profile, t->threads[thread].process, &calibration))
            continue;
        c->calibrated = true;
        r = analysis_calibration_apply(&calibration, t, c->entry + from, to - from);
    }
    return r;
}

static double error_of(const struct profile *profile, uint32_t thread)
{
    struct analysis_calibration calibration;
    const struct profile_tables *t = profile_tables(profile);
    bool known = analysis_calibration_find(profile, t->threads[thread].process, &calibration);
    return known ? calibration.error : 0;
}

/* Drops what the query leaves out, and adds up the rest. */
static int sum_up(struct analysis_calls *c, const struct profile *profile,
                  const struct analysis_query *query)
{
    const struct profile_tables *t = profile_tables(profile);
    _cleanup_free_ uint8_t *takes_stack = NULL;
    int r = analysis_match_nodes(t, query, &takes_stack);
    c->node = calloc(t->node_count + 1, sizeof *c->node);
    if (r < 0 || !c->node)
        return r < 0 ? r : E_NOMEM;
    size_t kept = 0;
    uint32_t thread = UINT32_MAX;
    double error = 0, errors = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct analysis_calls_entry e = c->entry[i];
        if (takes_stack && !takes_stack[e.sums.stack])
            continue;
        if (c->calibrated && e.sums.thread != thread)
            error = error_of(profile, thread = e.sums.thread);
        struct analysis_calls_counts *to[] = {&c->node[e.sums.stack], &c->total};
        for (size_t k = 0; k < ARRAY_LEN(to); k++) {
            to[k]->calls += e.sums.calls;
            to[k]->resumes += e.sums.resumes;
            to[k]->alive_ns += e.sums.alive_ns;
        }
        errors += error * (double)(e.sums.calls + e.sums.resumes);
        c->raw_ns += e.raw_ns;
        c->taken_ns += e.raw_ns - e.sums.self_ns;
        c->entry[kept++] = e;
    }
    c->count = kept;
    c->error_ns = errors < 1e18 ? (uint64_t)(errors + 0.5) : UINT64_MAX;
    return 0;
}

int analysis_calls_new(const struct profile *profile, const struct analysis_query *query,
                       struct analysis_calls **ret)
{
    const struct profile_tables *t = profile_tables(profile);
    _cleanup_free_ uint8_t *takes = calloc(t->thread_count + 1, 1);
    struct analysis_calls *c = calloc(1, sizeof *c);
    struct gathering g = {.query = query, .t = t, .takes = takes};
    int r = takes && c ? 0 : E_NOMEM;
    for (size_t i = 0; r == 0 && i < t->thread_count; i++)
        takes[i] = analysis_query_takes_thread(query, t, (uint32_t)i);
    if (r == 0)
        r = profile_each_calls(profile, on_calls, &g, &c->damaged_chunks);
    idxmap_release(&g.map);
    if (r < 0) {
        vec_release(&g.entries);
        analysis_calls_free(c);
        return r;
    }
    c->entry = g.entries.data;
    c->count = g.entries.len;
    r = sort_entries(c, t);
    if (r == 0 && analysis_metric_of(profile, query->metric)->corrected)
        r = correct(c, profile);
    if (r == 0)
        r = sum_up(c, profile, query);
    if (r < 0) {
        analysis_calls_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void analysis_calls_free(struct analysis_calls *calls)
{
    if (!calls)
        return;
    free(calls->entry);
    free(calls->node);
    free(calls);
}
