/* The writing thread under load: a producer that is faster than it, one that asks for its CPU time
 * all the while, a disk that fails in the middle. Meant for ThreadSanitizer (tests/run_all.py
 * --only tsan), and true without it. */
#include "base/err.h"
#include "format/reader.h"
#include "format/sink.h"
#include "format/verify.h"
#include "format/writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

#include <cmocka.h>

static char path[] = "/tmp/pyrometer-sink-XXXXXX";

static int make_file(void **state ATTR_UNUSED)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return 0;
}

static int remove_file(void **state ATTR_UNUSED)
{
    unlink(path);
    return 0;
}

static struct format_writer *new_writer(const char *at)
{
    struct format_writer *w = NULL;
    struct format_writer_options options = {.force = true};
    assert_int_equal(format_writer_open(at, &options, &w), 0);
    return w;
}

/* `count` samples in chunks of 100; the sticky error of the last flush. */
static int write_samples(struct format_writer *w, uint32_t count)
{
    int rc = 0;
    for (uint32_t i = 0; i < count; i++) {
        format_writer_sample(w, &(struct record_sample){.thread = 1,
                                                        .stack = i * 7919 % 1000,
                                                        .count = 1,
                                                        .start_ns = i * 1000ull,
                                                        .duration_ns = 1000});
        if (i % 100 == 99) {
            rc = format_writer_flush(w);
            format_writer_cpu_ns(w);
        }
    }
    return rc;
}

static void test_many_chunks(void **state ATTR_UNUSED)
{
    enum { SAMPLES = 100000 };
    struct format_writer *w = new_writer(path);
    assert_int_equal(write_samples(w, SAMPLES), 0);
    assert_int_equal(format_writer_finish(w), 0);
    assert_true(format_writer_cpu_ns(w) > 0);
    assert_int_equal(format_writer_finish(w), 0); /* again: nothing left to do */
    format_writer_free(w);
    struct format_verdict v;
    assert_int_equal(format_verify(path, &v), 0);
    assert_int_equal(v.samples, SAMPLES);
    assert_int_equal(v.summary.chunks, SAMPLES / 100 + 1);
    assert_int_equal(v.bad_checksums + v.bad_contents + v.summary.missing_chunks, 0);
    assert_true(v.summary.finished);
}

/* Opened and given up again and again: the thread always ends. */
static void test_open_and_free(void **state ATTR_UNUSED)
{
    for (int i = 0; i < 50; i++) {
        struct format_writer *w = new_writer(path);
        write_samples(w, (uint32_t)(i % 3) * 150);
        format_writer_free(w);
    }
}

/* Several recorders in one process, each with its own writer. */
static void *write_one(void *ctx)
{
    char own[64];
    snprintf(own, sizeof own, "%s.%d", path, *(int *)ctx);
    struct format_writer *w = new_writer(own);
    int rc = write_samples(w, 20000);
    if (rc == 0)
        rc = format_writer_finish(w);
    format_writer_free(w);
    unlink(own);
    *(int *)ctx = rc;
    return NULL;
}

static void test_writers_side_by_side(void **state ATTR_UNUSED)
{
    enum { WRITERS = 4 };
    pthread_t threads[WRITERS];
    int numbers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, write_one, &numbers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(numbers[i], 0);
    }
}

/* A reader beside the writer sees whole chunks, or a torn end, at every moment. */
static void *read_meanwhile(void *ctx)
{
    unsigned bad = 0;
    while (!__atomic_load_n((bool *)ctx, __ATOMIC_ACQUIRE)) {
        struct format_verdict v;
        if (format_verify(path, &v) == 0)
            bad += v.bad_checksums + v.bad_contents + v.summary.damaged_chunks;
    }
    return (void *)(uintptr_t)bad;
}

static void test_reader_beside_writer(void **state ATTR_UNUSED)
{
    bool done = false;
    pthread_t reader;
    void *bad = NULL;
    struct format_writer *w = new_writer(path);
    assert_int_equal(pthread_create(&reader, NULL, read_meanwhile, &done), 0);
    write_samples(w, 50000);
    assert_int_equal(format_writer_finish(w), 0);
    __atomic_store_n(&done, true, __ATOMIC_RELEASE);
    pthread_join(reader, &bad);
    assert_null(bad);
    format_writer_free(w);
}

/* The disk fills up while chunks wait: the error comes back, and nothing waits for ever. */
static void test_disk_fails(void **state ATTR_UNUSED)
{
    struct rlimit old, tight;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct format_writer *w = new_writer(path);
    tight = (struct rlimit){20000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    int early = write_samples(w, 100000);
    int rc = format_writer_finish(w);
    setrlimit(RLIMIT_FSIZE, &old);
    format_writer_free(w);
    assert_true(rc < 0);
    assert_true(early == 0 || early == rc);
    struct format_verdict v;
    assert_int_equal(format_verify(path, &v), 0);
    assert_true(v.samples > 0 && !v.summary.finished);
    assert_int_equal(v.bad_checksums + v.bad_contents, 0);
}

/* A payload that failed in the producer's hands is an error of the file: no hole, no later chunks.
 */
static void test_submission_fails(void **state ATTR_UNUSED)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    struct sink *s = NULL;
    assert_int_equal(sink_start(fd, &s), 0);
    int rc = 0;
    for (int i = 0; i < 200; i++) {
        struct buf b;
        buf_init(&b, i == 100 ? 4 : 4096);
        buf_append(&b, "0123456789", 10);
        rc = sink_submit(s, FORMAT_CHUNK_SAMPLES, &b, 1);
        assert_int_equal(rc, i < 100 ? 0 : E_LIMIT);
        buf_release(&b);
    }
    assert_int_equal(sink_stop(s, NULL), E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_chunks),          cmocka_unit_test(test_open_and_free),
        cmocka_unit_test(test_writers_side_by_side), cmocka_unit_test(test_reader_beside_writer),
        cmocka_unit_test(test_disk_fails),           cmocka_unit_test(test_submission_fails),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
