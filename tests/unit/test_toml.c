/* The TOML reader: what it gives, what it gets past, what it refuses. */
#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/toml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int write_item(void *ctx, const struct toml_item *item)
{
    struct buf *out = ctx;
    for (size_t i = 0; i < item->parts; i++)
        buf_printf(out, "%s%s", i ? "/" : "", item->part[i]);
    if (item->kind == TOML_TEXT)
        buf_printf(out, "=\"%s\"", item->text);
    else if (item->kind == TOML_OTHER)
        buf_puts(out, "=?");
    else
        buf_printf(out, "=%g", item->number);
    buf_puts(out, item->in_array ? "* " : " ");
    return 0;
}

static void expect(const char *toml, int code, const char *items)
{
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(toml_read(toml, strlen(toml), write_item, &out, NULL), code);
    if (items)
        assert_string_equal(buf_cstr(&out), items);
    buf_release(&out);
}

static void test_values(void **state ATTR_UNUSED)
{
    expect("a = 1\nb = 'x'\nc = true\nd = 1.5e3 # note\n", 0, "a=1 b=\"x\" c=1 d=1500 ");
    expect("a = 1_000\nb = 0xff\nc = 0o17\nd = 0b101\ne = -2\nf = +3\n", 0,
           "a=1000 b=255 c=15 d=5 e=-2 f=3 ");
    expect("[tool.pyrometer.check]\nmetrics.elapsed_time_sec = '5%'\n[other]\nx = 1", 0,
           "tool/pyrometer/check/metrics/elapsed_time_sec=\"5%\" other/x=1 ");
    expect("[a]\nb = { c = '10%', d = { e = 1 }, }\nf = [1, 'two', [3]]\n", 0,
           "a/b/c=\"10%\" a/b/d/e=1 a/f=1* a/f=\"two\"* a/f=3* ");
    expect("'a b'.\"c\\u00e9\" = 1\n", 0, "a b/c\xc3\xa9=1 ");
    expect("", 0, "");
    expect("\xef\xbb\xbf# only a note", 0, "");
    expect("a = 1\r\nb = 2\r\n", 0, "a=1 b=2 ");
}

static void test_what_others_write(void **state ATTR_UNUSED)
{
    expect("[[tool.x]]\nwhen = 1979-05-27T07:32:00Z\nt = 07:32:00\nd = 1979-05-27 07:32:00.5\n", 0,
           "tool/x/when=?* tool/x/t=?* tool/x/d=?* ");
    expect("s = \"\"\"\none \\\n   two\n\"three\"\"\"\"\nn = 1\n", 0,
           "s=\"one two\n\"three\"\" n=1 ");
    expect("s = '''\n[not a table]\nx = 1\n'''\n[t]\ny = 2\n", 0,
           "s=\"[not a table]\nx = 1\n\" t/y=2 ");
    expect("deps = [\n  'a>=1', # first\n\n  \"b\",\n]\n", 0, "deps=\"a>=1\"* deps=\"b\"* ");
    expect("a = inf\nb = -nan\nempty = []\ntable = {}\n", 0, NULL);
    expect("q = 'it''", E_BADTOML, NULL);
}

static void test_refused(void **state ATTR_UNUSED)
{
    static const char *const bad[] = {
        "a",         "a =",      "a = 1 b = 2", "[a",          "[a]]x = 1",   "a = \"x",
        "a = 'x\n'", "a = [1",   "a = {b",      "= 1",         "a = \"\\q\"", "a = \"\\ud800\"",
        "a = 1x",    "a..b = 1", "a = \"\"\"x", "[[a]\nb = 1", "a = .",       "a = _"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        expect(bad[i], E_BADTOML, NULL);
    char deep[2000] = "a = ";
    memset(deep + 4, '[', 1000);
    expect(deep, E_LIMIT, NULL);
    for (size_t i = 0; i < 1200; i++)
        deep[i] = i % 2 ? '.' : 'a';
    snprintf(deep + 1200, sizeof deep - 1200, "b = 1");
    expect(deep, E_LIMIT, NULL);
    unsigned line;
    struct buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(toml_read("a = 1\n\nb = \n", 12, write_item, &out, &line), E_BADTOML);
    assert_int_equal(line, 3);
    char *long_text = malloc(TOML_MAX_TEXT + 100);
    memset(long_text, 'x', TOML_MAX_TEXT + 100);
    int begin = snprintf(long_text, TOML_MAX_TEXT, "a = '");
    long_text[begin] = 'x';
    assert_int_equal(toml_read(long_text, TOML_MAX_TEXT + 100, write_item, &out, NULL), E_LIMIT);
    free(long_text);
    buf_release(&out);
}

static int stop(void *ctx ATTR_UNUSED, const struct toml_item *item)
{
    return (int)item->number;
}

static void test_stops(void **state ATTR_UNUSED)
{
    assert_int_equal(toml_read("a = 0\nb = 7\nc = 9", 17, stop, NULL, NULL), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_what_others_write),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
