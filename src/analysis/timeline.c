#include "analysis/timeline_marks.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/progress.h"
#include "format/events.h"

/* One thread's way through its places. */
struct walk {
    struct analysis_timeline *t;
    struct profile_places places; /* of the thread only; borrowed */
    struct analysis_timeline_thread *thread;
    VEC(struct record_open) stack; /* of the block that is being read */
    uint64_t block_start;
    size_t block_open; /* calls that had begun before it */
    uint32_t shift;    /* of a pixel */
    bool by_blocks;    /* there are few enough to read them all, for what summaries do not tell */
    uint32_t event;    /* place of the next event in the block */
    size_t note;       /* the next of the block's */
    uint64_t *blocks_left;
};

/* --- boxes --- */

/* Cut to the range; what lies outside of it is dropped. */
static void add(struct walk *w, uint32_t depth, struct record_box box)
{
    const struct analysis_timeline *t = w->t;
    if (box.end_ns < t->from_ns || box.begin_ns > t->to_ns)
        return;
    if (box.begin_ns < t->from_ns) {
        box.begin_ns = t->from_ns;
        box.flags |= RECORD_BOX_CUT_LEFT;
    }
    if (box.end_ns > t->to_ns) {
        box.end_ns = t->to_ns;
        box.flags |= RECORD_BOX_CUT_RIGHT;
    }
    uint64_t span = box.end_ns - box.begin_ns;
    box.covered_ns = min_u64(box.covered_ns, span);
    box.longest_ns = min_u64(box.longest_ns, box.covered_ns);
    lod_add(&w->thread->boxes, depth, &box);
}

static void add_call(struct walk *w, uint32_t depth, uint32_t code, uint64_t begin, uint64_t end,
                     uint32_t flags)
{
    struct record_box box = {
        .begin_ns = begin, .end_ns = end, .code = code, .calls = 1, .flags = flags};
    if (begin <= w->block_start && depth < w->block_open) {
        box.begin_ns = w->block_start;
        box.flags |= RECORD_BOX_CUT_LEFT;
    }
    box.covered_ns = box.longest_ns = end - box.begin_ns;
    add(w, depth, box);
}

/* What is known of this event, if it is in the range. */
static int add_notes(struct walk *w, const struct record_events *block,
                     const struct record_event *e)
{
    struct analysis_timeline_thread *t = w->thread;
    while (w->note < block->note_count && block->notes[w->note].event < w->event)
        w->note++;
    for (; w->note < block->note_count && block->notes[w->note].event == w->event; w->note++) {
        const struct record_note *n = &block->notes[w->note];
        if (e->time_ns < w->t->from_ns || e->time_ns > w->t->to_ns || !record_note_name(n->kind) ||
            t->notes.len >= ANALYSIS_TIMELINE_MAX_NOTES)
            continue;
        struct analysis_timeline_note *slot = vec_push(&t->notes);
        if (!slot)
            return E_NOMEM;
        *slot = (struct analysis_timeline_note){e->depth, n->kind, e->time_ns, t->note_text.len,
                                                n->len};
        buf_append(&t->note_text, n->text, n->len);
    }
    return buf_error(&t->note_text);
}

static int compare_notes(const void *a, const void *b)
{
    const struct analysis_timeline_note *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at; /* as they came */
}

static int on_events(void *ctx, const struct record_events *block,
                     const struct record_event *events, size_t n)
{
    struct walk *w = ctx;
    if (!n) {
        w->block_start = block->start_ns;
        w->block_open = block->open_count;
        w->event = 0;
        w->note = 0;
        if (!vec_reserve(&w->stack, block->open_count + 1))
            return E_NOMEM;
        w->stack.len = block->open_count;
        if (block->open_count)
            memcpy(w->stack.data, block->open, block->open_count * sizeof *w->stack.data);
    }
    for (size_t i = 0; i < n; i++, w->event++) {
        const struct record_event *e = &events[i];
        if (unlikely(w->note < block->note_count)) {
            int r = add_notes(w, block, e);
            if (r < 0)
                return r;
        }
        if (e->kind <= RECORD_EVENT_LOST) {
            w->stack.len = e->depth;
            add_call(w, e->depth, e->code, e->begin_ns, e->time_ns, 0);
            continue;
        }
        if (!vec_reserve(&w->stack, (size_t)e->depth + 1))
            return E_NOMEM;
        w->stack.data[e->depth] = (struct record_open){e->begin_ns, e->code, e->kind};
        w->stack.len = (size_t)e->depth + 1;
    }
    return 0;
}

static int on_box(void *ctx, uint32_t depth, const struct record_box *box)
{
    add(ctx, depth, *box);
    return 0;
}

static int on_summary(void *ctx, const struct record_summary *s)
{
    struct walk *w = ctx;
    if (s->deepest >= s->rows && s->deepest > w->t->deepest_cut)
        w->t->deepest_cut = s->deepest;
    return 0;
}

/* --- places --- */

static int read_place(struct walk *w, const struct record_place *place)
{
    static const struct profile_place_visitor visitor = {
        .events = on_events, .box = on_box, .summary = on_summary};
    struct analysis_timeline *t = w->t;
    uint64_t bytes = 0;
    w->stack.len = 0;
    int r = profile_visit_place(t->profile, place, &visitor, w, &bytes);
    for (size_t i = 0; r == 0 && i < w->stack.len; i++) { /* what went on after the block */
        const struct record_open *o = &w->stack.data[i];
        add_call(w, (uint32_t)i, o->code, o->begin_ns, place->end_ns, RECORD_BOX_CUT_RIGHT);
    }
    t->read_bytes += bytes;
    t->read_blocks += place->level == 0;
    t->read_summaries += place->level != 0;
    if (r == E_CORRUPT) {
        t->damaged++;
        r = 0;
    }
    return r;
}

/* The first place of a level that ends after `from`. */
static size_t first_of(const struct walk *w, uint32_t level, uint64_t from)
{
    size_t low = 0, high = w->places.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct record_place *p = &w->places.place[middle];
        if (p->level < level || (p->level == level && p->end_ns <= from))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Reads from `from` to before `to` by places of this level where they are fine enough, and of the levels below where
 * they are not, or not there. In the order of time. */
static int cover(struct walk *w, uint32_t level, uint64_t from, uint64_t to)
{
    int r = 0;
    for (size_t i = first_of(w, level, from); r == 0 && i < w->places.count; i++) {
        const struct record_place *p = &w->places.place[i];
        if (p->level != level || p->start_ns >= to)
            break;
        if (level && p->start_ns > from)
            r = cover(w, level - 1, from, p->start_ns);
        bool fine = (p->shift <= w->shift && !w->by_blocks) || (level == 1 && !*w->blocks_left);
        if (r == 0 && level && !fine)
            r = cover(w, level - 1, max_u64(from, p->start_ns), min_u64(to, p->end_ns));
        else if (r == 0)
            r = read_place(w, p);
        *w->blocks_left -= r == 0 && !level && *w->blocks_left;
        w->t->coarse |= level && fine && p->shift > w->shift;
        from = p->end_ns;
    }
    if (r == 0 && level && from < to)
        r = cover(w, level - 1, from, to);
    return r;
}

/* --- the whole --- */

static void choose_range(const struct analysis_query *q, const struct profile_places *places,
                         const struct timeline_marks *marks, struct analysis_timeline *t)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < places->count; i++) {
        first = min_u64(first, places->place[i].start_ns);
        last = max_u64(last, places->place[i].end_ns);
    }
    timeline_marks_widen(marks, &first, &last);
    if (first < last)
        first = min_u64(last, max_u64(first, profile_window_start(t->profile)));
    t->from_ns = q->has_from ? (uint64_t)(q->from * (double)NS_PER_SEC) : first;
    t->to_ns = q->has_to ? (uint64_t)(q->to * (double)NS_PER_SEC) : last;
    if (t->from_ns > t->to_ns) /* nothing there */
        t->from_ns = t->to_ns = 0;
}

static uint32_t shift_of(uint64_t ns)
{
    return ns ? 63 - (uint32_t)__builtin_clzll(ns) : 0;
}

static int walk_thread(struct analysis_timeline *t, const struct profile_places *places,
                       uint64_t *blocks_left, bool by_blocks)
{
    struct walk w = {.t = t,
                     .by_blocks = by_blocks,
                     .places = *places,
                     .thread = &t->thread[t->thread_count],
                     .shift = shift_of(t->pixel_ns),
                     .blocks_left = blocks_left};
    w.thread->thread = places->place[0].thread;
    lod_init(&w.thread->boxes, w.shift, 0, EVENTS_MAX_DEPTH);
    buf_init(&w.thread->note_text, FORMAT_MAX_CHUNK_BYTES);
    int r = cover(&w, places->place[places->count - 1].level, t->from_ns, t->to_ns + 1);
    vec_release(&w.stack);
    if (r == 0 && w.thread->boxes.failed)
        r = E_NOMEM;
    t->thread_count++; /* also on failure: it is released with the others */
    if (w.thread->notes.len)
        qsort(w.thread->notes.data, w.thread->notes.len, sizeof *w.thread->notes.data,
              compare_notes);
    if (r == 0 && !w.thread->boxes.boxes) {
        lod_release(&w.thread->boxes);
        vec_release(&w.thread->notes);
        buf_release(&w.thread->note_text);
        t->thread_count--;
    }
    return r;
}

static uint64_t blocks_in_range(const struct profile_places *places,
                                const struct analysis_timeline *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < places->count; i++)
        n += places->place[i].level == 0 && places->place[i].end_ns >= t->from_ns &&
             places->place[i].start_ns <= t->to_ns;
    return n;
}

static int compare_threads(const void *a, const void *b)
{
    const struct analysis_timeline_thread *x = a, *y = b;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

int analysis_timeline_init(const struct profile *profile, const struct analysis_query *query,
                           uint64_t pixels, struct analysis_timeline *ret)
{
    const struct profile_tables *tables = profile_tables(profile);
    struct analysis_timeline t = {.profile = profile};
    struct profile_places places = {0};
    struct timeline_marks marks = {0};
    uint64_t blocks_left = ANALYSIS_TIMELINE_MAX_BLOCKS;
    int r = profile_places_init(profile, &places);
    if (r == 0)
        r = timeline_marks_init(profile, query, &marks);
    if (r < 0) {
        profile_places_release(&places);
        return r;
    }
    choose_range(query, &places, &marks, &t);
    t.pixel_ns = max_u64(1, (t.to_ns - t.from_ns) / max_u64(1, pixels));
    t.thread = calloc(tables->thread_count + 1, sizeof *t.thread);
    r = t.thread ? 0 : E_NOMEM;
    bool by_blocks = profile_has_arguments(profile) && blocks_in_range(&places, &t) <= blocks_left;
    progress_begin("making the timeline", places.count);
    for (size_t i = 0, n; r == 0 && i < places.count; i += n) {
        progress_reach(i);
        uint32_t thread = places.place[i].thread;
        for (n = 1; i + n < places.count && places.place[i + n].thread == thread;)
            n++;
        struct profile_places part = {places.place + i, n};
        if (analysis_query_takes_thread(query, tables, thread))
            r = walk_thread(&t, &part, &blocks_left, by_blocks);
    }
    if (r == 0)
        r = timeline_marks_add(&marks, &t);
    if (r == 0 && t.thread_count)
        qsort(t.thread, t.thread_count, sizeof *t.thread, compare_threads);
    profile_places_release(&places);
    timeline_marks_release(&marks);
    if (r < 0) {
        analysis_timeline_release(&t);
        return r;
    }
    *ret = t;
    return 0;
}

void analysis_timeline_release(struct analysis_timeline *t)
{
    for (size_t i = 0; i < t->thread_count; i++) {
        lod_release(&t->thread[i].boxes);
        vec_release(&t->thread[i].notes);
        buf_release(&t->thread[i].note_text);
        lod_release(&t->thread[i].spans);
        lod_release(&t->thread[i].moments);
    }
    free(t->thread);
    for (size_t i = 0; i < t->counter.len; i++)
        vec_release(&t->counter.data[i].points);
    vec_release(&t->counter);
    *t = (struct analysis_timeline){0};
}
