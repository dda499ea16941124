/* What was drained, on its way into the file: the recorder's thread, with the lock held. */
#include "record/drain_state.h"

#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

enum { MAX_BACKLOG_BYTES = 16 << 20 }; /* past that, blocks wait here and not in the writer */
#define BLOCKS_NS (400 * NS_PER_MS)    /* events wait for company so long */

struct carry {
    struct drain *d;
    struct target_shared *shared;
    struct procs *procs;
    double ns_per_tick;
    VEC(uint32_t) path; /* for stack_of() */
    bool keeps;         /* nothing of the timeline goes into the file yet: window.h */
    bool blocks;        /* open blocks are ended: so much was not flushed for half a second */
    bool last;          /* nothing comes after this: a name that is not there will never be */
};

/* The source of a code object is wanted as the sampler wants it. A process that came and went was
 * started by us, or by what we started: its files are looked for from where we are. */
static void want_source(struct carry *c, const struct feed_code *f, uint32_t file)
{
    struct sources *s = c->shared->sources;
    struct sources_place *place = procs_place(c->procs, (pid_t)f->pid);
    if (!place && !c->d->here)
        c->d->here = sources_place_new(getpid());
    if (s)
        sources_want(s, place ? place : c->d->here, file, f->file);
}

static void carry_codes(struct carry *c)
{
    struct drain *d = c->d;
    struct format_writer *w = c->shared->writer;
    for (size_t i = 0; i < d->codes.fresh.len; i++) {
        struct feed_code *f = &d->codes.fresh.data[i];
        struct record_code code = {
            .name = format_writer_string(w, f->name, f->name_len),
            .qualname = format_writer_string(w, f->qualname, f->qualname_len),
            .file = format_writer_string(w, f->file, f->file_len),
            .first_line = f->first_line,
            .flags = (f->flags & RING_CODE_C ? RECORD_CODE_C : 0) |
                     (f->flags & RING_CODE_GENERATOR ? RECORD_CODE_GENERATOR : 0),
        };
        while (d->file_code.len <= f->id)
            if (!vec_push(&d->file_code))
                break;
        if (d->file_code.len > f->id)
            d->file_code.data[f->id] = target_intern_code(c->shared, &code);
        if (d->session->shared->instruments & RING_LINES)
            want_source(c, f, code.file);
        feed_code_release(f);
    }
    d->codes.fresh.len = 0;
}

/* The code's id in the file; false if its definition has not come yet. It may still be in another ring;
 * once there are no more rings, it never will, and the calls are kept as those of <unknown>. */
static bool code_of(const struct drain *d, uint32_t number, uint32_t *ret)
{
    *ret = number < d->file_code.len ? d->file_code.data[number] : 0;
    return *ret || !d->started;
}

/* The node's place in the file's trie; 0 if a definition on the way has not come yet. Not by recursion: a
 * program may be a million calls deep. */
static uint32_t stack_of(struct carry *c, struct feed *f, uint32_t node)
{
    struct calltree_node *nodes = f->tree.nodes.data;
    c->path.len = 0;
    for (uint32_t at = node; at && !nodes[at].stack; at = nodes[at].parent) {
        uint32_t *slot = vec_push(&c->path);
        if (!slot)
            return 0;
        *slot = at;
    }
    for (size_t i = c->path.len; i-- > 0;) {
        struct calltree_node *n = &nodes[c->path.data[i]];
        struct record_stack stack = {.parent = nodes[n->parent].stack};
        if (!code_of(c->d, n->code, &stack.code))
            return 0;
        n->stack = format_writer_stack(c->shared->writer, &stack);
    }
    return nodes[node].stack;
}

/* The thread has said what it is called. */
static void carry_name(struct carry *c, struct feed *f)
{
    if (!f->name)
        return;
    struct threadid_fact fact = {.name =
                                     format_writer_string(c->shared->writer, f->name, f->name_len)};
    free(f->name);
    f->name = NULL;
    threadids_tell(c->shared->threads, f->owner.thread, &fact);
    ring_owner_put(&f->owner, c->shared, fact.name);
}

static uint64_t ns_of(const struct carry *c, uint64_t ticks)
{
    return (uint64_t)((double)ticks * c->ns_per_tick);
}

/* How much slower, by the reference work, the machine was on average than during the calibration. */
static double pace_of(const struct calibrated *p)
{
    const double most = 8;
    if (!p->pace_count || !p->cost.pace)
        return 1;
    double pace = (double)p->pace_ticks / (double)p->pace_count /
                  ((double)p->cost.pace / RING_CALIBRATION_SCALE);
    return pace < 1 / most ? 1 / most : pace > most ? most : pace;
}

/* What a path's function has lost by being slowed down; NULL: nothing is known. */
static struct slowed_function *slowed_of(struct carry *c, const struct feed *f,
                                         const struct calltree_node *n)
{
    uint32_t code;
    struct slowed *s = c->shared->slowed;
    return s && code_of(c->d, n->code, &code) ? slowed_find(s, f->owner.thread, code) : NULL;
}

/* Counts who was called by whom since the path was carried last; `times` -1: it was not carried after all. */
static void count_slowed_calls(struct carry *c, const struct feed *f, const struct calltree_node *n,
                               int times)
{
    struct slowed_function *e = slowed_of(c, f, n);
    struct slowed_function *by = slowed_of(c, f, &f->tree.nodes.data[n->parent]);
    if (e)
        e->calls += times * (double)n->calls;
    if (by)
        by->made += times * (double)n->calls;
}

/* False: nothing is known of what this process loses. */
static bool slowed_cost_of(const struct carry *c, const struct calibrated *p,
                           struct slowed_cost *ret)
{
    if (!c->shared->slowed || !p || !p->cost.slowed[RING_SLOWED_ITERATION].takes)
        return false;
    *ret = (struct slowed_cost){.measured = &p->cost,
                                .tick_ns = c->ns_per_tick / RING_CALIBRATION_SCALE * pace_of(p)};
    return true;
}

/* How often the functions of a thread were called, and which time is told of them now. */
static void tell_slowed(struct carry *c, const struct feed *f, const struct slowed_cost *cost)
{
    uint64_t told = 0;
    for (size_t i = 0; i < f->tree.changed.len; i++) {
        const struct calltree_node *n = &f->tree.nodes.data[f->tree.changed.data[i]];
        struct slowed_function *e = slowed_of(c, f, n);
        count_slowed_calls(c, f, n, 1);
        told += n->self;
        if (e)
            slowed_tell(c->shared->slowed, e, (double)n->self * c->ns_per_tick);
    }
    if (f->paused_ticks)
        slowed_forgive(c->shared->slowed, f->owner.thread, cost,
                       (double)f->paused_ticks / (double)(f->paused_ticks + told));
}

/* How much of a path's time was lost so. */
static uint64_t slowed_ns(struct carry *c, const struct feed *f, const struct calltree_node *n,
                          const struct slowed_cost *cost)
{
    struct slowed_function *e = slowed_of(c, f, n);
    return e ? (uint64_t)slowed_take(c->shared->slowed, e, cost, (double)n->self * c->ns_per_tick)
             : 0;
}

static void carry_calls(struct carry *c, struct feed *f, const struct calibrated *p)
{
    size_t kept = 0;
    struct slowed_cost cost;
    bool slows = slowed_cost_of(c, p, &cost);
    if (slows)
        tell_slowed(c, f, &cost);
    for (size_t i = 0; i < f->tree.changed.len; i++) {
        uint32_t node = f->tree.changed.data[i];
        struct calltree_node *n = &f->tree.nodes.data[node];
        uint32_t stack = stack_of(c, f, node);
        if (node && !stack) {
            f->tree.changed.data[kept++] = node; /* its name is still to come */
            if (slows)
                count_slowed_calls(c, f, n, -1);
            continue;
        }
        n->changed = false;
        struct record_calls record = {
            .thread = f->owner.thread,
            .stack = stack,
            .calls = n->calls,
            .resumes = n->resumes,
            .self_ns = ns_of(c, n->self),
            .alive_ns = ns_of(c, n->alive),
            .probes_ns = ns_of(c, (uint64_t)((double)n->asides * f->aside_ticks)) +
                         (slows ? slowed_ns(c, f, n, &cost) : 0),
        };
        /* what passes outside of every function is nobody's; and calls among selected functions
         * alone (ring.h, selection) are no call tree */
        if (node && c->d->session->shared->instruments & RING_CALLS)
            format_writer_calls(c->shared->writer, &record);
        n->calls = n->resumes = n->asides = n->self = n->alive = 0;
    }
    f->tree.changed.len = kept;
}

/* What an event costs in that process, as a fact: six numbers in ns. */
static void tell_calibration(struct carry *c, const struct calibrated *p)
{
    const struct ring_calibration *r = &p->cost;
    double ns = c->ns_per_tick / RING_CALIBRATION_SCALE * pace_of(p);
    char key[48], value[192];
    snprintf(key, sizeof key, "calibration.%u", p->process);
    snprintf(value, sizeof value, "%.2f %.2f %.2f %.2f %.2f %.2f", r->python_inside * ns,
             r->python_outside * ns, r->c_inside * ns, r->c_outside * ns, r->line * ns,
             r->error * ns);
    format_writer_meta(c->shared->writer, key, value);
}

/* At the end: what each process has measured, by all that is known now. */
static void tell_calibrations(struct carry *c)
{
    bool is_unread = false;
    for (size_t i = 0; i < c->d->calibrated.len; i++) {
        const struct calibrated *p = &c->d->calibrated.data[i];
        struct slowed_cost cost;
        tell_calibration(c, p);
        is_unread |= c->shared->is_refused && slowed_cost_of(c, p, &cost) &&
                     !slowed_has(c->shared->slowed, p->process);
    }
    if (is_unread)
        format_writer_meta(c->shared->writer, "slowed", "unread");
}

/* That of a feed's process; NULL if it never told. */
static struct calibrated *calibrated_of(struct carry *c, struct feed *f)
{
    struct drain *d = c->d;
    for (size_t i = d->calibrated.len; i-- > 0;)
        if (d->calibrated.data[i].process == f->owner.process)
            return &d->calibrated.data[i];
    struct calibrated *p = f->has_calibration ? vec_push(&d->calibrated) : NULL;
    if (p) {
        *p = (struct calibrated){.process = f->owner.process, .cost = f->calibration};
        tell_calibration(c, p);
    }
    return p;
}

static struct calibrated *carry_calibration(struct carry *c, struct feed *f)
{
    struct calibrated *p = calibrated_of(c, f);
    if (!p)
        return NULL;
    p->pace_ticks += f->pace_ticks - f->pace_ticks_carried;
    p->pace_count += f->pace_count - f->pace_count_carried;
    f->pace_ticks_carried = f->pace_ticks;
    f->pace_count_carried = f->pace_count;
    f->aside_ticks = p->cost.aside * pace_of(p) / RING_CALIBRATION_SCALE;
    return p;
}

static void carry_lines(struct carry *c, struct feed *f)
{
    struct linetree *t = &f->lines;
    size_t kept = 0;
    for (size_t i = 0; i < t->changed.len; i++) {
        uint32_t cell = t->changed.data[i];
        struct linetree_cell *n = &t->cells.data[cell];
        uint32_t code = 0, callee = 0;
        if ((n->code && !code_of(c->d, n->code, &code)) ||
            (n->callee && !code_of(c->d, n->callee, &callee))) {
            t->changed.data[kept++] = cell; /* its name is still to come */
            continue;
        }
        n->changed = false;
        struct record_line record = {
            .thread = f->owner.thread,
            .code = code,
            .line = n->line,
            .callee = callee,
            .hits = n->now.hits - n->taken.hits,
            .own_ns = n->callee ? 0 : ns_of(c, n->now.own - n->taken.own),
            .callee_ns = ns_of(c, n->now.callee - n->taken.callee),
        };
        if (n->code) /* the thread itself has no lines */
            format_writer_line(c->shared->writer, &record);
        n->taken = n->now;
    }
    t->changed.len = kept;
}

/* What is on a timeline and no function. */
static uint32_t special_code(struct carry *c, uint32_t *known, const char *name)
{
    struct record_code special = {.name =
                                      format_writer_string(c->shared->writer, name, strlen(name)),
                                  .flags = RECORD_CODE_SPECIAL};
    if (!*known)
        *known = format_writer_code(c->shared->writer, &special);
    return *known;
}

/* The id of a function, by its number in the session. False: its definition has not come yet. */
static bool translate(struct carry *c, uint32_t *code)
{
    static const char *const collections[EVENTS_GC_KINDS] = {
        "<garbage collection, generation 0>", "<garbage collection, generation 1>",
        "<garbage collection, generation 2>", "<garbage collection>"};
    struct drain *d = c->d;
    if (*code == EVENTS_WAITING_CODE)
        *code = special_code(c, &d->waiting_code, "<paused by pyrometer>");
    else if (*code >= EVENTS_GC_CODE && *code - EVENTS_GC_CODE < EVENTS_GC_KINDS)
        *code = special_code(c, &d->gc_code[*code - EVENTS_GC_CODE],
                             collections[*code - EVENTS_GC_CODE]);
    else
        return code_of(d, *code, code);
    return true;
}

/* All functions of a block and its summaries, or none. */
static bool translate_block(struct carry *c, struct events_done *done)
{
    for (uint32_t i = 0; i < done->block.code_count; i++) {
        uint32_t code = done->block.codes[i];
        if (!translate(c, &code))
            return false;
    }
    for (uint32_t i = 0; i < done->block.code_count; i++)
        translate(c, &done->block.codes[i]);
    /* summaries of several blocks name functions of earlier ones, which have been carried before */
    for (unsigned i = 0; i < done->summary_count; i++) {
        const struct lod *l = &done->summary[i].boxes;
        for (uint32_t d = 0; d < l->used; d++)
            for (size_t k = 0; k < l->rows.data[d].boxes.len; k++)
                if (!translate(c, &l->rows.data[d].boxes.data[k].code))
                    l->rows.data[d].boxes.data[k].code = RECORD_CODE_UNKNOWN;
    }
    return true;
}

/* What the window has kept of a thread is to be written now. Returns the bytes that are held again. */
static size_t give_window(struct drain *d, struct feed *f)
{
    size_t before = f->events->done_bytes;
    window_give(&d->window, f);
    return f->events->done_bytes - before;
}

static void carry_events(struct carry *c, struct feed *f)
{
    struct events *e = f->events;
    uint64_t *v = c->shared->stats->value;
    size_t held = e->done_bytes;
    if (c->blocks)
        events_finish_block(e, f->closed || c->last);
    atomic_fetch_add(&c->d->held_bytes, e->done_bytes - held);
    v[RECORD_STAT_EVENTS_TRACED] += e->traced;
    v[RECORD_STAT_EVENTS_LEFT_OUT] += e->left_out;
    v[RECORD_STAT_EVENTS_TOO_DEEP] += e->too_deep;
    v[RECORD_STAT_EVENTS_LOST] += e->lost;
    e->traced = e->left_out = e->too_deep = e->lost = 0;
    if (c->keeps) {
        atomic_fetch_sub(&c->d->held_bytes, window_take(&c->d->window, f));
        return;
    }
    if (c->d->window.length_ns)
        atomic_fetch_add(&c->d->held_bytes, give_window(c->d, f));
    size_t n = 0, bytes = 0;
    for (; n < e->done.len; n++) {
        struct events_done *done = e->done.data[n];
        bool behind = format_writer_backlog(c->shared->writer) > MAX_BACKLOG_BYTES && !c->last;
        if (behind || !translate_block(c, done))
            break;
        format_writer_events(c->shared->writer, f->owner.thread, &done->block);
        for (unsigned i = 0; i < done->summary_count; i++) {
            done->summary[i].head.thread = f->owner.thread;
            if (!done->summary[i].boxes.failed)
                format_writer_summary(c->shared->writer, &done->summary[i].head,
                                      &done->summary[i].boxes);
        }
        bytes += events_done_bytes(done);
        events_done_free(done);
    }
    if (n)
        memmove(e->done.data, e->done.data + n, (e->done.len - n) * sizeof *e->done.data);
    e->done.len -= n;
    e->done_bytes -= bytes;
    atomic_fetch_sub(&c->d->held_bytes, bytes);
}

static void carry_mark(struct carry *c, const struct feed *f, const struct feed_mark *m)
{
    struct format_writer *w = c->shared->writer;
    uint32_t name = format_writer_string(w, m->text, m->len);
    if (m->kind == RING_EXT_COUNTER) {
        struct record_counter counter = {f->owner.thread, name, m->begin_ns, m->value};
        format_writer_counter(w, &counter);
        return;
    }
    struct record_mark mark = {.thread = f->owner.thread,
                               .kind = m->kind == RING_EXT_MARK       ? RECORD_MARK_MOMENT
                                       : m->kind == RING_EXT_SPAN_END ? RECORD_MARK_SPAN
                                                                      : RECORD_MARK_OPEN,
                               .name = name,
                               .start_ns = m->begin_ns,
                               .duration_ns = m->end_ns - m->begin_ns};
    format_writer_mark(w, &mark);
}

static void carry_marks(struct carry *c, struct feed *f)
{
    if (c->keeps && !f->closed)
        return;
    if (f->closed || c->last) /* spans that will not end any more */
        while (f->spans.len) {
            struct feed_mark *m = vec_push(&f->marks);
            if (!m)
                break;
            *m = f->spans.data[--f->spans.len];
            m->end_ns = f->events ? max_u64(m->begin_ns, f->events->last_ns) : m->begin_ns;
        }
    for (size_t i = 0; i < f->marks.len && !c->keeps; i++) {
        carry_mark(c, f, &f->marks.data[i]);
        feed_mark_release(&f->marks.data[i]);
    }
    if (!c->keeps)
        f->marks.len = 0;
}

static void carry_feed(struct carry *c, struct feed *f)
{
    ring_owner_meet(&f->owner, c->shared, c->procs);
    carry_name(c, f);
    const struct calibrated *p = carry_calibration(c, f);
    carry_marks(c, f);
    if (!c->keeps ||
        f->closed) { /* sums do not grow by waiting, and the file would by each writing */
        carry_calls(c, f, p);
        carry_lines(c, f);
    }
    if (f->events)
        carry_events(c, f);
    uint64_t *v = c->shared->stats->value;
    v[RECORD_STAT_EVENTS] += f->records;
    v[RECORD_STAT_EVENTS_DAMAGED] += f->nonsense;
    v[RECORD_STAT_EVENT_WAIT_NS] += ns_of(c, f->room_ticks - f->room_carried);
    v[RECORD_STAT_EVENTS_LOST] += f->lost - f->lost_carried + f->tree.lost + f->lines.lost;
    f->room_carried = f->room_ticks;
    f->lost_carried = f->lost;
    v[RECORD_STAT_EVENT_PAUSED_NS] += ns_of(c, f->paused_ticks);
    f->records = f->nonsense = f->waited_ticks = f->paused_ticks = 0;
    f->tree.lost = f->lines.lost = 0;
}

/* The window ends with the last event of any thread, and not now: a program that waits, or that was stopped
 * a while ago, keeps what it did before. */
static void move_window(struct drain *d)
{
    uint64_t latest = 0;
    for (uint32_t slot = 0; slot < RING_MAX_SLOTS; slot++)
        if (d->feed[slot] && d->feed[slot]->events)
            latest = max_u64(latest, d->feed[slot]->events->last_ns);
    for (size_t i = 0; i < d->done.len; i++)
        if (d->done.data[i]->events)
            latest = max_u64(latest, d->done.data[i]->events->last_ns);
    window_move(&d->window, latest);
}

/* With the lock held, after all threads were asked. */
static void tend_window(struct carry *c)
{
    struct drain *d = c->d;
    window_shrink(&d->window, d->feed, RING_MAX_SLOTS, d->done.data, d->done.len);
    c->shared->stats->value[RECORD_STAT_EVENTS_FORGOTTEN] += d->window.forgotten;
    d->window.forgotten = 0;
    if (!c->last)
        return;
    char text[32];
    snprintf(text, sizeof text, "%ju", (uintmax_t)d->window.start_ns);
    format_writer_meta(c->shared->writer, "window_start_ns", text);
}

void drain_flush(struct drain *d, struct target_shared *shared, struct procs *procs)
{
    struct carry c = {.d = d,
                      .shared = shared,
                      .procs = procs,
                      .ns_per_tick = session_ns_per_tick(d->session),
                      .last = !d->started};
    uint64_t now = clock_mono_ns(), age = now - d->origin_ns;
    c.keeps = d->window.length_ns && !c.last;
    c.blocks = c.last || now - d->blocks_ns > min_u64(BLOCKS_NS, age / 5);
    if (c.blocks)
        d->blocks_ns = now;
    if (shared->slowed)
        slowed_begin(shared->slowed);
    pthread_mutex_lock(&d->lock);
    carry_codes(&c);
    if (d->window.length_ns)
        move_window(d);
    pthread_mutex_unlock(&d->lock);
    for (uint32_t slot = 0; slot < RING_MAX_SLOTS; slot++) {
        if (atomic_load_explicit(&d->session->shared->slot_state[slot], memory_order_relaxed) ==
            RING_FREE)
            continue;
        pthread_mutex_lock(&d->lock);
        if (d->feed[slot])
            carry_feed(&c, d->feed[slot]);
        pthread_mutex_unlock(&d->lock);
    }
    pthread_mutex_lock(&d->lock);
    carry_codes(&c); /* what came meanwhile: a thread that has ended will not be asked again */
    size_t kept = 0;
    for (size_t i = 0; i < d->done.len; i++) {
        struct feed *f = d->done.data[i];
        carry_feed(&c, f);
        bool more = f->tree.changed.len || f->lines.changed.len || f->marks.len ||
                    (f->events && (f->events->done.len || f->events->kept.len));
        if (more && !c.last) /* names are still to come, or the writer is behind */
            d->done.data[kept++] = f;
        else
            feed_free(f);
    }
    d->done.len = kept;
    if (d->window.length_ns)
        tend_window(&c);
    if (d->heaps) {
        atomic_store(&d->has_checkpoint, false); /* whatever cannot be carried yet has time */
        heaps_carry(d->heaps, shared, procs, c.ns_per_tick, c.last);
        atomic_store(&d->memory_bytes, heaps_held_bytes(d->heaps));
    }
    pthread_mutex_unlock(&d->lock);
    if (c.last)
        tell_calibrations(&c);
    vec_release(&c.path);
}
