#include "analysis/leaks.h"

#include "analysis/forest.h"
#include "analysis/match.h"
#include "base/attr.h"
#include "base/err.h"

#include <math.h>
#include <string.h>

/* What CPython's allocator maps at a time: up to 3.9, and since. */
#define ARENA_SMALL (256u << 10)
#define ARENA_LARGE (1u << 20)

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

static bool is_of_arenas(const struct analysis_site *s)
{
    return s->allocator == RECORD_ALLOCATOR_MMAP && s->live_count &&
           s->live_bytes % s->live_count == 0 &&
           (s->live_bytes / s->live_count == ARENA_SMALL ||
            s->live_bytes / s->live_count == ARENA_LARGE);
}

int analysis_arenas_init(const struct analysis_rows *rows, struct analysis_arenas *ret)
{
    const struct analysis_memory *memory = rows->weights->memory;
    const char *mode = profile_meta_value(rows->weights->profile, "memory.mode");
    struct analysis_arenas a = {.row = calloc(rows->count + 1, sizeof *a.row)};
    if (!a.row)
        return E_NOMEM;
    bool is_heap = mode && strcmp(mode, "heap") == 0;
    for (size_t i = 0; is_heap && i < memory->count; i++) {
        const struct analysis_site *s = &memory->site[i];
        if (!is_of_arenas(s))
            continue;
        uint32_t row = rows->node_row[s->stack];
        row = row == ANALYSIS_ROW_NONE ? analysis_forest_rootless(rows) : row;
        if (row != ANALYSIS_ROW_NONE)
            a.row[row] += s->live_count;
        a.all += s->live_count;
    }
    *ret = a;
    return 0;
}

void analysis_arenas_release(struct analysis_arenas *a)
{
    free(a->row);
    *a = (struct analysis_arenas){0};
}
