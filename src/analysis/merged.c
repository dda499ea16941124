/* Merging takes one pass, since parents stand before children. The jumps are Myers' skew-binary
 * ones: each node jumps either to its parent or over two jumps of equal length, which the depths
 * decide. */
#include "analysis/merged.h"

#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"

struct merging {
    VEC(struct analysis_merged_node) node;
    struct idxmap map;
};

static int find_or_add(struct merging *m, uint32_t parent, uint32_t row, uint32_t *ret)
{
    const struct analysis_merged_node *n = m->node.data;
    uint32_t hash = hash_u64((uint64_t)parent << 32 | row), at;
    IDXMAP_FIND(&m->map, hash, i, n[i].parent == parent && n[i].row == row, at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)m->node.len;
        struct analysis_merged_node *slot = vec_push(&m->node);
        if (!slot || idxmap_insert(&m->map, hash, at) < 0)
            return E_NOMEM;
        n = m->node.data;
        uint32_t jump = n[parent].jump;
        bool equal = n[parent].depth - n[jump].depth == n[jump].depth - n[n[jump].jump].depth;
        *slot = (struct analysis_merged_node){
            .parent = parent,
            .jump = equal ? n[jump].jump : parent,
            .depth = n[parent].depth + 1,
            .row = row,
        };
    }
    *ret = at;
    return 0;
}

int analysis_merged_init(const struct analysis_rows *rows, struct analysis_merged *ret)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    struct merging m = {0};
    struct analysis_merged_node *root = vec_push(&m.node);
    uint32_t *of = calloc(t->node_count + 1, sizeof *of);
    int r = root && of ? 0 : E_NOMEM;
    if (r == 0)
        root->row = ANALYSIS_ROW_NONE;
    for (size_t i = 1; r == 0 && i < t->node_count; i++)
        r = find_or_add(&m, of[t->node_parent[i]], rows->node_row[i], &of[i]);
    if (r == 0 && rows->count && rows->weights->node[RECORD_STACK_ROOT].samples)
        r = find_or_add(&m, 0, (uint32_t)rows->count - 1, &of[0]);
    idxmap_release(&m.map);
    struct analysis_merged made = {m.node.data, m.node.len, of};
    if (r < 0) {
        analysis_merged_release(&made);
        return r;
    }
    *ret = made;
    return 0;
}

void analysis_merged_release(struct analysis_merged *m)
{
    free(m->node);
    free(m->of);
    *m = (struct analysis_merged){0};
}

uint32_t analysis_merged_ancestor(const struct analysis_merged *m, uint32_t node, uint32_t depth)
{
    const struct analysis_merged_node *n = m->node;
    while (n[node].depth > depth)
        node = n[n[node].jump].depth >= depth ? n[node].jump : n[node].parent;
    return node;
}

uint32_t analysis_merged_common(const struct analysis_merged *m, uint32_t a, uint32_t b)
{
    const struct analysis_merged_node *n = m->node;
    a = analysis_merged_ancestor(m, a, n[b].depth);
    b = analysis_merged_ancestor(m, b, n[a].depth);
    while (a != b) {
        /* nodes of one depth have jumps of one length */
        bool far = n[a].jump != n[b].jump;
        a = far ? n[a].jump : n[a].parent;
        b = far ? n[b].jump : n[b].parent;
    }
    return a;
}
