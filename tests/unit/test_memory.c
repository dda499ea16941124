/* Memory: sums of sites over checkpoints, peaks, moments, ranges, filters and errors, on recordings of
 * known truth that are written here and read back. */
#include "analysis/memory.h"

#include "analysis/edges.h"
#include "analysis/stream.h"
#include "base/err.h"
#include "export/export.h"
#include "format/writer.h"
#include "profile/internal.h"
#include "record/memlog.h"
#include "view/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char path[] = "/tmp/pyrometer-test-XXXXXX";
static struct format_writer *w;
static uint32_t n_main, n_grow, n_leaf;

enum { SECOND = 1000000000, MALLOC = RECORD_ALLOCATOR_MALLOC, MMAP = RECORD_ALLOCATOR_MMAP };

static uint32_t text(const char *t)
{
    return format_writer_string(w, t, strlen(t));
}

static uint32_t code(const char *name, uint32_t line)
{
    struct record_code c = {.name = text(name), .file = text("/srv/app.py"), .first_line = line};
    return format_writer_code(w, &c);
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
    n_main = format_writer_stack(w, &(struct record_stack){0, code("main", 1), 5});
    n_grow = format_writer_stack(w, &(struct record_stack){n_main, code("grow", 10), 12});
    n_leaf = format_writer_stack(w, &(struct record_stack){n_grow, code("leaf", 20), 21});
}

static struct profile *close_recording(void)
{
    struct profile *p = NULL;
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    assert_int_equal(profile_load(path, &p), 0);
    return p;
}

/* Two processes.
 *   process 1  1 s: main 10 × 100, grow 4 × 1000, of which 2 are given back at once; peak 5000 at 0.5 s
 *              2 s: grow 2 × 1000 and leaf 1 × 8000 by mmap; main gives 4 × 100 back; peak 12600 at 1.5 s
 *              3 s: leaf gives its 8000 back; the end: main 600, grow 4000
 *   process 2  1.5 s: main 1 × 50, the end */
static struct profile *known_profile(void)
{
    open_recording();
    struct record_site first[] = {
        {.thread = 1,
         .stack = n_main,
         .count = 10,
         .bytes = 1000,
         .peak_count = 10,
         .peak_bytes = 1000},
        {.thread = 1,
         .stack = n_grow,
         .count = 4,
         .bytes = 4000,
         .freed = 2,
         .freed_bytes = 2000,
         .brief = 2,
         .brief_bytes = 2000,
         .peak_count = 4,
         .peak_bytes = 4000},
    };
    struct record_sizes sizes[] = {{MALLOC, 6, 10, 1000}, {MALLOC, 9, 4, 4000}};
    struct record_memory m = {.process = 1,
                              .time_ns = SECOND,
                              .live_bytes = 3000,
                              .live_count = 12,
                              .peak_bytes = 5000,
                              .peak_ns = SECOND / 2};
    format_writer_memory(w, &m, sizes, 2, first, 2);
    struct record_site other = {
        .thread = 2, .stack = n_main, .count = 1, .bytes = 50, .peak_count = 1, .peak_bytes = 50};
    struct record_memory n = {.process = 2,
                              .flags = RECORD_MEMORY_LAST,
                              .time_ns = SECOND + SECOND / 2,
                              .live_bytes = 50,
                              .live_count = 1,
                              .peak_bytes = 50,
                              .peak_ns = SECOND + SECOND / 4};
    format_writer_memory(w, &n, NULL, 0, &other, 1);
    assert_int_equal(format_writer_flush(w), 0);
    struct record_site second[] = {
        {.thread = 1,
         .stack = n_main,
         .freed = 4,
         .freed_bytes = 400,
         .peak_count = 6,
         .peak_bytes = 600},
        {.thread = 1,
         .stack = n_grow,
         .count = 2,
         .bytes = 2000,
         .peak_count = 4,
         .peak_bytes = 4000},
        {.thread = 1,
         .stack = n_leaf,
         .allocator = MMAP,
         .count = 1,
         .bytes = 8000,
         .peak_count = 1,
         .peak_bytes = 8000},
    };
    m = (struct record_memory){.process = 1,
                               .time_ns = 2ull * SECOND,
                               .live_bytes = 12600,
                               .live_count = 11,
                               .peak_bytes = 12600,
                               .peak_ns = SECOND + SECOND / 2};
    format_writer_memory(w, &m, NULL, 0, second, 3);
    struct record_site third = {.thread = 1,
                                .stack = n_leaf,
                                .allocator = MMAP,
                                .freed = 1,
                                .freed_bytes = 8000,
                                .peak_count = 1,
                                .peak_bytes = 8000};
    m.time_ns = 3ull * SECOND;
    m.live_bytes = 4600;
    m.live_count = 10;
    m.flags = RECORD_MEMORY_LAST;
    format_writer_memory(w, &m, NULL, 0, &third, 1);
    return close_recording();
}

struct made {
    struct analysis_weights weights;
    struct analysis_rows rows;
};

static void make(struct made *m, const struct profile *p, struct analysis_query query,
                 const char *metric)
{
    query.metric = metric ? analysis_metric_find(metric) : ANALYSIS_METRICS;
    assert_non_null(query.metric);
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

static void expect(const struct made *m, const char *name, uint64_t self, uint64_t blocks,
                   uint64_t total)
{
    assert_int_equal(row(m, name)->self.weight, self);
    assert_int_equal(row(m, name)->self.samples, blocks);
    assert_int_equal(row(m, name)->total.weight, total);
}

static void test_peak_is_the_default(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0}, NULL);
    assert_string_equal(m.weights.metric->name, "peak");
    assert_true(m.weights.exact);
    assert_false(m.weights.memory->sampled);
    assert_int_equal(m.weights.total.weight, 12650); /* each process at its own */
    assert_int_equal(m.weights.memory->processes_taken, 2);
    expect(&m, "main", 650, 7, 12650);
    expect(&m, "grow", 4000, 4, 12000);
    expect(&m, "leaf", 8000, 1, 8000);
    unmake(&m);
    profile_free(p);
}

static void test_sums_and_what_is_left(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0}, "allocated");
    assert_int_equal(m.weights.total.weight, 1000 + 50 + 6000 + 8000);
    expect(&m, "grow", 6000, 6, 14000);
    unmake(&m);
    make(&m, p, (struct analysis_query){0}, "count");
    assert_int_equal(m.weights.total.weight, 18);
    expect(&m, "main", 11, 11, 18);
    unmake(&m);
    make(&m, p, (struct analysis_query){0}, "leaked");
    assert_int_equal(m.weights.total.weight, 600 + 50 + 4000);
    expect(&m, "leaf", 0, 0, 0);
    expect(&m, "main", 650, 7, 4650);
    assert_false(m.weights.memory->unfinished);
    assert_int_equal(m.weights.memory->process[1].freed_bytes, 2000 + 400 + 8000);
    unmake(&m);
    profile_free(p);
}

static uint64_t live_at(const struct profile *p, double at)
{
    struct made m;
    make(&m, p, (struct analysis_query){.has_at = true, .at = at}, "live");
    uint64_t total = m.weights.total.weight;
    unmake(&m);
    return total;
}

static void test_moments(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    assert_int_equal(live_at(p, 0.9), 0); /* before the first checkpoint */
    assert_int_equal(live_at(p, 1), 3000);
    assert_int_equal(live_at(p, 1.5), 3050);
    assert_int_equal(live_at(p, 1.6), 3000); /* process 2 has ended */
    assert_int_equal(live_at(p, 2.9), 12600);
    assert_int_equal(live_at(p, 3), 4600);
    assert_int_equal(live_at(p, 1e9), 4600); /* past the end is the end */
    struct made m;
    make(&m, p, (struct analysis_query){.has_at = true, .at = 2.9}, "leaked");
    assert_int_equal(m.weights.total.weight, 4650); /* has no moment but the end */
    unmake(&m);
    make(&m, p, (struct analysis_query){.has_at = true, .at = 2.9}, "live");
    assert_int_equal(m.weights.memory->process[1].at_ns, 2ull * SECOND);
    assert_int_equal(m.weights.memory->process[2].at_ns, 0);
    unmake(&m);
    profile_free(p);
}

/* One block of events, a chunk of its own: an allocation that outlives it. */
static void write_events(uint64_t ns, uint64_t bytes, struct memlog *log)
{
    struct record_site site = {.thread = 1, .stack = n_main};
    memlog_allocate(log, 0, bytes, ns);
    memlog_finish_block(log);
    const struct memlog_done *d = &log->done.data[log->done.len - 1];
    format_writer_memory_events(w, 1, &site, 1, &d->block);
    assert_int_equal(format_writer_flush(w), 0);
}

/* Checkpoints at 1 and 3 s, and every event: 1000 bytes at 0.5 s, 500 at 2 s. */
static struct profile *eventful_profile(void)
{
    struct memlog log = {0};
    struct record_site site = {.thread = 1, .count = 1, .bytes = 1000};
    struct record_memory m = {.process = 1, .time_ns = SECOND};
    open_recording();
    write_events(SECOND / 2, 1000, &log);
    site.stack = n_main; /* which has its number only now */
    format_writer_memory(w, &m, NULL, 0, &site, 1);
    write_events(2ull * SECOND, 500, &log);
    site.bytes = 500;
    m.time_ns = 3ull * SECOND;
    m.flags = RECORD_MEMORY_LAST;
    format_writer_memory(w, &m, NULL, 0, &site, 1);
    memlog_release(&log);
    return close_recording();
}

/* Turns one bit in the last byte of the first chunk of events. */
static void damage_events(const struct profile *p)
{
    const struct format_reader *r = profile_reader(p);
    size_t i = 0;
    while (format_reader_chunk(r, i)->kind != FORMAT_CHUNK_MEMORY_EVENTS)
        i++;
    assert_true(i + 1 < format_reader_chunk_count(r));
    long end = (long)format_reader_chunk(r, i + 1)->offset;
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, end - 1, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, end - 1, SEEK_SET);
    fputc(byte ^ 1, f);
    fclose(f);
}

static void test_moments_by_events(void **state ATTR_UNUSED)
{
    struct profile *p = eventful_profile();
    assert_int_equal(live_at(p, 0.9), 1000);
    assert_int_equal(live_at(p, 1.9), 1000);
    assert_int_equal(live_at(p, 2.1), 1500);
    damage_events(p);
    profile_free(p);
    assert_int_equal(profile_load(path, &p),
                     0); /* what is left of them knows nothing of the 1000 */
    struct made m;
    make(&m, p, (struct analysis_query){.has_at = true, .at = 2.1}, "live");
    assert_int_equal(m.weights.total.weight, 1000);
    assert_int_equal(m.weights.memory->process[1].at_ns, SECOND);
    assert_int_equal(m.weights.memory->damaged_chunks + profile_summary(p)->damaged_chunks, 1);
    unmake(&m);
    profile_free(p);
}

static uint64_t allocated_in(const struct profile *p, double from, double to)
{
    struct made m;
    struct analysis_query q = {.has_from = from > 0, .from = from, .has_to = to > 0, .to = to};
    make(&m, p, q, "allocated");
    uint64_t total = m.weights.total.weight;
    unmake(&m);
    return total;
}

static void test_ranges_add_up(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    assert_int_equal(allocated_in(p, 0, 1), 5000);
    assert_int_equal(allocated_in(p, 1, 1.7), 50);
    assert_int_equal(allocated_in(p, 1.7, 0), 10000);
    assert_int_equal(allocated_in(p, 0, 0), 15050);
    profile_free(p);
}

static void test_filters(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){.has_process = true, .process = 200}, "peak");
    assert_int_equal(m.weights.total.weight, 50);
    assert_int_equal(m.weights.memory->processes_taken, 1);
    unmake(&m);
    make(&m, p, (struct analysis_query){.thread = "100"}, "peak");
    assert_int_equal(m.weights.total.weight, 12600);
    unmake(&m);
    regex_t leaf;
    assert_int_equal(regcomp(&leaf, "^leaf$", REG_EXTENDED | REG_NOSUB), 0);
    make(&m, p, (struct analysis_query){.include = &leaf}, "peak");
    assert_int_equal(m.weights.total.weight, 8000);
    unmake(&m);
    make(&m, p, (struct analysis_query){.exclude = &leaf}, "peak");
    assert_int_equal(m.weights.total.weight, 4650);
    unmake(&m);
    regfree(&leaf);
    profile_free(p);
}

static int add_run(void *ctx, const struct analysis_run *run)
{
    *(uint64_t *)ctx += run->weight.weight;
    return 0;
}

static void test_stream_and_edges_agree(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0}, "peak");
    struct analysis_query q = {.metric = analysis_metric_find("peak")};
    uint64_t sum = 0;
    assert_int_equal(analysis_stream_each(p, &q, add_run, &sum), 0);
    assert_int_equal(sum, m.weights.total.weight);
    struct analysis_edges edges;
    assert_int_equal(analysis_edges_init(&m.rows, &edges), 0);
    assert_int_equal(edges.count, 2);
    assert_int_equal(edges.by_caller[0].total.weight + edges.by_caller[1].total.weight, 20000);
    analysis_edges_release(&edges);
    unmake(&m);
    profile_free(p);
}

/* Variances add up; the error is 1.96 roots of them. */
static void test_sampled_memory_has_errors(void **state ATTR_UNUSED)
{
    open_recording();
    struct record_memory m = {.process = 1,
                              .flags = RECORD_MEMORY_SAMPLED | RECORD_MEMORY_LAST,
                              .time_ns = SECOND,
                              .live_bytes = 900,
                              .live_count = 9,
                              .peak_bytes = 900,
                              .peak_ns = SECOND};
    struct record_site sites[] = {
        {.thread = 1,
         .stack = n_main,
         .count = 4,
         .bytes = 400,
         .peak_count = 4,
         .peak_bytes = 400,
         .variance = 100,
         .live_variance = 90,
         .peak_variance = 900},
        {.thread = 1,
         .stack = n_grow,
         .count = 5,
         .bytes = 500,
         .peak_count = 0,
         .peak_bytes = 500,
         .variance = 100,
         .live_variance = 90,
         .peak_variance = 1600},
    };
    format_writer_memory(w, &m, NULL, 0, sites, 2);
    struct profile *p = close_recording();
    struct made made;
    make(&made, p, (struct analysis_query){0}, NULL);
    assert_true(made.weights.memory->sampled);
    assert_float_equal(made.weights.total_variance, 2500, 1e-9);
    assert_float_equal(row(&made, "main")->self_variance, 900, 1e-9);
    assert_float_equal(row(&made, "main")->total_variance, 2500, 1e-9);
    assert_float_equal(analysis_memory_error(2500), 97.998, 1e-3);
    assert_int_equal(row(&made, "grow")->self.samples, 1); /* bytes without a block: there is one */
    unmake(&made);
    make(&made, p, (struct analysis_query){0}, "count");
    assert_true(made.weights.total_variance != made.weights.total_variance); /* not known */
    unmake(&made);
    profile_free(p);
}

static char *printed(const struct made *m, enum view_format format)
{
    struct analysis_select select = {.sort = ANALYSIS_SORT_SELF};
    struct analysis_selection selection;
    assert_int_equal(analysis_selection_init(&m->rows, &select, &selection), 0);
    struct view_report report = {
        .weights = &m->weights, .rows = &m->rows, .selection = &selection, .select = &select};
    char *out = NULL;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    assert_int_equal(view_report_print(&report, f, format, (struct view_style){0}), 0);
    fclose(f);
    analysis_selection_release(&selection);
    return out;
}

static void test_report_says_what_it_is_of(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct made m;
    make(&m, p, (struct analysis_query){0}, NULL);
    char *out = printed(&m, VIEW_TEXT);
    assert_non_null(strstr(out, "peak 12.4 KiB in 12 blocks; each of 2 processes at its own peak"));
    assert_non_null(strstr(out, "7.81 KiB"));
    assert_null(strstr(out, "±"));
    assert_null(strstr(out, "calls"));
    free(out);
    out = printed(&m, VIEW_JSON);
    assert_non_null(strstr(out, "\"unit\":\"bytes\""));
    assert_non_null(strstr(out, "\"total\":12650"));
    free(out);
    unmake(&m);
    make(&m, p, (struct analysis_query){.thread = "100"}, "peak");
    out = printed(&m, VIEW_TEXT);
    assert_non_null(strstr(out, "peak 12.3 KiB in 11 blocks, at 1.50 s"));
    free(out);
    unmake(&m);
    profile_free(p);
}

static void test_exports_weigh_bytes(void **state ATTR_UNUSED)
{
    struct profile *p = known_profile();
    struct export_options options = {.query.metric = ANALYSIS_METRICS, .weighted = true};
    for (const struct export_format *f = EXPORT_TABLE; f->name; f++) {
        if (strcmp(f->name, "chrome") == 0 || strcmp(f->name, "perfetto") == 0)
            continue;
        char *out = NULL;
        size_t len;
        FILE *to = open_memstream(&out, &len);
        assert_int_equal(f->write(p, &options, to), 0);
        fclose(to);
        assert_true(len > 0);
        if (strcmp(f->name, "collapsed") == 0)
            assert_non_null(strstr(out, "leaf (/srv/app.py:21) 8000"));
        free(out);
    }
    profile_free(p);
}

int main(void)
{
    close(mkstemp(path));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peak_is_the_default),
        cmocka_unit_test(test_sums_and_what_is_left),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_moments_by_events),
        cmocka_unit_test(test_ranges_add_up),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_stream_and_edges_agree),
        cmocka_unit_test(test_sampled_memory_has_errors),
        cmocka_unit_test(test_report_says_what_it_is_of),
        cmocka_unit_test(test_exports_weigh_bytes),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
