/* Call sites: which callers are put back into their calls, and which are not. */
#include "remote/sites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { OFTEN = 20, SELDOM = 3 };

/* leaf first, as walks are */
static const struct walked abc[] = {{1, 0xc0, 7}, {2, 0xb0, 6}, {3, 0xa0, 5}};
static struct walked frames[3]; /* of `stack` */
static walked_vec stack, called;

static struct remote *start(void)
{
    static struct remote r;
    r = (struct remote){0};
    memcpy(frames, abc, sizeof abc);
    stack.data = frames;
    stack.len = 3;
    return &r;
}

static void end(struct remote *r)
{
    sites_release(r);
    vec_release(&called);
    called = (walked_vec){0};
}

static void doubt(struct remote *r, int times)
{
    while (times--)
        sites_doubt(r, &stack);
}

static size_t put_back(struct remote *r)
{
    return sites_put_back(r, &stack, &called);
}

static void test_put_back(void **state ATTR_UNUSED)
{
    struct remote *r = start();
    doubt(r, OFTEN);
    assert_int_equal(put_back(r), 0); /* nothing is known */
    sites_learn(r, &stack);
    doubt(r, OFTEN);
    assert_int_equal(put_back(r), 0); /* they are in their calls */
    assert_int_equal(called.len, 3);
    assert_memory_equal(called.data, abc, sizeof abc);

    frames[0].instr = 20; /* the running frame is where it is */
    frames[1].instr += 8;
    doubt(r, SELDOM);
    assert_int_equal(put_back(r), 0);
    doubt(r, OFTEN);
    assert_int_equal(put_back(r), 1);
    assert_int_equal(called.len, 3);
    assert_int_equal(called.data[0].instr, 20);
    assert_int_equal(called.data[1].instr, abc[1].instr);
    assert_memory_equal(&called.data[2], &abc[2], sizeof abc[2]);
    frames[2].instr += 2;
    assert_int_equal(put_back(r), 1); /* for each by itself */
    doubt(r, OFTEN);
    assert_int_equal(put_back(r), 2);
    assert_int_equal(called.data[2].instr, abc[2].instr);
    assert_int_equal(frames[2].instr, abc[2].instr + 2);
    end(r);
}

/* Behind a call there is another one. */
static void test_next_call(void **state ATTR_UNUSED)
{
    struct remote *r = start();
    sites_learn(r, &stack);
    frames[1].instr += 8;
    doubt(r, OFTEN);
    assert_int_equal(put_back(r), 1);
    sites_learn(r, &stack); /* at last it was proven */
    assert_int_equal(put_back(r), 0);
    doubt(r, OFTEN);
    frames[1].instr -= 8; /* and the first is one still */
    doubt(r, OFTEN);
    sites_learn(r, &stack);
    frames[1].instr += 8;
    doubt(r, OFTEN);
    assert_int_equal(put_back(r), 0);
    end(r);
}

static void test_elsewhere(void **state ATTR_UNUSED)
{
    static const int64_t away[] = {1000, -1, 0, INT64_MIN, INT64_MAX};
    struct remote *r = start();
    sites_learn(r, &stack);
    for (size_t i = 0; i < ARRAY_LEN(away); i++) {
        frames[2].instr = away[i];
        doubt(r, OFTEN);
        assert_int_equal(put_back(r), 0);
    }
    memcpy(frames, abc, sizeof abc);
    frames[1].instr += 8;
    frames[0].code = 0xd0; /* where it calls that one nobody has seen */
    doubt(r, OFTEN);
    assert_int_equal(put_back(r), 0);
    frames[0].code = abc[0].code;
    doubt(r, OFTEN);
    assert_int_equal(put_back(r), 1);
    r->known_epoch++; /* addresses mean other code now */
    assert_int_equal(put_back(r), 0);
    end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_back),
        cmocka_unit_test(test_next_call),
        cmocka_unit_test(test_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
