/* The walk. Children hang in linked lists through two columns; going up needs no stack, since every
 * node knows its parent. */
#include "analysis/trie.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/large.h"

int analysis_trie_walk(const uint32_t *parent, size_t count, int (*enter)(void *, uint32_t node),
                       void (*leave)(void *, uint32_t node), void *ctx)
{
    /* 0 ends a list: the root is nobody's child */
    _cleanup_free_ uint32_t *first = large_calloc(count + 1, sizeof *first);
    _cleanup_free_ uint32_t *next = large_calloc(count + 1, sizeof *next);
    if (!first || !next)
        return E_NOMEM;
    for (size_t i = count; i-- > 1;) {
        next[i] = first[parent[i]];
        first[parent[i]] = (uint32_t)i;
    }
    uint32_t node = first[0];
    while (node) {
        int r = enter(ctx, node);
        if (r)
            return r;
        if (first[node]) {
            node = first[node];
            continue;
        }
        leave(ctx, node);
        while (node && !next[node]) {
            node = parent[node];
            if (node)
                leave(ctx, node);
        }
        if (node)
            node = next[node];
    }
    return 0;
}

int analysis_trie_number(const uint32_t *parent, size_t count, uint32_t **ret_number,
                         uint32_t **ret_end)
{
    uint32_t *number = large_calloc(count + 1, sizeof *number);
    uint32_t *size = large_calloc(count + 1, sizeof *size);
    if (!number || !size) {
        free(number);
        free(size);
        return E_NOMEM;
    }
    for (size_t i = 0; i < count; i++)
        size[i] = 1;
    for (size_t i = count; i-- > 1;)
        size[parent[i]] += size[i];
    uint32_t *next = size; /* from here on: the number that the next child of a node gets */
    next[0] = 1;
    for (size_t i = 1; i < count; i++) {
        number[i] = next[parent[i]];
        next[parent[i]] += size[i];
        next[i] = number[i] + 1;
    }
    *ret_number = number;
    *ret_end = next; /* all children have theirs */
    return 0;
}
