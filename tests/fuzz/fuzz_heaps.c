/* The words of two memory rings as a program may scribble them. Each is nine bytes of input: what to do with it, and the word. Whatever
 * comes, the sums of the sites are those of the heap, and what is kept of the events can be read again. */
#include "format/ringmem.h"
#include "record/heaps.h"
#include "reseal.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    RINGS = 2,
    MAX_WORDS = 4096,
    /* what to do */
    SECOND_RING = 1,
    TURN = 2,  /* then the recorder looks */
    CLOSE = 4, /* then the thread ends */
    WRITING = 8,
    JUMP = 16, /* the word is no word, but where the head is to be */
};

static struct ring_session shared;
static struct session session = {.shared = &shared, .fd = -1};

struct rig {
    struct heaps *heaps;
    struct ring_header *ring[RINGS]; /* the recorder's: gone when it has given it back */
    uint64_t head[RINGS];
};

static void open_rings(struct rig *r, bool exec)
{
    for (uint32_t i = 0; i < RINGS; i++) {
        struct ring_header *h =
            mmap(NULL, RING_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require(h != MAP_FAILED);
        h->pid = (uint32_t)getpid();
        h->tid = i;
        h->image = exec ? i : 0;
        atomic_store(&shared.slot_state[i], RING_LIVE);
        heaps_meet(r->heaps, i, h);
        r->ring[i] = h;
    }
}

static uint64_t turn(struct rig *r, bool last)
{
    struct session_clock clock = {.tick = 1ull << 62, .ns = 1ull << 62, .ns_per_tick = 1};
    uint64_t taken = heaps_turn(r->heaps, &clock, false, last);
    for (uint32_t i = 0; i < RINGS; i++)
        if (!r->heaps->feed[i])
            r->ring[i] = NULL;
    return taken;
}

/* As the recorder does: a ring whose head has jumped is full, which is more than one turn takes. */
static void last_turns(struct rig *r)
{
    int turns = 0;
    while (turn(r, true))
        require(++turns < 16);
}

static void act(struct rig *r, uint8_t what, uint64_t word)
{
    uint32_t i = what & SECOND_RING;
    struct ring_header *h = r->ring[i];
    if (h) {
        if (what & JUMP)
            r->head[i] = word;
        else
            ((uint64_t *)((char *)h + RING_HEADER_BYTES))[r->head[i]++ % RING_WORDS] = word;
        atomic_store(&h->head, r->head[i]);
        atomic_store(&h->writing, (what & WRITING) != 0);
        if (what & CLOSE)
            atomic_store(&shared.slot_state[i], RING_CLOSED);
    }
    if (what & (TURN | CLOSE))
        turn(r, false);
}

/* --- what must hold --- */

static void check_sums(struct heap *h)
{
    uint64_t count = 0, bytes = 0, peak = 0, used = 0;
    for (size_t i = 0; i < h->sites.len; i++) {
        struct heap_site *s = &h->sites.data[i];
        heap_settle(h, s);
        count += s->sums.count - s->sums.freed;
        bytes += s->sums.bytes - s->sums.freed_bytes;
        peak += s->peak_bytes;
    }
    for (size_t i = 0; i < h->blocks.size; i++)
        used += h->blocks.key[i] != 0;
    require(count == h->live_count && bytes == h->live_bytes && peak == h->peak_bytes);
    require(h->live_bytes <= h->peak_bytes && h->object_bytes <= h->live_bytes);
    require(used == h->blocks.used && h->large_used <= used);
    for (size_t i = 0; i < h->ranges.len; i++)
        require(h->ranges.data[i].start < h->ranges.data[i].end &&
                (!i || h->ranges.data[i - 1].end <= h->ranges.data[i].start));
}

static int on_events(void *ctx, const struct record_memory_events *block,
                     const struct record_memory_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        require(events[i].time_ns >= block->start_ns && events[i].time_ns <= block->end_ns);
    *(uint64_t *)ctx += n;
    return 0;
}

static void check_log(const struct memlog *l)
{
    static const struct format_visitor visitor = {.memory_events = on_events};
    uint64_t events = 0;
    for (size_t i = 0; i < l->done.len; i++) {
        const struct memlog_done *d = &l->done.data[i];
        struct record_site *sites = calloc((size_t)d->site_count + 1, sizeof *sites);
        struct buf b;
        buf_init(&b, 64 << 20);
        memevents_put_block(&b, 1, sites, d->site_count, &d->block);
        require(memevents_visit(b.data, b.len, d->block.count, &visitor, &events) == 0);
        buf_release(&b);
        free(sites);
    }
    require(events == l->events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { STEP = 9 };
    struct rig r = {0};
    if (!size)
        return 0;
    shared.clock = RING_CLOCK_MONO;
    shared.instruments = data[0] & 1 ? RING_SAMPLED : RING_HEAP;
    shared.memory_interval = 128 << 10;
    session.keeps_memory_events = data[0] & 2;
    require(heaps_new(&session, 0, &r.heaps) == 0);
    open_rings(&r, data[0] & 4);
    for (size_t at = 1, n = 0; at + STEP <= size && n < MAX_WORDS; at += STEP, n++) {
        uint64_t word;
        memcpy(&word, data + at + 1, sizeof word);
        act(&r, data[at], word);
    }
    last_turns(&r);
    for (size_t i = 0; i < r.heaps->processes.len; i++) {
        struct heaps_process *p = r.heaps->processes.data[i];
        require(p->ended);
        check_sums(&p->heap);
        if (p->heap.log)
            check_log(p->heap.log);
    }
    heaps_free(r.heaps);
    return 0;
}
