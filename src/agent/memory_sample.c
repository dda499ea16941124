/* Sampling: of so many bytes one, by the dice, so that a block of n bytes is told with the chance 1 - exp(-n / interval)
 * whatever came before it. Its release must be told too: addresses of told blocks are kept in a table, with a
 * small sieve before it that answers for nearly all others. */
#include "agent/memory.h"

enum {
    SLOTS = 1 << 16, /* blocks told and alive */
    MAX_PROBES = 32,
};

static _Atomic uintptr_t *chosen; /* SLOTS; 0: free */
_Atomic uint8_t memory_sieve[1 << MEMORY_SIEVE_BITS];

bool memory_sample_init(void)
{
    if (!chosen) {
        chosen = guest_map(SLOTS * sizeof *chosen, -1, 0);
        return chosen != NULL;
    }
    /* what was told to another recorder is not given back to this one */
    for (size_t i = 0; i < SLOTS; i++)
        atomic_store_explicit(&chosen[i], 0, memory_order_relaxed);
    for (size_t i = 0; i < sizeof memory_sieve; i++)
        atomic_store_explicit(&memory_sieve[i], 0, memory_order_relaxed);
    return true;
}

static uint64_t roll(struct memory_thread *me)
{
    static _Atomic uint64_t
        threads; /* each has dice of its own, and with a seed the same ones again */
    if (!me->dice) {
        uint64_t seed = guest.session->memory_seed;
        uint64_t number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
        me->dice =
            (seed ? seed : guest_now()) * 0xd1342543de82ef95ull ^ number * 0x2545f4914f6cdd1dull;
        me->dice += !me->dice; /* 0 has no successor */
    }
    me->dice ^= me->dice << 13;
    me->dice ^= me->dice >> 7;
    me->dice ^= me->dice << 17;
    return me->dice;
}

/* -ln(u) of an even u in (0, 1]; no libm here. ln(m) for m in [1, 2) is 2 atanh((m-1)/(m+1)). */
static double exponential(uint64_t bits)
{
    const double ln2 = 0.693147180559945309;
    uint64_t u = (bits >> 11) + 1; /* 1 to 2^53 */
    int top = 63 - __builtin_clzll(u);
    double m = (double)u / (double)(1ull << top);
    double s = (m - 1) / (m + 1), q = s * s;
    double ln =
        2 * s *
        (1 + q * (1. / 3 + q * (1. / 5 + q * (1. / 7 + q * (1. / 9 + q * (1. / 11 + q / 13))))));
    return (53 - top) * ln2 - ln;
}

/* One block more or less in its place of the sieve. A place that was ever full stays so: what is above is not counted. */
static void sift(uint64_t hash, int by)
{
    _Atomic uint8_t *place = &memory_sieve[hash >> (64 - MEMORY_SIEVE_BITS)];
    uint8_t before = atomic_load_explicit(place, memory_order_relaxed);
    while (before != MEMORY_SIEVE_FULL &&
           !atomic_compare_exchange_weak(place, &before, (uint8_t)(before + by)))
        ;
}

bool memory_keep_chosen(const void *block)
{
    uint64_t h = memory_mix(block);
    for (unsigned i = 0; i < MAX_PROBES; i++) {
        uintptr_t free_slot = 0;
        if (atomic_compare_exchange_strong(&chosen[((h >> 48) + i) % SLOTS], &free_slot,
                                           (uintptr_t)block)) {
            sift(h, 1);
            return true;
        }
    }
    return false;
}

bool memory_chooses(struct memory_thread *me, const void *block, size_t size)
{
    bool first = !me->until_sample;
    double gap = exponential(roll(me)) * guest.session->memory_interval;
    if (first) { /* there was no gap yet: this is where it begins */
        me->until_sample = (int64_t)gap + 1;
        if (memory_passes(me, size))
            return false;
        gap = exponential(roll(me)) * guest.session->memory_interval;
    }
    me->until_sample = (int64_t)gap + 1;
    if (memory_keep_chosen(block))
        return true;
    if (me->ring)
        atomic_fetch_add_explicit(&me->ring->lost, 1, memory_order_relaxed);
    return false;
}

bool memory_was_chosen(const void *block)
{
    uint64_t h = memory_mix(block);
    if (likely(!memory_may_be_chosen(block)))
        return false;
    for (unsigned i = 0; i < MAX_PROBES; i++) {
        uintptr_t key = (uintptr_t)block;
        if (atomic_load_explicit(&chosen[((h >> 48) + i) % SLOTS], memory_order_relaxed) == key &&
            atomic_compare_exchange_strong(&chosen[((h >> 48) + i) % SLOTS], &key, 0)) {
            sift(h, -1);
            return true;
        }
    }
    return false;
}
