#include "record/heaps.h"

#include "base/clock.h"
#include "base/err.h"
#include "format/ringmem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum {
    TURN_WORDS = 1 << 16, /* of one process, with the lock held */
    MAX_DEPTH = 1 << 22,  /* frames */
    MAX_THREADS = 4096, /* of a process that have sites of their own; later ones share the last's */
    MAX_SNAPSHOTS = 64, /* that wait to be carried: then none is taken */
    EVERY_MARK = 256,   /* marks with a checkpoint each; then every other one, every fourth … */
};
#define LAG_NS        (20 * NS_PER_US)  /* a stamp may be older than the store that announces it */
#define STUCK_NS      (200 * NS_PER_MS) /* so long a record may be in the making */
#define CHECKPOINT_NS (900 * NS_PER_MS)
#define POINT_NS      (10 * NS_PER_MS)
#define FILE_BYTES    (12 << 20) /* all checkpoints of a process */

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

static void free_process(struct heaps_process *p)
{
    for (size_t i = 0; i < p->feeds.len; i++)
        free_feed(p->feeds.data[i]);
    for (size_t i = 0; i < p->snapshots.len; i++) {
        free(p->snapshots.data[i].sizes);
        free(p->snapshots.data[i].changes);
    }
    vec_release(&p->feeds);
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
        free_process(h->processes.data[i]);
    for (size_t i = 0; i < h->codes.len; i++) {
        free(h->codes.data[i].code.name);
        free(h->codes.data[i].code.qualname);
        free(h->codes.data[i].code.file);
        free(h->codes.data[i].code.lines);
    }
    vec_release(&h->processes);
    vec_release(&h->codes);
    idxmap_release(&h->code_map);
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
    *place = p;
    return p;
}

void heaps_meet(struct heaps *h, uint32_t slot, struct ring_header *ring)
{
    struct heaps_process *p = process_of(h, ring->pid, ring->image);
    struct heaps_feed **place = p ? vec_push(&p->feeds) : NULL;
    struct heaps_feed *f = place ? calloc(1, sizeof *f) : NULL;
    if (!f) {
        if (place)
            p->feeds.len--;
        session_unmap_slot(ring);
        return;
    }
    *place = f;
    f->slot = slot;
    f->ring = ring;
    f->image = ring->image;
    f->words = (const uint64_t *)((const char *)ring + RING_HEADER_BYTES);
    f->tail = f->head = atomic_load(&ring->tail);
    f->tick = ring->start_tick;
    f->number = (uint32_t)min_u64(p->feeds.len - 1, MAX_THREADS - 1);
    f->undo.site = UINT32_MAX;
    ring_owner_read(ring, &f->owner);
    h->feed[slot] = f;
}

/* --- words --- */

static inline uint64_t word_at(const struct heaps_feed *f, uint64_t n)
{
    return f->words[n & (RING_WORDS - 1)];
}

static void copy_payload(const struct heaps_feed *f, uint64_t first, size_t at, void *to,
                         size_t len)
{
    for (size_t i = 0; i < len; i++, at++)
        ((uint8_t *)to)[i] = (uint8_t)(word_at(f, first + at / 8) >> 8 * (at % 8));
}

static void *copy_text(const struct heaps_feed *f, uint64_t first, size_t *at, uint32_t len)
{
    char *text = malloc((size_t)len + 1);
    if (text) {
        copy_payload(f, first, *at, text, len);
        text[len] = 0;
    }
    *at += len;
    return text;
}

struct heaps_code *heaps_find_code(struct heaps *h, uint32_t number)
{
    uint32_t at;
    IDXMAP_FIND(&h->code_map, hash_u64(number), i, h->codes.data[i].id == number, at);
    return at == IDXMAP_NONE ? NULL : &h->codes.data[at];
}

/* Takes the texts over. False without memory. */
static bool add_code(struct heaps *h, uint32_t number, uint32_t pid, const struct remote_code *r)
{
    struct heaps_code *code =
        r->name && r->qualname && r->file && r->lines ? vec_push(&h->codes) : NULL;
    if (!code)
        return false;
    if (idxmap_insert(&h->code_map, hash_u64(number), (uint32_t)h->codes.len - 1) < 0) {
        h->codes.len--;
        return false;
    }
    *code = (struct heaps_code){.id = number, .code = *r, .pid = pid};
    h->codes_new++;
    return true;
}

static void take_code(struct heaps *h, struct heaps_feed *f, uint64_t first, size_t bytes)
{
    struct ringmem_code c;
    static const enum pyl_lines encodings[] = {PYL_LINES_LNOTAB, PYL_LINES_PEP626,
                                               PYL_LINES_LOCATION};
    if (bytes < sizeof c) {
        f->nonsense++;
        return;
    }
    copy_payload(f, first, 0, &c, sizeof c);
    uint64_t texts = (uint64_t)c.name_len + c.qualname_len + c.file_len + c.lines_len;
    if (texts > bytes - sizeof c || c.id == 0 || c.id > RING_MAX_VALUE ||
        c.lines >= ARRAY_LEN(encodings)) {
        f->nonsense++;
        return;
    }
    if (heaps_find_code(h, c.id)) /* numbers are given once */
        return;
    size_t at = sizeof c;
    struct remote_code r = {.name_len = c.name_len,
                            .qualname_len = c.qualname_len,
                            .file_len = c.file_len,
                            .first_line = c.first_line,
                            .lines_len = c.lines_len,
                            .encoding = encodings[c.lines]};
    r.name = copy_text(f, first, &at, c.name_len);
    r.qualname = copy_text(f, first, &at, c.qualname_len);
    r.file = copy_text(f, first, &at, c.file_len);
    r.lines = copy_text(f, first, &at, c.lines_len);
    if (!add_code(h, c.id, f->owner.pid, &r)) {
        free(r.name);
        free(r.qualname);
        free(r.file);
        free(r.lines);
    }
}

static uint32_t top_of(const struct heaps_feed *f)
{
    return f->path.len ? f->path.data[f->path.len - 1] : 0;
}

static void push_frame(struct heaps_process *p, struct heaps_feed *f, uint32_t code, int32_t offset)
{
    uint32_t parent = top_of(f);
    uint32_t *place = f->path.len < MAX_DEPTH ? vec_push(&f->path) : NULL;
    if (!place) {
        f->nonsense++;
        return;
    }
    /* a frame of the interpreter itself takes a place, but is nobody's */
    *place = code ? heap_child(&p->heap, parent, code, offset) : parent;
}

static void move_frame(struct heaps_process *p, struct heaps_feed *f, int32_t offset)
{
    uint32_t top = top_of(f);
    if (!top) {
        f->nonsense++;
        return;
    }
    const struct heap_node *n = &p->heap.nodes.data[top];
    f->path.data[f->path.len - 1] = heap_child(&p->heap, n->parent, n->code, offset);
}

/* Goes over what says nothing of memory, up to the next record that does. False: there is none. */
static bool find_record(struct heaps *h, struct heaps_process *p, struct heaps_feed *f)
{
    while (f->tail < f->head) {
        uint64_t word = word_at(f, f->tail);
        switch ((enum ringmem_kind)(word & 15)) {
        case RINGMEM_ALLOC:
        case RINGMEM_MAP:
        case RINGMEM_UNMAP:
            if (f->head - f->tail < 2) {
                f->nonsense += f->complete; /* and the rest will not come any more */
                f->tail += f->complete;
                return false;
            }
            f->next_tick = f->tick + (word_at(f, f->tail + 1) >> RINGMEM_SIZE_LOW);
            return true;
        case RINGMEM_FREE:
            f->next_tick = f->tick + (word >> 49);
            return true;
        case RINGMEM_UNDO:
            f->next_tick = f->tick;
            return true;
        case RINGMEM_TIME:
            f->tick += word >> 4;
            break;
        case RINGMEM_KEEP:
            if (word >> 4 <= f->path.len)
                f->path.len = word >> 4;
            else
                f->nonsense++;
            break;
        case RINGMEM_PUSH:
            push_frame(p, f, (uint32_t)(word >> 4) & RING_MAX_VALUE, (int32_t)(word >> 32));
            break;
        case RINGMEM_MOVE:
            move_frame(p, f, (int32_t)(word >> 32));
            break;
        case RINGMEM_EXT: {
            uint32_t words = (uint32_t)(word >> 8) & 0xffffff;
            if (words > RING_MAX_PAYLOAD_WORDS || words >= f->head - f->tail) {
                f->nonsense++;
                f->tail = f->head;
                return false;
            }
            if ((word >> 4 & 15) == RINGMEM_EXT_MARK && words) {
                f->next_tick = max_u64(f->tick, word_at(f, f->tail + 1));
                return true;
            }
            if ((word >> 4 & 15) == RINGMEM_EXT_CODE)
                take_code(h, f, f->tail + 1, (size_t)words * 8);
            f->tail += words;
            break;
        }
        default:
            f->nonsense++;
            break;
        }
        f->tail++;
    }
    return false;
}

static uint64_t ns_of(const struct heaps *h, const struct session_clock *clock, uint64_t tick)
{
    double ago = (double)(int64_t)(clock->tick - tick) * clock->ns_per_tick;
    uint64_t now = clock->ns - h->origin_ns;
    if (ago < 0 || ago > (double)now)
        return ago < 0 ? now : 0;
    return (uint64_t)((double)now - ago);
}

static bool is_wanted_mark(struct heaps_process *p)
{
    uint64_t n = ++p->marks, every = 1;
    while (n / every > EVERY_MARK)
        every *= 2;
    return n % every == 0;
}

/* The record at the tail. */
static void take_record(struct heaps *h, struct heaps_process *p, struct heaps_feed *f,
                        const struct session_clock *clock)
{
    uint64_t word = word_at(f, f->tail), second = word_at(f, f->tail + 1);
    struct heap *heap = &p->heap;
    f->tick = f->next_tick;
    if (heap->log)
        heap->log_ns = ns_of(h, clock, f->tick);
    f->records++;
    f->tail += 2;
    uint64_t address = ringmem_block_address(word), size = ringmem_block_size(word, second);
    uint32_t allocator = (uint32_t)(word >> 4) & 31;
    switch ((enum ringmem_kind)(word & 15)) {
    case RINGMEM_ALLOC:
    case RINGMEM_MAP: {
        /* the first bytes are nobody's, and mean an empty place in the heap's tables */
        uint32_t site = allocator < RECORD_ALLOCATOR_COUNT && !heap->failed && address >> 3
                            ? heap_site(heap, top_of(f), f->number, allocator)
                            : UINT32_MAX;
        if (site == UINT32_MAX) {
            f->nonsense++;
        } else if ((word & 15) == RINGMEM_ALLOC) {
            heap_alloc(heap, site, address, size, f->tick);
            f->last_block = address >> 3;
        } else {
            heap_map(heap, site, address, size, f->tick);
        }
        break;
    }
    case RINGMEM_UNMAP:
        heap_unmap(heap, address, size, f->tick);
        break;
    case RINGMEM_FREE: {
        f->tail--;
        address = word << 15 >> 19; /* bits 4 to 48 */
        bool brief = address == f->last_block;
        heap_free(heap, address << 3, brief, &f->undo);
        break;
    }
    case RINGMEM_UNDO:
        f->tail--;
        heap_undo(heap, &f->undo, f->tick);
        break;
    default: /* a mark: find_record() stops at nothing else */
        if (is_wanted_mark(p))
            heaps_snapshot(h, p, RECORD_MEMORY_MARK, ns_of(h, clock, f->tick));
        f->tail += ((uint32_t)(word >> 8) & 0xffffff) - 1;
        break;
    }
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
    for (size_t i = 0; i < p->feeds.len; i++) {
        struct heaps_feed *f = p->feeds.data[i];
        if (f == me || !f->ring || f->image != p->image)
            continue;
        bool has = find_record(h, p, f);
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
        while (find_record(h, p, f) && f->next_tick <= bound && f->tail - before < TURN_WORDS)
            take_record(h, p, f, clock);
        taken += f->tail - before;
        if (f->tail == before && !next)
            break;
        bound_by(h, p, NULL, horizon, &f);
    }
    for (size_t i = 0; i < p->feeds.len; i++)
        if (p->feeds.data[i]->ring)
            give_room(p->feeds.data[i]);
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

static bool is_gone(uint32_t pid)
{
    return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/* Rings that are finished are given back. True: one is still open. */
static bool close_rings(struct heaps *h, struct heaps_process *p, bool dead)
{
    bool open = false;
    for (size_t i = 0; i < p->feeds.len; i++) {
        struct heaps_feed *f = p->feeds.data[i];
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

/* --- over time --- */

static uint64_t read_rss(uint32_t pid)
{
    char path[64], text[128];
    unsigned long long size, resident;
    snprintf(path, sizeof path, "/proc/%u/statm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    return sscanf(text, "%llu %llu", &size, &resident) == 2
               ? resident * (uint64_t)sysconf(_SC_PAGESIZE)
               : 0;
}

static uint64_t unscaled(const struct heap *h, uint64_t sum)
{
    return h->interval ? (sum + HEAP_SAMPLE_SCALE / 2) / HEAP_SAMPLE_SCALE : sum;
}

static void add_point(struct heaps *h, struct heaps_process *p, uint64_t now)
{
    uint64_t rss = read_rss(p->pid);
    struct heaps_point *point = rss ? vec_push(&p->points) : NULL;
    if (!point)
        return;
    *point = (struct heaps_point){
        .time_ns = now - h->origin_ns,
        .rss = rss,
        .heap = unscaled(&p->heap, p->heap.live_bytes - p->heap.object_bytes),
        .objects = unscaled(&p->heap, p->heap.object_bytes),
    };
    p->point_ns = now;
}

/* Points and checkpoints become rarer with the age of the process, and checkpoints with their size, so that the
 * file stays small whatever the length of the run. */
static void keep_time(struct heaps *h, struct heaps_process *p)
{
    enum { POINTS = 1000, CHECKPOINTS = 128, PART = 8 };
    uint64_t now = clock_mono_ns(), age = now - p->start_ns;
    if (now - p->point_ns >= max_u64(POINT_NS, age / POINTS))
        add_point(h, p, now);
    uint64_t left =
        p->written_bytes < FILE_BYTES / 2
            ? FILE_BYTES - p->written_bytes
            : max_u64(FILE_BYTES / 16, FILE_BYTES - min_u64(FILE_BYTES, p->written_bytes));
    double part = (double)p->checkpoint_bytes * PART / (double)left;
    double wait = (double)age * (part > 1. / CHECKPOINTS ? part : 1. / CHECKPOINTS);
    double least = min_u64(CHECKPOINT_NS, max_u64(age / 2, 50 * NS_PER_MS));
    if ((double)(now - p->checkpoint_ns) >= (wait > least ? wait : least) &&
        (p->heap.live_count || p->heap.sites.len))
        heaps_snapshot(h, p, 0, now - h->origin_ns);
}

/* A ring of the next program that the process has executed; NULL: there is none. */
static struct heaps_feed *next_image(const struct heaps_process *p)
{
    struct heaps_feed *next = NULL;
    for (size_t i = 0; i < p->feeds.len; i++) {
        struct heaps_feed *f = p->feeds.data[i];
        if (f->ring && f->image > p->image && (!next || f->image < next->image))
            next = f;
    }
    return next;
}

static void look_at_rings(struct heaps *h, struct heaps_process *p,
                          const struct session_clock *clock, bool dead)
{
    for (size_t i = 0; i < p->feeds.len; i++) {
        struct heaps_feed *f = p->feeds.data[i];
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

static uint64_t turn(struct heaps *h, struct heaps_process *p, const struct session_clock *clock,
                     bool deaths, bool last)
{
    if (p->ended)
        return 0;
    uint64_t now = clock_mono_ns();
    uint64_t horizon = clock->tick - (uint64_t)((double)LAG_NS / clock->ns_per_tick);
    const struct heaps_feed *next = next_image(p);
    bool dead = last || next || p->gone;
    p->gone = p->gone || (deaths && is_gone(p->pid));
    look_at_rings(h, p, clock, dead);
    if (dead)
        horizon = UINT64_MAX; /* there is no more to come */
    uint64_t taken = take_process(h, p, clock, horizon);
    bool open = close_rings(h, p, dead);
    if (dead && !open && taken == 0 && next) { /* it has executed another program */
        heap_drop_all(&p->heap);
        p->image = next->image;
        return 1;
    }
    if (dead && !open && taken == 0) {
        if (p->heap.log)
            memlog_finish_block(p->heap.log);
        heaps_snapshot(h, p, RECORD_MEMORY_LAST, now - h->origin_ns);
        p->ended = true;
    } else if (!dead) {
        keep_time(h, p);
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

/* --- checkpoints --- */

static size_t take_sizes(struct heap *heap, struct record_sizes *out)
{
    size_t n = 0;
    for (uint32_t a = 0; a < RECORD_ALLOCATOR_COUNT; a++)
        for (uint32_t b = 0; b < HEAP_BINS; b++) {
            if (!heap->bins[a][b][0])
                continue;
            out[n++] = (struct record_sizes){a, b, unscaled(heap, heap->bins[a][b][0]),
                                             unscaled(heap, heap->bins[a][b][1])};
            heap->bins[a][b][0] = heap->bins[a][b][1] = 0;
        }
    return n;
}

static void take_change(struct heap_site *s, uint32_t number, struct heaps_change *ret)
{
    *ret = (struct heaps_change){
        .site = number,
        .sums = {.count = s->sums.count - s->taken.count,
                 .bytes = s->sums.bytes - s->taken.bytes,
                 .freed = s->sums.freed - s->taken.freed,
                 .freed_bytes = s->sums.freed_bytes - s->taken.freed_bytes,
                 .brief = s->sums.brief - s->taken.brief,
                 .brief_bytes = s->sums.brief_bytes - s->taken.brief_bytes,
                 .variance = s->sums.variance - s->taken.variance},
        .peak_count = s->peak_count,
        .peak_bytes = s->peak_bytes,
        .live_variance = s->live_variance,
        .peak_variance = s->peak_variance,
    };
    s->taken = s->sums;
    s->peak_count_taken = s->peak_count;
    s->peak_bytes_taken = s->peak_bytes;
    s->changed = false;
}

void heaps_snapshot(struct heaps *h, struct heaps_process *p, uint32_t flags, uint64_t now_ns)
{
    struct heap *heap = &p->heap;
    bool last = flags & RECORD_MEMORY_LAST;
    struct heaps_snapshot *s =
        p->snapshots.len < MAX_SNAPSHOTS || last ? vec_push(&p->snapshots) : NULL;
    if (!s)
        return;
    struct session_clock clock = session_clock_now(h->session);
    size_t room = 0;
    for (size_t i = 0; i < heap->sites.len; i++) {
        struct heap_site *site = &heap->sites.data[i];
        heap_settle(heap, site);
        site->changed |= site->peak_bytes != site->peak_bytes_taken ||
                         site->peak_count != site->peak_count_taken;
        room += site->changed;
    }
    s->sizes = calloc(RECORD_ALLOCATOR_COUNT * HEAP_BINS, sizeof *s->sizes);
    s->changes = calloc(room + 1, sizeof *s->changes);
    if (!s->sizes || !s->changes) {
        free(s->sizes);
        free(s->changes);
        p->snapshots.len--;
        return;
    }
    s->head = (struct record_memory){
        .flags = flags | (heap->interval ? RECORD_MEMORY_SAMPLED : 0),
        .time_ns = now_ns,
        .live_bytes = unscaled(heap, heap->live_bytes),
        .live_count = unscaled(heap, heap->live_count),
        .peak_bytes = unscaled(heap, heap->peak_bytes),
        .peak_ns = heap->peak_tick ? ns_of(h, &clock, heap->peak_tick) : 0,
    };
    s->size_count = take_sizes(heap, s->sizes);
    for (size_t i = 0; i < heap->sites.len; i++)
        if (heap->sites.data[i].changed)
            take_change(&heap->sites.data[i], (uint32_t)i, &s->changes[s->change_count++]);
    enum { SITE_BYTES = 8 }; /* of one in the file, compressed, about */
    p->checkpoint_ns = clock.ns;
    p->checkpoint_bytes = s->change_count * SITE_BYTES + 64;
    p->written_bytes += p->checkpoint_bytes;
}
