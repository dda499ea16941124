/* All the way from a question to a call tree: weights, rows, forest and tree in one object, with a
 * label for every node. Who asks another question (another metric, bottom up) makes another one. */
#ifndef PYROMETER_ANALYSIS_CALLTREE_H
#define PYROMETER_ANALYSIS_CALLTREE_H

#include "analysis/tree.h"

struct analysis_calltree_options {
    enum analysis_by by; /* function or line */
    bool by_thread;      /* a first level of threads */
    struct analysis_tree_options tree;
};

/* The rows point to the weights: it is made in place and must not be moved. Zero-initialised it may
 * be released. */
struct analysis_calltree {
    struct analysis_calltree_options options;
    struct analysis_weights weights;
    struct analysis_rows rows;
    struct analysis_tree tree;
    struct analysis_row *thread; /* owned: labels of the threads; NULL if not by thread */
    size_t thread_count;
    char **texts; /* owned: names of threads that have none, one for each */
};

/* `profile` and what the query borrows must outlive it. The weights are ready before anything else,
 * so that a caller who finds too little in them need not grow a tree: _weigh, then _grow. */
int analysis_calltree_weigh(struct analysis_calltree *c, const struct profile *profile,
                            const struct analysis_query *query);
int analysis_calltree_grow(struct analysis_calltree *c, const struct analysis_query *query,
                           const struct analysis_calltree_options *options);
void analysis_calltree_release(struct analysis_calltree *c);

/* What a node is called: a row of the rows, or of a thread; NULL for the root and folded nodes. Its
 * weights are those of the whole row, not of the node. */
const struct analysis_row *analysis_calltree_label(const struct analysis_calltree *c,
                                                   uint32_t node);

#endif
