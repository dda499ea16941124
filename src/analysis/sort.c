/* The words for orders. pstats' words come first: who types `tot` there gets internal time, and is to
 * get it here; ours are shortened only where that leaves no doubt. */
#include "analysis/select.h"

#include "base/attr.h"
#include "base/err.h"

#include <string.h>

struct word {
    const char *text;
    enum analysis_sort sort;
};

/* pstats.Stats.sort_stats() */
static const struct word PSTATS[] = {
    {"calls", ANALYSIS_SORT_CALLS},     {"ncalls", ANALYSIS_SORT_CALLS},
    {"cumtime", ANALYSIS_SORT_TOTAL},   {"cumulative", ANALYSIS_SORT_TOTAL},
    {"filename", ANALYSIS_SORT_FILE},   {"line", ANALYSIS_SORT_LINE},
    {"module", ANALYSIS_SORT_FILE},     {"name", ANALYSIS_SORT_NAME},
    {"nfl", ANALYSIS_SORT_NFL},         {"pcalls", ANALYSIS_SORT_PCALLS},
    {"stdname", ANALYSIS_SORT_STDNAME}, {"time", ANALYSIS_SORT_SELF},
    {"tottime", ANALYSIS_SORT_SELF},    {NULL, 0},
};

static const struct word OURS[] = {
    {"self", ANALYSIS_SORT_SELF},
    {"total", ANALYSIS_SORT_TOTAL},
    {"samples", ANALYSIS_SORT_SAMPLES},
    {NULL, 0},
};

const char *analysis_sort_word(size_t index)
{
    size_t ours = ARRAY_LEN(OURS) - 1, all = ours + ARRAY_LEN(PSTATS) - 1;
    return index < ours ? OURS[index].text : index < all ? PSTATS[index - ours].text : NULL;
}

/* Two words that mean the same order are no ambiguity. */
static int find_in(const struct word *words, const char *text, enum analysis_sort *ret)
{
    size_t len = strlen(text);
    int r = E_INVALID;
    for (const struct word *w = words; w->text; w++) {
        if (strcmp(w->text, text) == 0) {
            *ret = w->sort;
            return 0;
        }
        if (!len || strncmp(w->text, text, len) != 0)
            continue;
        r = r == E_INVALID || (r == 0 && *ret == w->sort) ? 0 : E_AMBIGUOUS;
        *ret = w->sort;
    }
    return r;
}

int analysis_sort_find(const char *text, enum analysis_sort *ret)
{
    enum analysis_sort sort;
    for (const struct word *w = OURS; w->text; w++)
        if (strcmp(w->text, text) == 0) {
            *ret = w->sort;
            return 0;
        }
    int r = find_in(PSTATS, text, &sort);
    if (r == E_INVALID)
        r = find_in(OURS, text, &sort);
    if (r == 0)
        *ret = sort;
    return r;
}
