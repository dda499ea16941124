#include "format/events.h"

#include "base/err.h"
#include "base/vec.h"
#include "format/cursor.h"

enum { EVENT_BATCH = 1024 };

void events_put_block(struct buf *b, uint32_t thread, const struct events_block *block)
{
    buf_put_varint(b, thread);
    buf_put_varint(b, block->start_ns);
    buf_put_varint(b, block->end_ns - block->start_ns);
    buf_put_varint(b, block->code_count);
    for (uint32_t i = 0; i < block->code_count; i++)
        buf_put_varint(b, block->codes[i]);
    buf_put_varint(b, block->open_count);
    buf_append(b, block->open.data, block->open.len);
    buf_put_varint(b, block->symbols.len);
    buf_append(b, block->symbols.data, block->symbols.len);
    buf_append(b, block->times.data, block->times.len);
}

void events_put_note(struct events_block *block, uint32_t event, enum record_note_kind kind,
                     const char *text, size_t len)
{
    buf_put_varint(&block->notes, event - block->note_event);
    buf_put_varint(&block->notes, kind);
    len = len < RECORD_MAX_NOTE_BYTES ? len : RECORD_MAX_NOTE_BYTES;
    buf_put_varint(&block->notes, len);
    buf_append(&block->notes, text, len);
    block->note_event = event;
    block->note_count++;
}

void events_put_notes(struct buf *b, uint32_t thread, const struct events_block *block)
{
    buf_put_varint(b, thread);
    buf_put_varint(b, block->start_ns);
    buf_append(b, block->notes.data, block->notes.len);
}

/* ---- reading ---- */

int events_visit_notes(const uint8_t *data, size_t len, uint32_t records,
                       const struct format_visitor *v, void *ctx)
{
    struct cursor c = {data, data + len, false};
    struct record_notes block = {0};
    struct record_note note = {0};
    block.thread = get_id(&c);
    block.start_ns = get_varint(&c);
    if (c.bad)
        return E_CORRUPT;
    int r = v->note(ctx, &block, NULL);
    for (uint32_t i = 0; r == 0 && i < records; i++) {
        uint64_t event = note.event + get_varint(&c);
        note.kind = get_u32(&c);
        size_t text_len;
        note.text = get_text(&c, &text_len);
        if (c.bad || event < note.event || event > UINT32_MAX || text_len > RECORD_MAX_NOTE_BYTES)
            return E_CORRUPT;
        note.event = (uint32_t)event;
        note.len = (uint32_t)text_len;
        r = v->note(ctx, &block, &note);
    }
    return r;
}

struct decoder {
    struct record_events head;
    const uint32_t *codes;
    uint64_t code_count;
    VEC(struct record_open) stack;
};

/* A begin's symbol; false if it is none, or names a function that the block does not. */
static bool begin_of(const struct decoder *d, uint64_t symbol, struct record_open *ret)
{
    if (symbol < EVENTS_FIRST_BEGIN || (symbol - EVENTS_FIRST_BEGIN) / 2 >= d->code_count)
        return false;
    ret->code = d->codes[(symbol - EVENTS_FIRST_BEGIN) / 2];
    ret->kind = symbol & 1 ? RECORD_EVENT_RESUME : RECORD_EVENT_BEGIN;
    return true;
}
static_assert(EVENTS_FIRST_BEGIN % 2 == 0, "the lowest bit of a symbol says how it began");

static int get_head(struct cursor *c, struct decoder *d)
{
    d->head.thread = get_id(c);
    d->head.start_ns = get_varint(c);
    d->head.end_ns = d->head.start_ns + get_varint(c);
    d->code_count = get_varint(c);
    if (c->bad || d->head.end_ns < d->head.start_ns || d->code_count > (uint64_t)(c->end - c->p))
        return E_CORRUPT;
    uint32_t *codes = malloc((d->code_count + 1) * sizeof *codes);
    if (!codes)
        return E_NOMEM;
    for (uint64_t i = 0; i < d->code_count; i++)
        codes[i] = get_id(c);
    d->codes = codes;
    return c->bad ? E_CORRUPT : 0;
}

/* The open calls become the bottom of the stack. The outermost began so long before the block, each
 * other one so long after the one around it. */
static int get_open(struct cursor *c, struct decoder *d)
{
    uint64_t count = get_varint(c), at = 0;
    if (c->bad || count > EVENTS_MAX_DEPTH || count * 2 > (uint64_t)(c->end - c->p))
        return E_CORRUPT;
    if (!vec_reserve(&d->stack, count + 1))
        return E_NOMEM;
    for (uint64_t i = 0; i < count; i++) {
        struct record_open open = {0};
        bool good = begin_of(d, get_varint(c), &open);
        uint64_t distance = get_varint(c);
        at = i ? at + distance : d->head.start_ns - distance;
        if (c->bad || !good || at > d->head.start_ns)
            return E_CORRUPT;
        open.begin_ns = at;
        d->stack.data[d->stack.len++] = open;
    }
    return 0;
}

static int take_event(struct decoder *d, uint64_t symbol, uint64_t time, struct record_event *ret)
{
    if (symbol <= RECORD_EVENT_LOST) {
        if (!d->stack.len)
            return E_CORRUPT;
        const struct record_open *top = &d->stack.data[--d->stack.len];
        *ret = (struct record_event){.time_ns = time,
                                     .begin_ns = top->begin_ns,
                                     .code = top->code,
                                     .depth = (uint32_t)d->stack.len,
                                     .kind = (enum record_event_kind)symbol};
        return 0;
    }
    struct record_open open = {.begin_ns = time};
    if (!begin_of(d, symbol, &open) || d->stack.len >= EVENTS_MAX_DEPTH)
        return E_CORRUPT;
    if (!vec_reserve(&d->stack, d->stack.len + 1))
        return E_NOMEM;
    *ret = (struct record_event){.time_ns = time,
                                 .begin_ns = time,
                                 .code = open.code,
                                 .depth = (uint32_t)d->stack.len,
                                 .kind = open.kind};
    d->stack.data[d->stack.len++] = open;
    return 0;
}

static int visit_all(struct cursor *c, struct decoder *d, uint32_t n,
                     const struct format_visitor *v, void *ctx)
{
    uint64_t symbol_bytes = get_varint(c);
    if (c->bad || symbol_bytes > (uint64_t)(c->end - c->p))
        return E_CORRUPT;
    struct cursor symbols = {c->p, c->p + symbol_bytes, false};
    struct cursor times = {c->p + symbol_bytes, c->end, false};
    struct record_event batch[EVENT_BATCH];
    uint64_t time = d->head.start_ns;
    int r = v->events(ctx, &d->head, NULL, 0);
    while (r == 0 && n) {
        size_t want = n < EVENT_BATCH ? n : EVENT_BATCH, got = 0;
        while (r == 0 && got < want) {
            uint64_t symbol = get_varint(&symbols);
            time += get_varint(&times);
            if (symbols.bad || times.bad || time > d->head.end_ns || time < d->head.start_ns)
                r = E_CORRUPT;
            else
                r = take_event(d, symbol, time, &batch[got]);
            got += r == 0;
        }
        int told = got ? v->events(ctx, &d->head, batch, got) : 0;
        if (told)
            r = told;
        n -= (uint32_t)want;
    }
    return r;
}

int events_visit(const uint8_t *data, size_t len, uint32_t records, const struct format_visitor *v,
                 void *ctx)
{
    struct cursor c = {data, data + len, false};
    struct decoder d = {0};
    struct record_open *open = NULL;
    int r = get_head(&c, &d);
    if (r == 0)
        r = get_open(&c, &d);
    if (r == 0 && d.stack.len) { /* a copy: the stack moves on */
        open = malloc(d.stack.len * sizeof *open);
        r = open ? 0 : E_NOMEM;
        if (open)
            memcpy(open, d.stack.data, d.stack.len * sizeof *open);
        d.head.open = open;
        d.head.open_count = d.stack.len;
    }
    if (r == 0)
        r = visit_all(&c, &d, records, v, ctx);
    free(open);
    free((void *)d.codes);
    vec_release(&d.stack);
    return r;
}
