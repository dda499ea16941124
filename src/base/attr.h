/* Compiler attributes and the small helpers every file wants. Includes nothing of ours. */
#ifndef PYROMETER_BASE_ATTR_H
#define PYROMETER_BASE_ATTR_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ATTR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ATTR_UNUSED            __attribute__((unused))
#define ATTR_COLD              __attribute__((cold))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Ownership at the declaration: `_cleanup_free_ char *x = NULL;` */
static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}
static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define _cleanup_(fn)   __attribute__((cleanup(fn)))
#define _cleanup_free_  _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
