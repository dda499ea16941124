/* Two recordings of known truth and what changed between them. */
#include "analysis/diff.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "format/writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct frame {
    const char *name, *file;
    uint32_t first_line, line;
    uint32_t samples;
};

struct made {
    char path[32];
    struct profile *profile;
    struct analysis_weights weights;
    struct analysis_rows rows;
};

/* A recording of one-frame stacks. */
static void make(struct made *m, const struct frame *frames, size_t count, enum analysis_by by)
{
    struct format_writer *w;
    struct format_writer_options options = {.force = true};
    memcpy(m->path, "/tmp/pyrometer-test-XXXXXX", 27);
    int fd = mkstemp(m->path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(format_writer_open(m->path, &options, &w), 0);
    format_writer_process(w, &(struct record_process){.id = 1, .pid = 100, .kind = 1});
    format_writer_thread(w, &(struct record_thread){.id = 1, .process = 1, .tid = 100});
    for (size_t i = 0; i < count; i++) {
        const struct frame *f = &frames[i];
        uint32_t code = format_writer_code(
            w, &(struct record_code){.name = format_writer_string(w, f->name, strlen(f->name)),
                                     .file = format_writer_string(w, f->file, strlen(f->file)),
                                     .first_line = f->first_line});
        uint32_t node = format_writer_stack(w, &(struct record_stack){0, code, f->line});
        format_writer_sample(w, &(struct record_sample){.thread = 1,
                                                        .stack = node,
                                                        .count = f->samples,
                                                        .duration_ns = f->samples * NS_PER_MS});
    }
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    struct analysis_query q = {.metric = ANALYSIS_METRICS};
    assert_int_equal(profile_load(m->path, &m->profile), 0);
    assert_int_equal(analysis_weights_init(m->profile, &q, &m->weights), 0);
    assert_int_equal(analysis_rows_init(&m->weights, by, &m->rows), 0);
}

static void unmake(struct made *m)
{
    analysis_rows_release(&m->rows);
    analysis_weights_release(&m->weights);
    profile_free(m->profile);
    unlink(m->path);
}

static void expect(const struct analysis_diff *d, size_t at, const char *name, int before_ms,
                   int after_ms)
{
    assert_true(at < d->count);
    const struct analysis_diff_row *row = &d->row[at];
    assert_string_equal(row->row->name.text, name);
    assert_int_equal(row->in_before, before_ms >= 0);
    assert_int_equal(row->in_after, after_ms >= 0);
    int before = before_ms < 0 ? 0 : before_ms, after = after_ms < 0 ? 0 : after_ms;
    assert_int_equal(row->self.before.samples, before);
    assert_int_equal(row->self.after.samples, after);
    assert_true(fabs(row->self.weight - (after - before) * 1e6) < 1);
}

static void test_partners(void **state ATTR_UNUSED)
{
    static const struct frame before[] = {
        {"same", "/srv/a.py", 10, 11, 100},
        {"moved", "/srv/a.py", 20, 21, 200},
        {"<lambda>", "/srv/a.py", 30, 30, 10},
        {"<lambda>", "/srv/a.py", 40, 40, 20},
        {"decode", "/usr/lib/python3.11/json/decoder.py", 5, 6, 300},
        {"gone", "/srv/a.py", 50, 51, 7},
    };
    static const struct frame after[] = {
        {"<lambda>", "/srv/a.py", 45, 45, 21},
        {"<lambda>", "/srv/a.py", 35, 35, 12},
        {"moved", "/srv/a.py", 25, 26, 150},
        {"same", "/srv/a.py", 10, 11, 104},
        {"decode", "/usr/lib/python3.12/json/decoder.py", 9, 9, 330},
        {"new", "/srv/a.py", 60, 61, 6},
    };
    struct made b, a;
    struct analysis_diff d;
    make(&b, before, ARRAY_LEN(before), ANALYSIS_BY_FUNCTION);
    make(&a, after, ARRAY_LEN(after), ANALYSIS_BY_FUNCTION);
    struct analysis_diff_select select = {0};
    assert_int_equal(analysis_diff_init(&b.rows, &a.rows, &select, &d), 0);
    assert_int_equal(d.count, 7);
    expect(&d, 0, "moved", 200, 150);
    expect(&d, 1, "decode", 300, 330);
    expect(&d, 2, "gone", 7, -1);
    expect(&d, 3, "new", -1, 6);
    expect(&d, 4, "same", 100, 104);
    expect(&d, 5, "<lambda>", 10, 12);
    expect(&d, 6, "<lambda>", 20, 21);
    double sum = 0, points = 0;
    for (size_t i = 0; i < d.count; i++) {
        sum += d.row[i].self.weight;
        points += d.row[i].self.points;
    }
    assert_true(fabs(sum - (623. - 637.) * 1e6) < 1 && fabs(points) < 1e-9);
    analysis_diff_release(&d);

    regex_t match;
    assert_int_equal(regcomp(&match, "lambda", REG_EXTENDED | REG_NOSUB), 0);
    select =
        (struct analysis_diff_select){.sort = ANALYSIS_DIFF_SORT_NAME, .match = &match, .limit = 1};
    assert_int_equal(analysis_diff_init(&b.rows, &a.rows, &select, &d), 0);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.matched, 2);
    analysis_diff_release(&d);
    regfree(&match);
    unmake(&a);

    make(&a, after, ARRAY_LEN(after), ANALYSIS_BY_FILE);
    assert_int_equal(analysis_diff_init(&b.rows, &a.rows, &select, &d), E_INVALID);
    unmake(&b);
    make(&b, before, ARRAY_LEN(before), ANALYSIS_BY_FILE);
    select = (struct analysis_diff_select){0};
    assert_int_equal(analysis_diff_init(&b.rows, &a.rows, &select, &d), 0);
    assert_int_equal(d.count, 2); /* the library's file has moved, but is the same module */
    analysis_diff_release(&d);
    unmake(&a);
    unmake(&b);
}

static struct analysis_change change(uint64_t before, uint64_t before_whole, uint64_t after,
                                     uint64_t after_whole)
{
    return analysis_change_of((struct analysis_weight){before * NS_PER_MS, before},
                              (struct analysis_weight){after * NS_PER_MS, after},
                              (struct analysis_weight){before_whole * NS_PER_MS, before_whole},
                              (struct analysis_weight){after_whole * NS_PER_MS, after_whole});
}

static void test_noise(void **state ATTR_UNUSED)
{
    /* 50 % of 1000 against 53 % of 1000: half of the interval is 4.4 points */
    struct analysis_change c = change(500, 1000, 530, 1000);
    assert_true(c.is_noise && !c.is_whole);
    assert_true(fabs(c.points - 3) < 1e-9 && fabs(c.error_points - 4.37) < 0.02);
    assert_false(change(500, 1000, 560, 1000).is_noise);
    assert_true(change(50000, 100000, 50300, 100000).is_noise);
    assert_false(change(50000, 100000, 50600, 100000).is_noise);
    assert_true(change(0, 1000, 2, 1000).is_noise);
    assert_false(change(0, 1000, 20, 1000).is_noise);
    /* twice as long in all: the share says nothing happened, the seconds do */
    c = change(500, 1000, 1000, 2000);
    assert_true(c.is_noise && c.is_whole);
    /* what was counted is equal, or is not */
    struct analysis_weight part = {500, 1}, whole = {1000, UINT64_MAX}, twice = {2000, UINT64_MAX};
    c = analysis_change_of(part, part, whole, whole);
    assert_false(c.is_noise || c.is_whole);
    c = analysis_change_of(part, (struct analysis_weight){1000, 1}, whole, twice);
    assert_true(c.is_noise && c.is_whole);
    /* nothing is known of an empty run */
    assert_true(change(0, 0, 500, 1000).is_noise);
    c = change(0, 0, 0, 0);
    assert_true(isfinite(c.points) && isfinite(c.error_points));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partners),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
