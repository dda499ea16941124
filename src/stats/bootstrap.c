#include "stats/bootstrap.h"

#include "base/attr.h"
#include "base/err.h"
#include "stats/random.h"
#include "stats/sample.h"

#include <math.h>
#include <string.h>

enum { LEAST = 3, DRAWS_MAX = 8 * 1000 * 1000, ROUNDS_LEAST = 400 };

/* The last values of a group, ascending, and room to count how often each was drawn. */
struct group {
    double *sorted;
    uint32_t *drawn;
    size_t count;
};

static int group_init(struct group *g, const double *values, size_t count)
{
    g->count = min_u64(count, STATS_BOOTSTRAP_MAX);
    g->sorted = malloc((g->count + 1) * sizeof *g->sorted);
    g->drawn = malloc((g->count + 1) * sizeof *g->drawn);
    if (!g->sorted || !g->drawn)
        return E_NOMEM;
    if (g->count)
        memcpy(g->sorted, values + (count - g->count), g->count * sizeof *values);
    stats_sort(g->sorted, g->count);
    return 0;
}

static void group_release(struct group *g)
{
    free(g->sorted);
    free(g->drawn);
}

/* The median of as many draws with replacement. The values are sorted once; a draw is then a count,
 * and the median where half of the counts have passed: no sorting in the loop. */
static double draw_median(struct group *g, struct stats_random *random)
{
    memset(g->drawn, 0, g->count * sizeof *g->drawn);
    for (size_t i = 0; i < g->count; i++)
        g->drawn[stats_random_below(random, (uint32_t)g->count)]++;
    size_t upper = g->count / 2, lower = g->count % 2 ? upper : upper - 1, passed = 0;
    double low = NAN;
    for (size_t i = 0; i < g->count; i++) {
        passed += g->drawn[i];
        if (isnan(low) && passed > lower)
            low = g->sorted[i];
        if (passed > upper)
            return low + (g->sorted[i] - low) / 2;
    }
    return NAN;
}

static size_t choose_rounds(size_t draws)
{
    size_t rounds = DRAWS_MAX / draws;
    return rounds > STATS_BOOTSTRAP_ROUNDS ? STATS_BOOTSTRAP_ROUNDS
           : rounds < ROUNDS_LEAST         ? ROUNDS_LEAST
                                           : rounds;
}

static int resample(struct group *before, struct group *after, double confidence, uint64_t seed,
                    struct stats_interval *ret)
{
    struct stats_random random;
    size_t rounds = choose_rounds(before->count + after->count);
    _cleanup_free_ double *ratio = malloc(rounds * sizeof *ratio);
    if (!ratio)
        return E_NOMEM;
    stats_random_seed(&random, seed);
    for (size_t i = 0; i < rounds; i++) {
        double b = draw_median(before, &random), a = draw_median(after, &random);
        if (!(b > 0)) {
            *ret = (struct stats_interval){NAN, NAN};
            return 0;
        }
        ratio[i] = a / b;
    }
    stats_sort(ratio, rounds);
    double tail = (1 - confidence) / 2;
    *ret = (struct stats_interval){stats_quantile_sorted(ratio, rounds, tail),
                                   stats_quantile_sorted(ratio, rounds, 1 - tail)};
    return 0;
}

int stats_bootstrap_ratio(const double *before, size_t before_count, const double *after,
                          size_t after_count, double confidence, uint64_t seed,
                          struct stats_interval *ret)
{
    struct group b = {0}, a = {0};
    int r = 0;
    if (before_count < LEAST || after_count < LEAST) {
        *ret = (struct stats_interval){NAN, NAN};
        return 0;
    }
    r = group_init(&b, before, before_count);
    r = r < 0 ? r : group_init(&a, after, after_count);
    r = r < 0 ? r : resample(&b, &a, confidence, seed, ret);
    group_release(&b);
    group_release(&a);
    return r;
}
