#include "format/memory.h"

#include "base/err.h"
#include "format/cursor.h"

#include <math.h>

/* What a site's record has, in its head beside the allocator; what is absent is 0, or as before. */
enum {
    HEAD_ALLOCATOR = RECORD_MAX_ALLOCATORS - 1,
    HEAD_FREED = 32,
    HEAD_BRIEF = 64,
    HEAD_PEAK = 128,
    HEAD_VARIANCES = 256,
};
enum { MAX_BIN = 63 };

static void put_double(struct buf *b, double value)
{
    buf_append(b, &value, sizeof value);
}

static double get_double(struct cursor *c)
{
    double value = 0;
    if (c->end - c->p < (ptrdiff_t)sizeof value) {
        c->bad = true;
        return 0;
    }
    __builtin_memcpy(&value, c->p, sizeof value);
    c->p += sizeof value;
    if (!isfinite(value) || value < 0)
        c->bad = true;
    return value;
}

static void put_site(struct buf *b, const struct record_site *before, const struct record_site *s,
                     bool sampled)
{
    uint32_t head = s->allocator & HEAD_ALLOCATOR;
    if (s->freed || s->freed_bytes)
        head |= HEAD_FREED;
    if (s->brief || s->brief_bytes)
        head |= HEAD_BRIEF;
    if (s->peak_count || s->peak_bytes)
        head |= HEAD_PEAK;
    if (sampled)
        head |= HEAD_VARIANCES;
    buf_put_varint(b, head);
    buf_put_svarint(b, (int64_t)s->thread - (int64_t)before->thread);
    buf_put_svarint(b, (int64_t)s->stack - (int64_t)before->stack);
    buf_put_varint(b, s->count);
    buf_put_varint(b, s->bytes);
    if (head & HEAD_FREED) {
        buf_put_varint(b, s->freed);
        buf_put_varint(b, s->freed_bytes);
    }
    if (head & HEAD_BRIEF) {
        buf_put_varint(b, s->brief);
        buf_put_varint(b, s->brief_bytes);
    }
    if (head & HEAD_PEAK) {
        buf_put_varint(b, s->peak_count);
        buf_put_varint(b, s->peak_bytes);
    }
    if (head & HEAD_VARIANCES) {
        put_double(b, s->variance);
        put_double(b, s->live_variance);
        put_double(b, s->peak_variance);
    }
}

void memory_put(struct buf *b, const struct record_memory *memory, const struct record_sizes *sizes,
                size_t size_count, const struct record_site *sites, size_t site_count)
{
    buf_put_varint(b, memory->process);
    buf_put_varint(b, memory->flags);
    buf_put_varint(b, memory->time_ns);
    buf_put_varint(b, memory->live_bytes);
    buf_put_varint(b, memory->live_count);
    buf_put_varint(b, memory->peak_bytes);
    buf_put_varint(b, memory->peak_ns);
    buf_put_varint(b, size_count);
    for (size_t i = 0; i < size_count; i++) {
        buf_put_varint(b, sizes[i].allocator);
        buf_put_varint(b, sizes[i].bin);
        buf_put_varint(b, sizes[i].count);
        buf_put_varint(b, sizes[i].bytes);
    }
    static const struct record_site none = {0};
    for (size_t i = 0; i < site_count; i++)
        put_site(b, i ? &sites[i - 1] : &none, &sites[i], memory->flags & RECORD_MEMORY_SAMPLED);
}

static struct record_sizes get_sizes(struct cursor *c)
{
    struct record_sizes s = {0};
    s.allocator = get_u32(c);
    s.bin = get_u32(c);
    s.count = get_varint(c);
    s.bytes = get_varint(c);
    if (s.allocator >= RECORD_MAX_ALLOCATORS || s.bin > MAX_BIN)
        c->bad = true;
    return s;
}

/* The record after `s`, in its place. */
static void get_site(struct cursor *c, struct record_site *s)
{
    uint32_t head = get_u32(c);
    uint64_t thread = s->thread + (uint64_t)get_svarint(c);
    uint64_t stack = s->stack + (uint64_t)get_svarint(c);
    if (thread >= FORMAT_MAX_IDS || stack >= FORMAT_MAX_IDS)
        c->bad = true;
    *s = (struct record_site){
        .thread = (uint32_t)thread, .stack = (uint32_t)stack, .allocator = head & HEAD_ALLOCATOR};
    s->count = get_varint(c);
    s->bytes = get_varint(c);
    if (head & HEAD_FREED) {
        s->freed = get_varint(c);
        s->freed_bytes = get_varint(c);
    }
    if (head & HEAD_BRIEF) {
        s->brief = get_varint(c);
        s->brief_bytes = get_varint(c);
    }
    if (head & HEAD_PEAK) {
        s->peak_count = get_varint(c);
        s->peak_bytes = get_varint(c);
    }
    if (head & HEAD_VARIANCES) {
        s->variance = get_double(c);
        s->live_variance = get_double(c);
        s->peak_variance = get_double(c);
    }
}

static struct record_memory get_head(struct cursor *c)
{
    struct record_memory m = {0};
    m.process = get_id(c);
    m.flags = get_u32(c);
    m.time_ns = get_varint(c);
    m.live_bytes = get_varint(c);
    m.live_count = get_varint(c);
    m.peak_bytes = get_varint(c);
    m.peak_ns = get_varint(c);
    return m;
}

int memory_visit(const uint8_t *data, size_t len, uint32_t records, const struct format_visitor *v,
                 void *ctx)
{
    struct cursor c = {data, data + len, false};
    struct record_memory m = get_head(&c);
    uint64_t size_count = get_varint(&c);
    if (c.bad || size_count > records)
        return E_CORRUPT;
    int r = v->memory ? v->memory(ctx, &m) : 0;
    for (uint64_t i = 0; r == 0 && i < size_count; i++) {
        struct record_sizes s = get_sizes(&c);
        if (c.bad)
            return E_CORRUPT;
        r = v->sizes ? v->sizes(ctx, &m, &s) : 0;
    }
    struct record_site site = {0};
    for (uint64_t i = size_count; r == 0 && v->site && i < records; i++) {
        get_site(&c, &site);
        if (c.bad)
            return E_CORRUPT;
        r = v->site(ctx, &m, &site);
    }
    return r;
}
