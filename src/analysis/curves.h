/* Memory over time, one set of curves for each process, with as many places on the axis of time as are asked
 * for. A place has the most that was seen in its stretch of time: memory is asked for its highs. */
#ifndef PYROMETER_ANALYSIS_CURVES_H
#define PYROMETER_ANALYSIS_CURVES_H

#include "analysis/memory.h"
#include "base/vec.h"

/* Name in JSON, name of its counter. What is allocated has none: it is the sum of heap and objects wherever these are told, and
 * what checkpoints say. In recordings without objects it is the same as heap. */
#define ANALYSIS_CURVE_LIST(X)                                                                     \
    X(ALLOCATED, "allocated", "")                                                                  \
    X(HEAP, "heap", "memory.heap")                                                                 \
    X(OBJECTS, "objects", "memory.objects")                                                        \
    X(RSS, "rss", "memory.rss")

enum analysis_curve_kind {
#define X(id, name, counter) ANALYSIS_CURVE_##id,
    ANALYSIS_CURVE_LIST(X)
#undef X
        ANALYSIS_CURVE_KINDS
};

extern const char *const ANALYSIS_CURVE_NAMES[ANALYSIS_CURVE_KINDS + 1]; /* NULL ends it */

struct analysis_curve {
    uint32_t process;
    double *value[ANALYSIS_CURVE_KINDS]; /* for each place; NaN: nothing was seen in it. Owned */
    size_t points[ANALYSIS_CURVE_KINDS]; /* places that have one */
    uint64_t peak_bytes, peak_ns;        /* of what was allocated */
};

struct analysis_curve_mark {
    uint64_t time_ns;
    uint32_t process, name; /* string id */
};

struct analysis_curves {
    uint64_t from_ns, to_ns;
    size_t places;
    struct analysis_curve *curve; /* the highest peak first */
    size_t count;
    VEC(struct analysis_curve_mark) mark; /* in the order of time */
};

/* Of the query's processes and range. */
int analysis_curves_init(const struct profile *profile, const struct analysis_query *query,
                         size_t places, struct analysis_curves *ret);
void analysis_curves_release(struct analysis_curves *c);

/* Where on the axis a moment is, and when a place begins. */
size_t analysis_curves_place(const struct analysis_curves *c, uint64_t time_ns);
uint64_t analysis_curves_time(const struct analysis_curves *c, size_t place);

#endif
