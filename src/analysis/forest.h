/* Stacks as columns, ready to be made a tree of: a profile's own trie, the same with a level for
 * threads above it, or two runs over each other. */
#ifndef PYROMETER_ANALYSIS_FOREST_H
#define PYROMETER_ANALYSIS_FOREST_H

#include "analysis/rows.h"

struct analysis_forest {
    size_t count; /* node 0 is the root; parent < node */
    const uint32_t *parent;
    const uint32_t *row; /* [0] means nothing */
    const struct analysis_weight *own;
    const struct analysis_weight *before; /* own weights in the run before; NULL: one run only */
    const double
        *variance; /* of own weights that are estimates; NULL: they are none, or it is not known */
    size_t row_count;  /* every row is below */
    uint32_t rootless; /* row for what the root itself carries; ANALYSIS_ROW_NONE: nothing does */
    void *owned[4];    /* columns that were made here */
    /* By thread, top down: nodes are made when somebody comes to them. Owned; NULL else. */
    struct analysis_threads *threads;
    /* By thread, bottom up: `own` and `count` are of pairs of a thread and a stack. For each pair the
     * node that its stack ends at, and the node that stands for its thread, above them all. */
    const uint32_t *pair_node, *pair_thread;
};

/* The profile's trie, borrowed from the rows and what they are made of. Rows must be of a kind that
 * stands in stacks. */
void analysis_forest_init(const struct analysis_rows *rows, struct analysis_forest *ret);

/* With a first level of threads: thread i of the profile is row rows->count + i. One more pass over
 * the samples; `query` is the one the weights were made with. For a tree that way up only. */
int analysis_forest_init_threads(const struct analysis_rows *rows,
                                 const struct analysis_query *query, bool bottom_up,
                                 struct analysis_forest *ret);

/* Two runs over each other. A function is the same in both if its name and module are, and the
 * first, second, … of that name in its module, by line: files move and lines shift. Rows of the run
 * after keep their number; a row that only the run before has is rows->count + its number there. */
int analysis_forest_init_diff(const struct analysis_rows *before, const struct analysis_rows *rows,
                              struct analysis_forest *ret);

void analysis_forest_release(struct analysis_forest *f);

/* The row of samples without a Python frame, which is the last of all, or ANALYSIS_ROW_NONE. */
uint32_t analysis_forest_rootless(const struct analysis_rows *rows);

/* --- for analysis/tree.c, of a forest of threads top down --- */

struct analysis_threads_columns {
    const uint32_t *row;
    const uint32_t *first, *next; /* children; 0: none */
    const struct analysis_weight *own, *subtree;
};

/* Makes the children of a node, once. The columns move. */
int analysis_threads_open(struct analysis_threads *threads, uint32_t node);
struct analysis_threads_columns analysis_threads_columns(const struct analysis_threads *threads);
void analysis_threads_free(struct analysis_threads *threads);

#endif
