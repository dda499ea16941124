#include "history/import_soma.h"

#include "base/err.h"
#include "base/idxmap.h"
#include "base/jsonread.h"
#include "history/jsonmetrics.h"

#include <math.h>
#include <stdio.h>

/* What is context in that profiler's runs; every other field with a number is a metric. */
static bool is_text_output(const char *key)
{
    return !strcmp(key, "stdout") || !strcmp(key, "stderr");
}

static bool is_context(const char *key)
{
    static const char *const keys[] = {"command", "command_key", "process", "timestamp"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (!strcmp(keys[i], key))
            return true;
    return false;
}

/* "1.23", "12%": the whole text is a number. */
static double number_of(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    return end != text && (!*end || !strcmp(end, "%")) ? v : NAN;
}

static int take_text(struct history_run *run, const char *key, const struct jsonread *j)
{
    const char *text = j->text.len ? (const char *)j->text.data : "";
    if (!strcmp(key, "command") || !strcmp(key, "process")) {
        free(run->command);
        run->command = strndup(text, j->text.len);
        return run->command ? 0 : E_NOMEM;
    }
    if (is_text_output(key) || !strcmp(key, "tiledb_stats")) {
        size_t len = min_u64(j->text.len, HISTORY_MAX_OUTPUT);
        if (!strcmp(key, "tiledb_stats"))
            history_run_add_json(run, key, text, len);
        return history_run_add_output(run, key, text, len, j->text.len);
    }
    char copy[256];
    snprintf(copy, sizeof copy, "%.*s", (int)min_u64(j->text.len, sizeof copy - 1), text);
    size_t n = strlen(key);
    if (n > 8 && !strcmp(key + n - 8, "_version")) {
        char name[HISTORY_MAX_NAME];
        snprintf(name, sizeof name, "%.*s", (int)min_u64(n - 8, sizeof name - 1), key);
        return history_run_add_fact(run, HISTORY_FACT_PACKAGE, name, copy);
    }
    double v = is_context(key) || j->text.len >= sizeof copy ? NAN : number_of(copy);
    return isnan(v) ? 0 : history_run_add_metric(run, key, v);
}

static int take_number(struct history_run *run, const char *key, double value)
{
    if (!strcmp(key, "timestamp") && fabs(value) < 1e12) {
        run->started_us = (int64_t)(value * 1e6);
        return 0;
    }
    if (!strcmp(key, "exit_status") && value >= 0 && value < 65536) {
        run->exit_status = (int)value;
        run->has_exit_status = true;
    }
    return is_context(key) ? 0 : history_run_add_metric(run, key, value);
}

/* An object or array under a top key: `from` is where its text begins. */
static int take_nested(struct history_run *run, const char *key, struct jsonread *j,
                       const char *from)
{
    int rc = jsonread_skip_rest(j);
    size_t len = (size_t)(j->at - from);
    if (rc < 0)
        return rc;
    if (!strcmp(key, "tiledb_stats"))
        rc = history_run_add_json(run, key, from, len);
    if (rc == 0 && strcmp(key, "host_context") != 0)
        return history_run_add_output(run, key, from, min_u64(len, HISTORY_MAX_OUTPUT), len);
    struct jsonread h; /* flat: names and values */
    char name[HISTORY_MAX_NAME] = "", text[64];
    jsonread_init(&h, from, len);
    while (rc == 0 && (rc = jsonread_next(&h)) == 0 && h.token != JSONREAD_END) {
        if (h.token == JSONREAD_KEY)
            snprintf(name, sizeof name, "%s", buf_cstr(&h.text));
        else if (h.token == JSONREAD_TEXT && *name && h.text.len < HISTORY_MAX_TEXT)
            rc = history_run_add_fact(run, HISTORY_FACT_HOST, name, buf_cstr(&h.text));
        else if (h.token == JSONREAD_NUMBER && *name) {
            snprintf(text, sizeof text, "%.17g", h.number);
            rc = history_run_add_fact(run, HISTORY_FACT_HOST, name, text);
        }
    }
    jsonread_release(&h);
    return rc;
}

static int read_fields(struct history_run *run, struct jsonread *j)
{
    char key[HISTORY_MAX_NAME + 1] = "";
    int rc = jsonread_next(j);
    if (rc == 0 && j->token != JSONREAD_OBJECT)
        return E_INVALID;
    while (rc == 0 && (rc = jsonread_next(j)) == 0 && j->token != JSONREAD_END) {
        const char *from = j->at - 1; /* of '{' or '[', which have just been read */
        if (j->token == JSONREAD_KEY)
            snprintf(key, sizeof key, "%.*s", (int)min_u64(j->text.len, HISTORY_MAX_NAME),
                     j->text.len ? (const char *)j->text.data : "");
        else if (j->token == JSONREAD_TEXT && *key)
            rc = take_text(run, key, j);
        else if (j->token == JSONREAD_NUMBER && *key)
            rc = take_number(run, key, j->number);
        else if (j->token == JSONREAD_NULL && *key && !is_context(key) && !is_text_output(key))
            rc = history_run_add_metric(run, key, NAN);
        else if (j->token == JSONREAD_OBJECT || j->token == JSONREAD_ARRAY)
            rc = take_nested(run, key, j, from);
    }
    return rc;
}

/* The same content is the same run. Four hashes of 32 bits: no secret, only a name. */
static void name_by_content(struct history_run *run, const void *data, size_t len)
{
    uint32_t part = hash_long(data, len);
    for (int i = 0; i < 4; i++) {
        uint64_t seed = (uint64_t)(i + 1) << 32 | part;
        part = hash_u64(seed ^ hash_bytes(data, len));
        snprintf(run->uid + 8 * (size_t)i, 9, "%08x", part);
    }
}

int history_import_soma(const char *command, const void *data, size_t len, struct history_run *ret)
{
    struct history_run run = {.git_dirty = -1};
    struct jsonread j;
    jsonread_init(&j, data, len);
    int rc = read_fields(&run, &j);
    jsonread_release(&j);
    if (rc == 0 && !run.command && command)
        run.command = strdup(command);
    if (rc == 0 && (!run.command || !run.started_us || !run.metrics.len))
        rc = E_INVALID;
    if (rc == 0) {
        run.key = history_command_key_of_text(run.command);
        run.source = strdup("soma");
        rc = run.key && run.source ? 0 : E_NOMEM;
        name_by_content(&run, data, len);
    }
    if (rc < 0)
        history_run_release(&run);
    else
        *ret = run;
    return rc;
}
