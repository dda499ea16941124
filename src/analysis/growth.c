/* Two passes. The first finds which checkpoints were taken at which marks: in their order where there is one
 * for each, else the nearest in time (of very many marks the recorder takes a checkpoint at some only, and
 * times are good to some 50 µs). The second adds up each row's points. A row changes
 * in few checkpoints and has a point in all of them, so points are added as runs of the same height: the
 * pass costs what its records do, not rows times iterations. */
#include "analysis/growth.h"

#include "analysis/filter.h"
#include "analysis/forest.h"
#include "analysis/memory.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"
#include "profile/events.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mark {
    uint64_t time_ns;
    uint32_t process, name;
};

/* A checkpoint that was taken at a mark. */
struct stop {
    uint64_t time_ns;
    uint32_t process;
    uint64_t number; /* of the iteration; NO_ITERATION */
};
#define NO_ITERATION UINT64_MAX

struct height {            /* of a row, or of all */
    uint64_t bytes, first; /* modulo 2^64: what a damaged file says may be below zero */
    double variance, first_variance, last_variance; /* of the bytes, where they are estimates */
    size_t since; /* the point from which `bytes` holds and is not added up yet */
};

/* A site, and the variance of what was alive of it when it was last told. */
struct told {
    uint32_t thread, stack, allocator;
    double variance;
};

struct finding {
    const struct profile_tables *t;
    const struct analysis_query *query;
    struct analysis_filter filter;
    const struct analysis_rows *rows;
    struct analysis_growth *growth;
    VEC(struct mark) marks;
    VEC(struct stop) stops;
    uint32_t name;
    /* the second pass */
    size_t next;  /* the stop that comes next */
    size_t point; /* the point that comes next, or is being read */
    bool in_point;
    double *sum_x; /* of the points before each; owned */
    double first_x, last_x;
    struct height *height;
    struct stats_points *points; /* of each row, and of all at the end; owned */
    struct stats_points *later;  /* the same without the first third of them; owned */
    size_t first_later;
    VEC(struct told) told; /* of a sampled recording */
    double unseen;         /* so too: by how much a slope may be higher, and nothing of it told */
    struct idxmap told_map;
};

/* --- marks --- */

static int on_mark(void *ctx, const struct record_mark *mark)
{
    struct finding *f = ctx;
    uint32_t process = f->t->threads[mark->thread].process;
    if (mark->kind != RECORD_MARK_MOMENT ||
        (f->query->has_process && f->t->processes[process].pid != f->query->process))
        return 0; /* there are no checkpoints at spans */
    struct mark *m = vec_push(&f->marks);
    if (!m)
        return E_NOMEM;
    *m = (struct mark){mark->start_ns, process, mark->name};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

static int by_time(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static bool is_named(const struct finding *f, uint32_t name, const char *text)
{
    const struct profile_string *s = &f->t->strings[name];
    return s->len == strlen(text) && memcmp(s->text, text, s->len) == 0;
}

/* The name that iterations have, and the process that has most of them. */
static void choose_name(struct finding *f, const char *wanted)
{
    struct analysis_growth *g = f->growth;
    uint32_t names = 0, last_name = UINT32_MAX;
    if (f->marks.len)
        qsort(f->marks.data, f->marks.len, sizeof *f->marks.data, by_name);
    for (size_t from = 0, to; from < f->marks.len; from = to) {
        const struct mark *m = &f->marks.data[from];
        for (to = from; to < f->marks.len && by_name(m, &f->marks.data[to]) == 0;)
            to++;
        if (to - from < ANALYSIS_GROWTH_LEAST || (wanted && !is_named(f, m->name, wanted)))
            continue;
        names += m->name != last_name;
        last_name = m->name;
        if (to - from > g->iterations) {
            g->iterations = to - from;
            g->mark = f->t->strings[m->name];
            g->process = m->process;
            f->name = m->name;
        }
    }
    g->other_names = names ? names - 1 : 0;
}

/* --- checkpoints --- */

static int on_stop(void *ctx, const struct record_memory *memory)
{
    struct finding *f = ctx;
    if (!(memory->flags & RECORD_MEMORY_MARK) || memory->process != f->growth->process)
        return 0;
    struct stop *s = vec_push(&f->stops);
    if (!s)
        return E_NOMEM;
    *s = (struct stop){memory->time_ns, memory->process, NO_ITERATION};
    return 0;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Does the stop belong to this mark, or to a later one? */
static bool is_at(const struct mark *m, const struct mark *next, const struct stop *s)
{
    return !next || distance(s->time_ns, m->time_ns) <= distance(s->time_ns, next->time_ns);
}

/* Which iteration each stop belongs to, if its mark has the name. Of several at one mark the last counts. */
static void number_stops(struct finding *f)
{
    if (f->marks.len)
        qsort(f->marks.data, f->marks.len, sizeof *f->marks.data, by_time);
    size_t from = 0, to, stop = 0;
    uint64_t number = 0;
    while (from < f->marks.len && f->marks.data[from].process != f->growth->process)
        from++;
    for (to = from; to < f->marks.len && f->marks.data[to].process == f->growth->process;)
        to++;
    bool one_each = to - from == f->stops.len;
    for (size_t at = from; at < to; at++) {
        const struct mark *m = &f->marks.data[at], *next = at + 1 < to ? m + 1 : NULL;
        bool counts = m->name == f->name;
        struct stop *last = NULL;
        while (stop < f->stops.len && (one_each ? !last : is_at(m, next, &f->stops.data[stop])))
            last = &f->stops.data[stop++];
        if (last && counts)
            last->number = number;
        number += counts;
    }
}

/* The x of the points, which all rows share. */
static int find_points(struct finding *f)
{
    f->sum_x = calloc(f->stops.len + 1, sizeof *f->sum_x);
    f->height = calloc(f->rows->count + 1, sizeof *f->height);
    f->points = calloc(f->rows->count + 1, sizeof *f->points);
    f->later = calloc(f->rows->count + 1, sizeof *f->later);
    if (!f->sum_x || !f->height || !f->points || !f->later)
        return E_NOMEM;
    double xx = 0, later_xx = 0;
    size_t n = 0, all = 0;
    for (size_t i = 0; i < f->stops.len; i++)
        all += f->stops.data[i].number != NO_ITERATION;
    f->first_later = all / 3;
    for (size_t i = 0; i < f->stops.len; i++) {
        if (f->stops.data[i].number == NO_ITERATION)
            continue;
        double x = (double)f->stops.data[i].number;
        f->first_x = n ? f->first_x : x;
        f->last_x = x;
        f->sum_x[n + 1] = f->sum_x[n] + x;
        xx += x * x;
        later_xx += n >= f->first_later ? x * x : 0;
        n++;
    }
    f->growth->points = n;
    for (size_t i = 0; i <= f->rows->count; i++) {
        f->points[i].xx = xx;
        f->later[i].xx = later_xx;
    }
    return 0;
}

/* --- the second pass --- */

/* A row keeps its height until the point that comes next. */
static void add_run(struct finding *f, size_t row)
{
    struct height *h = &f->height[row];
    if (h->since == f->point)
        return;
    if (h->since == 0) {
        h->first = h->bytes;
        h->first_variance = h->variance;
    }
    h->last_variance = h->variance;
    double height = (double)(int64_t)(h->bytes - h->first);
    size_t later = h->since > f->first_later ? h->since : f->first_later;
    stats_points_add_run(&f->points[row], (double)(f->point - h->since),
                         f->sum_x[f->point] - f->sum_x[h->since], height);
    if (later < f->point)
        stats_points_add_run(&f->later[row], (double)(f->point - later),
                             f->sum_x[f->point] - f->sum_x[later], height);
    h->since = f->point;
}

/* What of the slope's variance comes from the points being estimates. Blocks that stay are counted in every point after them, so
 * their errors add up as the steps of a walk do: steps of the variance V in all, spread evenly over the way X, tilt the line by a
 * variance of 6/5 V/X². Errors of blocks that go again differ from point to point, and those the line sees itself. */
static double sampling_error(const struct finding *f, size_t row)
{
    double grown = f->height[row].last_variance - f->height[row].first_variance;
    double way = f->last_x - f->first_x;
    return grown > 0 && way > 0 ? analysis_memory_error(1.2 * grown) / way : 0;
}

static void widen(struct stats_slope *s, double error)
{
    s->low = s->slope - hypot(s->slope - s->low, error);
    s->high = s->slope + hypot(s->high - s->slope, error);
}

/* What a sample may have missed altogether, over the whole way: where of so many intervals none was told, it was fewer in 97.5 % of
 * all cases. Errors of the few that were told do not say it. */
#define UNSEEN_INTERVALS 3.69

static double find_unseen(const struct finding *f)
{
    const char *text = profile_meta_value(f->rows->weights->profile, "memory.interval");
    double interval = text ? strtod(text, NULL) : 0, way = f->last_x - f->first_x;
    return interval > 0 && interval < 1e12 && way > 0 ? UNSEEN_INTERVALS * interval / way : 0;
}

/* Caches fill in the first iterations, and a line through one step is sure to rise: what grows does so without them, too. */
static struct stats_slope slope_of(const struct finding *f, size_t row)
{
    struct stats_slope s = stats_slope_of(&f->points[row]), later = stats_slope_of(&f->later[row]);
    s.low = fmin(s.low, later.low);
    s.high = fmax(s.high, later.high);
    widen(&s, sampling_error(f, row));
    s.high = fmax(s.high, s.slope + f->unseen);
    return s;
}

/* The records of a checkpoint come after it, and belong to its point: that is past with the next one. */
static int on_checkpoint(void *ctx, const struct record_memory *memory)
{
    struct finding *f = ctx;
    if (memory->process != f->growth->process)
        return 0;
    f->point += f->in_point;
    f->in_point = false;
    if ((memory->flags & RECORD_MEMORY_MARK) && f->next < f->stops.len)
        f->in_point = f->stops.data[f->next++].number != NO_ITERATION;
    return 0;
}

static void raise_row(struct finding *f, size_t row, uint64_t bytes, double variance)
{
    add_run(f, row);
    f->height[row].bytes += bytes;
    f->height[row].variance += variance;
}

/* By how much the variance of what is alive of a site has changed. */
static int variance_change(struct finding *f, const struct record_site *site, double *ret)
{
    uint32_t at, hash = hash_u64(((uint64_t)site->thread << 32 | site->stack) ^
                                 (uint64_t)site->allocator << 48);
    IDXMAP_FIND(&f->told_map, hash, i,
                f->told.data[i].thread == site->thread && f->told.data[i].stack == site->stack &&
                    f->told.data[i].allocator == site->allocator,
                at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)f->told.len;
        struct told *t = vec_push(&f->told);
        if (!t || idxmap_insert(&f->told_map, hash, at) < 0)
            return E_NOMEM;
        *t = (struct told){site->thread, site->stack, site->allocator, 0};
    }
    *ret = site->live_variance - f->told.data[at].variance;
    f->told.data[at].variance = site->live_variance;
    return 0;
}

static int on_site(void *ctx, const struct record_memory *memory, const struct record_site *site)
{
    struct finding *f = ctx;
    if (memory->process != f->growth->process || !f->filter.thread[site->thread] ||
        (f->filter.stack && !f->filter.stack[site->stack]))
        return 0;
    uint32_t row = f->rows->node_row[site->stack];
    if (row == ANALYSIS_ROW_NONE)
        row = analysis_forest_rootless(f->rows);
    uint64_t change = site->bytes - site->freed_bytes;
    double variance = 0;
    int r = memory->flags & RECORD_MEMORY_SAMPLED ? variance_change(f, site, &variance) : 0;
    if (r < 0)
        return r;
    raise_row(f, f->rows->count, change, variance);
    if (row != ANALYSIS_ROW_NONE)
        raise_row(f, row, change, variance);
    return 0;
}

static int fit(struct finding *f)
{
    struct analysis_growth *g = f->growth;
    g->row = calloc(f->rows->count + 1, sizeof *g->row);
    if (!g->row)
        return E_NOMEM;
    f->point = g->points;
    f->unseen = find_unseen(f);
    for (size_t i = 0; i <= f->rows->count; i++) {
        add_run(f, i);
        struct stats_slope slope = slope_of(f, i);
        if (i < f->rows->count)
            g->row[i] = slope;
        else
            g->total = slope;
    }
    return 0;
}

static int find(struct finding *f, const struct profile *profile, const char *mark)
{
    static const struct profile_mark_visitor marks = {.mark = on_mark};
    static const struct profile_memory_visitor stops = {.memory = on_stop};
    static const struct profile_memory_visitor sites = {.memory = on_checkpoint, .site = on_site};
    int r = profile_each_mark(profile, &marks, f);
    if (r < 0)
        return r;
    choose_name(f, mark);
    if (!f->growth->iterations)
        return 0;
    r = profile_each_memory(profile, &stops, f, NULL);
    if (r < 0)
        return r;
    number_stops(f);
    r = find_points(f);
    if (r == 0)
        r = profile_each_memory(profile, &sites, f, NULL);
    return r < 0 ? r : fit(f);
}

int analysis_growth_init(const struct analysis_rows *rows, const struct analysis_query *query,
                         const char *mark, struct analysis_growth *ret)
{
    const struct profile *profile = rows->weights->profile;
    struct analysis_growth growth = {.mark = {"", 0}, .total = {NAN, NAN, NAN}};
    struct finding f = {
        .t = profile_tables(profile), .query = query, .rows = rows, .growth = &growth};
    int r = analysis_filter_init(profile, query, &f.filter);
    if (r == 0)
        r = find(&f, profile, mark);
    analysis_filter_release(&f.filter);
    vec_release(&f.marks);
    vec_release(&f.stops);
    vec_release(&f.told);
    idxmap_release(&f.told_map);
    free(f.sum_x);
    free(f.height);
    free(f.points);
    free(f.later);
    if (r < 0)
        analysis_growth_release(&growth);
    else
        *ret = growth;
    return r;
}

void analysis_growth_release(struct analysis_growth *g)
{
    free(g->row);
    *g = (struct analysis_growth){0};
}
