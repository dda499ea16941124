/* Time. One clock for every record: CLOCK_MONOTONIC in nanoseconds. */
#ifndef PYROMETER_BASE_CLOCK_H
#define PYROMETER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC 1000000000ull
#define NS_PER_MS  1000000ull
#define NS_PER_US  1000ull

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_real_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

static inline struct timespec clock_timespec(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / NS_PER_SEC), (long)(ns % NS_PER_SEC)};
}

#endif
