/* A binary heap of things known by their index: the largest key first, of equal ones the smallest
 * index. */
#ifndef PYROMETER_ANALYSIS_HEAP_H
#define PYROMETER_ANALYSIS_HEAP_H

#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>

struct heap_item {
    double key;
    uint32_t index;
};

struct heap {
    VEC(struct heap_item) item; /* zeroed is empty; to be released as every vector */
};

static inline bool heap_is_before(const struct heap_item *a, const struct heap_item *b)
{
    return a->key > b->key || (a->key == b->key && a->index < b->index);
}

/* Adds in no order: for a heap that nobody takes from. */
static inline int heap_set_aside(struct heap *heap, struct heap_item item)
{
    struct heap_item *slot = vec_push(&heap->item);
    if (!slot)
        return E_NOMEM;
    *slot = item;
    return 0;
}

static inline int heap_push(struct heap *heap, struct heap_item item)
{
    if (!vec_push(&heap->item))
        return E_NOMEM;
    struct heap_item *h = heap->item.data;
    size_t i = heap->item.len - 1;
    while (i > 0 && heap_is_before(&item, &h[(i - 1) / 2])) {
        h[i] = h[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h[i] = item;
    return 0;
}

/* Takes the first; there is one. */
static inline struct heap_item heap_pop(struct heap *heap)
{
    struct heap_item *h = heap->item.data, top = h[0], item = h[--heap->item.len];
    size_t n = heap->item.len, i = 0;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && heap_is_before(&h[child + 1], &h[child]))
            child++;
        if (!heap_is_before(&h[child], &item))
            break;
        h[i] = h[child];
        i = child;
    }
    if (n)
        h[i] = item;
    return top;
}

#endif
