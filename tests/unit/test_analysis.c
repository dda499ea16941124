/* Profile, weights, rows, edges, selection and the collapsed export, on recordings of known truth
 * that are written here and read back. */
#include "analysis/edges.h"
#include "analysis/select.h"
#include "base/clock.h"
#include "base/err.h"
#include "export/export.h"
#include "format/writer.h"
#include "view/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char path[] = "/tmp/pyrometer-test-XXXXXX";
static struct format_writer *w;

static uint32_t text(const char *t)
{
    return format_writer_string(w, t, strlen(t));
}

static uint32_t code(const char *name, const char *file, uint32_t line)
{
    return format_writer_code(
        w, &(struct record_code){.name = text(name), .file = text(file), .first_line = line});
}

static uint32_t special(const char *name)
{
    return format_writer_code(
        w, &(struct record_code){.name = text(name), .flags = RECORD_CODE_SPECIAL});
}

static uint32_t node(uint32_t parent, uint32_t code_id, uint32_t line)
{
    return format_writer_stack(w, &(struct record_stack){parent, code_id, line});
}

/* `count` samples of 1 ms each. */
static void sample(uint32_t thread, uint32_t stack, uint32_t state, uint32_t count, uint64_t at_ms)
{
    format_writer_sample(w, &(struct record_sample){.thread = thread,
                                                    .stack = stack,
                                                    .state = state,
                                                    .count = count,
                                                    .start_ns = at_ms * NS_PER_MS,
                                                    .duration_ns = count * NS_PER_MS});
}

static void open_recording(void)
{
    struct format_writer_options options = {.force = true, .run_id = {0xab, 0xcd}};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_meta(w, "command", "python app.py");
    format_writer_process(w, &(struct record_process){.id = 1,
                                                      .pid = 100,
                                                      .kind = RECORD_PROCESS_PYTHON,
                                                      .command = text("python app.py"),
                                                      .python_version = text("3.11.7")});
    format_writer_process(w, &(struct record_process){
                                 .id = 2, .pid = 200, .parent_pid = 100, .command = text("child")});
    format_writer_thread(
        w, &(struct record_thread){
               .id = 1, .process = 1, .tid = 100, .name = text("MainThread"), .ident = 7});
    format_writer_thread(
        w, &(struct record_thread){.id = 2, .process = 1, .tid = 101, .name = text("worker")});
    format_writer_thread(w, &(struct record_thread){.id = 3, .process = 2, .tid = 201});
}

static struct profile *close_recording(void)
{
    struct profile *p = NULL;
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    assert_int_equal(profile_load(path, &p), 0);
    return p;
}

/* main → fact → fact → fact (recursion through two code objects of the same function), main → idle,
 * in a worker fact alone, in a child the empty stack and <moving>. In ms:
 *   thread 1: main 10, main>fact 20 (cpu), main>fact>fact 30 (cpu gil), …>fact>fact 40, main>idle
 * 100 thread 2: fact 50 (cpu)        thread 3: (no frame) 5, fact><moving> 3 */
static struct profile *known_profile(void)
{
    open_recording();
    uint32_t main_code = code("main", "/srv/app.py", 1);
    uint32_t fact = code("fact", "/srv/app.py", 10), fact_again = code("fact", "/srv/app.py", 10);
    uint32_t idle = code("idle", "/usr/lib/python3.11/site-packages/lib/__init__.py", 5);
    uint32_t n_main = node(0, main_code, 2);
    uint32_t f1 = node(n_main, fact, 11), f2 = node(f1, fact_again, 11), f3 = node(f2, fact, 12);
    uint32_t n_idle = node(n_main, idle, 6), lone = node(0, fact, 12);
    uint32_t moving = node(lone, special("<moving>"), 0);
    enum { CPU = RECORD_ON_CPU, GIL = RECORD_HOLDS_GIL };
    sample(1, n_main, 0, 10, 0);
    sample(1, f1, CPU, 20, 10);
    sample(1, f2, CPU | GIL, 30, 30);
    sample(1, f3, 0, 40, 60);
    sample(1, n_idle, 0, 100, 100);
    sample(2, lone, CPU, 50, 0);
    sample(3, 0, 0, 5, 0);
    sample(3, moving, RECORD_MOVING, 3, 5);
    return close_recording();
}

enum { WHOLE_MS = 258 };

struct made {
    struct profile *profile;
    struct analysis_weights weights;
    struct analysis_rows rows;
};

/* In place: the rows point to the weights. */
static void make(struct made *m, struct profile *p, struct analysis_query query,
                 enum analysis_by by)
{
    m->profile = p;
    if (!query.metric)
        query.metric = analysis_metric_find("wall");
    assert_int_equal(analysis_weights_init(p, &query, &m->weights), 0);
    assert_int_equal(analysis_rows_init(&m->weights, by, &m->rows), 0);
}

static void unmake(struct made *m)
{
    analysis_rows_release(&m->rows);
    analysis_weights_release(&m->weights);
}

static uint32_t find_row(const struct made *m, const char *name, uint32_t line)
{
    uint32_t found = ANALYSIS_ROW_NONE;
    for (uint32_t i = 0; i < m->rows.count; i++) {
        const struct analysis_row *row = &m->rows.row[i];
        if (row->name.len == strlen(name) && memcmp(row->name.text, name, row->name.len) == 0 &&
            (!line || row->line == line)) {
            assert_int_equal(found, ANALYSIS_ROW_NONE);
            found = i;
        }
    }
    return found;
}

static void expect_row(const struct made *m, const char *name, uint32_t line, uint64_t self_ms,
                       uint64_t total_ms)
{
    uint32_t i = find_row(m, name, line);
    assert_int_not_equal(i, ANALYSIS_ROW_NONE);
    const struct analysis_row *row = &m->rows.row[i];
    assert_int_equal(row->self.weight, self_ms * NS_PER_MS);
    assert_int_equal(row->total.weight, total_ms * NS_PER_MS);
    assert_int_equal(row->self.samples, self_ms);
    assert_int_equal(row->total.samples, total_ms);
}

/* Rows may be there that nothing was seen of, such as "<lost>". */
static size_t rows_with_weight(const struct made *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->rows.count; i++)
        n += m->rows.row[i].total.samples > 0;
    return n;
}

static void test_functions(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_FUNCTION);
    assert_int_equal(m.weights.total.weight, WHOLE_MS * NS_PER_MS);
    assert_int_equal(rows_with_weight(&m), 5);
    expect_row(&m, "main", 1, 10, 200);
    expect_row(&m, "fact", 10, 140, 143); /* each stack once, however deep */
    expect_row(&m, "idle", 5, 100, 100);
    expect_row(&m, "<moving>", 0, 3, 3);
    expect_row(&m, "<no Python frame>", 0, 5, 5);
    uint64_t sum = 0;
    for (size_t i = 0; i < m.rows.count; i++)
        sum += m.rows.row[i].self.weight;
    assert_int_equal(sum, m.weights.total.weight);
    unmake(&m);
    profile_free(p);
}

static void test_other_groupings(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_LINE);
    expect_row(&m, "fact", 11, 50, 90);
    expect_row(&m, "fact", 12, 90, 93);
    expect_row(&m, "main", 2, 10, 200);
    unmake(&m);
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_FILE);
    expect_row(&m, "/srv/app.py", 0, 150, 253);
    expect_row(&m, "<moving>", 0, 3, 3);
    unmake(&m);
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_MODULE);
    expect_row(&m, "app", 0, 150, 253);
    expect_row(&m, "lib", 0, 100, 100);
    unmake(&m);
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_THREAD);
    assert_int_equal(m.rows.count, 3);
    expect_row(&m, "MainThread", 0, 200, 200);
    expect_row(&m, "worker", 0, 50, 50);
    expect_row(&m, "thread 201", 0, 8, 8);
    unmake(&m);
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_PROCESS);
    expect_row(&m, "python app.py", 0, 250, 250);
    expect_row(&m, "child", 0, 8, 8);
    unmake(&m);
    profile_free(p);
}

static void test_metrics_and_filters(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    static const struct {
        const char *metric, *thread;
        uint32_t pid;
        double from, to;
        uint64_t total_ms;
    } cases[] = {
        {"wall", NULL, 0, 0, 0, 258},       {"cpu", NULL, 0, 0, 0, 100},
        {"gil", NULL, 0, 0, 0, 30},         {"wall", "worker", 0, 0, 0, 50},
        {"wall", "101", 0, 0, 0, 50},       {"wall", NULL, 200, 0, 0, 8},
        {"cpu", "MainThread", 0, 0, 0, 50}, {"wall", "MainThread", 0, 0.005, 0.02, 15},
        {"wall", "nobody", 0, 0, 0, 0},     {"wall", NULL, 0, 0.15, 1e30, 50},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct analysis_query q = {.metric = analysis_metric_find(cases[i].metric),
                                   .thread = cases[i].thread,
                                   .has_process = cases[i].pid != 0,
                                   .process = cases[i].pid,
                                   .has_from = cases[i].to > 0,
                                   .has_to = cases[i].to > 0,
                                   .from = cases[i].from,
                                   .to = cases[i].to};
        struct made m;
        make(&m, p, q, ANALYSIS_BY_FUNCTION);
        assert_int_equal(m.weights.total.weight, cases[i].total_ms * NS_PER_MS);
        assert_int_equal(m.weights.total.samples, cases[i].total_ms);
        assert_int_equal(m.weights.recorded_samples, WHOLE_MS);
        unmake(&m);
    }
    assert_null(analysis_metric_find("nonsense"));
    profile_free(p);
}

static const struct analysis_edge *find_edge(const struct made *m, const struct analysis_edges *e,
                                             const char *from, const char *to)
{
    uint32_t a = find_row(m, from, 0), b = find_row(m, to, 0);
    const struct analysis_edge *found = NULL;
    for (size_t i = e->callees_at[a]; i < e->callees_at[a + 1]; i++)
        if (e->by_caller[i].callee == b)
            found = &e->by_caller[i];
    size_t as_caller = 0;
    for (size_t i = e->callers_at[b]; i < e->callers_at[b + 1]; i++)
        as_caller += e->by_callee[i].caller == a;
    assert_int_equal(as_caller, found ? 1 : 0);
    return found;
}

static void test_edges(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_FUNCTION);
    struct analysis_edges e;
    assert_int_equal(analysis_edges_init(&m.rows, &e), 0);
    assert_int_equal(e.count, 4);
    const struct analysis_edge *edge = find_edge(&m, &e, "main", "fact");
    assert_int_equal(edge->total.weight, 90 * NS_PER_MS);
    assert_int_equal(edge->self.weight, 20 * NS_PER_MS);
    edge = find_edge(&m, &e, "fact", "fact"); /* twice in the deepest stack, counted once */
    assert_int_equal(edge->total.weight, 70 * NS_PER_MS);
    assert_int_equal(edge->self.weight, 70 * NS_PER_MS);
    edge = find_edge(&m, &e, "fact", "<moving>");
    assert_int_equal(edge->total.weight, 3 * NS_PER_MS);
    assert_null(find_edge(&m, &e, "idle", "main"));
    analysis_edges_release(&e);
    unmake(&m);
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_THREAD);
    assert_int_equal(analysis_edges_init(&m.rows, &e), E_INVALID);
    unmake(&m);
    profile_free(p);
}

static void expect_order(const struct made *m, struct analysis_select select, const char *names)
{
    struct analysis_selection s;
    char got[256] = "";
    assert_int_equal(analysis_selection_init(&m->rows, &select, &s), 0);
    for (size_t i = 0; i < s.count; i++) {
        const struct profile_string *name = &m->rows.row[s.row[i]].name;
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%.*s", i ? " " : "", (int)name->len, name->text);
    }
    analysis_selection_release(&s);
    assert_string_equal(got, names);
}

static void test_selection(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_FUNCTION);
    expect_order(&m, (struct analysis_select){0}, "fact idle main <no Python frame> <moving>");
    expect_order(&m, (struct analysis_select){.sort = ANALYSIS_SORT_TOTAL, .limit = 2},
                 "main fact");
    expect_order(&m, (struct analysis_select){.sort = ANALYSIS_SORT_NAME},
                 "<moving> <no Python frame> fact idle main");
    expect_order(&m, (struct analysis_select){.min_percent = 50}, "fact main");
    regex_t re;
    assert_int_equal(regcomp(&re, "app.py:10.fact|^idle$", REG_EXTENDED | REG_NOSUB), 0);
    expect_order(&m, (struct analysis_select){.match = &re}, "fact idle");
    regfree(&re);
    unmake(&m);
    profile_free(p);
}

static void expect_collapsed(const struct profile *p, const struct export_options *options,
                             const char *expected)
{
    char *got = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&got, &len);
    assert_int_equal(export_format_find("collapsed")->write(p, options, out), 0);
    fclose(out);
    assert_string_equal(got, expected);
    free(got);
}

static void test_collapsed(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct export_options options = {.query.metric = analysis_metric_find("wall")};
    expect_collapsed(
        p, &options,
        "<no Python frame> 5\n"
        "main (/srv/app.py:2) 10\n"
        "main (/srv/app.py:2);fact (/srv/app.py:11) 20\n"
        "main (/srv/app.py:2);fact (/srv/app.py:11);fact (/srv/app.py:11) 30\n"
        "main (/srv/app.py:2);fact (/srv/app.py:11);fact (/srv/app.py:11);fact (/srv/app.py:12) "
        "40\n"
        "main (/srv/app.py:2);idle (/usr/lib/python3.11/site-packages/lib/__init__.py:6) 100\n"
        "fact (/srv/app.py:12) 50\n"
        "fact (/srv/app.py:12);<moving> 3\n");
    options.query.metric = analysis_metric_find("gil");
    options.weighted = true;
    expect_collapsed(p, &options,
                     "main (/srv/app.py:2);fact (/srv/app.py:11);fact (/srv/app.py:11) 30000\n");
    profile_free(p);

    open_recording(); /* the same stack by two code objects is one line; separators are replaced */
    sample(1, node(0, code("a;b\n", "f;g", 1), 3), 0, 1, 0);
    sample(1, node(0, code("a;b\n", "f;g", 1), 3), 0, 2, 1);
    p = close_recording();
    options = (struct export_options){.query.metric = analysis_metric_find("wall")};
    expect_collapsed(p, &options, "a:b_ (f:g:3) 3\n");
    profile_free(p);
}

/* Ids nobody defined lead to "<lost>", and nothing is out of range. */
static void test_lost(void **state ATTR_UNUSED)
{
    open_recording();
    uint32_t bad_code = node(0, 999, 1);
    sample(1, bad_code, 0, 30, 0);
    sample(1, 12345, 0, 4, 30);
    sample(77, bad_code, 0, 2, 40);
    format_writer_thread(w, &(struct record_thread){.id = 9, .process = 55, .tid = 9, .name = 888});
    sample(5, bad_code, 0, 1, 50); /* a hole among the threads */
    struct profile *p = close_recording();
    struct made m;
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_FUNCTION);
    assert_int_equal(m.rows.count, 1);
    expect_row(&m, "<lost>", 0, 37, 37);
    unmake(&m);
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_THREAD);
    expect_row(&m, "MainThread", 0, 34, 34);
    expect_row(&m, "<lost>", 0, 3, 3);
    unmake(&m);
    const struct profile_tables *t = profile_tables(p);
    assert_true(t->threads[9].process < t->process_count);
    assert_true(t->threads[9].name < t->string_count);
    assert_true(analysis_thread_is_known(t, 9));
    assert_false(analysis_thread_is_known(t, 5));
    assert_false(analysis_thread_is_known(t, (uint32_t)t->thread_count - 1));
    profile_free(p);
}

/* Ten thousand frames deep, and wide: no recursion in C. */
static void test_deep(void **state ATTR_UNUSED)
{
    enum { DEPTH = 10000 };
    open_recording();
    uint32_t down = code("down", "/d.py", 1), up = code("up", "/d.py", 9), at = 0;
    for (uint32_t i = 0; i < DEPTH; i++) {
        at = node(at, i % 2 ? up : down, i + 1);
        sample(1, at, 0, 1, i);
    }
    struct profile *p = close_recording();
    struct made m;
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_FUNCTION);
    expect_row(&m, "down", 1, DEPTH / 2, DEPTH);
    expect_row(&m, "up", 9, DEPTH / 2, DEPTH - 1);
    struct analysis_edges e;
    assert_int_equal(analysis_edges_init(&m.rows, &e), 0);
    assert_int_equal(find_edge(&m, &e, "down", "up")->total.weight, (DEPTH - 1) * NS_PER_MS);
    analysis_edges_release(&e);
    unmake(&m);
    profile_free(p);
}

static char *print_report(const struct made *m, enum view_format format)
{
    struct analysis_selection s;
    struct analysis_select select = {0};
    assert_int_equal(analysis_selection_init(&m->rows, &select, &s), 0);
    struct view_report report = {.weights = &m->weights, .rows = &m->rows, .selection = &s};
    char *got = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&got, &len);
    assert_int_equal(view_report_print(&report, out, format, (struct view_style){0}), 0);
    fclose(out);
    analysis_selection_release(&s);
    return got;
}

static void test_report(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_FUNCTION);
    char *got = print_report(&m, VIEW_TEXT);
    assert_non_null(strstr(got, "run abcd0000  python app.py\nwall 258 ms in 258 samples"));
    assert_non_null(strstr(got, "±"));
    assert_non_null(strstr(got, "fact               /srv/app.py:10\n"));
    free(got);
    got = print_report(&m, VIEW_JSON);
    assert_non_null(strstr(got, "\"metric\":\"wall\",\"unit\":\"seconds\",\"total\":0.258,"
                                "\"samples\":258,\"too_short\":false,\"by\":\"function\","));
    free(got);
    unmake(&m);
    profile_free(p);
}

/* Nobody knows what they were: what is said holds for either. */
static void test_no_python_or_too_short(void **state ATTR_UNUSED)
{
    static const char *const says[] = {
        "no samples: no Python process was seen: other programs can be metered",
        "no samples: no Python process was seen, or it was gone before it could be looked at: try "
        "--calls"};
    for (unsigned processes = 0; processes < ARRAY_LEN(says); processes++) {
        open_recording();
        struct record_stats stats = {.value = {[RECORD_STAT_PROCESSES_SHORT] = processes}};
        format_writer_stats(w, &stats);
        struct profile *p = close_recording();
        struct made m;
        make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_FUNCTION);
        char *got = print_report(&m, VIEW_TEXT);
        assert_non_null(strstr(got, says[processes]));
        free(got);
        unmake(&m);
        profile_free(p);
    }
}

static void test_too_short(void **state ATTR_UNUSED)
{
    open_recording();
    sample(1, node(0, code("f", "/f.py", 1), 1), 0, 19, 0);
    struct profile *p = close_recording();
    struct made m;
    make(&m, p, (struct analysis_query){0}, ANALYSIS_BY_FUNCTION);
    char *got = print_report(&m, VIEW_TEXT);
    assert_non_null(strstr(got, "too short to sample: 19 samples"));
    free(got);
    got = print_report(&m, VIEW_JSON);
    assert_non_null(strstr(got, "\"rows\":[]"));
    free(got);
    unmake(&m);
    profile_free(p);
}

static int set_up(void **state ATTR_UNUSED)
{
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : -1;
}

static int tear_down(void **state ATTR_UNUSED)
{
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_other_groupings),
        cmocka_unit_test(test_metrics_and_filters),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_collapsed),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_no_python_or_too_short),
        cmocka_unit_test(test_too_short),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
