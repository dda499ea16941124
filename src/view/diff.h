/* Two runs side by side: one table of rows with the change, for people, as JSON (docs/json.md is
 * the contract) or as CSV. */
#ifndef PYROMETER_VIEW_DIFF_H
#define PYROMETER_VIEW_DIFF_H

#include "analysis/culprit.h"
#include "analysis/diff.h"
#include "view/emit.h"

/* `culprits` are told after the table; NULL: they were not looked for. 0, E_NOMEM, or why the output
 * could not be written. */
int view_diff_print(const struct analysis_diff *diff, const struct analysis_culprits *culprits,
                    FILE *out, enum view_format format, struct view_style style);

#endif
