/* Several recordings of a program before and after → the functions that explain the difference,
 * and in each the line and the caller.
 *
 * Recordings are added one at a time and may be freed afterwards. Functions are the same if name
 * and module agree, wherever the file lies and on whatever line they begin; lines of a function are
 * the same if their text is, or where a text is not to be had, their distance from its first line.
 * What counts is the time in a function itself: a function that calls another more often shows by
 * the other, whose caller is then told. stats/blame.h says how sure is sure. */
#ifndef PYROMETER_ANALYSIS_CULPRIT_H
#define PYROMETER_ANALYSIS_CULPRIT_H

#include "analysis/weights.h"
#include "stats/blame.h"

/* Recordings of both sides together; and the functions of which lines and callers are told. */
enum { ANALYSIS_CULPRIT_RUNS = 256, ANALYSIS_CULPRIT_SHOWN = 20 };

struct analysis_place {
    const char *name, *file; /* borrowed from the culprits; "" where there is none */
    uint32_t line;           /* 0: not known */
    double before, after;    /* mean seconds (or what the metric is in) */
};

struct analysis_culprit {
    struct analysis_place function; /* at its first line, as in the later runs */
    struct stats_blame_part blame;
    bool is_special;              /* a note about the stack, no code */
    struct analysis_place line;   /* of it, the one that changed most in the same direction */
    struct analysis_place caller; /* the call that brought most of the change; line 0: none */
};

struct analysis_culprits {
    struct analysis_culprit *list; /* the blamed first; at most ANALYSIS_CULPRIT_SHOWN */
    size_t count, blamed;
    size_t functions;                 /* in all */
    size_t before_count, after_count; /* recordings */
    double before, after;             /* the whole, mean of the runs as they were */
    const struct analysis_metric *metric;
};

struct analysis_blame;

int analysis_blame_new(struct analysis_blame **ret);
void analysis_blame_free(struct analysis_blame *b);

/* E_LIMIT: more recordings than ANALYSIS_CULPRIT_RUNS. E_INVALID: of another metric than the first. */
int analysis_blame_add(struct analysis_blame *b, bool is_after,
                       const struct analysis_weights *weights);

/* `b` must have runs on both sides (E_INVALID else) and must outlive the result. */
int analysis_blame_find(const struct analysis_blame *b, struct analysis_culprits *ret);
void analysis_culprits_release(struct analysis_culprits *c);

#endif
