/* A site has a record in every checkpoint in which it changed: they are added up in one hash index.
 * Alive is what was allocated less what was given back, both counted from the beginning, so these two
 * are summed apart from the query's range. */
#include "analysis/memory.h"

#include "analysis/filter.h"
#include "analysis/memory_events.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"

#include <math.h>

struct gathering {
    const struct analysis_filter *filter;
    struct analysis_memory *memory;
    const struct profile_tables *t;
    uint64_t at_ns; /* the query's moment */
    bool is_close;  /* what is alive is known of the moment itself */
    VEC(struct analysis_site) sites;
    struct idxmap map;
};

/* --- checkpoints --- */

static bool takes_process(const struct analysis_query *q, const struct profile_tables *t,
                          uint32_t process)
{
    return !q->has_process || t->processes[process].pid == q->process;
}

static bool in_range(const struct analysis_query *q, uint64_t time_ns)
{
    return !(q->has_from && time_ns <= analysis_query_ns(q->from)) &&
           !(q->has_to && time_ns > analysis_query_ns(q->to));
}

bool analysis_memory_takes(const struct analysis_query *q, const struct profile_tables *t,
                           const struct record_memory *memory)
{
    return takes_process(q, t, memory->process) && in_range(q, memory->time_ns);
}

static int on_memory(void *ctx, const struct record_memory *memory)
{
    struct gathering *g = ctx;
    struct analysis_memory_process *p = &g->memory->process[memory->process];
    p->checkpoints++;
    p->last = *memory;
    if (memory->time_ns <= g->at_ns)
        p->at_ns = memory->time_ns;
    g->memory->sampled |= (memory->flags & RECORD_MEMORY_SAMPLED) != 0;
    return 0;
}

/* --- sites --- */

static bool same_site(const struct analysis_site *a, uint32_t process, const struct record_site *b)
{
    return a->stack == b->stack && a->thread == b->thread && a->allocator == b->allocator &&
           a->process == process;
}

static int site_of(struct gathering *g, uint32_t process, const struct record_site *site,
                   struct analysis_site **ret)
{
    uint64_t who = (uint64_t)process << 8 ^ site->allocator;
    uint32_t hash = hash_u64(((uint64_t)site->thread << 32 | site->stack) ^ who << 40), at;
    IDXMAP_FIND(&g->map, hash, i, same_site(&g->sites.data[i], process, site), at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)g->sites.len;
        struct analysis_site *s = vec_push(&g->sites);
        if (!s || idxmap_insert(&g->map, hash, at) < 0)
            return E_NOMEM;
        *s = (struct analysis_site){.process = process,
                                    .thread = site->thread,
                                    .stack = site->stack,
                                    .allocator = site->allocator};
    }
    *ret = &g->sites.data[at];
    return 0;
}

/* A damaged file may have lost the record that allocated what is given back here. */
static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static int on_site(void *ctx, const struct record_memory *memory, const struct record_site *site)
{
    struct gathering *g = ctx;
    struct analysis_memory_process *p = &g->memory->process[memory->process];
    p->count += site->count;
    p->bytes += site->bytes;
    p->freed += site->freed;
    p->freed_bytes += site->freed_bytes;
    if (!g->filter->thread[site->thread] || (g->filter->stack && !g->filter->stack[site->stack]))
        return 0;
    struct analysis_site *s;
    int r = site_of(g, memory->process, site, &s);
    if (r < 0)
        return r;
    if (memory->time_ns <= g->at_ns) {
        s->live_count = less(s->live_count + site->count, site->freed);
        s->live_bytes = less(s->live_bytes + site->bytes, site->freed_bytes);
        s->live_variance = site->live_variance;
    }
    s->peak_count = site->peak_count;
    s->peak_bytes = site->peak_bytes;
    s->peak_variance = site->peak_variance;
    if (!in_range(g->filter->query, memory->time_ns))
        return 0;
    s->count += site->count;
    s->bytes += site->bytes;
    s->freed += site->freed;
    s->freed_bytes += site->freed_bytes;
    s->brief += site->brief;
    s->brief_bytes += site->brief_bytes;
    s->variance += site->variance;
    return 0;
}

/* --- the end --- */

/* When the process was gone. Its last checkpoint is taken when that was noticed, which may be after the end of one that ended
 * later, so it is second best. */
static uint64_t end_of(const struct gathering *g, uint32_t process)
{
    const struct record_memory *last = &g->memory->process[process].last;
    bool is_seen = last->flags & RECORD_MEMORY_LAST && g->t->processes[process].end_ns;
    return is_seen ? g->t->processes[process].end_ns : last->time_ns;
}

/* A process that had ended by the moment has nothing alive; a moment past the end means the end, of the process that ended last. */
static void bury_ended(struct gathering *g)
{
    struct analysis_memory *m = g->memory;
    uint64_t latest = 0;
    for (uint32_t i = 0; i < g->t->process_count; i++)
        latest = m->process[i].checkpoints ? max_u64(latest, end_of(g, i)) : latest;
    uint64_t moment = min_u64(g->at_ns, latest);
    for (size_t i = 0; i < g->sites.len; i++) {
        struct analysis_site *s = &g->sites.data[i];
        bool has_ended = m->process[s->process].last.flags & RECORD_MEMORY_LAST;
        if (!has_ended || end_of(g, s->process) >= moment)
            continue;
        s->live_count = s->live_bytes = 0;
        s->live_variance = 0;
        m->process[s->process].at_ns = 0;
    }
}

/* What is alive is told anew. */
static void look_from_close(struct gathering *g)
{
    for (size_t i = 0; i < g->sites.len && !g->is_close; i++)
        g->sites.data[i].live_count = g->sites.data[i].live_bytes = 0;
    g->is_close = true;
}

/* A block that is alive at the moment. */
static int on_alive(void *ctx, uint32_t process, const struct record_memory_site *site,
                    uint64_t count, uint64_t bytes)
{
    struct gathering *g = ctx;
    struct analysis_site *s;
    look_from_close(g);
    const struct record_site key = {
        .thread = site->thread, .stack = site->stack, .allocator = site->allocator};
    if (!g->filter->thread[site->thread] || (g->filter->stack && !g->filter->stack[site->stack]))
        return 0;
    int r = site_of(g, process, &key, &s);
    if (r < 0)
        return r;
    s->live_count += count;
    s->live_bytes += bytes;
    return 0;
}

/* The moment itself instead of the checkpoint before it, where every event was kept. After a hole in them nothing can be told
 * by them: then it stays with the checkpoint. */
static int look_closely(struct gathering *g, const struct profile *profile)
{
    struct analysis_memory *m = g->memory;
    if (m->sampled || !profile_has_memory_events(profile))
        return 0;
    int r = analysis_memory_alive(profile, g->at_ns, on_alive, g, &m->damaged_chunks);
    if (r == E_CORRUPT)
        return 0;
    look_from_close(g);
    for (size_t i = 0; i < profile_tables(profile)->process_count; i++)
        if (m->process[i].checkpoints)
            m->process[i].at_ns = min_u64(g->at_ns, m->process[i].last.time_ns);
    return r;
}

static void look_at_processes(struct analysis_memory *m, const struct profile_tables *t,
                              const struct analysis_query *q)
{
    for (uint32_t i = 0; i < t->process_count; i++) {
        const struct analysis_memory_process *p = &m->process[i];
        if (!p->checkpoints || !takes_process(q, t, i))
            continue;
        m->processes_taken++;
        m->unfinished |= !(p->last.flags & RECORD_MEMORY_LAST);
    }
}

static int gather(const struct profile *profile, const struct analysis_query *query,
                  struct analysis_memory *m)
{
    static const struct profile_memory_visitor visitor = {.memory = on_memory, .site = on_site};
    struct analysis_filter filter;
    int r = analysis_filter_init(profile, query, &filter);
    if (r < 0)
        return r;
    bool has_at = query->has_at && filter.metric->is_at;
    struct gathering g = {.filter = &filter,
                          .memory = m,
                          .t = profile_tables(profile),
                          .at_ns = has_at ? analysis_query_ns(query->at) : UINT64_MAX};
    r = profile_each_memory(profile, &visitor, &g, &m->damaged_chunks);
    if (r == 0 && has_at)
        r = look_closely(&g, profile);
    if (r == 0 && has_at)
        bury_ended(&g);
    analysis_filter_release(&filter);
    idxmap_release(&g.map);
    m->site = g.sites.data;
    m->count = g.sites.len;
    return r;
}

int analysis_memory_new(const struct profile *profile, const struct analysis_query *query,
                        struct analysis_memory **ret)
{
    const struct profile_tables *t = profile_tables(profile);
    struct analysis_memory *m = calloc(1, sizeof *m);
    if (!m)
        return E_NOMEM;
    m->process = calloc(t->process_count + 1, sizeof *m->process);
    int r = m->process ? gather(profile, query, m) : E_NOMEM;
    if (r < 0) {
        analysis_memory_free(m);
        return r;
    }
    look_at_processes(m, t, query);
    *ret = m;
    return 0;
}

void analysis_memory_free(struct analysis_memory *memory)
{
    if (!memory)
        return;
    free(memory->site);
    free(memory->process);
    free(memory);
}

struct analysis_site_weight analysis_memory_weigh(const struct analysis_metric *metric,
                                                  const struct analysis_site *site)
{
    struct analysis_site_weight w = metric->weigh_site(site);
    if (w.weight && !w.blocks)
        w.blocks = 1;
    return w;
}

double analysis_memory_error(double variance)
{
    static const double z = 1.959963984540054; /* 97.5 % point of the normal distribution */
    return z * sqrt(variance);
}
