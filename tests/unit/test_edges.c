/* Known neighbours: what makes a pair believable, and what does not. */
#include "remote/edges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void rounds(struct edges *e, unsigned n)
{
    while (n--)
        edges_next_round(e);
}

static void test_learning(void **state ATTR_UNUSED)
{
    struct edges e = {0};
    assert_false(edges_known(&e, 1, 2));
    edges_learn(&e, 1, 2);
    assert_true(edges_known(&e, 1, 2));
    assert_false(edges_known(&e, 2, 1)); /* who calls whom matters */
    assert_false(edges_known(&e, 1, 3));
    rounds(&e, 100000);
    assert_true(edges_known(&e, 1, 2)); /* for ever */
    edges_vote(&e, 1, 2);
    assert_true(edges_known(&e, 1, 2));
    edges_release(&e);
}

static void test_votes(void **state ATTR_UNUSED)
{
    struct edges e = {0};
    unsigned votes = 0;
    while (!edges_known(&e, 7, 8)) {
        edges_next_round(&e);
        edges_vote(&e, 7, 8);
        assert_true(++votes < 100);
    }
    assert_true(votes >= 3); /* one or two sightings are what a seam may get */
    edges_release(&e);
}

/* A seam turns up now and then, for ever: that must never be enough. */
static void test_rare_sightings(void **state ATTR_UNUSED)
{
    struct edges e = {0};
    for (int i = 0; i < 10000; i++) {
        edges_vote(&e, 7, 8);
        rounds(&e, 1000);
    }
    assert_false(edges_known(&e, 7, 8));
    /* nor after so long a silence that every vote is forgotten, and the counter came round */
    e.round = UINT32_MAX;
    edges_vote(&e, 7, 8);
    edges_next_round(&e);
    assert_int_equal(e.round, 0);
    edges_vote(&e, 7, 8);
    assert_false(edges_known(&e, 7, 8));
    edges_release(&e);
}

static unsigned looks_until_known(enum edge_evidence evidence, unsigned one_in)
{
    struct edges e = {0};
    unsigned called = 0;
    while (!edges_known(&e, 7, 8) && ++called < 10000)
        edges_see(&e, 7, 8, called, called % one_in ? EDGE_NOTHING : evidence);
    edges_release(&e);
    return called;
}

/* The better it held still the fewer looks it takes; and what is a small part of all that call a function is a seam, however often it is seen. */
static void test_held_still(void **state ATTR_UNUSED)
{
    unsigned held = looks_until_known(EDGE_HELD, 1),
             caller = looks_until_known(EDGE_CALLER_HELD, 1),
             through_c = looks_until_known(EDGE_THROUGH_C, 1);
    assert_true(1 < held && held < caller && caller < through_c && through_c < 20);
    assert_in_range(looks_until_known(EDGE_CALLER_HELD, 10), 11, 1000);
    assert_int_equal(looks_until_known(EDGE_NOTHING, 1), 10000);
    assert_int_equal(looks_until_known(EDGE_THROUGH_C, 20), 10000);
    assert_int_equal(looks_until_known(EDGE_CALLER_HELD, 40), 10000);
    assert_in_range(looks_until_known(EDGE_HELD, 80), 400,
                    800); /* but what holds still again and again is none */
}

static void test_many(void **state ATTR_UNUSED)
{
    struct edges e = {0};
    for (uint32_t i = 0; i < 20000; i++) {
        if (i % 2)
            edges_learn(&e, i, i * 31);
        else
            edges_vote(&e, i, i * 31);
    }
    for (uint32_t i = 0; i < 20000; i++)
        assert_int_equal(edges_known(&e, i, i * 31), i % 2);
    assert_int_equal(e.list.len, 20000); /* each pair once */
    edges_release(&e);
    assert_false(edges_known(&e, 1, 31));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learning),       cmocka_unit_test(test_votes),
        cmocka_unit_test(test_rare_sightings), cmocka_unit_test(test_held_still),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
