#include "stats/ranks.h"

#include "base/attr.h"
#include "base/err.h"
#include "stats/sample.h"

#include <math.h>

struct placed {
    double value;
    size_t at;
};

static int by_value(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

double stats_ranks_of(const double *values, size_t count, double *rank)
{
    _cleanup_free_ struct placed *order = malloc((count + 1) * sizeof *order);
    if (!order)
        return -1;
    for (size_t i = 0; i < count; i++)
        order[i] = (struct placed){values[i], i};
    if (count)
        qsort(order, count, sizeof *order, by_value);
    double ties = 0;
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && order[to].value == order[from].value;)
            to++;
        double same = (double)(to - from);
        ties += same * same * same - same;
        for (size_t i = from; i < to; i++)
            rank[order[i].at] = (double)(from + to + 1) / 2;
    }
    return ties;
}

/* Counts the subsets of `take` of all ranks by their sum. Ranks of ties are halves, so with ties all
 * are doubled to be whole. The numbers stay exact: C(50, 25) is far below 2^53. */
static int count_out(const double *rank, size_t count, size_t take, double sum, bool has_ties,
                     struct stats_ranks *ret)
{
    size_t times = has_ties ? 2 : 1, at = (size_t)((double)times * sum + 0.5);
    size_t sums = times * count * (count + 1) / 2 + 1, reached = 0; /* the largest sum, and 0 */
    _cleanup_free_ double *ways = calloc((take + 1) * sums, sizeof *ways);
    if (!ways)
        return E_NOMEM;
    ways[0] = 1;
    for (size_t i = 0; i < count; i++) {
        size_t step = (size_t)((double)times * rank[i] + 0.5);
        reached += step;
        for (size_t n = take < i + 1 ? take : i + 1; n > 0; n--) {
            double *to = ways + n * sums;
            const double *from = ways + (n - 1) * sums;
            for (size_t s = step; s <= reached; s++)
                to[s] += from[s - step];
        }
    }
    const double *of_size = ways + take * sums;
    double all = 0, below = 0, above = 0;
    for (size_t s = 0; s < sums; s++) {
        all += of_size[s];
        below += s <= at ? of_size[s] : 0;
        above += s >= at ? of_size[s] : 0;
    }
    ret->p_below = below / all;
    ret->p_above = above / all;
    return 0;
}

static void approximate(double n, double m, double ties, struct stats_ranks *ret)
{
    double all = n + m, mean = n * m / 2;
    double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
    if (variance <= 0) { /* all values are one */
        ret->p_above = ret->p_below = 1;
        return;
    }
    /* half a step: the sum takes whole values, the curve does not */
    ret->p_above = stats_normal_above((ret->u - mean - 0.5) / sqrt(variance));
    ret->p_below = stats_normal_above((mean - ret->u - 0.5) / sqrt(variance));
}

int stats_ranks_test(const double *first, size_t first_count, const double *second,
                     size_t second_count, struct stats_ranks *ret)
{
    size_t n = first_count, m = second_count, count = n + m;
    if (!n || !m) {
        *ret = (struct stats_ranks){.superior = 0.5, .p_above = 1, .p_below = 1, .p = 1};
        return 0;
    }
    _cleanup_free_ double *work = calloc(2 * count, sizeof *work);
    if (!work)
        return E_NOMEM;
    double *all = work, *rank = work + count;
    for (size_t i = 0; i < count; i++)
        all[i] = i < n ? first[i] : second[i - n];
    double ties = stats_ranks_of(all, count, rank), sum = 0;
    if (ties < 0)
        return E_NOMEM;
    for (size_t i = n; i < count; i++)
        sum += rank[i];
    struct stats_ranks r = {.u = sum - (double)m * (double)(m + 1) / 2,
                            .is_exact = count <= STATS_RANKS_EXACT};
    r.superior = r.u / ((double)n * (double)m);
    int code = r.is_exact ? count_out(rank, count, m, sum, ties > 0, &r) : 0;
    if (code < 0)
        return code;
    if (!r.is_exact)
        approximate((double)n, (double)m, ties, &r);
    r.p = fmin(1, 2 * fmin(r.p_above, r.p_below));
    *ret = r;
    return 0;
}
