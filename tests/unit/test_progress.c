/* How far the work is: the counters, what the passes over a recording count, and the line on a terminal
 * while several threads work and speak. TSan runs it. */
#include "base/attr.h"
#include "base/progress.h"
#include "cmd/progress.h"
#include "format/verify.h"
#include "format/writer.h"
#include "profile/profile.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORKERS = 4, STEPS = 20000, SAMPLES = 300000, SCREEN_MAX = 1 << 20 };

#define ERASE "\r\x1b[K"

/* --- the counters --- */

static void *work(void *arg)
{
    (void)arg;
    for (int i = 0; i < STEPS; i++)
        progress_add(1);
    return NULL;
}

static void share_out(void *(*fn)(void *))
{
    pthread_t worker[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&worker[i], NULL, fn, NULL), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(worker[i], NULL);
}

static void test_counters(void **state)
{
    (void)state;
    struct progress now;
    progress_begin("working", (uint64_t)WORKERS * STEPS);
    share_out(work);
    progress_now(&now);
    assert_string_equal(now.what, "working");
    assert_int_equal(now.done, WORKERS * STEPS);
    assert_int_equal(now.total, WORKERS * STEPS);
    progress_add(1); /* a file that holds more than it says */
    progress_now(&now);
    assert_int_equal(now.done, WORKERS * STEPS);
    progress_begin("sorting", 0);
    progress_reach(7);
    progress_now(&now);
    assert_string_equal(now.what, "sorting");
    assert_int_equal(now.done, 7);
    assert_int_equal(now.total, 0);
}

/* --- the passes --- */

static void is_through(const char *what)
{
    struct progress now;
    progress_now(&now);
    assert_string_equal(now.what, what);
    assert_true(now.total > 0);
    assert_int_equal(now.done, now.total);
}

static int nothing(void *ctx, const struct record_sample *samples, size_t n)
{
    (void)ctx, (void)samples, (void)n;
    return 0;
}

static void test_passes(void **state)
{
    (void)state;
    char path[] = "/tmp/pyrometer-test-XXXXXX";
    struct format_writer *w;
    struct format_writer_options options = {.force = true};
    close(mkstemp(path));
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    format_writer_process(w, &(struct record_process){.id = 1, .pid = 100});
    format_writer_thread(w, &(struct record_thread){.id = 1, .process = 1, .tid = 100});
    for (uint32_t i = 0; i < SAMPLES; i++)
        format_writer_sample(
            w, &(struct record_sample){
                   .thread = 1, .count = 1, .start_ns = 1000ull * i, .duration_ns = 1000});
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);

    struct profile *p;
    assert_int_equal(profile_load(path, &p), 0);
    is_through("reading the recording");
    assert_int_equal(profile_each_sample(p, nothing, NULL, NULL), 0);
    is_through("reading samples");
    profile_free(p);
    struct format_verdict v;
    assert_int_equal(format_verify(path, &v), 0);
    is_through("checking the recording");
    unlink(path);
}

/* --- the line --- */

struct screen {
    int terminal;
    char text[SCREEN_MAX];
    size_t len;
};

static void *read_screen(void *arg)
{
    struct screen *s = arg;
    ssize_t n;
    while (s->len < SCREEN_MAX - 1 &&
           (n = read(s->terminal, s->text + s->len, SCREEN_MAX - 1 - s->len)) > 0)
        s->len += (size_t)n;
    return NULL;
}

static const char said[] = "pyrometer: warning: one of them\n";

static void *work_and_speak(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++) {
        for (int k = 0; k < STEPS / 50; k++)
            progress_add(1);
        cmd_progress_say(said, sizeof said - 1);
    }
    return NULL;
}

/* What stays when every line has been erased: only what was said. */
static void check_screen(const char *text)
{
    size_t lines = 0, drawn = 0;
    for (const char *at = text; *at;) {
        if (!strncmp(at, ERASE, sizeof ERASE - 1)) {
            at += sizeof ERASE - 1;
            size_t len = strcspn(at, "\r");
            bool is_line = !strncmp(at, "pyrometer: counting: ", 21);
            drawn += is_line;
            if (is_line) { /* nothing follows a line but its end */
                at += len;
                assert_int_equal(strncmp(at, ERASE, sizeof ERASE - 1), 0);
            }
            continue;
        }
        assert_int_equal(strncmp(at, said, sizeof said - 2), 0);
        at += sizeof said - 2;
        assert_int_equal(strncmp(at, "\r\n", 2), 0);
        at += 2;
        lines++;
    }
    assert_int_equal(lines, WORKERS * 50);
    assert_true(drawn > 0);
}

static void test_line(void **state)
{
    (void)state;
    struct screen *s = calloc(1, sizeof *s);
    s->terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(s->terminal >= 0 && grantpt(s->terminal) == 0 && unlockpt(s->terminal) == 0);
    int end = open(ptsname(s->terminal), O_RDWR | O_NOCTTY), kept = dup(STDERR_FILENO);
    pthread_t reader;
    pthread_create(&reader, NULL, read_screen, s);
    setenv("TERM", "xterm", 1);
    setenv("PYROMETER_PROGRESS_AFTER_MS", "0", 1);
    progress_begin("counting", (uint64_t)WORKERS * STEPS);
    dup2(end, STDERR_FILENO);
    for (int i = 0; i < 2; i++) { /* it may begin again */
        cmd_progress_begin();
        cmd_progress_begin();
        if (i)
            share_out(work_and_speak);
        cmd_progress_end();
        cmd_progress_end();
    }
    cmd_progress_never();
    cmd_progress_begin();
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(end); /* the last writer: the reader comes to its end */
    pthread_join(reader, NULL);
    close(s->terminal);
    check_screen(s->text);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
