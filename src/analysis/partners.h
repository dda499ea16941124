/* Which row of one run is which row of another: the one rule by which every view compares runs.
 *
 * Code moves between two runs, so sameness has levels, from the same line of the same file to the
 * same name in the same module; what agrees at a stricter level is not asked again at a looser one.
 * Only rows with samples have partners. */
#ifndef PYROMETER_ANALYSIS_PARTNERS_H
#define PYROMETER_ANALYSIS_PARTNERS_H

#include "analysis/rows.h"

/* partner[i] is the row of `after` that row i of `before` is, or ANALYSIS_ROW_NONE; room for
 * before->count of them. Both are of one kind (`by`), or E_INVALID. No two have the same partner. */
int analysis_partners_find(const struct analysis_rows *before, const struct analysis_rows *after,
                           uint32_t *partner);

#endif
