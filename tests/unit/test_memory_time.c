/* Memory over time: growth by iteration, what is the interpreter's own, sizes and curves, on recordings of
 * known truth that are written here and read back. */
#include "analysis/curves.h"
#include "analysis/leaks.h"
#include "analysis/runtime.h"
#include "analysis/sizes.h"
#include "format/writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char path[] = "/tmp/pyrometer-test-XXXXXX";
static struct format_writer *w;
static uint32_t n_main, n_leaks, n_wobbles, n_import;

enum { SECOND = 1000000000 };

static uint32_t text(const char *t)
{
    return format_writer_string(w, t, strlen(t));
}

static uint32_t code(const char *name, const char *file, uint32_t line)
{
    return format_writer_code(
        w, &(struct record_code){.name = text(name), .file = text(file), .first_line = line});
}

static uint32_t node(uint32_t parent, uint32_t code_id, uint32_t line)
{
    return format_writer_stack(w, &(struct record_stack){parent, code_id, line});
}

static void open_recording(void)
{
    struct format_writer_options options = {.force = true, .run_id = {0xab, 0xcd}};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_meta(w, "instruments", "memory");
    for (uint32_t i = 1; i <= 2; i++) {
        format_writer_process(w, &(struct record_process){.id = i, .pid = 100 * i});
        format_writer_thread(w, &(struct record_thread){.id = i, .process = i, .tid = 100 * i});
    }
    n_main = node(0, code("main", "/srv/app.py", 1), 5);
    n_leaks = node(n_main, code("leaks", "/srv/app.py", 10), 12);
    n_wobbles = node(n_main, code("wobbles", "/srv/app.py", 20), 21);
    n_import = node(n_main, code("get_code", "<frozen importlib._bootstrap_external>", 900), 950);
}

static struct profile *close_recording(void)
{
    struct profile *p = NULL;
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    assert_int_equal(profile_load(path, &p), 0);
    return p;
}

static void mark(uint32_t thread, const char *name, uint64_t ns)
{
    struct record_mark m = {.thread = thread, .name = text(name), .start_ns = ns};
    format_writer_mark(w, &m);
}

static void checkpoint(uint32_t process, uint32_t flags, uint64_t ns,
                       const struct record_site *sites, size_t count)
{
    struct record_memory m = {.process = process, .flags = flags, .time_ns = ns};
    format_writer_memory(w, &m, NULL, 0, sites, count);
}

/* Ten iterations, 1 s each, marked "step" with a checkpoint right behind each mark; "half" is set twice.
 * leaks keeps 1000 bytes each time; wobbles has 0 or 500; between the marks leaks has 7777 more, which no
 * point sees. In the end everything of leaks is freed. Import keeps 300 from the start. */
static struct profile *iterating(uint64_t late_ns)
{
    open_recording();
    struct record_site start[] = {{.thread = 1, .stack = n_import, .count = 1, .bytes = 300},
                                  {.thread = 1, .stack = 0, .count = 1, .bytes = 200}};
    checkpoint(1, 0, SECOND / 2, start, 2);
    for (uint64_t i = 1; i <= 10; i++) {
        if (i == 3 || i == 6) {
            mark(1, "half", i * SECOND - SECOND / 2);
            checkpoint(1, RECORD_MEMORY_MARK, i * SECOND - SECOND / 2 + late_ns, NULL, 0);
        }
        mark(1, "step", i * SECOND);
        struct record_site at[] = {
            {.thread = 1,
             .stack = n_leaks,
             .count = 1,
             .bytes = 1000,
             .freed = i > 1,
             .freed_bytes = i > 1 ? 7777 : 0},
            {.thread = 1,
             .stack = n_wobbles,
             .count = i % 2,
             .bytes = i % 2 ? 500 : 0,
             .freed = !(i % 2),
             .freed_bytes = i % 2 ? 0 : 500},
        };
        checkpoint(1, RECORD_MEMORY_MARK, i * SECOND + late_ns, at, 2);
        struct record_site between = {.thread = 1, .stack = n_leaks, .count = 1, .bytes = 7777};
        checkpoint(1, 0, i * SECOND + SECOND / 4, &between, 1);
    }
    mark(2, "step", 3ull * SECOND); /* another process has a few, too */
    struct record_site end[] = {
        {.thread = 1, .stack = n_leaks, .freed = 11, .freed_bytes = 10000 + 7777}};
    checkpoint(1, RECORD_MEMORY_LAST, 11ull * SECOND, end, 1);
    return close_recording();
}

struct made {
    struct analysis_query query;
    struct analysis_weights weights;
    struct analysis_rows rows;
    struct analysis_growth growth;
};

static void make(struct made *m, const struct profile *p, const char *name, bool skips_runtime)
{
    m->query = (struct analysis_query){.metric = analysis_metric_find("leaked"),
                                       .skips_runtime = skips_runtime};
    assert_int_equal(analysis_weights_init(p, &m->query, &m->weights), 0);
    assert_int_equal(analysis_rows_init(&m->weights, ANALYSIS_BY_FUNCTION, &m->rows), 0);
    assert_int_equal(analysis_growth_init(&m->rows, &m->query, name, &m->growth), 0);
}

static void unmake(struct made *m)
{
    analysis_growth_release(&m->growth);
    analysis_rows_release(&m->rows);
    analysis_weights_release(&m->weights);
}

static uint32_t row(const struct made *m, const char *name)
{
    for (uint32_t i = 0; i < m->rows.count; i++)
        if (m->rows.row[i].name.len == strlen(name) &&
            memcmp(m->rows.row[i].name.text, name, strlen(name)) == 0)
            return i;
    fail_msg("no row %s", name);
    return 0;
}

static struct stats_slope slope(const struct made *m, const char *name)
{
    uint32_t at = row(m, name);
    return m->growth.row ? m->growth.row[at] : (struct stats_slope){NAN, NAN, NAN};
}

static void check_growth(const struct made *m)
{
    assert_int_equal(m->growth.mark.len, 4);
    assert_memory_equal(m->growth.mark.text, "step", 4);
    assert_int_equal(m->growth.iterations, 10);
    assert_int_equal(m->growth.points, 10);
    assert_int_equal(m->growth.process, 1);
    assert_int_equal(m->growth.other_names, 0); /* "half" is too rare */
    assert_float_equal(slope(m, "leaks").slope, 1000, 1e-6);
    assert_float_equal(slope(m, "leaks").low, 1000, 1e-3);
    assert_true(slope(m, "wobbles").low < 0 && slope(m, "wobbles").high > 0);
    assert_true(m->growth.total.low > 800 && m->growth.total.high < 1200);
    assert_true(m->growth.total.low < 1000 - 15 && m->growth.total.high > 1000 - 15);
}

/* In order where there is a checkpoint for each mark, however late it is. */
static void test_growth(void **state ATTR_UNUSED)
{
    const uint64_t late[] = {0, 1000, 700000000};
    for (size_t i = 0; i < ARRAY_LEN(late); i++) {
        struct profile *p = iterating(late[i] % SECOND);
        struct made m;
        make(&m, p, NULL, true);
        check_growth(&m);
        unmake(&m);
        profile_free(p);
    }
}

/* A step in the first iterations is no growth, however straight a line can be drawn through it. */
static void test_a_step_is_no_growth(void **state ATTR_UNUSED)
{
    enum { TURNS = 20 };
    for (uint64_t steps = 1; steps <= TURNS; steps++) {
        open_recording();
        for (uint64_t i = 0; i < TURNS; i++) {
            struct record_site site = {.thread = 1, .stack = n_leaks, .count = 1, .bytes = 1000};
            mark(1, "step", i * SECOND);
            checkpoint(1, RECORD_MEMORY_MARK, i * SECOND, &site, i < steps);
        }
        struct profile *p = close_recording();
        struct made m;
        make(&m, p, NULL, true);
        assert_true(slope(&m, "leaks").high >= 0);
        if (steps <= TURNS / 3)
            assert_true(slope(&m, "leaks").low <= 0);
        if (steps >= TURNS - 2)
            assert_true(slope(&m, "leaks").low > 0);
        unmake(&m);
        profile_free(p);
    }
}

static void test_marks_by_name(void **state ATTR_UNUSED)
{
    struct profile *p = iterating(0);
    struct made m;
    make(&m, p, "half", false);
    assert_int_equal(m.growth.iterations, 0);
    assert_null(m.growth.row);
    assert_true(isnan(m.growth.total.slope));
    unmake(&m);
    make(&m, p, "step", false);
    check_growth(&m);
    unmake(&m);
    profile_free(p);
}

/* What grows comes first, though the end has freed it; who only calls is left out. */
static void test_leaks_are_chosen(void **state ATTR_UNUSED)
{
    struct profile *p = iterating(0);
    struct made m;
    struct analysis_select select = {0};
    struct analysis_selection s;
    make(&m, p, NULL, false);
    assert_int_equal(m.weights.total.weight, 500);
    assert_int_equal(analysis_leaks_select(&m.rows, &m.growth, &select, &s), 0);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.row[0], row(&m, "leaks"));
    assert_int_equal(s.row[1], row(&m, "get_code"));
    assert_int_equal(s.row[2], row(&m, "<no Python frame>"));
    analysis_selection_release(&s);
    unmake(&m);
    make(&m, p, NULL, true); /* what imports keep is no leak */
    assert_int_equal(m.weights.total.weight, 0);
    select.limit = 1;
    assert_int_equal(analysis_leaks_select(&m.rows, &m.growth, &select, &s), 0);
    assert_int_equal(s.count, 1);
    analysis_selection_release(&s);
    unmake(&m);
    profile_free(p);
}

static void test_runtime(void **state ATTR_UNUSED)
{
    open_recording();
    uint32_t site = node(0, code("main", "/usr/lib/python3.8/site.py", 500), 510);
    uint32_t frozen = node(site, code("exists", "<frozen genericpath>", 16), 19);
    uint32_t called = node(n_main, code("exists", "<frozen genericpath>", 16), 19);
    uint32_t other = node(n_import, code("<module>", "/srv/lib.py", 1), 1);
    uint32_t body = node(n_import, code("<module>", "/usr/lib/python3.8/json/__init__.py", 1), 1);
    uint32_t class = node(body, code("__new__", "<frozen abc>", 105), 106);
    uint32_t used = node(n_main, code("loads", "/usr/lib/python3.8/json/__init__.py", 299), 343);
    uint32_t thread = node(0, code("_bootstrap", "/usr/lib/python3.8/threading.py", 900), 910);
    uint32_t installed =
        node(n_import, code("<module>", "/usr/lib/python3.8/site-packages/x/__init__.py", 1), 1);
    struct profile *p = close_recording();
    uint8_t *own;
    assert_int_equal(analysis_runtime_nodes(profile_tables(p), &own), 0);
    assert_true(own[0] && own[n_import] && own[site] && own[frozen] && own[body] && own[class]);
    assert_false(own[n_main] || own[n_leaks] || own[called] || own[other] || own[used] ||
                 own[thread] || own[installed]);
    free(own);
    profile_free(p);
}

static void test_sizes(void **state ATTR_UNUSED)
{
    open_recording();
    struct record_sizes first[] = {{0, 3, 10, 100}, {8, 12, 1, 5000}}, second[] = {{0, 3, 2, 20}};
    struct record_site sites[] = {
        {.thread = 1, .stack = n_main, .count = 10, .bytes = 100},
        {.thread = 1, .stack = n_main, .allocator = 8, .count = 1, .bytes = 5000}};
    struct record_memory m = {.process = 1, .time_ns = SECOND};
    format_writer_memory(w, &m, first, 2, sites, 2);
    m.time_ns = 2ull * SECOND;
    format_writer_memory(w, &m, second, 1, NULL, 0);
    struct profile *p = close_recording();
    struct analysis_query q = {.metric = analysis_metric_find("allocated")};
    struct analysis_memory *memory;
    struct analysis_sizes sizes;
    assert_int_equal(analysis_memory_new(p, &q, &memory), 0);
    assert_int_equal(analysis_sizes_init(p, &q, memory, &sizes), 0);
    assert_int_equal(sizes.bin[3].count, 12);
    assert_int_equal(sizes.bin[3].bytes, 120);
    assert_int_equal(sizes.total.bytes, 5120);
    assert_int_equal(sizes.allocator[8].bytes, 5000);
    q.has_from = true;
    q.from = 1;
    assert_int_equal(analysis_sizes_init(p, &q, memory, &sizes), 0);
    assert_int_equal(sizes.total.count, 2);
    assert_int_equal(analysis_size_from(0), 0);
    assert_int_equal(analysis_size_to(0), 1);
    assert_int_equal(analysis_size_from(3), 8);
    assert_int_equal(analysis_size_to(3), 15);
    assert_true(analysis_size_to(63) == UINT64_MAX);
    analysis_memory_free(memory);
    profile_free(p);
}

static void counter(uint32_t thread, const char *name, uint64_t ns, double value)
{
    struct record_counter c = {.thread = thread, .name = text(name), .time_ns = ns, .value = value};
    format_writer_counter(w, &c);
}

static void test_curves(void **state ATTR_UNUSED)
{
    open_recording();
    counter(1, "memory.rss", 1ull * SECOND, 1000);
    counter(1, "memory.rss", 1ull * SECOND + 1, 3000);
    counter(1, "memory.rss", 9ull * SECOND, 500);
    counter(1, "queue", 2ull * SECOND, 1e12);
    counter(1, "memory.rss", 2ull * SECOND, NAN);
    mark(1, "step", 4ull * SECOND);
    mark(1, "step", 3ull * SECOND);
    struct record_memory m = {.process = 1,
                              .time_ns = 5ull * SECOND,
                              .live_bytes = 40,
                              .peak_bytes = 90,
                              .peak_ns = 2ull * SECOND};
    format_writer_memory(w, &m, NULL, 0, NULL, 0);
    m = (struct record_memory){.process = 2,
                               .time_ns = 10ull * SECOND,
                               .live_bytes = 70,
                               .peak_bytes = 700,
                               .peak_ns = 8ull * SECOND};
    format_writer_memory(w, &m, NULL, 0, NULL, 0);
    struct profile *p = close_recording();
    struct analysis_query q = {.metric = ANALYSIS_METRICS};
    struct analysis_curves c;
    assert_int_equal(analysis_curves_init(p, &q, 10, &c), 0);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.curve[0].process, 2); /* the higher peak */
    assert_true(c.to_ns == 10ull * SECOND);
    const struct analysis_curve *one = &c.curve[1];
    assert_float_equal(one->value[ANALYSIS_CURVE_RSS][1], 3000, 0); /* the most in its place */
    assert_true(isnan(one->value[ANALYSIS_CURVE_RSS][2]));
    assert_int_equal(one->points[ANALYSIS_CURVE_RSS], 2);
    assert_float_equal(one->value[ANALYSIS_CURVE_ALLOCATED][2], 90, 0);
    assert_float_equal(one->value[ANALYSIS_CURVE_ALLOCATED][5], 40, 0);
    assert_int_equal(c.mark.len, 2);
    assert_true(c.mark.data[0].time_ns == 3ull * SECOND);
    assert_int_equal(analysis_curves_place(&c, 0), 0);
    assert_int_equal(analysis_curves_place(&c, UINT64_MAX), 9);
    analysis_curves_release(&c);
    q.has_process = true;
    q.process = 100;
    assert_int_equal(analysis_curves_init(p, &q, 10, &c), 0);
    assert_int_equal(c.count, 1);
    analysis_curves_release(&c);
    profile_free(p);
}

int main(void)
{
    close(mkstemp(path));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth),        cmocka_unit_test(test_a_step_is_no_growth),
        cmocka_unit_test(test_marks_by_name), cmocka_unit_test(test_leaks_are_chosen),
        cmocka_unit_test(test_runtime),       cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_curves),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
