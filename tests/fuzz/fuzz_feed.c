/* The words of a ring of events as a program may scribble them. Each is nine bytes of input: what to do with it, and the word. Whatever
 * comes, what is kept of the timeline can be read again, all of it, and the trees of calls and lines hold together. */
#include "record/feed.h"
#include "reseal.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MAX_WORDS = 4096,
    /* what to do */
    TURN = 1,   /* then the recorder looks */
    FINISH = 2, /* and ends the open block */
    JUMP = 4,   /* the word is no word, but where the head is to be */
    /* of the whole */
    TRACED = 1,
    SHORT_ONES = 2, /* are left out */
    DEEP_ONES = 4,  /* so are these */
    LINES = 8,
};

static const struct session_clock CLOCK = {.tick = 1ull << 40, .ns = 1ull << 40, .ns_per_tick = 1};

struct rig {
    struct ring_header *ring;
    struct feed *feed;
    struct feed_codes codes;
    uint64_t head;
};

/* False: the ring is given up. */
static bool act(struct rig *r, uint8_t what, uint64_t word)
{
    if (what & JUMP)
        r->head = word;
    else
        ((uint64_t *)((char *)r->ring + RING_HEADER_BYTES))[r->head++ % RING_WORDS] = word;
    atomic_store(&r->ring->head, r->head);
    if (what & TURN && feed_take(r->feed, &r->codes, &CLOCK, UINT64_MAX) < 0)
        return false;
    if (what & FINISH && r->feed->events)
        events_finish_block(r->feed->events, false);
    return true;
}

/* --- what must hold --- */

static int on_events(void *ctx, const struct record_events *block,
                     const struct record_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        require(events[i].time_ns >= block->start_ns && events[i].time_ns <= block->end_ns);
    *(uint64_t *)ctx += n;
    return 0;
}

struct noted {
    uint64_t count;
    uint32_t events; /* in the block: each note is about one of them */
};

static int on_note(void *ctx, const struct record_notes *block, const struct record_note *note)
{
    struct noted *seen = ctx;
    (void)block;
    require(!note || (note->event < seen->events && note->len <= RING_MAX_NOTE));
    seen->count += note != NULL;
    return 0;
}

static void check_events(const struct events *e)
{
    static const struct format_visitor visitor = {.events = on_events, .note = on_note};
    uint64_t events = 0;
    for (size_t i = 0; i < e->done.len; i++) {
        const struct events_block *block = &e->done.data[i]->block;
        struct buf b;
        buf_init(&b, 64 << 20);
        events_put_block(&b, 1, block);
        require(events_visit(b.data, b.len, block->count, &visitor, &events) == 0);
        buf_clear(&b);
        events_put_notes(&b, 1, block);
        struct noted notes = {.events = block->count};
        require(events_visit_notes(b.data, b.len, block->note_count, &visitor, &notes) == 0);
        require(notes.count == block->note_count);
        buf_release(&b);
    }
    require(e->failed || events == e->traced);
    require(e->written <= e->stack.len);
}

static void check_trees(const struct calltree *calls, const struct linetree *lines)
{
    for (size_t i = 1; i < calls->nodes.len; i++)
        require(calls->nodes.data[i].parent < i);
    for (size_t i = 1; i < calls->stack.len; i++)
        require(calls->nodes.data[calls->stack.data[i]].parent == calls->stack.data[i - 1]);
    for (size_t i = 0; i < lines->cells.len; i++)
        require(!lines->cells.data[i].active);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { STEP = 9 };
    if (!size)
        return 0;
    struct rig r = {.ring = mmap(NULL, RING_SLOT_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    require(r.ring != MAP_FAILED);
    const struct events_options options = {.min_ns = data[0] & SHORT_ONES ? 100 : 0,
                                           .max_depth = data[0] & DEEP_ONES ? 3 : 0};
    require(feed_new(0, r.ring, data[0] & LINES, data[0] & TRACED ? &options : NULL, 0, &r.feed) ==
            0);
    bool good = true;
    for (size_t at = 1, n = 0; good && at + STEP <= size && n < MAX_WORDS; at += STEP, n++) {
        uint64_t word;
        memcpy(&word, data + at + 1, sizeof word);
        good = act(&r, data[at], word);
    }
    feed_take(r.feed, &r.codes, &CLOCK, UINT64_MAX);
    linetree_finish(&r.feed->lines);
    check_trees(&r.feed->tree, &r.feed->lines);
    if (r.feed->events) {
        events_finish_block(r.feed->events, true);
        check_events(r.feed->events);
    }
    for (size_t i = 0; i < r.codes.fresh.len; i++)
        feed_code_release(&r.codes.fresh.data[i]);
    vec_release(&r.codes.fresh);
    feed_free(r.feed);
    munmap(r.ring, RING_SLOT_BYTES);
    return 0;
}
