#include "agent/pace.h"

#include "agent/guest.h"

#include <immintrin.h>

enum {
    TABLE = 64,
    ROUNDS = 128,
    WARM_UPS = 4, /* a program's own fills caches and predictor: the 2nd turn is still 7 % slower */
    TIMED = 4,
    MOST_TIMES = 3,  /* slower than at its best no neighbour makes it: it was off its CPU */
    USUAL_ROOT = 16, /* of the ticks on an idle machine: so that the figure is of their order */
};

/* The instruction: libm is not ours. */
static double square_root(double x)
{
    __m128d v = _mm_set_sd(x);
    return _mm_cvtsd_f64(_mm_sqrt_sd(v, v));
}

/* Loads, stores and additions that do not wait for each other, as an interpreter's do. The table lies on whole lines of the
 * cache and is filled word by word: how long clearing a piece of the stack takes depends on where the stack is. */
static uint64_t work(uint64_t seed)
{
    _Alignas(64) uint64_t table[TABLE];
    for (unsigned i = 0; i < TABLE; i++) {
        table[i] = seed;
        __asm__ volatile("" ::: "memory"); /* one by one */
    }
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
    volatile uint64_t kept = guest_me.head;
    for (int i = 0; i < WARM_UPS; i++)
        kept = work(kept);
    uint64_t least = UINT64_MAX, begin = guest_now();
    for (int i = 0; i < TIMED; i++) {
        kept = work(kept);
        uint64_t end = guest_now();
        if (end - begin < least)
            least = end - begin;
        begin = end;
    }
    static _Atomic uint64_t best = UINT64_MAX;
    uint64_t quickest = atomic_load_explicit(&best, memory_order_relaxed);
    if (least < quickest) {
        quickest = least;
        atomic_store_explicit(&best, least, memory_order_relaxed);
    }
    double ticks = (double)(least < MOST_TIMES * quickest ? least : MOST_TIMES * quickest);
    return (uint64_t)(ticks * square_root(ticks) / USUAL_ROOT);
}
