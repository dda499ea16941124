/* Did it get worse? One metric of a run or a group against its baseline.
 *
 * A group trips the gate if two things hold: its values lie above the baseline's by Mann and
 * Whitney's test at `alpha`, and by the ratio of both (stats_ratio) by at least `threshold`. The
 * first keeps noise out, whatever its shape; the second what is real but small.
 *
 * What one run can promise: little. Of runs that are disturbed now and then (one in twenty, half as
 * slow again), no rule can tell a disturbed one from a slower program by looking at one value. So a
 * run alone (or a group too small for `alpha` by ranks) trips only
 *  - if it lies above all that a disturbance explains: more than STATS_GATE_DISTURBED times the
 *    median, and three standard deviations; or
 *  - if the baseline repeats itself nearly exactly (within STATS_GATE_STILL from the least to the
 *    largest, over at least STATS_GATE_STILL_RUNS runs, as memory often does), and the run lies
 *    above the largest by the threshold and three times that range.
 *
 * Kept by tests/unit/test_stats.c on noise of 5 % (lognormal) with 5 % of the runs × 1.5: at most
 * 1 % of checks without a change trip; +10 % trips in at least 95 % with 20 runs on each side. */
#ifndef PYROMETER_STATS_GATE_H
#define PYROMETER_STATS_GATE_H

#include "stats/changes.h"
#include "stats/ranks.h"

#define STATS_GATE_ALPHA     0.008 /* the rest of 1 % is for steps in the series */
#define STATS_GATE_THRESHOLD 0.05
#define STATS_GATE_DISTURBED 1.5
#define STATS_GATE_STILL     0.02
enum { STATS_GATE_STILL_RUNS = 8, STATS_GATE_BASELINE_LEAST = 5 };

enum stats_verdict {
    STATS_SAME,    /* nothing that these runs could show */
    STATS_WORSE,   /* the gate trips */
    STATS_BETTER,  /* as sure as worse, the other way */
    STATS_TOO_FEW, /* so few runs that nothing could have tripped it */
};

struct stats_gate_options {
    double alpha;       /* chance of a false alarm of this one question */
    double threshold;   /* a share: 0.05 */
    bool is_less_worse; /* falling is what must not happen */
};

struct stats_gate {
    enum stats_verdict verdict;
    bool by_ranks; /* the group was large enough for the test; else the rules for a run alone */
    double before, after; /* medians */
    double ratio;         /* after / before, NaN where it has no meaning */
    struct stats_ranks ranks;
    double detectable; /* the smallest ratio that these runs would show, about 19 times in 20 */
};

int stats_gate_decide(const double *baseline, size_t baseline_count, const double *values,
                      size_t count, const struct stats_gate_options *options,
                      struct stats_gate *ret);

/* Runs that come one by one, as in CI, say nothing alone; but their series does after some. Looks
 * for the last change of level in `series` (oldest first, the runs in question last): it counts if
 * it is for the worse by at least the threshold and began within the last `recent` runs. *ret_found
 * tells; the change is then in *ret. */
int stats_gate_step(const double *series, size_t count, size_t recent,
                    const struct stats_gate_options *options, struct stats_change *ret,
                    bool *ret_found);

#endif
