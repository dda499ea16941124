/* The store of runs through its interface, commands as text, numbers out of JSON, imported runs. */
#include "base/attr.h"
#include "base/err.h"
#include "history/import_soma.h"
#include "history/jsonmetrics.h"
#include "history/store.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct place {
    char folder[64], path[96];
    struct history_store *store;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    snprintf(p->folder, sizeof p->folder, "/tmp/test-history-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    snprintf(p->path, sizeof p->path, "%s/history.db", p->folder);
    assert_int_equal(history_store_open(p->path, HISTORY_WRITE, &p->store), 0);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    static const char *const ends[] = {"", "-wal", "-shm"};
    history_store_close(p->store);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", p->path, ends[i]);
        unlink(path);
    }
    rmdir(p->folder);
    free(p);
    return 0;
}

/* A run of `command` at second `at` with elapsed `value`. */
static int64_t add(struct place *p, const char *command, int at, double value, const char *tag,
                   bool warmup)
{
    static unsigned counter;
    struct history_run run = {.git_dirty = -1, .warmup = warmup};
    int64_t id = 0;
    counter++;
    snprintf(run.uid, sizeof run.uid, "%08x%024x", counter * 2654435761u, counter);
    run.key = history_command_key_of_text(command);
    run.command = strdup(command);
    run.started_us = (int64_t)at * 1000000;
    run.git_commit = strdup(at < 3 ? "aaaa1111" : "bbbb2222");
    assert_int_equal(history_run_add_metric(&run, "elapsed", value), 0);
    assert_int_equal(history_run_add_metric(&run, "max_res_set_sz_kb", 10 * value), 0);
    assert_int_equal(history_run_add_metric(&run, "swaps", NAN), 0);
    if (tag)
        assert_int_equal(history_run_add_fact(&run, HISTORY_FACT_TAG, "t", tag), 0);
    assert_int_equal(history_run_add_output(&run, "stdout", "a\0b", 3, 30), 0);
    assert_int_equal(history_store_add(p->store, &run, &id), 0);
    history_run_release(&run);
    return id;
}

static void check_series(struct place *p, struct history_filter f, const char *metric,
                         const double *expected, size_t count)
{
    struct history_series s = {0};
    f.key = "x 1";
    assert_int_equal(history_store_series(p->store, &f, metric, &s), 0);
    assert_int_equal(s.points.len, count);
    for (size_t i = 0; i < count; i++)
        assert_true(s.points.data[i].value == expected[i]);
    history_series_release(&s);
}

static void fill(struct place *p)
{
    add(p, "x 1", 2, 2, "a", false); /* not in the order of time */
    add(p, "x 1", 1, 1, "b", false);
    add(p, "/usr/bin/x 1", 3, 3, "a", false);
    add(p, "x 1", 4, 4, NULL, true);
    add(p, "y", 9, 9, "a", false);
}

static void test_series(void **state)
{
    struct place *p = *state;
    fill(p);
    check_series(p, (struct history_filter){0}, "elapsed", (double[]){1, 2, 3}, 3);
    check_series(p, (struct history_filter){0}, "peak_memory", (double[]){10, 20, 30}, 3);
    check_series(p, (struct history_filter){.with_warmups = true}, "elapsed",
                 (double[]){1, 2, 3, 4}, 4);
    check_series(p, (struct history_filter){.last = 2}, "elapsed", (double[]){2, 3}, 2);
    check_series(p, (struct history_filter){.since_us = 2000000}, "elapsed", (double[]){2, 3}, 2);
    check_series(p, (struct history_filter){.until_us = 2000000}, "elapsed", (double[]){1}, 1);
    check_series(p, (struct history_filter){.tag = "t=a"}, "elapsed", (double[]){2, 3}, 2);
    check_series(p, (struct history_filter){.tag = "t=a", .last = 1}, "elapsed", (double[]){3}, 1);
    check_series(p, (struct history_filter){.tag = "t"}, "elapsed", (double[]){1, 2, 3}, 3);
    check_series(p, (struct history_filter){.commit = "aaaa"}, "elapsed", (double[]){1, 2}, 2);
    check_series(p, (struct history_filter){0}, "nonesuch", NULL, 0);
    struct history_series s = {0};
    assert_int_equal(
        history_store_series(p->store, &(struct history_filter){.key = "x 1"}, "swaps", &s), 0);
    assert_int_equal(s.points.len, 3);
    assert_true(isnan(s.points.data[0].value)); /* not known is not 0 */
    history_series_release(&s);
}

static void test_commands_and_metrics(void **state)
{
    struct place *p = *state;
    fill(p);
    struct history_commands c = {0};
    assert_int_equal(history_store_commands(p->store, &c), 0);
    assert_int_equal(c.list.len, 2);
    assert_string_equal(c.list.data[0].key, "y");
    assert_string_equal(c.list.data[1].key, "x 1");
    assert_int_equal(c.list.data[1].runs, 4);
    assert_int_equal(c.list.data[1].first_us, 1000000);
    history_commands_release(&c);
    struct history_names n = {0};
    assert_int_equal(history_store_metrics(p->store, "x 1", &n), 0);
    assert_int_equal(n.list.len, 3);
    assert_string_equal(n.list.data[0], "elapsed");
    history_names_release(&n);
}

static int count_run(void *ctx, const struct history_run *run)
{
    int64_t *sum = ctx;
    *sum = *sum * 10 + run->started_us / 1000000;
    return 0;
}

static void test_runs(void **state)
{
    struct place *p = *state;
    fill(p);
    int64_t sum = 0;
    assert_int_equal(
        history_store_runs(p->store, &(struct history_filter){0}, false, count_run, &sum), 0);
    assert_int_equal(sum, 1239);
    sum = 0;
    struct history_filter f = {.key = "x 1", .last = 2, .with_warmups = true};
    assert_int_equal(history_store_runs(p->store, &f, true, count_run, &sum), 0);
    assert_int_equal(sum, 34);
    int64_t id = 0;
    struct history_run run;
    assert_int_equal(history_store_find(p->store, "@~1", &id), 0);
    assert_int_equal(history_store_run(p->store, id, &run), 0);
    assert_true(run.warmup && history_run_metric(&run, "elapsed") == 4);
    assert_true(isnan(history_run_metric(&run, "swaps")));
    const struct history_output *o = history_run_output(&run, "stdout");
    assert_true(o && o->len == 3 && o->total == 30 && !memcmp(o->bytes, "a\0b", 3));
    int64_t same = 0;
    assert_int_equal(history_store_find(p->store, run.uid, &same), 0);
    assert_int_equal(same, id);
    run.uid[6] = '\0';
    assert_int_equal(history_store_find(p->store, run.uid, &same), 0);
    assert_int_equal(same, id);
    history_run_release(&run);
    static const struct {
        const char *text;
        int code;
    } wrong[] = {{"", E_INVALID},
                 {"@@", E_INVALID},
                 {"@~", E_INVALID},
                 {"@~9", E_NOENT},
                 {"zz", E_NOENT},
                 {"99", E_NOENT},
                 {"@~99999999999999999999", E_INVALID}};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_int_equal(history_store_find(p->store, wrong[i].text, &same), wrong[i].code);
}

static void test_remove(void **state)
{
    struct place *p = *state;
    fill(p);
    assert_int_equal(history_store_remove(p->store, 3), 0);
    assert_int_equal(history_store_remove(p->store, 3), E_NOENT);
    check_series(p, (struct history_filter){0}, "elapsed", (double[]){1, 2}, 2);
    struct history_run run;
    assert_int_equal(history_store_run(p->store, 3, &run), E_NOENT);
    assert_int_equal(history_store_remove(p->store, 5), 0);
    struct history_commands c = {0};
    assert_int_equal(history_store_commands(p->store, &c), 0);
    assert_int_equal(c.list.len, 1); /* a command without runs is gone */
    assert_int_equal(c.list.data[0].runs, 3);
    history_commands_release(&c);
    assert_int_equal(history_store_shrink(p->store), 0);
}

static void test_added_once(void **state)
{
    struct place *p = *state;
    struct history_run run = {.uid = "0123456789abcdef0123456789abcdef"};
    run.key = strdup("x");
    run.command = strdup("x");
    assert_int_equal(history_store_add(p->store, &run, NULL), 0);
    assert_int_equal(history_store_add(p->store, &run, NULL), E_EXISTS);
    run.uid[5] = '\0';
    assert_int_equal(history_store_add(p->store, &run, NULL), E_INVALID);
    history_run_release(&run);
    struct history_commands c = {0};
    assert_int_equal(history_store_commands(p->store, &c), 0);
    assert_int_equal(c.list.data[0].runs, 1); /* the second was taken back whole */
    history_commands_release(&c);
}

static void test_reading_writes_nothing(void **state)
{
    struct place *p = *state;
    struct history_store *s = NULL;
    assert_int_equal(history_store_open(p->path, HISTORY_READ, &s), 0);
    struct history_run run = {.uid = "0123456789abcdef0123456789abcdef"};
    run.key = strdup("x");
    run.command = strdup("x");
    assert_int_equal(history_store_add(s, &run, NULL), E_ACCESS);
    assert_int_equal(history_store_remove(s, 1), E_ACCESS);
    history_run_release(&run);
    history_store_close(s);
    s = NULL;
    assert_int_equal(history_store_open("/nowhere/history.db", HISTORY_READ, &s), E_NOENT);
    assert_int_equal(history_store_open("/tmp", HISTORY_READ, &s), E_ISDIR);
    assert_int_equal(history_store_open("postgres://x", HISTORY_READ, &s), E_INVALID);
    assert_null(s);
}

static void test_commands_as_text(void **state ATTR_UNUSED)
{
    static const char *const keys[][2] = {
        {"python tests/objects.py", "python tests/objects.py"},
        {"/venv/bin/python  tests/objects.py", "python tests/objects.py"},
        {"'python' \"tests/objects.py\"", "python tests/objects.py"},
        {"./run.sh", "run.sh"},
        {"build-a/x", "build-a/x"},
        {"sh -c 'a  b'", "sh -c 'a  b'"},
        {"sh -c \"it's\"", "sh -c 'it'\\''s'"},
        {"x ''", "x ''"},
        {"x \\'", "x ''\\'''"},
        {"x 'open", "x 'open"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char *key = history_command_key_of_text(keys[i][0]);
        assert_string_equal(key, keys[i][1]);
        char *again = history_command_key_of_text(key);
        assert_string_equal(again, key); /* a key is its own key */
        free(again);
        free(key);
    }
    const char *argv[] = {"/usr/bin/python3", "-c", "print('x')\n", ""};
    char *text = history_command_text(argv, ARRAY_LEN(argv));
    assert_string_equal(text, "/usr/bin/python3 -c 'print('\\''x'\\'')\n' ''");
    char *key = history_command_key(argv, ARRAY_LEN(argv)),
         *other = history_command_key_of_text(text);
    assert_string_equal(key, other);
    free(text);
    free(key);
    free(other);
}

static void check_json(const char *text, int code, size_t count, const char *name, double value)
{
    struct history_run run = {0};
    assert_int_equal(history_run_add_json(&run, "p", text, strlen(text)), code);
    assert_int_equal(run.metrics.len, count);
    if (name)
        assert_true(history_run_metric(&run, name) == value);
    history_run_release(&run);
}

static void test_json(void **state ATTR_UNUSED)
{
    check_json("{\"a\": 1, \"b\": {\"c\": 2.5}, \"d\": \"text\", \"e\": true, \"f\": null}", 0, 2,
               "p.b.c", 2.5);
    check_json("[{\"x\": 1}, {\"x\": 2}]", 0, 2, "p.1.x", 2);
    check_json("{\"x\": [1, 2, [3, 4]], \"y\": 5}", 0, 5, "p.x.2.1", 4);
    check_json("{\"x\": [1, 2, [3, 4]], \"y\": 5}", 0, 5, "p.y", 5);
    check_json("\"{\\\"a\\\": {\\\"b\\\": 7}}\"", 0, 1, "p.a.b", 7);
    check_json("7", 0, 1, "p", 7);
    check_json("{}", 0, 0, NULL, 0);
    check_json("{\"a\": 1", E_BADJSON, 1, "p.a", 1);
    check_json("not JSON", E_BADJSON, 0, NULL, 0);
    check_json("", E_BADJSON, 0, NULL, 0);
}

static void test_metric_lines(void **state ATTR_UNUSED)
{
    static const char text[] =
        "{\"name\": \"rows\", \"value\": 3}\n{\"name\": \"rows\", \"value\": 4}\n"
        "nonsense\n{\"name\": \"\", \"value\": 1}\n{\"value\": 2, \"name\": \"b\"}";
    struct history_run run = {0};
    size_t bad = 0;
    assert_int_equal(history_run_add_metric_lines(&run, text, strlen(text), &bad), 0);
    assert_int_equal(bad, 2);
    assert_int_equal(run.metrics.len, 2);
    assert_true(history_run_metric(&run, "rows") == 4 && history_run_metric(&run, "b") == 2);
    history_run_release(&run);
}

static void test_soma(void **state ATTR_UNUSED)
{
    static const char text[] =
        "{\"timestamp\": 1690000000.5, \"user_time_sec\": \"1.23\", \"pct_of_cpu\": \"98%\", "
        "\"swaps\": null,"
        " \"tiledb_stats\": {\"timers\": {\"a\": 1}}, \"host_context\": {\"uname\": \"Linux\", "
        "\"n\": 4},"
        " \"exit_status\": 1, \"somacore_version\": \"1.0\", \"stdout\": \"x\"}";
    struct history_run run, again;
    assert_int_equal(history_import_soma("python a.py", text, strlen(text), &run), 0);
    assert_string_equal(run.key, "python a.py");
    assert_int_equal(run.started_us, 1690000000500000);
    assert_true(history_run_metric(&run, "user_time_sec") == 1.23);
    assert_true(history_run_metric(&run, "pct_of_cpu") == 98);
    assert_true(history_run_metric(&run, "tiledb_stats.timers.a") == 1);
    assert_int_equal(run.exit_status, 1);
    assert_string_equal(history_run_fact(&run, HISTORY_FACT_HOST, "uname"), "Linux");
    assert_string_equal(history_run_fact(&run, HISTORY_FACT_PACKAGE, "somacore"), "1.0");
    assert_int_equal(history_import_soma("python a.py", text, strlen(text), &again), 0);
    assert_string_equal(run.uid, again.uid); /* the same file is the same run */
    history_run_release(&again);
    history_run_release(&run);
    assert_int_equal(history_import_soma(NULL, text, strlen(text), &run), E_INVALID);
    assert_int_equal(history_import_soma("x", "{}", 2, &run), E_INVALID);
    assert_int_equal(history_import_soma("x", "[1]", 3, &run), E_INVALID);
    assert_int_equal(history_import_soma("x", "{", 1, &run), E_BADJSON);
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_series),
        WITH_STORE(test_commands_and_metrics),
        WITH_STORE(test_runs),
        WITH_STORE(test_remove),
        WITH_STORE(test_added_once),
        WITH_STORE(test_reading_writes_nothing),
        cmocka_unit_test(test_commands_as_text),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_metric_lines),
        cmocka_unit_test(test_soma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
