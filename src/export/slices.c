#include "export/slices.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"

/* Durations in steps of 1/16 of a power of two. */
enum { STEPS = 16, STEP_BITS = 4, STEPS_ALL = 64 * STEPS };

struct call {
    uint64_t begin_ns;
    uint32_t code;
    enum record_event_kind kind;
};

/* A note about the begin of an open call. */
struct kept_note {
    size_t depth;
    const char *name;
    size_t at, len; /* in the lane's text */
};

/* A thread's open calls; the first `written` have been told. */
struct lane {
    VEC(struct call) stack;
    size_t written;
    uint64_t last_ns;           /* of the last event */
    uint64_t end_ns;            /* of the last block: what is open has gone on until then */
    VEC(struct kept_note) kept; /* outermost first */
    struct buf text;
    uint32_t event; /* place of the next one in its block */
    size_t note;    /* the next of the block's */
};

struct slicing {
    const struct profile_tables *tables;
    const struct analysis_query *query;
    const struct export_slices_visitor *visitor; /* NULL: only count */
    void *ctx;
    struct lane *lane; /* by thread */
    uint64_t from_ns, to_ns, min_ns;
    uint64_t left_out;
    uint64_t *count; /* by duration */
};

struct profile_string export_slices_name(const struct profile_tables *t, uint32_t code)
{
    const struct record_code *c = &t->codes[code];
    return t->strings[c->qualname].len ? t->strings[c->qualname] : t->strings[c->name];
}

bool export_slices_place(const struct profile_tables *t, uint32_t code,
                         struct profile_string *ret_file, uint32_t *ret_line)
{
    const struct record_code *c = &t->codes[code];
    *ret_file = t->strings[c->file];
    *ret_line = c->first_line;
    return ret_file->len && !(c->flags & RECORD_CODE_C);
}

bool export_slices_takes(const struct profile_tables *t, const struct analysis_query *query,
                         uint32_t thread, uint64_t ns)
{
    double at = (double)ns / (double)NS_PER_SEC;
    return analysis_query_takes_thread(query, t, thread) &&
           !(query->has_from && at < query->from) && !(query->has_to && at > query->to);
}

static size_t step_of(uint64_t ns)
{
    if (ns < STEPS)
        return (size_t)ns;
    unsigned top = 63 - (unsigned)__builtin_clzll(ns);
    return (size_t)(top - STEP_BITS + 1) * STEPS + (size_t)(ns >> (top - STEP_BITS) & (STEPS - 1));
}

/* The shortest duration of a step. */
static uint64_t floor_of(size_t step)
{
    if (step < STEPS)
        return step;
    return (uint64_t)(STEPS + step % STEPS) << (step / STEPS - 1);
}

/* --- notes --- */

/* Those of a call that is open; the deepest call's are the last. */
static void find_notes(const struct lane *lane, size_t depth, struct export_slice *slice)
{
    size_t first = lane->kept.len;
    while (first > 0 && lane->kept.data[first - 1].depth > depth)
        first--;
    size_t end = first;
    while (first > 0 && lane->kept.data[first - 1].depth == depth)
        first--;
    for (; first < end && slice->notes < EXPORT_MAX_NOTES / 2; first++) {
        const struct kept_note *k = &lane->kept.data[first];
        slice->note[slice->notes++] = (struct export_note){
            k->name, {k->len ? (const char *)lane->text.data + k->at : "", (uint32_t)k->len}};
    }
    slice->begin_notes = slice->notes;
}

static void drop_notes(struct lane *lane)
{
    while (lane->kept.len && lane->kept.data[lane->kept.len - 1].depth >= lane->stack.len)
        lane->text.len = lane->kept.data[--lane->kept.len].at;
}

/* Does the block's next note belong to the lane's present event? */
static const struct record_note *next_note(const struct record_events *block, struct lane *lane)
{
    while (lane->note < block->note_count && block->notes[lane->note].event < lane->event)
        lane->note++;
    if (lane->note >= block->note_count || block->notes[lane->note].event != lane->event)
        return NULL;
    return &block->notes[lane->note++];
}

static int keep_notes(const struct record_events *block, struct lane *lane)
{
    const struct record_note *n;
    while ((n = next_note(block, lane))) {
        struct kept_note *k = record_note_name(n->kind) ? vec_push(&lane->kept) : NULL;
        if (!k)
            continue;
        if (!lane->text.max)
            buf_init(&lane->text, EXPORT_BUF_MAX);
        *k = (struct kept_note){lane->stack.len - 1, record_note_name(n->kind), lane->text.len,
                                n->len};
        buf_append(&lane->text, n->text, n->len);
        if (buf_error(&lane->text))
            return buf_error(&lane->text);
    }
    return 0;
}

static void add_end_notes(const struct record_events *block, struct lane *lane,
                          struct export_slice *slice)
{
    const struct record_note *n;
    while (block && (n = next_note(block, lane)))
        if (record_note_name(n->kind) && slice->notes < EXPORT_MAX_NOTES)
            slice->note[slice->notes++] =
                (struct export_note){record_note_name(n->kind), {n->text, n->len}};
}

/* --- calls --- */

static int tell_begins(struct slicing *s, uint32_t thread, struct lane *lane)
{
    int r = 0;
    for (; r == 0 && lane->written < lane->stack.len; lane->written++) {
        const struct call *c = &lane->stack.data[lane->written];
        struct export_slice slice = {.thread = thread,
                                     .code = c->code,
                                     .begin_ns = max_u64(c->begin_ns, s->from_ns),
                                     .began = c->kind};
        find_notes(lane, lane->written, &slice);
        if (s->visitor->begin)
            r = s->visitor->begin(s->ctx, &slice);
    }
    return r;
}

/* The innermost call ends, by an event of the block, or is not followed any further (NULL). */
static int end_top(struct slicing *s, uint32_t thread, struct lane *lane, uint64_t ns,
                   enum record_event_kind kind, const struct record_events *block)
{
    struct call c = lane->stack.data[lane->stack.len - 1];
    uint64_t begin = max_u64(c.begin_ns, s->from_ns), end = min_u64(ns, s->to_ns);
    bool inside = begin <= end;
    if (!s->visitor) {
        s->count[step_of(inside ? end - begin : 0)] += inside;
        lane->stack.len--;
        drop_notes(lane);
        return 0;
    }
    if (lane->written < lane->stack.len && (!inside || end - begin < s->min_ns)) {
        s->left_out += inside;
        lane->stack.len--;
        drop_notes(lane);
        return 0;
    }
    int r = tell_begins(s, thread, lane);
    lane->stack.len--;
    lane->written--;
    struct export_slice slice = {.thread = thread,
                                 .code = c.code,
                                 .begin_ns = begin,
                                 .end_ns = end,
                                 .began = c.kind,
                                 .ended = kind,
                                 .cut = c.begin_ns < s->from_ns,
                                 .unfinished = !block};
    find_notes(lane, lane->stack.len, &slice);
    add_end_notes(block, lane, &slice);
    if (r == 0)
        r = s->visitor->end(s->ctx, &slice);
    drop_notes(lane);
    return r;
}

/* What a lost block leaves open ends where the next one begins without it. */
static int begin_block(struct slicing *s, struct lane *lane, const struct record_events *block)
{
    size_t same = 0;
    while (same < lane->stack.len && same < block->open_count &&
           lane->stack.data[same].code == block->open[same].code &&
           lane->stack.data[same].begin_ns == block->open[same].begin_ns)
        same++;
    int r = 0;
    while (r == 0 && lane->stack.len > same)
        r = end_top(s, block->thread, lane, lane->last_ns, RECORD_EVENT_LOST, NULL);
    for (; r == 0 && same < block->open_count; same++) {
        struct call *c = vec_push(&lane->stack);
        if (!c)
            return E_NOMEM;
        const struct record_open *o = &block->open[same];
        /* one that we should have heard of began in a lost block */
        *c = (struct call){max_u64(o->begin_ns, lane->last_ns), o->code, o->kind};
    }
    return r;
}

static int on_events(void *ctx, const struct record_events *block,
                     const struct record_event *events, size_t n)
{
    struct slicing *s = ctx;
    if (!analysis_query_takes_thread(s->query, s->tables, block->thread))
        return 0;
    struct lane *lane = &s->lane[block->thread];
    int r = n ? 0 : begin_block(s, lane, block);
    if (!n) {
        lane->event = 0, lane->note = 0;
        lane->end_ns = max_u64(lane->end_ns, block->end_ns);
    }
    bool at_once = s->visitor && !s->min_ns && !s->from_ns && !s->query->has_to;
    for (size_t i = 0; r == 0 && i < n; i++, lane->event++) {
        const struct record_event *e = &events[i];
        lane->last_ns = e->time_ns;
        if (e->kind <= RECORD_EVENT_LOST) {
            if (lane->stack.len)
                r = end_top(s, block->thread, lane, e->time_ns, e->kind, block);
            continue;
        }
        struct call *c = vec_push(&lane->stack);
        if (!c)
            return E_NOMEM;
        *c = (struct call){e->time_ns, e->code, e->kind};
        r = keep_notes(block, lane);
        if (r == 0 && at_once)
            r = tell_begins(s, block->thread, lane);
    }
    return r;
}

static int pass(struct slicing *s, const struct profile *profile)
{
    s->lane = calloc(s->tables->thread_count + 1, sizeof *s->lane);
    if (!s->lane)
        return E_NOMEM;
    int r = profile_each_event(profile, on_events, s, NULL);
    for (uint32_t i = 0; i < s->tables->thread_count; i++) {
        struct lane *lane = &s->lane[i];
        while (r == 0 && lane->stack.len)
            r = end_top(s, i, lane, max_u64(lane->last_ns, lane->end_ns), RECORD_EVENT_LOST, NULL);
        vec_release(&lane->stack);
        vec_release(&lane->kept);
        buf_release(&lane->text);
    }
    free(s->lane);
    return r;
}

/* The shortest calls that may stay if there are to be `max`. */
static int choose_limit(struct slicing *s, const struct profile *profile, uint64_t max)
{
    s->count = calloc(STEPS_ALL, sizeof *s->count);
    if (!s->count)
        return E_NOMEM;
    int r = pass(s, profile);
    uint64_t kept = 0;
    size_t step = STEPS_ALL;
    while (r == 0 && step > 0 && kept + s->count[step - 1] <= max)
        kept += s->count[--step];
    s->min_ns = floor_of(step);
    free(s->count);
    s->count = NULL;
    return r;
}

int export_slices_each(const struct profile *profile, const struct export_options *options,
                       uint64_t max, const struct export_slices_visitor *visitor, void *ctx)
{
    const struct analysis_query *q = &options->query;
    struct slicing s = {.tables = profile_tables(profile), .query = q, .ctx = ctx};
    s.from_ns = q->has_from ? (uint64_t)(q->from * (double)NS_PER_SEC) : 0;
    s.from_ns = max_u64(s.from_ns, profile_window_start(profile));
    s.to_ns = q->has_to ? (uint64_t)(q->to * (double)NS_PER_SEC) : UINT64_MAX;
    int r = 0;
    if (!options->all && profile_event_records(profile) / 2 > max)
        r = choose_limit(&s, profile, max);
    s.visitor = visitor;
    if (r == 0)
        r = pass(&s, profile);
    if (options->notice)
        *options->notice = (struct export_notice){s.left_out, s.min_ns, max};
    return r;
}

int export_slices_threads(const struct profile *profile, const struct analysis_query *query,
                          uint8_t **ret)
{
    const struct profile_tables *t = profile_tables(profile);
    struct profile_places places;
    uint8_t *mark = calloc(t->thread_count + 1, 1);
    int r = mark ? profile_places_init(profile, &places) : E_NOMEM;
    if (r < 0) {
        free(mark);
        return r;
    }
    for (size_t i = 0; i < places.count; i++)
        if (analysis_query_takes_thread(query, t, places.place[i].thread))
            mark[places.place[i].thread] = 1;
    profile_places_release(&places);
    *ret = mark;
    return 0;
}
