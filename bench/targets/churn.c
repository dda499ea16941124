/* malloc and free, as fast as one thread can: called without the interpreter's lock. Returns its CPU seconds.
 *
 * Sixteen blocks live at a time, of sizes and in an order that differ from call to call, so that the allocator
 * does more than hand out the block that it got back. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 16, SIZES = 256 };

double churn(long rounds, uint32_t seed)
{
    void *live[LIVE] = {0};
    uint32_t dice = seed * 2654435761u + 1;
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (long i = 0; i < rounds; i++) {
        dice = dice * 1664525u + 1013904223u;
        void **place = &live[dice >> 28];
        free(*place);
        *place = malloc(16 + (dice >> 16) % SIZES);
    }
    for (int i = 0; i < LIVE; i++)
        free(live[i]);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}
