/* Checkpoints on their way into the file: stacks get their places in its trie, lines are looked up, sites of one line become
 * one. The recorder's thread, with the lock held. */
#include "record/heaps.h"

#include "base/err.h"
#include "record/procs.h"
#include "record/target.h"

enum { MAX_BACKLOG = 16 << 20 }; /* bytes: past that, blocks wait here and not in the writer */

struct carry {
    struct heaps *h;
    struct target_shared *shared;
    struct procs *procs;
    struct heaps_process *p;
    bool last; /* nothing comes after this: a name that is not there will never be */
    VEC(uint32_t) path;
};

/* The code's id in the file; 0: its definition has not come yet, and may be in another ring. */
static uint32_t code_of(struct carry *c, uint32_t number)
{
    struct format_writer *w = c->shared->writer;
    struct heaps_code *code = heaps_find_code(c->h, number);
    if (number == HEAP_BEYOND) {
        static const char name[] = "<stacks beyond what is kept>";
        struct record_code special = {.name = format_writer_string(w, name, sizeof name - 1),
                                      .flags = RECORD_CODE_SPECIAL};
        if (!c->h->beyond_code)
            c->h->beyond_code = format_writer_code(w, &special);
        return c->h->beyond_code;
    }
    if (!code)
        return 0;
    if (!code->file_code) {
        const struct remote_code *r = &code->code;
        struct record_code record = {
            .name = format_writer_string(w, r->name, r->name_len),
            .qualname = format_writer_string(w, r->qualname, r->qualname_len),
            .file = format_writer_string(w, r->file, r->file_len),
            .first_line = r->first_line,
        };
        code->file_code = target_intern_code(c->shared, &record);
        struct sources_place *place = procs_place(c->procs, (pid_t)code->pid);
        if (place && c->shared->sources)
            sources_want(c->shared->sources, place, record.file, r->file);
    }
    return code->file_code;
}

/* The line of an instruction. The same ones stand in many stacks, and a line table is read from its beginning. */
static uint32_t line_of(struct heaps *h, uint32_t number, int32_t offset)
{
    if (!h->lines)
        h->lines = calloc(HEAPS_LINES, sizeof *h->lines);
    struct heaps_line *memo =
        h->lines ? &h->lines[hash_u64((uint64_t)number << 32 | (uint32_t)offset) % HEAPS_LINES]
                 : NULL;
    if (memo && memo->code == number && memo->offset == offset)
        return memo->line;
    const struct remote_code *code = &heaps_find_code(h, number)->code;
    int32_t line = remote_code_line(code, offset);
    uint32_t good = line > 0 ? (uint32_t)line : code->first_line;
    if (memo)
        *memo = (struct heaps_line){number, offset, good};
    return good;
}

/* False: a definition on the way has not come yet. Not by recursion: a program may be a million calls deep. */
static bool stack_of(struct carry *c, uint32_t node, uint32_t *ret)
{
    struct heap_node *nodes = c->p->heap.nodes.data;
    c->path.len = 0;
    for (uint32_t at = node; at && !nodes[at].stack; at = nodes[at].parent) {
        uint32_t *slot = vec_push(&c->path);
        if (!slot)
            return false;
        *slot = at;
    }
    for (size_t i = c->path.len; i-- > 0;) {
        struct heap_node *n = &nodes[c->path.data[i]];
        struct record_stack stack = {.parent = nodes[n->parent].stack, .code = code_of(c, n->code)};
        if (!stack.code && !c->last)
            return false;
        if (stack.code && n->code != HEAP_BEYOND)
            stack.line = line_of(c->h, n->code, n->offset);
        n->stack = format_writer_stack(c->shared->writer, &stack);
    }
    *ret = nodes[node].stack;
    return true;
}

/* The site's group; UINT32_MAX: it cannot be told yet. */
static uint32_t group_of(struct carry *c, uint32_t number)
{
    struct heaps_process *p = c->p;
    struct heap_site *s = &p->heap.sites.data[number];
    uint32_t stack, at;
    if (s->group != UINT32_MAX)
        return s->group;
    uint32_t node = s->is_cut ? heap_child(&p->heap, 0, HEAP_BEYOND, 0) : s->node;
    if (!stack_of(c, node, &stack))
        return UINT32_MAX;
    uint32_t thread = p->feeds.data[s->thread]->owner.thread;
    uint64_t key = (uint64_t)stack << 32 | (uint64_t)thread << 5 | s->allocator;
    uint32_t hash = hash_u64(key);
    IDXMAP_FIND(&p->group_map, hash, i,
                p->groups.data[i].stack == stack && p->groups.data[i].thread == thread &&
                    p->groups.data[i].allocator == s->allocator,
                at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)p->groups.len;
        struct heaps_group *g = vec_push(&p->groups);
        if (!g || idxmap_insert(&p->group_map, hash, at) < 0)
            return UINT32_MAX;
        *g = (struct heaps_group){.thread = thread, .stack = stack, .allocator = s->allocator};
    }
    s->group = at;
    return at;
}

/* What of the site is in its group by now. */
static struct heaps_change *carried_of(struct heaps_process *p, uint32_t site)
{
    while (p->carried.len <= site)
        if (!vec_push(&p->carried))
            return NULL;
    return &p->carried.data[site];
}

static void add_change(struct carry *c, const struct heaps_change *change,
                       struct record_site *records, size_t *count)
{
    struct heaps_process *p = c->p;
    struct heaps_change *before = carried_of(p, change->site);
    uint32_t group = group_of(c, change->site);
    if (group == UINT32_MAX || !before)
        return;
    struct heaps_group *g = &p->groups.data[group];
    if (g->mark != p->mark) {
        g->mark = p->mark;
        g->record = (uint32_t)(*count)++;
        records[g->record] =
            (struct record_site){.thread = g->thread, .stack = g->stack, .allocator = g->allocator};
    }
    struct record_site *r = &records[g->record];
    r->count += change->sums.count;
    r->bytes += change->sums.bytes;
    r->freed += change->sums.freed;
    r->freed_bytes += change->sums.freed_bytes;
    r->brief += change->sums.brief;
    r->brief_bytes += change->sums.brief_bytes;
    r->variance += change->sums.variance > 0 ? change->sums.variance : 0;
    g->peak_count += change->peak_count - before->peak_count;
    g->peak_bytes += change->peak_bytes - before->peak_bytes;
    g->live_variance += change->live_variance - before->live_variance;
    g->peak_variance += change->peak_variance - before->peak_variance;
    r->peak_count = g->peak_count;
    r->peak_bytes = g->peak_bytes;
    r->live_variance = g->live_variance > 0 ? g->live_variance : 0;
    r->peak_variance = g->peak_variance > 0 ? g->peak_variance : 0;
    *before = *change;
}

/* Estimates are kept in parts. What is told is the difference of whole numbers, so that they add up whenever they were told. */
static void unscale(struct heaps_group *g, struct record_site *r)
{
    uint64_t *sums[] = {&r->count,       &r->bytes, &r->freed,
                        &r->freed_bytes, &r->brief, &r->brief_bytes};
    for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
        uint64_t before = g->scaled[i] / HEAP_SAMPLE_SCALE;
        g->scaled[i] += *sums[i];
        *sums[i] = g->scaled[i] / HEAP_SAMPLE_SCALE - before;
    }
    r->peak_count = (r->peak_count + HEAP_SAMPLE_SCALE / 2) / HEAP_SAMPLE_SCALE;
    r->peak_bytes = (r->peak_bytes + HEAP_SAMPLE_SCALE / 2) / HEAP_SAMPLE_SCALE;
}

static int by_place(const void *a, const void *b)
{
    const struct record_site *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return (x->allocator > y->allocator) - (x->allocator < y->allocator);
}

/* False: a name is still to come. */
static bool carry_snapshot(struct carry *c, struct heaps_snapshot *s)
{
    struct heaps_process *p = c->p;
    for (size_t i = 0; i < s->change_count; i++)
        if (group_of(c, s->changes[i].site) == UINT32_MAX && !c->last)
            return false;
    struct record_site *records = calloc(s->change_count + 1, sizeof *records);
    if (!records)
        return false;
    size_t count = 0;
    p->mark++;
    for (size_t i = 0; i < s->change_count; i++)
        add_change(c, &s->changes[i], records, &count);
    for (size_t i = 0; i < p->groups.len && p->heap.interval; i++)
        if (p->groups.data[i].mark == p->mark)
            unscale(&p->groups.data[i], &records[p->groups.data[i].record]);
    qsort(records, count, sizeof *records, by_place);
    s->head.process = p->process;
    format_writer_memory(c->shared->writer, &s->head, s->sizes, s->size_count, records, count);
    free(records);
    return true;
}

/* False: a name is still to come. */
static bool carry_block(struct carry *c, const struct memlog_done *d)
{
    struct record_site *sites = calloc((size_t)d->site_count + 1, sizeof *sites);
    bool good = sites != NULL;
    for (uint32_t i = 0; i < d->site_count && good; i++) {
        uint32_t group = group_of(c, d->sites[i]);
        if (group == UINT32_MAX) {
            good = c->last;
            continue;
        }
        const struct heaps_group *g = &c->p->groups.data[group];
        sites[i] =
            (struct record_site){.thread = g->thread, .stack = g->stack, .allocator = g->allocator};
    }
    if (good)
        format_writer_memory_events(c->shared->writer, c->p->process, sites, d->site_count,
                                    &d->block);
    free(sites);
    return good;
}

static void carry_log(struct carry *c)
{
    struct memlog *l = c->p->heap.log;
    size_t n = 0;
    while (n < l->done.len && (c->last || format_writer_backlog(c->shared->writer) < MAX_BACKLOG) &&
           carry_block(c, &l->done.data[n])) {
        l->done_bytes -= memlog_done_bytes(&l->done.data[n]);
        memlog_done_release(&l->done.data[n++]);
    }
    if (n)
        memmove(l->done.data, l->done.data + n, (l->done.len - n) * sizeof *l->done.data);
    l->done.len -= n;
}

static void carry_points(struct carry *c)
{
    struct heaps_process *p = c->p;
    struct format_writer *w = c->shared->writer;
    uint32_t thread = p->feeds.data[0]->owner.thread;
    uint32_t rss = format_writer_string(w, "memory.rss", 10);
    uint32_t heap = format_writer_string(w, "memory.heap", 11);
    uint32_t objects = format_writer_string(w, "memory.objects", 14);
    bool has_objects = c->h->session->shared->instruments & (RING_OBJECTS | RING_SAMPLED);
    for (size_t i = 0; i < p->points.len; i++) {
        const struct heaps_point *point = &p->points.data[i];
        struct record_counter counter = {thread, rss, point->time_ns, (double)point->rss};
        format_writer_counter(w, &counter);
        counter = (struct record_counter){thread, heap, point->time_ns, (double)point->heap};
        format_writer_counter(w, &counter);
        counter = (struct record_counter){thread, objects, point->time_ns, (double)point->objects};
        if (has_objects)
            format_writer_counter(w, &counter);
    }
    p->points.len = 0;
}

static void carry_process(struct carry *c, double ns_per_tick)
{
    struct heaps_process *p = c->p;
    uint64_t *v = c->shared->stats->value;
    for (size_t i = 0; i < p->feeds.len; i++) {
        struct heaps_feed *f = p->feeds.data[i];
        ring_owner_meet(&f->owner, c->shared, c->procs);
        v[RECORD_STAT_EVENTS] += f->records;
        v[RECORD_STAT_EVENTS_DAMAGED] += f->nonsense;
        v[RECORD_STAT_EVENTS_LOST] += f->lost;
        v[RECORD_STAT_EVENT_WAIT_NS] += (uint64_t)((double)f->waited_ticks * ns_per_tick);
        f->records = f->nonsense = f->lost = f->waited_ticks = 0;
    }
    if (!p->feeds.len)
        return;
    p->process = p->feeds.data[0]->owner.process;
    if (p->heap.log)
        carry_log(c);
    size_t n = 0;
    while (n < p->snapshots.len && carry_snapshot(c, &p->snapshots.data[n])) {
        free(p->snapshots.data[n].sizes);
        free(p->snapshots.data[n].changes);
        n++;
    }
    if (n)
        memmove(p->snapshots.data, p->snapshots.data + n,
                (p->snapshots.len - n) * sizeof *p->snapshots.data);
    p->snapshots.len -= n;
    carry_points(c);
}

/* Whose malloc it is, if not libc's. A program may have written anything there. */
static void carry_allocator(struct heaps *h, struct format_writer *w)
{
    const struct ring_session *s = h->session->shared;
    char name[RING_MAX_ALLOCATOR];
    if (h->named || atomic_load(&s->allocator_state) != RING_NAME_THERE)
        return;
    size_t n = 0;
    for (; n < sizeof name - 1 && s->allocator[n]; n++)
        name[n] = s->allocator[n] > ' ' && s->allocator[n] < 0x7f ? s->allocator[n] : '?';
    name[n] = 0;
    format_writer_meta(w, "memory.allocator", name);
    h->named = true;
}

/* It has ended, and all of it is in the file. */
static bool is_done(const struct heaps_process *p)
{
    return p->ended && !p->snapshots.len && !p->points.len &&
           (!p->heap.log || !p->heap.log->done.len);
}

void heaps_carry(struct heaps *h, struct target_shared *shared, struct procs *procs,
                 double ns_per_tick, bool last)
{
    struct carry c = {.h = h, .shared = shared, .procs = procs, .last = last};
    size_t kept = 0;
    carry_allocator(h, shared->writer);
    for (size_t i = 0; i < h->processes.len; i++) {
        c.p = h->processes.data[i];
        carry_process(&c, ns_per_tick);
        if (is_done(c.p)) /* programs may start thousands */
            heaps_free_process(c.p);
        else
            h->processes.data[kept++] = c.p;
    }
    h->processes.len = kept;
    vec_release(&c.path);
}
