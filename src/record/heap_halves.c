#include "record/heap_halves.h"

#include "base/attr.h"
#include "base/idxmap.h"

#include <math.h>

/* Of a block to be hit by a point of one half. */
static double chance_of(uint64_t size, uint32_t interval)
{
    return -expm1(-(double)max_u64(size, 1) / (2. * interval));
}

unsigned heap_halves_draw(struct heap_halves *h, uint64_t size, uint32_t interval)
{
    uint32_t dice = hash_u64(++h->drawn);
    double p = chance_of(size, interval);
    if (dice * 0x1p-32 < p / (2 - p)) /* that it is in both if it is in one: p² / (1 - (1 - p)²) */
        return HEAP_HALVES_BOTH;
    return dice & 1 ? HEAP_HALF_1 : HEAP_HALF_2;
}

struct heap_half_weight heap_halves_weigh(unsigned in, uint64_t size, uint32_t interval,
                                          double scale)
{
    double n = (double)size, p = chance_of(size, interval);
    return (struct heap_half_weight){in, (uint64_t)(scale * n / p + 0.5),
                                     n * n * (1 - p) / (p * p)};
}

static bool is_in(const struct heap_half_weight *w, unsigned half)
{
    return w->in >> half & 1;
}

void heap_halves_add(struct heap_halves *h, const struct heap_half_weight *w)
{
    for (unsigned i = 0; i < 2; i++)
        if (is_in(w, i)) {
            h->half[i].live += w->bytes;
            h->variance += w->variance / 2;
        }
    for (unsigned i = 0; i < 2; i++) {
        struct heap_half *half = &h->half[i];
        uint64_t other = h->half[!i].live;
        if (half->live > half->most) {
            half->most = half->live;
            half->other = other;
            half->is_most = true;
        } else if (half->is_most) /* it saw no change; the top is where the other does */
            half->other = max_u64(half->other, other);
    }
}

void heap_halves_subtract(struct heap_halves *h, const struct heap_half_weight *w)
{
    for (unsigned i = 0; i < 2; i++)
        if (is_in(w, i)) {
            h->half[i].live -= w->bytes;
            h->half[i].is_most = false;
            h->variance -= w->variance / 2;
        }
    h->variance = fmax(h->variance, 0);
}

double heap_halves_gain(const struct heap_halves *h)
{
    double gain = 0;
    for (unsigned i = 0; i < 2; i++)
        gain += ((double)h->half[i].most - (double)h->half[i].other) / 2;
    return fmax(gain, 0);
}
