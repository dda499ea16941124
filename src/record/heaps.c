/* Rings come and go; those of a process are read in the order of their stamps. */
#include "record/heaps.h"

#include "base/clock.h"
#include "base/err.h"
#include "record/threadstate.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    TURN_WORDS = 1 << 16, /* of one process, with the lock held */
    MAX_THREADS = 4096, /* of a process that have sites of their own; later ones share the last's */
};
#define LAG_NS   (20 * NS_PER_US)  /* a stamp may be older than the store that announces it */
#define STUCK_NS (200 * NS_PER_MS) /* so long a record may be in the making */

int heaps_new(const struct session *session, uint64_t origin_ns, struct heaps **ret)
{
    struct heaps *h = calloc(1, sizeof *h);
    if (!h)
        return E_NOMEM;
    h->session = session;
    h->origin_ns = origin_ns;
    *ret = h;
    return 0;
}

static void free_feed(struct heaps_feed *f)
{
    if (f->ring)
        session_unmap_slot(f->ring);
    vec_release(&f->path);
    free(f);
}

void heaps_free_process(struct heaps_process *p)
{
    for (size_t i = 0; i < p->feeds.len; i++)
        free_feed(p->feeds.data[i]);
    for (size_t i = 0; i < p->snapshots.len; i++) {
        free(p->snapshots.data[i].sizes);
        free(p->snapshots.data[i].changes);
    }
    vec_release(&p->feeds);
    vec_release(&p->open);
    vec_release(&p->snapshots);
    vec_release(&p->points);
    vec_release(&p->groups);
    vec_release(&p->carried);
    idxmap_release(&p->group_map);
    heap_release(&p->heap);
    free(p);
}

void heaps_free(struct heaps *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->processes.len; i++)
        heaps_free_process(h->processes.data[i]);
    for (size_t i = 0; i < h->codes.len; i++) {
        free(h->codes.data[i].code.name);
        free(h->codes.data[i].code.qualname);
        free(h->codes.data[i].code.file);
        free(h->codes.data[i].code.lines);
    }
    vec_release(&h->processes);
    vec_release(&h->codes);
    vec_release(&h->aliases);
    idxmap_release(&h->code_map);
    idxmap_release(&h->content_map);
    idxmap_release(&h->alias_map);
    free(h->lines);
    free(h);
}

/* --- whose ring --- */

static struct heaps_process *process_of(struct heaps *h, uint32_t pid, uint64_t image)
{
    for (size_t i = h->processes.len; i-- > 0;)
        if (h->processes.data[i]->pid == pid && !h->processes.data[i]->ended)
            return h->processes.data[i];
    struct heaps_process **place = vec_push(&h->processes);
    struct heaps_process *p = place ? calloc(1, sizeof *p) : NULL;
    bool sampled = h->session->shared->instruments & RING_SAMPLED;
    if (!p || heap_init(&p->heap, sampled ? h->session->shared->memory_interval : 0,
                        h->session->keeps_memory_events) < 0) {
        h->processes.len -= place != NULL;
        free(p);
        return NULL;
    }
    p->pid = pid;
    p->image = image;
    p->process = UINT32_MAX;
    p->start_ns = clock_mono_ns();
    p->is_child = h->met++ > 0;
    *place = p;
    return p;
}

/* Programs may have had many threads more than they have. */
static void forget_closed(struct heaps_process *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->open.len; i++)
        if (p->open.data[i]->ring)
            p->open.data[kept++] = p->open.data[i];
    p->open.len = kept;
}

/* A new one; after very many that of an ended thread with the same identity, and its name in the file. */
static struct heaps_feed *feed_for(struct heaps_process *p, uint64_t ident)
{
    for (size_t i = 0; i < p->feeds.len && p->feeds.len >= MAX_THREADS; i++)
        if (!p->feeds.data[i]->ring && p->feeds.data[i]->owner.ident == ident)
            return p->feeds.data[i];
    struct heaps_feed **place = vec_push(&p->feeds);
    struct heaps_feed *f = place ? calloc(1, sizeof *f) : NULL;
    if (f) {
        *place = f;
        f->number = (uint32_t)min_u64(p->feeds.len - 1, MAX_THREADS - 1);
    } else if (place) {
        p->feeds.len--;
    }
    return f;
}

void heaps_meet(struct heaps *h, uint32_t slot, struct ring_header *ring)
{
    struct heaps_process *p = process_of(h, ring->pid, ring->image);
    if (p)
        forget_closed(p); /* one of them may be this one's place */
    struct heaps_feed *f = p ? feed_for(p, ring->ident) : NULL;
    struct heaps_feed **among = f ? vec_push(&p->open) : NULL;
    if (!among) {
        session_unmap_slot(ring);
        return;
    }
    *among = f;
    f->slot = slot;
    f->ring = ring;
    f->image = ring->image;
    f->words = (const uint64_t *)((const char *)ring + RING_HEADER_BYTES);
    f->tail = f->head = atomic_load(&ring->tail);
    f->tick = ring->start_tick;
    f->last_block = 0;
    f->undo.site = UINT32_MAX;
    f->lost_seen = f->waited_seen = 0;
    f->path.len = 0;
    if (!f->owner.pid)
        ring_owner_read(ring, &f->owner);
    h->feed[slot] = f;
}

/* --- one process's rings, in the order of their stamps --- */

/* What there is to read, as of now. False: the ring is nonsense. */
static bool look_at_ring(struct heaps_feed *f)
{
    f->writing = atomic_load_explicit(&f->ring->writing, memory_order_acquire) != 0;
    uint64_t head = atomic_load_explicit(&f->ring->head, memory_order_acquire);
    if (head < f->tail || head - f->tail > RING_WORDS)
        return false;
    f->head = head;
    return true;
}

static void give_room(struct heaps_feed *f)
{
    atomic_store_explicit(&f->ring->tail, f->tail, memory_order_release);
    uint64_t lost = atomic_load_explicit(&f->ring->lost, memory_order_relaxed);
    uint64_t waited = atomic_load_explicit(&f->ring->waited_ticks, memory_order_relaxed);
    f->lost += lost - f->lost_seen;
    f->waited_ticks += waited - f->waited_seen;
    f->lost_seen = lost;
    f->waited_seen = waited;
}

/* Where another ring's next record, or one that it may be making, stands: nothing later may be taken before it. */
static uint64_t bound_by(struct heaps *h, struct heaps_process *p, const struct heaps_feed *me,
                         uint64_t horizon, struct heaps_feed **ret_next)
{
    uint64_t bound = horizon;
    *ret_next = NULL;
    for (size_t i = 0; i < p->open.len; i++) {
        struct heaps_feed *f = p->open.data[i];
        if (f == me || !f->ring || f->image != p->image)
            continue;
        bool has = heaps_find_record(h, p, f);
        uint64_t tick = has ? f->next_tick : f->writing ? f->tick : UINT64_MAX;
        if (tick < bound || (has && tick == bound && !*ret_next)) {
            bound = tick;
            *ret_next = has ? f : NULL;
        }
    }
    return bound;
}

static uint64_t take_process(struct heaps *h, struct heaps_process *p,
                             const struct session_clock *clock, uint64_t horizon)
{
    uint64_t taken = 0;
    struct heaps_feed *f, *next;
    bound_by(h, p, NULL, horizon, &f);
    while (f && taken < TURN_WORDS) {
        uint64_t bound = bound_by(h, p, f, horizon, &next);
        uint64_t before = f->tail;
        while (heaps_find_record(h, p, f) && f->next_tick <= bound && f->tail - before < TURN_WORDS)
            heaps_take_record(h, p, f, clock);
        taken += f->tail - before;
        if (f->tail == before && !next)
            break;
        bound_by(h, p, NULL, horizon, &f);
    }
    for (size_t i = 0; i < p->open.len; i++)
        if (p->open.data[i]->ring)
            give_room(p->open.data[i]);
    return taken;
}

static void close_feed(struct heaps *h, struct heaps_feed *f)
{
    session_unmap_slot(f->ring);
    f->ring = NULL;
    vec_release(&f->path);
    h->feed[f->slot] = NULL;
    session_free_slot(h->session, f->slot);
}

/* An exec that has not failed by then will not. */
#define EXEC_NS (200 * NS_PER_MS)

static bool is_gone(uint32_t pid)
{
    return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/* Also if nobody has waited for it yet. The first thread alone may have ended, too: then there are others. */
static bool has_ended(uint32_t pid)
{
    enum { LINKS_OF_ONE = 3 }; /* the folder itself, and one for each thread */
    if (is_gone(pid))
        return true;
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%u/task", pid);
    return threadstate_letter((pid_t)pid, pid) == 'Z' && stat(path, &st) == 0 &&
           st.st_nlink <= LINKS_OF_ONE;
}

/* Rings that are finished are given back. True: one is still open. */
static bool close_rings(struct heaps *h, struct heaps_process *p, bool dead)
{
    bool open = false;
    for (size_t i = 0; i < p->open.len; i++) {
        struct heaps_feed *f = p->open.data[i];
        if (!f->ring || f->image != p->image)
            continue;
        uint32_t state = atomic_load(&h->session->shared->slot_state[f->slot]);
        if ((state == RING_CLOSED || dead) && look_at_ring(f) && f->tail == f->head)
            close_feed(h, f);
        else
            open = true;
    }
    return open;
}

/* A ring of the next program that the process has executed; NULL: there is none. */
static struct heaps_feed *next_image(const struct heaps_process *p)
{
    struct heaps_feed *next = NULL;
    for (size_t i = 0; i < p->open.len; i++) {
        struct heaps_feed *f = p->open.data[i];
        if (f->ring && f->image > p->image && (!next || f->image < next->image))
            next = f;
    }
    return next;
}

/* When the process began to execute a program of which there are no rings (yet); 0: it did not. */
static uint64_t exec_tick(struct heaps_process *p, const struct session_clock *clock)
{
    bool is_open = false;
    uint64_t tick = 0;
    for (size_t i = 0; i < p->open.len; i++) {
        const struct heaps_feed *f = p->open.data[i];
        if (!f->ring || f->image != p->image)
            continue;
        uint64_t told = atomic_load_explicit(&f->ring->exec_tick, memory_order_acquire);
        tick = told <= clock->tick ? max_u64(tick, told) : tick;
        is_open = true;
    }
    if (is_open) /* else it stays as it was last */
        p->exec_tick = tick;
    return p->exec_tick > p->exec_taken ? p->exec_tick : 0;
}

/* All that the program held is gone with it. */
static void drop_program(struct heaps *h, struct heaps_process *p,
                         const struct session_clock *clock, uint64_t tick)
{
    p->heap.log_ns = heaps_ns(h, clock, tick); /* until then it was there */
    heap_drop_all(&p->heap);
}

static void look_at_rings(struct heaps *h, struct heaps_process *p,
                          const struct session_clock *clock, bool dead)
{
    for (size_t i = 0; i < p->open.len; i++) {
        struct heaps_feed *f = p->open.data[i];
        if (!f->ring || f->image > p->image)
            continue;
        f->complete = dead || atomic_load(&h->session->shared->slot_state[f->slot]) == RING_CLOSED;
        if (f->image < p->image || !look_at_ring(f)) { /* or it is of a program that is no more */
            f->nonsense++;
            close_feed(h, f);
            continue;
        }
        double stuck = (double)(int64_t)(clock->tick - f->tick) * clock->ns_per_tick;
        if (dead || stuck > (double)STUCK_NS)
            f->writing = false;
    }
}

/* Is all taken that had been published when the turn began, and nothing in the making? */
static bool is_read(const struct heaps_process *p)
{
    for (size_t i = 0; i < p->open.len; i++) {
        const struct heaps_feed *f = p->open.data[i];
        if (f->ring && (f->tail < f->head || f->writing))
            return false;
    }
    return true;
}

static uint64_t turn(struct heaps *h, struct heaps_process *p, const struct session_clock *clock,
                     bool deaths, bool last)
{
    if (p->ended)
        return 0;
    forget_closed(p);
    uint64_t now = clock_mono_ns();
    uint64_t horizon = clock->tick - (uint64_t)((double)LAG_NS / clock->ns_per_tick);
    const struct heaps_feed *next = next_image(p);
    uint64_t exec = next ? 0 : exec_tick(p, clock);
    bool replaced = exec && (double)(clock->tick - exec) * clock->ns_per_tick > EXEC_NS;
    bool dead = last || next || replaced || p->gone;
    p->gone = p->gone || (deaths && has_ended(p->pid));
    look_at_rings(h, p, clock, dead);
    if (dead)
        horizon = UINT64_MAX; /* there is no more to come */
    uint64_t taken = take_process(h, p, clock, horizon);
    bool open = close_rings(h, p, dead);
    if (dead && !open && taken == 0 && (next || exec)) { /* it has executed another program */
        drop_program(h, p, clock, next ? next->tick : exec);
        if (next)
            p->image = next->image;
        else
            p->exec_taken = exec;
        return 1;
    }
    if (dead && !open && taken == 0) {
        bool lives = last && !p->gone && !has_ended(p->pid); /* and goes on without us */
        p->ended = true;
        heaps_snapshot(h, p, lives ? 0 : RECORD_MEMORY_LAST, now - h->origin_ns);
    } else if (!dead) {
        uint64_t before = p->checkpoint_ns;
        heaps_keep_time(h, p, clock, is_read(p) ? horizon : min_u64(horizon, p->taken_tick));
        h->timely |= p->checkpoint_ns != before;
    }
    return taken;
}

size_t heaps_held_bytes(const struct heaps *h)
{
    size_t bytes = 0;
    for (size_t i = 0; i < h->processes.len; i++)
        if (h->processes.data[i]->heap.log)
            bytes += h->processes.data[i]->heap.log->done_bytes;
    return bytes;
}

uint64_t heaps_turn(struct heaps *h, const struct session_clock *clock, bool deaths, bool last)
{
    uint64_t taken = 0;
    for (size_t i = 0; i < h->processes.len; i++)
        taken += turn(h, h->processes.data[i], clock, deaths, last);
    return taken;
}
