/* Where a noisy series changed its level for good.
 *
 * Found by optimal partitioning (the split into levels with the least squares, a price for each
 * level), on logarithms where all values are above zero, with lone outliers pulled in towards
 * their neighbours first; then proved one by one: between its two levels a change must stand a
 * permutation test of the best rank sum over every split, so that having looked for the best place
 * is paid for. What fails is dropped and its neighbours are asked again. All from a fixed seed.
 *
 * A level has at least STATS_CHANGES_LEVEL values: what lasted shorter is an outlier to us. */
#ifndef PYROMETER_STATS_CHANGES_H
#define PYROMETER_STATS_CHANGES_H

#include <stddef.h>

enum {
    STATS_CHANGES_VALUES =
        1000, /* of a longer series the last ones are looked at: n² is too much */
    STATS_CHANGES_LEVEL = 4,
    STATS_CHANGES_MAX = STATS_CHANGES_VALUES / STATS_CHANGES_LEVEL,
};

struct stats_change {
    size_t at;            /* the first value of the new level */
    double before, after; /* the medians of both levels */
    size_t before_count, after_count;
    double p; /* chance of such a step in a series without any */
};

struct stats_changes {
    struct stats_change change[STATS_CHANGES_MAX]; /* in order */
    size_t count;
    size_t first; /* the series was looked at from here on */
};

/* `least`: steps smaller than this share (0.01) are left out. 0, or E_NOMEM. */
int stats_changes_find(const double *values, size_t count, double least, struct stats_changes *ret);

#endif
