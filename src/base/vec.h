/* A typed growing array: `VEC(struct thing) things;`. Zero-initialised is empty.
 * Growth doubles; vec_push returns a pointer to the new zeroed element, or NULL without memory. */
#ifndef PYROMETER_BASE_VEC_H
#define PYROMETER_BASE_VEC_H

#include "base/attr.h"

#include <string.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t len;                                                                                \
        size_t cap;                                                                                \
    }

/* Makes room for `want` elements in all; the new address of the array or NULL. */
static inline void *vec_grow_(void *data, size_t *cap, size_t want, size_t size)
{
    if (want <= *cap)
        return data;
    size_t next = *cap ? *cap : 8;
    while (next < want)
        next *= 2;
    void *grown = reallocarray(data, next, size);
    if (grown)
        *cap = next;
    return grown;
}

#define vec_reserve(v, want)                                                                       \
    ({                                                                                             \
        void *grown_ = vec_grow_((v)->data, &(v)->cap, (want), sizeof *(v)->data);                 \
        if (grown_)                                                                                \
            (v)->data = grown_;                                                                    \
        grown_ != NULL;                                                                            \
    })

#define vec_push(v)                                                                                \
    ({                                                                                             \
        __typeof__((v)->data) slot_ = NULL;                                                        \
        if (vec_reserve((v), (v)->len + 1)) {                                                      \
            slot_ = &(v)->data[(v)->len++];                                                        \
            memset(slot_, 0, sizeof *slot_);                                                       \
        }                                                                                          \
        slot_;                                                                                     \
    })

#define vec_release(v)                                                                             \
    do {                                                                                           \
        free((v)->data);                                                                           \
        (v)->data = NULL;                                                                          \
        (v)->len = (v)->cap = 0;                                                                   \
    } while (0)

#endif
