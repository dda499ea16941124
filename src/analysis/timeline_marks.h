/* The marks, spans and counters of a recording on their way into a timeline. Inside src/analysis. */
#ifndef PYROMETER_ANALYSIS_TIMELINE_MARKS_H
#define PYROMETER_ANALYSIS_TIMELINE_MARKS_H

#include "analysis/timeline.h"
#include "profile/events.h"

struct timeline_mark {
    uint32_t thread, name;
    bool is_moment, is_open;
    uint64_t begin_ns, end_ns;
};

struct timeline_value {
    uint32_t process, name;
    struct analysis_timeline_point point;
};

struct timeline_marks {
    const struct profile_tables *tables;
    const struct analysis_query *query;
    VEC(struct timeline_mark) mark;   /* by thread, then time; the longer first */
    VEC(struct timeline_value) value; /* by process, name, time */
};

/* All of the query's threads, whatever the range. */
int timeline_marks_init(const struct profile *profile, const struct analysis_query *query,
                        struct timeline_marks *ret);
void timeline_marks_release(struct timeline_marks *m);

/* Makes a range hold all of them. */
void timeline_marks_widen(const struct timeline_marks *m, uint64_t *first, uint64_t *last);

/* Adds those in the timeline's range, whose threads have room for every thread of the file. */
int timeline_marks_add(const struct timeline_marks *m, struct analysis_timeline *t);

#endif
