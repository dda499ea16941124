/* Exact calls: sums by path, recursion, what the probes cost, orders and restrictions, on recordings of
 * known truth that are written here and read back. */
#include "analysis/calibration.h"
#include "analysis/edges.h"
#include "analysis/select.h"
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

static uint32_t code(const char *name, uint32_t line, uint32_t flags)
{
    uint32_t file = flags & RECORD_CODE_C ? 0 : text("/srv/app.py");
    return format_writer_code(
        w, &(struct record_code){
               .name = text(name), .file = file, .first_line = line, .flags = flags});
}

static uint32_t node(uint32_t parent, uint32_t code_id)
{
    return format_writer_stack(w, &(struct record_stack){parent, code_id, 0});
}

static void calls(uint32_t thread, uint32_t stack, uint64_t n, uint64_t resumes, uint64_t self)
{
    format_writer_calls(
        w, &(struct record_calls){
               .thread = thread, .stack = stack, .calls = n, .resumes = resumes, .self_ns = self});
}

static void open_recording(void)
{
    struct format_writer_options options = {.force = true, .run_id = {0xab, 0xcd}};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_meta(w, "instruments", "calls");
    for (uint32_t i = 1; i <= 2; i++) {
        format_writer_process(w, &(struct record_process){.id = i, .pid = 100 * i});
        format_writer_thread(w, &(struct record_thread){.id = i, .process = i, .tid = 100 * i});
    }
}

static struct profile *close_recording(void)
{
    struct profile *p = NULL;
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    assert_int_equal(profile_load(path, &p), 0);
    return p;
}

struct made {
    struct analysis_weights weights;
    struct analysis_rows rows;
};

static void make(struct made *m, const struct profile *p, struct analysis_query query)
{
    if (!query.metric)
        query.metric = ANALYSIS_METRICS;
    assert_int_equal(analysis_weights_init(p, &query, &m->weights), 0);
    assert_int_equal(analysis_rows_init(&m->weights, ANALYSIS_BY_FUNCTION, &m->rows), 0);
}

static void unmake(struct made *m)
{
    analysis_rows_release(&m->rows);
    analysis_weights_release(&m->weights);
}

static const struct analysis_row *row(const struct made *m, const char *name)
{
    for (size_t i = 0; i < m->rows.count; i++)
        if (m->rows.row[i].name.len == strlen(name) &&
            memcmp(m->rows.row[i].name.text, name, strlen(name)) == 0)
            return &m->rows.row[i];
    fail_msg("no row %s", name);
    return NULL;
}

/* Probes cost 10 ns in and 5 ns around a Python function, 4 and 2 for a C function:
 *   c    20 calls, 50 ns stamped: 80 in it, which it did not take; 30 are its caller's
 *   f    10 calls, 200: 100 in it, 40 around c, and those 30
 *   gen  1 call and 9 resumes, 500: 100 in it
 *   main 1 call, 1000: 10 in it, 50 around f, 50 around gen, 7 of calls that are not told
 * The same again in a process that was not calibrated. */
static struct profile *known_profile(bool calibrated)
{
    open_recording();
    if (calibrated)
        format_writer_meta(w, "calibration.1", "10 5.0 4 2 0.25 1");
    uint32_t n_main = node(0, code("main", 1, 0)), f = node(n_main, code("f", 10, 0));
    uint32_t c = node(f, code("<built-in method len>", 0, RECORD_CODE_C));
    uint32_t gen = node(n_main, code("gen", 20, RECORD_CODE_GENERATOR));
    for (uint32_t thread = 1; thread <= 2; thread++) {
        calls(thread, f, 4, 0, 150); /* as it comes: in pieces */
        calls(thread, c, 20, 0, 50);
        calls(thread, n_main, 1, 0, 0);
        calls(thread, n_main, 0, 0, 1000);
        calls(thread, f, 6, 0, 50);
        calls(thread, gen, 1, 9, 500);
    }
    struct record_calls aside = {.thread = 1, .stack = n_main, .probes_ns = 7};
    format_writer_calls(w, &aside);
    return close_recording();
}

static void expect_self(const struct made *m, const char *name, uint64_t self, uint64_t total)
{
    assert_int_equal(row(m, name)->self.weight, self);
    assert_int_equal(row(m, name)->total.weight, total);
}

static void test_probes_are_taken_out(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile(true);
    struct made m;
    make(&m, p, (struct analysis_query){.has_process = true, .process = 100});
    assert_string_equal(m.weights.metric->name, "time");
    expect_self(&m, "<built-in method len>", 0, 0);
    expect_self(&m, "f", 30, 30);
    expect_self(&m, "gen", 400, 400);
    expect_self(&m, "main", 883, 1313);
    assert_true(m.weights.calls->calibrated);
    assert_int_equal(m.weights.calls->raw_ns, 1750);
    assert_int_equal(m.weights.calls->taken_ns, 437);
    assert_int_equal(m.weights.calls->error_ns, 41);
    unmake(&m);
    /* the other process has no calibration, and stays as it is */
    make(&m, p, (struct analysis_query){.has_process = true, .process = 200});
    expect_self(&m, "main", 1000, 1750);
    assert_false(m.weights.calls->calibrated);
    unmake(&m);
    make(&m, p, (struct analysis_query){.metric = analysis_metric_find("raw")});
    expect_self(&m, "main", 2000, 3500);
    expect_self(&m, "f", 400, 500);
    unmake(&m);
    profile_free(p);
}

/* What a filter hides has cost its caller all the same. */
static void test_filters_come_after_probes(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile(true);
    regex_t re;
    assert_int_equal(regcomp(&re, "^(gen|f)$", REG_EXTENDED | REG_NOSUB), 0);
    struct made m;
    make(&m, p, (struct analysis_query){.exclude = &re, .has_process = true, .process = 100});
    expect_self(&m, "main", 883, 883);
    assert_int_equal(m.weights.total.weight, 883);
    assert_int_equal(m.weights.calls->total.calls, 1);
    regfree(&re);
    unmake(&m);
    profile_free(p);
}

static void test_calibration_text(void **state ATTR_UNUSED)
{
    struct analysis_calibration c;
    assert_true(analysis_calibration_parse("41.5 12 3 4 5 0.75", &c));
    assert_true(c.inside[0] == 41.5 && c.outside[0] == 12 && c.inside[1] == 3 && c.outside[1] == 4);
    assert_true(c.line == 5 && c.error == 0.75);
    static const char *const wrong[] = {"",
                                        "1 2 3 4 5",
                                        "1 2 3 4 5 6 7",
                                        "1 2 3 4 5 -6",
                                        "1 2 3 4 5 nan",
                                        "1 2 3 4 5 1e9",
                                        "a 2 3 4 5 6",
                                        "1,2,3,4,5,6",
                                        "inf 2 3 4 5 6"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(analysis_calibration_parse(wrong[i], &c));
}

/* main → r → r → r: of 6 calls one is primitive, and the edge r → r has a call in itself. */
static struct profile *recursive_profile(void)
{
    open_recording();
    uint32_t r = code("r", 5, 0), n_main = node(0, code("main", 1, 0));
    uint32_t r1 = node(n_main, r), r2 = node(r1, r), r3 = node(r2, r);
    uint32_t open = node(0, code("ran before", 9, 0));
    calls(1, n_main, 1, 0, 100);
    calls(1, r1, 1, 0, 10);
    calls(1, r2, 3, 0, 20);
    calls(1, r3, 2, 0, 30);
    calls(1, open, 0, 0, 7);
    struct record_calls coroutine = {.thread = 2, .stack = n_main, .calls = 2, .alive_ns = 9000};
    format_writer_calls(w, &coroutine);
    return close_recording();
}

static void test_recursion(void **state ATTR_UNUSED)
{
    struct profile *p = recursive_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0});
    const struct analysis_row *r = row(&m, "r");
    assert_int_equal(r->calls, 6);
    assert_int_equal(r->primitive_calls, 1);
    expect_self(&m, "r", 60, 60);
    expect_self(&m, "main", 100, 160);
    assert_int_equal(row(&m, "main")->alive_ns, 9000);
    struct analysis_edges e;
    assert_int_equal(analysis_edges_init(&m.rows, &e), 0);
    for (size_t i = 0; i < e.count; i++) {
        bool self = e.by_caller[i].caller == e.by_caller[i].callee;
        assert_int_equal(e.by_caller[i].calls, self ? 5 : 1);
        assert_int_equal(e.by_caller[i].primitive_calls, self ? 3 : 1);
        assert_int_equal(e.by_caller[i].total.weight, self ? 50 : 60);
    }
    assert_int_equal(e.count, 2);
    analysis_edges_release(&e);
    unmake(&m);
    profile_free(p);
}

static char *print_report(const struct made *m, const struct analysis_select *select)
{
    struct analysis_selection s;
    assert_int_equal(analysis_selection_init(&m->rows, select, &s), 0);
    struct view_report report = {
        .weights = &m->weights, .rows = &m->rows, .selection = &s, .select = select};
    char *got = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&got, &len);
    assert_int_equal(view_report_print(&report, out, VIEW_TEXT, (struct view_style){0}), 0);
    fclose(out);
    analysis_selection_release(&s);
    return got;
}

/* What ran when tracing began was never called, and is shown all the same. */
static void test_report(void **state ATTR_UNUSED)
{
    struct profile *p = recursive_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0});
    struct analysis_select all = {0};
    char *got = print_report(&m, &all);
    assert_non_null(
        strstr(got, "9 function calls (4 primitive calls) in 0.000000 seconds, exact\n"));
    assert_non_null(strstr(got, "   6/1  0.000000"));
    assert_non_null(strstr(got, "     0  0.000000"));
    assert_non_null(strstr(got, "/srv/app.py:9(ran before)\n"));
    free(got);
    unmake(&m);
    profile_free(p);
}

static void expect_rows(const struct made *m, const struct analysis_select *select,
                        const char *names, size_t matched)
{
    struct analysis_selection s;
    char got[256] = "";
    assert_int_equal(analysis_selection_init(&m->rows, select, &s), 0);
    for (size_t i = 0; i < s.count; i++) {
        const struct profile_string *name = &m->rows.row[s.row[i]].name;
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%s%.*s", i ? " " : "", (int)name->len, name->text);
    }
    assert_int_equal(s.matched, matched);
    analysis_selection_release(&s);
    assert_string_equal(got, names);
}

/* As in print_stats(): limits before an expression count before it. */
static void test_restrictions(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile(false);
    struct made m;
    make(&m, p, (struct analysis_query){0});
    regex_t python, builtin;
    assert_int_equal(regcomp(&python, "app.py:[0-9]+\\(", REG_EXTENDED | REG_NOSUB), 0);
    assert_int_equal(regcomp(&builtin, "^\\{built-in method", REG_EXTENDED | REG_NOSUB), 0);
    struct analysis_restriction first_match[] = {{.match = &python}, {.limit = 2}};
    struct analysis_restriction first_limit[] = {{.limit = 2}, {.match = &python}};
    struct analysis_restriction part[] = {{.part = 0.6}}, c[] = {{.match = &builtin}};
    struct analysis_select s = {.sort = ANALYSIS_SORT_CALLS, .restriction_count = 2};
    s.restriction = first_match;
    expect_rows(&m, &s, "f main", 3);
    s.restriction = first_limit;
    expect_rows(&m, &s, "f", 3);
    s.restriction_count = 1;
    s.restriction = part; /* 0.6 of 4 is 2.4: 2, as int(2.4 + .5) is */
    expect_rows(&m, &s, "<built-in method len> f", 4);
    s.restriction = c;
    expect_rows(&m, &s, "<built-in method len>", 1);
    s.restriction_count = 0;
    s.sort = ANALYSIS_SORT_STDNAME; /* as text: ":1(" before ":10(" before ":20(", braces last */
    expect_rows(&m, &s, "main f gen <built-in method len>", 4);
    s.sort = ANALYSIS_SORT_FILE; /* builtins are in "~" */
    expect_rows(&m, &s, "main gen f <built-in method len>", 4);
    regfree(&python);
    regfree(&builtin);
    unmake(&m);
    profile_free(p);
}

static void test_sort_words(void **state ATTR_UNUSED)
{
    static const struct {
        const char *word;
        int sort;
    } words[] = {
        {"cumulative", ANALYSIS_SORT_TOTAL},
        {"cum", ANALYSIS_SORT_TOTAL},
        {"tot", ANALYSIS_SORT_SELF},
        {"total", ANALYSIS_SORT_TOTAL},
        {"tota", ANALYSIS_SORT_TOTAL},
        {"ti", ANALYSIS_SORT_SELF},
        {"self", ANALYSIS_SORT_SELF},
        {"nf", ANALYSIS_SORT_NFL},
        {"fi", ANALYSIS_SORT_FILE},
        {"nc", ANALYSIS_SORT_CALLS},
        {"p", ANALYSIS_SORT_PCALLS},
        {"std", ANALYSIS_SORT_STDNAME},
        {"samples", ANALYSIS_SORT_SAMPLES},
        {"c", E_AMBIGUOUS},
        {"n", E_AMBIGUOUS},
        {"", E_INVALID},
        {"times", E_INVALID},
        {"x", E_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        enum analysis_sort sort = ANALYSIS_SORT_COUNT;
        int r = analysis_sort_find(words[i].word, &sort);
        assert_int_equal(r < 0 ? r : (int)sort, words[i].sort);
    }
}

/* Threads and processes are filtered before the sums, and every format has the same whole. */
static void test_exports(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile(true);
    for (const struct export_format *f = EXPORT_TABLE; f->name; f++) {
        struct export_options options = {.query = {.metric = ANALYSIS_METRICS}, .weighted = true};
        char *got = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&got, &len);
        assert_int_equal(f->write(p, &options, out), 0);
        fclose(out);
        bool timeline = strcmp(f->name, "chrome") == 0 || strcmp(f->name, "perfetto") == 0;
        assert_true(len > 0 || timeline); /* sums have no moments to show there */
        if (strcmp(f->name, "pstats") == 0)
            assert_true(got[0] == '{' && got[len - 1] == '0');
        if (strcmp(f->name, "json") == 0)
            assert_non_null(strstr(got, "\"total_weight\":3063,"));
        free(got);
    }
    profile_free(p);
}

/* Looks that nobody wanted are no loss; events that were dropped are, in every view. */
static void test_losses(void **state ATTR_UNUSED)
{
    open_recording();
    calls(1, node(0, code("f", 1, 0)), 1, 0, 1000);
    struct record_stats stats = {0};
    stats.value[RECORD_STAT_TICKS_MISSED] = 9;
    stats.value[RECORD_STAT_PROCESSES_SHORT] = 3;
    stats.value[RECORD_STAT_EVENTS_LOST] = 1234;
    stats.value[RECORD_STAT_THREADS_REFUSED] = 1;
    stats.value[RECORD_STAT_AGENTS_REFUSED] = 2;
    stats.value[RECORD_STAT_EVENT_PAUSED_NS] = 5000000;
    format_writer_stats(w, &stats);
    struct profile *p = close_recording();
    struct made m;
    make(&m, p, (struct analysis_query){0});
    struct analysis_select all = {0};
    char *got = print_report(&m, &all);
    assert_non_null(strstr(got, "\nlost: 1,234 events dropped, 1 thread not "
                                "traced for want of a ring, 2 processes not traced: an agent of "
                                "another version, threads that could not be traced for 5.00 ms\n"));
    free(got);
    unmake(&m);
    profile_free(p);
}

static int make_path(void **state ATTR_UNUSED)
{
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state ATTR_UNUSED)
{
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probes_are_taken_out),
        cmocka_unit_test(test_filters_come_after_probes),
        cmocka_unit_test(test_calibration_text),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_restrictions),
        cmocka_unit_test(test_sort_words),
        cmocka_unit_test(test_exports),
        cmocka_unit_test(test_losses),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
