#include "analysis/memory_events.h"

#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"

/* What is in a slot. */
struct slot {
    uint32_t site; /* in `sites`, plus 1; 0: nothing */
    uint64_t bytes;
};

struct process {
    VEC(struct slot) slots;
};

struct replay {
    uint64_t at_ns;
    bool has_hole; /* numbers do not follow each other: what stood before is lost */
    struct process *processes;
    size_t process_count;
    VEC(struct record_memory_site) sites;
    struct idxmap map;
};

static bool same(const struct record_memory_site *a, const struct record_memory_site *b)
{
    return a->stack == b->stack && a->thread == b->thread && a->allocator == b->allocator;
}

/* Its number; 0 without memory. */
static uint32_t number_of(struct replay *r, const struct record_memory_site *site)
{
    uint64_t key = ((uint64_t)site->thread << 32 | site->stack) ^ (uint64_t)site->allocator << 58;
    uint32_t hash = hash_u64(key), at;
    IDXMAP_FIND(&r->map, hash, i, same(&r->sites.data[i], site), at);
    if (at != IDXMAP_NONE)
        return at + 1;
    at = (uint32_t)r->sites.len;
    struct record_memory_site *place = vec_push(&r->sites);
    if (!place || idxmap_insert(&r->map, hash, at) < 0)
        return 0;
    *place = *site;
    return at + 1;
}

static int take(struct replay *r, struct process *p, const struct record_memory_events *block,
                const struct record_memory_event *e)
{
    if (e->slot > p->slots.len) /* numbers are given in order */
        return E_CORRUPT;
    if (e->slot == p->slots.len && !vec_push(&p->slots))
        return E_NOMEM;
    struct slot *s = &p->slots.data[e->slot];
    switch (e->kind) {
    case RECORD_MEMORY_ALLOCATE:
        *s = (struct slot){number_of(r, &block->sites[e->site]), e->size};
        return s->site ? 0 : E_NOMEM;
    case RECORD_MEMORY_SHRINK:
        s->bytes -= e->size < s->bytes ? e->size : s->bytes;
        if (s->bytes)
            break;
        *s = (struct slot){0};
        break;
    case RECORD_MEMORY_FREE:
        *s = (struct slot){0};
        break;
    }
    return 0;
}

static int on_events(void *ctx, const struct record_memory_events *block,
                     const struct record_memory_event *events, size_t n)
{
    struct replay *r = ctx;
    if (r->has_hole || block->process >= r->process_count || block->start_ns > r->at_ns)
        return 0;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0 && events[i].time_ns <= r->at_ns; i++)
        rc = take(r, &r->processes[block->process], block, &events[i]);
    r->has_hole = rc == E_CORRUPT;
    return r->has_hole ? 0 : rc; /* this chunk is sound */
}

static int tell(const struct replay *r, analysis_alive *fn, void *ctx)
{
    int rc = 0;
    for (uint32_t p = 0; p < r->process_count; p++)
        for (size_t i = 0; i < r->processes[p].slots.len && rc == 0; i++) {
            const struct slot *s = &r->processes[p].slots.data[i];
            if (s->site)
                rc = fn(ctx, p, &r->sites.data[s->site - 1], 1, s->bytes);
        }
    return rc;
}

int analysis_memory_alive(const struct profile *profile, uint64_t at_ns, analysis_alive *fn,
                          void *ctx, uint32_t *damaged)
{
    struct replay r = {.at_ns = at_ns, .process_count = profile_tables(profile)->process_count};
    if (!profile_has_memory_events(profile))
        return E_NOENT;
    r.processes = calloc(r.process_count + 1, sizeof *r.processes);
    uint32_t unsound = 0;
    int rc = r.processes ? profile_each_memory_event(profile, on_events, &r, &unsound) : E_NOMEM;
    const struct format_summary *s = profile_summary(profile);
    bool is_told = s->damaged_chunks || s->missing_chunks; /* there may have been events in them */
    if (rc == 0 && (unsound || r.has_hole || is_told)) {
        *damaged += unsound || is_told ? unsound : 1;
        rc = E_CORRUPT;
    }
    if (rc == 0)
        rc = tell(&r, fn, ctx);
    for (size_t p = 0; r.processes && p < r.process_count; p++)
        vec_release(&r.processes[p].slots);
    free(r.processes);
    vec_release(&r.sites);
    idxmap_release(&r.map);
    return rc;
}
