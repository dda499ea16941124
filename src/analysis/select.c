/* Sorting and choosing rows. Every comparison ends in the row's place, so the order is total and
 * the same recording always prints the same table. */
#include "analysis/select.h"

#include "analysis/match.h"
#include "base/buf.h"
#include "base/err.h"

const char *const ANALYSIS_SORT_NAMES[ANALYSIS_SORT_COUNT + 1] = {
#define X(id, name) [ANALYSIS_SORT_##id] = (name),
    ANALYSIS_SORT_LIST(X)
#undef X
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_on(enum analysis_sort sort, const struct analysis_row *a,
                      const struct analysis_row *b)
{
    switch (sort) {
    case ANALYSIS_SORT_SELF:
        return compare_u64(b->self.weight, a->self.weight);
    case ANALYSIS_SORT_TOTAL:
        return compare_u64(b->total.weight, a->total.weight);
    case ANALYSIS_SORT_SAMPLES:
        return compare_u64(b->self.samples, a->self.samples);
    case ANALYSIS_SORT_NAME:
        return analysis_compare_text(a->name, b->name);
    case ANALYSIS_SORT_FILE:
        return analysis_compare_text(a->file, b->file);
    case ANALYSIS_SORT_LINE:
        return compare_u64(a->line, b->line);
    default:
        return 0;
    }
}

struct order {
    const struct analysis_row *row;
    enum analysis_sort keys[6];
};

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct order *order = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    for (size_t i = 0; i < ARRAY_LEN(order->keys); i++) {
        int c = compare_on(order->keys[i], &order->row[x], &order->row[y]);
        if (c)
            return c;
    }
    return compare_u64(x, y);
}

static bool matches(const struct analysis_row *row, const regex_t *match, struct buf *text)
{
    return !match || analysis_match_code(match, row->name, row->file, row->line, text);
}

int analysis_selection_init(const struct analysis_rows *rows, const struct analysis_select *select,
                            struct analysis_selection *ret)
{
    struct analysis_selection s = {.row = malloc((rows->count + 1) * sizeof *s.row)};
    if (!s.row)
        return E_NOMEM;
    struct buf text;
    buf_init(&text, ANALYSIS_MATCH_BYTES_MAX);
    double least = select->min_percent / 100 * (double)rows->weights->total.weight;
    for (size_t i = 0; i < rows->count; i++) {
        const struct analysis_row *row = &rows->row[i];
        if (row->total.samples && (double)row->total.weight >= least &&
            matches(row, select->match, &text))
            s.row[s.count++] = (uint32_t)i;
    }
    int r = buf_error(&text);
    buf_release(&text);
    if (r < 0) {
        analysis_selection_release(&s);
        return r;
    }
    struct order order = {rows->row,
                          {select->sort, ANALYSIS_SORT_SELF, ANALYSIS_SORT_TOTAL,
                           ANALYSIS_SORT_NAME, ANALYSIS_SORT_FILE, ANALYSIS_SORT_LINE}};
    qsort_r(s.row, s.count, sizeof *s.row, compare_rows, &order);
    s.matched = s.count;
    if (select->limit && s.count > select->limit)
        s.count = select->limit;
    *ret = s;
    return 0;
}

void analysis_selection_release(struct analysis_selection *s)
{
    free(s->row);
    *s = (struct analysis_selection){0};
}
