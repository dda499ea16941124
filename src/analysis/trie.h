/* A depth-first walk over a trie kept as a column of parents (parent < node, node 0 the root),
 * without recursion: a Python stack may be ten thousand frames deep. */
#ifndef PYROMETER_ANALYSIS_TRIE_H
#define PYROMETER_ANALYSIS_TRIE_H

#include <stddef.h>
#include <stdint.h>

/* Calls `enter` on the way down and `leave` on the way up for every node but the root; siblings in
 * the order of their ids. What `enter` returns non-zero stops the walk and is returned; E_NOMEM
 * else. */
int analysis_trie_walk(const uint32_t *parent, size_t count, int (*enter)(void *, uint32_t node),
                       void (*leave)(void *, uint32_t node), void *ctx);

/* The number of every node in the order of such a walk, the root's 0, and the number past its
 * subtree: a subtree is a range of numbers. Both have `count` places and are the caller's to free. */
int analysis_trie_number(const uint32_t *parent, size_t count, uint32_t **ret_number,
                         uint32_t **ret_end);

#endif
