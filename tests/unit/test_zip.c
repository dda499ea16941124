/* Members of zip archives, and source files by their paths. The archives are made by Python's own
 * zipfile, or by hand where they are wrong. */
#include "base/err.h"
#include "base/srcfile.h"
#include "base/zip.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* One stored member "a/b.py" with "x = 1\n", CRC right, in 30 + 6 + 6 + 46 + 6 + 22 bytes. */
static const uint8_t STORED[] = {
    'P',  'K',  3,    4,    10,   0,    0,   0,   0,   0,    0,   0,   0x21, 0, /* local header */
    0x5f, 0x96, 0x6a, 0x2b, 6,    0,    0,   0,   6,   0,    0,   0,   6,    0, 0,   0,   'a', '/',
    'b',  '.',  'p',  'y',  'x',  ' ',  '=', ' ', '1', '\n', 'P', 'K', 1,    2, 20,  3,   10,  0,
    0,    0,    0,    0,    0,    0, /* directory */
    0x21, 0,    0x5f, 0x96, 0x6a, 0x2b, 6,   0,   0,   0,    6,   0,   0,    0, 6,   0,   0,   0,
    0,    0,    0,    0,    0,    0,    0,   0,   0,   0,    0,   0,   0,    0, 'a', '/', 'b', '.',
    'p',  'y',  'P',  'K',  5,    6, /* end */
    0,    0,    0,    0,    1,    0,    1,   0,   52,  0,    0,   0,   42,   0, 0,   0,   0,   0,
};

static int memory_file(const void *prefix, size_t prefix_len, const void *data, size_t len)
{
    int fd = memfd_create("zip", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, prefix, prefix_len), prefix_len);
    assert_int_equal(write(fd, data, len), len);
    return fd;
}

static uint32_t crc_of(const char *text)
{
    uint32_t crc = ~0u;
    for (; *text; text++) {
        crc ^= (uint8_t)*text;
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* The archive with its checksums filled in. */
static void good_archive(uint8_t out[sizeof STORED])
{
    uint32_t crc = crc_of("x = 1\n");
    memcpy(out, STORED, sizeof STORED);
    memcpy(out + 14, &crc, 4);
    memcpy(out + 42 + 16, &crc, 4);
}

static int read_bytes(const uint8_t *data, size_t len, const char *name, size_t max,
                      struct buf *out)
{
    int fd = memory_file("", 0, data, len);
    buf_init(out, max);
    int r = zip_read_member(fd, name, strlen(name), out);
    close(fd);
    return r;
}

static void test_stored(void **state ATTR_UNUSED)
{
    uint8_t zip[sizeof STORED];
    struct buf out;
    good_archive(zip);
    assert_int_equal(read_bytes(zip, sizeof zip, "a/b.py", 100, &out), 0);
    assert_int_equal(out.len, 6);
    assert_memory_equal(out.data, "x = 1\n", 6);
    buf_release(&out);
    assert_int_equal(read_bytes(zip, sizeof zip, "a/c.py", 100, &out), E_NOENT);
    assert_int_equal(read_bytes(zip, sizeof zip, "a/b.py", 5, &out), E_LIMIT);
    buf_release(&out);
    /* behind a #! line, as in a zipapp: offsets count from the archive's begin */
    int fd = memory_file("#!/usr/bin/python3\n", 19, zip, sizeof zip);
    buf_init(&out, 100);
    assert_int_equal(zip_read_member(fd, "a/b.py", 6, &out), 0);
    assert_int_equal(out.len, 6);
    buf_release(&out);
    close(fd);
}

/* Every byte changed in every way that matters, every length cut: an answer, never a crash. */
static void test_damaged(void **state ATTR_UNUSED)
{
    uint8_t zip[sizeof STORED];
    struct buf out;
    for (size_t at = 0; at < sizeof zip; at++) {
        static const uint8_t masks[] = {0x01, 0x80, 0xff};
        for (size_t k = 0; k < sizeof masks; k++) {
            good_archive(zip);
            zip[at] ^= masks[k];
            int r = read_bytes(zip, sizeof zip, "a/b.py", 100, &out);
            assert_true(r <= 0);
            assert_true(r < 0 || (out.len == 6 && memcmp(out.data, "x = 1\n", 6) == 0));
            buf_release(&out);
        }
        good_archive(zip);
        assert_true(read_bytes(zip, at, "a/b.py", 100, &out) < 0);
        buf_release(&out);
    }
}

static void test_srcfile(void **state ATTR_UNUSED)
{
    char folder[] = "/tmp/pyrometer-src-XXXXXX";
    assert_non_null(mkdtemp(folder));
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(dir, "lib.zip", O_WRONLY | O_CREAT, 0600);
    uint8_t zip[sizeof STORED];
    good_archive(zip);
    assert_int_equal(write(fd, zip, sizeof zip), sizeof zip);
    close(fd);
    fd = openat(dir, "plain.py", O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "y = 2\n", 6), 6);
    close(fd);
    struct srcfile_place place = {.root = -1, .cwd = dir};
    struct srcfile f;
    assert_int_equal(srcfile_read(&place, "plain.py", 6, &f), 0);
    assert_true(f.has_text && !f.in_zip && f.text.len == 6 && f.size == 6 && f.mtime_ns);
    srcfile_release(&f);
    assert_int_equal(srcfile_read(&place, "plain.py", 5, &f), 0);
    assert_true(!f.has_text && f.size == 6);
    srcfile_release(&f);
    assert_int_equal(srcfile_read(&place, "lib.zip/a/b.py", 100, &f), 0);
    assert_true(f.has_text && f.in_zip && f.text.len == 6);
    srcfile_release(&f);
    place.root = dir; /* absolute paths in another root */
    assert_int_equal(srcfile_read(&place, "/lib.zip/a/b.py", 100, &f), 0);
    srcfile_release(&f);
    static const char *const wrong[] = {"",           "nothing.py",       "lib.zip/a/c.py",
                                        "plain.py/x", "nothing.zip/a.py", "lib.zip/"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_true(srcfile_read(&place, wrong[i], 100, &f) < 0);
    assert_true(srcfile_exists(&place, "plain.py") && !srcfile_exists(&place, "nothing.py"));
    assert_true(srcfile_exists(&place, "lib.zip/a/b.py")); /* perhaps */
    unlinkat(dir, "lib.zip", 0);
    unlinkat(dir, "plain.py", 0);
    close(dir);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_srcfile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
