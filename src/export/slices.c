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

/* A thread's open calls; the first `written` have been told. */
struct lane {
    VEC(struct call) stack;
    size_t written;
    uint64_t last_ns;
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
        if (s->visitor->begin)
            r = s->visitor->begin(s->ctx, &slice);
    }
    return r;
}

/* The innermost call ends, or is not followed any further. */
static int end_top(struct slicing *s, uint32_t thread, struct lane *lane, uint64_t ns,
                   enum record_event_kind kind, bool unfinished)
{
    struct call c = lane->stack.data[lane->stack.len - 1];
    uint64_t begin = max_u64(c.begin_ns, s->from_ns), end = min_u64(ns, s->to_ns);
    bool inside = begin <= end;
    if (!s->visitor) {
        s->count[step_of(inside ? end - begin : 0)] += inside;
        lane->stack.len--;
        return 0;
    }
    if (lane->written < lane->stack.len && (!inside || end - begin < s->min_ns)) {
        s->left_out += inside;
        lane->stack.len--;
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
                                 .unfinished = unfinished};
    return r < 0 ? r : s->visitor->end(s->ctx, &slice);
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
        r = end_top(s, block->thread, lane, lane->last_ns, RECORD_EVENT_LOST, true);
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
    bool at_once = s->visitor && !s->min_ns && !s->query->has_from && !s->query->has_to;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct record_event *e = &events[i];
        lane->last_ns = e->time_ns;
        if (e->kind <= RECORD_EVENT_LOST) {
            if (lane->stack.len)
                r = end_top(s, block->thread, lane, e->time_ns, e->kind, false);
            continue;
        }
        struct call *c = vec_push(&lane->stack);
        if (!c)
            return E_NOMEM;
        *c = (struct call){e->time_ns, e->code, e->kind};
        if (at_once)
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
            r = end_top(s, i, lane, lane->last_ns, RECORD_EVENT_LOST, true);
        vec_release(&lane->stack);
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
