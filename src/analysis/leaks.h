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

/* Blocks that look like arenas, in which Python's own allocator keeps small objects: mapped by mmap, and of such a size. Whether a
 * program has mapped as much by itself cannot be told. */
struct analysis_arenas {
    uint64_t *row; /* for each row: of its own blocks, those that are left; owned */
    uint64_t all;
};

/* Rows are of a kind that stands in stacks, of the metric of leaks. Nothing of recordings in which the objects themselves are seen. */
int analysis_arenas_init(const struct analysis_rows *rows, struct analysis_arenas *ret);
void analysis_arenas_release(struct analysis_arenas *a);

#endif
