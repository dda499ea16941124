#include "view/timeline.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "profile/events.h"
#include "view/run.h"

#include <errno.h>

struct profile_string view_timeline_name(const struct profile_tables *t, uint32_t code)
{
    const struct record_code *c = &t->codes[code];
    return t->strings[c->qualname].len ? t->strings[c->qualname] : t->strings[c->name];
}

unsigned view_timeline_hue(const struct profile_tables *t, uint32_t code)
{
    struct profile_string file = t->strings[t->codes[code].file];
    struct profile_string name = file.len ? file : view_timeline_name(t, code);
    return hash_bytes(name.text, name.len) % 360;
}

void view_timeline_thread(const struct profile_tables *t, uint32_t thread, struct buf *out)
{
    const struct record_thread *th = &t->threads[thread];
    size_t processes = 0;
    for (uint32_t i = 0; i < t->process_count && processes < 2; i++)
        processes += analysis_process_is_known(t, i);
    buf_clear(out);
    if (t->strings[th->name].len)
        buf_append(out, t->strings[th->name].text, t->strings[th->name].len);
    else
        buf_printf(out, "thread %u", th->tid);
    if (processes > 1)
        buf_printf(out, " [pid %u]", t->processes[th->process].pid);
}

void view_timeline_losses(const struct analysis_timeline *t, struct buf *out)
{
    struct buf words;
    buf_init(&words, 1 << 16);
    view_run_losses(t->profile, t->damaged, &words);
    if (words.len)
        buf_printf(out, "the recording: %s", buf_cstr(&words));
    buf_clear(&words);
    view_run_left_out(t->profile, &words);
    if (words.len)
        buf_printf(out, "%s%s", out->len ? "; " : "", buf_cstr(&words));
    buf_release(&words);
}

int view_timeline_functions(const struct analysis_timeline *t, uint32_t **ret_number,
                            uint32_t **ret_codes, size_t *ret_count)
{
    size_t total = profile_tables(t->profile)->code_count, count = 0;
    uint32_t *number = calloc(total + 1, sizeof *number), *codes = calloc(total + 1, sizeof *codes);
    if (!number || !codes) {
        free(number);
        free(codes);
        return E_NOMEM;
    }
    for (size_t i = 0; i < t->thread_count; i++)
        for (uint32_t d = 0; d < t->thread[i].boxes.used; d++) {
            const struct lod_row *row = &t->thread[i].boxes.rows.data[d];
            for (size_t k = 0; k < row->boxes.len; k++) {
                uint32_t code = row->boxes.data[k].code;
                if (number[code])
                    continue;
                codes[count++] = code;
                number[code] = (uint32_t)count; /* plus 1 until all are known */
            }
        }
    for (size_t i = 0; i < count; i++)
        number[codes[i]]--;
    *ret_number = number;
    *ret_codes = codes;
    *ret_count = count;
    return 0;
}

static void functions_json(struct json *j, const struct profile_tables *t, const uint32_t *codes,
                           size_t count)
{
    json_key(j, "functions");
    json_array_begin(j);
    for (size_t i = 0; i < count; i++) {
        const struct record_code *c = &t->codes[codes[i]];
        struct profile_string name = view_timeline_name(t, codes[i]), file = t->strings[c->file];
        json_object_begin(j);
        json_key(j, "name");
        json_text_n(j, name.text, name.len);
        json_key(j, "file");
        if (file.len)
            json_text_n(j, file.text, file.len);
        else
            json_null(j);
        json_kv_u64(j, "line", c->first_line);
        json_kv_u64(j, "hue", view_timeline_hue(t, codes[i]));
        json_object_end(j);
    }
    json_array_end(j);
}

/* A number of ns as seconds, exactly. Printed by hand: there may be a million of them. */
static void put_seconds(FILE *out, uint64_t ns)
{
    char text[24];
    size_t at = sizeof text;
    for (int i = 0; i < 9; i++, ns /= 10)
        text[--at] = (char)('0' + ns % 10);
    text[--at] = '.';
    do {
        text[--at] = (char)('0' + ns % 10);
        ns /= 10;
    } while (ns);
    fwrite(text + at, 1, sizeof text - at, out);
}

static void put_number(FILE *out, uint64_t v)
{
    char text[24];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    fwrite(text + at, 1, sizeof text - at, out);
}

const struct analysis_timeline_note *
view_timeline_notes(const struct analysis_timeline_thread *thread, uint32_t depth,
                    const struct record_box *box, size_t *at, size_t *ret_count)
{
    const struct analysis_timeline_note *all = thread->notes.data;
    while (
        *at < thread->notes.len &&
        (all[*at].depth < depth || (all[*at].depth == depth && all[*at].time_ns < box->begin_ns)))
        ++*at;
    size_t first = *at;
    while (*at < thread->notes.len && all[*at].depth == depth && all[*at].time_ns <= box->end_ns)
        ++*at;
    *ret_count = box->calls == 1 ? *at - first : 0;
    return *ret_count ? all + first : NULL;
}

struct profile_string view_timeline_note_text(const struct analysis_timeline_thread *thread,
                                              const struct analysis_timeline_note *note)
{
    const char *text = note->len ? (const char *)thread->note_text.data + note->at : "";
    return (struct profile_string){text, (uint32_t)note->len};
}

/* Of a single call: a seventh in its box. */
static void notes_json(struct json *j, const struct analysis_timeline_thread *thread,
                       const struct analysis_timeline_note *notes, size_t count)
{
    struct json object;
    json_init(&object, j->out);
    putc(',', j->out);
    json_object_begin(&object);
    for (size_t i = 0; i < count; i++) {
        json_key(&object, record_note_name(notes[i].kind));
        struct profile_string text = view_timeline_note_text(thread, &notes[i]);
        json_text_n(&object, text.text, text.len);
    }
    json_object_end(&object);
}

/* A row is an array of boxes, a box an array: begin, end, function, calls, covered, flags. `at` is the
 * thread's next note. */
static void row_json(struct json *j, const struct analysis_timeline_thread *thread, uint32_t depth,
                     const uint32_t *number, size_t *at)
{
    FILE *out = j->out;
    const struct lod_row *row = &thread->boxes.rows.data[depth];
    for (size_t k = 0; k < row->boxes.len; k++) {
        const struct record_box *b = &row->boxes.data[k];
        fputs(k ? ",[" : "[", out);
        put_seconds(out, b->begin_ns);
        putc(',', out);
        put_seconds(out, b->end_ns);
        putc(',', out);
        put_number(out, number[b->code]);
        putc(',', out);
        put_number(out, b->calls);
        putc(',', out);
        put_seconds(out, b->covered_ns);
        putc(',', out);
        put_number(out, b->flags);
        size_t count;
        const struct analysis_timeline_note *notes =
            view_timeline_notes(thread, depth, b, at, &count);
        if (count)
            notes_json(j, thread, notes, count);
        putc(']', out);
    }
}

/* The same of what the program told: the third is its name. */
static void told_json(struct json *j, const struct profile_tables *t, const struct lod_row *row)
{
    for (size_t k = 0; k < row->boxes.len; k++) {
        const struct record_box *b = &row->boxes.data[k];
        json_array_begin(j);
        json_real(j, (double)b->begin_ns / (double)NS_PER_SEC);
        json_real(j, (double)b->end_ns / (double)NS_PER_SEC);
        json_text_n(j, t->strings[b->code].text, t->strings[b->code].len);
        json_u64(j, b->calls);
        json_real(j, (double)b->covered_ns / (double)NS_PER_SEC);
        json_u64(j, b->flags);
        json_array_end(j);
    }
}

static void marks_json(struct json *j, const struct profile_tables *t,
                       const struct analysis_timeline_thread *thread)
{
    json_key(j, "spans");
    json_array_begin(j);
    for (uint32_t d = 0; d < thread->spans.used; d++) {
        json_array_begin(j);
        told_json(j, t, &thread->spans.rows.data[d]);
        json_array_end(j);
    }
    json_array_end(j);
    json_key(j, "marks");
    json_array_begin(j);
    for (size_t i = 0; thread->moments.used && i < thread->moments.rows.data[0].boxes.len; i++) {
        const struct record_box *b = &thread->moments.rows.data[0].boxes.data[i];
        json_array_begin(j);
        json_real(j, (double)b->begin_ns / (double)NS_PER_SEC);
        json_text_n(j, t->strings[b->code].text, t->strings[b->code].len);
        json_u64(j, b->calls);
        json_array_end(j);
    }
    json_array_end(j);
}

static void counters_json(struct json *j, const struct analysis_timeline *t,
                          const struct profile_tables *tables)
{
    json_key(j, "counters");
    json_array_begin(j);
    for (size_t i = 0; i < t->counter.len; i++) {
        const struct analysis_timeline_counter *c = &t->counter.data[i];
        json_object_begin(j);
        json_key(j, "name");
        json_text_n(j, tables->strings[c->name].text, tables->strings[c->name].len);
        json_kv_u64(j, "pid", tables->processes[c->process].pid);
        json_key(j, "points");
        json_array_begin(j);
        for (size_t k = 0; k < c->points.len; k++) {
            json_array_begin(j);
            json_real(j, (double)c->points.data[k].time_ns / (double)NS_PER_SEC);
            json_real(j, c->points.data[k].value);
            json_array_end(j);
        }
        json_array_end(j);
        json_object_end(j);
    }
    json_array_end(j);
}

static void thread_json(struct json *j, const struct profile_tables *t,
                        const struct analysis_timeline_thread *thread, const uint32_t *number)
{
    const struct record_thread *record = &t->threads[thread->thread];
    struct profile_string name = t->strings[record->name];
    json_object_begin(j);
    json_kv_u64(j, "tid", record->tid);
    json_kv_u64(j, "pid", t->processes[record->process].pid);
    json_key(j, "name");
    json_text_n(j, name.text, name.len);
    json_key(j, "rows");
    json_array_begin(j);
    size_t note = 0;
    for (uint32_t d = 0; d < thread->boxes.used; d++) {
        json_array_begin(j);
        row_json(j, thread, d, number, &note);
        json_array_end(j);
    }
    json_array_end(j);
    marks_json(j, t, thread);
    json_object_end(j);
}

static void put_json(const struct analysis_timeline *t, FILE *out, const uint32_t *number,
                     const uint32_t *codes, size_t count)
{
    const struct profile_tables *tables = profile_tables(t->profile);
    struct json j;
    json_init(&j, out);
    json_object_begin(&j);
    view_run_json(&j, t->profile);
    json_kv_real(&j, "from_seconds", (double)t->from_ns / (double)NS_PER_SEC);
    json_kv_real(&j, "to_seconds", (double)t->to_ns / (double)NS_PER_SEC);
    json_kv_real(&j, "pixel_seconds", (double)t->pixel_ns / (double)NS_PER_SEC);
    json_kv_bool(&j, "coarse", t->coarse);
    json_kv_u64(&j, "deepest_cut", t->deepest_cut);
    double left_out = view_run_stat(t->profile, RECORD_STAT_EVENTS_LEFT_OUT);
    json_kv_u64(&j, "calls_left_out", left_out > 0 ? (uint64_t)left_out : 0);
    json_kv_real(&j, "window_from_seconds",
                 (double)profile_window_start(t->profile) / (double)NS_PER_SEC);
    json_key(&j, "read");
    json_object_begin(&j);
    json_kv_u64(&j, "bytes", t->read_bytes);
    json_kv_u64(&j, "blocks", t->read_blocks);
    json_kv_u64(&j, "summaries", t->read_summaries);
    json_object_end(&j);
    view_run_losses_json(&j, t->profile, t->damaged);
    functions_json(&j, tables, codes, count);
    json_key(&j, "threads");
    json_array_begin(&j);
    for (size_t i = 0; i < t->thread_count; i++)
        thread_json(&j, tables, &t->thread[i], number);
    json_array_end(&j);
    counters_json(&j, t, tables);
    json_object_end(&j);
}

int view_timeline_json(const struct analysis_timeline *t, FILE *out)
{
    uint32_t *number, *codes;
    size_t count;
    int r = view_timeline_functions(t, &number, &codes, &count);
    if (r < 0)
        return r;
    errno = 0;
    put_json(t, out, number, codes, count);
    free(number);
    free(codes);
    putc('\n', out);
    if (fflush(out) != 0 || ferror(out))
        return errno ? err_from_errno(errno) : E_IO;
    return 0;
}
