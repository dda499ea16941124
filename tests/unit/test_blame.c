/* Who is to blame, on simulated profiles: many functions, noisy runs, slow machines. */
#include "analysis/culprit.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "format/writer.h"
#include "stats/blame.h"
#include "stats/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PARTS = 40, RUNS_MAX = 20 };

static double normal(struct stats_random *r)
{
    double u = 1 - stats_random_unit(r), v = stats_random_unit(r);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* A program: shares like 1, 1/2, 1/3 …, each function differing by 3 % from run to run, the machine
 * by 5 % and in one run of twenty by half; sampled. */
struct program {
    double share[PARTS];
};

static void make_program(struct program *p)
{
    double all = 0;
    for (int i = 0; i < PARTS; i++)
        all += p->share[i] = 1. / (i + 1);
    for (int i = 0; i < PARTS; i++)
        p->share[i] /= all;
}

static void simulate(const struct program *p, struct stats_random *r, double samples, size_t run,
                     size_t runs, struct stats_blame_cell *cell)
{
    double machine = exp(0.05 * normal(r)) * (stats_random_unit(r) < 0.05 ? 1.5 : 1);
    for (int i = 0; i < PARTS; i++) {
        double expected = p->share[i] * machine * exp(0.03 * normal(r)) * samples;
        /* Poisson, near enough */
        double seen = fmax(0, floor(expected + sqrt(expected) * normal(r) + 0.5));
        cell[(size_t)i * runs + run] = (struct stats_blame_cell){seen * 1e-3, seen};
    }
}

struct outcome {
    int first, any;
};

static struct outcome try_many(uint64_t seed, size_t before, size_t after, double samples,
                               bool has_culprit, double factor, int rounds)
{
    static struct stats_blame_cell cell[PARTS * RUNS_MAX];
    static struct stats_blame_part part[PARTS];
    struct stats_random random;
    struct outcome o = {0};
    size_t runs = before + after;
    stats_random_seed(&random, seed);
    for (int round = 0; round < rounds; round++) {
        struct program old, young;
        make_program(&old);
        young = old;
        size_t culprit = stats_random_below(&random, 5);
        if (has_culprit)
            young.share[culprit] *= factor;
        for (size_t i = 0; i < runs; i++)
            simulate(i < before ? &old : &young, &random, samples, i, runs, cell);
        struct stats_blame_input in = {
            cell, PARTS, before, after, NULL, STATS_BLAME_ALPHA, STATS_BLAME_LEAST};
        assert_int_equal(stats_blame_find(&in, part), 0);
        o.any += part[0].is_blamed;
        o.first += part[0].is_blamed && part[0].part == culprit && part[0].change > 0;
    }
    print_message("blame: %zu against %zu runs, %.0f samples%s: right first %.1f %%, any %.1f %%\n",
                  after, before, samples, has_culprit ? "" : ", equal", o.first * 100. / rounds,
                  o.any * 100. / rounds);
    return o;
}

static void test_culprits_first(void **state ATTR_UNUSED)
{
    enum { ROUNDS = 500 };
    assert_true(try_many(1, 5, 5, 4000, true, 1.4, ROUNDS).first >= ROUNDS * 95 / 100);
    assert_true(try_many(2, 10, 10, 5000, true, 1.35, ROUNDS).first >= ROUNDS * 95 / 100);
    assert_true(try_many(3, 1, 1, 10000, true, 1.8, ROUNDS).first >= ROUNDS * 90 / 100);
    assert_true(try_many(4, 10, 1, 10000, true, 1.6, ROUNDS).first >= ROUNDS * 90 / 100);
}

static void test_equals_blame_nobody(void **state ATTR_UNUSED)
{
    enum { ROUNDS = 1000 };
    assert_true(try_many(5, 1, 1, 2000, false, 1, ROUNDS).any <= ROUNDS * 4 / 100);
    assert_true(try_many(6, 1, 1, 20000, false, 1, ROUNDS).any <= ROUNDS * 4 / 100);
    assert_true(try_many(7, 2, 2, 2000, false, 1, ROUNDS).any <= ROUNDS * 4 / 100);
    assert_true(try_many(8, 5, 5, 2000, false, 1, ROUNDS).any <= ROUNDS * 4 / 100);
    assert_true(try_many(9, 10, 10, 10000, false, 1, ROUNDS).any <= ROUNDS * 4 / 100);
    assert_true(try_many(10, 10, 1, 2000, false, 1, ROUNDS).any <= ROUNDS * 4 / 100);
}

static void test_odd_inputs(void **state ATTR_UNUSED)
{
    struct stats_blame_cell cell[4] = {{1, 1000}, {2, 2000}, {0, 0}, {0, 0}};
    struct stats_blame_part part[2];
    struct stats_blame_input in = {cell, 2, 1, 1, NULL, STATS_BLAME_ALPHA, STATS_BLAME_LEAST};
    assert_int_equal(stats_blame_find(&in, part), 0);
    assert_true(part[0].part == 0 && part[0].is_blamed && part[0].change == 1);
    assert_false(part[1].is_blamed);
    in.parts = 0;
    assert_int_equal(stats_blame_find(&in, part), 0);
    in.after_count = 0;
    assert_int_equal(stats_blame_find(&in, part), E_INVALID);
    /* what was counted has no error of sampling */
    cell[0].samples = cell[1].samples = INFINITY;
    in = (struct stats_blame_input){cell, 2, 1, 1, NULL, STATS_BLAME_ALPHA, STATS_BLAME_LEAST};
    assert_int_equal(stats_blame_find(&in, part), 0);
    assert_true(part[0].is_blamed && isfinite(part[0].p));
}

/* --- over recordings --- */

struct frame {
    const char *name;
    uint32_t first_line, line, samples;
};

static void add(struct analysis_blame *b, bool is_after, const struct frame *frames, size_t count)
{
    char path[] = "/tmp/pyrometer-test-XXXXXX";
    struct format_writer *w;
    struct format_writer_options options = {.force = true};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_process(w, &(struct record_process){.id = 1, .pid = 100, .kind = 1});
    format_writer_thread(w, &(struct record_thread){.id = 1, .process = 1, .tid = 100});
    const char *file = is_after ? "/new/place/app.py" : "/old/app.py";
    uint32_t main_code = format_writer_code(
        w, &(struct record_code){.name = format_writer_string(w, "main", 4),
                                 .file = format_writer_string(w, file, strlen(file)),
                                 .first_line = 1});
    for (size_t i = 0; i < count; i++) {
        const struct frame *f = &frames[i];
        uint32_t code = format_writer_code(
            w, &(struct record_code){.name = format_writer_string(w, f->name, strlen(f->name)),
                                     .file = format_writer_string(w, file, strlen(file)),
                                     .first_line = f->first_line});
        uint32_t top =
            format_writer_stack(w, &(struct record_stack){0, main_code, (uint32_t)(2 + i)});
        uint32_t node = format_writer_stack(w, &(struct record_stack){top, code, f->line});
        format_writer_sample(w, &(struct record_sample){.thread = 1,
                                                        .stack = node,
                                                        .count = f->samples,
                                                        .duration_ns = f->samples * NS_PER_MS});
    }
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    struct profile *profile;
    struct analysis_weights weights;
    struct analysis_query q = {.metric = ANALYSIS_METRICS};
    assert_int_equal(profile_load(path, &profile), 0);
    assert_int_equal(analysis_weights_init(profile, &q, &weights), 0);
    assert_int_equal(analysis_blame_add(b, is_after, &weights), 0);
    analysis_weights_release(&weights);
    profile_free(profile);
    unlink(path);
}

static void test_recordings(void **state ATTR_UNUSED)
{
    static const struct frame before[] = {{"steady", 10, 11, 1000},
                                          {"calm", 20, 21, 900},
                                          {"parse", 30, 31, 300},
                                          {"parse", 30, 33, 500},
                                          {"quiet", 40, 41, 600}};
    /* everything moved by five lines and lies elsewhere; line 33 takes twice as long */
    static const struct frame after[] = {{"steady", 15, 16, 1010},
                                         {"calm", 25, 26, 905},
                                         {"parse", 35, 36, 310},
                                         {"parse", 35, 38, 1050},
                                         {"quiet", 45, 46, 590}};
    struct analysis_blame *b;
    struct analysis_culprits c;
    assert_int_equal(analysis_blame_new(&b), 0);
    assert_int_equal(analysis_blame_find(b, &c), E_INVALID);
    for (int i = 0; i < 3; i++)
        add(b, false, before, ARRAY_LEN(before));
    assert_int_equal(analysis_blame_find(b, &c), E_INVALID);
    for (int i = 0; i < 2; i++)
        add(b, true, after, ARRAY_LEN(after));
    assert_int_equal(analysis_blame_find(b, &c), 0);
    assert_int_equal(c.blamed, 1);
    assert_int_equal(c.before_count, 3);
    assert_int_equal(c.after_count, 2);
    assert_true(fabs(c.before - 3.3) < 1e-9 && fabs(c.after - 3.865) < 1e-9);
    const struct analysis_culprit *first = &c.list[0];
    assert_string_equal(first->function.name, "parse");
    assert_string_equal(first->function.file, "/new/place/app.py");
    assert_int_equal(first->function.line, 35);
    assert_int_equal(first->line.line, 38);
    assert_true(fabs(first->line.before - 0.5) < 1e-9 && fabs(first->line.after - 1.05) < 1e-9);
    assert_string_equal(first->caller.name, "main");
    assert_int_equal(first->caller.line, 5);
    assert_true(fabs(first->blame.change - 0.56) < 0.03 && first->blame.error < 0.3);
    analysis_culprits_release(&c);
    analysis_blame_free(b);
    analysis_blame_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_culprits_first),
        cmocka_unit_test(test_equals_blame_nobody),
        cmocka_unit_test(test_odd_inputs),
        cmocka_unit_test(test_recordings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
