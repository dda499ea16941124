/* Two tables of rows → one, side by side, with the change and with how sure it is.
 *
 * Rows are the same if name, file and line agree; functions also if only their first line moved, or
 * if their file lies elsewhere but is the same module (another version of Python, another
 * checkout). A run by a Python without qualified names meets one with them by their last parts.
 * Threads and processes are the same by name. What has no partner changed from or to
 * nothing. */
#ifndef PYROMETER_ANALYSIS_DIFF_H
#define PYROMETER_ANALYSIS_DIFF_H

#include "analysis/rows.h"

#define ANALYSIS_DIFF_SORTS(X)                                                                     \
    X(SELF, "self")                                                                                \
    X(TOTAL, "total")                                                                              \
    X(NAME, "name")

enum analysis_diff_sort {
#define X(id, name) ANALYSIS_DIFF_SORT_##id,
    ANALYSIS_DIFF_SORTS(X)
#undef X
        ANALYSIS_DIFF_SORT_COUNT
};

extern const char *const ANALYSIS_DIFF_SORT_NAMES[ANALYSIS_DIFF_SORT_COUNT + 1]; /* NULL ends it */

/* A weight in both runs. */
struct analysis_change {
    struct analysis_weight before, after;
    double weight;       /* after less before, in the metric's integer */
    double points;       /* of the share of the whole, 0–100 */
    double error_points; /* half of the 95 % interval of `points`, from the numbers of samples */
    bool is_noise; /* the share changed by no more than its error; not of equal exact numbers */
    bool is_whole; /* and yet the weight did: it changed as the whole did */
};

struct analysis_diff_row {
    const struct analysis_row *row; /* the later one if there are both; borrowed from the tables */
    bool in_before, in_after;
    struct analysis_change self, total;
};

struct analysis_diff {
    const struct analysis_rows *before, *after; /* borrowed: must outlive this */
    struct analysis_diff_row *row;              /* in order; owned */
    size_t count;
    size_t matched; /* before the limit */
};

struct analysis_diff_select {
    enum analysis_diff_sort sort; /* changes by their size, the largest first */
    const regex_t *match;         /* as analysis/match.h has it; NULL: all */
    uint64_t limit;               /* 0: all */
};

/* Both tables must be by the same kind of row (E_INVALID else). */
int analysis_diff_init(const struct analysis_rows *before, const struct analysis_rows *after,
                       const struct analysis_diff_select *select, struct analysis_diff *ret);
void analysis_diff_release(struct analysis_diff *d);

/* The change of a weight that is part of two wholes. */
struct analysis_change analysis_change_of(struct analysis_weight before,
                                          struct analysis_weight after,
                                          struct analysis_weight before_whole,
                                          struct analysis_weight after_whole);

#endif
