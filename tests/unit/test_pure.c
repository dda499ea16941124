/* The small pure functions of analysis: module names out of paths, error bars out of counts. */
#include "analysis/rows.h"
#include "base/attr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_modules(void **state ATTR_UNUSED)
{
    static const char *const cases[][2] = {
        {"/usr/lib/python3.11/json/decoder.py", "json.decoder"},
        {"/usr/lib/python3.11/json/__init__.py", "json"},
        {"/v/lib/python3.11/site-packages/numpy/core/_methods.py", "numpy.core._methods"},
        {"/usr/lib/python3/dist-packages/apt/__init__.py", "apt"},
        {"/x/lib/python3.13t/os.py", "os"},
        {"/home/me/app.py", "app"},
        {"/home/me/pkg/__init__.py", "pkg"},
        {"app.py", "app"},
        {"<frozen importlib._bootstrap>", "importlib._bootstrap"},
        {"<string>", "<string>"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *got = analysis_module_name(cases[i][0], strlen(cases[i][0]));
        assert_string_equal(got, cases[i][1]);
        free(got);
    }
}

static void test_share_error(void **state ATTR_UNUSED)
{
    assert_true(analysis_share_error(0.5, 0) == 100);
    assert_true(fabs(analysis_share_error(0.5, 10000) - 0.98) < 0.01);
    assert_true(fabs(analysis_share_error(0.5, 100) - 9.62) < 0.05);
    assert_true(analysis_share_error(0, 10) > 10); /* none of ten seen is not "never" */
    assert_true(analysis_share_error(2, 100) < 5);
}

static void test_worth(void **state ATTR_UNUSED)
{
    struct analysis_weights w = {.total = {1000, 100}, .squares = 100 * 10 * 10};
    assert_int_equal(analysis_weights_worth(&w), 100); /* all are equal */
    w = (struct analysis_weights){.total = {199, 100}, .squares = 99 + 100 * 100};
    assert_int_equal(analysis_weights_worth(&w), 4); /* one of them is half of it */
    w = (struct analysis_weights){.total = {500, 1}, .squares = 500. * 500};
    assert_int_equal(analysis_weights_worth(&w), 1);
    w = (struct analysis_weights){.total = {0, 0}};
    assert_int_equal(analysis_weights_worth(&w), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_share_error),
        cmocka_unit_test(test_worth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
