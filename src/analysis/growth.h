/* How much memory grows from one iteration of a program to the next, by row.
 *
 * The program says where its iterations are: a mark of one name, set again and again. The recorder takes
 * a checkpoint at each, and a straight line through what is alive there gives bytes an iteration with a
 * 95 % interval; another goes through the later two thirds, and the interval holds both. What only wobbles, or grew
 * once while caches filled, has zero in its interval. */
#ifndef PYROMETER_ANALYSIS_GROWTH_H
#define PYROMETER_ANALYSIS_GROWTH_H

#include "analysis/rows.h"
#include "stats/slope.h"

enum { ANALYSIS_GROWTH_LEAST = 5 }; /* marks of one name that make iterations of it */

struct analysis_growth {
    struct profile_string mark; /* borrowed; empty: the program marks no iterations */
    uint32_t process;           /* whose: the one with most of them */
    uint64_t iterations;        /* marks of that name */
    size_t points;              /* of these, with a checkpoint */
    uint32_t other_names;       /* names that would have done, too */
    struct stats_slope total;   /* of what the query leaves */
    struct stats_slope *row; /* of each row's own blocks; owned, NULL if there are no iterations */
};

/* Iterations are marks named `mark`, or, if NULL, the name that is seen most often. Rows are of a kind that
 * stands in stacks; `query` is the one their weights were made with. */
int analysis_growth_init(const struct analysis_rows *rows, const struct analysis_query *query,
                         const char *mark, struct analysis_growth *ret);
void analysis_growth_release(struct analysis_growth *g);

#endif
