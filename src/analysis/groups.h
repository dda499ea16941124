/* The first half of rows.c: which row a code object or a trie node belongs to. Inside analysis
 * only. */
#ifndef PYROMETER_ANALYSIS_GROUPS_H
#define PYROMETER_ANALYSIS_GROUPS_H

#include "analysis/rows.h"

/* Fills rows->row, rows->node_row and rows->texts for a grouping by code; weights stay zero. On
 * failure what was filled is the caller's to release. */
int analysis_groups_fill(struct analysis_rows *rows);

#endif
