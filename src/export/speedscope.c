/* speedscope's file format: a table of frames and one "sampled" profile for each thread, in the
 * order of time, weighed in the metric's unit. https://www.speedscope.app/file-format-schema.json
 *
 * A frame is a function, so that speedscope's sandwich view adds it up. The samples of a thread and
 * their weights are two lists, which is why they are spooled: written one after the other, without
 * being in memory. */
#include "export/paths.h"
#include "export/source.h"
#include "export/spool.h"

#include "base/err.h"
#include "base/progress.h"

/* ",1234567890" and its length: a frame as it stands in a sample. Copied whole, whatever it holds,
 * so that writing a stack is a row of fixed moves. */
struct frame_text {
    char text[15];
    uint8_t len;
};

struct writing {
    const struct profile_tables *t;
    struct export_source *source;
    struct export_spool *spool;
    struct frame_text *frame; /* by row, and one more for what has no frame */
    FILE *out;
    struct json json;
    struct buf buf;
    struct export_paths paths;
    bool first;
};

static const char *unit_of(const struct analysis_metric *metric)
{
    return strcmp(metric->unit, "seconds") == 0 ? "seconds"
           : strcmp(metric->unit, "bytes") == 0 ? "bytes"
                                                : "none";
}

static void write_frames(struct writing *w)
{
    struct json *j = &w->json;
    const struct analysis_rows *rows = &w->source->rows;
    uint32_t next = 0;
    json_key(j, "shared");
    json_object_begin(j);
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = 0; i < rows->count; i++) {
        const struct analysis_row *row = &rows->row[i];
        if (!row->total.samples)
            continue; /* the query left nothing of it */
        json_object_begin(j);
        json_key(j, "name");
        json_text_n(j, row->name.text, row->name.len);
        if (row->file.len) {
            json_key(j, "file");
            json_text_n(j, row->file.text, row->file.len);
        }
        if (row->line)
            json_kv_u64(j, "line", row->line);
        json_object_end(j);
        struct frame_text *text = &w->frame[i];
        text->len = (uint8_t)snprintf(text->text, sizeof text->text, ",%u", next++);
    }
    if (rows->count) /* rows.h: if there are samples without a frame, theirs is the last row */
        w->frame[rows->count] = w->frame[rows->count - 1];
    json_array_end(j);
    json_object_end(j);
}

static int write_stack(struct writing *w, const uint32_t *id, size_t len)
{
    if (!buf_reserve(&w->buf, (len + 2) * sizeof w->frame->text))
        return buf_error(&w->buf);
    uint8_t *at = w->buf.data + w->buf.len;
    if (!w->first)
        *at++ = ',';
    w->first = false;
    uint8_t *bracket = at;
    for (size_t i = len; i-- > 0;) {
        const struct frame_text *frame = &w->frame[id[i]];
        memcpy(at, frame->text, sizeof frame->text);
        at += frame->len;
    }
    *bracket = '['; /* where the first comma was */
    *at++ = ']';
    w->buf.len = (size_t)(at - w->buf.data);
    return export_drain(&w->buf, w->out, false);
}

static int write_stacks(void *ctx, const struct export_record *records, size_t n)
{
    struct writing *w = ctx;
    progress_add(n);
    int r = 0;
    for (size_t from = 0; r == 0 && from < n; from += EXPORT_PATHS) {
        size_t some = min_u64(n - from, EXPORT_PATHS);
        export_paths_fill(&w->paths, records + from, some);
        for (size_t i = 0; r == 0 && i < some; i++)
            r = write_stack(w, export_paths_ids(&w->paths, i), w->paths.len[i]);
    }
    return r;
}

static int write_weights(void *ctx, const struct export_record *records, size_t n)
{
    struct writing *w = ctx;
    for (size_t i = 0; i < n; i++) {
        if (!w->first)
            buf_put_u8(&w->buf, ',');
        w->first = false;
        export_put_weight(&w->buf, w->source->query.metric, records[i].weight.weight);
    }
    return export_drain(&w->buf, w->out, false);
}

/* One of the two lists. Between begin and end the stream is ours: the JSON writer keeps nothing. */
static int write_list(struct writing *w, const char *key, uint32_t thread, export_spool_fn *fn)
{
    json_key(&w->json, key);
    json_array_begin(&w->json);
    w->first = true;
    int r = export_spool_each(w->spool, thread, fn, w);
    if (r == 0)
        r = export_drain(&w->buf, w->out, true);
    json_array_end(&w->json);
    return r;
}

static int write_thread(struct writing *w, uint32_t thread)
{
    const struct analysis_metric *metric = w->source->query.metric;
    struct json *j = &w->json;
    json_object_begin(j);
    json_kv_text(j, "type", "sampled");
    export_thread_name(w->t, thread, &w->buf);
    json_key(j, "name");
    json_text_n(j, (const char *)w->buf.data, w->buf.len);
    buf_clear(&w->buf);
    json_kv_text(j, "unit", unit_of(metric));
    json_kv_u64(j, "startValue", 0);
    json_kv_real(j, "endValue",
                 (double)export_spool_total(w->spool, thread).weight * metric->scale);
    int r = write_list(w, "samples", thread, write_stacks);
    if (r == 0)
        r = write_list(w, "weights", thread, write_weights);
    json_object_end(j);
    return r;
}

/* A recording without samples is still a file that opens. */
static void write_nothing(struct writing *w)
{
    struct json *j = &w->json;
    json_object_begin(j);
    json_kv_text(j, "type", "sampled");
    json_kv_text(j, "name", "no samples");
    json_kv_text(j, "unit", unit_of(w->source->query.metric));
    json_kv_u64(j, "startValue", 0);
    json_kv_u64(j, "endValue", 0);
    json_key(j, "samples");
    json_array_begin(j);
    json_array_end(j);
    json_key(j, "weights");
    json_array_begin(j);
    json_array_end(j);
    json_object_end(j);
}

static int write_all(struct writing *w, const struct profile *profile)
{
    struct json *j = &w->json;
    const char *command = profile_meta_value(profile, "command");
    json_init(j, w->out);
    json_object_begin(j);
    json_kv_text(j, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_kv_text(j, "exporter", "pyrometer " PYROMETER_VERSION);
    json_kv_text(j, "name", command ? command : profile_path(profile));
    json_kv_u64(j, "activeProfileIndex", 0);
    write_frames(w);
    json_key(j, "profiles");
    json_array_begin(j);
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < w->t->thread_count; i++)
        if (export_spool_count(w->spool, i))
            r = write_thread(w, i);
    if (!w->source->weights.total.samples)
        write_nothing(w);
    json_array_end(j);
    json_object_end(j);
    putc('\n', w->out);
    return r < 0 ? r : export_finish(w->out);
}

int export_speedscope_write(const struct profile *profile, const struct export_options *options,
                            FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_FUNCTION, &source);
    if (r < 0)
        return r;
    struct writing w = {.t = profile_tables(profile), .source = &source, .out = out};
    buf_init(&w.buf, EXPORT_BUF_MAX);
    w.frame = calloc(source.rows.count + 1, sizeof *w.frame);
    r = w.frame
            ? export_paths_init(&w.paths, w.t, source.rows.node_row, (uint32_t)source.rows.count)
            : E_NOMEM;
    if (r == 0)
        r = export_spool_new(profile, &source.query, &w.spool);
    if (r == 0)
        r = write_all(&w, profile);
    export_spool_free(w.spool);
    export_paths_release(&w.paths);
    buf_release(&w.buf);
    free(w.frame);
    export_source_release(&source);
    return r;
}
