/* The memory of one process against a model that is too simple to be wrong: a list of blocks, a list of pages, and a copy of
 * everything at every new high-water mark. After each event of long random sequences both must say the same. */
#include "record/heap.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAGE 4096ull

enum {
    SITES = 12,
    BLOCKS = 96, /* addresses that are used again and again */
    PAGES = 64,
    STEPS = 20000,
    SEEDS = 8,
    LARGE_BYTES = 512 << 10, /* from about here on a size does not fit beside the address */
};
#define BLOCK_BASE 0x7f0000001000ull
#define PAGE_BASE  0x7fff00000000ull

static uint64_t dice;

static uint64_t roll(uint64_t sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (dice >> 11) % sides;
}

/* --- the model --- */

struct tally {
    uint64_t count, bytes, freed, freed_bytes, brief, brief_bytes;
    uint64_t peak_count, peak_bytes;
};

struct release {
    bool can; /* be undone */
    unsigned at;
    uint32_t site;
    uint64_t size;
    bool brief;
};

struct model {
    struct {
        bool alive;
        uint32_t site;
        uint64_t size;
    } block[BLOCKS];
    uint32_t page[PAGES]; /* number of the mapping it belongs to; 0: none */
    uint32_t mapping_site[STEPS + 1], mappings;
    struct tally site[SITES];
    uint64_t live_count, live_bytes, peak_bytes, peak_tick;
    uint64_t unknown, missed;
    struct release undo; /* the last one */
};

static void model_peak(struct model *m, uint64_t tick)
{
    if (m->live_bytes <= m->peak_bytes)
        return;
    m->peak_bytes = m->live_bytes;
    m->peak_tick = tick;
    for (int i = 0; i < SITES; i++) {
        m->site[i].peak_count = m->site[i].count - m->site[i].freed;
        m->site[i].peak_bytes = m->site[i].bytes - m->site[i].freed_bytes;
    }
}

static void model_add(struct model *m, uint32_t site, uint64_t size, uint64_t tick)
{
    m->site[site].count++;
    m->site[site].bytes += size;
    m->live_count++;
    m->live_bytes += size;
    model_peak(m, tick);
}

static void model_free(struct model *m, unsigned at, bool brief)
{
    m->undo.can = m->block[at].alive;
    if (!m->block[at].alive) {
        m->unknown++;
        return;
    }
    uint64_t size = m->block[at].size;
    struct tally *t = &m->site[m->block[at].site];
    m->undo = (struct release){true, at, m->block[at].site, size, brief};
    m->block[at].alive = false;
    t->freed++;
    t->freed_bytes += size;
    t->brief += brief;
    t->brief_bytes += brief ? size : 0;
    m->live_count--;
    m->live_bytes -= size;
}

static void model_alloc(struct model *m, uint32_t site, unsigned at, uint64_t size, uint64_t tick)
{
    if (m->block[at].alive) {
        struct release before = m->undo; /* this one is nobody's to undo */
        model_free(m, at, false);
        m->undo = before;
        m->missed++;
    }
    m->block[at].alive = true;
    m->block[at].site = site;
    m->block[at].size = size;
    model_add(m, site, size, tick);
}

static void model_undo(struct model *m, uint64_t tick)
{
    bool can = m->undo.can && !m->block[m->undo.at].alive;
    m->undo.can = false;
    if (!can)
        return;
    struct tally *t = &m->site[m->undo.site];
    m->block[m->undo.at].alive = true;
    m->block[m->undo.at].site = m->undo.site;
    m->block[m->undo.at].size = m->undo.size;
    t->freed--;
    t->freed_bytes -= m->undo.size;
    t->brief -= m->undo.brief;
    t->brief_bytes -= m->undo.brief ? m->undo.size : 0;
    m->live_count++;
    m->live_bytes += m->undo.size;
    model_peak(m, tick);
}

static void model_unmap(struct model *m, unsigned first, unsigned pages)
{
    for (unsigned i = first; i < first + pages; i++) {
        uint32_t mapping = m->page[i], left = 0;
        if (!mapping)
            continue;
        struct tally *t = &m->site[m->mapping_site[mapping]];
        m->page[i] = 0;
        t->freed_bytes += PAGE;
        m->live_bytes -= PAGE;
        for (unsigned k = 0; k < PAGES; k++)
            left += m->page[k] == mapping;
        t->freed += !left;
        m->live_count -= !left;
    }
}

static void model_map(struct model *m, uint32_t site, unsigned first, unsigned pages, uint64_t tick)
{
    model_unmap(m, first, pages);
    m->mapping_site[++m->mappings] = site;
    for (unsigned i = first; i < first + pages; i++)
        m->page[i] = m->mappings;
    model_add(m, site, (uint64_t)pages * PAGE, tick);
}

/* --- both --- */

static struct model model;
static struct heap heap;
static struct heap_undo undo;
static uint32_t sites[SITES];

static void begin(uint64_t seed, bool log)
{
    dice = seed * 0x9e3779b97f4a7c15ull + 1;
    model = (struct model){0};
    undo.site = UINT32_MAX;
    assert_int_equal(heap_init(&heap, 0, log), 0);
    for (uint32_t i = 0; i < SITES; i++) {
        uint32_t node = heap_child(&heap, i % 3 ? heap_child(&heap, 0, 7, 2) : 0, i / 2 + 1, 4);
        sites[i] = heap_site(&heap, node, i % 2,
                             i % 2 ? RECORD_ALLOCATOR_MALLOC : RECORD_ALLOCATOR_PYTHON_OBJECT);
        assert_int_equal(sites[i], i);
    }
}

static void compare(void)
{
    uint64_t objects = 0;
    assert_int_equal(heap.live_count, model.live_count);
    assert_int_equal(heap.live_bytes, model.live_bytes);
    assert_int_equal(heap.peak_bytes, model.peak_bytes);
    assert_int_equal(heap.peak_tick, model.peak_tick);
    assert_int_equal(heap.unknown, model.unknown);
    assert_int_equal(heap.missed, model.missed);
    for (uint32_t i = 0; i < SITES; i++) {
        struct heap_site s = heap.sites.data[i]; /* a copy: to settle it would change the test */
        const struct tally *t = &model.site[i];
        heap_settle(&heap, &s);
        assert_int_equal(s.sums.count, t->count);
        assert_int_equal(s.sums.bytes, t->bytes);
        assert_int_equal(s.sums.freed, t->freed);
        assert_int_equal(s.sums.freed_bytes, t->freed_bytes);
        assert_int_equal(s.sums.brief, t->brief);
        assert_int_equal(s.sums.brief_bytes, t->brief_bytes);
        assert_int_equal(s.peak_count, t->peak_count);
        assert_int_equal(s.peak_bytes, t->peak_bytes);
        if (s.allocator >= RECORD_ALLOCATOR_PYTHON_RAW)
            objects += t->bytes - t->freed_bytes;
    }
    assert_int_equal(heap.object_bytes, objects);
}

static uint64_t some_size(void)
{
    switch (roll(8)) {
    case 0:
        return LARGE_BYTES - 2 + roll(4); /* around the limit */
    case 1:
        return LARGE_BYTES + roll(1ull << 40);
    case 2:
        return roll(2);
    default:
        return roll(4096);
    }
}

static void step(uint64_t tick)
{
    unsigned at = (unsigned)roll(BLOCKS), first = (unsigned)roll(PAGES);
    unsigned pages = 1 + (unsigned)roll(PAGES - first);
    uint32_t site = (uint32_t)roll(SITES);
    uint64_t address = BLOCK_BASE + at * 8ull, size = some_size(), kind = roll(20);
    if (kind < 8) {
        model_alloc(&model, site, at, size, tick);
        heap_alloc(&heap, site, address, size, tick);
    } else if (kind < 15) {
        bool brief = roll(4) == 0;
        model_free(&model, at, brief);
        heap_free(&heap, address, brief, &undo);
    } else if (kind < 16) {
        model_undo(&model, tick);
        heap_undo(&heap, &undo, tick);
    } else if (kind < 18) {
        model_map(&model, site, first, pages, tick);
        heap_map(&heap, site, PAGE_BASE + first * PAGE, (uint64_t)pages * PAGE, tick);
    } else {
        model_unmap(&model, first, pages);
        heap_unmap(&heap, PAGE_BASE + first * PAGE, (uint64_t)pages * PAGE, tick);
    }
}

static void test_as_the_model(void **state ATTR_UNUSED)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed, seed % 2);
        for (uint64_t i = 1; i <= STEPS; i++) {
            step(i);
            compare();
        }
        assert_false(heap.failed);
        heap_release(&heap);
    }
}

/* More blocks than the table begins with, given back in another order. */
static void test_many_blocks(void **state ATTR_UNUSED)
{
    enum { MANY = 200000, STRIDE = 7919 }; /* coprime */
    begin(1, true);
    for (uint64_t i = 0; i < MANY; i++)
        heap_alloc(&heap, sites[i % SITES], BLOCK_BASE + 16 * i,
                   i % 64 ? i % 1024 : LARGE_BYTES + i, i);
    assert_int_equal(heap.live_count, MANY);
    for (uint64_t i = 0; i < MANY; i++)
        heap_free(&heap, BLOCK_BASE + 16 * (i * STRIDE % MANY), false, &undo);
    assert_int_equal(heap.live_count, 0);
    assert_int_equal(heap.live_bytes, 0);
    assert_int_equal(heap.blocks.used, 0);
    assert_int_equal(heap.large_used, 0);
    assert_int_equal(heap.unknown + heap.missed, 0);
    heap_release(&heap);
}

/* --- pages, one case at a time --- */

static void map(uint32_t site, unsigned first, unsigned pages)
{
    heap_map(&heap, site, PAGE_BASE + first * PAGE, (uint64_t)pages * PAGE, 1);
}

static void unmap(unsigned first, unsigned pages)
{
    heap_unmap(&heap, PAGE_BASE + first * PAGE, (uint64_t)pages * PAGE, 1);
}

/* A mapping in two pieces is one until both are gone, also with another in the gap. */
static void test_gap(void **state ATTR_UNUSED)
{
    begin(1, false);
    map(0, 0, 10);
    unmap(4, 2);
    assert_int_equal(heap.live_count, 1);
    assert_int_equal(heap.live_bytes, 8 * PAGE);
    map(1, 4, 2);
    assert_int_equal(heap.live_count, 2);
    assert_int_equal(heap.ranges.len, 3);
    unmap(0, 5); /* the left piece, and half of the other */
    assert_int_equal(heap.live_count, 2);
    assert_int_equal(heap.sites.data[0].sums.freed, 0);
    unmap(6, 4);
    assert_int_equal(heap.sites.data[0].sums.freed, 1);
    assert_int_equal(heap.live_count, 1);
    unmap(0, PAGES);
    assert_int_equal(heap.sites.data[1].sums.freed, 1);
    assert_int_equal(heap.live_bytes, 0);
    assert_int_equal(heap.ranges.len, 0);
    heap_release(&heap);
}

/* MAP_FIXED: what was there is gone, whole or in part. */
static void test_fixed(void **state ATTR_UNUSED)
{
    begin(1, false);
    map(0, 0, 4);
    map(1, 8, 4);
    map(2, 2, 8);
    assert_int_equal(heap.live_count, 3);
    assert_int_equal(heap.live_bytes, 12 * PAGE);
    map(3, 0, PAGES);
    assert_int_equal(heap.live_count, 1);
    assert_int_equal(heap.live_bytes, PAGES * PAGE);
    assert_int_equal(heap.ranges.len, 1);
    heap_release(&heap);
}

/* munmap tells after it is done, with the time before: another thread may have the address by then, and have said so. */
static void test_late_unmap(void **state ATTR_UNUSED)
{
    begin(1, false);
    heap_map(&heap, 0, PAGE_BASE, 8 * PAGE, 10);
    heap_map(&heap, 1, PAGE_BASE + 2 * PAGE, 2 * PAGE, 30);
    heap_unmap(&heap, PAGE_BASE, 8 * PAGE, 20);
    assert_int_equal(heap.sites.data[0].sums.freed, 1);
    assert_int_equal(heap.live_count, 1);
    assert_int_equal(heap.live_bytes, 2 * PAGE);
    heap_unmap(&heap, PAGE_BASE, 8 * PAGE, 40);
    assert_int_equal(heap.live_bytes, 0);
    heap_release(&heap);
}

/* Sizes and places at the end of all addresses, which only a scribbling program tells. */
static void test_odd_ranges(void **state ATTR_UNUSED)
{
    begin(1, true);
    heap_map(&heap, 0, 0, 0, 1);
    heap_map(&heap, 0, UINT64_MAX - 5, 100, 1);
    heap_unmap(&heap, UINT64_MAX - 5, 100, 1);
    heap_unmap(&heap, 0, 0, 1);
    assert_int_equal(heap.live_count, 0);
    heap_map(&heap, 0, 0, UINT64_MAX, 1);
    heap_unmap(&heap, 0, UINT64_MAX, 1);
    assert_int_equal(heap.live_bytes, 0);
    heap_release(&heap);
}

/* --- what is undone --- */

/* A block that was never away was there at the high-water mark that came meanwhile. */
static void test_undo_is_in_the_peak(void **state ATTR_UNUSED)
{
    begin(1, false);
    heap_alloc(&heap, 0, BLOCK_BASE, 100, 1);
    heap_free(&heap, BLOCK_BASE, false, &undo);
    heap_alloc(&heap, 1, BLOCK_BASE + 64, 60, 2);
    heap_undo(&heap, &undo, 3);
    assert_int_equal(heap.peak_bytes, 160);
    assert_int_equal(heap.peak_tick, 3);
    heap_release(&heap);
}

/* Only a program that writes what it likes gives the address to somebody else meanwhile: no block is counted twice. */
static void test_undo_of_what_is_taken(void **state ATTR_UNUSED)
{
    begin(1, false);
    for (uint64_t i = 0; i < 100; i++) {
        heap_alloc(&heap, 0, BLOCK_BASE, LARGE_BYTES + i, i);
        heap_free(&heap, BLOCK_BASE, false, &undo);
        heap_alloc(&heap, 1, BLOCK_BASE, 5, i);
        heap_undo(&heap, &undo, i);
        heap_undo(&heap, &undo, i);
        assert_int_equal(heap.blocks.used, 1);
        assert_int_equal(heap.large_used, 0);
        assert_int_equal(heap.live_bytes, 5);
    }
    heap_release(&heap);
}

/* --- stacks --- */

static void test_nodes_are_capped(void **state ATTR_UNUSED)
{
    begin(1, false);
    uint32_t known = heap_child(&heap, 0, 1000, 1), leaf = heap_child(&heap, known, 1001, 1);
    uint32_t code = 2000;
    while (heap.nodes.len < HEAP_MAX_NODES)
        heap_child(&heap, 0, code++, 0);
    /* what is known stays known, whoever was asked for last */
    assert_int_equal(heap_child(&heap, 0, 1000, 1), known);
    heap_child(&heap, known, 1002, 1);
    assert_int_equal(heap_child(&heap, known, 1001, 1), leaf);
    /* what is not is one place below its known part, at every depth and instruction */
    uint32_t beyond = heap_child(&heap, known, 1002, 1);
    assert_int_equal(heap.nodes.data[beyond].code, HEAP_BEYOND);
    assert_int_equal(heap.nodes.data[beyond].parent, known);
    size_t nodes = heap.nodes.len;
    for (int32_t i = 0; i < 1000; i++) {
        assert_int_equal(heap_child(&heap, known, 1003, i), beyond);
        assert_int_equal(heap_child(&heap, known, HEAP_BEYOND, i), beyond);
        assert_int_equal(heap_child(&heap, beyond, 1004, i), beyond);
    }
    assert_int_equal(heap.nodes.len, nodes);
    assert_false(heap.failed);
    uint32_t site = heap_site(&heap, beyond, 0, RECORD_ALLOCATOR_MALLOC);
    heap_alloc(&heap, site, BLOCK_BASE, 77, 1);
    assert_int_equal(heap.sites.data[site].sums.bytes, 77);
    heap_release(&heap);
}

/* --- sampling --- */

/* Blocks are chosen with the chance that the weights presume; then sums are right on average, and as uncertain as they
 * say. With the seed, five deviations are no matter of luck. */
static void test_sampled_sums(void **state ATTR_UNUSED)
{
    enum { INTERVAL = 128 << 10, EVENTS = 400000, ALIVE = 20000 };
    static const uint64_t some[] = {1, 48, 500, 9000, 200000, 5 << 20};
    begin(1, false);
    heap.interval = INTERVAL;
    double truth = 0, truth_live = 0;
    for (uint64_t i = 0; i < EVENTS; i++) {
        uint64_t size = some[roll(ARRAY_LEN(some))], address = BLOCK_BASE + 16 * i;
        bool chosen = (double)roll(1ull << 52) / 0x1p52 < -expm1(-(double)size / INTERVAL);
        truth += (double)size;
        truth_live += i >= EVENTS - ALIVE ? (double)size : 0;
        if (chosen)
            heap_alloc(&heap, 0, address, size, i);
        if (chosen && i < EVENTS - ALIVE)
            heap_free(&heap, address, false, &undo);
    }
    const struct heap_site *s = &heap.sites.data[0];
    double all = (double)s->sums.bytes / HEAP_SAMPLE_SCALE;
    double live = (double)heap.live_bytes / HEAP_SAMPLE_SCALE;
    assert_true(fabs(all - truth) < 5 * sqrt(s->sums.variance));
    assert_true(fabs(live - truth_live) < 5 * sqrt(s->live_variance));
    assert_true(sqrt(s->sums.variance) < truth / 100);
    assert_int_equal(s->sums.bytes - s->sums.freed_bytes, heap.live_bytes);
    heap_release(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_model),
        cmocka_unit_test(test_many_blocks),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_late_unmap),
        cmocka_unit_test(test_odd_ranges),
        cmocka_unit_test(test_undo_is_in_the_peak),
        cmocka_unit_test(test_undo_of_what_is_taken),
        cmocka_unit_test(test_nodes_are_capped),
        cmocka_unit_test(test_sampled_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
