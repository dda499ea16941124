#include "agent/pace.h"

#include "agent/guest.h"

enum { TABLE = 64, ROUNDS = 64 };

/* Loads, stores and additions that do not wait for each other, as an interpreter's do. */
static uint64_t work(uint64_t seed)
{
    uint64_t table[TABLE] = {seed};
    uint64_t a = seed, b = seed + 1, c = seed + 2, d = seed + 3, sum = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        a += table[(b + i) % TABLE];
        b ^= c >> 3;
        c += d;
        d = d << 1 | d >> 63;
        sum += (a ^ c) + (b & d);
        table[i % TABLE] = sum;
    }
    return sum;
}

uint64_t pace_measure(void)
{
    volatile uint64_t kept = work(guest_me.head); /* once for the caches */
    uint64_t begin = guest_now();
    kept = work(kept);
    return guest_now() - begin;
}
