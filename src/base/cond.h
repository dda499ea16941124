/* Waiting for another thread until a moment of the one clock (clock.h). */
#ifndef PYROMETER_BASE_COND_H
#define PYROMETER_BASE_COND_H

#include "base/clock.h"

#include <pthread.h>

/* Its timed waits end by CLOCK_MONOTONIC. */
static inline void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

/* 0, or ETIMEDOUT after that moment. */
static inline int cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t mono_ns)
{
    const struct timespec end = clock_timespec(mono_ns);
    return pthread_cond_timedwait(cond, lock, &end);
}

#endif
