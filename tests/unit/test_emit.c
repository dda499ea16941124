/* The emitter's three outputs, text made harmless and cut, numbers for people. */
#include "view/emit.h"

#include "view/text.h"
#include "view/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const struct view_column COLUMNS[] = {
    {"name", NULL, VIEW_NAME, VIEW_ONLY_DATA},   {"self", "self", VIEW_SECONDS, VIEW_BOTH},
    {"share", "share", VIEW_PERCENT, VIEW_BOTH}, {"count", "count", VIEW_COUNT, VIEW_BOTH},
    {NULL, "name", VIEW_NAME, VIEW_ONLY_TEXT},   {"file", "file", VIEW_PATH, VIEW_BOTH},
};

static void push_row(struct view_emit *e, const char *name, double self, double share,
                     uint64_t count, const char *file, bool sub)
{
    struct view_cell cells[] = {
        {.text = name, .len = strlen(name)},
        {.real = self},
        {.real = share},
        {.count = count},
        {.text = name, .len = strlen(name)},
        {.text = file, .len = file ? strlen(file) : 0},
    };
    cells[5].absent = file == NULL;
    if (sub) {
        view_emit_sub_row(e, cells);
        return;
    }
    view_emit_row_begin(e, cells);
}

static void expect(enum view_format format, struct view_style style, bool relations,
                   const char *expected)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct view_emit e;
    view_emit_init(&e, out, format, style);
    view_emit_line(&e, "for %s", "people");
    if (view_emit_json(&e))
        json_kv_u64(view_emit_json(&e), "fact", 1);
    view_emit_table_begin(&e, "rows", COLUMNS, ARRAY_LEN(COLUMNS), relations);
    push_row(&e, "f\x1b[31m", 1.5, 75, 1500, "/a/very/long/path/to/a/file.py", false);
    if (relations) {
        view_emit_sub_begin(&e, "callers", "<- ", "caller");
        push_row(&e, "g", 0.001, 1, 1, NULL, true);
        view_emit_sub_end(&e);
    }
    view_emit_row_end(&e);
    push_row(&e, "=x,\"y\"\n", 0, 0, 0, NULL, false);
    view_emit_row_end(&e);
    view_emit_table_end(&e);
    assert_int_equal(view_emit_finish(&e), 0);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void test_text(void **state ATTR_UNUSED)
{
    expect(VIEW_TEXT, (struct view_style){0}, true,
           "for people\n"
           "   self   share  count  name        file\n"
           " 1.50 s  75.0 %  1,500  f\\x1b[31m   /a/very/long/path/to/a/file.py\n"
           "1.00 ms   1.0 %      1  <- g\n"
           "    0 s   0.0 %      0  =x,\"y\"\\x0a\n");
}

static void test_narrow_terminal(void **state ATTR_UNUSED)
{
    expect(VIEW_TEXT, (struct view_style){.width = 46, .colour = true}, false,
           "for people\n"
           "\x1b[1m  self   share  count  name        file\x1b[0m\n"
           "1.50 s  75.0 %  1,500  f\\x1b[31m   …o/a/file.py\n"
           "   0 s   0.0 %      0  =x,\"y\"\\x0a\n");
}

static void test_json(void **state ATTR_UNUSED)
{
    expect(VIEW_JSON, (struct view_style){0}, true,
           "{\"fact\":1,\"rows\":["
           "{\"name\":\"f\\u001b[31m\",\"self\":1.5,\"share\":75,\"count\":1500,"
           "\"file\":\"/a/very/long/path/to/a/file.py\",\"callers\":["
           "{\"name\":\"g\",\"self\":0.001,\"share\":1,\"count\":1,\"file\":null}]},"
           "{\"name\":\"=x,\\\"y\\\"\\n\",\"self\":0,\"share\":0,\"count\":0,\"file\":null}]}\n");
}

static void test_csv(void **state ATTR_UNUSED)
{
    expect(VIEW_CSV, (struct view_style){0}, true,
           "relation,name,self,share,count,file\r\n"
           "row,f\x1b[31m,1.5,75,1500,/a/very/long/path/to/a/file.py\r\n"
           "caller,g,0.001,1,1,\r\n"
           "row,\"=x,\"\"y\"\"\n\",0,0,0,\r\n");
    expect(VIEW_CSV, (struct view_style){0}, false,
           "name,self,share,count,file\r\n"
           "f\x1b[31m,1.5,75,1500,/a/very/long/path/to/a/file.py\r\n"
           "\"=x,\"\"y\"\"\n\",0,0,0,\r\n");
}

static void test_escape(void **state ATTR_UNUSED)
{
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): the escape is what is tested */
    static const char raw[] = "a\nb\x1b\x7f\xc2\x9b\xff\0é\xe2\x80\xae|";
    struct buf b;
    buf_init(&b, 1024);
    view_text_escape(&b, raw, sizeof raw - 1);
    assert_string_equal(buf_cstr(&b), "a\\x0ab\\x1b\\x7f\\x9b\\xff\\x00é\\u202e|");
    buf_release(&b);
}

static void test_shell(void **state ATTR_UNUSED)
{
    static const char *const cases[][2] = {
        {"runs/a-1.pyro", "runs/a-1.pyro"},
        {"a b", "'a b'"},
        {"it's", "'it'\\''s'"},
        {"$HOME", "'$HOME'"},
        {"~/x", "'~/x'"},
        {"é", "'é'"},
        {"", "''"},
        {"-x", "./-x"},
        {"@", "./@"},
        {"-x y", "./'-x y'"},
        {"a\nb'\\", "$'a\\x0ab\\x27\\x5c'"},
        {"\xff", "$'\\xff'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b;
        buf_init(&b, 1024);
        view_text_shell(&b, cases[i][0]);
        assert_string_equal(buf_cstr(&b), cases[i][1]);
        buf_release(&b);
    }
}

static void test_width_and_cut(void **state ATTR_UNUSED)
{
    assert_int_equal(view_text_width("abc", 3), 3);
    assert_int_equal(view_text_width("é", 2), 1);
    assert_int_equal(view_text_width("日本", 6), 4);
    assert_int_equal(view_text_width("e\xcc\x81", 3), 1);
    static const struct {
        const char *text;
        size_t width;
        enum view_text_cut cut;
        const char *expected;
    } cases[] = {
        {"/a/b/c.py", 9, VIEW_CUT_LEFT, "/a/b/c.py"},
        {"/a/b/c.py", 6, VIEW_CUT_LEFT, "…/c.py"},
        {"abcdefghi", 5, VIEW_CUT_MIDDLE, "ab…hi"},
        {"日本語文", 5, VIEW_CUT_LEFT, "…語文"},
        {"日本語文", 4, VIEW_CUT_LEFT, "…文"},
        {"abc", 1, VIEW_CUT_MIDDLE, "…"},
        {"abc", 0, VIEW_CUT_MIDDLE, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b;
        buf_init(&b, 1024);
        view_text_fit(&b, cases[i].text, strlen(cases[i].text), cases[i].width, cases[i].cut);
        assert_string_equal(buf_cstr(&b), cases[i].expected);
        buf_release(&b);
    }
}

static void test_units(void **state ATTR_UNUSED)
{
    assert_string_equal(view_units_seconds(0).text, "0 s");
    assert_string_equal(view_units_seconds(1.234).text, "1.23 s");
    assert_string_equal(view_units_seconds(0.0456).text, "45.6 ms");
    assert_string_equal(view_units_seconds(0.99996).text, "1.00 s");
    assert_string_equal(view_units_seconds(123.4).text, "123 s");
    assert_string_equal(view_units_seconds(7380).text, "2 h 03 min");
    assert_string_equal(view_units_percent(45.67).text, "45.7 %");
    assert_string_equal(view_units_bytes(12).text, "12 B");
    assert_string_equal(view_units_bytes(1536).text, "1.50 KiB");
    assert_string_equal(view_units_bytes(1.5 * 1048576).text, "1.50 MiB");
    assert_string_equal(view_units_count(0).text, "0");
    assert_string_equal(view_units_count(1234567).text, "1,234,567");
    assert_string_equal(view_units_count(123456).text, "123,456");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),          cmocka_unit_test(test_narrow_terminal),
        cmocka_unit_test(test_json),          cmocka_unit_test(test_csv),
        cmocka_unit_test(test_escape),        cmocka_unit_test(test_shell),
        cmocka_unit_test(test_width_and_cut), cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
