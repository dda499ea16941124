/* The peak of sampled recordings. Programs whose peak is known are sampled by the dice as the guest does it, many times over;
 * the peak that is told must be right on average, and its error as often within the interval as it says. Seeds are fixed, so
 * that the result is always the same. */
#include "record/heap.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    INTERVAL = 128 << 10,
    RUNS = 100,
    IDS = 1 << 16,
    SITES = 4,
};
#define BLOCK_BASE 0x7f0000001000ull

static uint64_t dice;

static uint64_t roll(uint64_t sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (dice >> 11) % sides;
}

/* --- a program, and what is told of it --- */

struct run {
    struct heap heap;
    uint64_t live, peak; /* the truth */
    uint64_t tick;
    uint64_t size[IDS]; /* of what is alive */
    bool told[IDS];
};

static uint64_t address_of(uint32_t id)
{
    return BLOCK_BASE + 16ull * id;
}

static void allocate(struct run *r, uint32_t id, uint64_t size)
{
    double chance = -expm1(-(double)size / INTERVAL);
    r->size[id] = size;
    r->told[id] = (double)roll(1ull << 52) / 0x1p52 < chance;
    r->live += size;
    r->peak = r->live > r->peak ? r->live : r->peak;
    if (r->told[id])
        heap_alloc(&r->heap, id % SITES, address_of(id), size, r->tick++);
}

static void release(struct run *r, uint32_t id)
{
    struct heap_undo undo;
    r->live -= r->size[id];
    if (r->told[id])
        heap_free(&r->heap, address_of(id), false, &undo);
}

static void grow(struct run *r, uint32_t count, uint64_t size)
{
    for (uint32_t i = 0; i < count; i++)
        allocate(r, i, size);
}

static void shrink(struct run *r, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        release(r, i);
}

/* Each block is replaced some times, in no order. */
static void churn(struct run *r, uint32_t count, unsigned times)
{
    for (uint32_t i = 0; i < count * times; i++) {
        uint32_t id = (uint32_t)roll(count);
        uint64_t size = r->size[id];
        release(r, id);
        allocate(r, id, size);
    }
}

static void waves(struct run *r, uint32_t count, uint64_t size, unsigned times)
{
    while (times--) {
        grow(r, count, size);
        shrink(r, count);
    }
}

static void only_growth(struct run *r)
{
    grow(r, 60000, 133);
}

static void one_spike(struct run *r)
{
    grow(r, 20000, 133);
    churn(r, 20000, 2);
    for (uint32_t i = 20000; i < 60000; i++)
        allocate(r, i, 133);
    for (uint32_t i = 20000; i < 60000; i++)
        release(r, i);
    churn(r, 20000, 2);
}

static void small_churn(struct run *r)
{
    grow(r, 50000, 133);
    churn(r, 50000, 4);
}

static void middle_churn(struct run *r)
{
    grow(r, 200, 100000);
    churn(r, 200, 20);
}

static void large_churn(struct run *r)
{
    grow(r, 30, 400000);
    churn(r, 30, 20);
}

static void small_waves(struct run *r)
{
    waves(r, 40000, 133, 6);
}

static void middle_waves(struct run *r)
{
    waves(r, 200, 100000, 8);
}

static void below_large_ones(struct run *r)
{
    grow(r, 30000, 133);
    allocate(r, 30000, 8 << 20);
    churn(r, 30000, 4);
}

/* Sizes from 20 bytes to 700 KB, as many of each order. */
static void all_sizes(struct run *r)
{
    for (uint32_t i = 0; i < 30000; i++) {
        uint32_t id = i < 1500 ? i : (uint32_t)roll(1500);
        if (i >= 1500)
            release(r, id);
        allocate(r, id, (uint64_t)exp(3 + 10.5 * (double)roll(1 << 20) / (1 << 20)));
    }
}

/* --- many runs of one --- */

struct outcome {
    double bias; /* of what is told, in standard deviations; by the highest estimate alone */
    double plain_bias;
    double covered, plain_covered; /* of the runs, with the truth in the 95 % interval */
};

static double told_peak(struct run *r, double *variance)
{
    double sum = 0, excess = heap_peak_excess(&r->heap);
    *variance = 0;
    for (size_t i = 0; i < r->heap.sites.len; i++) {
        struct heap_site *s = &r->heap.sites.data[i];
        heap_settle(&r->heap, s);
        struct heap_peak peak = heap_peak_of(&r->heap, s, excess);
        assert_true(peak.bytes <= s->peak_bytes && peak.count <= s->peak_count);
        sum += (double)peak.bytes;
        *variance += peak.variance;
    }
    assert_true(fabs(sum - fmax(0, (double)r->heap.peak_bytes - excess)) <= SITES);
    return sum / HEAP_SAMPLE_SCALE;
}

static struct outcome try(void (*program)(struct run *))
{
    static struct run r;
    struct outcome out = {0};
    for (unsigned i = 0; i < RUNS; i++) {
        r = (struct run){0};
        dice = (i + 1) * 0x9e3779b97f4a7c15ull;
        assert_int_equal(heap_init(&r.heap, INTERVAL, false), 0);
        for (uint32_t s = 0; s < SITES; s++)
            assert_int_equal(heap_site(&r.heap, heap_child(&r.heap, 0, s + 1, 0), 0, 0), s);
        program(&r);
        double variance, told = told_peak(&r, &variance), sigma = sqrt(variance),
                         plain_sigma = sqrt(r.heap.peak_variance);
        double off = told - (double)r.peak;
        double plain = (double)r.heap.peak_bytes / HEAP_SAMPLE_SCALE - (double)r.peak;
        out.bias += off / sigma / RUNS;
        out.plain_bias += plain / plain_sigma / RUNS;
        out.covered += (fabs(off) <= 1.96 * sigma) / (double)RUNS;
        out.plain_covered += (fabs(plain) <= 1.96 * plain_sigma) / (double)RUNS;
        assert_false(r.heap.failed);
        heap_release(&r.heap);
    }
    return out;
}

static void test_peak(void **state ATTR_UNUSED)
{
    static const struct {
        const char *name;
        void (*program)(struct run *);
    } programs[] = {
        {"only growth", only_growth},   {"one spike", one_spike},
        {"small churn", small_churn},   {"middle churn", middle_churn},
        {"large churn", large_churn},   {"small waves", small_waves},
        {"middle waves", middle_waves}, {"below large ones", below_large_ones},
        {"all sizes", all_sizes},
    };
    double worst_plain = 1;
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        struct outcome o = try(programs[i].program);
        print_message(
            "%-16s off by %+.2f deviations, %.0f %% covered; the highest: %+.2f, %.0f %%\n",
            programs[i].name, o.bias, 100 * o.covered, o.plain_bias, 100 * o.plain_covered);
        assert_true(fabs(o.bias) < 1);
        assert_true(o.covered >= 0.92);
        worst_plain = fmin(worst_plain, o.plain_covered);
    }
    assert_true(worst_plain < 0.5); /* else there was nothing to mend */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
