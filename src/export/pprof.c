/* pprof's profile.proto, gzipped: https://github.com/google/pprof/blob/main/proto/profile.proto
 *
 * The wire format is written by hand (protobuf.h). Order does not matter to readers, so what is many
 * (samples) is streamed and tables follow.
 *
 * A sample is a stack in a thread, with two values: looks, and the metric in its integer. A
 * location is a line of a function. */
#include "base/err.h"
#include "base/idxmap.h"
#include "base/utf8.h"
#include "export/gzip.h"
#include "export/paths.h"
#include "export/protobuf.h"
#include "export/sites.h"
#include "export/source.h"
#include "export/spool.h"

/* Field numbers, from profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
    VALUE_TYPE_TYPE = 1,
    VALUE_TYPE_UNIT = 2,
    SAMPLE_LOCATION_ID = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_STR = 2,
    LABEL_NUM = 3,
    LOCATION_ID = 1,
    LOCATION_LINE = 4,
    LINE_FUNCTION_ID = 1,
    LINE_LINE = 2,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILENAME = 4,
    FUNCTION_START_LINE = 5,
};

/* The texts that are always there; the table's first is "" by law. */
enum { TEXT_EMPTY, TEXT_SAMPLES, TEXT_COUNT, TEXT_METRIC, TEXT_UNIT, TEXT_THREAD, TEXT_PID, TEXTS };

struct writing {
    const struct profile_tables *t;
    const struct export_source *source;
    struct export_sites sites;
    struct export_spool *spool;
    struct export_gzip *gzip;
    struct export_paths paths;
    struct buf buf;                   /* towards the compressor */
    struct buf message, inner;        /* under construction */
    struct buf labels;                /* of the current thread, complete fields */
    VEC(struct profile_string) texts; /* the string table; texts are borrowed */
    struct idxmap by_place;           /* of texts: equal ones are interned and so at equal places */
    VEC(char *) owned;                /* texts made here */
};

/* --- the wire --- */

/* What is not there is zero. */
static void put_number(struct buf *b, uint32_t field, uint64_t value)
{
    if (value)
        protobuf_put_number(b, field, value);
}

static int drain(struct writing *w, bool all)
{
    if (buf_error(&w->buf))
        return buf_error(&w->buf);
    if (!all && w->buf.len < EXPORT_CHUNK_BYTES)
        return 0;
    int r = export_gzip_write(w->gzip, w->buf.data, w->buf.len);
    buf_clear(&w->buf);
    return r;
}

/* --- strings --- */

static int text_id(struct writing *w, struct profile_string text, uint32_t *ret)
{
    if (!text.len) {
        *ret = TEXT_EMPTY;
        return 0;
    }
    uint32_t hash = hash_u64((uint64_t)(uintptr_t)text.text), at;
    IDXMAP_FIND(&w->by_place, hash, i, w->texts.data[i].text == text.text, at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)w->texts.len;
        struct profile_string *slot = vec_push(&w->texts);
        if (!slot || idxmap_insert(&w->by_place, hash, at) < 0)
            return E_NOMEM;
        *slot = text;
    }
    *ret = at;
    return 0;
}

static int add_fixed_texts(struct writing *w)
{
    const struct analysis_metric *m = w->source->query.metric;
    const char *unit = m->scale == 1e-9 ? "nanoseconds" : m->unit;
    const char *fixed[TEXTS] = {
        "",   w->source->weights.memory ? "blocks" : "samples", "count", m->name, unit, "thread",
        "pid"};
    for (size_t i = 0; i < TEXTS; i++) {
        struct profile_string *slot = vec_push(&w->texts);
        if (!slot)
            return E_NOMEM;
        *slot = (struct profile_string){fixed[i], (uint32_t)strlen(fixed[i])};
    }
    return 0;
}

/* Strings of the wire format are UTF-8. */
static void put_text(struct buf *b, struct profile_string text)
{
    for (uint32_t i = 0; i < text.len;) {
        uint32_t c;
        size_t n = utf8_decode(text.text + i, text.len - i, &c);
        if (n)
            buf_append(b, text.text + i, n);
        else
            buf_puts(b, "\xef\xbf\xbd");
        i += n ? (uint32_t)n : 1;
    }
}

static int put_strings(struct writing *w)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < w->texts.len; i++) {
        put_text(&w->message, w->texts.data[i]);
        protobuf_put_message(&w->buf, PROFILE_STRING_TABLE, &w->message);
        r = drain(w, false);
    }
    return r;
}

/* --- samples --- */

static void put_sample(struct writing *w, const uint32_t *id, size_t len,
                       struct analysis_weight weight)
{
    for (size_t i = 0; i < len; i++)
        buf_put_varint(&w->inner, (uint64_t)id[i] + 1);
    protobuf_put_message(&w->message, SAMPLE_LOCATION_ID, &w->inner);
    buf_put_varint(&w->inner, weight.samples);
    buf_put_varint(&w->inner, weight.weight);
    protobuf_put_message(&w->message, SAMPLE_VALUE, &w->inner);
    buf_append(&w->message, w->labels.data, w->labels.len);
    protobuf_put_message(&w->buf, PROFILE_SAMPLE, &w->message);
}

static int put_records(void *ctx, const struct export_record *records, size_t n)
{
    struct writing *w = ctx;
    int r = 0;
    for (size_t from = 0; r == 0 && from < n; from += EXPORT_PATHS) {
        size_t some = min_u64(n - from, EXPORT_PATHS);
        export_paths_fill(&w->paths, records + from, some);
        for (size_t i = 0; i < some; i++)
            put_sample(w, export_paths_ids(&w->paths, i), w->paths.len[i],
                       records[from + i].weight);
        r = drain(w, false);
    }
    return r;
}

static int make_labels(struct writing *w, uint32_t thread)
{
    const struct record_thread *th = &w->t->threads[thread];
    buf_clear(&w->labels);
    export_thread_name(w->t, thread, &w->inner);
    char *name = buf_detach(&w->inner);
    char **slot = name ? vec_push(&w->owned) : NULL;
    if (!slot) {
        free(name);
        return E_NOMEM;
    }
    *slot = name;
    uint32_t id;
    int r = text_id(w, (struct profile_string){name, (uint32_t)strlen(name)}, &id);
    if (r < 0)
        return r;
    put_number(&w->inner, LABEL_KEY, TEXT_THREAD);
    put_number(&w->inner, LABEL_STR, id);
    protobuf_put_message(&w->labels, SAMPLE_LABEL, &w->inner);
    put_number(&w->inner, LABEL_KEY, TEXT_PID);
    put_number(&w->inner, LABEL_NUM, w->t->processes[th->process].pid);
    protobuf_put_message(&w->labels, SAMPLE_LABEL, &w->inner);
    return buf_error(&w->labels);
}

static int put_samples(struct writing *w)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < w->t->thread_count; i++) {
        if (!export_spool_count(w->spool, i))
            continue;
        r = make_labels(w, i);
        if (r == 0)
            r = export_spool_each_stack(w->spool, i, put_records, w);
    }
    return r;
}

/* --- tables --- */

static void put_location(struct writing *w, uint64_t id, uint64_t function, uint32_t line)
{
    put_number(&w->inner, LINE_FUNCTION_ID, function);
    put_number(&w->inner, LINE_LINE, line);
    put_number(&w->message, LOCATION_ID, id);
    protobuf_put_message(&w->message, LOCATION_LINE, &w->inner);
    protobuf_put_message(&w->buf, PROFILE_LOCATION, &w->message);
}

static int put_locations(struct writing *w)
{
    int r = 0;
    size_t n = w->sites.site.len;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct export_site *site = &w->sites.site.data[i];
        put_location(w, i + 1, (uint64_t)site->row + 1, site->line);
        r = drain(w, false);
    }
    if (w->source->weights.node[RECORD_STACK_ROOT].samples)
        put_location(w, n + 1, w->source->rows.count, 0); /* the last row is its */
    return r;
}

static int put_functions(struct writing *w)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < w->source->rows.count; i++) {
        const struct analysis_row *row = &w->source->rows.row[i];
        uint32_t name = 0, file = 0;
        r = text_id(w, row->name, &name);
        if (r == 0)
            r = text_id(w, row->file, &file);
        if (r < 0)
            return r;
        put_number(&w->message, FUNCTION_ID, i + 1);
        put_number(&w->message, FUNCTION_NAME, name);
        put_number(&w->message, FUNCTION_SYSTEM_NAME, name);
        put_number(&w->message, FUNCTION_FILENAME, file);
        put_number(&w->message, FUNCTION_START_LINE, row->line);
        protobuf_put_message(&w->buf, PROFILE_FUNCTION, &w->message);
        r = drain(w, false);
    }
    return r;
}

static void put_value_type(struct writing *w, uint32_t type, uint32_t unit)
{
    put_number(&w->message, VALUE_TYPE_TYPE, type);
    put_number(&w->message, VALUE_TYPE_UNIT, unit);
    protobuf_put_message(&w->buf, PROFILE_SAMPLE_TYPE, &w->message);
}

static int put_heading(struct writing *w, const struct profile *profile)
{
    put_value_type(w, TEXT_SAMPLES, TEXT_COUNT);
    put_value_type(w, TEXT_METRIC, TEXT_UNIT);
    put_number(&w->buf, PROFILE_DEFAULT_SAMPLE_TYPE, TEXT_METRIC);
    put_number(&w->buf, PROFILE_TIME_NANOS, profile_summary(profile)->header.created_ns);
    if (w->t->stat_known[RECORD_STAT_ELAPSED_NS])
        put_number(&w->buf, PROFILE_DURATION_NANOS, w->t->stats.value[RECORD_STAT_ELAPSED_NS]);
    const char *command = profile_meta_value(profile, "command");
    if (!command || !*command)
        return 0;
    uint32_t id;
    int r = text_id(w, (struct profile_string){command, (uint32_t)strlen(command)}, &id);
    if (r == 0)
        put_number(&w->buf, PROFILE_COMMENT, id);
    return r;
}

static int write_all(struct writing *w, const struct profile *profile, FILE *out)
{
    int r = add_fixed_texts(w);
    if (r == 0)
        r = put_heading(w, profile);
    if (r == 0)
        r = put_samples(w);
    if (r == 0)
        r = put_locations(w);
    if (r == 0)
        r = put_functions(w);
    if (r == 0)
        r = put_strings(w);
    if (r == 0)
        r = drain(w, true);
    if (r == 0)
        r = export_gzip_finish(w->gzip);
    return r < 0 ? r : export_finish(out);
}

static void release(struct writing *w)
{
    export_gzip_free(w->gzip);
    export_spool_free(w->spool);
    export_sites_release(&w->sites);
    export_paths_release(&w->paths);
    buf_release(&w->buf);
    buf_release(&w->message);
    buf_release(&w->inner);
    buf_release(&w->labels);
    vec_release(&w->texts);
    idxmap_release(&w->by_place);
    for (size_t i = 0; i < w->owned.len; i++)
        free(w->owned.data[i]);
    vec_release(&w->owned);
}

int export_pprof_write(const struct profile *profile, const struct export_options *options,
                       FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_FUNCTION, &source);
    if (r < 0)
        return r;
    struct writing w = {.t = profile_tables(profile), .source = &source};
    buf_init(&w.buf, EXPORT_BUF_MAX);
    buf_init(&w.message, EXPORT_BUF_MAX);
    buf_init(&w.inner, EXPORT_BUF_MAX);
    buf_init(&w.labels, EXPORT_BUF_MAX);
    r = export_sites_init(&source.rows, &w.sites);
    if (r == 0)
        r = export_paths_init(&w.paths, w.t, w.sites.node_site, (uint32_t)w.sites.site.len);
    if (r == 0)
        r = export_spool_new(profile, &source.query, &w.spool);
    if (r == 0)
        r = export_gzip_new(out, &w.gzip);
    if (r == 0)
        r = write_all(&w, profile, out);
    release(&w);
    export_source_release(&source);
    return r;
}
