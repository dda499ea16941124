#include "analysis/leaks.h"

#include "analysis/match.h"
#include "base/attr.h"
#include "base/err.h"

#include <math.h>

struct order {
    const struct analysis_rows *rows;
    const struct analysis_growth *growth;
};

/* Bytes an iteration of what surely grows; 0 of all else. */
static double growing(const struct order *o, uint32_t row)
{
    const struct stats_slope *s = o->growth->row ? &o->growth->row[row] : NULL;
    return s && isfinite(s->low) && s->low > 0 ? s->slope : 0;
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct order *o = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    double faster = growing(o, y) - growing(o, x);
    uint64_t left = o->rows->row[x].self.weight, right = o->rows->row[y].self.weight;
    if (faster != 0)
        return faster > 0 ? 1 : -1;
    if (left != right)
        return left > right ? -1 : 1;
    return x < y ? -1 : x > y;
}

int analysis_leaks_select(const struct analysis_rows *rows, const struct analysis_growth *growth,
                          const struct analysis_select *select, struct analysis_selection *ret)
{
    struct order order = {rows, growth};
    struct analysis_selection s = {.row = malloc((rows->count + 1) * sizeof *s.row)};
    if (!s.row)
        return E_NOMEM;
    struct buf text;
    buf_init(&text, ANALYSIS_MATCH_BYTES_MAX);
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct analysis_row *row = &rows->row[i];
        bool is_one = row->self.weight || row->self.samples || growing(&order, i) > 0;
        if (is_one && (!select->match ||
                       analysis_match_code(select->match, row->name, row->file, row->line, &text)))
            s.row[s.count++] = i;
    }
    int r = buf_error(&text);
    buf_release(&text);
    if (r < 0) {
        analysis_selection_release(&s);
        return r;
    }
    qsort_r(s.row, s.count, sizeof *s.row, compare, &order);
    s.matched = s.count;
    s.count = select->limit ? min_u64(s.count, select->limit) : s.count;
    *ret = s;
    return 0;
}
