/* The call graph that people read: functions and their calls, pruned by cost, circles found.
 *
 * Nodes are rows by function, so totals count a stack once, however often a function recurs in it,
 * and any metric that has rows has a graph. What is too cheap to be seen is left out and counted:
 * the selves of the nodes and `left_self` add up to the whole. */
#ifndef PYROMETER_ANALYSIS_CALLGRAPH_H
#define PYROMETER_ANALYSIS_CALLGRAPH_H

#include "analysis/rows.h"

/* Shares are 0–1 of the whole. The defaults are those of gprof2dot, whose pictures people know. */
#define ANALYSIS_CALLGRAPH_LEAST_NODE 0.005
#define ANALYSIS_CALLGRAPH_LEAST_EDGE 0.001
enum { ANALYSIS_CALLGRAPH_NODES = 200, ANALYSIS_CALLGRAPH_NODES_MAX = 5000 };

struct analysis_callgraph_options {
    double least_node, least_edge; /* functions and calls with a smaller total are left out */
    size_t max_nodes;              /* the heaviest so many; 0: ANALYSIS_CALLGRAPH_NODES_MAX */
};

struct analysis_callgraph_node {
    uint32_t row;
    uint32_t module; /* into `module` */
    uint32_t cycle;  /* functions that call each other in a circle have the same number; 0: none */
};

struct analysis_callgraph_edge {
    uint32_t from, to; /* nodes */
    struct analysis_weight total;
    uint64_t calls;    /* where they were counted; 0 else */
    bool is_recursion; /* part of a circle: a function's call of itself, or of one that led to it */
};

struct analysis_callgraph {
    const struct analysis_rows *rows;     /* borrowed: must outlive this */
    struct analysis_callgraph_node *node; /* the heaviest total first */
    struct analysis_callgraph_edge *edge; /* the heaviest first */
    size_t node_count, edge_count;
    char **module; /* owned; dotted names, "" for what has none; in the order of their first node */
    size_t module_count;
    size_t cycle_count;
    struct analysis_callgraph_options options; /* as they were applied */
    /* left out: functions, with what they carried themselves, and calls between shown functions
     * (the calls of a function that is left out go with it) */
    size_t nodes_left, edges_left;
    struct analysis_weight left_self;
    uint64_t left_heaviest; /* the largest total among those functions */
};

/* `rows` by function (E_INVALID else). Deterministic. */
int analysis_callgraph_init(const struct analysis_rows *rows,
                            const struct analysis_callgraph_options *options,
                            struct analysis_callgraph *ret);
void analysis_callgraph_release(struct analysis_callgraph *g);

#endif
