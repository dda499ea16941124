/* Makes a large history and asks it: make_history FILE RUNS METRICS
 *
 * Nine of ten runs are of one command, the rest of a thousand others, each with METRICS metrics, a few tags and a
 * host. Then times, in milliseconds, what people wait for, the median of several: one more run added, a series of
 * the command with the most runs, its last hundred points, the list of commands. Prints one JSON object. Linked with
 * src/base and src/history. */
#include "base/clock.h"
#include "base/err.h"
#include "history/store.h"

#include <stdio.h>

enum { OTHERS = 1000, ASKS = 21 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values)
{
    qsort(values, ASKS, sizeof *values, by_size);
    return values[ASKS / 2];
}

static int add(struct history_store *s, uint64_t number, unsigned metrics)
{
    struct history_run run = {.git_dirty = 0, .has_exit_status = true};
    char text[64];
    snprintf(run.uid, sizeof run.uid, "%032llx", (unsigned long long)number);
    snprintf(text, sizeof text,
             number % 10 ? "python tests/objects.py" : "python tests/other.py %llu",
             (unsigned long long)(number / 10 % OTHERS));
    run.key = strdup(text);
    run.command = strdup(text);
    run.started_us = 1700000000000000ll + (int64_t)number * 1000003;
    for (unsigned i = 0; i < metrics; i++) {
        snprintf(text, sizeof text, "metric_%u", i);
        history_run_add_metric(&run, text, (double)(number * 7919 % 1000) + i);
    }
    history_run_add_fact(&run, HISTORY_FACT_TAG, "suite", "nightly");
    history_run_add_fact(&run, HISTORY_FACT_HOST, "cpu", "a processor of some kind");
    history_run_add_fact(&run, HISTORY_FACT_PACKAGE, "tiledbsoma", "1.2.3");
    history_run_add_output(&run, "stdout", "done\n", 5, 5);
    int rc = history_store_add(s, &run, NULL);
    history_run_release(&run);
    return rc;
}

static double ms_since(uint64_t ns)
{
    return (double)(clock_mono_ns() - ns) * 1e-6;
}

static double time_adding(const char *path, uint64_t from, unsigned metrics)
{
    double taken[ASKS];
    for (int i = 0; i < ASKS; i++) { /* as `run` does: open, add one, close */
        struct history_store *s = NULL;
        uint64_t begin = clock_mono_ns();
        if (history_store_open(path, HISTORY_WRITE, &s) < 0 ||
            add(s, from + (uint64_t)i, metrics) < 0)
            return -1;
        history_store_close(s);
        taken[i] = ms_since(begin);
    }
    return median(taken);
}

static double time_series(struct history_store *s, uint64_t last, size_t *ret_points)
{
    double taken[ASKS];
    struct history_filter f = {.key = "python tests/objects.py", .last = last};
    for (int i = 0; i < ASKS; i++) {
        struct history_series series = {0};
        char name[32];
        snprintf(name, sizeof name, "metric_%d", i);
        uint64_t begin = clock_mono_ns();
        if (history_store_series(s, &f, name, &series) < 0)
            return -1;
        taken[i] = ms_since(begin);
        *ret_points = series.points.len;
        history_series_release(&series);
    }
    return median(taken);
}

static double time_commands(struct history_store *s)
{
    double taken[ASKS];
    for (int i = 0; i < ASKS; i++) {
        struct history_commands c = {0};
        uint64_t begin = clock_mono_ns();
        if (history_store_commands(s, &c) < 0)
            return -1;
        taken[i] = ms_since(begin);
        history_commands_release(&c);
    }
    return median(taken);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    uint64_t runs = strtoull(argv[2], NULL, 10);
    unsigned metrics = (unsigned)strtoul(argv[3], NULL, 10);
    struct history_store *s = NULL;
    int rc = history_store_open(argv[1], HISTORY_WRITE, &s);
    uint64_t begin = clock_mono_ns();
    for (uint64_t i = 0; rc == 0 && i < runs; i++)
        rc = add(s, i, metrics);
    double each = ms_since(begin) / (double)runs;
    history_store_close(s);
    s = NULL;
    double adding = rc == 0 ? time_adding(argv[1], runs, metrics) : -1;
    if (rc == 0)
        rc = history_store_open(argv[1], HISTORY_READ, &s);
    if (rc < 0) {
        fprintf(stderr, "make_history: %s\n", err_text(rc));
        return 1;
    }
    size_t points = 0, few = 0;
    uint64_t bytes = 0;
    double series = time_series(s, 0, &points), last = time_series(s, 100, &few);
    double commands = time_commands(s);
    history_store_size(s, &bytes);
    printf("{\"fill_ms\": %.3f, \"add_ms\": %.3f, \"series_ms\": %.3f, \"points\": %zu, "
           "\"last_ms\": %.3f, "
           "\"commands_ms\": %.3f, \"bytes\": %llu}\n",
           each, adding, series, points, last, commands, (unsigned long long)bytes);
    history_store_close(s);
    return 0;
}
