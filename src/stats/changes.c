#include "stats/changes.h"

#include "base/attr.h"
#include "base/err.h"
#include "stats/random.h"
#include "stats/ranks.h"
#include "stats/sample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LEVEL = STATS_CHANGES_LEVEL, WINDOW = 7, PERMUTATIONS = 1999, ENOUGH = 12, SEED = 6 };

/* A chance above this is no proof. One series in some hundred without any change may show one. */
#define P_MAX 0.002
/* Pulled in to so many standard deviations from the neighbours' median. */
#define CLIP 2
/* What a level costs, in squared standard deviations for each logarithm of the length. */
#define PRICE 2.5
/* Noise below this share is not believed: a counter that hardly ever moves has none, and then every
 * wobble would be a change. */
#define NOISE_LEAST 1e-3

struct series {
    const double *value; /* as measured; borrowed */
    double *level;       /* logarithms, outliers pulled in, in standard deviations; owned */
    double *rank;        /* room for the test; owned */
    size_t count;
};

/* --- preparing --- */

static double choose_scale(const struct series *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (!(s->value[i] > 0))
            return 0;
    return 1;
}

/* The noise, by the differences of neighbours: they know nothing of levels. */
static double measure_noise(const double *x, size_t count, double *work, bool is_log)
{
    double largest = 0;
    for (size_t i = 0; i + 1 < count; i++)
        work[i] = (x[i + 1] - x[i]) / M_SQRT2;
    double noise = count > 1 ? stats_spread(work, count - 1) : 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(x[i]));
    double least = is_log ? NOISE_LEAST : NOISE_LEAST * largest;
    return fmax(noise, least > 0 ? least : NOISE_LEAST);
}

static int prepare(struct series *s)
{
    _cleanup_free_ double *x = malloc(2 * (s->count + 1) * sizeof *x);
    if (!x)
        return E_NOMEM;
    bool is_log = choose_scale(s) > 0;
    for (size_t i = 0; i < s->count; i++)
        x[i] = is_log ? log(s->value[i]) : s->value[i];
    double noise = measure_noise(x, s->count, x + s->count, is_log);
    for (size_t i = 0; i < s->count; i++) {
        double near[WINDOW];
        size_t from = i < WINDOW / 2 ? 0 : i - WINDOW / 2, n = 0;
        for (size_t j = from; j < s->count && j <= i + WINDOW / 2; j++)
            near[n++] = x[j];
        double middle = stats_median(near, n), off = (x[i] - middle) / noise;
        s->level[i] = middle / noise + fmin(fmax(off, -CLIP), CLIP);
    }
    return 0;
}

/* --- finding --- */

/* The least cost of splitting the first t values, and where the last level of that begins. */
static int partition(const struct series *s, size_t *starts, size_t *ret_count)
{
    size_t n = s->count;
    _cleanup_free_ double *work = malloc(3 * (n + 1) * sizeof *work);
    _cleanup_free_ size_t *last = malloc((n + 1) * sizeof *last);
    if (!work || !last)
        return E_NOMEM;
    double *sum = work, *square = work + n + 1, *best = work + 2 * (n + 1);
    double price = PRICE * log((double)n + 1);
    sum[0] = square[0] = 0;
    for (size_t i = 0; i < n; i++) { /* about the first value: the squares keep their digits */
        double x = s->level[i] - s->level[0];
        sum[i + 1] = sum[i] + x;
        square[i + 1] = square[i] + x * x;
    }
    best[0] = -price;
    for (size_t t = 1; t <= n; t++) {
        best[t] = INFINITY;
        last[t] = 0;
        for (size_t from = 0; from + LEVEL <= t; from++) {
            double total = sum[t] - sum[from];
            double cost =
                best[from] + price + square[t] - square[from] - total * total / (double)(t - from);
            if (cost < best[t]) {
                best[t] = cost;
                last[t] = from;
            }
        }
    }
    size_t count = 0;
    for (size_t t = n; t > 0 && last[t] > 0; t = last[t])
        starts[count++] = last[t];
    for (size_t i = 0; i < count / 2; i++) {
        size_t other = starts[i];
        starts[i] = starts[count - 1 - i];
        starts[count - 1 - i] = other;
    }
    *ret_count = count;
    return 0;
}

/* --- proving --- */

/* The best split of ranks whose mean is known: the largest standardised rank sum. */
static double best_split(const double *rank, size_t count)
{
    double mean = ((double)count + 1) / 2, sum = 0, best = 0;
    for (size_t i = 0; i + LEVEL < count; i++) {
        double k = (double)(i + 1);
        sum += rank[i] - mean;
        if (i + 1 >= LEVEL)
            best = fmax(best, sum * sum / (k * ((double)count - k)));
    }
    return best;
}

static int prove(const struct series *s, size_t from, size_t to, double *ret_p)
{
    struct stats_random random;
    size_t n = to - from;
    if (stats_ranks_of(s->value + from, n, s->rank) < 0)
        return E_NOMEM;
    double seen = best_split(s->rank, n) * (1 - 1e-9); /* an equal one counts, rounding or not */
    unsigned rounds = 0, as_good = 0;
    stats_random_seed(&random, SEED);
    while (rounds < PERMUTATIONS && as_good < ENOUGH) { /* enough: it is no proof any more */
        for (size_t i = n; i > 1; i--) {
            size_t other = stats_random_below(&random, (uint32_t)i);
            double held = s->rank[i - 1];
            s->rank[i - 1] = s->rank[other];
            s->rank[other] = held;
        }
        as_good += best_split(s->rank, n) >= seen;
        rounds++;
    }
    *ret_p = (as_good + 1.) / (rounds + 1.);
    return 0;
}

static int describe(const struct series *s, const size_t *bounds, struct stats_change *ret)
{
    size_t from = bounds[0], at = bounds[1], to = bounds[2];
    struct stats_change c = {.at = at, .before_count = at - from, .after_count = to - at};
    int r = prove(s, from, to, &c.p);
    memcpy(s->rank, s->value + from, (to - from) * sizeof *s->rank);
    c.before = stats_median(s->rank, at - from);
    c.after = stats_median(s->rank + (at - from), to - at);
    *ret = c;
    return r;
}

static bool is_small(const struct stats_change *c, double least)
{
    return !(fabs(c->after - c->before) > least * fmax(fabs(c->before), fabs(c->after)));
}

/* Drops the least proved change until all are proved; the levels beside it become one. */
static int keep_proved(const struct series *s, double least, size_t *bounds, size_t *count,
                       struct stats_changes *ret)
{
    struct stats_change *change = ret->change;
    int r = 0;
    for (size_t i = 0; r == 0 && i < *count; i++)
        r = describe(s, bounds + i, &change[i]);
    while (r == 0 && *count) {
        size_t worst = 0;
        for (size_t i = 1; i < *count; i++) {
            bool small = is_small(&change[i], least), worst_small = is_small(&change[worst], least);
            if (small != worst_small ? small : change[i].p > change[worst].p)
                worst = i;
        }
        if (change[worst].p <= P_MAX && !is_small(&change[worst], least))
            break;
        memmove(bounds + worst + 1, bounds + worst + 2, (*count - worst) * sizeof *bounds);
        memmove(change + worst, change + worst + 1, (*count - worst - 1) * sizeof *change);
        --*count;
        if (worst > 0)
            r = describe(s, bounds + worst - 1, &change[worst - 1]);
        if (r == 0 && worst < *count)
            r = describe(s, bounds + worst, &change[worst]);
    }
    return r;
}

static int find(struct series *s, double least, struct stats_changes *ret)
{
    size_t count, *bounds = malloc((STATS_CHANGES_MAX + 2) * sizeof *bounds);
    int r = bounds ? prepare(s) : E_NOMEM;
    if (r == 0)
        r = partition(s, bounds + 1, &count);
    if (r == 0) {
        bounds[0] = 0;
        bounds[count + 1] = s->count;
        r = keep_proved(s, least, bounds, &count, ret);
        ret->count = count;
    }
    free(bounds);
    return r;
}

int stats_changes_find(const double *values, size_t count, double least, struct stats_changes *ret)
{
    size_t n = min_u64(count, STATS_CHANGES_VALUES);
    ret->count = 0;
    ret->first = count - n;
    if (n < (size_t)2 * LEVEL)
        return 0;
    struct series s = {.value = values + ret->first,
                       .level = malloc(n * sizeof(double)),
                       .rank = malloc(n * sizeof(double)),
                       .count = n};
    int r = s.level && s.rank ? find(&s, least, ret) : E_NOMEM;
    for (size_t i = 0; r == 0 && i < ret->count; i++)
        ret->change[i].at += ret->first;
    free(s.level);
    free(s.rank);
    return r;
}
