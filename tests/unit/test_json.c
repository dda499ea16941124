/* The JSON writer: commas and nesting, escapes, hostile bytes, numbers. */
#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct capture {
    FILE *file;
    char *text;
    size_t len;
    struct json json;
};

static void capture_begin(struct capture *c)
{
    *c = (struct capture){0};
    c->file = open_memstream(&c->text, &c->len);
    assert_non_null(c->file);
    json_init(&c->json, c->file);
}

static void capture_end(struct capture *c, const char *expected)
{
    fclose(c->file);
    assert_string_equal(c->text, expected);
    free(c->text);
}

static void test_nesting(void **state ATTR_UNUSED)
{
    struct capture c;
    capture_begin(&c);
    json_object_begin(&c.json);
    json_kv_text(&c.json, "a", "x");
    json_key(&c.json, "b");
    json_array_begin(&c.json);
    json_u64(&c.json, 1);
    json_i64(&c.json, -2);
    json_object_begin(&c.json);
    json_object_end(&c.json);
    json_array_begin(&c.json);
    json_array_end(&c.json);
    json_null(&c.json);
    json_array_end(&c.json);
    json_kv_bool(&c.json, "c", true);
    json_object_end(&c.json);
    capture_end(&c, "{\"a\":\"x\",\"b\":[1,-2,{},[],null],\"c\":true}");
}

static void test_escapes(void **state ATTR_UNUSED)
{
    static const char raw[] = "q\" b\\ n\n t\t e\x1b d\x7f z\0 \xc3\xa9";
    struct capture c;
    capture_begin(&c);
    json_text_n(&c.json, raw, sizeof raw - 1);
    capture_end(&c, "\"q\\\" b\\\\ n\\n t\\t e\\u001b d\\u007f z\\u0000 \xc3\xa9\"");
}

static void test_bytes_that_are_not_text(void **state ATTR_UNUSED)
{
#define BAD "\xef\xbf\xbd"
    static const struct {
        const char *raw, *expected;
    } cases[] = {
        {"\xff", "\"" BAD "\""},
        {"\xc3", "\"" BAD "\""},                         /* cut off */
        {"\xc0\xaf", "\"" BAD BAD "\""},                 /* overlong */
        {"\xe0\x80\xaf", "\"" BAD BAD BAD "\""},         /* overlong */
        {"\xed\xa0\x80", "\"" BAD BAD BAD "\""},         /* a surrogate */
        {"\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""}, /* past the last */
        {"a\xffz", "\"a" BAD "z\""},
        {"\xf0\x9f\x94\xa5", "\"\xf0\x9f\x94\xa5\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct capture c;
        capture_begin(&c);
        json_text(&c.json, cases[i].raw);
        capture_end(&c, cases[i].expected);
    }
}

static void test_numbers(void **state ATTR_UNUSED)
{
    struct capture c;
    capture_begin(&c);
    json_array_begin(&c.json);
    json_u64(&c.json, UINT64_MAX);
    json_i64(&c.json, INT64_MIN);
    json_real(&c.json, 0.1);
    json_real(&c.json, 1.0 / 3);
    json_real(&c.json, NAN);
    json_real(&c.json, -INFINITY);
    json_array_end(&c.json);
    capture_end(&c,
                "[18446744073709551615,-9223372036854775808,0.1,0.33333333333333331,null,null]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_bytes_that_are_not_text),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
