/* One hash index over (function, line). */
#include "export/sites.h"

#include "base/err.h"
#include "base/idxmap.h"
#include "base/large.h"

static int add_node(struct export_sites *s, struct idxmap *map, uint32_t row, uint32_t line,
                    uint32_t *ret_site)
{
    uint32_t hash = hash_u64((uint64_t)row << 32 | line), at;
    IDXMAP_FIND(map, hash, i, s->site.data[i].row == row && s->site.data[i].line == line, at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)s->site.len;
        struct export_site *site = vec_push(&s->site);
        if (!site || idxmap_insert(map, hash, at) < 0)
            return E_NOMEM;
        site->row = row;
        site->line = line;
    }
    *ret_site = at;
    return 0;
}

int export_sites_init(const struct analysis_rows *rows, struct export_sites *ret)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    struct export_sites s = {.node_site = large_calloc(t->node_count + 1, sizeof *s.node_site)};
    struct idxmap map = {0};
    int r = s.node_site ? 0 : E_NOMEM;
    for (size_t i = 1; r == 0 && i < t->node_count; i++) {
        uint32_t row = rows->node_row[i], line = t->node_line[i];
        if (!line && rows->weights->calls)
            line = rows->row[row].line; /* calls are counted by function: all at its first line */
        r = add_node(&s, &map, row, line, &s.node_site[i]);
        if (r == 0)
            analysis_weight_add(&s.site.data[s.node_site[i]].self, rows->weights->node[i]);
    }
    idxmap_release(&map);
    if (r < 0) {
        export_sites_release(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void export_sites_release(struct export_sites *s)
{
    vec_release(&s->site);
    free(s->node_site);
    *s = (struct export_sites){0};
}
