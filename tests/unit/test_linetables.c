/* The three line-table decoders against tables of real interpreters: data/lines_3.*.txt, made by
 * data/gen_lines.py, tell for every instruction which line the interpreter itself gives it. */
#include "base/attr.h"
#include "remote/code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/unit/data"
#endif

enum { MAX_LINE = 1 << 17, MAX_TABLE = 1 << 16 };

static size_t parse_hex(const char *hex, uint8_t *ret)
{
    size_t n = 0;
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        ret[n++] = (uint8_t)byte;
    return n;
}

/* Compares each instruction of one code object; the number of them. */
static size_t check_lines(const struct remote_code *c, char *lines)
{
    size_t compared = 0;
    for (char *range = strtok(lines, " \n"); range; range = strtok(NULL, " \n")) {
        int start, end, line;
        assert_int_equal(sscanf(range, "%d:%d:%d", &start, &end, &line), 3);
        for (int offset = start; offset < end; offset += 2, compared++) {
            int got = remote_code_line(c, offset);
            if (got != line)
                fail_msg("%s at %d: line %d, not %d", c->name, offset, got, line);
        }
    }
    return compared;
}

static void check_version(const char *version, enum pyl_lines encoding)
{
    char path[256], name[128];
    snprintf(path, sizeof path, TEST_DATA_DIR "/lines_%s.txt", version);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *line = malloc(MAX_LINE), *hex = malloc(MAX_LINE);
    uint8_t *table = malloc(MAX_TABLE);
    struct remote_code c = {.name = name, .encoding = encoding};
    size_t codes = 0, compared = 0;
    while (fgets(line, MAX_LINE, f)) {
        assert_non_null(strchr(line, '\n'));
        if (sscanf(line, "code %127s %u %s", name, &c.first_line, hex) == 3) {
            c.lines_len = (uint32_t)parse_hex(hex, table);
            /* a copy of exactly that size, so that a sanitizer sees a byte too many */
            c.lines = malloc(c.lines_len ? c.lines_len : 1);
            memcpy(c.lines, table, c.lines_len);
            assert_int_equal(remote_code_line(&c, -1), c.first_line); /* not started yet */
            codes++;
        } else if (!strncmp(line, "lines", 5)) {
            compared += check_lines(&c, line + 5);
            /* past the end, and from tables cut short anywhere: any line, but no crash */
            remote_code_line(&c, INT64_MAX);
            for (uint32_t whole = c.lines_len; c.lines_len-- > 0;)
                remote_code_line(&c, whole);
            free(c.lines);
            c.lines = NULL;
        }
    }
    fclose(f);
    free(line);
    free(hex);
    free(table);
    assert_true(codes > 15);
    assert_true(compared > 1000);
}

static void test_3_8(void **state ATTR_UNUSED)
{
    check_version("3.8", PYL_LINES_LNOTAB);
}

static void test_3_9(void **state ATTR_UNUSED)
{
    check_version("3.9", PYL_LINES_LNOTAB);
}

static void test_3_10(void **state ATTR_UNUSED)
{
    check_version("3.10", PYL_LINES_PEP626);
}

static void test_3_11(void **state ATTR_UNUSED)
{
    check_version("3.11", PYL_LINES_LOCATION);
}

static void test_3_12(void **state ATTR_UNUSED)
{
    check_version("3.12", PYL_LINES_LOCATION);
}

static void test_3_13(void **state ATTR_UNUSED)
{
    check_version("3.13", PYL_LINES_LOCATION);
}

/* Tables nobody would write: lines that wrap, entries without an end. */
static void test_hostile(void **state ATTR_UNUSED)
{
    static const int32_t firsts[] = {0, 1, -1, INT32_MAX, INT32_MIN};
    uint8_t bytes[64];
    for (int fill = 0; fill < 256; fill++) {
        memset(bytes, fill, sizeof bytes);
        for (size_t len = 0; len <= sizeof bytes; len++) {
            for (size_t i = 0; i < ARRAY_LEN(firsts); i++) {
                line_from_lnotab(bytes, len, firsts[i], 1 << 20);
                line_from_pep626(bytes, len, firsts[i], 1 << 20);
                line_from_locations(bytes, len, firsts[i], 1 << 20);
            }
        }
    }
    struct remote_code c = {.first_line = 7, .encoding = PYL_LINES_LOCATION};
    assert_int_equal(remote_code_line(&c, 0), 0); /* a table that could not be read */
    assert_int_equal(remote_code_line(&c, -2), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_3_8),     cmocka_unit_test(test_3_9),  cmocka_unit_test(test_3_10),
        cmocka_unit_test(test_3_11),    cmocka_unit_test(test_3_12), cmocka_unit_test(test_3_13),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
