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
    size_t row_count;                     /* every row is below */
    uint32_t rootless; /* row for what the root itself carries; ANALYSIS_ROW_NONE: nothing does */
    void *owned[4];    /* columns that were made here */
};

/* The profile's trie, borrowed from the rows and what they are made of. Rows must be of a kind that
 * stands in stacks. */
void analysis_forest_init(const struct analysis_rows *rows, struct analysis_forest *ret);

/* With a first level of threads: thread i of the profile is row rows->count + i. One more pass over
 * the samples; `query` is the one the weights were made with. */
int analysis_forest_init_threads(const struct analysis_rows *rows,
                                 const struct analysis_query *query, struct analysis_forest *ret);

/* Two runs over each other. A function is the same in both if its name and module are, and the
 * first, second, … of that name in its module, by line: files move and lines shift. Rows of the run
 * after keep their number; a row that only the run before has is rows->count + its number there. */
int analysis_forest_init_diff(const struct analysis_rows *before, const struct analysis_rows *rows,
                              struct analysis_forest *ret);

void analysis_forest_release(struct analysis_forest *f);

#endif
