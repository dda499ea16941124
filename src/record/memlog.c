/* Sizes go before the rest of an event, for the rest may end the block. */
#include "record/memlog.h"

#include "base/clock.h"

enum {
    BLOCK_EVENTS = 1 << 16,
    TIMED = 64, /* events for one time … */
    MAX_STREAM = 16 << 20,
};

#define TIMED_NS NS_PER_MS        /* … or so long … */
#define LARGE_NS (10 * NS_PER_US) /* … or, of a block that matters, only so long */

static void open_block(struct memlog *l, uint64_t ns)
{
    if (l->open)
        return;
    l->open = true;
    l->block = (struct memevents_block){.start_ns = ns, .end_ns = ns};
    buf_init(&l->block.symbols, MAX_STREAM);
    buf_init(&l->block.sizes, MAX_STREAM);
    buf_init(&l->block.slots, MAX_STREAM);
    buf_init(&l->block.times, MAX_STREAM);
    l->block_number++;
    l->last_slot = 0;
    l->untimed = 0;
}

static void release_block(struct memevents_block *b)
{
    buf_release(&b->symbols);
    buf_release(&b->sizes);
    buf_release(&b->slots);
    buf_release(&b->times);
}

void memlog_done_release(struct memlog_done *d)
{
    release_block(&d->block);
    free(d->sites);
}

void memlog_release(struct memlog *l)
{
    for (size_t i = 0; i < l->done.len; i++)
        memlog_done_release(&l->done.data[i]);
    release_block(&l->block);
    vec_release(&l->done);
    vec_release(&l->sites);
    vec_release(&l->known);
    vec_release(&l->free_slots);
}

void memlog_finish_block(struct memlog *l)
{
    if (!l->open)
        return;
    l->open = false;
    struct memlog_done *d = vec_push(&l->done);
    if (!d) {
        l->failed = true;
        l->sites.len = 0;
        release_block(&l->block);
        return;
    }
    *d = (struct memlog_done){l->block, l->sites.data, (uint32_t)l->sites.len};
    l->done_bytes += memlog_done_bytes(d);
    memset(&l->sites, 0, sizeof l->sites);
    l->block = (struct memevents_block){0};
}

size_t memlog_done_bytes(const struct memlog_done *d)
{
    return d->block.symbols.len + d->block.sizes.len + d->block.slots.len + d->block.times.len +
           d->site_count * sizeof *d->sites;
}

/* What all events have. Where the time has gone on for long, or not been told for long, it is told before. `size`: of the block. */
static void put(struct memlog *l, uint64_t symbol, uint32_t slot, uint64_t size, uint64_t ns)
{
    struct memevents_block *b = &l->block;
    uint64_t later = ns > b->end_ns ? ns - b->end_ns : 0,
             long_ns = size >= l->large ? LARGE_NS : TIMED_NS;
    if (l->untimed >= TIMED || (l->untimed && later >= long_ns)) {
        buf_put_varint(&b->times, l->untimed);
        buf_put_varint(&b->times, later);
        b->end_ns += later;
        l->untimed = 0;
    }
    l->untimed++;
    buf_put_varint(&b->symbols, symbol);
    buf_put_svarint(&b->slots, (int64_t)slot - (int64_t)l->last_slot);
    l->last_slot = slot;
    l->events++;
    if (++b->count >= BLOCK_EVENTS)
        memlog_finish_block(l);
}

static uint32_t take_slot(struct memlog *l)
{
    if (l->free_slots.len)
        return l->free_slots.data[--l->free_slots.len];
    return l->next_slot < MEMEVENTS_MAX_SLOTS - 1 ? l->next_slot++ : l->next_slot;
}

static void give_slot(struct memlog *l, uint32_t slot)
{
    uint32_t *place = vec_push(&l->free_slots);
    if (place)
        *place = slot;
}

/* The site as the open block knows it. */
static struct memlog_site *site_of(struct memlog *l, uint32_t site)
{
    while (l->known.len <= site)
        if (!vec_push(&l->known))
            return NULL;
    struct memlog_site *s = &l->known.data[site];
    if (s->block != l->block_number) {
        uint32_t *place = vec_push(&l->sites);
        if (!place)
            return NULL;
        *place = site;
        *s = (struct memlog_site){l->block_number, (uint32_t)l->sites.len - 1, 0};
    }
    return s;
}

uint32_t memlog_allocate(struct memlog *l, uint32_t site, uint64_t size, uint64_t ns)
{
    open_block(l, ns);
    uint32_t slot = take_slot(l);
    struct memlog_site *s = site_of(l, site);
    if (!s) {
        l->failed = true;
        return slot;
    }
    buf_put_varint(&l->block.sizes, s->size == size ? 0 : size + 1);
    s->size = size;
    put(l, MEMEVENTS_FIRST_SITE + (uint64_t)s->number, slot, size, ns);
    return slot;
}

void memlog_free(struct memlog *l, uint32_t slot, uint64_t size, uint64_t ns)
{
    open_block(l, ns);
    put(l, MEMEVENTS_FREE, slot, size, ns);
    give_slot(l, slot);
}

void memlog_shrink(struct memlog *l, uint32_t slot, uint64_t size, bool is_last, uint64_t ns)
{
    open_block(l, ns);
    buf_put_varint(&l->block.sizes, size);
    put(l, MEMEVENTS_SHRINK, slot, size, ns);
    if (is_last)
        give_slot(l, slot);
}
