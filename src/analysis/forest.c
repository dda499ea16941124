/* The forests of one run and of two. Only those with something new own their columns. */
#include "analysis/forest.h"

#include "analysis/partners.h"
#include "base/err.h"
#include "base/vec.h"

enum { OWN_PARENT, OWN_ROW, OWN_WEIGHT, OWN_BEFORE };

uint32_t analysis_forest_rootless(const struct analysis_rows *rows)
{
    bool has = rows->weights->node[RECORD_STACK_ROOT].samples && rows->count;
    return has ? (uint32_t)rows->count - 1 : ANALYSIS_ROW_NONE;
}

void analysis_forest_init(const struct analysis_rows *rows, struct analysis_forest *ret)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    *ret = (struct analysis_forest){.count = t->node_count,
                                    .parent = t->node_parent,
                                    .row = rows->node_row,
                                    .own = rows->weights->node,
                                    .variance = rows->weights->variance,
                                    .row_count = rows->count,
                                    .rootless = analysis_forest_rootless(rows)};
}

void analysis_forest_release(struct analysis_forest *f)
{
    for (size_t i = 0; i < ARRAY_LEN(f->owned); i++)
        free(f->owned[i]);
    analysis_threads_free(f->threads);
    *f = (struct analysis_forest){0};
}

/* --- two runs --- */

/* map[row of the run before] = row in the forest: that of its partner, or one of its own behind. */
static int map_rows(const struct analysis_rows *before, const struct analysis_rows *rows,
                    uint32_t *map)
{
    int r = analysis_partners_find(before, rows, map);
    for (size_t i = 0; r == 0 && i < before->count; i++)
        if (map[i] == ANALYSIS_ROW_NONE)
            map[i] = (uint32_t)(rows->count + i);
    return r;
}

/* The nodes of the run before follow those of the run after; the roots are one. */
static void lay_over(const struct analysis_rows *before, const struct analysis_rows *rows,
                     const uint32_t *map, struct analysis_forest *f)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    const struct profile_tables *old = profile_tables(before->weights->profile);
    uint32_t *parent = f->owned[OWN_PARENT], *row = f->owned[OWN_ROW];
    struct analysis_weight *own = f->owned[OWN_WEIGHT], *was = f->owned[OWN_BEFORE];
    memcpy(parent, t->node_parent, t->node_count * sizeof *parent);
    memcpy(row, rows->node_row, t->node_count * sizeof *row);
    memcpy(own, rows->weights->node, t->node_count * sizeof *own);
    was[0] = before->weights->node[0];
    uint32_t shift = (uint32_t)t->node_count - 1;
    for (size_t i = 1; i < old->node_count; i++) {
        size_t at = i + shift;
        parent[at] = old->node_parent[i] ? old->node_parent[i] + shift : 0;
        row[at] = map[before->node_row[i]];
        was[at] = before->weights->node[i];
    }
    f->rootless = analysis_forest_rootless(rows);
    if (f->rootless == ANALYSIS_ROW_NONE && analysis_forest_rootless(before) != ANALYSIS_ROW_NONE)
        f->rootless = map[analysis_forest_rootless(before)];
}

int analysis_forest_init_diff(const struct analysis_rows *before, const struct analysis_rows *rows,
                              struct analysis_forest *ret)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    const struct profile_tables *old = profile_tables(before->weights->profile);
    size_t count = t->node_count + old->node_count - 1;
    if (count >= UINT32_MAX)
        return E_LIMIT;
    _cleanup_free_ uint32_t *map = malloc((before->count + 1) * sizeof *map);
    struct analysis_forest f = {.count = count, .row_count = rows->count + before->count};
    f.owned[OWN_PARENT] = calloc(count, sizeof(uint32_t));
    f.owned[OWN_ROW] = calloc(count, sizeof(uint32_t));
    f.owned[OWN_WEIGHT] = calloc(count, sizeof(struct analysis_weight));
    f.owned[OWN_BEFORE] = calloc(count, sizeof(struct analysis_weight));
    int r = map ? 0 : E_NOMEM;
    for (size_t i = 0; i < ARRAY_LEN(f.owned); i++)
        r = f.owned[i] ? r : E_NOMEM;
    if (r == 0)
        r = map_rows(before, rows, map);
    if (r < 0) {
        analysis_forest_release(&f);
        return r;
    }
    lay_over(before, rows, map, &f);
    f.parent = f.owned[OWN_PARENT];
    f.row = f.owned[OWN_ROW];
    f.own = f.owned[OWN_WEIGHT];
    f.before = f.owned[OWN_BEFORE];
    *ret = f;
    return 0;
}
