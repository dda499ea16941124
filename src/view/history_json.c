/* Runs as JSON: a list of objects, or the columns that pandas writes. */
#include "base/err.h"
#include "base/jsonread.h"
#include "view/history.h"

#include <math.h>
#include <string.h>

const char *const VIEW_HISTORY_METRICS[] = {
    "user_time_sec",
    "system_time_sec",
    "pct_of_cpu",
    "elapsed_time_sec",
    "avg_shared_text_sz_kb",
    "avg_unshared_text_sz_kb",
    "avg_stack_sz_kb",
    "avg_total_sz_kb",
    "max_res_set_sz_kb",
    "avg_res_set_sz_kb",
    "major_page_faults",
    "minor_page_faults",
    "voluntary_context_switches",
    "involuntary_context_switches",
    "swaps",
    "file_system_inputs",
    "file_system_outputs",
    "socket_messages_sent",
    "socket_messages_received",
    "signals_delivered",
    "page_size_bytes",
    "exit_status",
    NULL,
};

static bool is_classic(const char *name)
{
    for (size_t i = 0; VIEW_HISTORY_METRICS[i]; i++)
        if (strcmp(VIEW_HISTORY_METRICS[i], name) == 0)
            return true;
    return false;
}

static void opt_text(struct json *j, const char *text)
{
    if (text)
        json_text(j, text);
    else
        json_null(j);
}

static void output_text(struct json *j, const struct history_output *o)
{
    if (o)
        json_text_n(j, (const char *)o->bytes, o->len);
    else
        json_null(j);
}

/* JSON into JSON, token by token: what is broken ends as null. */
static void copy_json(struct json *j, const void *data, size_t len)
{
    struct jsonread r;
    int rc = 0, depth = 0;
    jsonread_init(&r, data, len); /* once through, to know that it is whole */
    while ((rc = jsonread_next(&r)) == 0 && r.token != JSONREAD_END)
        ;
    bool is_text = rc == 0 && len && *(const char *)data == '"';
    jsonread_release(&r);
    if (rc < 0 || !len) {
        json_text_n(j, data ? data : "", len);
        return;
    }
    jsonread_init(&r, data, len);
    while (jsonread_next(&r) == 0 && r.token != JSONREAD_END) {
        switch (r.token) {
        case JSONREAD_OBJECT:
            json_object_begin(j);
            depth++;
            break;
        case JSONREAD_ARRAY:
            json_array_begin(j);
            depth++;
            break;
        case JSONREAD_OBJECT_END:
            json_object_end(j);
            depth--;
            break;
        case JSONREAD_ARRAY_END:
            json_array_end(j);
            depth--;
            break;
        case JSONREAD_KEY:
            json_key(j, buf_cstr(&r.text));
            break;
        case JSONREAD_TEXT:
            if (is_text && depth == 0) { /* JSON inside a string: the other layer */
                struct buf inner;
                buf_init(&inner, JSONREAD_MAX_TEXT);
                buf_append(&inner, r.text.data, r.text.len);
                if (inner.len && inner.data[0] != '"')
                    copy_json(j, inner.data, inner.len);
                else
                    json_text_n(j, (const char *)inner.data, inner.len);
                buf_release(&inner);
            } else {
                json_text_n(j, (const char *)r.text.data, r.text.len);
            }
            break;
        case JSONREAD_NUMBER:
            json_real(j, r.number);
            break;
        case JSONREAD_TRUE:
        case JSONREAD_FALSE:
            json_bool(j, r.token == JSONREAD_TRUE);
            break;
        default:
            json_null(j);
            break;
        }
    }
    jsonread_release(&r);
}

static void facts_object(struct json *j, const struct history_run *run, enum history_fact_kind kind)
{
    json_object_begin(j);
    for (size_t i = 0; i < run->facts.len; i++)
        if (run->facts.data[i].kind == kind)
            json_kv_text(j, run->facts.data[i].key, run->facts.data[i].value);
    json_object_end(j);
}

static bool is_custom(const char *name)
{
    static const char *const ours[] = {"stdout", "stderr", "processes", "tiledb_stats"};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strcmp(ours[i], name) == 0)
            return false;
    return true;
}

static void custom_outputs(struct json *j, const struct history_run *run)
{
    json_array_begin(j);
    for (size_t i = 0; i < run->outputs.len; i++) {
        const struct history_output *o = &run->outputs.data[i];
        if (!is_custom(o->name))
            continue;
        json_object_begin(j);
        json_kv_text(j, "name", o->name);
        json_kv_u64(j, "bytes", o->total);
        json_key(j, "text");
        output_text(j, o);
        json_object_end(j);
    }
    json_array_end(j);
}

static void number(struct json *j, double v)
{
    if (isfinite(v) && v == nearbyint(v) && fabs(v) < 9e15)
        json_i64(j, (int64_t)v);
    else
        json_real(j, v);
}

/* --- the fields, one function each: a list of runs and columns are made of the same --- */

enum field {
    F_COMMAND,
    F_TIMESTAMP,
    F_STDOUT,
    F_STDERR,
    F_TILEDB,
    F_SOMACORE,
    F_TILEDBSOMA,
    F_HOST,
    F_CUSTOM,
    F_ID,
    F_UID,
    F_KEY,
    F_ARGV,
    F_STARTED,
    F_CWD,
    F_PYTHON,
    F_PACKAGES,
    F_GIT_COMMIT,
    F_GIT_BRANCH,
    F_GIT_DIRTY,
    F_TAGS,
    F_ENV,
    F_LAUNCH,
    F_GROUP,
    F_REPEAT,
    F_WARMUP,
    F_PROFILE,
    F_SOURCE,
    F_MERGED,
    F_PROCESSES,
    F_METRICS,
    F_COUNT
};

static const char *const field_names[F_COUNT] = {
    [F_COMMAND] = "command",
    [F_TIMESTAMP] = "timestamp",
    [F_STDOUT] = "stdout",
    [F_STDERR] = "stderr",
    [F_TILEDB] = "tiledb_stats",
    [F_SOMACORE] = "somacore_version",
    [F_TILEDBSOMA] = "tiledbsoma_version",
    [F_HOST] = "host_context",
    [F_CUSTOM] = "custom_out",
    [F_ID] = "id",
    [F_UID] = "uid",
    [F_KEY] = "key",
    [F_ARGV] = "argv",
    [F_STARTED] = "started",
    [F_CWD] = "directory",
    [F_PYTHON] = "python_version",
    [F_PACKAGES] = "packages",
    [F_GIT_COMMIT] = "git_commit",
    [F_GIT_BRANCH] = "git_branch",
    [F_GIT_DIRTY] = "git_dirty",
    [F_TAGS] = "tags",
    [F_ENV] = "env",
    [F_LAUNCH] = "launch",
    [F_GROUP] = "group",
    [F_REPEAT] = "repeat",
    [F_WARMUP] = "warmup",
    [F_PROFILE] = "profile",
    [F_SOURCE] = "source",
    [F_MERGED] = "stderr_with_stdout",
    [F_PROCESSES] = "processes",
    [F_METRICS] = "metrics",
};

static void argv_array(struct json *j, const struct history_run *run)
{
    if (!run->argv) {
        json_null(j);
        return;
    }
    json_array_begin(j);
    for (size_t at = 0; at < run->argv_len;) {
        size_t len = strnlen(run->argv + at, run->argv_len - at);
        json_text_n(j, run->argv + at, len);
        at += len + 1;
    }
    json_array_end(j);
}

static void other_metrics(struct json *j, const struct history_run *run)
{
    json_object_begin(j);
    for (size_t i = 0; i < run->metrics.len; i++) {
        const struct history_metric *m = &run->metrics.data[i];
        if (is_classic(m->name))
            continue;
        json_key(j, m->name);
        number(j, m->value);
    }
    json_object_end(j);
}

static void json_output(struct json *j, const struct history_run *run, const char *name)
{
    const struct history_output *o = history_run_output(run, name);
    if (o)
        copy_json(j, o->bytes, o->len);
    else
        json_null(j);
}

static void put_field(struct json *j, const struct history_run *run, enum field f)
{
    switch (f) {
    case F_COMMAND:
        json_text(j, run->command);
        break;
    case F_TIMESTAMP:
        json_real(j, (double)run->started_us * 1e-6);
        break;
    case F_STDOUT:
        output_text(j, history_run_output(run, "stdout"));
        break;
    case F_STDERR:
        output_text(j, history_run_output(run, "stderr"));
        break;
    case F_TILEDB:
        json_output(j, run, "tiledb_stats");
        break;
    case F_SOMACORE:
        opt_text(j, history_run_fact(run, HISTORY_FACT_PACKAGE, "somacore"));
        break;
    case F_TILEDBSOMA:
        opt_text(j, history_run_fact(run, HISTORY_FACT_PACKAGE, "tiledbsoma"));
        break;
    case F_HOST:
        facts_object(j, run, HISTORY_FACT_HOST);
        break;
    case F_CUSTOM:
        custom_outputs(j, run);
        break;
    case F_ID:
        json_i64(j, run->id);
        break;
    case F_UID:
        json_text(j, run->uid);
        break;
    case F_KEY:
        json_text(j, run->key);
        break;
    case F_ARGV:
        argv_array(j, run);
        break;
    case F_STARTED:
        json_text(j, view_history_utc(run->started_us).text);
        break;
    case F_CWD:
        opt_text(j, run->cwd);
        break;
    case F_PYTHON:
        opt_text(j, run->python);
        break;
    case F_PACKAGES:
        facts_object(j, run, HISTORY_FACT_PACKAGE);
        break;
    case F_GIT_COMMIT:
        opt_text(j, run->git_commit);
        break;
    case F_GIT_BRANCH:
        opt_text(j, run->git_branch);
        break;
    case F_GIT_DIRTY:
        if (run->git_dirty < 0)
            json_null(j);
        else
            json_bool(j, run->git_dirty > 0);
        break;
    case F_TAGS:
        facts_object(j, run, HISTORY_FACT_TAG);
        break;
    case F_ENV:
        facts_object(j, run, HISTORY_FACT_ENV);
        break;
    case F_LAUNCH:
        facts_object(j, run, HISTORY_FACT_LAUNCH);
        break;
    case F_GROUP:
        opt_text(j, run->group);
        break;
    case F_REPEAT:
        json_i64(j, run->repeat);
        break;
    case F_WARMUP:
        json_bool(j, run->warmup);
        break;
    case F_PROFILE:
        opt_text(j, run->profile);
        break;
    case F_SOURCE:
        opt_text(j, run->source);
        break;
    case F_MERGED:
        json_bool(j, run->stderr_with_stdout);
        break;
    case F_PROCESSES:
        json_output(j, run, "processes");
        break;
    case F_METRICS:
        other_metrics(j, run);
        break;
    case F_COUNT:
        break;
    }
}

void view_history_run_json(struct json *j, const struct history_run *run)
{
    json_object_begin(j);
    for (int f = 0; f < F_ID; f++) {
        json_key(j, field_names[f]);
        put_field(j, run, (enum field)f);
    }
    for (size_t i = 0; VIEW_HISTORY_METRICS[i]; i++) {
        json_key(j, VIEW_HISTORY_METRICS[i]);
        number(j, history_run_metric(run, VIEW_HISTORY_METRICS[i]));
    }
    for (int f = F_ID; f < F_COUNT; f++) {
        json_key(j, field_names[f]);
        put_field(j, run, (enum field)f);
    }
    json_object_end(j);
}

static void column_begin(struct json *j, const char *name)
{
    json_key(j, name);
    json_object_begin(j);
}

static void row_key(struct json *j, size_t row)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", row);
    json_key(j, text);
}

int view_history_columns(const struct history_run *const *runs, size_t count, FILE *out)
{
    struct json j;
    json_init(&j, out);
    json_object_begin(&j);
    for (int f = 0; f < F_COUNT; f++) {
        column_begin(&j, field_names[f]);
        for (size_t i = 0; i < count; i++) {
            row_key(&j, i);
            put_field(&j, runs[i], (enum field)f);
        }
        json_object_end(&j);
    }
    for (size_t m = 0; VIEW_HISTORY_METRICS[m]; m++) {
        column_begin(&j, VIEW_HISTORY_METRICS[m]);
        for (size_t i = 0; i < count; i++) {
            row_key(&j, i);
            number(&j, history_run_metric(runs[i], VIEW_HISTORY_METRICS[m]));
        }
        json_object_end(&j);
    }
    json_object_end(&j);
    putc('\n', out);
    return fflush(out) == 0 && !ferror(out) ? 0 : E_IO;
}
