/* A set of short texts. Inside src/meter. */
#ifndef PYROMETER_METER_NAMES_H
#define PYROMETER_METER_NAMES_H

#include "base/idxmap.h"
#include "base/vec.h"

#include <stdbool.h>

enum { NAMES_MAX = 1 << 17 };

struct names {
    VEC(char *) list; /* owned, in the order they came */
    struct idxmap map;
};

static inline bool names_has(const struct names *n, const char *text, size_t len)
{
    uint32_t at;
    IDXMAP_FIND(&n->map, hash_bytes(text, len), i,
                strlen(n->list.data[i]) == len && !memcmp(n->list.data[i], text, len), at);
    return at != IDXMAP_NONE;
}

/* Without memory, or past the maximum, it is not kept. */
static inline void names_add(struct names *n, const char *text, size_t len)
{
    if (n->list.len >= NAMES_MAX || names_has(n, text, len))
        return;
    char *copy = strndup(text, len);
    char **slot = copy ? vec_push(&n->list) : NULL;
    if (!slot || idxmap_insert(&n->map, hash_bytes(text, len), (uint32_t)(n->list.len - 1)) < 0) {
        n->list.len -= slot != NULL;
        free(copy);
        return;
    }
    *slot = copy;
}

static inline void names_release(struct names *n)
{
    for (size_t i = 0; i < n->list.len; i++)
        free(n->list.data[i]);
    vec_release(&n->list);
    idxmap_release(&n->map);
}

#endif
