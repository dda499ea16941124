/* Which rows of leaks are shown, and in which order: those that surely grow from iteration to iteration
 * first, the quickest above all, whether the end of the program has freed them or not; then what was never
 * given back, the most first. Rows that allocated nothing of it themselves are left out. */
#ifndef PYROMETER_ANALYSIS_LEAKS_H
#define PYROMETER_ANALYSIS_LEAKS_H

#include "analysis/growth.h"
#include "analysis/select.h"

/* `select` is of its match and limit only. */
int analysis_leaks_select(const struct analysis_rows *rows, const struct analysis_growth *growth,
                          const struct analysis_select *select, struct analysis_selection *ret);

#endif
