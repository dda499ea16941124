/* Random numbers that are the same on every machine and in every run: a resampled interval and a
 * permutation test must not change their mind about the same data. xoshiro256** by Blackman and
 * Vigna, seeded through splitmix64. Not for secrets. */
#ifndef PYROMETER_STATS_RANDOM_H
#define PYROMETER_STATS_RANDOM_H

#include <stdint.h>

struct stats_random {
    uint64_t state[4];
};

static inline void stats_random_seed(struct stats_random *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15ull;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        r->state[i] = z ^ (z >> 31);
    }
}

static inline uint64_t stats_random_rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

static inline uint64_t stats_random_u64(struct stats_random *r)
{
    uint64_t *s = r->state;
    uint64_t result = stats_random_rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = stats_random_rotate(s[3], 45);
    return result;
}

/* 0 <= u < 1 */
static inline double stats_random_unit(struct stats_random *r)
{
    return (double)(stats_random_u64(r) >> 11) * 0x1p-53;
}

/* 0 … n-1, n >= 1. The bias of the multiplication is below n / 2^32: no test here could see it. */
static inline uint32_t stats_random_below(struct stats_random *r, uint32_t n)
{
    return (uint32_t)(((stats_random_u64(r) >> 32) * n) >> 32);
}

#endif
