#include "stats/blame.h"

#include "base/attr.h"
#include "base/err.h"
#include "stats/sample.h"

#include <math.h>

/* What a part differs by from one run of the same program to the next, as a share: hash seeds, the
 * layout of memory, the garbage collector's moments, neighbours. */
#define RUN_NOISE 0.05
/* The same where there are no runs to learn from: on the safe side. */
#define RUN_NOISE_ALONE 0.08
/* And what a busy machine adds, for the whole of it being taken by others. Measured with ten programs
 * on two CPUs: a part then takes from half to twice its time. */
#define BUSY_NOISE 1.5
/* How many runs that knowledge is worth when there are runs to estimate it from, and when there are
 * not (then it is the freedom of Student's t). */
#define KNOWN_RUNS  3
#define KNOWN_ALONE 12

/* A part votes on the speed of a run with this many samples in the mean; from MANY on all have one
 * voice, lest the largest part, which may be the culprit, outvotes the others. */
enum { VOTE_SAMPLES = 40, VOTE_MANY = 300, VOTERS_LEAST = 3 };

struct work {
    const struct stats_blame_input *in;
    size_t runs;
    double *speed;  /* of each run: how slow it was, 1 in the middle */
    double busy;    /* mean square of the runs' */
    double *mean;   /* of each part over all runs */
    double *weight; /* of its vote */
    struct vote {
        double ratio, weight;
    } * votes;
};

static const struct stats_blame_cell *cell_of(const struct work *w, size_t part, size_t run)
{
    return &w->in->cell[part * w->runs + run];
}

/* --- the speed of each run --- */

static int by_ratio(const void *a, const void *b)
{
    const struct vote *x = a, *y = b;
    return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

static void prepare_votes(struct work *w)
{
    for (size_t p = 0; p < w->in->parts; p++) {
        double sum = 0, samples = 0, least = INFINITY;
        for (size_t r = 0; r < w->runs; r++) {
            sum += cell_of(w, p, r)->weight;
            samples += fmin(cell_of(w, p, r)->samples, VOTE_MANY);
            least = fmin(least, cell_of(w, p, r)->samples);
        }
        w->mean[p] = sum / (double)w->runs;
        samples /= (double)w->runs;
        /* what was absent from a run says nothing about its speed */
        bool votes = samples >= VOTE_SAMPLES && least > 0 && w->mean[p] > 0;
        w->weight[p] = votes ? fmin(samples, VOTE_MANY) : 0;
    }
}

/* The weighted median of the votes, or 1 if they are too few or one voice is half of all. */
static double vote(const struct work *w, size_t run)
{
    size_t count = 0;
    double all = 0, largest = 0, passed = 0;
    for (size_t p = 0; p < w->in->parts; p++) {
        if (w->weight[p] <= 0)
            continue;
        w->votes[count++] = (struct vote){cell_of(w, p, run)->weight / w->mean[p], w->weight[p]};
        all += w->weight[p];
        largest = fmax(largest, w->weight[p]);
    }
    if (count < VOTERS_LEAST || largest >= all / 2)
        return 1;
    qsort(w->votes, count, sizeof *w->votes, by_ratio);
    for (size_t i = 0; i < count; i++) {
        passed += w->votes[i].weight;
        if (passed >= all / 2)
            return w->votes[i].ratio > 0 ? w->votes[i].ratio : 1;
    }
    return 1;
}

/* --- one part --- */

struct side {
    double mean, squares; /* squares: of the deviations from the mean */
};

static struct side measure(const struct work *w, size_t part, size_t from, size_t count)
{
    struct side s = {0};
    for (size_t r = from; r < from + count; r++)
        s.mean += cell_of(w, part, r)->weight / w->speed[r] / (double)count;
    for (size_t r = from; r < from + count; r++) {
        double off = cell_of(w, part, r)->weight / w->speed[r] - s.mean;
        s.squares += off * off;
    }
    return s;
}

/* What one sample of the part weighs; 0 of what was counted. */
static double sample_weight(const struct work *w, size_t part)
{
    double weight = 0, samples = 0;
    for (size_t r = 0; r < w->runs; r++) {
        weight += cell_of(w, part, r)->weight;
        samples += cell_of(w, part, r)->samples;
    }
    return samples > 0 && !isinf(samples) ? weight / samples : 0;
}

static struct stats_blame_part judge(const struct work *w, size_t part)
{
    size_t n = w->in->before_count, m = w->in->after_count;
    struct side before = measure(w, part, 0, n), after = measure(w, part, n, m);
    double one = sample_weight(w, part);
    double typical = (before.mean * (double)n + after.mean * (double)m) / (double)(n + m);
    /* the count of samples varies as its root; at least one may have been missed or met */
    double sampling = one * fmax(typical, one);
    double freedom = (double)(n + m - 2), degrees = KNOWN_ALONE;
    double noise = (freedom > 0 ? RUN_NOISE : RUN_NOISE_ALONE) * typical;
    /* the more runs there are, the more they tell themselves how busy the machine was */
    double busy = w->busy / (1 + freedom / 2) * typical * typical;
    double known = noise * noise + busy + sampling, variance = known;
    if (freedom > 0) {
        degrees = freedom + KNOWN_RUNS;
        variance = (before.squares + after.squares + KNOWN_RUNS * known) / degrees;
        variance = fmax(variance, sampling);
    }
    double error = sqrt(variance * (1. / (double)n + 1. / (double)m));
    struct stats_blame_part p = {.part = part, .before = before.mean, .after = after.mean};
    p.change = after.mean - before.mean;
    /* 1.96 grows to Student's quantile for few degrees; this is it to two digits */
    p.error = error * (1.96 + 2.4 / degrees + 2.5 / (degrees * degrees));
    p.p = error > 0 ? 2 * stats_student_above(fabs(p.change) / error, degrees) : 1;
    return p;
}

/* --- all of them --- */

static int by_blame(const void *a, const void *b)
{
    const struct stats_blame_part *x = a, *y = b;
    if (x->is_blamed != y->is_blamed)
        return x->is_blamed ? -1 : 1;
    if (fabs(x->change) != fabs(y->change))
        return fabs(x->change) > fabs(y->change) ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

static void blame(struct work *w, struct stats_blame_part *ret)
{
    const struct stats_blame_input *in = w->in;
    double whole = 0, candidates = 0;
    prepare_votes(w);
    for (size_t r = 0; r < w->runs; r++) {
        w->speed[r] = vote(w, r);
        double busy = in->busy ? BUSY_NOISE * in->busy[r] : 0;
        w->busy += busy * busy / (double)w->runs;
    }
    for (size_t p = 0; p < in->parts; p++) {
        ret[p] = judge(w, p);
        whole += ret[p].before;
    }
    double least = in->least * whole;
    for (size_t p = 0; p < in->parts; p++) /* who is too small could not have been blamed */
        candidates += fmax(ret[p].before, ret[p].after) >= least;
    for (size_t p = 0; p < in->parts; p++) {
        ret[p].p = fmin(1, ret[p].p * fmax(candidates, 1));
        ret[p].is_blamed = ret[p].p <= in->alpha && fabs(ret[p].change) >= least && least > 0;
    }
    if (in->parts)
        qsort(ret, in->parts, sizeof *ret, by_blame);
}

int stats_blame_find(const struct stats_blame_input *input, struct stats_blame_part *ret)
{
    if (!input->before_count || !input->after_count)
        return E_INVALID;
    struct work w = {.in = input, .runs = input->before_count + input->after_count};
    w.speed = calloc(w.runs, sizeof *w.speed);
    w.mean = malloc((input->parts + 1) * sizeof *w.mean);
    w.weight = malloc((input->parts + 1) * sizeof *w.weight);
    w.votes = malloc((input->parts + 1) * sizeof *w.votes);
    int r = w.speed && w.mean && w.weight && w.votes ? 0 : E_NOMEM;
    if (r == 0)
        blame(&w, ret);
    free(w.speed);
    free(w.mean);
    free(w.weight);
    free(w.votes);
    return r;
}
