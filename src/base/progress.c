/* What goes on and out of how much change together, rarely, and under a lock; how much is done changes
 * often, and is one atomic number. */
#include "base/progress.h"

#include "base/attr.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the two below */
static const char *current;
static uint64_t expected;
static _Atomic uint64_t reached;

void progress_begin(const char *what, uint64_t total)
{
    pthread_mutex_lock(&lock);
    current = what;
    expected = total;
    atomic_store_explicit(&reached, 0, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

void progress_add(uint64_t steps)
{
    atomic_fetch_add_explicit(&reached, steps, memory_order_relaxed);
}

void progress_reach(uint64_t done)
{
    atomic_store_explicit(&reached, done, memory_order_relaxed);
}

void progress_now(struct progress *ret)
{
    pthread_mutex_lock(&lock);
    struct progress now = {
        .what = current,
        .done = atomic_load_explicit(&reached, memory_order_relaxed),
        .total = expected,
    };
    pthread_mutex_unlock(&lock);
    if (now.total)
        now.done = min_u64(now.done, now.total);
    *ret = now;
}
