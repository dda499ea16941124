/* Round numbers along an axis: 0, 20, 40 … and never 17.3, 34.6. */
#ifndef PYROMETER_DRAW_AXIS_H
#define PYROMETER_DRAW_AXIS_H

#include <stddef.h>

enum { DRAW_AXIS_TICKS = 12 };

struct draw_axis {
    double low, high; /* of the axis: ticks are at both ends */
    double tick[DRAW_AXIS_TICKS];
    size_t ticks;
    int decimals; /* that the labels need */
};

/* An axis around low … high with about `want` steps of 1, 2 or 5 times a power of ten. An empty or
 * infinite range becomes one around it. */
struct draw_axis draw_axis_around(double low, double high, size_t want);

/* Where a value lies on it: 0 at the low end, 1 at the high end. */
double draw_axis_place(const struct draw_axis *axis, double value);

#endif
