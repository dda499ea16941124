/* Perfetto's trace format: protobuf, written by hand. https://perfetto.dev/docs/reference/trace-packet-proto
 *
 * A Trace is a row of TracePackets. Each thread is a sequence of its own: its first packet sets a clock
 * whose times are the distance from the packet before, and the thread's track as the default, so that
 * a begin or an end is a dozen bytes. Names and places in files are interned, once in each sequence,
 * when first used. */
#include "export/slices.h"

#include "base/err.h"
#include "base/vec.h"
#include "export/protobuf.h"

enum {
    PERFETTO_MAX_CALLS = 8000000
}; /* about what fits the 2 GB that the viewer has in a browser */

/* Numbers of fields, by message. */
enum {
    TRACE_PACKET = 1,
    PACKET_CHROME_EVENTS = 5,
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
    DEFAULTS_TRACK_EVENT = 11,
    DEFAULTS_CLOCK = 58,
    SNAPSHOT_CLOCKS = 1,
    CLOCK_ID = 1,
    CLOCK_TIMESTAMP = 2,
    CLOCK_INCREMENTAL = 3,
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_COUNTER = 8,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
    EVENT_CATEGORIES = 3,
    EVENT_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_NAME_TEXT = 23,
    EVENT_LOCATION = 34,
    EVENT_DOUBLE_VALUE = 44,
    INTERNED_CATEGORIES = 1,
    INTERNED_NAMES = 2,
    INTERNED_LOCATIONS = 4,
    NAME_IID = 1,
    NAME_TEXT = 2,
    LOCATION_IID = 1,
    LOCATION_FILE = 2,
    LOCATION_FUNCTION = 3,
    LOCATION_LINE = 4,
    CHROME_METADATA = 2,
    METADATA_NAME = 1,
    METADATA_TEXT = 2,
    ANNOTATION_TEXT = 6,
    ANNOTATION_NAME = 10,
};
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 };
enum { BUILTIN_CLOCK_BOOTTIME = 6, SEQUENCE_CLOCK = 64 };
enum { CATEGORY_PYTHON = 1, CATEGORY_C = 2 };

/* What a thread's sequence has said so far. */
struct sequence {
    bool begun;
    uint64_t last_ns;
    VEC(uint8_t) named; /* by code */
};

struct perfetto {
    const struct profile_tables *t;
    const struct analysis_query *query;
    VEC(struct record_mark) spans;
    VEC(uint8_t) counter_track; /* by name: it has one */
    FILE *out;
    struct buf buf, packet, message, inner;
    struct sequence *sequence; /* by thread */
};

/* protobuf wants UTF-8: control characters and other bytes are replaced. */
static void put_text(struct buf *b, unsigned field, struct profile_string text)
{
    struct buf line;
    buf_init(&line, 1 << 20);
    export_put_line(&line, text, 1 << 16);
    protobuf_put_bytes(b, field, line.data, line.len);
    buf_release(&line);
}

static int end_packet(struct perfetto *p, uint32_t thread)
{
    protobuf_put_number(&p->packet, PACKET_SEQUENCE_ID, (uint64_t)thread + 1);
    protobuf_put_message(&p->buf, TRACE_PACKET, &p->packet);
    return export_drain(&p->buf, p->out, false);
}

static uint64_t process_track(uint32_t process)
{
    return (uint64_t)process << 1 | 1ull << 40;
}

static uint64_t thread_track(uint32_t thread)
{
    return (uint64_t)thread << 1 | 1ull << 41;
}

/* The format's place for facts about a trace is Chrome's: viewers list them with its other metadata. */
static int put_losses(struct perfetto *p, const char *losses)
{
    static const char name[] = "lost";
    protobuf_put_bytes(&p->inner, METADATA_NAME, name, strlen(name));
    protobuf_put_bytes(&p->inner, METADATA_TEXT, losses, strlen(losses));
    protobuf_put_message(&p->message, CHROME_METADATA, &p->inner);
    protobuf_put_message(&p->packet, PACKET_CHROME_EVENTS, &p->message);
    return end_packet(p, (uint32_t)p->t->thread_count); /* no thread's */
}

/* --- tracks --- */

static int put_process(struct perfetto *p, uint32_t thread, uint32_t process)
{
    const struct record_process *record = &p->t->processes[process];
    protobuf_put_number(&p->inner, PROCESS_PID, record->pid);
    put_text(&p->inner, PROCESS_NAME, p->t->strings[record->command]);
    protobuf_put_number(&p->message, TRACK_UUID, process_track(process));
    protobuf_put_message(&p->message, TRACK_PROCESS, &p->inner);
    protobuf_put_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    return end_packet(p, thread);
}

static int put_thread(struct perfetto *p, uint32_t thread)
{
    const struct record_thread *record = &p->t->threads[thread];
    struct buf name;
    buf_init(&name, 1 << 20);
    export_thread_name(p->t, thread, &name);
    protobuf_put_number(&p->inner, THREAD_PID, p->t->processes[record->process].pid);
    protobuf_put_number(&p->inner, THREAD_TID, record->tid);
    put_text(&p->inner, THREAD_NAME, (struct profile_string){buf_cstr(&name), (uint32_t)name.len});
    buf_release(&name);
    protobuf_put_number(&p->message, TRACK_UUID, thread_track(thread));
    protobuf_put_number(&p->message, TRACK_PARENT, process_track(record->process));
    protobuf_put_message(&p->message, TRACK_THREAD, &p->inner);
    protobuf_put_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    return end_packet(p, thread);
}

static int put_tracks(struct perfetto *p, const struct profile *profile,
                      const struct analysis_query *query)
{
    uint8_t *mark = NULL, *done = calloc(p->t->process_count + 1, 1);
    if (!done)
        return E_NOMEM;
    int r = export_slices_threads(profile, query, &mark);
    for (uint32_t i = 0; r == 0 && i < p->t->thread_count; i++) {
        uint32_t process = p->t->threads[i].process;
        if (!mark[i])
            continue;
        if (!done[process]++)
            r = put_process(p, i, process);
        if (r == 0)
            r = put_thread(p, i);
    }
    free(mark);
    free(done);
    return r;
}

/* --- events --- */

static void put_clock(struct buf *snapshot, struct buf *clock, uint64_t id, uint64_t ns,
                      bool incremental)
{
    protobuf_put_number(clock, CLOCK_ID, id);
    protobuf_put_number(clock, CLOCK_TIMESTAMP, ns);
    if (incremental)
        protobuf_put_number(clock, CLOCK_INCREMENTAL, 1);
    protobuf_put_message(snapshot, SNAPSHOT_CLOCKS, clock);
}

static void put_interned(struct perfetto *p, unsigned field, uint64_t iid,
                         struct profile_string text)
{
    protobuf_put_number(&p->inner, NAME_IID, iid);
    put_text(&p->inner, NAME_TEXT, text);
    protobuf_put_message(&p->message, field, &p->inner);
}

/* The name of a function, and where it stands. */
static void put_function(struct perfetto *p, uint32_t code)
{
    struct profile_string name = export_slices_name(p->t, code), file;
    uint32_t line;
    put_interned(p, INTERNED_NAMES, (uint64_t)code + 1, name);
    if (export_slices_place(p->t, code, &file, &line)) {
        protobuf_put_number(&p->inner, LOCATION_IID, (uint64_t)code + 1);
        put_text(&p->inner, LOCATION_FILE, file);
        put_text(&p->inner, LOCATION_FUNCTION, name);
        if (line)
            protobuf_put_number(&p->inner, LOCATION_LINE, line);
        protobuf_put_message(&p->message, INTERNED_LOCATIONS, &p->inner);
    }
    protobuf_put_message(&p->packet, PACKET_INTERNED_DATA, &p->message);
}

/* The first packet of a sequence: its clock, its track, its categories. */
static int begin_sequence(struct perfetto *p, uint32_t thread, uint64_t ns)
{
    struct sequence *s = &p->sequence[thread];
    protobuf_put_number(&p->packet, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
    protobuf_put_number(&p->inner, EVENT_TRACK, thread_track(thread));
    protobuf_put_number(&p->message, DEFAULTS_CLOCK, SEQUENCE_CLOCK);
    protobuf_put_message(&p->message, DEFAULTS_TRACK_EVENT, &p->inner);
    protobuf_put_message(&p->packet, PACKET_DEFAULTS, &p->message);
    put_clock(&p->message, &p->inner, SEQUENCE_CLOCK, ns, true);
    put_clock(&p->message, &p->inner, BUILTIN_CLOCK_BOOTTIME, ns, false);
    protobuf_put_message(&p->packet, PACKET_CLOCK_SNAPSHOT, &p->message);
    put_interned(p, INTERNED_CATEGORIES, CATEGORY_PYTHON, (struct profile_string){"python", 6});
    put_interned(p, INTERNED_CATEGORIES, CATEGORY_C, (struct profile_string){"c", 1});
    protobuf_put_message(&p->packet, PACKET_INTERNED_DATA, &p->message);
    s->begun = true;
    s->last_ns = ns;
    return end_packet(p, thread);
}

static bool is_new_name(struct sequence *s, uint32_t code)
{
    while (s->named.len <= code)
        if (!vec_push(&s->named))
            return true; /* it is only said once more */
    bool is_new = !s->named.data[code];
    s->named.data[code] = 1;
    return is_new;
}

static int put_event(struct perfetto *p, const struct export_slice *slice, unsigned type,
                     uint64_t ns)
{
    struct sequence *s = &p->sequence[slice->thread];
    int r = s->begun ? 0 : begin_sequence(p, slice->thread, ns);
    if (r < 0)
        return r;
    protobuf_put_number(&p->packet, PACKET_TIMESTAMP, ns - s->last_ns);
    s->last_ns = ns;
    protobuf_put_number(&p->packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
    protobuf_put_number(&p->message, EVENT_TYPE, type);
    if (type == TYPE_BEGIN) {
        bool is_c = p->t->codes[slice->code].flags & RECORD_CODE_C;
        protobuf_put_number(&p->message, EVENT_CATEGORIES, is_c ? CATEGORY_C : CATEGORY_PYTHON);
        protobuf_put_number(&p->message, EVENT_NAME, (uint64_t)slice->code + 1);
        struct profile_string file;
        uint32_t line;
        if (export_slices_place(p->t, slice->code, &file, &line))
            protobuf_put_number(&p->message, EVENT_LOCATION, (uint64_t)slice->code + 1);
    }
    size_t first = type == TYPE_BEGIN ? 0 : slice->begin_notes;
    size_t end = type == TYPE_BEGIN ? slice->begin_notes : slice->notes;
    for (size_t i = first; i < end; i++) {
        const struct export_note *note = &slice->note[i];
        protobuf_put_bytes(&p->inner, ANNOTATION_NAME, note->name, strlen(note->name));
        put_text(&p->inner, ANNOTATION_TEXT, note->text);
        protobuf_put_message(&p->message, EVENT_ANNOTATIONS, &p->inner);
    }
    protobuf_put_message(&p->packet, PACKET_TRACK_EVENT, &p->message);
    if (type == TYPE_BEGIN && is_new_name(s, slice->code))
        put_function(p, slice->code);
    return end_packet(p, slice->thread);
}

static int on_begin(void *ctx, const struct export_slice *slice)
{
    return put_event(ctx, slice, TYPE_BEGIN, slice->begin_ns);
}

static int on_end(void *ctx, const struct export_slice *slice)
{
    return put_event(ctx, slice, TYPE_END, slice->end_ns);
}

/* --- what the program told: a sequence of its own, with times as they are --- */

static int end_told(struct perfetto *p)
{
    return end_packet(p, (uint32_t)p->t->thread_count);
}

static bool is_first(uint8_t *mark)
{
    bool first = !*mark;
    *mark = 1;
    return first;
}

static uint64_t span_track(uint32_t thread, uint32_t lane)
{
    return (uint64_t)thread << 1 | 1ull << 42 | (uint64_t)lane << 44;
}

static uint64_t counter_track(uint32_t name)
{
    return (uint64_t)name << 1 | 1ull << 43;
}

static int put_track(struct perfetto *p, uint64_t uuid, uint64_t parent, struct profile_string name,
                     bool counter)
{
    protobuf_put_number(&p->message, TRACK_UUID, uuid);
    protobuf_put_number(&p->message, TRACK_PARENT, parent);
    put_text(&p->message, TRACK_NAME, name);
    if (counter)
        protobuf_put_message(&p->message, TRACK_COUNTER, &p->inner); /* empty: it is one */
    protobuf_put_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->message);
    return end_told(p);
}

static int put_told(struct perfetto *p, unsigned type, uint64_t track, uint64_t ns,
                    struct profile_string name)
{
    protobuf_put_number(&p->packet, PACKET_TIMESTAMP, ns);
    protobuf_put_number(&p->message, EVENT_TYPE, type);
    protobuf_put_number(&p->message, EVENT_TRACK, track);
    if (type != TYPE_END)
        put_text(&p->message, EVENT_NAME_TEXT, name);
    protobuf_put_message(&p->packet, PACKET_TRACK_EVENT, &p->message);
    return end_told(p);
}

static int on_mark(void *ctx, const struct record_mark *m)
{
    struct perfetto *p = ctx;
    struct profile_string name = p->t->strings[m->name];
    if (!export_slices_takes(p->t, p->query, m->thread, m->start_ns))
        return 0;
    if (m->kind == RECORD_MARK_MOMENT)
        return put_told(p, TYPE_INSTANT, thread_track(m->thread), m->start_ns, name);
    struct record_mark *span = vec_push(&p->spans);
    if (!span)
        return E_NOMEM;
    *span = *m;
    return 0;
}

/* By thread, then by their begin, the longer first: what is inside of others comes after them. */
static int compare_spans(const void *a, const void *b)
{
    const struct record_mark *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->duration_ns > y->duration_ns ? -1 : x->duration_ns < y->duration_ns;
}

/* A track of spans: what ends on it is what has begun last, so they have to be inside of each other. Those of several tasks are
 * not: the ones that do not fit go to the next lane. */
struct lane {
    VEC(uint64_t) open; /* their ends */
};
enum { MAX_LANES = 1 << 12 };
typedef VEC(struct lane) lane_vec;

static bool fits(struct lane *l, const struct record_mark *m)
{
    while (l->open.len && l->open.data[l->open.len - 1] <= m->start_ns)
        l->open.len--;
    return !l->open.len || l->open.data[l->open.len - 1] >= m->start_ns + m->duration_ns;
}

static int put_span(struct perfetto *p, const struct record_mark *m, lane_vec *lanes)
{
    size_t at = 0;
    while (at < lanes->len && at < MAX_LANES - 1 && !fits(&lanes->data[at], m))
        at++;
    uint64_t track = span_track(m->thread, (uint32_t)at);
    int r = 0;
    if (at == lanes->len) {
        struct lane *fresh = vec_push(lanes);
        if (!fresh)
            return E_NOMEM;
        *fresh = (struct lane){0};
        r = put_track(p, track, thread_track(m->thread), (struct profile_string){"spans", 5},
                      false);
    }
    uint64_t end = m->start_ns + m->duration_ns, *slot = vec_push(&lanes->data[at].open);
    if (!slot)
        return E_NOMEM;
    *slot = end;
    if (r == 0)
        r = put_told(p, TYPE_BEGIN, track, m->start_ns, p->t->strings[m->name]);
    return r < 0 ? r : put_told(p, TYPE_END, track, end, p->t->strings[m->name]);
}

static void drop_lanes(lane_vec *lanes)
{
    for (size_t i = 0; i < lanes->len; i++)
        vec_release(&lanes->data[i].open);
    lanes->len = 0;
}

static int put_spans(struct perfetto *p)
{
    lane_vec lanes = {0}; /* of the thread */
    int r = 0;
    if (p->spans.len)
        qsort(p->spans.data, p->spans.len, sizeof *p->spans.data, compare_spans);
    for (size_t i = 0; r == 0 && i < p->spans.len; i++) {
        if (i && p->spans.data[i].thread != p->spans.data[i - 1].thread)
            drop_lanes(&lanes);
        r = put_span(p, &p->spans.data[i], &lanes);
    }
    drop_lanes(&lanes);
    vec_release(&lanes);
    return r;
}

static int on_counter(void *ctx, const struct record_counter *k)
{
    struct perfetto *p = ctx;
    uint64_t track = counter_track(k->name), bits;
    int r = 0;
    if (!export_slices_takes(p->t, p->query, k->thread, k->time_ns))
        return 0;
    if (is_first(&p->counter_track.data[k->name]))
        r = put_track(p, track, process_track(p->t->threads[k->thread].process),
                      p->t->strings[k->name], true);
    protobuf_put_number(&p->packet, PACKET_TIMESTAMP, k->time_ns);
    protobuf_put_number(&p->message, EVENT_TYPE, TYPE_COUNTER);
    protobuf_put_number(&p->message, EVENT_TRACK, track);
    memcpy(&bits, &k->value, sizeof bits);
    protobuf_put_key(&p->message, EVENT_DOUBLE_VALUE, PROTOBUF_FIXED64);
    buf_append(&p->message, &bits, sizeof bits);
    protobuf_put_message(&p->packet, PACKET_TRACK_EVENT, &p->message);
    return r < 0 ? r : end_told(p);
}

static int put_marks(struct perfetto *p, const struct profile *profile)
{
    static const struct profile_mark_visitor visitor = {.mark = on_mark, .counter = on_counter};
    if (!vec_reserve(&p->counter_track, p->t->string_count + 1))
        return E_NOMEM;
    memset(p->counter_track.data, 0, p->t->string_count + 1);
    int r = profile_each_mark(profile, &visitor, p);
    return r < 0 ? r : put_spans(p);
}

int export_perfetto_write(const struct profile *profile, const struct export_options *options,
                          FILE *out)
{
    static const struct export_slices_visitor visitor = {.begin = on_begin, .end = on_end};
    struct perfetto p = {.t = profile_tables(profile), .query = &options->query, .out = out};
    buf_init(&p.buf, EXPORT_BUF_MAX);
    buf_init(&p.packet, EXPORT_BUF_MAX);
    buf_init(&p.message, EXPORT_BUF_MAX);
    buf_init(&p.inner, EXPORT_BUF_MAX);
    p.sequence = calloc(p.t->thread_count + 1, sizeof *p.sequence);
    int r = p.sequence ? put_tracks(&p, profile, &options->query) : E_NOMEM;
    if (r == 0 && options->losses)
        r = put_losses(&p, options->losses);
    if (r == 0)
        r = export_slices_each(profile, options, PERFETTO_MAX_CALLS, &visitor, &p);
    if (r == 0)
        r = put_marks(&p, profile);
    if (r == 0)
        r = export_drain(&p.buf, out, true);
    for (size_t i = 0; p.sequence && i < p.t->thread_count; i++)
        vec_release(&p.sequence[i].named);
    free(p.sequence);
    vec_release(&p.spans);
    vec_release(&p.counter_track);
    buf_release(&p.buf);
    buf_release(&p.packet);
    buf_release(&p.message);
    buf_release(&p.inner);
    return r < 0 ? r : export_finish(out);
}
