/* Which rows are shown, and in which order. The rows themselves are not touched: shares keep their
 * meaning whatever is hidden. */
#ifndef PYROMETER_ANALYSIS_SELECT_H
#define PYROMETER_ANALYSIS_SELECT_H

#include "analysis/rows.h"

#include <regex.h>

enum analysis_sort {
    ANALYSIS_SORT_SELF,
    ANALYSIS_SORT_TOTAL,
    ANALYSIS_SORT_SAMPLES,
    ANALYSIS_SORT_NAME,
    ANALYSIS_SORT_FILE,
    ANALYSIS_SORT_LINE,
    ANALYSIS_SORT_CALLS,
    ANALYSIS_SORT_PCALLS,
    ANALYSIS_SORT_NFL,
    ANALYSIS_SORT_STDNAME,
    ANALYSIS_SORT_COUNT
};

/* The order that a word means: self, total, samples, one of pstats' keys, or the beginning of one that
 * means one order only. E_INVALID, E_AMBIGUOUS. */
int analysis_sort_find(const char *text, enum analysis_sort *ret);

/* All these words, one by one; NULL behind the last. */
const char *analysis_sort_word(size_t index);

/* One of several conditions, which are applied to the sorted rows in the order given, as pstats'
 * print_stats() does: of what is left, those that match, or the first so many, or the first so large
 * a part. */
struct analysis_restriction {
    const regex_t *match; /* NULL: a limit */
    double part;          /* between 0 and 1; 0: a number of rows */
    uint64_t limit;       /* 0: all */
    const char *text;     /* as the user wrote it; borrowed */
};

enum { ANALYSIS_SORT_MORE_MAX = 7 };

struct analysis_select {
    enum analysis_sort sort; /* weights and counts fall, texts and lines rise */
    enum analysis_sort more[ANALYSIS_SORT_MORE_MAX]; /* where rows are equal by those before */
    size_t more_count;
    const regex_t *match; /* on "file:line(function)", the name or the file; NULL: all */
    double min_percent;   /* of the total; rows below are left out */
    uint64_t limit;       /* 0: all; comes last */
    const struct analysis_restriction *restriction;
    size_t restriction_count;
};

struct analysis_selection {
    uint32_t *row; /* indices into rows, in order; owned */
    size_t count;
    size_t matched; /* that all expressions match, whatever the limits */
    size_t *left;   /* rows after each restriction, and first those before them; owned */
};

int analysis_selection_init(const struct analysis_rows *rows, const struct analysis_select *select,
                            struct analysis_selection *ret);
void analysis_selection_release(struct analysis_selection *s);

#endif
