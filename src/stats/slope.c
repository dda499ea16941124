#include "stats/slope.h"

#include "stats/sample.h"

#include <math.h>

enum { LEAST_POINTS = 3, HALVINGS = 80 };

void stats_points_add_run(struct stats_points *p, double n, double x, double y)
{
    p->n += n;
    p->x += x;
    p->y += n * y;
    p->xy += x * y;
    p->yy += n * y * y;
}

void stats_points_add(struct stats_points *p, double x, double y)
{
    stats_points_add_run(p, 1, x, y);
    p->xx += x * x;
}

/* The tail is known; its point is found by halving. One degree of freedom has the farthest: 12.7. */
double stats_student_point(double freedom)
{
    double low = 1.9, high = freedom < 1 ? 1e6 : 13;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (stats_student_above(middle, freedom) > 0.025)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

struct stats_slope stats_slope_of(const struct stats_points *p)
{
    struct stats_slope s = {NAN, NAN, NAN};
    double n = p->n, wide = p->xx - p->x * p->x / n;
    if (n < LEAST_POINTS || !(wide > 0))
        return s;
    double together = p->xy - p->x * p->y / n, high = p->yy - p->y * p->y / n;
    s.slope = together / wide;
    double rest = fmax(0, high - s.slope * together);
    double half = stats_student_point(n - 2) * sqrt(rest / (n - 2) / wide);
    s.low = s.slope - half;
    s.high = s.slope + half;
    return s;
}
