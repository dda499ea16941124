/* The stack trie with equal paths made one: nodes are the same if their rows and their callers'
 * rows are, whatever the lines or code objects. So two stacks look the same to a reader if and only
 * if they are the same node here, and the part they share is their common ancestor.
 *
 * Nodes are numbered as a walk from the root meets them, callers before what they call: a subtree is
 * a range of numbers, and going through the numbers in turn is a walk. */
#ifndef PYROMETER_ANALYSIS_MERGED_H
#define PYROMETER_ANALYSIS_MERGED_H

#include "analysis/rows.h"

/* What the index knows of a node, together: nodes are met in no order. */
struct analysis_merged_place {
    uint32_t to, from; /* least depths in its block: up to this one, and from this one on */
    uint32_t depth;
    uint32_t jump; /* an ancestor further up, so that climbing takes logarithmic time */
};

struct analysis_merged {
    size_t count;
    uint32_t *parent; /* 0 is the root; parent < node */
    uint32_t *row;
    uint32_t *depth; /* 0: the root */
    uint32_t *of;    /* for each node of the profile's trie; samples without a Python frame have a
                        node of their own under the root, so of[0] is that */
    /* what analysis_merged_index() adds */
    struct analysis_merged_place *place;
    uint32_t *far; /* least depths of runs of blocks */
};

int analysis_merged_init(const struct analysis_rows *rows, struct analysis_merged *ret);
void analysis_merged_release(struct analysis_merged *m);

/* Makes the two questions below quick; they may be asked only after it. */
int analysis_merged_index(struct analysis_merged *m);

/* The ancestor of `node` (or itself) at that depth, which is not below it. */
uint32_t analysis_merged_ancestor(const struct analysis_merged *m, uint32_t node, uint32_t depth);

/* How many frames both paths share: the depth of the deepest node on both. */
uint32_t analysis_merged_shared(const struct analysis_merged *m, uint32_t a, uint32_t b);

/* Asks memory for what that question will need, without waiting: who goes through many has the
 * places of a stretch brought first, and then what lies between them. */
static inline void analysis_merged_fetch(const struct analysis_merged *m, uint32_t node)
{
    __builtin_prefetch(&m->place[node]);
}
void analysis_merged_fetch_between(const struct analysis_merged *m, uint32_t a, uint32_t b);

#endif
