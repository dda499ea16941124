/* The tree of calls, grown by hand: counts, times, losses, coroutines. And hostile words in a ring. */
#include "base/err.h"
#include "record/feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct calltree_node *node_of(const struct calltree *t, uint32_t parent, uint32_t code)
{
    for (size_t i = 1; i < t->nodes.len; i++)
        if (t->nodes.data[i].parent == parent && t->nodes.data[i].code == code)
            return &t->nodes.data[i];
    fail_msg("no node for code %u under %u", code, parent);
    return NULL;
}

static void test_paths(void **state ATTR_UNUSED)
{
    struct calltree t;
    assert_int_equal(calltree_init(&t), 0);
    for (int i = 0; i < 3; i++) {
        calltree_enter(&t, 1, false);
        calltree_time(&t, 10);
        calltree_enter(&t, 2, false);
        calltree_time(&t, 5);
        calltree_leave(&t, 2);
        calltree_enter(&t, 2, true); /* goes on: no call */
        calltree_time(&t, 1);
        calltree_leave(&t, 2);
        calltree_leave(&t, 1);
    }
    const struct calltree_node *outer = node_of(&t, 0, 1);
    const struct calltree_node *inner = node_of(&t, (uint32_t)(outer - t.nodes.data), 2);
    assert_int_equal(outer->calls, 3);
    assert_int_equal(outer->self, 30);
    assert_int_equal(inner->calls, 3);
    assert_int_equal(inner->resumes, 3);
    assert_int_equal(inner->self, 18);
    assert_int_equal(t.stack.len, 1);
    calltree_release(&t);
}

static void test_losses(void **state ATTR_UNUSED)
{
    struct calltree t;
    assert_int_equal(calltree_init(&t), 0);
    calltree_enter(&t, 1, false);
    calltree_enter(&t, 2, false);
    calltree_enter(&t, 3, false);
    calltree_leave(&t, 1); /* the leaves of 3 and 2 were lost */
    assert_int_equal(t.stack.len, 1);
    calltree_leave(&t, 9); /* nobody's */
    assert_int_equal(t.stack.len, 1);
    calltree_push_open(&t, 4);
    assert_int_equal(node_of(&t, 0, 4)->calls, 0);
    calltree_release(&t);
}

/* Without memory calls are not counted where they belong, but as lost. */
static void test_failure_is_counted(void **state ATTR_UNUSED)
{
    struct calltree t;
    assert_int_equal(calltree_init(&t), 0);
    calltree_enter(&t, 1, false);
    t.failed = true;
    calltree_enter(&t, 2, false);
    calltree_enter(&t, 2, true);
    assert_int_equal(t.lost, 2);
    assert_int_equal(t.nodes.len, 2);
    calltree_release(&t);
}

static void test_coroutines(void **state ATTR_UNUSED)
{
    enum { MANY = 1000 };
    struct calltree t;
    assert_int_equal(calltree_init(&t), 0);
    calltree_enter(&t, 1, false);
    uint32_t node = calltree_top(&t);
    for (uint64_t i = 1; i <= MANY; i++)
        calltree_begins(&t, i * 64, node, i);
    for (uint64_t i = MANY; i >= 1; i -= 2) /* every other one, the last first */
        calltree_ends(&t, i * 64, i + 100);
    assert_int_equal(t.nodes.data[node].alive, MANY / 2 * 100);
    for (uint64_t i = 1; i <= MANY; i += 2)
        calltree_ends(&t, i * 64, i + 7);
    assert_int_equal(t.nodes.data[node].alive, MANY / 2 * 107);
    assert_int_equal(t.open_count, 0);
    calltree_ends(&t, 12345, 1); /* never began */
    calltree_release(&t);
}

static const struct session_clock NOW = {.tick = 1, .ns = 1, .ns_per_tick = 1};

/* A ring in plain memory. */
static struct feed *new_traced_feed(const struct events_options *trace,
                                    struct ring_header **ret_ring)
{
    struct feed *f = NULL;
    struct ring_header *ring = calloc(1, RING_SLOT_BYTES);
    assert_non_null(ring);
    assert_int_equal(feed_new(0, ring, true, trace, 0, &f), 0);
    *ret_ring = ring;
    return f;
}

static struct feed *new_feed(struct ring_header **ret_ring)
{
    return new_traced_feed(NULL, ret_ring);
}

static void put(struct ring_header *ring, uint64_t word)
{
    uint64_t *words = (uint64_t *)((char *)ring + RING_HEADER_BYTES);
    uint64_t head = atomic_load(&ring->head);
    words[head % RING_WORDS] = word;
    atomic_store(&ring->head, head + 1);
}

enum { MAX_PAYLOAD = 31 }; /* words: all that is put between two turns fits the ring */

static uint64_t random_word(unsigned *seed)
{
    uint64_t word = 0;
    for (int k = 0; k < 4; k++)
        word = word << 16 | (uint64_t)(rand_r(seed) & 0xffff);
    unsigned how = (unsigned)rand_r(seed);
    uint32_t value = (uint32_t)(word >> 4) & RING_MAX_VALUE;
    if ((word & 15) == RING_EXT &&
        how % 64) /* mostly a kind that there is, and a length that fits */
        value = value % (RING_EXT_RESULT + 4) | how / 64 % (MAX_PAYLOAD + 1) << 8;
    else if (how % 4) /* mostly functions that come again */
        value &= 15;
    return ring_word(word & 15, value, how % 16 ? word >> 56 : word >> 32);
}

/* Returns how many records were decoded, in as many feeds as it took. */
static uint64_t feed_nonsense(const struct events_options *trace, int words)
{
    struct feed_codes codes = {0};
    struct ring_header *ring = NULL;
    struct feed *f = new_traced_feed(trace, &ring);
    uint64_t records = 0;
    unsigned seed = 1;
    for (int i = 0; i < words; i++) {
        put(ring, random_word(&seed));
        if (i % 1000 != 999)
            continue;
        for (int k = 0; k < MAX_PAYLOAD; k++) /* the last payload is not cut short */
            put(ring, 0);
        if (feed_take(f, &codes, &NOW, UINT64_MAX) >= 0)
            continue;
        records += f->records; /* given up: a length past the head */
        feed_free(f);
        free(ring);
        f = new_traced_feed(trace, &ring);
    }
    records += f->records;
    for (size_t i = 0; i < codes.fresh.len; i++)
        feed_code_release(&codes.fresh.data[i]);
    vec_release(&codes.fresh);
    feed_free(f);
    free(ring);
    return records;
}

static void test_hostile_words(void **state ATTR_UNUSED)
{
    enum { WORDS = 200000 };
    const struct events_options all = {0}, some = {.min_ns = 50, .max_depth = 5};
    assert_true(feed_nonsense(NULL, WORDS) > WORDS / 4);
    assert_true(feed_nonsense(&all, WORDS) > WORDS / 4);
    assert_true(feed_nonsense(&some, WORDS) > WORDS / 4);
}

static void test_nonsense_head(void **state ATTR_UNUSED)
{
    struct feed_codes codes = {0};
    struct ring_header *ring;
    struct feed *f = new_feed(&ring);
    atomic_store(&ring->head, (uint64_t)RING_WORDS + 1);
    assert_int_equal(feed_take(f, &codes, &NOW, UINT64_MAX), E_CORRUPT);
    atomic_store(&ring->head, UINT64_MAX);
    assert_int_equal(feed_take(f, &codes, &NOW, UINT64_MAX), E_CORRUPT);
    feed_free(f);
    free(ring);
}

static void test_long_pauses(void **state ATTR_UNUSED)
{
    struct feed_codes codes = {0};
    struct ring_header *ring;
    struct feed *f = new_feed(&ring);
    put(ring, ring_word(RING_ENTER, 5, 3));
    put(ring, ring_word(RING_TIME, 2, 7)); /* 2 << 32 | 7 ticks */
    put(ring, ring_word(RING_WAIT, 1, 0)); /* not the program's */
    put(ring, ring_word(RING_LEAVE, 5, 4));
    assert_int_equal(feed_take(f, &codes, &NOW, UINT64_MAX), 4);
    assert_int_equal(node_of(&f->tree, 0, 5)->self, (2ull << 32) + 7 + 4);
    assert_int_equal(f->waited_ticks, 1ull << 32);
    feed_free(f);
    free(ring);
}

static void put_ext(struct ring_header *ring, enum ring_ext kind)
{
    put(ring, ring_word(RING_EXT, (uint32_t)kind, 1));
}

/* A thread that was paused deeper than the timeline goes is back: what it calls then is told again. */
static void test_back_from_below_the_depth(void **state ATTR_UNUSED)
{
    enum { DEEP = 100, DEPTH = 3 };
    const struct events_options options = {.max_depth = DEPTH};
    struct feed_codes codes = {0};
    struct ring_header *ring;
    struct feed *f = new_traced_feed(&options, &ring);
    for (int i = 0; i < DEEP; i++)
        put(ring, ring_word(RING_ENTER, 5, 1));
    put_ext(ring, RING_EXT_PAUSE);
    put_ext(ring, RING_EXT_GO);
    put(ring, ring_word(RING_OPEN, 5, 1));
    assert_true(feed_take(f, &codes, &NOW, UINT64_MAX) > 0);
    assert_int_equal(f->events->left_out, DEEP - DEPTH);
    assert_int_equal(f->events->stack.len, 1);
    uint64_t before = f->events->traced;
    put(ring, ring_word(RING_ENTER, 6, 1));
    put(ring, ring_word(RING_LEAVE, 6, 1));
    assert_true(feed_take(f, &codes, &NOW, UINT64_MAX) > 0);
    assert_int_equal(f->events->traced - before, 2);
    assert_int_equal(f->events->left_out, DEEP - DEPTH);
    feed_free(f);
    free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_coroutines),
        cmocka_unit_test(test_hostile_words),
        cmocka_unit_test(test_nonsense_head),
        cmocka_unit_test(test_long_pauses),
        cmocka_unit_test(test_back_from_below_the_depth),
        cmocka_unit_test(test_failure_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
