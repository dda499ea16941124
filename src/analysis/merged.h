/* The stack trie with equal paths made one: nodes are the same if their rows and their callers'
 * rows are, whatever the lines or code objects. So two stacks look the same to a reader if and only
 * if they are the same node here, and the part they share is their common ancestor. */
#ifndef PYROMETER_ANALYSIS_MERGED_H
#define PYROMETER_ANALYSIS_MERGED_H

#include "analysis/rows.h"

struct analysis_merged_node {
    uint32_t parent;
    uint32_t jump;  /* an ancestor further up, so that climbing takes logarithmic time */
    uint32_t depth; /* 0: the root */
    uint32_t row;
};

struct analysis_merged {
    struct analysis_merged_node *node; /* 0 is the root; parent < node */
    size_t count;
    uint32_t *of; /* for each node of the profile's trie; samples without a Python frame have a
                     node of their own under the root, so of[0] is that */
};

int analysis_merged_init(const struct analysis_rows *rows, struct analysis_merged *ret);
void analysis_merged_release(struct analysis_merged *m);

/* The ancestor of `node` (or itself) at that depth, which is not below it. */
uint32_t analysis_merged_ancestor(const struct analysis_merged *m, uint32_t node, uint32_t depth);

/* The deepest node that both paths share. */
uint32_t analysis_merged_common(const struct analysis_merged *m, uint32_t a, uint32_t b);

#endif
