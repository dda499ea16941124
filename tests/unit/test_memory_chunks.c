/* Memory's two chunks, ALLOCATIONS and MEMORY_EVENTS: there and back, and refused wherever they are cut or say what cannot be. */
#include "base/err.h"
#include "format/memevents.h"
#include "format/memory.h"
#include "record/memlog.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_SEEN = 256 };

/* --- ALLOCATIONS --- */

struct seen {
    struct record_memory memory;
    struct record_sizes sizes[MAX_SEEN];
    struct record_site sites[MAX_SEEN];
    size_t size_count, site_count;
};

static int on_memory(void *ctx, const struct record_memory *m)
{
    ((struct seen *)ctx)->memory = *m;
    return 0;
}

static int on_sizes(void *ctx, const struct record_memory *m ATTR_UNUSED,
                    const struct record_sizes *s)
{
    struct seen *seen = ctx;
    assert_true(seen->size_count < MAX_SEEN);
    seen->sizes[seen->size_count++] = *s;
    return 0;
}

static int on_site(void *ctx, const struct record_memory *m ATTR_UNUSED,
                   const struct record_site *s)
{
    struct seen *seen = ctx;
    assert_true(seen->site_count < MAX_SEEN);
    seen->sites[seen->site_count++] = *s;
    return 0;
}

static const struct format_visitor MEMORY = {
    .memory = on_memory, .sizes = on_sizes, .site = on_site};

static const struct record_sizes SIZES[] = {{RECORD_ALLOCATOR_MALLOC, 0, 1, 0},
                                            {RECORD_MAX_ALLOCATORS - 1, 63, UINT64_MAX, 7}};
/* In no order, so that ids go down as well; each group of fields there and not. */
static const struct record_site SITES[] = {
    {.thread = 5, .stack = 9, .allocator = 12, .count = 1, .bytes = UINT64_MAX},
    {.thread = 1, .stack = 0, .allocator = 31, .freed = 3, .freed_bytes = 9},
    {.thread = 1, .stack = FORMAT_MAX_IDS - 1, .brief = 2, .brief_bytes = 4, .freed_bytes = 1},
    {.thread = FORMAT_MAX_IDS - 1, .stack = 2, .peak_count = 0, .peak_bytes = 8},
};

static void assert_site(const struct record_site *a, const struct record_site *b, bool sampled)
{
    assert_int_equal(a->thread, b->thread);
    assert_int_equal(a->stack, b->stack);
    assert_int_equal(a->allocator, b->allocator);
    assert_memory_equal(&a->count, &b->count,
                        offsetof(struct record_site, variance) -
                            offsetof(struct record_site, count));
    assert_true(a->variance == (sampled ? b->variance : 0));
    assert_true(a->live_variance == (sampled ? b->live_variance : 0));
    assert_true(a->peak_variance == (sampled ? b->peak_variance : 0));
}

static void round_trip(bool sampled)
{
    static struct seen seen, other;
    struct record_memory m = {.process = 3,
                              .flags = sampled ? RECORD_MEMORY_SAMPLED : RECORD_MEMORY_MARK,
                              .time_ns = 1,
                              .live_bytes = UINT64_MAX,
                              .peak_bytes = 5,
                              .peak_ns = 7};
    struct record_site sites[ARRAY_LEN(SITES)];
    uint32_t records = ARRAY_LEN(SIZES) + ARRAY_LEN(SITES);
    struct buf b;
    memcpy(sites, SITES, sizeof sites);
    for (size_t i = 0; i < ARRAY_LEN(sites); i++) {
        sites[i].variance = (double)i * 1e300;
        sites[i].live_variance = 0.5;
        sites[i].peak_variance = (double)i;
    }
    buf_init(&b, 1 << 20);
    memory_put(&b, &m, SIZES, ARRAY_LEN(SIZES), sites, ARRAY_LEN(sites));
    seen = (struct seen){0};
    assert_int_equal(memory_visit(b.data, b.len, records, &MEMORY, &seen), 0);
    assert_memory_equal(&seen.memory, &m, sizeof m);
    assert_int_equal(seen.size_count, ARRAY_LEN(SIZES));
    assert_memory_equal(seen.sizes, SIZES, sizeof SIZES);
    assert_int_equal(seen.site_count, ARRAY_LEN(sites));
    for (size_t i = 0; i < ARRAY_LEN(sites); i++)
        assert_site(&seen.sites[i], &sites[i], sampled);
    for (size_t cut = 0; cut < b.len; cut++) {
        other = (struct seen){0};
        assert_int_equal(memory_visit(b.data, cut, records, &MEMORY, &other), E_CORRUPT);
    }
    buf_release(&b);
}

static void test_allocations(void **state ATTR_UNUSED)
{
    round_trip(false);
    round_trip(true);
}

/* Variances that are none, and more sizes than records. */
static void test_bad_allocations(void **state ATTR_UNUSED)
{
    static const double bad[] = {-1, (double)INFINITY, (double)NAN};
    static struct seen seen;
    struct record_memory m = {.flags = RECORD_MEMORY_SAMPLED};
    struct buf b;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct record_site site = {.live_variance = bad[i]};
        buf_init(&b, 1 << 20);
        memory_put(&b, &m, NULL, 0, &site, 1);
        assert_int_equal(memory_visit(b.data, b.len, 1, &MEMORY, &seen), E_CORRUPT);
        buf_release(&b);
    }
    buf_init(&b, 1 << 20);
    memory_put(&b, &m, SIZES, 2, NULL, 0);
    assert_int_equal(memory_visit(b.data, b.len, 1, &MEMORY, &seen), E_CORRUPT);
    buf_release(&b);
}

/* --- MEMORY_EVENTS --- */

struct events {
    struct record_memory_event event[MAX_SEEN];
    struct record_memory_site site[2];
    struct record_memory_events head;
    size_t count;
};

static int on_events(void *ctx, const struct record_memory_events *block,
                     const struct record_memory_event *events, size_t n)
{
    struct events *e = ctx;
    assert_true(e->count + n <= MAX_SEEN && block->site_count <= 2);
    e->head = *block;
    memcpy(e->site, block->sites, block->site_count * sizeof *e->site);
    memcpy(e->event + e->count, events, n * sizeof *events);
    e->count += n;
    return 0;
}

static const struct format_visitor EVENTS = {.memory_events = on_events};

/* Two sites of the heap; slots are used again, the last one first. */
static void write_events(struct memlog *log)
{
    assert_int_equal(memlog_allocate(log, 40, 100, 1000), 0);
    assert_int_equal(memlog_allocate(log, 7, 4096, 1000), 1);
    assert_int_equal(memlog_allocate(log, 40, 100, 1000), 2);
    memlog_shrink(log, 1, 1024, false, 1000);
    memlog_free(log, 0, 100, 1000);
    memlog_shrink(log, 1, 3072, true, 1000);
    assert_int_equal(memlog_allocate(log, 40, 0, 1000), 1);
    assert_int_equal(memlog_allocate(log, 40, UINT64_MAX / 2, 1000), 0);
    for (uint64_t i = 0; i < 100; i++) /* enough for a time or two */
        memlog_free(log, memlog_allocate(log, 7, 5, 1000 + i), 5, 1000 + i);
    memlog_finish_block(log);
}

static void check_events(const struct events *e)
{
    static const struct record_memory_event want[] = {
        {.kind = RECORD_MEMORY_ALLOCATE, .slot = 0, .site = 0, .size = 100},
        {.kind = RECORD_MEMORY_ALLOCATE, .slot = 1, .site = 1, .size = 4096},
        {.kind = RECORD_MEMORY_ALLOCATE, .slot = 2, .site = 0, .size = 100},
        {.kind = RECORD_MEMORY_SHRINK, .slot = 1, .site = UINT32_MAX, .size = 1024},
        {.kind = RECORD_MEMORY_FREE, .slot = 0, .site = UINT32_MAX},
        {.kind = RECORD_MEMORY_SHRINK, .slot = 1, .site = UINT32_MAX, .size = 3072},
        {.kind = RECORD_MEMORY_ALLOCATE, .slot = 1, .site = 0, .size = 0},
        {.kind = RECORD_MEMORY_ALLOCATE, .slot = 0, .site = 0, .size = UINT64_MAX / 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(e->event[i].kind, want[i].kind);
        assert_int_equal(e->event[i].slot, want[i].slot);
        assert_int_equal(e->event[i].site, want[i].site);
        assert_int_equal(e->event[i].size, want[i].size);
        assert_int_equal(e->event[i].time_ns, 1000);
    }
    for (size_t i = 1; i < e->count; i++)
        assert_true(e->event[i].time_ns >= e->event[i - 1].time_ns);
    assert_int_equal(e->event[e->count - 1].time_ns, e->head.end_ns);
    assert_true(e->head.end_ns > 1000 && e->head.end_ns < 1100);
    assert_int_equal(e->site[1].stack, 22);
    assert_int_equal(e->site[1].allocator, RECORD_ALLOCATOR_MMAP);
}

static void test_events(void **state ATTR_UNUSED)
{
    static const struct record_site sites[] = {
        {.thread = 1, .stack = 11}, {.thread = 2, .stack = 22, .allocator = RECORD_ALLOCATOR_MMAP}};
    static struct events seen, other;
    struct memlog log = {0};
    struct buf b;
    write_events(&log);
    assert_int_equal(log.done.len, 1);
    const struct memlog_done *d = &log.done.data[0];
    assert_int_equal(d->site_count, 2);
    assert_int_equal(d->sites[0], 40);
    assert_int_equal(d->sites[1], 7);
    buf_init(&b, 1 << 20);
    memevents_put_block(&b, 3, sites, 2, &d->block);
    seen = (struct events){0};
    assert_int_equal(memevents_visit(b.data, b.len, d->block.count, &EVENTS, &seen), 0);
    assert_int_equal(seen.count, 208);
    assert_int_equal(seen.head.process, 3);
    check_events(&seen);
    for (size_t cut = 0; cut < b.len; cut++) {
        other = (struct events){0};
        assert_int_equal(memevents_visit(b.data, cut, d->block.count, &EVENTS, &other), E_CORRUPT);
    }
    other = (struct events){0}; /* more than there are */
    assert_int_equal(memevents_visit(b.data, b.len, 209, &EVENTS, &other), E_CORRUPT);
    assert_int_equal(other.count, 208);
    buf_release(&b);
    memlog_release(&log);
}

/* A time past the end of its block. */
static void test_bad_times(void **state ATTR_UNUSED)
{
    static struct events seen;
    struct memevents_block block = {.start_ns = 100, .end_ns = 200, .count = 2};
    struct buf b;
    for (uint64_t i = 0; i < 2; i++) {
        buf_init(&block.symbols, 64);
        buf_init(&block.sizes, 64);
        buf_init(&block.slots, 64);
        buf_init(&block.times, 64);
        buf_init(&b, 1 << 10);
        buf_append(&block.symbols, "\0\0", 2);
        buf_append(&block.slots, "\0\0", 2);
        buf_put_varint(&block.times, 1);
        buf_put_varint(&block.times, i ? UINT64_MAX : 101);
        memevents_put_block(&b, 3, NULL, 0, &block);
        seen = (struct events){0};
        assert_int_equal(memevents_visit(b.data, b.len, 2, &EVENTS, &seen), E_CORRUPT);
        buf_release(&b);
        buf_release(&block.symbols);
        buf_release(&block.slots);
        buf_release(&block.times);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_bad_allocations),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_bad_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
