/* A straight line through points, by least squares: how much y grows with x, and how sure that is. Points
 * are added one by one or as runs, and not kept. */
#ifndef PYROMETER_STATS_SLOPE_H
#define PYROMETER_STATS_SLOPE_H

#include <stddef.h>

/* Sums over points. y is best given less its first value: what they have in common costs digits. */
struct stats_points {
    double n, x, xx, y, xy, yy;
};

/* One point, or `n` of them with the same y, the sum of whose x is given. xx is not touched by the
 * latter: it is the caller's to fill in. */
void stats_points_add(struct stats_points *p, double x, double y);
void stats_points_add_run(struct stats_points *p, double n, double x, double y);

/* The slope and its 95 % interval by Student's t. With fewer than three points, or all at one x, nothing
 * is known: all are NaN. */
struct stats_slope {
    double slope, low, high;
};
struct stats_slope stats_slope_of(const struct stats_points *p);

/* The 97.5 % point of Student's t with that many degrees of freedom (any above 0). */
double stats_student_point(double freedom);

#endif
