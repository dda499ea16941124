/* How much of a sampled peak is chance. Inside src/record; a part of heap.c.
 *
 * What is alive is estimated without bias at every moment, but the highest of many estimates is not an estimate of the highest: it
 * is the moment at which chance was kindest. A program that replaces its blocks again and again gives chance many tries, and the peak
 * comes out some two standard deviations too high.
 *
 * So the sample is split into two that know nothing of each other. A block was told with the chance 1 - exp(-n / interval): as if
 * points fell on the bytes at random, and it was hit by one at least. Each point goes to one half or the other by the dice, so
 * a block is in both, or in one. Each half finds a peak of its own, and the other half says without bias how much there was at
 * that moment: the difference is what choosing the moment has added in a half. What it has added in the whole is
 * taken to be smaller by the ratio of the variances.
 *
 * Where the maximum is one that both halves see (a program that only grows, or has one high peak), the two differences
 * cancel out, and nothing is taken off. */
#ifndef PYROMETER_RECORD_HEAP_HALVES_H
#define PYROMETER_RECORD_HEAP_HALVES_H

#include <stdbool.h>
#include <stdint.h>

enum { HEAP_HALF_1 = 1, HEAP_HALF_2 = 2, HEAP_HALVES_BOTH = HEAP_HALF_1 | HEAP_HALF_2 };

struct heap_half {
    uint64_t live, most;
    uint64_t other; /* what the other half said of the moment at which this one had most */
    bool is_most;   /* nothing has changed in this half since it had most */
};

struct heap_halves {
    struct heap_half half[2];
    double variance; /* of what is alive by one half, the mean of both */
    uint64_t drawn;  /* blocks that were split */
};

/* What a block stands for in each half that it is in. */
struct heap_half_weight {
    unsigned in; /* HEAP_HALF_* */
    uint64_t bytes;
    double variance;
};

/* In which halves a block is that was told; the chance of being told was by `interval`. */
unsigned heap_halves_draw(struct heap_halves *h, uint64_t size, uint32_t interval);

/* `scale`: bytes are kept in such parts. */
struct heap_half_weight heap_halves_weigh(unsigned in, uint64_t size, uint32_t interval,
                                          double scale);

void heap_halves_add(struct heap_halves *h, const struct heap_half_weight *w);
void heap_halves_subtract(struct heap_halves *h, const struct heap_half_weight *w);

/* By how much choosing its moment has raised the peak of a half. */
double heap_halves_gain(const struct heap_halves *h);

#endif
