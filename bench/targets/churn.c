/* malloc and free, as fast as one thread can: called without the interpreter's lock. Returns its CPU seconds.
 * With `locked` every one of them is under one lock: what a test for such a lock must be able to see.
 *
 * Sixteen blocks live at a time, of sizes and in an order that differ from call to call, so that the allocator
 * does more than hand out the block that it got back. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 16, SIZES = 256 };

static pthread_mutex_t everybody = PTHREAD_MUTEX_INITIALIZER;

static void lock(int locked)
{
    if (locked)
        pthread_mutex_lock(&everybody);
}

static void unlock(int locked)
{
    if (locked)
        pthread_mutex_unlock(&everybody);
}

double churn(long rounds, uint32_t seed, int locked)
{
    void *live[LIVE] = {0};
    uint32_t dice = seed * 2654435761u + 1;
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (long i = 0; i < rounds; i++) {
        dice = dice * 1664525u + 1013904223u;
        void **place = &live[dice >> 28];
        lock(locked);
        free(*place);
        unlock(locked);
        lock(locked);
        *place = malloc(16 + (dice >> 16) % SIZES);
        unlock(locked);
    }
    for (int i = 0; i < LIVE; i++)
        free(live[i]);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}
