/* Stacks proven before: what is known after which proofs. */
#include "remote/known.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* leaf first, as walks are */
static struct walked abc[] = {{1, 0xc0, 7}, {2, 0xb0, 6}, {3, 0xa0, 5}};

/* A process whose code objects have been met. */
static struct remote start(void)
{
    struct remote r = {.layout.frames = PYL_FRAMES_HEAP};
    for (uint64_t addr = 0xa0; addr <= 0xd0; addr += 0x10) {
        struct code_entry *e = vec_push(&r.entries);
        assert_non_null(e);
        *e = (struct code_entry){.addr = addr, .index = (uint32_t)r.entries.len - 1};
        assert_int_equal(idxmap_insert(&r.entry_map, hash_u64(addr), e->index), 0);
    }
    return r;
}

static void end(struct remote *r)
{
    vec_release(&r->entries);
    idxmap_release(&r->entry_map);
    known_release(r);
}

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
    return known_has(r, known_hash(r, &v));
}

static void test_two_proofs(void **state ATTR_UNUSED)
{
    struct remote r = start();
    assert_false(knows(&r, abc, 3));
    prove(&r, abc, 3, 1);
    assert_false(knows(&r, abc, 3));
    prove(&r, abc, 3, 1);
    assert_true(knows(&r, abc, 3));
    assert_false(knows(&r, abc, 0)); /* an idle thread is not a stack */
    end(&r);
}

static void test_outer_parts(void **state ATTR_UNUSED)
{
    struct remote r = start();
    prove(&r, abc, 3, 2);
    assert_true(knows(&r, abc + 1, 2));
    assert_true(knows(&r, abc + 2, 1));
    assert_false(knows(&r, abc, 2)); /* a stack without its outermost frame is another */
    assert_false(knows(&r, abc, 1));
    end(&r);
}

static void test_what_matters(void **state ATTR_UNUSED)
{
    struct remote r = start();
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
    end(&r);
}

/* Where frames lie on a data stack they are read with what they call, wherever in themselves they are. */
static void test_places(void **state ATTR_UNUSED)
{
    struct remote r = start();
    r.layout.frames = PYL_FRAMES_TSTATE;
    prove(&r, abc, 3, 2);
    struct walked other[3];
    memcpy(other, abc, sizeof abc);
    other[1].instr = 99;
    assert_true(knows(&r, other, 3));
    other[1].code = WALKED_SHIM; /* but a call through C is another one */
    assert_false(knows(&r, other, 3));
    end(&r);
}

static void test_outer_hash(void **state ATTR_UNUSED)
{
    struct remote r = start();
    walked_vec whole = stack_of(abc, 3), part = stack_of(abc + 1, 2);
    assert_int_equal(known_hash_of_outer(&r, &whole, 2), known_hash(&r, &part));
    assert_int_equal(known_hash_of_outer(&r, &whole, 0), 0);
    end(&r);
}

/* Another code object at the same address is another function; the others are what they were. */
static void test_another_in_its_place(void **state ATTR_UNUSED)
{
    struct remote r = start();
    prove(&r, abc, 3, 2);
    r.entries.data[1].index = UINT32_MAX; /* 0xb0 has gone */
    assert_false(knows(&r, abc, 3));
    assert_true(knows(&r, abc + 2, 1));
    r.entries.data[1].index = 77;
    assert_false(knows(&r, abc, 3));
    prove(&r, abc, 3, 2);
    assert_true(knows(&r, abc, 3));
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_proofs),   cmocka_unit_test(test_outer_parts),
        cmocka_unit_test(test_what_matters), cmocka_unit_test(test_places),
        cmocka_unit_test(test_outer_hash),   cmocka_unit_test(test_another_in_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
