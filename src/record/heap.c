#include "record/heap.h"

#include "base/err.h"

#include <math.h>

enum {
    LARGE = (1 << HEAP_SIZE_BITS) - 1, /* in a key: the size is in the table of large ones */
    FIRST_BLOCKS = 1 << 12,
    FIRST_LARGE = 1 << 6,
    LARGE_PART = 64, /* a block of such a part of the peak is seen in a curve */
    SITE_BITS = 30,  /* of a block's site; above them, in which halves of the sample it is */
    MAX_SITES = 1 << SITE_BITS,
};

int heap_init(struct heap *h, uint32_t interval, bool log)
{
    *h = (struct heap){.interval = interval};
    h->blocks.key = calloc(FIRST_BLOCKS, sizeof *h->blocks.key);
    h->blocks.site = calloc(FIRST_BLOCKS, sizeof *h->blocks.site);
    h->blocks.size = FIRST_BLOCKS;
    if (log) {
        h->log = calloc(1, sizeof *h->log);
        h->blocks.slot = calloc(FIRST_BLOCKS, sizeof *h->blocks.slot);
    }
    if (!h->blocks.key || !h->blocks.site || !vec_push(&h->nodes) ||
        (log && (!h->log || !h->blocks.slot))) {
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
    vec_release(&h->pieces);
    vec_release(&h->free_wholes);
    idxmap_release(&h->node_map);
    idxmap_release(&h->site_map);
    free(h->blocks.key);
    free(h->blocks.site);
    free(h->blocks.slot);
    if (h->log)
        memlog_release(h->log);
    free(h->log);
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
    if (code == HEAP_BEYOND) /* there is one of a parent, whatever moves in it */
        offset = 0;
    uint64_t key = ((uint64_t)parent << 32 | code) * 0x9e3779b97f4a7c15ull ^ (uint32_t)offset;
    uint32_t hash = hash_u64(key), at;
    IDXMAP_FIND(&h->node_map, hash, i,
                h->nodes.data[i].parent == parent && h->nodes.data[i].code == code &&
                    h->nodes.data[i].offset == offset,
                at);
    if (at == IDXMAP_NONE) {
        if (h->nodes.len >= HEAP_MAX_NODES && code != HEAP_BEYOND)
            return heap_child(h, parent, HEAP_BEYOND, 0);
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
        struct heap_site *s = at < MAX_SITES ? vec_push(&h->sites) : NULL;
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
    struct heap_half_weight half;
};

/* `halves`: those of a sample that the block is in. */
static struct weight weigh(const struct heap *h, uint64_t size, unsigned halves)
{
    if (!h->interval)
        return (struct weight){1, size, 0, {0}};
    const double scale = HEAP_SAMPLE_SCALE;
    double n = (double)size, p = -expm1(-(n > 1 ? n : 1) / h->interval);
    return (struct weight){(uint64_t)(scale / p + 0.5), (uint64_t)(scale * n / p + 0.5),
                           n * n * (1 - p) / (p * p),
                           heap_halves_weigh(halves, size, h->interval, scale)};
}

/* Pages are always told. */
static struct weight weigh_pages(const struct heap *h, uint64_t size)
{
    uint64_t scale = h->interval ? HEAP_SAMPLE_SCALE : 1, bytes = size * scale;
    return (struct weight){scale, bytes, 0, {HEAP_HALVES_BOTH, bytes, 0}};
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

/* More is alive; the site is settled, and its sums say so already. */
static void add_live(struct heap *h, struct heap_site *s, const struct weight *w, uint64_t tick)
{
    s->changed = true;
    s->live_variance += w->variance;
    h->live_count += w->count;
    h->live_bytes += w->bytes;
    if (is_python(s->allocator))
        h->object_bytes += w->bytes;
    if (h->interval) {
        h->live_variance += w->variance;
        heap_halves_add(&h->halves, &w->half);
    }
    if (h->live_bytes > h->peak_bytes) {
        h->peak_bytes = h->live_bytes;
        h->peak_variance = h->live_variance;
        h->peak_half_variance = h->halves.variance;
        h->peak_tick = tick;
        h->peak_number++;
        h->peak_ns = h->log_ns;
        if (h->log)
            h->log->large = h->peak_bytes / LARGE_PART;
    }
}

static void count_allocation(struct heap_site *s, const struct weight *w)
{
    s->sums.count += w->count;
    s->sums.bytes += w->bytes;
    s->sums.variance += w->variance;
}

static void add(struct heap *h, uint32_t site, uint64_t size, const struct weight *w, uint64_t tick)
{
    struct heap_site *s = &h->sites.data[site];
    heap_settle(h, s);
    count_allocation(s, w);
    count_size(h, s->allocator, size, w);
    add_live(h, s, w, tick);
}

/* `whole`: of a block; else of a part of pages, whose rest lives on. */
static void subtract(struct heap *h, uint32_t site, const struct weight *w, bool whole, bool brief)
{
    struct heap_site *s = &h->sites.data[site];
    uint64_t count = whole ? w->count : 0;
    heap_settle(h, s);
    s->changed = true;
    s->sums.freed += count;
    s->sums.freed_bytes += w->bytes;
    s->live_variance = s->live_variance > w->variance ? s->live_variance - w->variance : 0;
    if (brief) {
        s->sums.brief += count;
        s->sums.brief_bytes += w->bytes;
    }
    h->live_count -= count;
    h->live_bytes -= w->bytes;
    if (is_python(s->allocator))
        h->object_bytes -= w->bytes;
    if (h->interval) {
        h->live_variance = fmax(h->live_variance - w->variance, 0);
        heap_halves_subtract(&h->halves, &w->half);
    }
}

double heap_peak_excess(const struct heap *h)
{
    if (h->peak_half_variance <= 0)
        return 0;
    return heap_halves_gain(&h->halves) * h->peak_variance / h->peak_half_variance;
}

/* The excess is known to about a half of itself: between the whole and a half chance may add anything from as the deviations to as their
 * squares, by what the program does around its peak. */
#define EXCESS_ERROR 0.5

struct heap_peak heap_peak_of(const struct heap *h, const struct heap_site *s, double excess)
{
    struct heap_peak peak = {s->peak_count, s->peak_bytes, s->peak_variance};
    double bytes = (double)s->peak_bytes;
    if (excess <= 0 || s->peak_variance <= 0 || h->peak_variance <= 0 || bytes <= 0)
        return peak;
    double error = EXCESS_ERROR * excess / HEAP_SAMPLE_SCALE;
    peak.variance += error * error * s->peak_variance / h->peak_variance;
    double kept = fmax(0, 1 - excess * s->peak_variance / h->peak_variance / bytes);
    peak.count = (uint64_t)((double)s->peak_count * kept + 0.5);
    peak.bytes = (uint64_t)(bytes * kept + 0.5);
    return peak;
}

/* --- events --- */

static bool put_block(struct heap *h, uint32_t site, unsigned halves, uint64_t address,
                      uint64_t size)
{
    struct heap_blocks *b = &h->blocks;
    if ((b->used + 1) * 20 > b->size * 17 && !heap_blocks_grow(b))
        return false;
    if (size >= LARGE && !put_large(h, address >> 3, size))
        return false;
    size_t at = heap_blocks_find(b, address);
    b->key[at] = (address >> 3) << HEAP_SIZE_BITS | (size < LARGE ? size : LARGE);
    b->site[at] = site | halves << SITE_BITS;
    if (b->slot)
        b->slot[at] = memlog_allocate(h->log, site, size, h->log_ns);
    b->used++;
    return true;
}

void heap_free(struct heap *h, uint64_t address, bool brief, struct heap_undo *ret)
{
    struct heap_blocks *b = &h->blocks;
    size_t at = heap_blocks_find(b, address);
    ret->site = UINT32_MAX;
    if (!b->key[at]) {
        h->unknown++;
        return;
    }
    uint64_t size = b->key[at] & LARGE;
    if (size == LARGE)
        size = take_large(h, address >> 3);
    uint32_t site = b->site[at] & (MAX_SITES - 1), halves = b->site[at] >> SITE_BITS;
    if (b->slot)
        memlog_free(h->log, b->slot[at], size, h->log_ns);
    heap_blocks_remove(b, at);
    struct weight w = weigh(h, size, halves);
    subtract(h, site, &w, true, brief);
    *ret = (struct heap_undo){address, size, site, halves, brief};
}

void heap_alloc(struct heap *h, uint32_t site, uint64_t address, uint64_t size, uint64_t tick)
{
    if (h->blocks.key[heap_blocks_find(&h->blocks, address)]) {
        struct heap_undo unused;
        heap_free(h, address, false, &unused);
        h->missed++;
    }
    unsigned halves = h->interval ? heap_halves_draw(&h->halves, size, h->interval) : 0;
    if (!put_block(h, site, halves, address, size)) {
        h->failed = true;
        return;
    }
    struct weight w = weigh(h, size, halves);
    add(h, site, size, &w, tick);
}

/* Is the release among what the next checkpoint will tell? */
static bool is_untold(const struct heap_site *s, const struct weight *w, bool brief)
{
    return s->sums.freed - s->taken.freed >= w->count &&
           s->sums.freed_bytes - s->taken.freed_bytes >= w->bytes &&
           (!brief || (s->sums.brief - s->taken.brief >= w->count &&
                       s->sums.brief_bytes - s->taken.brief_bytes >= w->bytes));
}

void heap_undo(struct heap *h, struct heap_undo *undo, uint64_t tick)
{
    uint32_t site = undo->site;
    undo->site = UINT32_MAX;
    if (site == UINT32_MAX || h->blocks.key[heap_blocks_find(&h->blocks, undo->address)])
        return; /* nothing to undo, or it is somebody else's by now, which cannot be */
    if (!put_block(h, site, undo->halves, undo->address, undo->size)) {
        h->failed = true;
        return;
    }
    struct heap_site *s = &h->sites.data[site];
    struct weight w = weigh(h, undo->size, undo->halves);
    heap_settle(h, s);
    if (is_untold(s, &w, undo->brief)) {
        s->sums.freed -= w.count;
        s->sums.freed_bytes -= w.bytes;
        s->sums.brief -= undo->brief ? w.count : 0;
        s->sums.brief_bytes -= undo->brief ? w.bytes : 0;
    } else { /* a checkpoint has told it and cannot take it back: it is as if allocated anew */
        count_allocation(s, &w);
        count_size(h, s->allocator, undo->size, &w);
    }
    add_live(h, s, &w, tick);
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

/* A part of a range goes; it is still in the list. The last piece of a mapping that goes is the end of it. */
static void cut(struct heap *h, const struct heap_range *r, uint64_t size)
{
    bool all = size == r->end - r->start && h->pieces.data[r->whole] == 1;
    struct weight w = weigh_pages(h, size);
    subtract(h, r->site, &w, all, false);
    if (h->log)
        memlog_shrink(h->log, r->slot, size, all, h->log_ns);
}

/* A number for a mapping, which may come to be in several pieces. */
static bool new_whole(struct heap *h, uint32_t *ret)
{
    if (h->free_wholes.len) {
        *ret = h->free_wholes.data[--h->free_wholes.len];
        return true;
    }
    *ret = (uint32_t)h->pieces.len;
    return vec_push(&h->pieces) != NULL;
}

static void drop_piece(struct heap *h, uint32_t whole)
{
    uint32_t *place = --h->pieces.data[whole] == 0 ? vec_push(&h->free_wholes) : NULL;
    if (place)
        *place = whole;
}

static void remove_range(struct heap *h, size_t at)
{
    drop_piece(h, h->ranges.data[at].whole);
    memmove(h->ranges.data + at, h->ranges.data + at + 1,
            (h->ranges.len - 1 - at) * sizeof *h->ranges.data);
    h->ranges.len--;
}

void heap_unmap(struct heap *h, uint64_t address, uint64_t size, uint64_t tick)
{
    uint64_t end = address + size;
    size_t i = find_range(h, address);
    if (size == 0 || end < address)
        return;
    while (i < h->ranges.len && h->ranges.data[i].start < end) {
        struct heap_range *r = &h->ranges.data[i];
        uint64_t first = max_u64(address, r->start), last = min_u64(end, r->end);
        if (r->tick > tick) {
            i++;
            continue;
        }
        cut(h, r, last - first);
        if (first > r->start && last < r->end) { /* both ends stay */
            struct heap_range rest = *r;
            rest.start = last;
            r->end = first;
            if (insert_range(h, i + 1, rest))
                h->pieces.data[rest.whole]++;
            return;
        }
        if (first > r->start)
            r->end = first;
        else if (last < r->end)
            r->start = last;
        else {
            remove_range(h, i);
            continue;
        }
        i++;
    }
}

void heap_map(struct heap *h, uint32_t site, uint64_t address, uint64_t size, uint64_t tick)
{
    struct heap_range range = {.start = address, .end = address + size, .site = site, .tick = tick};
    if (size == 0 || range.end < address)
        return;
    heap_unmap(h, address, size, UINT64_MAX);
    struct heap_range *r =
        new_whole(h, &range.whole) ? insert_range(h, find_range(h, address), range) : NULL;
    if (!r) {
        h->failed = true;
        return;
    }
    h->pieces.data[r->whole] = 1;
    if (h->log)
        r->slot = memlog_allocate(h->log, site, size, h->log_ns);
    struct weight w = weigh_pages(h, size);
    add(h, site, size, &w, tick);
}

void heap_drop_all(struct heap *h)
{
    struct heap_undo unused;
    for (size_t i = 0; i < h->blocks.size;)
        if (h->blocks.key[i]) /* another may move into its place */
            heap_free(h, h->blocks.key[i] >> HEAP_SIZE_BITS << 3, false, &unused);
        else
            i++;
    while (h->ranges.len) {
        const struct heap_range *r = &h->ranges.data[h->ranges.len - 1];
        heap_unmap(h, r->start, r->end - r->start, UINT64_MAX);
    }
}
