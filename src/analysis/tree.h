/* A forest of stacks → the call tree that people read: equal paths merged, top down or bottom up.
 *
 * The forest is columns, as in a profile: a parent stands before its children, node 0 is the root,
 * and every node says which row (function, line, thread) it is. Two siblings of one row are the
 * same place for a reader, so they are merged, and so are their children.
 *
 * Trees can be far larger than anybody wants to see. The tree is grown from the root by always
 * taking the heaviest node not yet taken, so a tree limited to N nodes has the N heaviest there
 * are, and costs little more than these. What was not taken is folded: each node has at most one
 * child that stands for all its children left out. Totals never lie: a node's total is its self and
 * its children's totals, folded ones included. */
#ifndef PYROMETER_ANALYSIS_TREE_H
#define PYROMETER_ANALYSIS_TREE_H

#include "analysis/forest.h"

struct analysis_tree_node {
    uint32_t parent, first_child, next; /* 0: none (the root is nobody's child) */
    uint32_t row;    /* as in the forest; ANALYSIS_ROW_NONE for the root and for folded nodes */
    uint32_t folded; /* how many children of its parent this stands for; 0: a node of its own */
    /* top down: self is what stacks carry that end here. Bottom up: what stacks carry that begin
     * here, with nobody calling. */
    struct analysis_weight self, total;
    double variance; /* of the total, where the forest has some; 0 else */
};

struct analysis_tree {
    struct analysis_tree_node *node; /* node 0 is the root; parents stand before children */
    /* the same weights of the run before, where the forest has two; NULL else */
    struct analysis_weight *before_self, *before_total;
    size_t count;
    uint64_t folded;          /* nodes that were folded, as far as they were looked at */
    uint64_t folded_weight;   /* what they carry together */
    uint64_t folded_heaviest; /* the largest total among them */
    struct analysis_weight total, before;
};

struct analysis_tree_options {
    bool bottom_up;
    size_t max_nodes;   /* folded ones not counted; 0: all there are */
    uint32_t max_depth; /* levels under the root; 0: all there are */
    double min_share; /* 0–1 of the total: lighter ones are folded; with two runs not to be used */
};

/* Children are sorted, the heaviest first (by the sum of both shares where there are two runs),
 * folded ones last. 0, E_NOMEM, or E_LIMIT past what an index can hold. */
int analysis_tree_init(const struct analysis_forest *forest,
                       const struct analysis_tree_options *options, struct analysis_tree *ret);
void analysis_tree_release(struct analysis_tree *tree);

/* The node after `node` in depth-first order, parents before children; 0 at the end. */
uint32_t analysis_tree_next(const struct analysis_tree *tree, uint32_t node);

#endif
