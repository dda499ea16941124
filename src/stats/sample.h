/* What one handful of measurements says: its middle and its spread, by order and not by sum, so
 * that a run that was disturbed does not decide. Values must be finite. */
#ifndef PYROMETER_STATS_SAMPLE_H
#define PYROMETER_STATS_SAMPLE_H

#include <stddef.h>

/* Ascending, in place. */
void stats_sort(double *values, size_t count);

/* Of ascending values; `share` 0–1, interpolated. NaN of none. */
double stats_quantile_sorted(const double *sorted, size_t count, double share);
double stats_median_sorted(const double *sorted, size_t count);

/* The same of values in any order, which are sorted for it. */
double stats_median(double *values, size_t count);

/* The standard deviation that a normal distribution with this median of absolute deviations would
 * have. The values are replaced. */
double stats_spread(double *values, size_t count);

/* How far `after` lies above `before`, as a factor: the median of all ratios of one value of each
 * (Hodges and Lehmann), or where values are not all above zero, the ratio of medians. It uses
 * nearly all that the values tell and is moved by no outlier. At most the last STATS_PAIRED_MAX of
 * each are taken. NaN if one is empty or the ratio has no meaning. 0, or E_NOMEM. */
enum { STATS_PAIRED_MAX = 500 };
int stats_ratio(const double *before, size_t before_count, const double *after, size_t after_count,
                double *ret);

/* Student's t: the probability of more than t with that many degrees of freedom (any above 0). */
double stats_student_above(double t, double freedom);

/* The same of the normal distribution. */
double stats_normal_above(double z);

#endif
