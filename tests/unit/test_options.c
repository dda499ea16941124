/* The option parser: every form it takes, every form it refuses, and the words of the refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h> /* wants the headers above */

#include "cmd/cmd.h"
#include "cmd/speak.h"

enum { MAX_ARGS = 16, MAX_OUTPUT = 8192 };

/* What the table of the test writes to, and what a parse gave. */
static struct {
    bool quiet, json;
    const char *match, *sample;
    uint64_t limit;
    double seconds;
    bool limit_given, sample_given;

    char *argv[MAX_ARGS];
    int argc, first, result;
    char out[MAX_OUTPUT], err[MAX_OUTPUT];
} t;

static const struct cmd_option table[] = {
    {"quiet", 'q', CMD_FLAG, &t.quiet, NULL},
    {"json", 'j', CMD_FLAG, &t.json, NULL},
    {"match", 'm', CMD_TEXT, &t.match, NULL},
    {"sample", 's', CMD_OPT_TEXT, &t.sample, &t.sample_given},
    {"limit", 'n', CMD_COUNT, &t.limit, &t.limit_given},
    {"for", 0, CMD_REAL, &t.seconds, NULL},
    {NULL, 0, CMD_FLAG, NULL, NULL},
};

/* Puts a temporary file in the place of a stream; returns what was there. */
static int divert(FILE *stream, FILE *file)
{
    fflush(stream);
    int kept = dup(fileno(stream));
    assert_true(kept >= 0 && dup2(fileno(file), fileno(stream)) >= 0);
    return kept;
}

static void restore(FILE *stream, FILE *file, int kept, char text[MAX_OUTPUT])
{
    fflush(stream);
    dup2(kept, fileno(stream));
    close(kept);
    rewind(file);
    text[fread(text, 1, MAX_OUTPUT - 1, file)] = '\0';
    fclose(file);
}

static void parse_args(bool stop_at_operand, const char *first, va_list args)
{
    memset(&t, 0, sizeof t);
    t.argv[t.argc++] = (char *)"report";
    for (const char *arg = first; arg; arg = va_arg(args, const char *)) {
        assert_true(t.argc < MAX_ARGS - 1);
        t.argv[t.argc++] = (char *)arg;
    }
    FILE *out = tmpfile(), *err = tmpfile();
    assert_true(out && err);
    int kept_out = divert(stdout, out), kept_err = divert(stderr, err);
    t.result = cmd_options_parse(t.argc, t.argv, table, stop_at_operand, &t.first);
    restore(stdout, out, kept_out, t.out);
    restore(stderr, err, kept_err, t.err);
}

/* The arguments after the command's name, ended by NULL. */
static void parse(const char *first, ...)
{
    va_list args;
    va_start(args, first);
    parse_args(false, first, args);
    va_end(args);
}

static void parse_stopping(const char *first, ...)
{
    va_list args;
    va_start(args, first);
    parse_args(true, first, args);
    va_end(args);
}

#define REFUSED(line, ...)                                                                         \
    do {                                                                                           \
        parse(__VA_ARGS__, NULL);                                                                  \
        assert_int_equal(t.result, CMD_PARSED_ERROR);                                              \
        assert_string_equal(t.err, "pyrometer report: " line "\n");                                \
    } while (0)

static void test_nothing(void **state)
{
    (void)state;
    parse(NULL);
    assert_int_equal(t.result, 0);
    assert_false(t.limit_given || t.sample_given);
    assert_string_equal(t.err, "");
}

static void test_long_forms(void **state)
{
    (void)state;
    parse("--quiet", "--match", "a b", "--limit=20", "--for", "0.5", NULL);
    assert_int_equal(t.result, 0);
    assert_true(t.quiet && t.limit_given);
    assert_false(t.json);
    assert_string_equal(t.match, "a b");
    assert_int_equal(t.limit, 20);
    assert_true(t.seconds == 0.5);

    parse("--match=a=b", "--for=1e3", NULL);
    assert_string_equal(t.match, "a=b");
    assert_true(t.seconds == 1000);

    parse("--match=", NULL);
    assert_int_equal(t.result, 0);
    assert_string_equal(t.match, "");
}

static void test_short_forms(void **state)
{
    (void)state;
    parse("-qjn5", "-m", "-x", NULL);
    assert_int_equal(t.result, 0);
    assert_true(t.quiet && t.json);
    assert_int_equal(t.limit, 5);
    assert_string_equal(t.match, "-x");

    REFUSED("unknown option -z in -qz; see 'pyrometer report --help'", "-qz");
    REFUSED("unknown option -z; see 'pyrometer report --help'", "-z");
    REFUSED("-n needs a whole number, not 'j'", "-nj");
    REFUSED("-m needs a value", "-qm");
}

static void test_optional_value(void **state)
{
    (void)state;
    parse("--sample", NULL);
    assert_true(t.sample_given);
    assert_string_equal(t.sample, "");

    parse("--sample=250", NULL);
    assert_string_equal(t.sample, "250");

    /* an operand is never its value */
    parse("--sample", "250", NULL);
    assert_int_equal(t.result, 1);
    assert_string_equal(t.sample, "");
    assert_string_equal(t.argv[t.first], "250");

    /* but where a program is to be started, a number is surely a mistake */
    parse_stopping("--sample", "250", "python", NULL);
    assert_int_equal(t.result, CMD_PARSED_ERROR);
    assert_non_null(strstr(t.err, "--sample=250"));

    REFUSED("--sample= needs a value after the '='", "--sample=");
}

static void test_last_one_counts(void **state)
{
    (void)state;
    parse("--limit", "1", "--limit", "2", NULL);
    assert_int_equal(t.limit, 2);
}

static void test_operands(void **state)
{
    (void)state;
    parse("one", "--quiet", "two", "--limit", "3", "-", "--", "--json", "--", NULL);
    assert_int_equal(t.result, 5);
    const char *const expected[] = {"one", "two", "-", "--json", "--"};
    for (int i = 0; i < 5; i++)
        assert_string_equal(t.argv[t.first + i], expected[i]);
    assert_null(t.argv[t.first + 5]);
    assert_true(t.quiet);
    assert_false(t.json);
}

static void test_stop_at_operand(void **state)
{
    (void)state;
    parse_stopping("--quiet", "python", "--limit", "x", "--", "--help", NULL);
    assert_int_equal(t.result, 5);
    assert_string_equal(t.argv[t.first], "python");
    assert_string_equal(t.argv[t.first + 3], "--");
    assert_string_equal(t.argv[t.first + 4], "--help");
    assert_null(t.argv[t.first + 5]);

    parse_stopping("--quiet", "--", "--odd-name", "x", NULL);
    assert_int_equal(t.result, 2);
    assert_string_equal(t.argv[t.first], "--odd-name");

    parse_stopping("--quiet", NULL);
    assert_int_equal(t.result, 0);
}

static void test_bad_numbers(void **state)
{
    (void)state;
    REFUSED("--limit needs a whole number, not 'x'", "--limit", "x");
    REFUSED("--limit needs a whole number, not '-5'", "--limit", "-5");
    REFUSED("--limit needs a whole number, not ''", "--limit=");
    REFUSED("--limit needs a whole number, not ' 5'", "--limit= 5");
    REFUSED("--limit needs a whole number, not '1.5'", "--limit=1.5");
    REFUSED("--limit needs a whole number, not '18446744073709551616'",
            "--limit=18446744073709551616");
    REFUSED("--limit needs a whole number", "--limit");
    REFUSED("--for needs a number, 0 or more, not '-1'", "--for", "-1");
    REFUSED("--for needs a number, 0 or more, not 'nan'", "--for=nan");
    REFUSED("--for needs a number, 0 or more, not 'inf'", "--for=inf");
    REFUSED("--for needs a number, 0 or more, not '1e999'", "--for=1e999");
    REFUSED("--for needs a number, 0 or more, not '0x10'", "--for=0x10");
    REFUSED("--for needs a number, 0 or more, not '1s'", "--for=1s");
    REFUSED("--for needs a number, 0 or more, not ''", "--for=");
    REFUSED("--for needs a number, 0 or more, not '.'", "--for=.");

    parse("--limit=18446744073709551615", NULL);
    assert_true(t.limit == UINT64_MAX);
}

static void test_refused_leaves_not_given(void **state)
{
    (void)state;
    parse("--limit", "x", NULL);
    assert_false(t.limit_given);
    assert_int_equal(t.limit, 0);
}

static void test_unknown(void **state)
{
    (void)state;
    REFUSED("unknown option --limt (did you mean --limit?)", "--limt=4");
    REFUSED("unknown option --jsno (did you mean --json?)", "--jsno");
    REFUSED("unknown option --hepl (did you mean --help?)", "--hepl");
    /* abbreviations are not taken, but understood */
    REFUSED("unknown option --lim (did you mean --limit?)", "--lim", "4");
    REFUSED("unknown option --colour; see 'pyrometer report --help'", "--colour");
    REFUSED("--quiet takes no value", "--quiet=yes");
    REFUSED("--help takes no value", "--help=yes");
}

static void test_help(void **state)
{
    (void)state;
    assert_null(cmd_help_text("no such command"));
    parse("--quiet", "-h", "--nonsense", NULL);
    assert_int_equal(t.result, CMD_PARSED_HELP);
    assert_string_equal(t.out, cmd_help_text("report"));
    assert_string_equal(t.err, "");
    parse("--help", NULL);
    assert_int_equal(t.result, CMD_PARSED_HELP);
}

static void test_the_line_is_printable(void **state)
{
    (void)state;
    REFUSED("--limit needs a whole number, not 'a\\nb\\tc\\x1b[31m\\xff\\xc2\\x9b\\x7f'",
            "--limit=a\nb\tc\033[31m\xff\xc2\x9b\x7f");
    REFUSED("--limit needs a whole number, not 'größe \xf0\x9f\x94\xa5'",
            "--limit=größe \xf0\x9f\x94\xa5");
}

static const char *near_of(const char *word)
{
    struct cmd_near near = {.word = word};
    const char *const names[] = {"run", "report", "export", "verify"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        cmd_near_offer(&near, names[i]);
    return near.best ? near.best : "";
}

static void test_near(void **state)
{
    (void)state;
    assert_string_equal(near_of("reprot"), "report");
    assert_string_equal(near_of("rnu"), "run");
    assert_string_equal(near_of("exprt"), "export");
    assert_string_equal(near_of("verfy"), "verify");
    assert_string_equal(near_of("ver"), "verify");
    assert_string_equal(near_of("profile"), "");
    assert_string_equal(near_of(""), "");
    assert_string_equal(near_of("x"), "");
    assert_string_equal(near_of("reportreportreportreportreportreportreport"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_long_forms),
        cmocka_unit_test(test_short_forms),
        cmocka_unit_test(test_optional_value),
        cmocka_unit_test(test_last_one_counts),
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_stop_at_operand),
        cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_refused_leaves_not_given),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_the_line_is_printable),
        cmocka_unit_test(test_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
