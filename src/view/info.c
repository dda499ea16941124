/* Prints what a recording holds, as text for people and as the JSON of docs/json.md. */
#include "view/info.h"

#include "analysis/query.h"
#include "base/clock.h"
#include "base/err.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

#include <inttypes.h>

enum {
    LINE_BYTES_MAX = 64 << 20,
    LISTED_MAX = 20, /* processes and threads in the text; JSON has all */
};

static const char *process_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [RECORD_PROCESS_UNKNOWN] = "unknown",
        [RECORD_PROCESS_PYTHON] = "python",
        [RECORD_PROCESS_OTHER] = "other",
        [RECORD_PROCESS_REFUSED] = "refused",
        [RECORD_PROCESS_UNSUPPORTED] = "unsupported",
    };
    return kind < ARRAY_LEN(names) ? names[kind] : "unknown";
}

/* A key that was written twice has its last value. */
static bool is_current(const struct profile *p, const struct profile_meta *meta)
{
    return profile_meta_value(p, meta->key) == meta->value;
}

/* --- JSON --- */

static void kv_string(struct json *j, const char *key, struct profile_string text)
{
    json_key(j, key);
    json_text_n(j, text.text, text.len);
}

static void kv_seconds(struct json *j, const char *key, uint64_t ns)
{
    json_kv_real(j, key, (double)ns / (double)NS_PER_SEC);
}

static void meta_json(struct json *j, const struct profile *p)
{
    const struct profile_tables *t = profile_tables(p);
    json_key(j, "meta");
    json_object_begin(j);
    for (size_t i = 0; i < t->meta_count; i++)
        if (is_current(p, &t->meta[i]))
            json_kv_text(j, t->meta[i].key, t->meta[i].value);
    json_object_end(j);
}

static void stats_json(struct json *j, const struct profile_tables *t)
{
    json_key(j, "stats");
    json_object_begin(j);
    for (unsigned i = 0; i < RECORD_STAT_COUNT; i++) {
        json_key(j, record_stat_name((enum record_stat)i));
        if (t->stat_known[i])
            json_u64(j, t->stats.value[i]);
        else
            json_null(j);
    }
    json_object_end(j);
}

static void processes_json(struct json *j, const struct profile_tables *t)
{
    json_key(j, "processes");
    json_array_begin(j);
    for (uint32_t i = 0; i < t->process_count; i++) {
        const struct record_process *process = &t->processes[i];
        if (!analysis_process_is_known(t, i))
            continue;
        json_object_begin(j);
        json_kv_u64(j, "pid", process->pid);
        json_kv_u64(j, "parent_pid", process->parent_pid);
        json_kv_text(j, "kind", process_kind_name(process->kind));
        kv_string(j, "command", t->strings[process->command]);
        kv_string(j, "python_version", t->strings[process->python_version]);
        kv_seconds(j, "start", process->start_ns);
        json_key(j, "end");
        if (process->end_ns)
            json_real(j, (double)process->end_ns / (double)NS_PER_SEC);
        else
            json_null(j);
        json_object_end(j);
    }
    json_array_end(j);
}

static void threads_json(struct json *j, const struct profile_tables *t)
{
    json_key(j, "threads");
    json_array_begin(j);
    for (uint32_t i = 0; i < t->thread_count; i++) {
        const struct record_thread *thread = &t->threads[i];
        if (!analysis_thread_is_known(t, i))
            continue;
        json_object_begin(j);
        kv_string(j, "name", t->strings[thread->name]);
        json_kv_u64(j, "tid", thread->tid);
        json_kv_u64(j, "pid", t->processes[thread->process].pid);
        json_kv_u64(j, "ident", thread->ident);
        json_kv_u64(j, "interpreter", thread->interpreter);
        kv_seconds(j, "start", thread->start_ns);
        json_object_end(j);
    }
    json_array_end(j);
}

static void chunks_json(struct json *j, const struct view_info *info)
{
    json_key(j, "chunks");
    json_array_begin(j);
    for (size_t i = 0; i < info->kind_count; i++) {
        const struct view_info_kind *k = &info->kinds[i];
        json_object_begin(j);
        json_key(j, "kind");
        if (k->name)
            json_text(j, k->name);
        else
            json_null(j);
        json_kv_u64(j, "number", k->kind);
        json_kv_u64(j, "chunks", k->chunks);
        json_kv_u64(j, "records", k->records);
        json_kv_u64(j, "stored_bytes", k->stored_bytes);
        json_kv_u64(j, "raw_bytes", k->raw_bytes);
        json_object_end(j);
    }
    json_array_end(j);
}

static const char *memory_mode(const struct view_info_memory *m)
{
    return m->sampled ? "sampled" : m->objects ? "objects" : "heap";
}

static void memory_json(struct json *j, const struct view_info *info)
{
    const struct view_info_memory *m = &info->memory;
    json_key(j, "memory");
    if (!m->checkpoints) {
        json_null(j);
        return;
    }
    json_object_begin(j);
    json_kv_text(j, "mode", memory_mode(m));
    json_kv_u64(j, "allocations", m->allocations);
    json_kv_u64(j, "checkpoints", m->checkpoints);
    json_kv_u64(j, "site_records", m->site_records);
    json_object_end(j);
}

static void print_json(struct json *j, const struct view_info *info)
{
    const struct profile *p = info->profile;
    const struct profile_tables *t = profile_tables(p);
    const struct format_summary *s = profile_summary(p);
    char version[16];
    snprintf(version, sizeof version, "%u.%u", s->header.version_major, s->header.version_minor);
    view_run_json(j, p);
    json_kv_text(j, "format_version", version);
    json_kv_u64(j, "file_bytes", s->file_bytes);
    json_kv_u64(j, "samples", info->samples);
    json_kv_u64(j, "sample_records", info->sample_records);
    json_kv_u64(j, "calls", info->calls);
    json_kv_u64(j, "resumes", info->resumes);
    json_kv_u64(j, "call_records", info->call_records);
    memory_json(j, info);
    json_kv_u64(j, "codes", t->code_count - 2); /* less "<unknown>" and "<lost>" */
    json_kv_u64(j, "stacks", t->node_count - 2);
    meta_json(j, p);
    stats_json(j, t);
    view_run_sampling_json(j, p);
    view_run_losses_json(j, p, info->damaged_chunks);
    processes_json(j, t);
    threads_json(j, t);
    chunks_json(j, info);
}

/* --- text --- */

static void fact(struct view_emit *e, const char *key, const char *value)
{
    if (*value)
        view_emit_line(e, "%-12s %s", key, value);
}

static void run_text(struct view_emit *e, const struct view_info *info, struct buf *line)
{
    const struct profile *p = info->profile;
    const struct profile_tables *t = profile_tables(p);
    const struct format_summary *s = profile_summary(p);
    char id[PROFILE_ID_SIZE], created[PROFILE_TIME_SIZE];
    profile_id_text(p, id);
    profile_created_text(p, created);
    fact(e, "run", id);
    buf_clear(line);
    view_text_escape(line, profile_path(p), strlen(profile_path(p)));
    buf_printf(line, " (%s, format %u.%u%s)", view_units_bytes((double)s->file_bytes).text,
               s->header.version_major, s->header.version_minor,
               s->finished ? "" : ", not finished");
    fact(e, "file", buf_cstr(line));
    fact(e, "recorded", created);
    buf_clear(line);
    view_run_pythons(p, line);
    fact(e, "python", buf_cstr(line));
    for (size_t i = 0; i < t->meta_count; i++) {
        if (!is_current(p, &t->meta[i]))
            continue;
        buf_clear(line);
        view_text_escape(line, t->meta[i].key, strlen(t->meta[i].key));
        buf_printf(line, "%*s ", line->len < 12 ? (int)(12 - line->len) : 0, "");
        view_text_escape(line, t->meta[i].value, strlen(t->meta[i].value));
        view_emit_line(e, "%s", buf_cstr(line));
    }
}

/* ns as a time, bytes as a size, millihertz as a rate, the rest as a number: the name tells. */
static struct view_units_text stat_text(const char *name, uint64_t value)
{
    size_t len = strlen(name);
    if (len > 3 && strcmp(name + len - 3, "_ns") == 0)
        return view_units_seconds((double)value / (double)NS_PER_SEC);
    if (strstr(name, "_bytes"))
        return view_units_bytes((double)value);
    if (strstr(name, "_millihertz")) {
        struct view_units_text t;
        snprintf(t.text, sizeof t.text, "%g Hz", (double)value / 1000);
        return t;
    }
    return view_units_count(value);
}

static void stats_text(struct view_emit *e, const struct view_info *info)
{
    static const struct view_column columns[] = {
        {NULL, "counter", VIEW_NAME, VIEW_ONLY_TEXT},
        {NULL, "value", VIEW_NAME, VIEW_ONLY_TEXT},
        {NULL, "what it counts", VIEW_NAME, VIEW_ONLY_TEXT},
    };
    const struct profile_tables *t = profile_tables(info->profile);
    view_emit_line(e, "%s", "");
    view_emit_table_begin(e, "stats", columns, ARRAY_LEN(columns), false);
    for (unsigned i = 0; i < RECORD_STAT_COUNT; i++) {
        if (!t->stat_known[i])
            continue;
        const char *name = record_stat_name((enum record_stat)i);
        const char *text = record_stat_text((enum record_stat)i);
        struct view_units_text value = stat_text(name, t->stats.value[i]);
        struct view_cell cells[] = {{.text = name, .len = strlen(name)},
                                    {.text = value.text, .len = strlen(value.text)},
                                    {.text = text, .len = strlen(text)}};
        view_emit_row_begin(e, cells);
        view_emit_row_end(e);
    }
    view_emit_table_end(e);
}

static void processes_text(struct view_emit *e, const struct profile_tables *t)
{
    static const struct view_column columns[] = {
        {NULL, "pid", VIEW_ID, VIEW_ONLY_TEXT},       {NULL, "parent", VIEW_ID, VIEW_ONLY_TEXT},
        {NULL, "kind", VIEW_NAME, VIEW_ONLY_TEXT},    {NULL, "python", VIEW_NAME, VIEW_ONLY_TEXT},
        {NULL, "command", VIEW_NAME, VIEW_ONLY_TEXT},
    };
    size_t known = 0;
    view_emit_line(e, "%s", "");
    view_emit_table_begin(e, "processes", columns, ARRAY_LEN(columns), false);
    for (uint32_t i = 0; i < t->process_count; i++) {
        const struct record_process *process = &t->processes[i];
        if (!analysis_process_is_known(t, i) || known++ >= LISTED_MAX)
            continue;
        const char *kind = process_kind_name(process->kind);
        struct profile_string command = t->strings[process->command];
        struct profile_string python = t->strings[process->python_version];
        struct view_cell cells[] = {{.count = process->pid},
                                    {.count = process->parent_pid},
                                    {.text = kind, .len = strlen(kind)},
                                    {.text = python.text, .len = python.len},
                                    {.text = command.text, .len = command.len}};
        view_emit_row_begin(e, cells);
        view_emit_row_end(e);
    }
    view_emit_table_end(e);
    if (known > LISTED_MAX)
        view_emit_line(e, "… and %zu more processes", known - LISTED_MAX);
}

static void threads_text(struct view_emit *e, const struct profile_tables *t)
{
    static const struct view_column columns[] = {
        {NULL, "tid", VIEW_ID, VIEW_ONLY_TEXT},
        {NULL, "pid", VIEW_ID, VIEW_ONLY_TEXT},
        {NULL, "thread", VIEW_NAME, VIEW_ONLY_TEXT},
    };
    size_t known = 0;
    view_emit_line(e, "%s", "");
    view_emit_table_begin(e, "threads", columns, ARRAY_LEN(columns), false);
    for (uint32_t i = 0; i < t->thread_count; i++) {
        const struct record_thread *thread = &t->threads[i];
        if (!analysis_thread_is_known(t, i) || known++ >= LISTED_MAX)
            continue;
        struct profile_string name = t->strings[thread->name];
        struct view_cell cells[] = {{.count = thread->tid},
                                    {.count = t->processes[thread->process].pid},
                                    {.text = name.text, .len = name.len}};
        view_emit_row_begin(e, cells);
        view_emit_row_end(e);
    }
    view_emit_table_end(e);
    if (known > LISTED_MAX)
        view_emit_line(e, "… and %zu more threads", known - LISTED_MAX);
}

static void chunks_text(struct view_emit *e, const struct view_info *info)
{
    static const struct view_column columns[] = {
        {NULL, "chunk kind", VIEW_NAME, VIEW_ONLY_TEXT},
        {NULL, "chunks", VIEW_COUNT, VIEW_ONLY_TEXT},
        {NULL, "records", VIEW_COUNT, VIEW_ONLY_TEXT},
        {NULL, "stored", VIEW_BYTES, VIEW_ONLY_TEXT},
        {NULL, "raw", VIEW_BYTES, VIEW_ONLY_TEXT},
    };
    view_emit_line(e, "%s", "");
    view_emit_table_begin(e, "chunks", columns, ARRAY_LEN(columns), false);
    for (size_t i = 0; i < info->kind_count; i++) {
        const struct view_info_kind *k = &info->kinds[i];
        char number[16];
        snprintf(number, sizeof number, "kind %u", k->kind);
        const char *name = k->name ? k->name : number;
        struct view_cell cells[] = {{.text = name, .len = strlen(name)},
                                    {.count = k->chunks},
                                    {.count = k->records},
                                    {.real = (double)k->stored_bytes},
                                    {.real = (double)k->raw_bytes}};
        view_emit_row_begin(e, cells);
        view_emit_row_end(e);
    }
    view_emit_table_end(e);
}

/* What came from inside the program, if anything did. */
static void calls_text(struct view_emit *e, const struct view_info *info, struct buf *line)
{
    const struct profile *p = info->profile;
    if (info->call_records) {
        buf_clear(line);
        buf_printf(line, "%s, exact", view_units_count(info->calls).text);
        if (info->resumes)
            buf_printf(line, ", and %s resumes", view_units_count(info->resumes).text);
        buf_printf(line, ", in %s records", view_units_count(info->call_records).text);
        fact(e, "calls", buf_cstr(line));
    }
    if (info->memory.checkpoints) {
        buf_clear(line);
        buf_printf(line, "%s: %s allocations, ", memory_mode(&info->memory),
                   view_units_count(info->memory.allocations).text);
        buf_printf(line, "%s checkpoints", view_units_count(info->memory.checkpoints).text);
        buf_printf(line, " of %s site records", view_units_count(info->memory.site_records).text);
        fact(e, "allocations", buf_cstr(line));
    }
    double events = view_run_stat(p, RECORD_STAT_EVENTS);
    double waited = view_run_stat(p, RECORD_STAT_EVENT_WAIT_NS);
    if (events <= 0)
        return;
    buf_clear(line);
    buf_printf(line, "%s from inside the program", view_units_count((uint64_t)events).text);
    if (waited > 0)
        buf_printf(line, "; it waited for the recorder for %s, which is left out of all times",
                   view_units_seconds(waited / (double)NS_PER_SEC).text);
    fact(e, "events", buf_cstr(line));
}

static void print_text(struct view_emit *e, const struct view_info *info)
{
    const struct profile_tables *t = profile_tables(info->profile);
    struct buf line;
    buf_init(&line, LINE_BYTES_MAX);
    run_text(e, info, &line);
    buf_clear(&line);
    if (view_run_is_sampled(info->profile)) {
        buf_printf(&line, "%s in ", view_units_count(info->samples).text);
        buf_printf(&line, "%s run%s", view_units_count(info->sample_records).text,
                   info->sample_records == 1 ? "" : "s");
        double hz = view_run_achieved_hz(info->profile);
        if (hz > 0)
            buf_printf(&line, ", %.0f looks a second", hz);
        fact(e, "samples", buf_cstr(&line));
    }
    calls_text(e, info, &line);
    buf_clear(&line);
    view_run_losses(info->profile, info->damaged_chunks, &line);
    fact(e, "lost", line.len ? buf_cstr(&line) : "nothing");
    buf_release(&line);
    stats_text(e, info);
    processes_text(e, t);
    threads_text(e, t);
    chunks_text(e, info);
}

int view_info_print(const struct view_info *info, FILE *out, enum view_format format)
{
    struct view_emit e;
    view_emit_init(&e, out, format, view_style_of(out));
    if (view_emit_json(&e))
        print_json(view_emit_json(&e), info);
    else
        print_text(&e, info);
    return view_emit_finish(&e);
}
