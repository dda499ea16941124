/* Mann and Whitney's test: do the values of one group tend to lie above those of the other? Only
 * the order counts, so no outlier and no shape of the noise can fool it.
 *
 * Up to STATS_RANKS_EXACT values in all the distribution is counted out, ties included; above it is
 * the normal one, with the correction for ties and for steps. Which of both was used is told. */
#ifndef PYROMETER_STATS_RANKS_H
#define PYROMETER_STATS_RANKS_H

#include <stdbool.h>
#include <stddef.h>

enum { STATS_RANKS_EXACT = 50 };

struct stats_ranks {
    double u;        /* pairs in which the second is above the first; a tie is half a one */
    double superior; /* u as a share of all pairs: 0.5 for equal groups */
    double p_above;  /* chance of such a u or a larger one, were the groups alike */
    double p_below;  /* … or a smaller one */
    double p;        /* … or one as far off to either side */
    bool is_exact;
};

/* One empty group proves nothing: every p is 1. 0, or E_NOMEM. */
int stats_ranks_test(const double *first, size_t first_count, const double *second,
                     size_t second_count, struct stats_ranks *ret);

/* Ranks 1…n of the values, ties share the mean of theirs; `rank` has room for all. Returns the sum
 * of t³ - t over the ties, or a negative number without memory. */
double stats_ranks_of(const double *values, size_t count, double *rank);

#endif
