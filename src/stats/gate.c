#include "stats/gate.h"

#include "base/attr.h"
#include "base/err.h"
#include "stats/sample.h"

#include <math.h>
#include <string.h>

/* What the baseline is like. */
struct baseline {
    size_t count;
    double median, least, largest;
    double noise; /* standard deviation of the logarithms */
};

static int measure(const double *values, size_t count, struct baseline *ret)
{
    _cleanup_free_ double *work = malloc((count + 1) * sizeof *work);
    if (!work)
        return E_NOMEM;
    memcpy(work, values, count * sizeof *work);
    stats_sort(work, count);
    struct baseline b = {count, stats_median_sorted(work, count), work[0], work[count - 1], 0};
    if (b.least > 0) {
        for (size_t i = 0; i < count; i++)
            work[i] = log(work[i]);
        b.noise = stats_spread(work, count);
    }
    *ret = b;
    return 0;
}

/* Could the test by ranks reach alpha at all? Its least p is one way of all to choose the group. */
static bool ranks_can_tell(size_t n, size_t m, double alpha)
{
    double ways = 1;
    for (size_t i = 1; i <= m && ways < 1e12; i++)
        ways *= (double)(n + i) / (double)i;
    return 1 / ways <= alpha;
}

/* --- a run alone --- */

static bool is_still(const struct baseline *b)
{
    return b->count >= STATS_GATE_STILL_RUNS && b->least > 0 &&
           b->largest <= b->least * (1 + STATS_GATE_STILL);
}

/* The value that must be passed. */
static double bound_above(const struct baseline *b, double threshold)
{
    if (is_still(b))
        return b->largest * (1 + fmax(threshold, 3 * (b->largest / b->least - 1)));
    double bound = b->median * STATS_GATE_DISTURBED * exp(3 * b->noise);
    return fmax(fmax(bound, b->largest), b->median * (1 + threshold));
}

/* The same downwards. */
static double bound_below(const struct baseline *b, double threshold)
{
    if (is_still(b))
        return b->least / (1 + fmax(threshold, 3 * (b->largest / b->least - 1)));
    double bound = b->median / STATS_GATE_DISTURBED * exp(-3 * b->noise);
    return fmin(fmin(bound, b->least), b->median / (1 + threshold));
}

static enum stats_verdict judge_alone(const struct baseline *b, const double *values, size_t count,
                                      const struct stats_gate_options *o, double *ret_detectable)
{
    double above = bound_above(b, o->threshold), below = bound_below(b, o->threshold);
    bool is_above = true, is_below = true;
    for (size_t i = 0; i < count; i++) {
        is_above = is_above && values[i] > above;
        is_below = is_below && values[i] < below;
    }
    *ret_detectable = (o->is_less_worse ? below : above) / b->median;
    if (b->count < STATS_GATE_BASELINE_LEAST || !(b->median > 0))
        return STATS_TOO_FEW;
    bool is_worse = o->is_less_worse ? is_below : is_above;
    bool is_better = o->is_less_worse ? is_above : is_below;
    return is_worse ? STATS_WORSE : is_better ? STATS_BETTER : STATS_SAME;
}

/* --- a group --- */

static enum stats_verdict judge_group(const struct stats_gate *g,
                                      const struct stats_gate_options *o)
{
    /* without a ratio (a baseline of zero) only the order is left to judge by */
    bool up = isnan(g->ratio) ? g->after > g->before : g->ratio >= 1 + o->threshold;
    bool down = isnan(g->ratio) ? g->after < g->before : g->ratio <= 1 / (1 + o->threshold);
    bool is_above = up && g->ranks.p_above <= o->alpha;
    bool is_below = down && g->ranks.p_below <= o->alpha;
    bool is_worse = o->is_less_worse ? is_below : is_above;
    bool is_better = o->is_less_worse ? is_above : is_below;
    return is_worse ? STATS_WORSE : is_better ? STATS_BETTER : STATS_SAME;
}

/* By the normal approximation, with what ranks lose against means. */
static double detectable_ratio(const struct baseline *b, size_t m,
                               const struct stats_gate_options *o)
{
    static const double POWER = 1.645, EFFICIENCY = 1.03;
    double z = sqrt(-2 * log(o->alpha)); /* the quantile of alpha, a little too far out */
    z -= (2.515517 + 0.802853 * z + 0.010328 * z * z) /
         (1 + 1.432788 * z + 0.189269 * z * z + 0.001308 * z * z * z);
    double step =
        (z + POWER) * EFFICIENCY * b->noise * sqrt(1. / (double)b->count + 1. / (double)m);
    double ratio = fmax(exp(step), 1 + o->threshold);
    return o->is_less_worse ? 1 / ratio : ratio;
}

int stats_gate_decide(const double *baseline, size_t baseline_count, const double *values,
                      size_t count, const struct stats_gate_options *options,
                      struct stats_gate *ret)
{
    struct stats_gate g = {
        .verdict = STATS_TOO_FEW, .before = NAN, .after = NAN, .ratio = NAN, .detectable = NAN};
    int r = stats_ranks_test(baseline, baseline_count, values, count, &g.ranks);
    if (r < 0 || !baseline_count || !count) {
        *ret = g;
        return r;
    }
    struct baseline b, c;
    if ((r = measure(baseline, baseline_count, &b)) < 0 || (r = measure(values, count, &c)) < 0 ||
        (r = stats_ratio(baseline, baseline_count, values, count, &g.ratio)) < 0)
        return r;
    g.before = b.median;
    g.after = c.median;
    g.by_ranks = ranks_can_tell(baseline_count, count, options->alpha);
    enum stats_verdict alone = judge_alone(&b, values, count, options, &g.detectable);
    g.verdict = alone;
    if (g.by_ranks) {
        enum stats_verdict group = judge_group(&g, options);
        g.verdict = group == STATS_SAME && alone == STATS_WORSE ? STATS_WORSE : group;
        g.detectable = detectable_ratio(&b, count, options);
    }
    *ret = g;
    return 0;
}

int stats_gate_step(const double *series, size_t count, size_t recent,
                    const struct stats_gate_options *options, struct stats_change *ret,
                    bool *ret_found)
{
    struct stats_changes *changes = malloc(sizeof *changes);
    if (!changes)
        return E_NOMEM;
    int r =
        stats_changes_find(series, count, options->threshold / (1 + options->threshold), changes);
    *ret_found = false;
    if (r == 0 && changes->count) {
        struct stats_change c = changes->change[changes->count - 1];
        bool is_up = c.after > c.before;
        double ratio = is_up ? c.after / c.before : c.before / c.after;
        bool is_large = !isfinite(ratio) || ratio >= 1 + options->threshold;
        *ret_found = is_up != options->is_less_worse && is_large && count - c.at <= recent;
        *ret = c;
    }
    free(changes);
    return r;
}
