/* Builds the edges: every trie node stands for one (caller row, callee row) pair; the same walk
 * with counters as in rows.c, on edges instead of rows. */
#include "analysis/edges.h"

#include "analysis/exact.h"
#include "analysis/trie.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"

struct edge_walk {
    const uint32_t *node_edge; /* IDXMAP_NONE: called by nobody */
    const struct analysis_weight *subtree;
    const struct analysis_calls_counts *counts; /* by node; NULL: calls were not counted */
    struct analysis_edge *edge;
    uint32_t *on_stack;
};

static int enter(void *ctx, uint32_t node)
{
    struct edge_walk *walk = ctx;
    uint32_t e = walk->node_edge[node];
    if (e == IDXMAP_NONE)
        return 0;
    struct analysis_edge *to = &walk->edge[e];
    bool outermost = walk->on_stack[e]++ == 0;
    if (outermost)
        analysis_weight_add(&to->total, walk->subtree[node]);
    if (walk->counts) {
        const struct analysis_calls_counts *c = &walk->counts[node];
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
    uint32_t e = walk->node_edge[node];
    if (e != IDXMAP_NONE)
        walk->on_stack[e]--;
}

typedef VEC(struct analysis_edge) edge_vec;

static int find_edges(const struct analysis_rows *rows, edge_vec *edges, uint32_t *node_edge)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    struct idxmap map = {0};
    int r = 0;
    node_edge[0] = IDXMAP_NONE;
    for (size_t i = 1; r == 0 && i < t->node_count; i++) {
        uint32_t from = rows->node_row[t->node_parent[i]], to = rows->node_row[i], at;
        node_edge[i] = IDXMAP_NONE;
        if (from == ANALYSIS_ROW_NONE)
            continue;
        uint32_t hash = hash_u64((uint64_t)from << 32 | to);
        IDXMAP_FIND(&map, hash, k, edges->data[k].caller == from && edges->data[k].callee == to,
                    at);
        if (at == IDXMAP_NONE) {
            at = (uint32_t)edges->len;
            struct analysis_edge *e = vec_push(edges);
            r = e ? idxmap_insert(&map, hash, at) : E_NOMEM;
            if (r < 0)
                break;
            e->caller = from;
            e->callee = to;
        }
        node_edge[i] = at;
        analysis_weight_add(&edges->data[at].self, rows->weights->node[i]);
    }
    idxmap_release(&map);
    return r;
}

static int weigh_edges(const struct analysis_rows *rows, edge_vec *edges)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    _cleanup_free_ uint32_t *node_edge = malloc((t->node_count + 1) * sizeof *node_edge);
    _cleanup_free_ struct analysis_weight *subtree = malloc((t->node_count + 1) * sizeof *subtree);
    if (!node_edge || !subtree)
        return E_NOMEM;
    int r = find_edges(rows, edges, node_edge);
    if (r < 0)
        return r;
    _cleanup_free_ uint32_t *on_stack = calloc(edges->len + 1, sizeof *on_stack);
    if (!on_stack)
        return E_NOMEM;
    memcpy(subtree, rows->weights->node, t->node_count * sizeof *subtree);
    analysis_weights_accumulate(t, subtree);
    const struct analysis_calls *calls = rows->weights->calls;
    struct edge_walk walk = {node_edge, subtree, calls ? calls->node : NULL, edges->data, on_stack};
    return analysis_trie_walk(t->node_parent, t->node_count, enter, leave, &walk);
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
    if (!rows->node_row)
        return E_INVALID;
    edge_vec edges = {0};
    int r = analysis_exact_has(rows) ? analysis_exact_edges(rows, &edges.data, &edges.len)
                                     : weigh_edges(rows, &edges);
    size_t kept = 0;
    for (size_t i = 0; r == 0 && i < edges.len; i++)
        if (edges.data[i].total.samples) /* the others belong to what was filtered out */
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
