/* Memory for tables of a place for each stack, which are met in no order. With the usual small pages
 * nearly every such access would also miss the processor's table of pages, and every page would be
 * brought by an interrupt of its own; so the system is asked for large ones. It may decline. */
#ifndef PYROMETER_BASE_LARGE_H
#define PYROMETER_BASE_LARGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE_PAGE_BYTES = 2 << 20, LARGE_SMALL_PAGE_BYTES = 4096 };

/* Zeroed, as by calloc; given back by free(). */
static inline void *large_calloc(size_t count, size_t size)
{
    void *data = calloc(count, size);
    size_t bytes = count * size; /* calloc has refused what overflows */
    if (data && bytes >= (size_t)2 * LARGE_PAGE_BYTES) {
        size_t skip = -(uintptr_t)data % LARGE_SMALL_PAGE_BYTES;
        madvise((char *)data + skip,
                (bytes - skip) / LARGE_SMALL_PAGE_BYTES * LARGE_SMALL_PAGE_BYTES, MADV_HUGEPAGE);
    }
    return data;
}

#endif
