#include "record/heap.h"

#include "base/err.h"

#include <math.h>

enum {
    SIZE_BITS = 19,
    LARGE = (1 << SIZE_BITS) - 1, /* in a key: the size is in the table of large ones */
    FIRST_BLOCKS = 1 << 12,
    FIRST_LARGE = 1 << 6,
};

int heap_init(struct heap *h, uint32_t interval)
{
    *h = (struct heap){.interval = interval};
    h->blocks.key = calloc(FIRST_BLOCKS, sizeof *h->blocks.key);
    h->blocks.site = calloc(FIRST_BLOCKS, sizeof *h->blocks.site);
    h->blocks.mask = FIRST_BLOCKS - 1;
    if (!h->blocks.key || !h->blocks.site || !vec_push(&h->nodes)) {
        heap_release(h);
        return E_NOMEM;
    }
    return 0;
}

void heap_release(struct heap *h)
{
    vec_release(&h->nodes);
    vec_release(&h->sites);
    vec_release(&h->large);
    vec_release(&h->ranges);
    idxmap_release(&h->node_map);
    idxmap_release(&h->site_map);
    free(h->blocks.key);
    free(h->blocks.site);
    *h = (struct heap){0};
}

/* --- stacks and sites --- */

uint32_t heap_child(struct heap *h, uint32_t parent, uint32_t code, int32_t offset)
{
    uint32_t last = h->nodes.data[parent].last_child;
    if (last && h->nodes.data[last].code == code && h->nodes.data[last].offset == offset)
        return last;
    if (h->nodes.data[parent].code == HEAP_BEYOND)
        return parent;
    if (h->nodes.len >= HEAP_MAX_NODES && code != HEAP_BEYOND)
        return heap_child(h, parent, HEAP_BEYOND, 0);
    uint64_t key = ((uint64_t)parent << 32 | code) * 0x9e3779b97f4a7c15ull ^ (uint32_t)offset;
    uint32_t hash = hash_u64(key), at;
    IDXMAP_FIND(&h->node_map, hash, i,
                h->nodes.data[i].parent == parent && h->nodes.data[i].code == code &&
                    h->nodes.data[i].offset == offset,
                at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)h->nodes.len;
        struct heap_node *n = vec_push(&h->nodes);
        if (!n || idxmap_insert(&h->node_map, hash, at) < 0) {
            h->failed = true;
            return parent;
        }
        *n = (struct heap_node){.parent = parent, .code = code, .offset = offset};
    }
    h->nodes.data[parent].last_child = at;
    return at;
}

uint32_t heap_site(struct heap *h, uint32_t node, uint32_t thread, uint32_t allocator)
{
    uint32_t last = h->nodes.data[node].last_site;
    if (last && h->sites.data[last - 1].thread == thread &&
        h->sites.data[last - 1].allocator == allocator)
        return last - 1;
    uint64_t key = (uint64_t)node << 32 | (uint64_t)thread << 5 | allocator;
    uint32_t hash = hash_u64(key), at;
    IDXMAP_FIND(&h->site_map, hash, i,
                h->sites.data[i].node == node && h->sites.data[i].thread == thread &&
                    h->sites.data[i].allocator == allocator,
                at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)h->sites.len;
        struct heap_site *s = vec_push(&h->sites);
        if (!s || idxmap_insert(&h->site_map, hash, at) < 0) {
            h->failed = true;
            return UINT32_MAX;
        }
        *s = (struct heap_site){
            .node = node, .thread = thread, .allocator = allocator, .group = UINT32_MAX};
    }
    h->nodes.data[node].last_site = at + 1;
    return at;
}

/* --- blocks: an open table, searched forward, closed up behind what is taken out --- */

static size_t home_of(const struct heap_blocks *b, uint64_t key)
{
    return (size_t)((key >> SIZE_BITS) * 0x9e3779b97f4a7c15ull >> 20) & b->mask;
}

static size_t find_block(const struct heap_blocks *b, uint64_t address)
{
    uint64_t want = address >> 3;
    size_t i = home_of(b, want << SIZE_BITS);
    while (b->key[i] && b->key[i] >> SIZE_BITS != want)
        i = (i + 1) & b->mask;
    return i;
}

static bool grow_blocks(struct heap_blocks *b)
{
    struct heap_blocks bigger = {.mask = b->mask * 2 + 1, .used = b->used};
    bigger.key = calloc(bigger.mask + 1, sizeof *bigger.key);
    bigger.site = malloc((bigger.mask + 1) * sizeof *bigger.site);
    if (!bigger.key || !bigger.site) {
        free(bigger.key);
        free(bigger.site);
        return false;
    }
    for (size_t i = 0; i <= b->mask; i++) {
        if (!b->key[i])
            continue;
        size_t at = home_of(&bigger, b->key[i]);
        while (bigger.key[at])
            at = (at + 1) & bigger.mask;
        bigger.key[at] = b->key[i];
        bigger.site[at] = b->site[i];
    }
    free(b->key);
    free(b->site);
    *b = bigger;
    return true;
}

static void take_out(struct heap_blocks *b, size_t hole)
{
    size_t i = hole;
    for (;;) {
        i = (i + 1) & b->mask;
        if (!b->key[i])
            break;
        /* may it move into the hole? Only if its home is not between the two */
        size_t home = home_of(b, b->key[i]);
        if (((i - home) & b->mask) >= ((i - hole) & b->mask)) {
            b->key[hole] = b->key[i];
            b->site[hole] = b->site[i];
            hole = i;
        }
    }
    b->key[hole] = 0;
    b->used--;
}

/* --- sizes that do not fit; a small table of the same kind --- */

static size_t find_large(const struct heap *h, uint64_t address)
{
    size_t mask = h->large.len - 1, i = hash_u64(address) & mask;
    while (h->large.data[i].address && h->large.data[i].address != address)
        i = (i + 1) & mask;
    return i;
}

static bool put_large(struct heap *h, uint64_t address, uint64_t size)
{
    if ((h->large_used + 1) * 4 > h->large.len * 3) {
        struct heap old = {.large = {h->large.data, h->large.len, h->large.cap}};
        size_t len = h->large.len ? h->large.len * 2 : FIRST_LARGE;
        struct heap_large *data = calloc(len, sizeof *data);
        if (!data)
            return false;
        h->large.data = data;
        h->large.len = h->large.cap = len;
        for (size_t i = 0; i < old.large.len; i++)
            if (old.large.data[i].address)
                data[find_large(h, old.large.data[i].address)] = old.large.data[i];
        vec_release(&old.large);
    }
    size_t at = find_large(h, address);
    h->large_used += !h->large.data[at].address;
    h->large.data[at] = (struct heap_large){address, size};
    return true;
}

static uint64_t take_large(struct heap *h, uint64_t address)
{
    if (!h->large.len)
        return 0;
    size_t mask = h->large.len - 1, hole = find_large(h, address), i = hole;
    uint64_t size = h->large.data[hole].size;
    if (!h->large.data[hole].address)
        return 0;
    for (;;) {
        i = (i + 1) & mask;
        if (!h->large.data[i].address)
            break;
        size_t home = hash_u64(h->large.data[i].address) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            h->large.data[hole] = h->large.data[i];
            hole = i;
        }
    }
    h->large.data[hole] = (struct heap_large){0};
    h->large_used--;
    return size;
}

/* --- sums --- */

void heap_settle(const struct heap *h, struct heap_site *s)
{
    if (s->peak_number == h->peak_number)
        return;
    s->peak_number = h->peak_number;
    s->peak_count = s->sums.count - s->sums.freed;
    s->peak_bytes = s->sums.bytes - s->sums.freed_bytes;
    s->peak_variance = s->live_variance;
}

/* What a block stands for. One that was chosen with the chance p stands for 1/p of its kind. */
struct weight {
    uint64_t count, bytes;
    double variance;
};

static struct weight weigh(const struct heap *h, uint64_t size, bool pages)
{
    if (!h->interval)
        return (struct weight){1, size, 0};
    const double scale = HEAP_SAMPLE_SCALE;
    double n = (double)size;
    double p = pages ? 1 : -expm1(-(n > 1 ? n : 1) / h->interval);
    return (struct weight){(uint64_t)(scale / p + 0.5), (uint64_t)(scale * n / p + 0.5),
                           n * n * (1 - p) / (p * p)};
}

static bool is_python(uint32_t allocator)
{
    return allocator >= RECORD_ALLOCATOR_PYTHON_RAW;
}

static void count_size(struct heap *h, uint32_t allocator, uint64_t size, const struct weight *w)
{
    unsigned bin = size > 1 ? 63 - (unsigned)__builtin_clzll(size) : 0;
    if (bin >= HEAP_BINS)
        bin = HEAP_BINS - 1;
    h->bins[allocator][bin][0] += w->count;
    h->bins[allocator][bin][1] += w->bytes;
}

static void add(struct heap *h, uint32_t site, uint64_t size, uint64_t tick, bool pages)
{
    struct heap_site *s = &h->sites.data[site];
    struct weight w = weigh(h, size, pages);
    heap_settle(h, s);
    s->changed = true;
    s->sums.count += w.count;
    s->sums.bytes += w.bytes;
    s->sums.variance += w.variance;
    s->live_variance += w.variance;
    count_size(h, s->allocator, size, &w);
    h->live_count += w.count;
    h->live_bytes += w.bytes;
    if (is_python(s->allocator))
        h->object_bytes += w.bytes;
    if (h->live_bytes > h->peak_bytes) {
        h->peak_bytes = h->live_bytes;
        h->peak_tick = tick;
        h->peak_number++;
    }
}

/* `whole`: of a block; else of a part of pages, whose rest lives on. */
static void subtract(struct heap *h, uint32_t site, uint64_t size, bool whole, bool brief,
                     bool pages)
{
    struct heap_site *s = &h->sites.data[site];
    struct weight w = weigh(h, size, pages);
    uint64_t count = whole ? w.count : 0;
    heap_settle(h, s);
    s->changed = true;
    s->sums.freed += count;
    s->sums.freed_bytes += w.bytes;
    s->live_variance = s->live_variance > w.variance ? s->live_variance - w.variance : 0;
    if (brief) {
        s->sums.brief += count;
        s->sums.brief_bytes += w.bytes;
    }
    h->live_count -= count;
    h->live_bytes -= w.bytes;
    if (is_python(s->allocator))
        h->object_bytes -= w.bytes;
}

/* --- events --- */

static bool put_block(struct heap *h, uint32_t site, uint64_t address, uint64_t size)
{
    struct heap_blocks *b = &h->blocks;
    if ((b->used + 1) * 8 > (b->mask + 1) * 7 && !grow_blocks(b))
        return false;
    if (size >= LARGE && !put_large(h, address >> 3, size))
        return false;
    size_t at = find_block(b, address);
    b->key[at] = (address >> 3) << SIZE_BITS | (size < LARGE ? size : LARGE);
    b->site[at] = site;
    b->used++;
    return true;
}

void heap_free(struct heap *h, uint64_t address, bool brief, struct heap_undo *ret)
{
    struct heap_blocks *b = &h->blocks;
    size_t at = find_block(b, address);
    ret->site = UINT32_MAX;
    if (!b->key[at]) {
        h->unknown++;
        return;
    }
    uint64_t size = b->key[at] & LARGE;
    if (size == LARGE)
        size = take_large(h, address >> 3);
    uint32_t site = b->site[at];
    take_out(b, at);
    subtract(h, site, size, true, brief, false);
    *ret = (struct heap_undo){address, size, site, brief};
}

void heap_alloc(struct heap *h, uint32_t site, uint64_t address, uint64_t size, uint64_t tick)
{
    if (h->blocks.key[find_block(&h->blocks, address)]) {
        struct heap_undo unused;
        heap_free(h, address, false, &unused);
        h->missed++;
    }
    if (!put_block(h, site, address, size)) {
        h->failed = true;
        return;
    }
    add(h, site, size, tick, false);
}

void heap_undo(struct heap *h, struct heap_undo *undo)
{
    if (undo->site == UINT32_MAX || !put_block(h, undo->site, undo->address, undo->size))
        return;
    struct heap_site *s = &h->sites.data[undo->site];
    struct weight w = weigh(h, undo->size, false);
    heap_settle(h, s);
    s->sums.freed -= w.count;
    s->sums.freed_bytes -= w.bytes;
    s->live_variance += w.variance;
    if (undo->brief) {
        s->sums.brief -= w.count;
        s->sums.brief_bytes -= w.bytes;
    }
    h->live_count += w.count;
    h->live_bytes += w.bytes;
    if (is_python(s->allocator))
        h->object_bytes += w.bytes;
    undo->site = UINT32_MAX;
}

/* The first range that ends after the address. */
static size_t find_range(const struct heap *h, uint64_t address)
{
    size_t low = 0, high = h->ranges.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (h->ranges.data[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct heap_range *insert_range(struct heap *h, size_t at, struct heap_range range)
{
    if (!vec_push(&h->ranges)) {
        h->failed = true;
        return NULL;
    }
    struct heap_range *place = &h->ranges.data[at];
    memmove(place + 1, place, (h->ranges.len - 1 - at) * sizeof *place);
    *place = range;
    return place;
}

void heap_unmap(struct heap *h, uint64_t address, uint64_t size)
{
    uint64_t end = address + size;
    size_t first = find_range(h, address), i = first;
    if (size == 0 || end < address)
        return;
    if (i < h->ranges.len && h->ranges.data[i].start < address) { /* its beginning stays */
        struct heap_range *r = &h->ranges.data[i];
        struct heap_range rest = {end, r->end, r->site};
        subtract(h, r->site, min_u64(end, r->end) - address, false, false, true);
        r->end = address;
        i = ++first;
        if (rest.start < rest.end) { /* and so does its end */
            insert_range(h, i, rest);
            return;
        }
    }
    for (; i < h->ranges.len && h->ranges.data[i].end <= end; i++)
        subtract(h, h->ranges.data[i].site, h->ranges.data[i].end - h->ranges.data[i].start, true,
                 false, true);
    if (i < h->ranges.len && h->ranges.data[i].start < end) { /* the end of the last one stays */
        subtract(h, h->ranges.data[i].site, end - h->ranges.data[i].start, false, false, true);
        h->ranges.data[i].start = end;
    }
    memmove(h->ranges.data + first, h->ranges.data + i,
            (h->ranges.len - i) * sizeof *h->ranges.data);
    h->ranges.len -= i - first;
}

void heap_map(struct heap *h, uint32_t site, uint64_t address, uint64_t size, uint64_t tick)
{
    if (size == 0 || address + size < address)
        return;
    heap_unmap(h, address, size);
    if (insert_range(h, find_range(h, address), (struct heap_range){address, address + size, site}))
        add(h, site, size, tick, true);
}
