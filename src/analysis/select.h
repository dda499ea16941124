/* Which rows are shown, and in which order. The rows themselves are not touched: shares keep their
 * meaning whatever is hidden. */
#ifndef PYROMETER_ANALYSIS_SELECT_H
#define PYROMETER_ANALYSIS_SELECT_H

#include "analysis/rows.h"

#include <regex.h>

#define ANALYSIS_SORT_LIST(X)                                                                      \
    X(SELF, "self")                                                                                \
    X(TOTAL, "total")                                                                              \
    X(SAMPLES, "samples")                                                                          \
    X(NAME, "name")                                                                                \
    X(FILE, "file")                                                                                \
    X(LINE, "line")

enum analysis_sort {
#define X(id, name) ANALYSIS_SORT_##id,
    ANALYSIS_SORT_LIST(X)
#undef X
        ANALYSIS_SORT_COUNT
};

extern const char *const ANALYSIS_SORT_NAMES[ANALYSIS_SORT_COUNT + 1]; /* NULL ends it */

struct analysis_select {
    enum analysis_sort sort; /* weights fall, texts and lines rise */
    const regex_t *match;    /* on "file:line(function)", the name or the file; NULL: all */
    double min_percent;      /* of the total; rows below are left out */
    uint64_t limit;          /* 0: all */
};

struct analysis_selection {
    uint32_t *row; /* indices into rows, in order; owned */
    size_t count;
    size_t matched; /* before the limit */
};

int analysis_selection_init(const struct analysis_rows *rows, const struct analysis_select *select,
                            struct analysis_selection *ret);
void analysis_selection_release(struct analysis_selection *s);

#endif
