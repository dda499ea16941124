#include "record/events.h"

#include "base/err.h"

enum {
    BLOCK_BYTES = 128 << 10,
    OPEN_TIMES = 8, /* a block is so much larger than the list of open calls before it */
    NOTES_BYTES = 1 << 20,
};

static void start_block(struct events *e, uint64_t start_ns)
{
    struct buf empty;
    buf_init(&empty, FORMAT_MAX_CHUNK_BYTES / 4);
    e->block = (struct events_block){.start_ns = start_ns,
                                     .end_ns = start_ns,
                                     .open = empty,
                                     .symbols = empty,
                                     .times = empty,
                                     .notes = empty};
    memset(e->cache, 0, sizeof e->cache);
}

void events_init(struct events *e, const struct events_options *options, uint64_t start_ns)
{
    *e = (struct events){.options = *options, .last_ns = start_ns};
    buf_init(&e->held_text, 64 << 20);
    start_block(e, start_ns);
    for (int i = 0; i < EVENTS_LEVELS; i++) {
        lod_init(&e->lod[i], LOD_FIRST_SHIFT, LOD_MAX_BOXES, LOD_MAX_DEPTH);
        e->level[i].start_ns = start_ns;
    }
}

static void release_block(struct events_block *b)
{
    buf_release(&b->open);
    buf_release(&b->symbols);
    buf_release(&b->times);
    buf_release(&b->notes);
    free(b->codes);
}

void events_done_free(struct events_done *d)
{
    if (!d)
        return;
    release_block(&d->block);
    for (unsigned i = 0; i < d->summary_count; i++)
        lod_release(&d->summary[i].boxes);
    free(d);
}

void events_release(struct events *e)
{
    release_block(&e->block);
    vec_release(&e->codes);
    vec_release(&e->stack);
    vec_release(&e->held);
    buf_release(&e->held_text);
    for (int i = 0; i < EVENTS_LEVELS; i++)
        lod_release(&e->lod[i]);
    for (size_t i = 0; i < e->done.len; i++)
        events_done_free(e->done.data[i]);
    vec_release(&e->done);
    for (size_t i = 0; i < e->kept.len; i++)
        events_done_free(e->kept.data[i]);
    vec_release(&e->kept);
}

/* ---- the stream ---- */

/* A function's number in this block. Two functions that share a place in the cache take turns there and
 * get a new number each time, which is wasteful and right. */
static uint32_t number_of(struct events *e, uint32_t code)
{
    struct events_cached *c = &e->cache[code % EVENTS_CACHE];
    if (likely(c->code_plus_1 == code + 1))
        return c->number;
    uint32_t *slot = vec_push(&e->codes);
    if (!slot) {
        e->failed = true;
        return 0;
    }
    *slot = code;
    *c = (struct events_cached){code + 1, (uint32_t)e->codes.len - 1};
    return c->number;
}

static uint32_t symbol_of(struct events *e, const struct events_call *call)
{
    return EVENTS_FIRST_BEGIN + 2 * number_of(e, call->code) +
           (call->kind == RECORD_EVENT_RESUME ? 1 : 0);
}

/* The first event of a block: now it is known what was open before it. */
static void put_open(struct events *e)
{
    struct events_block *b = &e->block;
    uint64_t at = b->start_ns;
    b->open_count = (uint32_t)e->written;
    for (size_t i = 0; i < e->written; i++) {
        const struct events_call *call = &e->stack.data[i];
        buf_put_varint(&b->open, symbol_of(e, call));
        buf_put_varint(&b->open, i ? call->begin_ns - at : at - call->begin_ns);
        at = call->begin_ns;
    }
    e->full = BLOCK_BYTES + b->open.len * OPEN_TIMES;
}

static inline void put(struct events *e, uint32_t symbol, uint64_t ns)
{
    struct events_block *b = &e->block;
    buf_put_varint(&b->symbols, symbol);
    buf_put_varint(&b->times, ns - b->end_ns);
    b->end_ns = ns;
    b->count++;
    e->traced++;
}

static void put_begins(struct events *e)
{
    size_t held = 0;
    for (; e->written < e->stack.len; e->written++) {
        const struct events_call *call = &e->stack.data[e->written];
        /* here as well as at ends: a program may go far down before it comes back. And before the begin, for notes follow it */
        if (unlikely(e->block.notes.len >= NOTES_BYTES))
            events_finish_block(e, false);
        if (unlikely(!e->block.count))
            put_open(e);
        put(e, symbol_of(e, call), call->begin_ns);
        for (; held < e->held.len && e->held.data[held].depth == e->written; held++)
            events_put_note(&e->block, e->block.count - 1, e->held.data[held].kind,
                            e->held.data[held].len
                                ? (const char *)e->held_text.data + e->held.data[held].at
                                : "",
                            e->held.data[held].len);
    }
    e->held.len = 0;
    buf_clear(&e->held_text);
}

/* The call on top, which was held back, is not wanted. */
static void drop_held(struct events *e)
{
    while (e->held.len && e->held.data[e->held.len - 1].depth >= e->stack.len)
        e->held_text.len = e->held.data[--e->held.len].at;
}

void events_note_begin(struct events *e, enum record_note_kind kind, const char *text, size_t len)
{
    if (e->skipped || e->failed || !e->stack.len)
        return;
    if (e->written == e->stack.len) {
        if (e->block.count) /* else the call was open before the block, and has no event in it */
            events_put_note(&e->block, e->block.count - 1, kind, text, len);
        return;
    }
    struct events_held *h = vec_push(&e->held);
    if (!h)
        return;
    *h = (struct events_held){(uint32_t)e->stack.len - 1, kind, e->held_text.len, len};
    buf_append(&e->held_text, text, len);
    if (buf_error(&e->held_text))
        e->failed = true;
}

static void summarise(struct events *e, const struct events_call *call, uint32_t depth, uint64_t ns,
                      uint32_t flags)
{
    struct record_box box = {
        .begin_ns = call->begin_ns, .end_ns = ns, .code = call->code, .calls = 1, .flags = flags};
    /* one that began at the very end of the block before was counted there, too */
    if (box.begin_ns <= e->block.start_ns && depth < e->block.open_count) {
        box.begin_ns = e->block.start_ns;
        box.flags |= RECORD_BOX_CUT_LEFT;
    }
    box.covered_ns = box.longest_ns = box.end_ns - box.begin_ns;
    lod_add(&e->lod[0], depth, &box);
}

/* ---- calls ---- */

static inline uint64_t later(struct events *e, uint64_t ns)
{
    if (ns > e->last_ns)
        e->last_ns = ns;
    return e->last_ns;
}

/* A call that begins now is deeper than was asked for. */
static inline bool is_unwanted(const struct events *e)
{
    return e->options.max_depth && e->stack.len >= e->options.max_depth;
}

void events_begin(struct events *e, uint32_t code, enum record_event_kind kind, uint64_t ns)
{
    ns = later(e, ns);
    bool unwanted = is_unwanted(e);
    if (unlikely(unwanted || e->skipped || e->stack.len >= EVENTS_MAX_DEPTH)) {
        e->skipped++;
        if (unwanted)
            e->left_out++;
        else
            e->too_deep++;
        return;
    }
    if (unlikely(e->failed || !vec_reserve(&e->stack, e->stack.len + 1))) {
        e->failed = true;
        e->lost++;
        return;
    }
    e->stack.data[e->stack.len++] = (struct events_call){ns, code, kind};
    if (!e->options.min_ns)
        put_begins(e);
}

/* The call on top ends. */
static inline void end_top(struct events *e, enum record_event_kind kind, uint64_t ns)
{
    struct events_call call = e->stack.data[e->stack.len - 1];
    if (unlikely(e->written < e->stack.len)) {
        if (ns - call.begin_ns < e->options.min_ns) {
            e->stack.len--;
            e->left_out++;
            if (e->held.len)
                drop_held(e);
            return;
        }
        put_begins(e);
    }
    if (unlikely(!e->block.count))
        put_open(e); /* it is one of them */
    put(e, kind, ns);
    if (unlikely(e->end_note.text) && kind != RECORD_EVENT_LOST)
        events_put_note(&e->block, e->block.count - 1, e->end_note.kind, e->end_note.text,
                        e->end_note.len);
    e->stack.len--;
    e->written--;
    summarise(e, &call, (uint32_t)e->stack.len, ns, 0);
    if (unlikely(e->block.symbols.len + e->block.times.len >= e->full ||
                 e->block.notes.len >= NOTES_BYTES))
        events_finish_block(e, false);
}

/* An end that is not the top's: what is above it has ended unseen. One that nobody began is not ours. */
static void unwind(struct events *e, uint32_t code, enum record_event_kind kind, uint64_t ns)
{
    size_t at = e->stack.len;
    while (at > 0 && e->stack.data[at - 1].code != code)
        at--;
    if (!at)
        return;
    while (e->stack.len > at)
        end_top(e, RECORD_EVENT_LOST, ns);
    end_top(e, kind, ns);
}

void events_end(struct events *e, uint32_t code, enum record_event_kind kind, uint64_t ns)
{
    ns = later(e, ns);
    if (unlikely(e->skipped)) {
        e->skipped--;
        return;
    }
    if (unlikely(e->failed)) {
        e->lost++;
        return;
    }
    if (likely(e->stack.len && e->stack.data[e->stack.len - 1].code == code))
        end_top(e, kind, ns);
    else
        unwind(e, code, kind, ns);
}

void events_end_noted(struct events *e, uint32_t code, enum record_event_kind kind, uint64_t ns,
                      enum record_note_kind note, const char *text, size_t len)
{
    e->end_note = (struct record_note){.kind = note, .text = text, .len = (uint32_t)len};
    events_end(e, code, kind, ns);
    e->end_note.text = NULL;
}

void events_open(struct events *e, uint32_t code, uint64_t ns)
{
    if (e->block.count || e->written < e->stack.len || e->skipped || is_unwanted(e) ||
        e->stack.len >= EVENTS_MAX_DEPTH) {
        events_begin(e, code, RECORD_EVENT_BEGIN, ns);
        return;
    }
    struct events_call *call = e->failed ? NULL : vec_push(&e->stack);
    if (!call) {
        e->failed = true;
        e->lost++;
        return;
    }
    *call = (struct events_call){e->block.start_ns, code, RECORD_EVENT_BEGIN};
    e->written++;
}

/* ---- blocks and levels ---- */

/* Moves a level's boxes out, and its own into the next one. */
static void finish_level(struct events *e, unsigned level, struct events_done *d, uint64_t end_ns)
{
    struct events_level *from = &e->level[level];
    struct events_summary *s = &d->summary[d->summary_count++];
    s->head = (struct record_summary){
        .level = level + 1,
        .shift = e->lod[level].shift,
        .start_ns = from->start_ns,
        .end_ns = end_ns,
        .events = from->events,
        .rows = e->lod[level].used,
        .deepest = e->lod[level].deepest,
    };
    if (level + 1 < EVENTS_LEVELS) {
        struct events_level *to = &e->level[level + 1];
        lod_add_all(&e->lod[level + 1], &e->lod[level]);
        to->events += from->events;
        to->children++;
    }
    s->boxes = e->lod[level];
    lod_init(&e->lod[level], LOD_FIRST_SHIFT, LOD_MAX_BOXES, LOD_MAX_DEPTH);
    *from = (struct events_level){.start_ns = end_ns};
}

static void finish_levels(struct events *e, struct events_done *d, uint64_t end_ns, bool last)
{
    finish_level(e, 0, d, end_ns);
    for (unsigned level = 1; level < EVENTS_LEVELS; level++) {
        unsigned children = e->level[level].children;
        if (children < EVENTS_FAN && !(last && children > 1))
            break;
        finish_level(e, level, d, end_ns);
    }
}

size_t events_done_bytes(const struct events_done *d)
{
    const struct events_block *b = &d->block;
    return b->symbols.len + b->times.len + b->open.len + b->notes.len;
}

void events_reach(struct events *e, uint64_t ns)
{
    ns = later(e, ns);
    while (e->stack.len > e->written &&
           ns - e->stack.data[e->stack.len - 1].begin_ns < e->options.min_ns) {
        e->stack.len--; /* what was held back is too short for good */
        e->left_out++;
        if (e->held.len)
            drop_held(e);
    }
    if (e->written < e->stack.len)
        put_begins(e);
}

void events_finish_block(struct events *e, bool last)
{
    struct events_block *b = &e->block;
    bool goes_on = last && e->written && !e->failed &&
                   e->last_ns > b->start_ns; /* to the end, with no event there */
    if (!b->count && !goes_on)
        return;
    if (!b->count)
        put_open(e);
    /* what is held back began after everything that was written, and belongs to the next block */
    uint64_t end = e->written < e->stack.len ? e->stack.data[e->written].begin_ns : e->last_ns;
    size_t rows = min_u64(e->written, LOD_MAX_DEPTH + 1);
    for (uint32_t i = 0; i < rows; i++)
        summarise(e, &e->stack.data[i], i, end, RECORD_BOX_CUT_RIGHT);
    struct events_done *d = calloc(1, sizeof *d);
    struct events_done **place = d ? vec_push(&e->done) : NULL;
    if (!place || buf_error(&b->symbols) || buf_error(&b->times) || buf_error(&b->open) ||
        buf_error(&b->notes)) {
        free(d);
        if (place)
            e->done.len--;
        e->failed = true;
        e->lost += b->count;
        release_block(b);
        e->codes.len = 0;
        start_block(e, end);
        return;
    }
    *place = d;
    d->block = *b;
    d->block.end_ns = end;
    d->block.codes = e->codes.data;
    d->block.code_count = (uint32_t)e->codes.len;
    memset(&e->codes, 0, sizeof e->codes);
    e->level[0].events = b->count;
    e->done_bytes += events_done_bytes(d);
    finish_levels(e, d, end, last);
    start_block(e, end);
}
