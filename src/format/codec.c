/* Records to bytes and back. See docs/format.md for the drawings. */
#include "format/codec.h"

#include "base/err.h"
#include "format/cursor.h"
#include "format/events.h"
#include "format/lod.h"
#include "format/memevents.h"
#include "format/memory.h"

/* The head byte of a sample: its state in the low bits, two flags on top. */
enum {
    HEAD_SAME_THREAD = 0x40, /* thread as in the record before */
    HEAD_COUNT = 0x80,       /* a count follows; else 1 */
};
static_assert((int)RECORD_STATE_MASK < (int)HEAD_SAME_THREAD, "state bits fit below the flags");

/* Samples decoded between two calls of the visitor: 40 kB of stack. */
enum { SAMPLE_BATCH = 1024 };

/* ---- writing ---- */

void codec_put_text(struct buf *b, const char *text, size_t len)
{
    buf_put_varint(b, len);
    buf_append(b, text, len);
}

void codec_put_code(struct buf *b, const struct record_code *code)
{
    buf_put_varint(b, code->name);
    buf_put_varint(b, code->qualname);
    buf_put_varint(b, code->file);
    buf_put_varint(b, code->first_line);
    buf_put_varint(b, code->flags);
}

void codec_put_stack(struct buf *b, uint32_t id, const struct record_stack *node)
{
    buf_put_varint(b, id - node->parent); /* parents are near: small numbers */
    buf_put_varint(b, node->code);
    buf_put_varint(b, node->line);
}

void codec_put_process(struct buf *b, const struct record_process *p)
{
    buf_put_varint(b, p->id);
    buf_put_varint(b, p->pid);
    buf_put_varint(b, p->parent_pid);
    buf_put_varint(b, p->kind);
    buf_put_varint(b, p->command);
    buf_put_varint(b, p->python_version);
    buf_put_varint(b, p->start_ns);
    buf_put_varint(b, p->end_ns);
}

void codec_put_thread(struct buf *b, const struct record_thread *t)
{
    buf_put_varint(b, t->id);
    buf_put_varint(b, t->process);
    buf_put_varint(b, t->tid);
    buf_put_varint(b, t->name);
    buf_put_varint(b, t->ident);
    buf_put_varint(b, t->interpreter);
    buf_put_varint(b, t->start_ns);
}

void codec_put_sample(struct buf *b, struct codec_sample_state *state,
                      const struct record_sample *s)
{
    uint8_t head = (uint8_t)(s->state & RECORD_STATE_MASK);
    if (s->thread == state->thread)
        head |= HEAD_SAME_THREAD;
    if (s->count != 1)
        head |= HEAD_COUNT;
    buf_put_u8(b, head);
    if (s->thread != state->thread)
        buf_put_varint(b, s->thread);
    buf_put_svarint(b, (int64_t)s->stack - (int64_t)state->stack);
    buf_put_svarint(b, (int64_t)(s->start_ns - state->end_ns));
    buf_put_varint(b, s->duration_ns);
    if (s->count != 1)
        buf_put_varint(b, s->count);
    state->thread = s->thread;
    state->stack = s->stack;
    state->end_ns = s->start_ns + s->duration_ns;
}

void codec_put_calls(struct buf *b, struct codec_calls_state *state, const struct record_calls *c)
{
    buf_put_svarint(b, (int64_t)c->thread - (int64_t)state->thread);
    buf_put_svarint(b, (int64_t)c->stack - (int64_t)state->stack);
    buf_put_varint(b, c->calls);
    buf_put_varint(b, c->resumes);
    buf_put_varint(b, c->self_ns);
    buf_put_varint(b, c->alive_ns);
    buf_put_varint(b, c->probes_ns);
    state->thread = c->thread;
    state->stack = c->stack;
}

void codec_put_line(struct buf *b, struct codec_line_state *state, const struct record_line *l)
{
    buf_put_svarint(b, (int64_t)l->thread - (int64_t)state->thread);
    buf_put_svarint(b, (int64_t)l->code - (int64_t)state->code);
    buf_put_svarint(b, (int64_t)l->line - (int64_t)state->line);
    buf_put_varint(b, l->callee);
    buf_put_varint(b, l->hits);
    buf_put_varint(b, l->own_ns);
    buf_put_varint(b, l->callee_ns);
    *state = (struct codec_line_state){l->thread, l->code, l->line};
}

void codec_put_mark(struct buf *b, const struct record_mark *m)
{
    buf_put_varint(b, m->thread);
    buf_put_varint(b, m->kind);
    buf_put_varint(b, m->name);
    buf_put_varint(b, m->start_ns);
    buf_put_varint(b, m->duration_ns);
}

void codec_put_counter(struct buf *b, const struct record_counter *c)
{
    buf_put_varint(b, c->thread);
    buf_put_varint(b, c->name);
    buf_put_varint(b, c->time_ns);
    buf_append(b, &c->value, sizeof c->value);
}

void codec_put_source(struct buf *b, const struct record_source *s)
{
    buf_put_varint(b, s->path);
    buf_put_varint(b, s->flags);
    buf_put_varint(b, s->size);
    buf_put_varint(b, s->mtime_ns);
    buf_put_varint(b, s->hash);
    if (s->flags & RECORD_SOURCE_TEXT)
        codec_put_text(b, s->text, s->text_len);
}

void codec_put_stat(struct buf *b, enum record_stat stat, uint64_t value)
{
    const char *name = record_stat_name(stat);
    codec_put_text(b, name, strlen(name));
    buf_put_varint(b, value);
}

void codec_put_stats(struct buf *b, const struct record_stats *stats)
{
    for (int i = 0; i < RECORD_STAT_COUNT; i++)
        codec_put_stat(b, (enum record_stat)i, stats->value[i]);
}

/* ---- reading ---- */

static int visit_meta(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t key_len, value_len;
        const char *key = get_text(c, &key_len);
        const char *value = get_text(c, &value_len);
        if (c->bad)
            return E_CORRUPT;
        int r = v->meta(ctx, key, key_len, value, value_len);
        if (r)
            return r;
    }
    return 0;
}

static int visit_strings(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    uint32_t id = get_id(c);
    for (uint32_t i = 0; i < n; i++, id++) {
        size_t len;
        const char *text = get_text(c, &len);
        if (c->bad || id >= FORMAT_MAX_IDS)
            return E_CORRUPT;
        int r = v->string(ctx, id, text, len);
        if (r)
            return r;
    }
    return 0;
}

static int visit_codes(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    uint32_t id = get_id(c);
    for (uint32_t i = 0; i < n; i++, id++) {
        struct record_code code = {0};
        code.name = get_id(c);
        code.qualname = get_id(c);
        code.file = get_id(c);
        code.first_line = get_u32(c);
        code.flags = get_u32(c);
        if (c->bad || id >= FORMAT_MAX_IDS)
            return E_CORRUPT;
        int r = v->code(ctx, id, &code);
        if (r)
            return r;
    }
    return 0;
}

static int visit_stacks(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    uint32_t id = get_id(c);
    for (uint32_t i = 0; i < n; i++, id++) {
        uint32_t back = get_u32(c);
        struct record_stack node = {.parent = id - back};
        node.code = get_id(c);
        node.line = get_u32(c);
        /* a parent comes before its child: walks towards the root always end */
        if (c->bad || back == 0 || back > id || id >= FORMAT_MAX_IDS)
            return E_CORRUPT;
        int r = v->stack(ctx, id, &node);
        if (r)
            return r;
    }
    return 0;
}

static int visit_processes(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    for (uint32_t i = 0; i < n; i++) {
        struct record_process p = {0};
        p.id = get_id(c);
        p.pid = get_u32(c);
        p.parent_pid = get_u32(c);
        p.kind = get_u32(c);
        p.command = get_id(c);
        p.python_version = get_id(c);
        p.start_ns = get_varint(c);
        p.end_ns = get_varint(c);
        if (c->bad)
            return E_CORRUPT;
        int r = v->process(ctx, &p);
        if (r)
            return r;
    }
    return 0;
}

static int visit_threads(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    for (uint32_t i = 0; i < n; i++) {
        struct record_thread t = {0};
        t.id = get_id(c);
        t.process = get_id(c);
        t.tid = get_u32(c);
        t.name = get_id(c);
        t.ident = get_varint(c);
        t.interpreter = get_u32(c);
        t.start_ns = get_varint(c);
        if (c->bad)
            return E_CORRUPT;
        int r = v->thread(ctx, &t);
        if (r)
            return r;
    }
    return 0;
}

static inline bool get_sample(struct cursor *c, struct codec_sample_state *state,
                              struct record_sample *ret)
{
    uint8_t head = get_u8(c);
    ret->state = head & RECORD_STATE_MASK;
    ret->thread = head & HEAD_SAME_THREAD ? state->thread : get_id(c);
    /* unsigned: what is below zero wraps past the maximum */
    uint64_t stack = state->stack + (uint64_t)get_svarint(c);
    ret->start_ns = state->end_ns + (uint64_t)get_svarint(c);
    ret->duration_ns = get_varint(c);
    ret->count = head & HEAD_COUNT ? get_u32(c) : 1;
    if (unlikely(c->bad || stack >= FORMAT_MAX_IDS))
        return false;
    ret->stack = (uint32_t)stack;
    state->thread = ret->thread;
    state->stack = ret->stack;
    state->end_ns = ret->start_ns + ret->duration_ns;
    return true;
}

static int visit_samples(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    struct record_sample batch[SAMPLE_BATCH];
    struct codec_sample_state state = {0};
    while (n) {
        size_t want = n < SAMPLE_BATCH ? n : SAMPLE_BATCH;
        size_t got = 0;
        while (got < want && get_sample(c, &state, &batch[got]))
            got++;
        int r = got ? v->samples(ctx, batch, got) : 0;
        if (r)
            return r;
        if (got < want)
            return E_CORRUPT;
        n -= (uint32_t)want;
    }
    return 0;
}

static int visit_calls(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    struct codec_calls_state state = {0};
    for (uint32_t i = 0; i < n; i++) {
        struct record_calls call = {0};
        uint64_t thread = state.thread + (uint64_t)get_svarint(c);
        uint64_t stack = state.stack + (uint64_t)get_svarint(c);
        call.calls = get_varint(c);
        call.resumes = get_varint(c);
        call.self_ns = get_varint(c);
        call.alive_ns = get_varint(c);
        call.probes_ns = get_varint(c);
        if (c->bad || thread >= FORMAT_MAX_IDS || stack >= FORMAT_MAX_IDS)
            return E_CORRUPT;
        call.thread = state.thread = (uint32_t)thread;
        call.stack = state.stack = (uint32_t)stack;
        int r = v->calls(ctx, &call);
        if (r)
            return r;
    }
    return 0;
}

static int visit_lines(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    struct codec_line_state state = {0};
    for (uint32_t i = 0; i < n; i++) {
        struct record_line l = {0};
        uint64_t thread = state.thread + (uint64_t)get_svarint(c);
        uint64_t code = state.code + (uint64_t)get_svarint(c);
        uint64_t line = state.line + (uint64_t)get_svarint(c);
        l.callee = get_id(c);
        l.hits = get_varint(c);
        l.own_ns = get_varint(c);
        l.callee_ns = get_varint(c);
        if (c->bad || thread >= FORMAT_MAX_IDS || code >= FORMAT_MAX_IDS || line > UINT32_MAX)
            return E_CORRUPT;
        l.thread = state.thread = (uint32_t)thread;
        l.code = state.code = (uint32_t)code;
        l.line = state.line = (uint32_t)line;
        int r = v->line(ctx, &l);
        if (r)
            return r;
    }
    return 0;
}

static int visit_marks(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    for (uint32_t i = 0; i < n; i++) {
        struct record_mark m = {0};
        m.thread = get_id(c);
        m.kind = get_u32(c);
        m.name = get_id(c);
        m.start_ns = get_varint(c);
        m.duration_ns = get_varint(c);
        if (c->bad || m.start_ns + m.duration_ns < m.start_ns)
            return E_CORRUPT;
        int r = v->mark(ctx, &m);
        if (r)
            return r;
    }
    return 0;
}

static int visit_counters(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    for (uint32_t i = 0; i < n; i++) {
        struct record_counter k = {0};
        k.thread = get_id(c);
        k.name = get_id(c);
        k.time_ns = get_varint(c);
        if (c->bad || (size_t)(c->end - c->p) < sizeof k.value)
            return E_CORRUPT;
        memcpy(&k.value, c->p, sizeof k.value);
        c->p += sizeof k.value;
        int r = v->counter(ctx, &k);
        if (r)
            return r;
    }
    return 0;
}

static int visit_sources(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    for (uint32_t i = 0; i < n; i++) {
        struct record_source s = {0};
        s.path = get_id(c);
        s.flags = get_u32(c);
        s.size = get_varint(c);
        s.mtime_ns = get_varint(c);
        s.hash = get_varint(c);
        if (s.flags & RECORD_SOURCE_TEXT)
            s.text = get_text(c, &s.text_len);
        if (c->bad)
            return E_CORRUPT;
        int r = v->source(ctx, &s);
        if (r)
            return r;
    }
    return 0;
}

static int stat_by_name(const char *name, size_t len)
{
    for (int i = 0; i < RECORD_STAT_COUNT; i++) {
        const char *known = record_stat_name((enum record_stat)i);
        if (strlen(known) == len && !memcmp(known, name, len))
            return i;
    }
    return -1;
}

static int visit_stats(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t len;
        const char *name = get_text(c, &len);
        uint64_t value = get_varint(c);
        if (c->bad)
            return E_CORRUPT;
        int stat = stat_by_name(name, len); /* one of a newer minor version: passed over */
        int r = stat < 0 ? 0 : v->stat(ctx, (enum record_stat)stat, value);
        if (r)
            return r;
    }
    return 0;
}

int codec_visit(unsigned kind, const uint8_t *data, size_t len, uint32_t records,
                const struct format_visitor *v, void *ctx)
{
    struct cursor c = {data, data + len, false};
    switch (kind) {
    case FORMAT_CHUNK_META:
        return v->meta ? visit_meta(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_STRINGS:
        return v->string ? visit_strings(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_CODES:
        return v->code ? visit_codes(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_STACKS:
        return v->stack ? visit_stacks(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_PROCESSES:
        return v->process ? visit_processes(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_THREADS:
        return v->thread ? visit_threads(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_SAMPLES:
        return v->samples ? visit_samples(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_CALLS:
        return v->calls ? visit_calls(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_LINES:
        return v->line ? visit_lines(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_ALLOCATIONS:
        return memory_visit(data, len, records, v, ctx);
    case FORMAT_CHUNK_MEMORY_EVENTS:
        return v->memory_events ? memevents_visit(data, len, records, v, ctx) : 0;
    case FORMAT_CHUNK_STATS:
        return v->stat ? visit_stats(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_SOURCES:
        return v->source ? visit_sources(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_MARKS:
        return v->mark ? visit_marks(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_COUNTERS:
        return v->counter ? visit_counters(&c, records, v, ctx) : 0;
    case FORMAT_CHUNK_EVENTS:
        return v->events ? events_visit(data, len, records, v, ctx) : 0;
    case FORMAT_CHUNK_NOTES:
        return v->note ? events_visit_notes(data, len, records, v, ctx) : 0;
    case FORMAT_CHUNK_INDEX:
        return v->summary || v->directory ? lod_visit(data, len, records, v, ctx) : 0;
    default:
        return 0;
    }
}
