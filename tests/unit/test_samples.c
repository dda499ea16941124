/* The samples of a recording that is long enough to be decoded ahead: all of them, in order, also when
 * somebody stops in between. */
#include "base/attr.h"
#include "base/err.h"
#include "format/writer.h"
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { SAMPLES = (1 << 20) + 12345, THREADS = 3, NODES = 50 };

static char path[] = "/tmp/pyrometer-test-XXXXXX";

/* Sample i, so that it can be told whether it is the one. */
static struct record_sample nth(uint32_t i)
{
    return (struct record_sample){.thread = 1 + i % THREADS,
                                  .stack = i * 7 % (NODES + 1),
                                  .state = RECORD_ON_CPU,
                                  .count = 1 + i % 5,
                                  .start_ns = 1000ull * i,
                                  .duration_ns = 1 + i % 1000};
}

static int make_recording(void **state)
{
    struct format_writer *w;
    struct format_writer_options options = {.force = true};
    int fd = mkstemp(path);
    if (fd < 0 || close(fd) < 0 || format_writer_open(path, &options, &w) < 0)
        return -1;
    uint32_t command = format_writer_string(w, "app", 3), node = 0;
    format_writer_process(w, &(struct record_process){.id = 1, .pid = 100, .command = command});
    for (uint32_t i = 1; i <= THREADS; i++)
        format_writer_thread(w, &(struct record_thread){.id = i, .process = 1, .tid = 100 + i});
    uint32_t code = format_writer_code(w, &(struct record_code){.name = command});
    for (uint32_t i = 1; i <= NODES; i++)
        node = format_writer_stack(w, &(struct record_stack){node, code, i});
    for (uint32_t i = 0; i < SAMPLES; i++) {
        struct record_sample s = nth(i);
        format_writer_sample(w, &s);
    }
    int r = format_writer_finish(w);
    format_writer_free(w);
    struct profile *p = NULL;
    r = r < 0 ? r : profile_load(path, &p);
    *state = p;
    return r;
}

static int remove_recording(void **state)
{
    profile_free(*state);
    return unlink(path);
}

struct seen {
    uint32_t next;  /* the sample that is to come */
    uint32_t until; /* then nothing more */
};

enum { ENOUGH = 77 };

static int on_samples(void *ctx, const struct record_sample *samples, size_t n)
{
    struct seen *seen = ctx;
    for (size_t i = 0; i < n; i++, seen->next++) {
        struct record_sample s = nth(seen->next);
        assert_int_equal(samples[i].thread, s.thread);
        assert_int_equal(samples[i].stack, s.stack);
        assert_int_equal(samples[i].count, s.count);
        assert_int_equal(samples[i].start_ns, s.start_ns);
        assert_int_equal(samples[i].duration_ns, s.duration_ns);
    }
    return seen->next >= seen->until ? ENOUGH : 0;
}

static void test_all_in_order(void **state)
{
    struct seen seen = {.until = UINT32_MAX};
    uint32_t damaged = 1;
    assert_int_equal(profile_each_sample(*state, on_samples, &seen, &damaged), 0);
    assert_int_equal(seen.next, SAMPLES);
    assert_int_equal(damaged, 0);
}

/* At once, in the middle, and with the last. */
static void test_stopping(void **state)
{
    static const uint32_t until[] = {1, SAMPLES / 2, SAMPLES};
    for (size_t i = 0; i < ARRAY_LEN(until); i++) {
        struct seen seen = {.until = until[i]};
        assert_int_equal(profile_each_sample(*state, on_samples, &seen, NULL), ENOUGH);
        assert_true(seen.next >= until[i]);
        assert_true(i == 2 || seen.next < SAMPLES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_in_order),
        cmocka_unit_test(test_stopping),
    };
    return cmocka_run_group_tests(tests, make_recording, remove_recording);
}
