#include "stats/sample.h"

#include "base/attr.h"
#include "base/err.h"

#include <math.h>
#include <stdbool.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *values, size_t count)
{
    if (count)
        qsort(values, count, sizeof *values, compare);
}

double stats_quantile_sorted(const double *sorted, size_t count, double share)
{
    if (!count)
        return NAN;
    double at = share * (double)(count - 1);
    size_t low = (size_t)at;
    if (low + 1 >= count)
        return sorted[count - 1];
    return sorted[low] + (at - (double)low) * (sorted[low + 1] - sorted[low]);
}

double stats_median_sorted(const double *sorted, size_t count)
{
    if (!count)
        return NAN;
    double upper = sorted[count / 2];
    return count % 2 ? upper : sorted[count / 2 - 1] + (upper - sorted[count / 2 - 1]) / 2;
}

double stats_median(double *values, size_t count)
{
    stats_sort(values, count);
    return stats_median_sorted(values, count);
}

double stats_spread(double *values, size_t count)
{
    static const double NORMAL = 1.4826; /* 1 / the third quartile of the normal distribution */
    double middle = stats_median(values, count);
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - middle);
    return NORMAL * stats_median(values, count);
}

/* --- how far apart --- */

static bool all_positive(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(values[i] > 0))
            return false;
    return true;
}

static double ratio_of_medians(double *before, size_t n, double *after, size_t m)
{
    double b = stats_median(before, n), a = stats_median(after, m);
    return a == b ? 1 : b > 0 && a >= 0 ? a / b : NAN;
}

int stats_ratio(const double *before, size_t before_count, const double *after, size_t after_count,
                double *ret)
{
    size_t n = min_u64(before_count, STATS_PAIRED_MAX), m = min_u64(after_count, STATS_PAIRED_MAX);
    before += before_count - n;
    after += after_count - m;
    _cleanup_free_ double *work = malloc((n * m + n + m + 1) * sizeof *work);
    if (!work)
        return E_NOMEM;
    if (!n || !m) {
        *ret = NAN;
        return 0;
    }
    if (!all_positive(before, n) || !all_positive(after, m)) {
        for (size_t i = 0; i < n; i++)
            work[i] = before[i];
        for (size_t j = 0; j < m; j++)
            work[n + j] = after[j];
        *ret = ratio_of_medians(work, n, work + n, m);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            work[i * m + j] = after[j] / before[i];
    *ret = stats_median(work, n * m);
    return 0;
}

/* --- tails --- */

double stats_normal_above(double z)
{
    return 0.5 * erfc(z / M_SQRT2);
}

/* The continued fraction of the incomplete beta function (Lentz); it converges within some dozens
 * of steps for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    enum { STEPS = 300 };
    static const double TINY = 1e-300, CLOSE = 1e-15;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < TINY ? TINY : d);
    double h = d;
    for (int i = 1; i <= STEPS; i++) {
        double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
        double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
        double step = 1;
        for (int half = 0; half < 2; half++) {
            double term = half ? odd : even;
            d = 1 + term * d;
            d = 1 / (fabs(d) < TINY ? TINY : d);
            c = 1 + term / c;
            c = fabs(c) < TINY ? TINY : c;
            step = d * c;
            h *= step;
        }
        if (fabs(step - 1) < CLOSE)
            break;
    }
    return h;
}

static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x > 0;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stats_student_above(double t, double freedom)
{
    if (!(freedom > 0) || isnan(t))
        return NAN;
    double tail =
        isinf(t) ? 0 : 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
    return t >= 0 ? tail : 1 - tail;
}
