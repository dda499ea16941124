/* Which recording a name means, and where a new one goes. Each test has a folder of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h> /* wants the headers above */

#include "cmd/cmd.h"
#include "format/format.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_OUTPUT = 4096 };

/* The folder of the test, and what the last call gave. */
static struct {
    char *folder; /* owned */
    int status;
    char *path; /* owned; NULL after a failure */
    char err[MAX_OUTPUT];
} t;

static int set_up(void **state)
{
    (void)state;
    char name[] = "/tmp/test_runs.XXXXXX";
    if (!mkdtemp(name) || chdir(name) < 0)
        return -1;
    t.folder = getcwd(NULL, 0);
    t.path = NULL;
    return t.folder ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    free(t.path);
    int rc = chdir("/") < 0 ? -1 : nftw(t.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(t.folder);
    return rc;
}

static void make_dirs(void)
{
    assert_true(mkdir(".pyrometer", 0777) == 0 && mkdir(".pyrometer/runs", 0777) == 0);
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    close(fd);
}

static void make_run(const char *id)
{
    char path[256];
    snprintf(path, sizeof path, ".pyrometer/runs/%s.pyro", id);
    touch(path);
}

/* Calls with stderr diverted. */
static void call(int (*function)(const void *arg, char **ret), const void *arg)
{
    free(t.path);
    t.path = NULL;
    FILE *file = tmpfile();
    assert_non_null(file);
    int kept = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    t.status = function(arg, &t.path);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    t.err[fread(t.err, 1, sizeof t.err - 1, file)] = '\0';
    fclose(file);
    assert_true((t.status == 0) == (t.path != NULL));
    assert_true((t.status == 0) == !t.err[0]);
}

static int call_resolve(const void *arg, char **ret)
{
    return cmd_resolve_run(arg, ret);
}

static int call_new(const void *arg, char **ret)
{
    return cmd_new_run_path(arg, ret);
}

/* `run` means the file of `id` in the folder of the test. */
static void assert_means(const char *run, const char *id)
{
    char expected[512];
    snprintf(expected, sizeof expected, "%s/.pyrometer/runs/%s.pyro", t.folder, id);
    call(call_resolve, run);
    assert_string_equal(t.err, "");
    assert_string_equal(t.path, expected);
}

static void assert_refused(const char *run, int status, const char *line)
{
    call(call_resolve, run);
    assert_string_equal(t.err, line);
    assert_int_equal(t.status, status);
}

static void test_at(void **state)
{
    (void)state;
    make_dirs();
    make_run("20250102-000000-000000");
    make_run("20250101-235959-ffffff");
    make_run("20241231-120000-abcdef");
    assert_means("@", "20250102-000000-000000");
    assert_means(NULL, "20250102-000000-000000");
    assert_means("@~0", "20250102-000000-000000");
    assert_means("@~1", "20250101-235959-ffffff");
    assert_means("@~2", "20241231-120000-abcdef");
    assert_refused("@~3", CMD_FAILED,
                   "pyrometer: '@~3' reaches too far back: there are 3 recordings\n");
    assert_refused("@~99999999999999999999", CMD_FAILED,
                   "pyrometer: '@~99999999999999999999' reaches too far back: there are 3 "
                   "recordings\n");
    const char *const wrong[] = {"@~", "@1", "@~x", "@~-1", "@@", "@ "};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        call(call_resolve, wrong[i]);
        assert_int_equal(t.status, CMD_USAGE);
    }
}

static void make_run_created(const char *id, uint64_t created_ns)
{
    struct format_file_header header = {.created_ns = created_ns};
    memcpy(header.magic, FORMAT_MAGIC, sizeof header.magic);
    char path[256];
    snprintf(path, sizeof path, ".pyrometer/runs/%s.pyro", id);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(&header, sizeof header, 1, file), 1);
    fclose(file);
}

/* In one second the names do not tell; the files do. */
static void test_at_within_a_second(void **state)
{
    (void)state;
    make_dirs();
    make_run_created("20250101-000000-ffffff", 1);
    make_run_created("20250101-000000-000000", 3);
    make_run_created("20250101-000000-777777", 2);
    make_run_created("20241231-000000-aaaaaa", 9);
    assert_means("@", "20250101-000000-000000");
    assert_means("@~1", "20250101-000000-777777");
    assert_means("@~2", "20250101-000000-ffffff");
    assert_means("@~3", "20241231-000000-aaaaaa");
}

/* Only files with a run's name are counted; the others are there by their own names. */
static void test_at_ignores_strangers(void **state)
{
    (void)state;
    make_dirs();
    make_run("20250101-000000-aaaaaa");
    make_run("20250101-000000-aaaaaa-repaired");
    make_run("zzz");
    make_run("20250101-000000-AAAAAA");
    touch(".pyrometer/runs/20260101-000000-aaaaaa.txt");
    touch(".pyrometer/runs/.pyro");
    assert_means("@", "20250101-000000-aaaaaa");
    assert_means("zzz", "zzz");
    assert_means("20250101-000000-aaaaaa-r", "20250101-000000-aaaaaa-repaired");
    /* an id that is written out is never ambiguous */
    assert_means("20250101-000000-aaaaaa", "20250101-000000-aaaaaa");
    assert_means("aaaaaa", "20250101-000000-aaaaaa");
}

static void test_id(void **state)
{
    (void)state;
    make_dirs();
    make_run("20250101-000000-abc111");
    make_run("20250101-000001-abc222");
    make_run("20250202-000000-def333");
    assert_means("20250202", "20250202-000000-def333");
    assert_means("20250101-000001-abc222", "20250101-000001-abc222");
    assert_means("20250101-000001-abc222.pyro", "20250101-000001-abc222");
    assert_means("abc2", "20250101-000001-abc222");
    assert_means("d", "20250202-000000-def333");
    assert_refused("abc", CMD_FAILED,
                   "pyrometer: 'abc' fits 2 recordings: 20250101-000001-abc222, "
                   "20250101-000000-abc111\n");
    assert_refused("xyz", CMD_FAILED,
                   "pyrometer: 'xyz' is neither a file nor the id of a recording\n");
    assert_refused("", CMD_USAGE, "pyrometer: the name of the recording is empty\n");
}

static void test_many_candidates(void **state)
{
    (void)state;
    make_dirs();
    for (int i = 0; i < 8; i++) {
        char id[64];
        snprintf(id, sizeof id, "20250101-00000%d-aaaaaa", i);
        make_run(id);
    }
    call(call_resolve, "2025");
    assert_int_equal(t.status, CMD_FAILED);
    assert_non_null(strstr(t.err, "fits 8 recordings: 20250101-000007-aaaaaa, "));
    assert_non_null(strstr(t.err, "20250101-000003-aaaaaa and 3 more\n"));
}

static void test_paths(void **state)
{
    (void)state;
    make_dirs();
    make_run("20250101-000000-abc111");
    touch("abc");
    call(call_resolve, "abc");
    assert_string_equal(t.path, "abc");
    call(call_resolve, "./abc");
    assert_string_equal(t.path, "./abc");
    /* a folder cannot be a recording, so it does not hide an id */
    assert_true(mkdir("abc1", 0777) == 0);
    assert_means("abc1", "20250101-000000-abc111");
    assert_true(mkdir("other", 0777) == 0);
    call(call_resolve, "other"); /* whoever loads it lists it */
    assert_string_equal(t.path, "other");
    assert_refused("./none.pyro", CMD_FAILED,
                   "pyrometer: cannot read './none.pyro': no such file or directory\n");
}

static void test_upward(void **state)
{
    (void)state;
    make_dirs();
    make_run("20250101-000000-abc111");
    assert_true(mkdir("a", 0777) == 0 && mkdir("a/b", 0777) == 0 && chdir("a/b") == 0);
    assert_means("@", "20250101-000000-abc111");
    /* a plain file of that name is not the folder */
    touch(".pyrometer");
    assert_means("@", "20250101-000000-abc111");
}

static void test_none_yet(void **state)
{
    (void)state;
    assert_true(mkdir(".pyrometer", 0777) == 0);
    const char *line =
        "pyrometer: there are no recordings yet; make one first: pyrometer run python app.py\n";
    assert_refused("@", CMD_FAILED, line);
    assert_refused("@~1", CMD_FAILED, line);
    assert_true(mkdir(".pyrometer/runs", 0777) == 0);
    assert_refused(NULL, CMD_FAILED, line);
}

static const uint8_t some_id[16] = {0x3f, 0xa9, 0x0c, 0xff};

static void test_new(void **state)
{
    (void)state;
    time_t before = time(NULL);
    call(call_new, some_id);
    time_t after = time(NULL);
    assert_int_equal(t.status, 0);

    bool found = false;
    for (time_t at = before; at <= after; at++) {
        struct tm local;
        char stamp[32], expected[512];
        assert_non_null(localtime_r(&at, &local));
        strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
        snprintf(expected, sizeof expected, "%s/.pyrometer/runs/%s-3fa90c.pyro", t.folder, stamp);
        found = found || !strcmp(t.path, expected);
    }
    assert_true(found);
    assert_int_equal(access(t.path, F_OK), -1); /* a name, not a file */

    char text[16] = "";
    FILE *ignore = fopen(".pyrometer/.gitignore", "r");
    assert_non_null(ignore);
    assert_int_equal(fread(text, 1, sizeof text, ignore), 2);
    assert_string_equal(text, "*\n");
    fclose(ignore);

    touch(t.path);
    char *made = t.path;
    t.path = NULL;
    call(call_resolve, "@");
    assert_string_equal(t.path, made);
    free(made);
}

static void test_new_upward(void **state)
{
    (void)state;
    assert_true(mkdir(".pyrometer", 0777) == 0);
    assert_true(mkdir("a", 0777) == 0 && chdir("a") == 0);
    call(call_new, some_id);
    char expected[512];
    snprintf(expected, sizeof expected, "%s/.pyrometer/runs/", t.folder);
    assert_int_equal(strncmp(t.path, expected, strlen(expected)), 0);
    assert_int_equal(access(".pyrometer", F_OK), -1);
}

static void test_new_refused(void **state)
{
    (void)state;
    assert_true(mkdir(".pyrometer", 0777) == 0);
    touch(".pyrometer/runs");
    call(call_new, some_id);
    assert_int_equal(t.status, CMD_FAILED);
    assert_non_null(
        strstr(t.err, "something that is no folder has that name; name a file with -o\n"));
}

static void test_new_read_only(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip(); /* root may write everywhere */
    assert_true(mkdir(".pyrometer", 0777) == 0 && mkdir(".pyrometer/runs", 0555) == 0);
    call(call_new, some_id);
    assert_int_equal(t.status, CMD_FAILED);
    assert_non_null(strstr(t.err, "permission denied; name a file with -o\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_at),         TEST(test_at_within_a_second), TEST(test_at_ignores_strangers),
        TEST(test_id),         TEST(test_many_candidates),    TEST(test_paths),
        TEST(test_upward),     TEST(test_none_yet),           TEST(test_new),
        TEST(test_new_upward), TEST(test_new_refused),        TEST(test_new_read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
