/* Builds the edges: every trie node stands for one (caller row, callee row) pair; the same walk
 * with counters as in rows.c, on edges instead of rows, and only over nodes that are wanted. */
#include "analysis/edges.h"

#include "analysis/exact.h"
#include "analysis/trie.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/progress.h"
#include "base/vec.h"

typedef VEC(struct analysis_edge) edge_vec;

/* The trie without the nodes that are no edge: each stands for what it carried itself and for what
 * was left out below it. Kept node 0 is the root. */
struct kept {
    VEC(uint32_t) parent, edge, node; /* node: of the profile's trie */
    VEC(struct analysis_weight) weight;
};

static void kept_release(struct kept *k)
{
    vec_release(&k->parent);
    vec_release(&k->edge);
    vec_release(&k->node);
    vec_release(&k->weight);
}

static int kept_add(struct kept *k, uint32_t parent, uint32_t edge, uint32_t node, uint32_t *ret)
{
    uint32_t *p = vec_push(&k->parent), *e = vec_push(&k->edge), *n = vec_push(&k->node);
    if (!p || !e || !n || !vec_push(&k->weight))
        return E_NOMEM;
    *p = parent;
    *e = edge;
    *n = node;
    *ret = (uint32_t)k->parent.len - 1;
    return 0;
}

struct edge_walk {
    const struct kept *kept;
    const struct analysis_calls_counts *counts; /* by node; NULL: calls were not counted */
    struct analysis_edge *edge;
    uint32_t *on_stack;
};

static int enter(void *ctx, uint32_t node)
{
    struct edge_walk *walk = ctx;
    uint32_t e = walk->kept->edge.data[node];
    if (e == IDXMAP_NONE)
        return 0;
    struct analysis_edge *to = &walk->edge[e];
    bool outermost = walk->on_stack[e]++ == 0;
    if (outermost)
        analysis_weight_add(&to->total, walk->kept->weight.data[node]);
    if (walk->counts) {
        const struct analysis_calls_counts *c = &walk->counts[walk->kept->node.data[node]];
        to->calls += c->calls;
        to->primitive_calls += outermost ? c->calls : 0;
        to->resumes += c->resumes;
        to->alive_ns += outermost ? c->alive_ns : 0;
    }
    return 0;
}

static void leave(void *ctx, uint32_t node)
{
    struct edge_walk *walk = ctx;
    uint32_t e = walk->kept->edge.data[node];
    if (e != IDXMAP_NONE)
        walk->on_stack[e]--;
}

/* `among` as in the header; NULL: all rows. */
static bool is_wanted(const uint32_t *among, uint32_t row)
{
    return row != ANALYSIS_ROW_NONE && (!among || among[row] != ANALYSIS_ROW_NONE);
}

static int intern_edge(edge_vec *edges, struct idxmap *map, uint32_t from, uint32_t to,
                       uint32_t *ret)
{
    uint32_t hash = hash_u64((uint64_t)from << 32 | to), at;
    IDXMAP_FIND(map, hash, k, edges->data[k].caller == from && edges->data[k].callee == to, at);
    *ret = at;
    if (at != IDXMAP_NONE)
        return 0;
    *ret = (uint32_t)edges->len;
    struct analysis_edge *e = vec_push(edges);
    if (!e)
        return E_NOMEM;
    e->caller = from;
    e->callee = to;
    return idxmap_insert(map, hash, *ret);
}

static int find_edges(const struct analysis_rows *rows, const uint32_t *among, edge_vec *edges,
                      struct kept *kept)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    struct idxmap map = {0};
    /* the nearest kept node at or above each */
    _cleanup_free_ uint32_t *near = calloc(t->node_count + 1, sizeof *near);
    int r = near ? kept_add(kept, 0, IDXMAP_NONE, 0, &near[0]) : E_NOMEM;
    for (size_t i = 1; r == 0 && i < t->node_count; i++) {
        uint32_t from = rows->node_row[t->node_parent[i]], to = rows->node_row[i], edge;
        near[i] = near[t->node_parent[i]];
        if (is_wanted(among, to) && is_wanted(among, from)) {
            r = intern_edge(edges, &map, from, to, &edge);
            if (r == 0)
                r = kept_add(kept, near[i], edge, (uint32_t)i, &near[i]);
            if (r < 0)
                break;
            analysis_weight_add(&edges->data[edge].self, rows->weights->node[i]);
        }
        analysis_weight_add(&kept->weight.data[near[i]], rows->weights->node[i]);
    }
    idxmap_release(&map);
    return r;
}

static int weigh_edges(const struct analysis_rows *rows, const uint32_t *among, edge_vec *edges)
{
    struct kept kept = {0};
    int r = find_edges(rows, among, edges, &kept);
    _cleanup_free_ uint32_t *on_stack = calloc(edges->len + 1, sizeof *on_stack);
    if (r == 0 && !on_stack)
        r = E_NOMEM;
    if (r == 0) {
        for (size_t i = kept.parent.len; i-- > 1;)
            analysis_weight_add(&kept.weight.data[kept.parent.data[i]], kept.weight.data[i]);
        const struct analysis_calls *calls = rows->weights->calls;
        struct edge_walk walk = {&kept, calls ? calls->node : NULL, edges->data, on_stack};
        r = analysis_trie_walk(kept.parent.data, kept.parent.len, enter, leave, &walk);
    }
    kept_release(&kept);
    return r;
}

/* Heaviest first; ties by the other end, so that the order is the same every time. */
static int compare(const void *a, const void *b)
{
    const struct analysis_edge *x = a, *y = b;
    if (x->total.weight != y->total.weight)
        return x->total.weight > y->total.weight ? -1 : 1;
    uint64_t end_x = (uint64_t)x->caller << 32 | x->callee;
    uint64_t end_y = (uint64_t)y->caller << 32 | y->callee;
    return end_x < end_y ? -1 : end_x > end_y;
}

/* Sorts edges by row and weight: counts, then sums, then places, then puts each row's in order.
 * at[i] becomes where row i begins; it has rows + 2 places, zeroed. */
static void sort_edges(const struct analysis_edge *from, size_t count, bool by_caller,
                       struct analysis_edge *to, size_t *at, size_t rows)
{
    size_t *next = at + 1; /* of row i the place to fill; in the end, where row i + 1 begins */
    for (size_t i = 0; i < count; i++)
        next[(by_caller ? from[i].caller : from[i].callee) + 1]++;
    for (size_t i = 1; i <= rows; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < count; i++)
        to[next[by_caller ? from[i].caller : from[i].callee]++] = from[i];
    for (size_t i = 0; i < rows; i++)
        if (at[i + 1] - at[i] > 1)
            qsort(to + at[i], at[i + 1] - at[i], sizeof *to, compare);
}

int analysis_edges_init(const struct analysis_rows *rows, struct analysis_edges *ret)
{
    return analysis_edges_init_among(rows, NULL, ret);
}

int analysis_edges_init_among(const struct analysis_rows *rows, const uint32_t *among,
                              struct analysis_edges *ret)
{
    if (!rows->node_row)
        return E_INVALID;
    edge_vec edges = {0};
    progress_begin("finding who calls whom", 0);
    int r = analysis_exact_has(rows) ? analysis_exact_edges(rows, &edges.data, &edges.len)
                                     : weigh_edges(rows, among, &edges);
    size_t kept = 0;
    for (size_t i = 0; r == 0 && i < edges.len; i++)
        /* those without samples belong to what was filtered out */
        if (edges.data[i].total.samples && is_wanted(among, edges.data[i].caller) &&
            is_wanted(among, edges.data[i].callee))
            edges.data[kept++] = edges.data[i];
    struct analysis_edges e = {.count = kept};
    e.by_caller = malloc((kept + 1) * sizeof *e.by_caller);
    e.by_callee = malloc((kept + 1) * sizeof *e.by_callee);
    e.callees_at = calloc(rows->count + 3, sizeof *e.callees_at);
    e.callers_at = calloc(rows->count + 3, sizeof *e.callers_at);
    if (r == 0 && !(e.by_caller && e.by_callee && e.callees_at && e.callers_at))
        r = E_NOMEM;
    if (r == 0) {
        sort_edges(edges.data, kept, true, e.by_caller, e.callees_at, rows->count);
        sort_edges(edges.data, kept, false, e.by_callee, e.callers_at, rows->count);
    }
    vec_release(&edges);
    if (r < 0) {
        analysis_edges_release(&e);
        return r;
    }
    *ret = e;
    return 0;
}

void analysis_edges_release(struct analysis_edges *e)
{
    free(e->by_caller);
    free(e->by_callee);
    free(e->callees_at);
    free(e->callers_at);
    *e = (struct analysis_edges){0};
}
