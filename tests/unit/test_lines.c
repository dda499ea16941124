/* The filters on stacks, the lines of files, the ends of Python blocks, and sources kept in a
 * recording, on recordings of known truth that are written here and read back. */
#include "analysis/lines.h"
#include "base/clock.h"
#include "base/err.h"
#include "format/verify.h"
#include "format/writer.h"
#include "profile/source.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char path[] = "/tmp/pyrometer-test-XXXXXX";
static char source_path[] = "/tmp/pyrometer-source-XXXXXX";
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

static uint32_t node(uint32_t parent, uint32_t code_id, uint32_t line)
{
    return format_writer_stack(w, &(struct record_stack){parent, code_id, line});
}

static void sample(uint32_t stack, uint32_t count, uint64_t at_ms)
{
    format_writer_sample(w, &(struct record_sample){.thread = 1,
                                                    .stack = stack,
                                                    .count = count,
                                                    .start_ns = at_ms * NS_PER_MS,
                                                    .duration_ns = count * NS_PER_MS});
}

static void open_recording(void)
{
    struct format_writer_options options = {.force = true};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_process(w, &(struct record_process){.id = 1, .pid = 100, .kind = 1});
    format_writer_thread(w, &(struct record_thread){.id = 1, .process = 1, .tid = 100});
}

static struct profile *close_recording(void)
{
    struct profile *p = NULL;
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    assert_int_equal(profile_load(path, &p), 0);
    return p;
}

/* a.py: <module> line 9 → f (line 1) at 2 and 3, f → g (b.py:5) at 6; g alone; no frame. In ms:
 * f:2 10, f:3 20, f:3>g:6 30, g:6 40, root 5, <moving> under f:2 7 */
static struct profile *known_profile(void)
{
    open_recording();
    uint32_t module = code("<module>", "a.py", 1), f = code("f", "a.py", 1),
             g = code("g", "b.py", 5);
    uint32_t moving = format_writer_code(
        w, &(struct record_code){.name = text("<moving>"), .flags = RECORD_CODE_SPECIAL});
    uint32_t m9 = node(0, module, 9), f2 = node(m9, f, 2), f3 = node(m9, f, 3);
    sample(f2, 10, 0);
    sample(f3, 20, 10);
    sample(node(f3, g, 6), 30, 30);
    sample(node(0, g, 6), 40, 60);
    sample(0, 5, 100);
    sample(node(f2, moving, 0), 7, 105);
    return close_recording();
}

enum { WHOLE_MS = 112 };

static uint64_t total_ms(const struct profile *p, const char *include, const char *exclude)
{
    regex_t in, out;
    struct analysis_query q = {.metric = ANALYSIS_METRICS};
    if (include) {
        assert_int_equal(regcomp(&in, include, REG_EXTENDED | REG_NOSUB), 0);
        q.include = &in;
    }
    if (exclude) {
        assert_int_equal(regcomp(&out, exclude, REG_EXTENDED | REG_NOSUB), 0);
        q.exclude = &out;
    }
    struct analysis_weights weights;
    assert_int_equal(analysis_weights_init(p, &q, &weights), 0);
    uint64_t ms = weights.total.weight / NS_PER_MS;
    assert_int_equal(weights.total.samples, ms);
    analysis_weights_release(&weights);
    if (include)
        regfree(&in);
    if (exclude)
        regfree(&out);
    return ms;
}

static void test_filters(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    static const struct {
        const char *include, *exclude;
        uint64_t ms;
    } cases[] = {
        {NULL, NULL, WHOLE_MS},     {"^g$", NULL, 70},     {"^f$", NULL, 67},
        {NULL, "^f$", 45},          {"^g$", "^f$", 40},    {"a[.]py:3[(]f", NULL, 50},
        {"^b[.]py$", NULL, 70},     {NULL, "moving", 105}, {"nobody", NULL, 0},
        {NULL, "nobody", WHOLE_MS}, {"f", "f", 0},         {"a.py:9", "b.py:6", 37},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(total_ms(p, cases[i].include, cases[i].exclude), cases[i].ms);
    profile_free(p);
}

struct made {
    struct analysis_weights weights;
    struct analysis_lines lines;
};

static void make(struct made *m, const struct profile *p)
{
    struct analysis_query q = {.metric = ANALYSIS_METRICS};
    assert_int_equal(analysis_weights_init(p, &q, &m->weights), 0);
    assert_int_equal(analysis_lines_init(&m->weights, &m->lines), 0);
}

static void unmake(struct made *m)
{
    analysis_lines_release(&m->lines);
    analysis_weights_release(&m->weights);
}

static void expect_line(const struct made *m, const struct analysis_file *file, uint32_t number,
                        uint64_t self, uint64_t total, uint32_t function_line)
{
    const struct analysis_line *line = analysis_lines_find(&m->lines, file, number);
    assert_non_null(line);
    assert_int_equal(line->self.samples, self);
    assert_int_equal(line->total.samples, total);
    assert_int_equal(line->function_line, function_line);
}

static void test_lines(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p);
    assert_int_equal(m.lines.file_count, 2);
    const struct analysis_file *b = &m.lines.file[0], *a = &m.lines.file[1];
    assert_string_equal(b->path.text, "b.py"); /* 70 ms of its own against 30 */
    assert_int_equal(a->total.samples, 67);
    expect_line(&m, a, 2, 10, 17, 1);
    expect_line(&m, a, 3, 20, 50, 1);
    expect_line(&m, a, 9, 0, 67, 0);
    expect_line(&m, b, 6, 70, 70, 5);
    assert_null(analysis_lines_find(&m.lines, a, 4));
    assert_int_equal(m.lines.special_count, 2);
    uint64_t sum = 0;
    for (size_t i = 0; i < m.lines.line_count; i++)
        sum += m.lines.line[i].self.samples;
    for (size_t i = 0; i < m.lines.special_count; i++)
        sum += m.lines.special[i].self.samples;
    assert_int_equal(sum, WHOLE_MS);
    unmake(&m);
    profile_free(p);
}

static void expect_spans(const struct made *m, const struct analysis_file *file,
                         struct analysis_lines_select select, const char *source,
                         const char *expected)
{
    struct analysis_pysource py = {0};
    analysis_span_vec spans = {0};
    char got[128] = "";
    if (source)
        assert_int_equal(analysis_pysource_init(source, strlen(source), &py), 0);
    assert_int_equal(analysis_lines_spans(&m->lines, file, &select, source ? &py : NULL, &spans),
                     0);
    for (size_t i = 0; i < spans.len; i++) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "%u-%u ", spans.data[i].from, spans.data[i].to);
    }
    vec_release(&spans);
    analysis_pysource_release(&py);
    assert_string_equal(got, expected);
}

static void test_spans(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p);
    const struct analysis_file *a = &m.lines.file[1];
    static const char source[] = "def f():\n    x\n    y\n    z\n\n\n\n\nf()\nend\n";
    expect_spans(&m, a, (struct analysis_lines_select){0}, source, "1-4 9-9 ");
    expect_spans(&m, a, (struct analysis_lines_select){0}, NULL, "2-3 9-9 ");
    expect_spans(&m, a, (struct analysis_lines_select){.has_context = true}, source, "2-3 9-9 ");
    expect_spans(&m, a, (struct analysis_lines_select){.has_context = true, .context = 2}, source,
                 "1-5 7-10 ");
    expect_spans(&m, a, (struct analysis_lines_select){.has_context = true, .context = UINT64_MAX},
                 source, "1-10 ");
    expect_spans(&m, a, (struct analysis_lines_select){.min_percent = 50}, source, "9-9 ");
    expect_spans(&m, a, (struct analysis_lines_select){.min_samples = 60}, source, "9-9 ");
    expect_spans(&m, a, (struct analysis_lines_select){.min_percent = 99}, source, "");
    /* a source that is shorter than it was */
    expect_spans(&m, a, (struct analysis_lines_select){0}, "x\n", "1-3 9-9 ");
    expect_spans(&m, a, (struct analysis_lines_select){0}, "", "1-3 9-9 ");
    unmake(&m);
    profile_free(p);
}

static void test_block_ends(void **state ATTR_UNUSED)
{
    static const char source[] = "import x\n"                     /* 1 */
                                 "@deco(1,\n"                     /* 2 */
                                 "  2)\n"                         /* 3 */
                                 "def f(a,\n"                     /* 4 */
                                 "b):\n"                          /* 5 */
                                 "    '''doc\n"                   /* 6 */
                                 "def not_here():\n"              /* 7 */
                                 "    '''\n"                      /* 8 */
                                 "    if a: # ''' (\n"            /* 9 */
                                 "        s = \"'''\" + '\\'('\n" /* 10 */
                                 "    # the last\n"               /* 11 */
                                 "\n"                             /* 12 */
                                 "# a comment of the next\n"      /* 13 */
                                 "class C:\n"                     /* 14 */
                                 "\tasync def g(self): pass\n"    /* 15 */
                                 "\tx = [lambda: 1,\n"            /* 16 */
                                 "lambda: 2]\n"                   /* 17 */
                                 "y = 1 + \\\n"                   /* 18 */
                                 "2\n"                            /* 19 */
                                 "def open(:\n"                   /* 20 */
                                 "    '''never closed";           /* 21 */
    struct analysis_pysource s;
    assert_int_equal(analysis_pysource_init(source, strlen(source), &s), 0);
    assert_int_equal(s.count, 21);
    static const uint32_t ends[][2] = {{1, 1},   {2, 11},  {4, 11},  {14, 17}, {15, 15}, {16, 17},
                                       {18, 19}, {20, 21}, {21, 21}, {0, 0},   {99, 99}};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        assert_int_equal(analysis_pysource_end(&s, ends[i][0]), ends[i][1]);
    analysis_pysource_release(&s);
    static const char *const odd[] = {"",  "\n",   "\\", "'",    "'''",
                                      "(", "\"\\", "@",  "def ", "\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        assert_int_equal(analysis_pysource_init(odd[i], strlen(odd[i]), &s), 0);
        for (uint32_t n = 0; n <= s.count + 1; n++)
            assert_true(analysis_pysource_end(&s, n) >= n);
        analysis_pysource_release(&s);
    }
}

/* --- kept sources --- */

static void put_source(const char *file, const char *content, uint32_t flags)
{
    size_t len = content ? strlen(content) : 0;
    struct record_source source = {
        .path = text(file),
        .flags = flags,
        .size = len,
        .mtime_ns = 12345,
        .hash = record_source_hash(content ? content : "", len),
        .text = flags & RECORD_SOURCE_TEXT ? content : NULL,
        .text_len = flags & RECORD_SOURCE_TEXT ? len : 0,
    };
    format_writer_source(w, &source);
}

static void expect_source(const struct profile_sources *s, const char *file,
                          enum profile_source_origin origin, bool changed, const char *content)
{
    struct profile_source source;
    struct profile_string name = {file, (uint32_t)strlen(file)};
    assert_int_equal(profile_source_find(s, name, &source), 0);
    assert_int_equal(source.origin, origin);
    assert_int_equal(source.changed, changed);
    if (content) {
        assert_int_equal(source.len, strlen(content));
        assert_memory_equal(source.text, content, source.len);
    } else {
        assert_null(source.text);
    }
    profile_source_release(&source);
}

static void write_file(const char *content)
{
    FILE *f = fopen(source_path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

static void test_kept_sources(void **state ATTR_UNUSED)
{
    enum { KEPT = RECORD_SOURCE_TEXT | RECORD_SOURCE_HASHED };
    open_recording();
    put_source("<cell 1>", "old\n", KEPT | RECORD_SOURCE_LINECACHE);
    put_source("<cell 1>", "x = 1\n", KEPT | RECORD_SOURCE_LINECACHE); /* the last counts */
    put_source("/nowhere/gone.py", "gone = 1\n", KEPT);
    put_source("/nowhere/print.py", "only a print", RECORD_SOURCE_HASHED);
    put_source(source_path, "as it ran\n", KEPT);
    put_source("empty.py", "", KEPT);
    struct profile *p = close_recording();
    struct format_verdict verdict;
    assert_int_equal(format_verify(path, &verdict), 0);
    assert_true(format_verdict_is_whole(&verdict));
    struct profile_sources *s;
    assert_int_equal(profile_sources_new(p, &s), 0);
    expect_source(s, "<cell 1>", PROFILE_SOURCE_KEPT, false, "x = 1\n");
    expect_source(s, "/nowhere/gone.py", PROFILE_SOURCE_KEPT, false, "gone = 1\n");
    expect_source(s, "/nowhere/print.py", PROFILE_SOURCE_NONE, false, NULL);
    expect_source(s, "<unheard of>", PROFILE_SOURCE_NONE, false, NULL);
    expect_source(s, "", PROFILE_SOURCE_NONE, false, NULL);
    expect_source(s, "/dev/zero", PROFILE_SOURCE_NONE, false, NULL);
    expect_source(s, "/tmp", PROFILE_SOURCE_NONE, false, NULL);
    expect_source(s, "empty.py", PROFILE_SOURCE_KEPT, false, "");
    write_file("as it ran\n");
    expect_source(s, source_path, PROFILE_SOURCE_FILE, false, "as it ran\n");
    write_file("changed since\n");
    expect_source(s, source_path, PROFILE_SOURCE_KEPT, true, "as it ran\n");
    profile_sources_free(s);
    profile_free(p);

    open_recording(); /* changed, and the text was not kept */
    put_source(source_path, "as it ran\n", RECORD_SOURCE_HASHED);
    p = close_recording();
    assert_int_equal(profile_sources_new(p, &s), 0);
    expect_source(s, source_path, PROFILE_SOURCE_FILE, true, "changed since\n");
    profile_sources_free(s);
    profile_free(p);
}

static int make_files(void **state ATTR_UNUSED)
{
    int fd = mkstemp(path), other = mkstemp(source_path);
    if (fd >= 0)
        close(fd);
    if (other >= 0)
        close(other);
    return fd < 0 || other < 0;
}

static int remove_files(void **state ATTR_UNUSED)
{
    unlink(path);
    unlink(source_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters),      cmocka_unit_test(test_lines),
        cmocka_unit_test(test_spans),        cmocka_unit_test(test_block_ends),
        cmocka_unit_test(test_kept_sources),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
