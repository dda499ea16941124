/* What the program told, for a picture of so many pixels. Marks and spans come in the order in which they
 * ended, and the file does not say which span is inside of which: sorted by their begin, the longer
 * first, each goes into the first row that is free by then. So one that is inside of others is below them, as calls are, and those of
 * several tasks, which overlap as they like, have a row each. */
#include "analysis/timeline_marks.h"

#include "base/clock.h"
#include "base/err.h"
#include "format/events.h"

#include <math.h>

static int on_mark(void *ctx, const struct record_mark *m)
{
    struct timeline_marks *marks = ctx;
    if (!analysis_query_takes_thread(marks->query, marks->tables, m->thread))
        return 0;
    struct timeline_mark *slot = vec_push(&marks->mark);
    if (!slot)
        return E_NOMEM;
    uint64_t end = m->start_ns + m->duration_ns;
    *slot = (struct timeline_mark){.thread = m->thread,
                                   .name = m->name,
                                   .is_moment = m->kind == RECORD_MARK_MOMENT,
                                   .is_open = m->kind == RECORD_MARK_OPEN,
                                   .begin_ns = m->start_ns,
                                   .end_ns = max_u64(m->start_ns, end)};
    return 0;
}

static int on_counter(void *ctx, const struct record_counter *c)
{
    struct timeline_marks *marks = ctx;
    if (!analysis_query_takes_thread(marks->query, marks->tables, c->thread))
        return 0;
    struct timeline_value *slot = vec_push(&marks->value);
    if (!slot)
        return E_NOMEM;
    *slot = (struct timeline_value){
        marks->tables->threads[c->thread].process, c->name, {c->time_ns, c->value}};
    return 0;
}

static int compare_marks(const void *a, const void *b)
{
    const struct timeline_mark *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static int compare_values(const void *a, const void *b)
{
    const struct timeline_value *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->point.time_ns < y->point.time_ns ? -1 : x->point.time_ns > y->point.time_ns;
}

int timeline_marks_init(const struct profile *profile, const struct analysis_query *query,
                        struct timeline_marks *ret)
{
    static const struct profile_mark_visitor visitor = {.mark = on_mark, .counter = on_counter};
    struct timeline_marks m = {.tables = profile_tables(profile), .query = query};
    int r = profile_each_mark(profile, &visitor, &m);
    if (r < 0) {
        timeline_marks_release(&m);
        return r;
    }
    if (m.mark.len)
        qsort(m.mark.data, m.mark.len, sizeof *m.mark.data, compare_marks);
    if (m.value.len)
        qsort(m.value.data, m.value.len, sizeof *m.value.data, compare_values);
    *ret = m;
    return 0;
}

void timeline_marks_release(struct timeline_marks *m)
{
    vec_release(&m->mark);
    vec_release(&m->value);
}

void timeline_marks_widen(const struct timeline_marks *m, uint64_t *first, uint64_t *last)
{
    for (size_t i = 0; i < m->mark.len; i++) {
        *first = min_u64(*first, m->mark.data[i].begin_ns);
        *last = max_u64(*last, m->mark.data[i].end_ns);
    }
    for (size_t i = 0; i < m->value.len; i++) {
        *first = min_u64(*first, m->value.data[i].point.time_ns);
        *last = max_u64(*last, m->value.data[i].point.time_ns);
    }
}

/* --- boxes --- */

static uint32_t shift_of(const struct analysis_timeline *t)
{
    return t->pixel_ns ? 63 - (uint32_t)__builtin_clzll(t->pixel_ns) : 0;
}

/* The thread's entry, made if it has no calls in the range. */
static struct analysis_timeline_thread *thread_of(struct analysis_timeline *t, uint32_t thread)
{
    size_t i = 0;
    while (i < t->thread_count && t->thread[i].thread != thread)
        i++;
    struct analysis_timeline_thread *found = &t->thread[i];
    if (i == t->thread_count) { /* there is room for all threads */
        *found = (struct analysis_timeline_thread){.thread = thread};
        lod_init(&found->boxes, shift_of(t), 0, EVENTS_MAX_DEPTH);
        t->thread_count++;
    }
    if (!found->has_marks) {
        found->has_marks = true;
        lod_init(&found->spans, shift_of(t), 0, EVENTS_MAX_DEPTH);
        lod_init(&found->moments, shift_of(t), 0, 1);
    }
    return found;
}

static void add(const struct analysis_timeline *t, struct lod *to, uint32_t depth,
                const struct timeline_mark *m)
{
    struct record_box box = {.begin_ns = max_u64(m->begin_ns, t->from_ns),
                             .end_ns = min_u64(m->end_ns, t->to_ns),
                             .code = m->name,
                             .calls = 1};
    if (m->begin_ns < t->from_ns)
        box.flags |= RECORD_BOX_CUT_LEFT;
    if (m->end_ns > t->to_ns || m->is_open)
        box.flags |= RECORD_BOX_CUT_RIGHT;
    box.covered_ns = box.longest_ns = box.end_ns - box.begin_ns;
    lod_add(to, depth, &box);
}

static int add_marks(const struct timeline_marks *marks, struct analysis_timeline *t)
{
    VEC(uint64_t) row = {0}; /* by when each is free */
    uint32_t thread = UINT32_MAX;
    int r = 0;
    for (size_t i = 0; r == 0 && i < marks->mark.len; i++) {
        const struct timeline_mark *m = &marks->mark.data[i];
        if (m->end_ns < t->from_ns || m->begin_ns > t->to_ns)
            continue;
        if (m->thread != thread)
            row.len = 0;
        thread = m->thread;
        struct analysis_timeline_thread *to = thread_of(t, thread);
        if (m->is_moment) {
            add(t, &to->moments, 0, m);
        } else {
            size_t at = 0;
            while (at < row.len && row.data[at] > m->begin_ns)
                at++;
            add(t, &to->spans, (uint32_t)at, m);
            uint64_t *end = at < row.len            ? &row.data[at]
                            : at < EVENTS_MAX_DEPTH ? vec_push(&row)
                                                    : NULL;
            if (end)
                *end = m->end_ns;
        }
        if (to->spans.failed || to->moments.failed)
            r = E_NOMEM;
    }
    vec_release(&row);
    return r;
}

/* --- counters --- */

/* Of the values within one pixel the least, the greatest and the last are enough to draw it. */
struct pixel {
    uint64_t number;
    struct analysis_timeline_point least, greatest, last;
    bool used;
};

static bool put_point(struct analysis_timeline_counter *c, const struct analysis_timeline_point *p)
{
    if (c->points.len && c->points.data[c->points.len - 1].time_ns == p->time_ns &&
        c->points.data[c->points.len - 1].value == p->value)
        return true;
    struct analysis_timeline_point *slot = vec_push(&c->points);
    if (slot)
        *slot = *p;
    return slot != NULL;
}

static bool put_pixel(struct analysis_timeline_counter *c, struct pixel *p)
{
    if (!p->used)
        return true;
    p->used = false;
    bool least_first = p->least.time_ns <= p->greatest.time_ns;
    return put_point(c, least_first ? &p->least : &p->greatest) &&
           put_point(c, least_first ? &p->greatest : &p->least) && put_point(c, &p->last);
}

static bool take_value(struct analysis_timeline_counter *c, struct pixel *p, uint64_t number,
                       const struct analysis_timeline_point *point)
{
    bool good = number == p->number || put_pixel(c, p);
    if (!p->used)
        *p = (struct pixel){number, *point, *point, *point, true};
    if (point->value < p->least.value)
        p->least = *point;
    if (point->value > p->greatest.value)
        p->greatest = *point;
    p->last = *point;
    return good;
}

/* One counter: values [i, end) of the sorted list. */
static int add_counter(const struct timeline_marks *marks, size_t i, size_t end,
                       struct analysis_timeline *t)
{
    struct analysis_timeline_counter c = {.process = marks->value.data[i].process,
                                          .name = marks->value.data[i].name};
    struct pixel pixel = {0};
    const struct analysis_timeline_point *before = NULL;
    bool good = true;
    for (; i < end && good; i++) {
        const struct analysis_timeline_point *p = &marks->value.data[i].point;
        if (p->time_ns > t->to_ns || !isfinite(p->value))
            continue;
        if (p->time_ns < t->from_ns) { /* the value that it has when the range begins */
            before = p;
            continue;
        }
        if (before) {
            struct analysis_timeline_point first = {t->from_ns, before->value};
            good = put_point(&c, &first);
            before = NULL;
        }
        good = good && take_value(&c, &pixel, (p->time_ns - t->from_ns) / t->pixel_ns, p);
    }
    if (before) {
        struct analysis_timeline_point first = {t->from_ns, before->value};
        good = put_point(&c, &first);
    }
    good = good && put_pixel(&c, &pixel);
    struct analysis_timeline_counter *slot = good && c.points.len ? vec_push(&t->counter) : NULL;
    if (slot)
        *slot = c;
    else
        vec_release(&c.points);
    return good && (slot || !c.points.len) ? 0 : E_NOMEM;
}

static int add_counters(const struct timeline_marks *marks, struct analysis_timeline *t)
{
    int r = 0;
    for (size_t i = 0, end; r == 0 && i < marks->value.len; i = end) {
        const struct timeline_value *first = &marks->value.data[i];
        for (end = i + 1; end < marks->value.len; end++)
            if (marks->value.data[end].process != first->process ||
                marks->value.data[end].name != first->name)
                break;
        r = add_counter(marks, i, end, t);
    }
    return r;
}

int timeline_marks_add(const struct timeline_marks *marks, struct analysis_timeline *t)
{
    int r = add_marks(marks, t);
    return r < 0 ? r : add_counters(marks, t);
}
