/* How sure the ratio of two medians is: an interval by resampling (the percentile bootstrap), from
 * a fixed seed, so that the same runs always give the same interval. */
#ifndef PYROMETER_STATS_BOOTSTRAP_H
#define PYROMETER_STATS_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

/* Of longer groups the last ones are taken. */
enum { STATS_BOOTSTRAP_ROUNDS = 2000, STATS_BOOTSTRAP_MAX = 5000 };

struct stats_interval {
    double low, high; /* NaN where the ratio has no meaning */
};

/* The interval of median(after) / median(before) at `confidence` (0.95). Three values of each are
 * the least that says anything: NaN below. 0, or E_NOMEM. */
int stats_bootstrap_ratio(const double *before, size_t before_count, const double *after,
                          size_t after_count, double confidence, uint64_t seed,
                          struct stats_interval *ret);

#endif
