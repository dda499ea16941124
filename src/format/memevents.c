#include "format/memevents.h"

#include "base/err.h"
#include "base/vec.h"
#include "format/cursor.h"

enum { BATCH = 1024 };

static void put_stream(struct buf *b, const struct buf *stream)
{
    buf_put_varint(b, stream->len);
    buf_append(b, stream->data, stream->len);
}

void memevents_put_block(struct buf *b, uint32_t process, const struct record_site *sites,
                         uint32_t site_count, const struct memevents_block *block)
{
    buf_put_varint(b, process);
    buf_put_varint(b, block->start_ns);
    buf_put_varint(b, block->end_ns - block->start_ns);
    buf_put_varint(b, site_count);
    for (uint32_t i = 0; i < site_count; i++) {
        buf_put_varint(b, sites[i].thread);
        buf_put_varint(b, sites[i].stack);
        buf_put_varint(b, sites[i].allocator);
    }
    put_stream(b, &block->symbols);
    put_stream(b, &block->sizes);
    put_stream(b, &block->slots);
    put_stream(b, &block->times);
}

/* ---- reading ---- */

struct decoder {
    struct record_memory_events head;
    struct record_memory_site *sites;
    uint64_t *last_size;
    struct cursor symbols, sizes, slots, times;
    int64_t slot;
    uint64_t time_ns, timed; /* the last time, and events until the next one counts */
    uint64_t next_ns;
};

static void get_stream(struct cursor *c, struct cursor *ret)
{
    uint64_t len = get_varint(c);
    if (c->bad || len > (uint64_t)(c->end - c->p)) {
        c->bad = true;
        len = 0;
    }
    *ret = (struct cursor){c->p, c->p + len, false};
    c->p += len;
}

static int begin(struct decoder *d, struct cursor *c)
{
    d->head.process = get_id(c);
    d->head.start_ns = get_varint(c);
    d->head.end_ns = d->head.start_ns + get_varint(c);
    uint64_t n = get_varint(c);
    if (c->bad || d->head.end_ns < d->head.start_ns || n > (uint64_t)(c->end - c->p))
        return E_CORRUPT;
    d->sites = calloc(n + 1, sizeof *d->sites);
    d->last_size = calloc(n + 1, sizeof *d->last_size);
    if (!d->sites || !d->last_size)
        return E_NOMEM;
    d->head.site_count = n;
    d->head.sites = d->sites;
    for (uint64_t i = 0; i < n; i++) {
        d->sites[i].thread = get_id(c);
        d->sites[i].stack = get_id(c);
        d->sites[i].allocator = get_u32(c);
        if (d->sites[i].allocator >= RECORD_MAX_ALLOCATORS)
            c->bad = true;
    }
    get_stream(c, &d->symbols);
    get_stream(c, &d->sizes);
    get_stream(c, &d->slots);
    get_stream(c, &d->times);
    d->time_ns = d->next_ns = d->head.start_ns;
    return c->bad ? E_CORRUPT : 0;
}

static void take_time(struct decoder *d)
{
    if (d->timed) {
        d->timed--;
        return;
    }
    d->time_ns = d->next_ns;
    if (d->times.p < d->times.end) {
        d->timed = get_varint(&d->times);
        d->next_ns += get_varint(&d->times);
        d->timed -= d->timed > 0;
        if (d->next_ns < d->time_ns || d->next_ns > d->head.end_ns)
            d->times.bad = true;
    } else {
        d->timed = UINT64_MAX;
    }
}

static bool take_event(struct decoder *d, struct record_memory_event *ret)
{
    uint64_t symbol = get_varint(&d->symbols);
    d->slot += get_svarint(&d->slots);
    take_time(d);
    *ret = (struct record_memory_event){
        .time_ns = d->time_ns, .slot = (uint32_t)d->slot, .site = UINT32_MAX};
    if (d->slot < 0 || d->slot >= MEMEVENTS_MAX_SLOTS)
        return false;
    if (symbol == MEMEVENTS_FREE) {
        ret->kind = RECORD_MEMORY_FREE;
    } else if (symbol == MEMEVENTS_SHRINK) {
        ret->kind = RECORD_MEMORY_SHRINK;
        ret->size = get_varint(&d->sizes);
    } else {
        uint64_t site = symbol - MEMEVENTS_FIRST_SITE;
        if (site >= d->head.site_count)
            return false;
        uint64_t size = get_varint(&d->sizes);
        if (size)
            d->last_size[site] = size - 1;
        ret->kind = RECORD_MEMORY_ALLOCATE;
        ret->site = (uint32_t)site;
        ret->size = d->last_size[site];
    }
    return !d->symbols.bad && !d->sizes.bad && !d->slots.bad && !d->times.bad;
}

static int visit(struct decoder *d, uint32_t records, const struct format_visitor *v, void *ctx)
{
    struct record_memory_event batch[BATCH];
    for (uint32_t done = 0; done < records;) {
        size_t n = 0;
        bool good = true;
        while (good && n < BATCH && done + n < records) {
            good = take_event(d, &batch[n]);
            n += good;
        }
        int r = v->memory_events(ctx, &d->head, batch, n);
        if (r || !good)
            return r ? r : E_CORRUPT;
        done += (uint32_t)n;
    }
    return 0;
}

int memevents_visit(const uint8_t *data, size_t len, uint32_t records,
                    const struct format_visitor *v, void *ctx)
{
    struct decoder d = {0};
    struct cursor c = {data, data + len, false};
    int r = begin(&d, &c);
    if (r == 0)
        r = visit(&d, records, v, ctx);
    free(d.sites);
    free(d.last_size);
    return r;
}
