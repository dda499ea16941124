/* Chrome's trace event format: JSON with a complete event ("X") for each call, in µs, and the names of
 * processes and threads as metadata ("M"). chrome://tracing, Perfetto's viewer, speedscope.
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU */
#include "export/slices.h"

#include "base/err.h"

#include <math.h>

enum { CHROME_MAX_CALLS = 1000000 }; /* where chrome://tracing gives up */

struct chrome {
    const struct profile_tables *t;
    const struct analysis_query *query;
    uint64_t spans; /* so far: their ids */
    FILE *out;
    struct buf buf;
    struct buf *names; /* by code: the name as JSON; made when it is met */
    struct buf *files; /* by code: "path:line" as JSON; made with the name, empty without a file */
};

/* JSON text into a buffer; what is not UTF-8 as U+FFFD. */
static int quote(struct profile_string text, struct buf *out)
{
    char *data = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&data, &len);
    if (!memory)
        return E_NOMEM;
    struct json j;
    json_init(&j, memory);
    json_text_n(&j, text.text, text.len);
    int r = fclose(memory) == 0 ? 0 : E_NOMEM;
    buf_init(out, EXPORT_BUF_MAX);
    if (r == 0)
        buf_append(out, data, len);
    free(data);
    return r < 0 ? r : buf_error(out);
}

static int quote_place(struct chrome *c, uint32_t code)
{
    struct profile_string file;
    uint32_t line;
    if (!export_slices_place(c->t, code, &file, &line))
        return 0;
    struct buf text;
    buf_init(&text, EXPORT_BUF_MAX);
    buf_append(&text, file.text, file.len);
    if (line)
        buf_printf(&text, ":%u", line);
    int r = buf_error(&text);
    if (r == 0)
        r = quote((struct profile_string){buf_cstr(&text), (uint32_t)text.len}, &c->files[code]);
    buf_release(&text);
    return r;
}

static int name_of(struct chrome *c, uint32_t code, const struct buf **ret)
{
    struct buf *name = &c->names[code];
    *ret = name;
    if (name->len)
        return 0;
    int r = quote(export_slices_name(c->t, code), name);
    return r < 0 ? r : quote_place(c, code);
}

/* ns as µs with three places. */
static void put_us(struct buf *b, uint64_t ns)
{
    export_put_u64(b, ns / 1000);
    const char part[] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
                         (char)('0' + ns % 10)};
    buf_append(b, part, sizeof part);
}

static const char *end_text(const struct export_slice *s)
{
    if (s->unfinished)
        return "not seen";
    switch (s->ended) {
    case RECORD_EVENT_RAISE:
        return "exception";
    case RECORD_EVENT_SUSPEND:
        return "suspended";
    case RECORD_EVENT_LOST:
        return "lost";
    default:
        return NULL;
    }
}

/* Where the function stands, how it ended, if not by returning, and what is known of it. Viewers show
 * these when the slice is selected. */
static int put_args(struct buf *b, const struct buf *file, const struct export_slice *s)
{
    const char *end = end_text(s), *comma = "";
    if (!end && !s->notes && !s->cut && !file->len)
        return 0;
    buf_puts(b, ",\"args\":{");
    if (file->len) {
        buf_puts(b, "\"file\":");
        buf_append(b, file->data, file->len);
        comma = ",";
    }
    if (s->cut) {
        buf_printf(b, "%s\"begin\":\"earlier\"", comma);
        comma = ",";
    }
    if (end) {
        buf_printf(b, "%s\"end\":\"%s\"", comma, end);
        comma = ",";
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->notes; i++, comma = ",") {
        struct buf text = {0};
        r = quote(s->note[i].text, &text);
        buf_printf(b, "%s\"%s\":", comma, s->note[i].name);
        buf_append(b, text.data, text.len);
        buf_release(&text);
    }
    buf_put_u8(b, '}');
    return r;
}

static int put_slice(void *ctx, const struct export_slice *s)
{
    struct chrome *c = ctx;
    const struct record_thread *thread = &c->t->threads[s->thread];
    const struct buf *name;
    int r = name_of(c, s->code, &name);
    if (r < 0)
        return r;
    struct buf *b = &c->buf;
    buf_puts(b, ",\n{\"ph\":\"X\",\"cat\":\"");
    buf_puts(b, c->t->codes[s->code].flags & RECORD_CODE_C ? "c" : "python");
    buf_puts(b, "\",\"name\":");
    buf_append(b, name->data, name->len);
    buf_puts(b, ",\"pid\":");
    export_put_u64(b, c->t->processes[thread->process].pid);
    buf_puts(b, ",\"tid\":");
    export_put_u64(b, thread->tid);
    buf_puts(b, ",\"ts\":");
    put_us(b, s->begin_ns);
    buf_puts(b, ",\"dur\":");
    put_us(b, s->end_ns - s->begin_ns);
    r = put_args(b, &c->files[s->code], s);
    buf_put_u8(b, '}');
    return r < 0 ? r : export_drain(b, c->out, false);
}

/* The beginning of an event that the program told. */
static int put_told(struct chrome *c, const char *head, uint32_t name, uint32_t thread, uint64_t ns)
{
    const struct record_thread *record = &c->t->threads[thread];
    struct buf text = {0};
    int r = quote(c->t->strings[name], &text);
    struct buf *b = &c->buf;
    buf_puts(b, ",\n{");
    buf_puts(b, head);
    buf_puts(b, ",\"name\":");
    buf_append(b, text.data, text.len);
    buf_printf(b, ",\"pid\":%u,\"tid\":%u,\"ts\":", c->t->processes[record->process].pid,
               record->tid);
    put_us(b, ns);
    buf_release(&text);
    return r;
}

/* A moment is an instant event. A span begins and ends inside of calls, so it is an asynchronous event:
 * one that need not nest. */
static int put_mark(void *ctx, const struct record_mark *m)
{
    struct chrome *c = ctx;
    if (!export_slices_takes(c->t, c->query, m->thread, m->start_ns))
        return 0;
    if (m->kind == RECORD_MARK_MOMENT) {
        int r = put_told(c, "\"ph\":\"i\",\"s\":\"t\",\"cat\":\"mark\"", m->name, m->thread,
                         m->start_ns);
        buf_put_u8(&c->buf, '}');
        return r < 0 ? r : export_drain(&c->buf, c->out, false);
    }
    c->spans++;
    int r = put_told(c, "\"ph\":\"b\",\"cat\":\"span\"", m->name, m->thread, m->start_ns);
    buf_printf(&c->buf, ",\"id\":%ju}", (uintmax_t)c->spans);
    if (r == 0)
        r = put_told(c, "\"ph\":\"e\",\"cat\":\"span\"", m->name, m->thread,
                     m->start_ns + m->duration_ns);
    buf_printf(&c->buf, ",\"id\":%ju}", (uintmax_t)c->spans);
    return r < 0 ? r : export_drain(&c->buf, c->out, false);
}

static int put_counter(void *ctx, const struct record_counter *k)
{
    struct chrome *c = ctx;
    if (!export_slices_takes(c->t, c->query, k->thread, k->time_ns))
        return 0;
    int r = put_told(c, "\"ph\":\"C\"", k->name, k->thread, k->time_ns);
    if (isfinite(k->value))
        buf_printf(&c->buf, ",\"args\":{\"value\":%.17g}}", k->value);
    else
        buf_puts(&c->buf, ",\"args\":{}}"); /* JSON has no word for it */
    return r < 0 ? r : export_drain(&c->buf, c->out, false);
}

static int put_name(struct chrome *c, const char *what, uint32_t pid, uint32_t tid,
                    struct profile_string text)
{
    struct buf name = {0};
    int r = quote(text, &name);
    buf_printf(&c->buf,
               "%s\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":",
               c->buf.len ? "," : "", what, pid, tid);
    buf_append(&c->buf, name.data, name.len);
    buf_puts(&c->buf, "}}");
    buf_release(&name);
    return r;
}

static int put_names(struct chrome *c, const struct profile *profile,
                     const struct analysis_query *query)
{
    uint8_t *mark;
    struct buf text;
    int r = export_slices_threads(profile, query, &mark);
    if (r < 0)
        return r;
    buf_init(&text, EXPORT_BUF_MAX);
    for (uint32_t i = 0; r == 0 && i < c->t->thread_count; i++) {
        if (!mark[i])
            continue;
        const struct record_thread *thread = &c->t->threads[i];
        const struct record_process *process = &c->t->processes[thread->process];
        export_thread_name(c->t, i, &text);
        r = put_name(c, "process_name", process->pid, thread->tid, c->t->strings[process->command]);
        if (r == 0)
            r = put_name(c, "thread_name", process->pid, thread->tid,
                         (struct profile_string){buf_cstr(&text), (uint32_t)text.len});
    }
    buf_release(&text);
    free(mark);
    return r;
}

static void put_head(const struct export_options *options, FILE *out)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":", out);
    struct json j;
    json_init(&j, out);
    json_object_begin(&j);
    json_kv_text(&j, "exporter", "pyrometer " PYROMETER_VERSION);
    if (options->losses)
        json_kv_text(&j, "lost", options->losses);
    json_object_end(&j);
    fputs(",\"traceEvents\":[", out);
}

int export_chrome_write(const struct profile *profile, const struct export_options *options,
                        FILE *out)
{
    static const struct export_slices_visitor visitor = {.end = put_slice};
    static const struct profile_mark_visitor marks = {.mark = put_mark, .counter = put_counter};
    struct chrome c = {.t = profile_tables(profile), .query = &options->query, .out = out};
    buf_init(&c.buf, EXPORT_BUF_MAX);
    c.names = calloc(c.t->code_count + 1, sizeof *c.names);
    c.files = calloc(c.t->code_count + 1, sizeof *c.files);
    int r = c.names && c.files ? 0 : E_NOMEM;
    put_head(options, out);
    if (r == 0)
        r = put_names(&c, profile, &options->query);
    if (r == 0)
        r = export_slices_each(profile, options, CHROME_MAX_CALLS, &visitor, &c);
    if (r == 0)
        r = profile_each_mark(profile, &marks, &c);
    if (r == 0)
        r = export_drain(&c.buf, out, true);
    fputs("\n]}\n", out);
    for (size_t i = 0; c.names && i < c.t->code_count; i++)
        buf_release(&c.names[i]);
    for (size_t i = 0; c.files && i < c.t->code_count; i++)
        buf_release(&c.files[i]);
    free(c.names);
    free(c.files);
    buf_release(&c.buf);
    return r < 0 ? r : export_finish(out);
}
