/* /proc/PID/maps: lines as kernels write them, and what else may come along. */
#include "base/buf.h"
#include "base/io.h"
#include "remote/maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool parse(const char *text, struct maps_line *ret)
{
    const char *cursor = text;
    return maps_next(&cursor, text + strlen(text), ret);
}

static void test_lines(void **state ATTR_UNUSED)
{
    struct maps_line l;
    assert_true(parse(
        "55d0c0a00000-55d0c0a22000 r--p 00000000 fe:01 1234567    /usr/bin/python3.11\n", &l));
    assert_true(l.start == 0x55d0c0a00000 && l.end == 0x55d0c0a22000 && l.offset == 0);
    assert_true(l.readable && !l.executable);
    assert_string_equal(l.path, "/usr/bin/python3.11");

    assert_true(parse("7f0000001000-7f0000002000 r-xp 0001f000 00:2a 9   /a b/lib (deleted)", &l));
    assert_true(l.executable && l.offset == 0x1f000);
    assert_string_equal(l.path, "/a b/lib (deleted)");

    assert_true(parse("7ffc0000-7ffd0000 rw-p 00000000 00:00 0 \n", &l));
    assert_string_equal(l.path, "");
    assert_true(parse("7ffc0000-7ffd0000 ---p 00000000 00:00 0          [stack]\n", &l));
    assert_string_equal(l.path, "[stack]");
    assert_false(l.readable);
    assert_true(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", &l));
    assert_true(l.start == 0xffffffffff600000);
}

static void test_nonsense(void **state ATTR_UNUSED)
{
    static const char *const bad[] = {
        "",
        "\n",
        "\n\n\n",
        "x",
        "-",
        "1000",
        "1000-",
        "1000-2000",
        "1000-2000 ",
        "1000-2000 r",
        "1000-2000 r--p",
        "1000-2000 r--p ",
        "1000-2000r--p 0 0:0 0 /x",
        "2000-1000 r--p 00000000 00:00 0 /x", /* ends before it begins */
        "1000-1000 r--p 00000000 00:00 0 /x",
        "11111111111111111-2 r--p 00000000 00:00 0 /x", /* too many digits */
        "1000-2000 r--p zz 00:00 0 /x",
    };
    struct maps_line l;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (parse(bad[i], &l))
            fail_msg("taken: %s", bad[i]);

    /* a bad line costs itself only */
    const char *text = "garbage\n1000-2000 r--p 00000000 00:00 0 /x\n\nmore";
    const char *cursor = text, *end = text + strlen(text);
    assert_true(maps_next(&cursor, end, &l));
    assert_string_equal(l.path, "/x");
    assert_false(maps_next(&cursor, end, &l));
    assert_ptr_equal(cursor, end);
}

static void test_path_length(void **state ATTR_UNUSED)
{
    static char text[MAPS_MAX_PATH + 200];
    for (size_t extra = 0; extra < 2; extra++) {
        int head = snprintf(text, sizeof text, "1000-2000 r--p 00000000 00:00 0 ");
        size_t len = MAPS_MAX_PATH - 1 + extra;
        memset(text + head, '/', len);
        text[(size_t)head + len] = 0;
        struct maps_line l;
        assert_int_equal(parse(text, &l), extra == 0);
    }
}

/* The text need not end with a newline, nor with a NUL. */
static void test_every_prefix(void **state ATTR_UNUSED)
{
    static const char whole[] = "1000-2000 r-xp 00000010 00:00 0 /x/libpython3.11.so\n"
                                "3000-4000 rw-p 00000000 00:00 0 [heap]\n";
    for (size_t len = 0; len <= sizeof whole - 1; len++) {
        char *copy = malloc(len ? len : 1);
        memcpy(copy, whole, len);
        const char *cursor = copy;
        struct maps_line l;
        int lines = 0;
        while (maps_next(&cursor, copy + len, &l))
            lines++;
        assert_true(lines <= 2);
        free(copy);
    }
}

static void test_candidates(void **state ATTR_UNUSED)
{
    static const char text[] =
        "00400000-00401000 r--p 00000000 fe:01 1 /opt/app/embeds\n"
        "00500000-00501000 r-xp 00001000 fe:01 1 /opt/app/embeds\n"
        "10000000-10001000 r--p 00000000 fe:01 2 /usr/bin/python3.12\n"
        "10001000-10002000 r--p 00000000 fe:01 2 /usr/bin/python3.12\n"
        "20000000-20001000 r--p 00000000 fe:01 3 /usr/lib/python3/numpy.so\n"
        "30000000-30001000 r-xp 00001000 fe:01 4 /usr/lib/libpython3.12.so.1.0\n" /* not its start
                                                                                   */
        "40000000-40001000 r--p 00000000 fe:01 4 /usr/lib/libpython3.12.so.1.0\n"
        "50000000-50001000 r--p 00000000 fe:01 5 python-relative\n"
        "60000000-60001000 r--p 00000000 fe:01 6 /usr/lib/python-apt.cpython.so\n";
    struct maps_candidate *c = calloc(MAPS_MAX_CANDIDATES, sizeof *c);
    size_t n = maps_candidates(text, sizeof text - 1, "/opt/app/embeds", c);
    assert_int_equal(n, 3);
    assert_string_equal(c[0].path, "/usr/lib/libpython3.12.so.1.0");
    assert_true(c[0].base == 0x40000000);
    assert_string_equal(c[1].path, "/opt/app/embeds");
    assert_true(c[1].base == 0x400000);
    assert_string_equal(c[2].path, "/usr/bin/python3.12");
    assert_int_equal(maps_candidates("", 0, NULL, c), 0);

    struct buf many;
    buf_init(&many, 1 << 20);
    for (int i = 0; i < 100; i++)
        buf_printf(&many, "%x000-%x001 r--p 00000000 0:0 1 /lib/libpython%d.so\n", i + 1, i + 1, i);
    assert_int_equal(maps_candidates((char *)many.data, many.len, NULL, c), MAPS_MAX_CANDIDATES);
    buf_release(&many);
    free(c);
}

/* Our own maps: every line parses, and the program is in them. */
static void test_own_maps(void **state ATTR_UNUSED)
{
    struct buf maps;
    char exe[MAPS_MAX_PATH];
    buf_init(&maps, 16 << 20);
    assert_int_equal(io_read_file("/proc/self/maps", &maps), 0);
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    assert_true(n > 0);
    exe[n] = 0;
    size_t lines = 0, parsed = 0;
    for (size_t i = 0; i < maps.len; i++)
        lines += maps.data[i] == '\n';
    const char *cursor = (char *)maps.data;
    struct maps_line l;
    bool found = false;
    while (maps_next(&cursor, (char *)maps.data + maps.len, &l)) {
        parsed++;
        found |= l.start <= (uintptr_t)&test_own_maps && (uintptr_t)&test_own_maps < l.end &&
                 l.executable && !strcmp(l.path, exe);
    }
    assert_int_equal(parsed, lines);
    assert_true(found);
    buf_release(&maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),       cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_path_length), cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_candidates),  cmocka_unit_test(test_own_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
