/* The lines of functions and the calls that lead to them, over several recordings: part of
 * analysis/culprit.h, kept apart to be read apart. */
#ifndef PYROMETER_ANALYSIS_CULPRIT_LINES_H
#define PYROMETER_ANALYSIS_CULPRIT_LINES_H

#include "analysis/culprit.h"
#include "base/vec.h"

/* What one line of a function weighed in one recording under one caller. */
struct culprit_detail {
    uint32_t function, run;
    uint32_t line, offset; /* offset: from the function's first line */
    uint32_t text;         /* hash of the line without its blanks; 0: not known */
    uint32_t caller;       /* a function; UINT32_MAX: nobody */
    uint32_t caller_line;
    double weight;
};
typedef VEC(struct culprit_detail) culprit_detail_vec;

/* Adds those of a recording; `function` gives the function of each code. */
int culprit_details_add(culprit_detail_vec *details, const struct analysis_weights *weights,
                        const uint32_t *function, uint32_t run);

struct culprit_question {
    uint32_t function;
    const bool *is_after; /* of each run */
    size_t before_count, after_count;
    bool is_growth; /* the line that grew most; else the one that shrank most */
};

/* Numbers of the line and of the call; line 0 where there is none. */
int culprit_details_find(const culprit_detail_vec *details, const struct culprit_question *q,
                         struct analysis_place *ret_line, struct analysis_place *ret_caller,
                         uint32_t *ret_caller_function);

#endif
