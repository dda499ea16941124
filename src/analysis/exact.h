/* Rows and edges of a profile with exact counts (profile.h): what was counted and timed replaces
 * what the estimated tree says. Inside analysis only; rows.c and edges.c call it where
 * weights->exact. */
#ifndef PYROMETER_ANALYSIS_EXACT_H
#define PYROMETER_ANALYSIS_EXACT_H

#include "analysis/edges.h"

/* True for rows that are functions: only those were counted. */
bool analysis_exact_has(const struct analysis_rows *rows);

/* Fills in self, total and calls of every row. A weight's samples are then calls. */
int analysis_exact_rows(struct analysis_rows *rows);

/* The edges out of the counted calls; owned by the caller. */
int analysis_exact_edges(const struct analysis_rows *rows, struct analysis_edge **ret,
                         size_t *ret_count);

#endif
