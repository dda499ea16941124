/* What slowed instructions lose, from the loops that the guest times to the functions of a program (agent/slowdown.h,
 * record/slowed.h), of times that are made up and whose truth is known. */
#include "agent/slowdown.h"
#include "base/attr.h"
#include "record/slowed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNTS(name, body, ...) {__VA_ARGS__},
static const uint8_t loops[SLOWDOWN_COUNT][RING_SLOWED_KINDS] = {SLOWDOWN_LOOPS(COUNTS)};

static const double takes[RING_SLOWED_KINDS] = {8, 9, 20, 28, 40, 20, 25, 30, 18, 22};
static const double slower[RING_SLOWED_KINDS] = {6, 6, 6, 7, -5, 14, 16, 22, 12, 6};

static double sum(const uint8_t *counts, const double *times)
{
    double all = 0;
    for (size_t i = 0; i < RING_SLOWED_KINDS; i++)
        all += counts[i] * times[i];
    return all;
}

/* Loops that are made of instructions as supposed give just what those take, all but what the kinds are held together by. */
static void test_fit(void **state ATTR_UNUSED)
{
    double bare[SLOWDOWN_COUNT], slowed[SLOWDOWN_COUNT];
    for (size_t l = 0; l < SLOWDOWN_COUNT; l++) {
        slowed[l] = sum(loops[l], takes);
        bare[l] = slowed[l] - sum(loops[l], slower);
    }
    struct slowdown s = slowdown_fit(bare, slowed);
    for (size_t l = 0; l < SLOWDOWN_COUNT; l++) {
        assert_true(fabs(sum(loops[l], s.takes) / slowed[l] - 1) < 0.06);
        assert_true(fabs(slowdown_of(&s, loops[l]) / (slowed[l] - bare[l]) - 1) < 0.12);
    }
}

/* However the loops were disturbed, no instruction loses more than it takes, or hides more than that. */
static void test_fit_noise(void **state ATTR_UNUSED)
{
    uint32_t x = 1;
    for (int turn = 0; turn < 300; turn++) {
        double bare[SLOWDOWN_COUNT], slowed[SLOWDOWN_COUNT];
        for (size_t l = 0; l < SLOWDOWN_COUNT; l++) {
            x = x * 1664525 + 1013904223;
            bare[l] = 1 + (x >> 24);
            x = x * 1664525 + 1013904223;
            slowed[l] = 1 + (x >> 24);
        }
        struct slowdown s = slowdown_fit(bare, slowed);
        for (size_t i = 0; i < RING_SLOWED_KINDS; i++)
            assert_true(fabs(s.slower[i]) <= s.takes[i]);
    }
    const double none[SLOWDOWN_COUNT] = {0};
    struct slowdown s = slowdown_fit(none, none);
    assert_true(s.takes[0] == 0 && s.slower[0] == 0);
}

/* A tick is a nanosecond. */
static struct ring_calibration cost(void)
{
    struct ring_calibration c = {0};
    for (size_t i = 0; i < RING_SLOWED_KINDS; i++)
        c.slowed[i] = (struct ring_slowed){(uint32_t)takes[i], (int32_t)slower[i]};
    return c;
}

/* for i in …: x += i */
static const struct remote_block LOOP = {
    .begin = 18, .moves = 3, .stores = 2, .iterations = 1, .arithmetic = 1, .counted = 1};
#define LOOP_TAKES  (3 * 8 + 2 * 9 + 20 + 28.0)
#define LOOP_SLOWER (3 * 6 + 2 * 6 + 6 + 7.0)

enum { PROCESS = 1, THREAD = 2, CODE = 3, OBJECT = 4 };
#define GAP_NS UINT64_C(250000)

/* Finds a thread in a block so often, and each fourth time at a move. */
static void find(struct slowed *s, const struct remote_block *block, int times, bool moves)
{
    static uint64_t now = 1;
    for (int i = 0; i < times; i++) {
        now += GAP_NS;
        const struct slowed_block found = {.process = PROCESS,
                                           .thread = THREAD,
                                           .code = CODE,
                                           .object = OBJECT,
                                           .block = *block,
                                           .found_ns = GAP_NS,
                                           .moves = moves && i % 4 == 0};
        slowed_add(s, &found, now);
    }
}

/* What is taken of so much time of the function, in a turn of its own; a tick takes `tick_ns`. */
static double taken_of(struct slowed *s, double self_ns, double tick_ns)
{
    const struct ring_calibration c = cost();
    const struct slowed_cost all = {&c, tick_ns};
    struct slowed_function *f = slowed_find(s, THREAD, CODE);
    slowed_begin(s);
    slowed_tell(s, f, self_ns);
    return slowed_take(s, f, &all, self_ns);
}

/* Known to be lost, and not yet taken. */
static double lost(struct slowed *s)
{
    taken_of(s, 1e-9, 1);
    return slowed_find(s, THREAD, CODE)->lost_ns;
}

static void assert_near(double value, double truth)
{
    if (fabs(value / truth - 1) > 0.01)
        fail_msg("%g is not %g", value, truth);
}

/* By the kinds of what is in it, if nothing else is known. */
static void test_kinds(void **state ATTR_UNUSED)
{
    struct slowed s = {0};
    find(&s, &LOOP, 100, true);
    assert_near(lost(&s), 100.0 * GAP_NS * LOOP_SLOWER / LOOP_TAKES);
    find(&s, &LOOP, 100, true); /* what was told is not told again, but kept until it is taken */
    assert_near(lost(&s), 200.0 * GAP_NS * LOOP_SLOWER / LOOP_TAKES);
    slowed_release(&s);
}

/* One that has an instruction which takes its time is never met at its moves. */
static void test_long_instruction(void **state ATTR_UNUSED)
{
    struct slowed s = {0};
    find(&s, &LOOP, 2000, false);
    assert_true(lost(&s) < 0.01 * 2000 * GAP_NS);
    slowed_release(&s);
}

/* What counts is known to run as often as it has counted; a count that began anew in between, or was not seen for long, says nothing. */
static void test_counts(void **state ATTR_UNUSED)
{
    struct slowed s = {0};
    enum { TURN_NS = 60, TIMES = 1000 };
    double count = INT16_MIN;
    uint64_t now = 1;
    for (int i = 0; i < TIMES; i++) {
        now += GAP_NS;
        count += (double)GAP_NS / TURN_NS;
        if (count > INT16_MIN / 2.0)
            count = INT16_MIN;
        slowed_count(&s, PROCESS, OBJECT, (int16_t)count, now);
        const struct slowed_block found = {.process = PROCESS,
                                           .thread = THREAD,
                                           .code = CODE,
                                           .object = OBJECT,
                                           .block = LOOP,
                                           .found_ns = GAP_NS};
        slowed_add(&s, &found, now);
    }
    assert_near(lost(&s), (double)TIMES * GAP_NS / TURN_NS * LOOP_SLOWER);
    double before = s.objects.data[0].counted;
    slowed_count(&s, PROCESS, OBJECT, -1, now + 10 * GAP_NS);
    slowed_count(&s, PROCESS, OBJECT, 0, now + 11 * GAP_NS);
    slowed_count(&s, PROCESS, OBJECT, 0, now + 12 * GAP_NS);
    assert_true(s.objects.data[0].counted == before);
    slowed_release(&s);
}

/* Where calls are made, they tell how often; but not past all reason. */
static void test_calls(void **state ATTR_UNUSED)
{
    struct slowed s = {0};
    struct remote_block calling = LOOP;
    calling.calls = 1;
    find(&s, &calling, 100, true);
    double runs = 100.0 * GAP_NS / LOOP_TAKES;
    slowed_find(&s, THREAD, CODE)->made = 3 * runs;
    assert_near(lost(&s), 3 * runs * LOOP_SLOWER);
    slowed_find(&s, THREAD, CODE)->made = 1e6 * runs;
    assert_true(lost(&s) < 10 * runs * LOOP_SLOWER);
    slowed_release(&s);
}

/* What turns out to be less than was taken is never given back to a path that has nothing to do with it, and nothing has all of its time
 * taken. */
static void test_less_than_thought(void **state ATTR_UNUSED)
{
    struct slowed s = {0};
    struct remote_block calling = LOOP;
    calling.calls = 1;
    find(&s, &calling, 100, true);
    double all = 100.0 * GAP_NS;
    slowed_find(&s, THREAD, CODE)->made = 2 * all / LOOP_TAKES;
    assert_true(taken_of(&s, 2 * all, 1) > all * LOOP_SLOWER / LOOP_TAKES);
    slowed_find(&s, THREAD, CODE)->made = 0; /* it was not so */
    assert_true(taken_of(&s, all / 10, 1.1) == 0);
    assert_true(slowed_find(&s, THREAD, CODE)->lost_ns < 0);
    find(&s, &calling, 1000, true); /* what is lost later makes up for it */
    double taken = taken_of(&s, all, 1);
    assert_true(taken > 0 && taken < 0.9 * all);
    slowed_release(&s);
}

/* Each path of a function bears as much as it has of its time. */
static void test_paths(void **state ATTR_UNUSED)
{
    struct slowed s = {0};
    const struct ring_calibration c = cost();
    const struct slowed_cost all = {&c, 1};
    find(&s, &LOOP, 100, true);
    struct slowed_function *f = slowed_find(&s, THREAD, CODE);
    slowed_begin(&s);
    slowed_tell(&s, f, 75.0 * GAP_NS);
    slowed_tell(&s, f, 25.0 * GAP_NS);
    double one = slowed_take(&s, f, &all, 75.0 * GAP_NS);
    assert_near(one, 75.0 * GAP_NS * LOOP_SLOWER / LOOP_TAKES);
    assert_near(slowed_take(&s, f, &all, 25.0 * GAP_NS), one / 3);
    assert_true(f->lost_ns < 1);
    slowed_release(&s);
}

/* Two code objects of one name count each for itself. */
static void test_same_name(void **state ATTR_UNUSED)
{
    struct slowed s = {0};
    uint64_t now = 1;
    for (int i = 0; i < 1000; i++) {
        now += GAP_NS;
        slowed_count(&s, PROCESS, OBJECT, -30000, now);
        slowed_count(&s, PROCESS, OBJECT + 1, -20000, now);
    }
    assert_true(s.objects.len == 2 && s.objects.data[0].counted == 0 &&
                s.objects.data[1].counted == 0);
    slowed_release(&s);
}

/* What was found while the thread was not traced is not taken out of what is. */
static void test_pause(void **state ATTR_UNUSED)
{
    struct slowed s = {0};
    const struct ring_calibration c = cost();
    find(&s, &LOOP, 1000, true);
    slowed_begin(&s);
    slowed_forgive(&s, THREAD + 1, &(struct slowed_cost){&c, 1}, 1);
    assert_near(lost(&s), 1000.0 * GAP_NS * LOOP_SLOWER / LOOP_TAKES);
    slowed_forgive(&s, THREAD, &(struct slowed_cost){&c, 1}, 0.9);
    assert_near(lost(&s), 100.0 * GAP_NS * LOOP_SLOWER / LOOP_TAKES);
    slowed_release(&s);
}

/* However many blocks a program has, not all of them are remembered. */
static void test_many(void **state ATTR_UNUSED)
{
    struct slowed s = {0};
    struct slowed_block found = {.process = PROCESS, .block = LOOP, .found_ns = GAP_NS};
    for (uint32_t i = 1; i < SLOWED_MOST_BLOCKS * 5 / 2; i++) {
        found.thread = i % 100;
        found.code = found.object = i;
        slowed_add(&s, &found, i);
        assert_true(s.blocks.len <= SLOWED_MOST_BLOCKS && s.functions.len <= SLOWED_MOST_BLOCKS &&
                    s.objects.len <= SLOWED_MOST_BLOCKS);
        assert_non_null(slowed_find(&s, found.thread, found.code));
    }
    slowed_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_fit_noise),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_long_instruction),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_less_than_thought),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_same_name),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
