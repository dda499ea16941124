/* The statistics, against values from tables and against thousands of simulated histories. */
#include "base/attr.h"
#include "sanitized.h"
#include "stats/bootstrap.h"
#include "stats/changes.h"
#include "stats/gate.h"
#include "stats/random.h"
#include "stats/ranks.h"
#include "stats/sample.h"
#include "stats/slope.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void close_to(double a, double b, double within)
{
    if (!(fabs(a - b) <= within))
        fail_msg("%.10g is not %.10g", a, b);
}

/* --- the noise that the promises are about --- */

static const double SIGMA = 0.05, OUTLIERS = 0.05, OUTLIER = 1.5;

static double normal(struct stats_random *r)
{
    double u = 1 - stats_random_unit(r), v = stats_random_unit(r);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static double noisy(struct stats_random *r, double level)
{
    double value = level * exp(SIGMA * normal(r));
    return stats_random_unit(r) < OUTLIERS ? value * OUTLIER : value;
}

static void fill(struct stats_random *r, double level, double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        values[i] = noisy(r, level);
}

/* --- single numbers --- */

static void test_middles(void **state ATTR_UNUSED)
{
    double even[] = {4, 1, 3, 2}, odd[] = {9, 1, 5}, one[] = {7};
    close_to(stats_median(even, 4), 2.5, 0);
    close_to(stats_median(odd, 3), 5, 0);
    close_to(stats_median(one, 1), 7, 0);
    assert_true(isnan(stats_median(one, 0)));
    double sorted[] = {0, 10, 20, 30};
    close_to(stats_quantile_sorted(sorted, 4, 0.5), 15, 1e-12);
    close_to(stats_quantile_sorted(sorted, 4, 1), 30, 0);
    double spread[] = {1, 2, 3, 4, 1000};
    close_to(stats_spread(spread, 5), 1.4826, 1e-9);
}

static void test_tails(void **state ATTR_UNUSED)
{
    close_to(stats_normal_above(1.959964), 0.025, 1e-7);
    close_to(stats_student_above(2.228139, 10), 0.025, 1e-7);
    close_to(stats_student_above(12.70620, 1), 0.025, 1e-7);
    close_to(stats_student_above(-2.228139, 10), 0.975, 1e-7);
    close_to(stats_student_above(4.297, 8), 0.00132, 2e-5);
    close_to(stats_student_above(1.96, 1e6), stats_normal_above(1.96), 1e-6);
    close_to(stats_student_above(0, 3), 0.5, 1e-12);
}

static void test_ratio(void **state ATTR_UNUSED)
{
    double ratio, before[] = {1, 1, 1, 100}, after[] = {2, 2, 2, 2}, zeros[] = {0, 0, 0};
    assert_int_equal(stats_ratio(before, 4, after, 4, &ratio), 0);
    close_to(ratio, 2, 0);
    assert_int_equal(stats_ratio(zeros, 3, after, 4, &ratio), 0);
    assert_true(isnan(ratio));
    assert_int_equal(stats_ratio(zeros, 3, zeros, 3, &ratio), 0);
    close_to(ratio, 1, 0);
    assert_int_equal(stats_ratio(before, 0, after, 4, &ratio), 0);
    assert_true(isnan(ratio));
}

/* --- ranks --- */

static void test_ranks_exact(void **state ATTR_UNUSED)
{
    struct stats_ranks r;
    double low[] = {1, 2, 3}, high[] = {4, 5, 6}, mixed[] = {1, 3, 5}, other[] = {2, 4, 6};
    assert_int_equal(stats_ranks_test(low, 3, high, 3, &r), 0);
    assert_true(r.is_exact);
    close_to(r.u, 9, 0);
    close_to(r.p_above, 1. / 20, 1e-12);
    close_to(r.p_below, 1, 1e-12);
    close_to(r.p, 0.1, 1e-12);
    assert_int_equal(stats_ranks_test(mixed, 3, other, 3, &r), 0);
    close_to(r.u, 6, 0);
    close_to(r.p_above, 7. / 20, 1e-12); /* counted by hand: sums of 12 and more */
    /* ties are shared, and counted as they are */
    double tied[] = {1, 1, 2}, ties[] = {1, 2, 2};
    assert_int_equal(stats_ranks_test(tied, 3, ties, 3, &r), 0);
    close_to(r.u, 6, 0);
    close_to(r.p_above, 0.5, 1e-12); /* 10 of 20 subsets have at least two of the three twos */
    double same[] = {5, 5, 5, 5};
    assert_int_equal(stats_ranks_test(same, 4, same, 4, &r), 0);
    close_to(r.p, 1, 1e-12);
    assert_int_equal(stats_ranks_test(same, 0, same, 4, &r), 0);
    close_to(r.p, 1, 0);
}

/* A value of the printed tables, and both ways of computing it where one hands over to the other. */
static void test_ranks_meet(void **state ATTR_UNUSED)
{
    struct stats_ranks r, half;
    double first[10], second[10] = {0.5, 1.5};
    for (int i = 0; i < 10; i++) {
        first[i] = i + 1;
        if (i > 1)
            second[i] = 100 + i;
    }
    assert_int_equal(stats_ranks_test(first, 10, second, 10, &r), 0);
    close_to(r.u, 81, 0); /* 100 pairs less the 10 and the 9 below */
    close_to(r.p_above, 0.0093, 0.0005);
    double x[60], y[60];
    for (int i = 0; i < 60; i++) {
        x[i] = i * 7919 % 1000;
        y[i] = i * 7907 % 1000 + 60;
    }
    assert_int_equal(stats_ranks_test(x, 25, y, 25, &half), 0);
    assert_int_equal(stats_ranks_test(x, 26, y, 25, &r), 0);
    assert_true(half.is_exact && !r.is_exact);
    double z = (half.u - 312.5 - 0.5) / sqrt(25. * 25 * 51 / 12);
    close_to(half.p_above, stats_normal_above(z), 0.003);
}

/* --- bootstrap --- */

static void test_bootstrap(void **state ATTR_UNUSED)
{
    struct stats_random random;
    struct stats_interval i, again;
    int covered = 0;
    enum { ROUNDS = 200 };
    stats_random_seed(&random, 2);
    for (int round = 0; round < ROUNDS; round++) {
        double x[20], y[20];
        fill(&random, 1, x, 20);
        fill(&random, 1.1, y, 20);
        assert_int_equal(stats_bootstrap_ratio(x, 20, y, 20, 0.95, 3, &i), 0);
        assert_int_equal(stats_bootstrap_ratio(x, 20, y, 20, 0.95, 3, &again), 0);
        assert_memory_equal(&i, &again, sizeof i);
        assert_true(i.low <= i.high && i.high < 1.3 && i.low > 0.9);
        covered += i.low <= 1.1 && 1.1 <= i.high;
    }
    assert_true(covered >= ROUNDS * 93 / 100);
    double few[] = {1, 2}, zeros[] = {0, 0, 0};
    assert_int_equal(stats_bootstrap_ratio(few, 2, few, 2, 0.95, 3, &i), 0);
    assert_true(isnan(i.low));
    assert_int_equal(stats_bootstrap_ratio(zeros, 3, zeros, 3, 0.95, 3, &i), 0);
    assert_true(isnan(i.low) && isnan(i.high));
}

/* --- change points --- */

static void test_changes_found(void **state ATTR_UNUSED)
{
    struct stats_random random;
    struct stats_changes c;
    int found = 0, near = 0, spurious = 0;
    enum { ROUNDS = 200, COUNT = 80, FIRST = 30, SECOND = 60 };
    stats_random_seed(&random, 4);
    for (int round = 0; round < ROUNDS; round++) {
        double values[COUNT];
        fill(&random, 100, values, FIRST);
        fill(&random, 115, values + FIRST, SECOND - FIRST);
        fill(&random, 100, values + SECOND, COUNT - SECOND);
        assert_int_equal(stats_changes_find(values, COUNT, 0.01, &c), 0);
        for (size_t i = 0; i < c.count; i++) {
            size_t off_first =
                c.change[i].at > FIRST ? c.change[i].at - FIRST : FIRST - c.change[i].at;
            size_t off_second =
                c.change[i].at > SECOND ? c.change[i].at - SECOND : SECOND - c.change[i].at;
            bool is_real = off_first <= 5 || off_second <= 5;
            found += is_real;
            near += off_first <= 2 || off_second <= 2;
            spurious += !is_real;
            assert_true(c.change[i].p <= 0.002);
        }
    }
    print_message("changes: found %d of %d, within 2 runs %d, spurious %d\n", found, 2 * ROUNDS,
                  near, spurious);
    assert_true(found >= 2 * ROUNDS * 95 / 100 && near >= 2 * ROUNDS * 85 / 100);
    assert_true(spurious <= 2 * ROUNDS * 3 / 100);
}

static void test_changes_of_none(void **state ATTR_UNUSED)
{
    struct stats_random random;
    struct stats_changes c;
    int alarms = 0;
    enum { ROUNDS = 1000, COUNT = 60 };
    stats_random_seed(&random, 5);
    for (int round = 0; round < ROUNDS; round++) {
        double values[COUNT];
        fill(&random, 3, values, COUNT);
        assert_int_equal(stats_changes_find(values, COUNT, 0.01, &c), 0);
        alarms += c.count > 0;
    }
    print_message("changes: %d of %d series without a change show one\n", alarms, ROUNDS);
    assert_true(alarms <= ROUNDS / 100);
}

static void test_changes_odd(void **state ATTR_UNUSED)
{
    struct stats_changes c;
    double same[50], zeros[50] = {0}, step[40], tiny[40];
    for (int i = 0; i < 50; i++)
        same[i] = 7;
    assert_int_equal(stats_changes_find(same, 50, 0.01, &c), 0);
    assert_int_equal(c.count, 0);
    assert_int_equal(stats_changes_find(zeros, 50, 0.01, &c), 0);
    assert_int_equal(c.count, 0);
    assert_int_equal(stats_changes_find(same, 0, 0.01, &c), 0);
    assert_int_equal(stats_changes_find(same, 3, 0.01, &c), 0);
    assert_int_equal(c.count, 0);
    for (int i = 0; i < 40; i++) {
        step[i] = i < 20 ? 0 : 5; /* from nothing to something: no ratio, and a change */
        tiny[i] = i < 20 ? 100 : 100.2;
    }
    assert_int_equal(stats_changes_find(step, 40, 0.01, &c), 0);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.change[0].at, 20);
    close_to(c.change[0].after, 5, 0);
    assert_int_equal(stats_changes_find(tiny, 40, 0.01, &c), 0);
    assert_int_equal(c.count, 0);
    /* one wild run is no level */
    same[25] = 700;
    assert_int_equal(stats_changes_find(same, 50, 0.01, &c), 0);
    assert_int_equal(c.count, 0);
}

static void test_changes_of_many(void **state ATTR_UNUSED)
{
    enum { COUNT = 3000, AT = 2700 };
    struct stats_random random;
    struct stats_changes c;
    double *values = malloc(COUNT * sizeof *values);
    stats_random_seed(&random, 6);
    fill(&random, 10, values, AT);
    fill(&random, 12, values + AT, COUNT - AT);
    assert_int_equal(stats_changes_find(values, COUNT, 0.01, &c), 0);
    assert_int_equal(c.first, COUNT - STATS_CHANGES_VALUES);
    assert_int_equal(c.count, 1);
    assert_true(c.change[0].at >= AT - 2 && c.change[0].at <= AT + 2);
    close_to(c.change[0].after / c.change[0].before, 1.2, 0.02);
    free(values);
}

/* --- the gate --- */

/* How often it trips, in thousandths. */
static int trips(uint64_t seed, size_t baseline, size_t group, double factor, double alpha,
                 int rounds)
{
    struct stats_random random;
    struct stats_gate_options o = {alpha, STATS_GATE_THRESHOLD, false};
    struct stats_gate g;
    double before[64], after[64];
    int tripped = 0;
    rounds /= IS_SANITIZED ? 5 : 1;
    stats_random_seed(&random, seed);
    for (int i = 0; i < rounds; i++) {
        fill(&random, 2, before, baseline);
        fill(&random, 2 * factor, after, group);
        assert_int_equal(stats_gate_decide(before, baseline, after, group, &o, &g), 0);
        tripped += g.verdict == STATS_WORSE;
    }
    int share = tripped * 1000 / rounds;
    print_message("gate: %2zu against %2zu runs, x %.2f, alpha %.4f: %.1f %% trip\n", group,
                  baseline, factor, alpha, (double)tripped * 100 / rounds);
    return share;
}

static void test_gate_false_alarms(void **state ATTR_UNUSED)
{
    static const size_t groups[] = {1, 2, 3, 5, 10, 20};
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        assert_true(trips(10 + i, 20, groups[i], 1, STATS_GATE_ALPHA, 2000) <= 10);
    assert_true(trips(20, 10, 10, 1, STATS_GATE_ALPHA, 2000) <= 10);
    assert_true(trips(21, 5, 1, 1, STATS_GATE_ALPHA, 2000) <= 10);
}

static void test_gate_power(void **state ATTR_UNUSED)
{
    assert_true(trips(30, 20, 20, 1.1, STATS_GATE_ALPHA, 2000) >= 950);
    assert_true(trips(31, 20, 10, 1.1, STATS_GATE_ALPHA, 2000) >= 900);
    /* three metrics share the chance of an alarm */
    assert_true(trips(32, 20, 20, 1.1, STATS_GATE_ALPHA / 3, 2000) >= 950);
    /* what fewer runs give, for the manual */
    trips(33, 20, 5, 1.1, STATS_GATE_ALPHA, 2000);
    assert_true(trips(34, 20, 5, 1.2, STATS_GATE_ALPHA, 2000) >= 950);
    trips(35, 20, 3, 1.3, STATS_GATE_ALPHA, 2000);
    trips(36, 10, 10, 1.1, STATS_GATE_ALPHA, 2000);
    assert_true(trips(37, 20, 1, 2, STATS_GATE_ALPHA, 2000) >= 900);
}

/* The whole check of one metric: the group, or a step in the series that it ends. */
static int check_trips(uint64_t seed, size_t history, size_t group, double factor, int rounds)
{
    struct stats_random random;
    struct stats_gate_options o = {STATS_GATE_ALPHA, STATS_GATE_THRESHOLD, false};
    struct stats_gate g;
    struct stats_change change;
    bool is_step;
    double series[256];
    int tripped = 0;
    rounds /= IS_SANITIZED ? 5 : 1;
    stats_random_seed(&random, seed);
    for (int i = 0; i < rounds; i++) {
        fill(&random, 2, series, history);
        fill(&random, 2 * factor, series + history, group);
        assert_int_equal(
            stats_gate_decide(series + history - 20, 20, series + history, group, &o, &g), 0);
        assert_int_equal(stats_gate_step(series, history + group, 20, &o, &change, &is_step), 0);
        tripped += g.verdict == STATS_WORSE || is_step;
    }
    print_message("check: %2zu runs after %zu, x %.2f: %.1f %% trip\n", group, history, factor,
                  (double)tripped * 100 / rounds);
    return tripped * 1000 / rounds;
}

static void test_check(void **state ATTR_UNUSED)
{
    assert_true(check_trips(40, 100, 1, 1, 1000) <= 10);
    assert_true(check_trips(41, 100, 10, 1, 1000) <= 10);
    assert_true(check_trips(42, 40, 20, 1, 1000) <= 10);
    assert_true(check_trips(43, 100, 20, 1.1, 300) >= 950);
    assert_true(check_trips(44, 100, 10, 1.1, 300) >= 900);
    check_trips(45, 100, 5, 1.1, 300);
}

/* Single runs, checked one by one: the series tells after some. */
static void test_steps(void **state ATTR_UNUSED)
{
    struct stats_random random;
    struct stats_gate_options o = {STATS_GATE_ALPHA, STATS_GATE_THRESHOLD, false};
    struct stats_change change;
    bool is_step;
    int after_ten = 0, too_old = 0;
    enum { ROUNDS = 200 };
    stats_random_seed(&random, 50);
    for (int i = 0; i < ROUNDS; i++) {
        double series[100];
        fill(&random, 1, series, 50);
        fill(&random, 1.15, series + 50, 50);
        assert_int_equal(stats_gate_step(series, 60, 20, &o, &change, &is_step), 0);
        after_ten += is_step && change.at >= 47 && change.at <= 53;
        assert_int_equal(stats_gate_step(series, 100, 20, &o, &change, &is_step), 0);
        too_old += is_step;
    }
    print_message("steps: +15 %% is told after ten runs in %d of %d\n", after_ten, ROUNDS);
    assert_true(after_ten >= ROUNDS * 85 / 100);
    assert_true(too_old <= ROUNDS * 2 / 100);
}

static void test_gate_alone(void **state ATTR_UNUSED)
{
    struct stats_gate_options o = {STATS_GATE_ALPHA, 0.05, false};
    struct stats_gate g;
    double still[10], wild[] = {1, 1.02, 0.97, 1.1, 0.99, 1.03, 0.96, 1, 1.04, 1.01}, run;
    for (int i = 0; i < 10; i++)
        still[i] = 1000 + i % 3;
    run = 1070;
    assert_int_equal(stats_gate_decide(still, 10, &run, 1, &o, &g), 0);
    assert_int_equal(g.verdict, STATS_WORSE);
    assert_false(g.by_ranks);
    run = 1030;
    assert_int_equal(stats_gate_decide(still, 10, &run, 1, &o, &g), 0);
    assert_int_equal(g.verdict, STATS_SAME);
    run = 1.4;
    assert_int_equal(stats_gate_decide(wild, 10, &run, 1, &o, &g), 0);
    assert_int_equal(g.verdict, STATS_SAME);
    assert_true(g.detectable > 1.5);
    run = 2;
    assert_int_equal(stats_gate_decide(wild, 10, &run, 1, &o, &g), 0);
    assert_int_equal(g.verdict, STATS_WORSE);
    assert_int_equal(stats_gate_decide(wild, 3, &run, 1, &o, &g), 0);
    assert_int_equal(g.verdict, STATS_TOO_FEW);
    assert_int_equal(stats_gate_decide(wild, 0, &run, 1, &o, &g), 0);
    assert_int_equal(g.verdict, STATS_TOO_FEW);
}

static void test_gate_directions(void **state ATTR_UNUSED)
{
    struct stats_gate_options up = {STATS_GATE_ALPHA, 0.05, false};
    struct stats_gate_options down = {STATS_GATE_ALPHA, 0.05, true};
    struct stats_gate g;
    struct stats_random random;
    double before[20], more[20], less[20], zeros[20] = {0}, ones[20];
    stats_random_seed(&random, 7);
    fill(&random, 1, before, 20);
    fill(&random, 1.3, more, 20);
    fill(&random, 0.7, less, 20);
    for (int i = 0; i < 20; i++)
        ones[i] = 1;
    assert_int_equal(stats_gate_decide(before, 20, more, 20, &up, &g), 0);
    assert_int_equal(g.verdict, STATS_WORSE);
    close_to(g.ratio, 1.3, 0.05);
    assert_true(g.ranks.p_above < 1e-4);
    assert_int_equal(stats_gate_decide(before, 20, more, 20, &down, &g), 0);
    assert_int_equal(g.verdict, STATS_BETTER);
    assert_int_equal(stats_gate_decide(before, 20, less, 20, &up, &g), 0);
    assert_int_equal(g.verdict, STATS_BETTER);
    assert_int_equal(stats_gate_decide(before, 20, less, 20, &down, &g), 0);
    assert_int_equal(g.verdict, STATS_WORSE);
    /* from nothing to something has no ratio, and is worse all the same */
    assert_int_equal(stats_gate_decide(zeros, 20, ones, 20, &up, &g), 0);
    assert_int_equal(g.verdict, STATS_WORSE);
    assert_true(isnan(g.ratio));
    /* a real change below the threshold is let pass */
    up.threshold = 0.5;
    assert_int_equal(stats_gate_decide(before, 20, more, 20, &up, &g), 0);
    assert_int_equal(g.verdict, STATS_SAME);
}

/* --- slopes --- */

static void test_slope(void **state ATTR_UNUSED)
{
    close_to(stats_student_point(1), 12.7062047, 1e-6);
    close_to(stats_student_point(3), 3.18244631, 1e-6);
    close_to(stats_student_point(30), 2.04227246, 1e-6);
    close_to(stats_student_point(1e6), 1.95996635, 1e-5);
    struct stats_points p = {0};
    const double y[] = {2, 4, 5, 4, 5}; /* by hand: slope 0.6, sum of squared residuals 2.4 */
    for (int i = 0; i < 5; i++)
        stats_points_add(&p, i + 1, y[i]);
    struct stats_slope s = stats_slope_of(&p);
    close_to(s.slope, 0.6, 1e-12);
    close_to(s.high - s.slope, 3.18244631 * sqrt(2.4 / 3 / 10), 1e-7);
    struct stats_points runs = {.xx = p.xx}; /* the same in runs: 4 and 5 come twice */
    stats_points_add_run(&runs, 1, 1, 2);
    stats_points_add_run(&runs, 2, 2 + 4, 4);
    stats_points_add_run(&runs, 2, 3 + 5, 5);
    close_to(stats_slope_of(&runs).slope, s.slope, 1e-12);
    close_to(stats_slope_of(&runs).low, s.low, 1e-9);
    struct stats_points few = {0}, one_x = {0};
    stats_points_add(&few, 0, 1);
    stats_points_add(&few, 1, 2);
    assert_true(isnan(stats_slope_of(&few).slope));
    for (int i = 0; i < 5; i++)
        stats_points_add(&one_x, 3, i);
    assert_true(isnan(stats_slope_of(&one_x).low));
}

/* The interval holds the truth in 95 of 100 seeded cases. */
static void test_slope_covers(void **state ATTR_UNUSED)
{
    enum { CASES = 8000, POINTS = 8 };
    struct stats_random r;
    stats_random_seed(&r, 7);
    int held = 0;
    for (int i = 0; i < CASES; i++) {
        struct stats_points p = {0};
        for (int x = 0; x < POINTS; x++)
            stats_points_add(&p, x, 1000 * x + 300 * normal(&r));
        struct stats_slope s = stats_slope_of(&p);
        held += s.low <= 1000 && 1000 <= s.high;
    }
    close_to((double)held / CASES, 0.95, 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_middles),
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_slope),
        cmocka_unit_test(test_slope_covers),
        cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_ranks_exact),
        cmocka_unit_test(test_ranks_meet),
        cmocka_unit_test(test_bootstrap),
        cmocka_unit_test(test_changes_found),
        cmocka_unit_test(test_changes_of_none),
        cmocka_unit_test(test_changes_odd),
        cmocka_unit_test(test_changes_of_many),
        cmocka_unit_test(test_gate_false_alarms),
        cmocka_unit_test(test_gate_power),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_gate_alone),
        cmocka_unit_test(test_gate_directions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
