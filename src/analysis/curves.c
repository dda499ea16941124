#include "analysis/curves.h"

#include "base/attr.h"
#include "base/err.h"
#include "profile/events.h"

#include <math.h>
#include <string.h>

const char *const ANALYSIS_CURVE_NAMES[ANALYSIS_CURVE_KINDS + 1] = {
#define X(id, name, counter) [ANALYSIS_CURVE_##id] = (name),
    ANALYSIS_CURVE_LIST(X)
#undef X
};

static const char *const COUNTERS[ANALYSIS_CURVE_KINDS] = {
#define X(id, name, counter) [ANALYSIS_CURVE_##id] = (counter),
    ANALYSIS_CURVE_LIST(X)
#undef X
};

struct point {
    uint64_t time_ns;
    uint32_t process;
    enum analysis_curve_kind kind;
    double value;
};

struct gathering {
    const struct profile_tables *t;
    const struct analysis_query *query;
    uint64_t from_ns, to_ns; /* the query's */
    struct analysis_curves *curves;
    VEC(struct point) points;
    struct record_memory *last; /* for each process: its last checkpoint, with its peak */
};

static bool takes(const struct gathering *g, uint32_t process, uint64_t time_ns)
{
    return time_ns >= g->from_ns && time_ns <= g->to_ns &&
           (!g->query->has_process || g->t->processes[process].pid == g->query->process);
}

static int add_point(struct gathering *g, struct point point)
{
    if (!takes(g, point.process, point.time_ns))
        return 0;
    struct point *p = vec_push(&g->points);
    if (!p)
        return E_NOMEM;
    *p = point;
    return 0;
}

static int on_memory(void *ctx, const struct record_memory *memory)
{
    struct gathering *g = ctx;
    g->last[memory->process] = *memory;
    return add_point(g, (struct point){memory->time_ns, memory->process, ANALYSIS_CURVE_ALLOCATED,
                                       (double)memory->live_bytes});
}

static int on_counter(void *ctx, const struct record_counter *counter)
{
    struct gathering *g = ctx;
    const struct profile_string *name = &g->t->strings[counter->name];
    if (!isfinite(counter->value))
        return 0;
    for (int i = 0; i < ANALYSIS_CURVE_KINDS; i++)
        if (*COUNTERS[i] && strlen(COUNTERS[i]) == name->len &&
            memcmp(COUNTERS[i], name->text, name->len) == 0)
            return add_point(g, (struct point){counter->time_ns,
                                               g->t->threads[counter->thread].process,
                                               (enum analysis_curve_kind)i, counter->value});
    return 0;
}

static int on_mark(void *ctx, const struct record_mark *mark)
{
    struct gathering *g = ctx;
    uint32_t process = g->t->threads[mark->thread].process;
    if (!takes(g, process, mark->start_ns))
        return 0;
    struct analysis_curve_mark *m = vec_push(&g->curves->mark);
    if (!m)
        return E_NOMEM;
    *m = (struct analysis_curve_mark){mark->start_ns, process, mark->name};
    return 0;
}

static int by_process_and_time(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* What is not given back is the C library's part and Python's, which are told together and far oftener than checkpoints are taken.
 * Where Python's is never told, the other is all. */
static int add_sums(struct gathering *g)
{
    _cleanup_free_ bool *has_objects = calloc(g->t->process_count + 1, sizeof *has_objects);
    if (!has_objects)
        return E_NOMEM;
    size_t n = g->points.len;
    if (n)
        qsort(g->points.data, n, sizeof *g->points.data, by_process_and_time);
    for (size_t i = 0; i < n; i++)
        has_objects[g->points.data[i].process] |= g->points.data[i].kind == ANALYSIS_CURVE_OBJECTS;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct point sum = g->points.data[i];
        if (sum.kind != ANALYSIS_CURVE_HEAP)
            continue;
        const struct point *next = i + 1 < n ? &g->points.data[i + 1] : NULL;
        bool is_pair = next && next->kind == ANALYSIS_CURVE_OBJECTS &&
                       next->process == sum.process && next->time_ns == sum.time_ns;
        sum.kind = ANALYSIS_CURVE_ALLOCATED;
        sum.value += is_pair ? next->value : 0;
        if (is_pair || !has_objects[sum.process])
            r = add_point(g, sum);
    }
    return r;
}

static int gather(const struct profile *profile, struct gathering *g)
{
    static const struct profile_memory_visitor memory = {.memory = on_memory};
    static const struct profile_mark_visitor marks = {.mark = on_mark, .counter = on_counter};
    int r = profile_each_memory(profile, &memory, g, NULL);
    if (r == 0)
        r = profile_each_mark(profile, &marks, g);
    if (r == 0)
        r = add_sums(g);
    for (uint32_t i = 0; r == 0 && i < g->t->process_count; i++)
        if (g->last[i].peak_bytes) /* the curve is to reach it */
            r = add_point(g, (struct point){g->last[i].peak_ns, i, ANALYSIS_CURVE_ALLOCATED,
                                            (double)g->last[i].peak_bytes});
    return r;
}

/* --- the axis --- */

size_t analysis_curves_place(const struct analysis_curves *c, uint64_t time_ns)
{
    if (time_ns <= c->from_ns || c->to_ns <= c->from_ns)
        return 0;
    double share = (double)(time_ns - c->from_ns) / (double)(c->to_ns - c->from_ns);
    size_t place = (size_t)(share * (double)c->places);
    return place < c->places ? place : c->places - 1;
}

uint64_t analysis_curves_time(const struct analysis_curves *c, size_t place)
{
    double width = (double)(c->to_ns - c->from_ns) / (double)c->places;
    return c->from_ns + (uint64_t)(width * (double)place);
}

/* From the start of the recording, or of the range, to the last that is known. */
static void choose_span(struct gathering *g)
{
    struct analysis_curves *c = g->curves;
    c->from_ns = g->from_ns;
    c->to_ns = c->from_ns;
    for (size_t i = 0; i < g->points.len; i++)
        c->to_ns = max_u64(c->to_ns, g->points.data[i].time_ns);
    for (size_t i = 0; i < c->mark.len; i++)
        c->to_ns = max_u64(c->to_ns, c->mark.data[i].time_ns);
}

/* --- curves --- */

static int curve_init(struct analysis_curve *curve, const struct record_memory *last,
                      uint32_t process, size_t places)
{
    *curve = (struct analysis_curve){
        .process = process, .peak_bytes = last->peak_bytes, .peak_ns = last->peak_ns};
    for (int i = 0; i < ANALYSIS_CURVE_KINDS; i++) {
        curve->value[i] = malloc(places * sizeof **curve->value);
        if (!curve->value[i])
            return E_NOMEM;
        for (size_t k = 0; k < places; k++)
            curve->value[i][k] = NAN;
    }
    return 0;
}

static int fill(struct gathering *g)
{
    struct analysis_curves *c = g->curves;
    _cleanup_free_ uint32_t *of_process = calloc(g->t->process_count + 1, sizeof *of_process);
    c->curve = calloc(g->t->process_count + 1, sizeof *c->curve);
    if (!of_process || !c->curve)
        return E_NOMEM;
    for (size_t i = 0; i < g->points.len; i++) {
        const struct point *p = &g->points.data[i];
        if (!of_process[p->process]) {
            int r = curve_init(&c->curve[c->count], &g->last[p->process], p->process, c->places);
            of_process[p->process] = (uint32_t)++c->count;
            if (r < 0)
                return r;
        }
        struct analysis_curve *curve = &c->curve[of_process[p->process] - 1];
        double *value = &curve->value[p->kind][analysis_curves_place(c, p->time_ns)];
        curve->points[p->kind] += isnan(*value) ? 1 : 0;
        *value = fmax(*value, p->value); /* fmax leaves NaN aside */
    }
    return 0;
}

static int by_peak(const void *a, const void *b)
{
    const struct analysis_curve *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes > y->peak_bytes ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

static int by_time(const void *a, const void *b)
{
    const struct analysis_curve_mark *x = a, *y = b;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

int analysis_curves_init(const struct profile *profile, const struct analysis_query *query,
                         size_t places, struct analysis_curves *ret)
{
    struct analysis_curves curves = {.places = places};
    struct gathering g = {.t = profile_tables(profile),
                          .query = query,
                          .from_ns = query->has_from ? analysis_query_ns(query->from) : 0,
                          .to_ns = query->has_to ? analysis_query_ns(query->to) : UINT64_MAX,
                          .curves = &curves};
    g.last = calloc(g.t->process_count + 1, sizeof *g.last);
    int r = g.last ? gather(profile, &g) : E_NOMEM;
    if (r == 0) {
        choose_span(&g);
        r = fill(&g);
    }
    if (r == 0 && curves.count)
        qsort(curves.curve, curves.count, sizeof *curves.curve, by_peak);
    if (r == 0 && curves.mark.len)
        qsort(curves.mark.data, curves.mark.len, sizeof *curves.mark.data, by_time);
    vec_release(&g.points);
    free(g.last);
    if (r < 0)
        analysis_curves_release(&curves);
    else
        memcpy(ret, &curves, sizeof *ret);
    return r;
}

void analysis_curves_release(struct analysis_curves *c)
{
    for (size_t i = 0; i < c->count; i++)
        for (int k = 0; k < ANALYSIS_CURVE_KINDS; k++)
            free(c->curve[i].value[k]);
    free(c->curve);
    vec_release(&c->mark);
    *c = (struct analysis_curves){0};
}
