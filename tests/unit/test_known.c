/* Stacks proven before: what is known after which proofs. */
#include "remote/known.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* leaf first, as walks are */
static struct walked abc[] = {{1, 0xc0, 7}, {2, 0xb0, 6}, {3, 0xa0, 5}};

static walked_vec stack_of(struct walked *frames, size_t len)
{
    walked_vec v = {0};
    v.data = frames;
    v.len = len;
    return v;
}

static void prove(struct remote *r, struct walked *frames, size_t len, int times)
{
    walked_vec v = stack_of(frames, len);
    while (times--)
        known_learn(r, &v);
}

static bool knows(const struct remote *r, struct walked *frames, size_t len)
{
    walked_vec v = stack_of(frames, len);
    return known_has(r, &v);
}

static void test_two_proofs(void **state ATTR_UNUSED)
{
    struct remote r = {0};
    assert_false(knows(&r, abc, 3));
    prove(&r, abc, 3, 1);
    assert_false(knows(&r, abc, 3));
    prove(&r, abc, 3, 1);
    assert_true(knows(&r, abc, 3));
    assert_false(knows(&r, abc, 0)); /* an idle thread is not a stack */
    known_release(&r);
}

static void test_outer_parts(void **state ATTR_UNUSED)
{
    struct remote r = {0};
    prove(&r, abc, 3, 2);
    assert_true(knows(&r, abc + 1, 2));
    assert_true(knows(&r, abc + 2, 1));
    assert_false(knows(&r, abc, 2)); /* a stack without its outermost frame is another */
    assert_false(knows(&r, abc, 1));
    known_release(&r);
}

static void test_what_matters(void **state ATTR_UNUSED)
{
    struct remote r = {0};
    prove(&r, abc, 3, 2);
    struct walked other[3];
    memcpy(other, abc, sizeof abc);
    other[0].instr = 99; /* the running frame may be anywhere in itself */
    other[1].frame = 77; /* and frames may lie elsewhere */
    assert_true(knows(&r, other, 3));
    other[1].instr = 99; /* but a call from another place is another stack */
    assert_false(knows(&r, other, 3));
    memcpy(other, abc, sizeof abc);
    other[0].code = 0xd0;
    assert_false(knows(&r, other, 3));
    memcpy(other, abc, sizeof abc);
    other[2].code = WALKED_UNREADABLE;
    prove(&r, other, 3, 2);
    assert_false(knows(&r, other, 3));
    known_release(&r);
}

static void test_forgetting(void **state ATTR_UNUSED)
{
    struct remote r = {0};
    prove(&r, abc, 3, 2);
    known_forget(&r);
    assert_false(knows(&r, abc, 3));
    assert_false(knows(&r, abc + 2, 1));
    prove(&r, abc, 3, 2);
    assert_true(knows(&r, abc, 3));
    known_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_proofs),
        cmocka_unit_test(test_outer_parts),
        cmocka_unit_test(test_what_matters),
        cmocka_unit_test(test_forgetting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
