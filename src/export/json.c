/* The whole profile as one JSON object: frames, the trie of stacks in columns, and for each thread
 * the stacks that it was seen in. docs/json.md says what the keys mean. */
#include "export/source.h"
#include "export/spool.h"
#include "profile/identity.h"

#include "base/err.h"

struct writing {
    const struct profile_tables *t;
    struct export_source *source;
    struct export_spool *spool;
    FILE *out;
    struct json json;
    struct buf buf;
    bool first;
};

static void write_heading(struct writing *w, const struct profile *profile)
{
    const struct analysis_weights *weights = &w->source->weights;
    struct json *j = &w->json;
    json_kv_text(j, "format", "pyrometer-profile");
    json_kv_u64(j, "version", 1);
    json_kv_text(j, "exporter", "pyrometer " PYROMETER_VERSION);
    json_key(j, "run");
    json_object_begin(j);
    profile_identity_json(j, profile);
    json_object_end(j);
    json_kv_text(j, "metric", weights->metric->name);
    json_kv_text(j, "unit", weights->metric->unit);
    json_kv_real(j, "scale", weights->metric->scale);
    json_kv_real(j, "total", (double)weights->total.weight * weights->metric->scale);
    json_kv_u64(j, "total_weight", weights->total.weight);
    json_kv_u64(j, "samples", weights->total.samples);
    json_kv_u64(j, "damaged_chunks",
                (uint64_t)weights->damaged_chunks + profile_summary(profile)->damaged_chunks);
}

static void write_frames(struct writing *w)
{
    const struct profile_tables *t = w->t;
    struct json *j = &w->json;
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = 0; i < t->code_count; i++) {
        const struct record_code *code = &t->codes[i];
        struct profile_string name = t->strings[code->qualname ? code->qualname : code->name];
        struct profile_string file = t->strings[code->file];
        json_object_begin(j);
        json_key(j, "name");
        json_text_n(j, name.text, name.len);
        json_key(j, "file");
        if (file.len)
            json_text_n(j, file.text, file.len);
        else
            json_null(j);
        json_key(j, "line");
        if (code->first_line)
            json_u64(j, code->first_line);
        else
            json_null(j);
        json_kv_bool(j, "special", code->flags & RECORD_CODE_SPECIAL);
        json_object_end(j);
    }
    json_array_end(j);
}

static int write_column(struct writing *w, const char *key, const uint32_t *column)
{
    int r = 0;
    json_key(&w->json, key);
    json_array_begin(&w->json);
    for (size_t i = 0; r == 0 && i < w->t->node_count; i++) {
        if (i)
            buf_put_u8(&w->buf, ',');
        export_put_u64(&w->buf, column[i]);
        r = export_drain(&w->buf, w->out, false);
    }
    if (r == 0)
        r = export_drain(&w->buf, w->out, true);
    json_array_end(&w->json);
    return r;
}

static int write_stacks(struct writing *w)
{
    json_key(&w->json, "stacks");
    json_object_begin(&w->json);
    int r = write_column(w, "parent", w->t->node_parent);
    if (r == 0)
        r = write_column(w, "frame", w->t->node_code);
    if (r == 0)
        r = write_column(w, "line", w->t->node_line);
    json_object_end(&w->json);
    return r;
}

static int write_records(void *ctx, const struct export_record *records, size_t n)
{
    struct writing *w = ctx;
    for (size_t i = 0; i < n; i++) {
        buf_puts(&w->buf, w->first ? "[" : ",[");
        w->first = false;
        export_put_u64(&w->buf, records[i].stack);
        buf_put_u8(&w->buf, ',');
        export_put_u64(&w->buf, records[i].weight.samples);
        buf_put_u8(&w->buf, ',');
        export_put_u64(&w->buf, records[i].weight.weight);
        buf_put_u8(&w->buf, ']');
    }
    return export_drain(&w->buf, w->out, false);
}

static int write_thread(struct writing *w, uint32_t thread)
{
    const struct record_thread *th = &w->t->threads[thread];
    struct profile_string name = w->t->strings[th->name];
    struct json *j = &w->json;
    json_object_begin(j);
    json_key(j, "name");
    json_text_n(j, name.text, name.len);
    json_kv_u64(j, "tid", th->tid);
    json_kv_u64(j, "pid", w->t->processes[th->process].pid);
    json_key(j, "samples");
    json_array_begin(j);
    w->first = true;
    int r = export_spool_each_stack(w->spool, thread, write_records, w);
    if (r == 0)
        r = export_drain(&w->buf, w->out, true);
    json_array_end(j);
    json_object_end(j);
    return r;
}

static int write_all(struct writing *w, const struct profile *profile)
{
    struct json *j = &w->json;
    json_init(j, w->out);
    json_object_begin(j);
    write_heading(w, profile);
    write_frames(w);
    int r = write_stacks(w);
    json_key(j, "threads");
    json_array_begin(j);
    for (uint32_t i = 0; r == 0 && i < w->t->thread_count; i++)
        if (export_spool_count(w->spool, i))
            r = write_thread(w, i);
    json_array_end(j);
    json_object_end(j);
    putc('\n', w->out);
    return r < 0 ? r : export_finish(w->out);
}

int export_json_write(const struct profile *profile, const struct export_options *options,
                      FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_FUNCTION, &source);
    if (r < 0)
        return r;
    struct writing w = {.t = profile_tables(profile), .source = &source, .out = out};
    buf_init(&w.buf, EXPORT_BUF_MAX);
    r = export_spool_new(profile, &source.query, &w.spool);
    if (r == 0)
        r = write_all(&w, profile);
    export_spool_free(w.spool);
    buf_release(&w.buf);
    export_source_release(&source);
    return r;
}
