/* Exact lines from events to answers: the counting, the encoding, the analysis, each over a story short
 * enough to be worked out on paper. */
#include "analysis/exact_lines.h"
#include "base/err.h"
#include "format/codec.h"
#include "format/writer.h"
#include "record/linetree.h"
#include "view/summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* --- counting --- */

static const struct linetree_cell *cell(struct linetree *t, uint32_t code, uint32_t line,
                                        uint32_t callee)
{
    return &t->cells.data[linetree_find(t, code, line, callee)];
}

static void assert_counts(struct linetree *t, uint32_t code, uint32_t line, uint32_t callee,
                          uint64_t hits, uint64_t own, uint64_t callee_ticks)
{
    const struct linetree_cell *c = cell(t, code, line, callee);
    assert_int_equal(c->now.hits, hits);
    assert_int_equal(c->now.own, callee ? 0 : own);
    assert_int_equal(c->now.callee, callee_ticks);
}

static void test_call(void **state ATTR_UNUSED)
{
    struct linetree t;
    assert_int_equal(linetree_init(&t), 0);
    linetree_enter(&t, 1, false);
    linetree_time(&t, 1); /* before its first line */
    linetree_line(&t, 10);
    linetree_time(&t, 2);
    linetree_enter(&t, 2, false);
    linetree_line(&t, 20);
    linetree_time(&t, 5);
    linetree_leave(&t, 2);
    linetree_time(&t, 3);
    linetree_line(&t, 11);
    linetree_time(&t, 4);
    linetree_leave(&t, 1);
    assert_counts(&t, 1, 0, 0, 0, 1, 0);
    assert_counts(&t, 1, 10, 0, 1, 5, 5);
    assert_counts(&t, 1, 11, 0, 1, 4, 0);
    assert_counts(&t, 2, 20, 0, 1, 5, 0);
    assert_counts(&t, 1, 10, 2, 1, 0, 5);
    assert_int_equal(t.stack.len, 1);
    linetree_release(&t);
}

/* f calls itself three deep from line 10, a tick before each call and a tick after. */
static void test_recursion(void **state ATTR_UNUSED)
{
    struct linetree t;
    assert_int_equal(linetree_init(&t), 0);
    for (int i = 0; i < 4; i++) {
        linetree_enter(&t, 1, false);
        linetree_line(&t, 10);
        linetree_time(&t, 1);
    }
    for (int i = 0; i < 4; i++) {
        linetree_time(&t, 1);
        linetree_leave(&t, 1);
    }
    /* all eight ticks are line 10's own: nothing is left for its callees */
    assert_counts(&t, 1, 10, 0, 4, 8, 0);
    /* the calls lasted six ticks, however deep */
    assert_counts(&t, 1, 10, 1, 3, 0, 6);
    assert_counts(&t, 0, 0, 1, 1, 0, 8);
    linetree_release(&t);
}

/* A generator stops in line 20 and goes on there; another was lost; the end comes in the middle. */
static void test_generator_and_losses(void **state ATTR_UNUSED)
{
    struct linetree t;
    assert_int_equal(linetree_init(&t), 0);
    linetree_enter(&t, 1, false);
    linetree_line(&t, 10);
    linetree_enter(&t, 2, false);
    linetree_line(&t, 20);
    linetree_leave(&t, 2);
    uint32_t stopped = t.left;
    linetree_enter(&t, 2, true);
    linetree_goes_on_in(&t, stopped);
    linetree_time(&t, 7);
    assert_counts(&t, 2, 20, 0, 1, 7, 0);
    linetree_enter(&t, 3, false); /* its leave is lost */
    linetree_leave(&t, 2);
    linetree_leave(&t, 9); /* never entered */
    assert_int_equal(t.stack.len, 2);
    assert_counts(&t, 1, 10, 2, 1, 0, 7);
    linetree_goes_on_in(&t, 1u << 30); /* nonsense is not believed */
    linetree_goes_on_in(&t, stopped);  /* nor another function's place */
    assert_int_equal(t.cells.data[linetree_top(&t)->cell].line, 10);
    linetree_time(&t, 1);
    linetree_finish(&t);
    assert_int_equal(t.stack.len, 1);
    assert_counts(&t, 0, 0, 1, 1, 0, 8);
    linetree_release(&t);
}

/* What ran too deep to be told apart has ended with the rest. */
static void test_finish_forgets_the_depth(void **state ATTR_UNUSED)
{
    struct linetree t;
    assert_int_equal(linetree_init(&t), 0);
    for (int i = 0; i < LINETREE_MAX_DEPTH + 5; i++)
        linetree_enter(&t, 1, false);
    linetree_finish(&t);
    linetree_enter(&t, 2, false);
    linetree_leave(&t, 2);
    assert_int_equal(t.stack.len, 1);
    linetree_release(&t);
}

/* Without memory nothing more is counted to a line, for it would be to a wrong one; but how much that is. */
static void test_failure_is_counted(void **state ATTR_UNUSED)
{
    struct linetree t;
    assert_int_equal(linetree_init(&t), 0);
    linetree_enter(&t, 1, false);
    linetree_line(&t, 10);
    t.failed = true;
    linetree_line(&t, 10);
    linetree_enter(&t, 2, false);
    linetree_line(&t, 20);
    linetree_leave(&t, 2);
    assert_int_equal(t.lost, 3);
    assert_counts(&t, 1, 10, 0, 1, 0, 0);
    linetree_release(&t);
}

/* --- the file, and what is made of it --- */

static char path[] = "/tmp/pyrometer-exact-lines-XXXXXX";

static uint32_t text(struct format_writer *w, const char *s)
{
    return format_writer_string(w, s, strlen(s));
}

static void write_file(void)
{
    struct format_writer *w = NULL;
    struct format_writer_options options = {.force = true};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    uint32_t file = text(w, "a.py"), other = text(w, "b.py");
    struct record_code module = {.name = text(w, "<module>"), .file = file, .first_line = 1};
    struct record_code f = {.name = text(w, "f"), .file = file, .first_line = 3};
    struct record_code g = {.name = text(w, "g"), .file = other, .first_line = 1};
    uint32_t m = format_writer_code(w, &module), c = format_writer_code(w, &f);
    uint32_t again = format_writer_code(w, &f), d = format_writer_code(w, &g);
    struct record_thread threads[] = {{.id = 0, .name = text(w, "one"), .tid = 5},
                                      {.id = 1, .name = text(w, "two"), .tid = 6}};
    format_writer_thread(w, &threads[0]);
    format_writer_thread(w, &threads[1]);
    const struct record_line lines[] = {
        {0, m, 3, 0, 1, 10, 0}, {0, c, 0, 0, 0, 5, 0},  {0, c, 4, 0, 7, 100, 50},
        {0, c, 4, d, 3, 0, 50}, {1, c, 4, 0, 2, 20, 0}, {0, again, 4, 0, 1, 1, 0},
        {0, d, 9, 0, 3, 50, 0}, {0, c, 4, d, 1, 0, 2},  {1, c, UINT32_MAX, 0, 1, 4, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        format_writer_line(w, &lines[i]);
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
}

static void test_analysis(void **state ATTR_UNUSED)
{
    struct profile *p = NULL;
    write_file();
    assert_int_equal(profile_load(path, &p), 0);
    assert_true(analysis_exact_lines_has(p));
    struct analysis_query q = {.metric = ANALYSIS_METRICS};
    struct analysis_exact_lines e;
    assert_int_equal(analysis_exact_lines_init(p, &q, &e), 0);
    assert_int_equal(e.weights.total.weight, 190);
    assert_int_equal(e.lines.file_count, 2);
    const struct analysis_file *file = &e.lines.file[0];
    assert_string_equal(file->path.text, "a.py");
    assert_int_equal(file->self.weight, 140);
    assert_int_equal(file->count, 3);
    /* the def runs in the module, and the function begins there */
    const struct analysis_line *def = analysis_lines_find(&e.lines, file, 3);
    assert_int_equal(def->self.weight, 15);
    assert_int_equal(def->self.samples, 1);
    assert_string_equal(def->function.text, "f");
    const struct analysis_line *line = analysis_lines_find(&e.lines, file, 4);
    assert_int_equal(line->self.samples, 10);
    assert_int_equal(line->self.weight, 121);
    assert_int_equal(line->total.weight, 171);
    size_t count;
    const struct analysis_line_call *call = analysis_exact_calls(&e, file->path, 4, &count);
    assert_int_equal(count, 1);
    assert_int_equal(call->calls, 4);
    assert_int_equal(call->ns, 52);
    assert_null(analysis_exact_calls(&e, file->path, 3, &count));
    /* the same by function: every part has its calls, and no call is in two of them */
    uint64_t calls = 0, ns = 0;
    for (size_t i = 0; i < e.part_count; i++) {
        call = analysis_exact_part_calls(&e, &e.part[i], &count);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(call[k].line, e.part[i].line);
            calls += call[k].calls;
            ns += call[k].ns;
        }
    }
    assert_int_equal(calls, 4);
    assert_int_equal(ns, 52);

    assert_true(analysis_exact_answers(p, &q));
    struct analysis_rows rows;
    assert_int_equal(analysis_exact_rows_init(&e, &rows), 0);
    assert_int_equal(rows.count, e.part_count);
    assert_true(rows.has_hits);
    uint64_t hits = 0, self = 0;
    for (size_t i = 0; i < rows.count; i++) {
        hits += rows.row[i].hits;
        self += rows.row[i].self.weight;
    }
    assert_int_equal(self, 190);
    assert_int_equal(hits, e.weights.total.samples);
    /* rows that were made of something else get the hits that belong to them, and no others */
    for (size_t i = 0; i < rows.count; i++)
        rows.row[i].hits = 0;
    rows.row[0].line += 1000;
    assert_int_equal(analysis_exact_count(&e, &rows), 0);
    assert_int_equal(rows.row[0].hits, 0);
    for (size_t i = 1; i < rows.count; i++)
        assert_int_equal(rows.row[i].hits, e.part[i].hits);
    analysis_rows_release(&rows);
    q.has_from = true;
    assert_false(analysis_exact_answers(p, &q));
    q.has_from = false;
    analysis_exact_lines_release(&e);

    q.thread = "two";
    assert_int_equal(analysis_exact_lines_init(p, &q, &e), 0);
    assert_int_equal(e.weights.total.weight, 24);
    assert_int_equal(e.call_count, 0);
    analysis_exact_lines_release(&e);
    profile_free(p);
}

/* Lines that weigh the same are all among the hottest, in the order they stand in. */
static void test_summary_of_equals(void **state ATTR_UNUSED)
{
    struct format_writer *w = NULL;
    struct format_writer_options options = {.force = true};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    struct record_code f = {.name = text(w, "f"), .file = text(w, "a.py"), .first_line = 1};
    uint32_t c = format_writer_code(w, &f);
    format_writer_thread(w, &(struct record_thread){.id = 0, .name = text(w, "one"), .tid = 5});
    const struct record_line lines[] = {{0, c, 2, 0, 1, 20, 0}, {0, c, 3, 0, 1, 20, 0},
                                        {0, c, 4, 0, 1, 30, 0}, {0, c, 5, 0, 1, 20, 0},
                                        {0, c, 6, 0, 1, 5, 0},  {0, c, 7, 0, 1, 5, 0}};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        format_writer_line(w, &lines[i]);
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);

    struct profile *p = NULL;
    char *said = NULL;
    size_t len = 0;
    assert_int_equal(profile_load(path, &p), 0);
    FILE *out = open_memstream(&said, &len);
    assert_non_null(out);
    assert_int_equal(view_summary_print(p, path, true, out, (struct view_style){0}), 0);
    fclose(out);
    const char *at = said;
    for (size_t i = 0; i < 5; i++) {
        static const char *const order[] = {"a.py:4\n", "a.py:2\n", "a.py:3\n", "a.py:5\n",
                                            "a.py:6\n"};
        at = strstr(at, order[i]);
        assert_non_null(at);
    }
    assert_null(strstr(said, "a.py:7"));
    free(said);
    profile_free(p);
}

/* --- hostile bytes --- */

static int count_line(void *ctx, const struct record_line *line)
{
    assert_true(line->thread < FORMAT_MAX_IDS && line->code < FORMAT_MAX_IDS);
    (*(int *)ctx)++;
    return 0;
}

static int visit(const struct buf *b, size_t len, uint32_t records, int *seen)
{
    static const struct format_visitor v = {.line = count_line};
    *seen = 0;
    return codec_visit(FORMAT_CHUNK_LINES, b->data, len, records, &v, seen);
}

static void test_codec_bounds(void **state ATTR_UNUSED)
{
    struct buf b;
    buf_init(&b, 1 << 16);
    struct codec_line_state s = {0};
    codec_put_line(&b, &s, &(struct record_line){5, 6, 7, 8, UINT64_MAX, 1, 2});
    size_t first = b.len;
    codec_put_line(&b, &s, &(struct record_line){1, 2, UINT32_MAX, 0, 0, 0, UINT64_MAX});
    int seen;
    assert_int_equal(visit(&b, b.len, 2, &seen), 0);
    assert_int_equal(seen, 2);
    for (size_t len = 0; len < b.len; len++) {
        assert_int_equal(visit(&b, len, 2, &seen), E_CORRUPT);
        assert_int_equal(seen, len >= first);
    }
    assert_int_equal(visit(&b, b.len, 3, &seen), E_CORRUPT);
    const int64_t bad[][3] = {{-1, 0, 0},        {0, -1, 0},        {0, 0, -1},
                              {1ll << 30, 0, 0}, {0, 1ll << 30, 0}, {0, 0, 1ll << 32}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        buf_clear(&b);
        for (int k = 0; k < 3; k++)
            buf_put_svarint(&b, bad[i][k]);
        for (int k = 0; k < 4; k++)
            buf_put_varint(&b, 0);
        assert_int_equal(visit(&b, b.len, 1, &seen), E_CORRUPT);
        assert_int_equal(seen, 0);
    }
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_generator_and_losses),
        cmocka_unit_test(test_finish_forgets_the_depth),
        cmocka_unit_test(test_failure_is_counted),
        cmocka_unit_test(test_analysis),
        cmocka_unit_test(test_summary_of_equals),
        cmocka_unit_test(test_codec_bounds),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
