/* Who calls whom, between the rows of a table.
 *
 * An edge's `self` is what the callee carried as the leaf, called directly by the caller; its
 * `total` is what the stacks carried in which that call stands, each stack counted once. A
 * recursive function is its own caller. */
#ifndef PYROMETER_ANALYSIS_EDGES_H
#define PYROMETER_ANALYSIS_EDGES_H

#include "analysis/rows.h"

struct analysis_edge {
    uint32_t caller, callee; /* indices into rows */
    struct analysis_weight self, total;
    uint64_t calls, primitive_calls; /* where they were counted (weights->exact); 0 else */
    uint64_t resumes, alive_ns;      /* as in rows */
};

struct analysis_edges {
    size_t count;
    /* The same edges in two orders, the heaviest first within a row; row i's callees are
     * by_caller[callees_at[i]] up to by_caller[callees_at[i + 1]], its callers likewise. */
    struct analysis_edge *by_caller, *by_callee;
    size_t *callees_at, *callers_at;
};

/* The rows must be of a kind that stands in stacks (E_INVALID else). */
int analysis_edges_init(const struct analysis_rows *rows, struct analysis_edges *ret);

/* Only the edges between some of the rows: those whose among[row] is not ANALYSIS_ROW_NONE. Much
 * cheaper where these are few. */
int analysis_edges_init_among(const struct analysis_rows *rows, const uint32_t *among,
                              struct analysis_edges *ret);
void analysis_edges_release(struct analysis_edges *e);

#endif
