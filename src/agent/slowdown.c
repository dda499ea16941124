#include "agent/slowdown.h"

#include <stddef.h>
#include <stdint.h>

enum { KINDS = RING_SLOWED_CALL, TURNS = 300 }; /* of those before the calls */

/* How much of an instruction can be lost at most. */
#define MOST 0.9
/* Kinds that the loops do not tell apart are alike: so much as this part of a loop does each weigh that it takes what all take on average. */
#define LIKENESS 0.1

#define NAME(name, body, ...) "slowed_" #name,
const char *const slowdown_functions[SLOWDOWN_COUNT] = {SLOWDOWN_LOOPS(NAME)};
#define COUNTS(name, body, ...) {__VA_ARGS__},
static const uint8_t loops[SLOWDOWN_COUNT][KINDS] = {SLOWDOWN_LOOPS(COUNTS)};

double slowdown_of(const struct slowdown *s, const uint8_t *counts)
{
    double sum = 0;
    for (size_t i = 0; i < RING_SLOWED_KINDS; i++)
        sum += counts[i] * s->slower[i];
    return sum;
}

/* Fills `ret` with times of each kind, up to `most` and down to its opposite (NULL: any from 0 on), of which the loops' `times` are made with
 * the least error, as a part of what they are `of`. */
static void fit(const double *times, const double *of, const double *most, double *ret)
{
    double square[KINDS][KINDS] = {{0}}, product[KINDS] = {0};
    double all = 0, all_times = 0, mean = 0;
    for (size_t l = 0; l < SLOWDOWN_COUNT; l++) {
        double count = 0, weight = 1 / (of[l] * of[l]);
        for (size_t i = 0; i < KINDS; i++) {
            count += loops[l][i];
            product[i] += weight * loops[l][i] * times[l];
            for (size_t j = 0; j < KINDS; j++)
                square[i][j] += weight * loops[l][i] * loops[l][j];
        }
        all += weight * count * count;
        all_times += weight * count * times[l];
        mean += of[l] / SLOWDOWN_COUNT;
    }
    double usual = all_times > 0 ? all_times / all : 0, like = LIKENESS / (mean * mean);
    for (size_t i = 0; i < KINDS; i++)
        ret[i] = usual;
    /* one kind after the other is set to its best, and soon none changes any more */
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < KINDS; i++) {
            double rest = product[i] + like * usual;
            for (size_t j = 0; j < KINDS; j++)
                rest -= j == i ? 0 : square[i][j] * ret[j];
            double best = rest / (square[i][i] + like);
            double least = most ? -most[i] : 0;
            ret[i] = best < least ? least : most && best > most[i] ? most[i] : best;
        }
}

struct slowdown slowdown_fit(const double *bare, const double *slowed)
{
    struct slowdown s = {0};
    double lost[SLOWDOWN_COUNT], most[KINDS];
    for (size_t l = 0; l < SLOWDOWN_COUNT; l++) {
        if (!(bare[l] > 0 && slowed[l] > 0))
            return s;
        lost[l] = slowed[l] > bare[l] ? slowed[l] - bare[l] : 0;
    }
    fit(slowed, slowed, NULL, s.takes);
    for (size_t i = 0; i < KINDS; i++)
        most[i] = MOST * s.takes[i];
    fit(lost, slowed, most, s.slower);
    return s;
}
