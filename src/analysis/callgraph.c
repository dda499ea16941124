/* Nodes are chosen before edges are looked for: a large recording has millions of pairs of caller
 * and callee, and nearly all of them belong to functions that nobody will see. Circles are the
 * strongly connected components of what is left (Tarjan's, without recursion). */
#include "analysis/callgraph.h"

#include "analysis/edges.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"

/* --- nodes --- */

/* The heaviest first; ties by the row, so that the order is the same every time. */
struct ranked {
    uint64_t total, self;
    uint32_t row;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static void leave_out(struct analysis_callgraph *g, const struct analysis_row *row)
{
    g->nodes_left++;
    analysis_weight_add(&g->left_self, row->self);
    g->left_heaviest = max_u64(g->left_heaviest, row->total.weight);
}

/* node_of[row] becomes the node, or IDXMAP_NONE. */
static int choose_nodes(struct analysis_callgraph *g, uint32_t *node_of)
{
    const struct analysis_rows *rows = g->rows;
    double whole = (double)rows->weights->total.weight;
    struct ranked *ranked = malloc((rows->count + 1) * sizeof *ranked);
    if (!ranked)
        return E_NOMEM;
    size_t count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct analysis_row *row = &rows->row[i];
        node_of[i] = IDXMAP_NONE;
        if (!row->total.weight)
            continue;
        if ((double)row->total.weight < g->options.least_node * whole)
            leave_out(g, row);
        else
            ranked[count++] = (struct ranked){row->total.weight, row->self.weight, i};
    }
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    g->node_count = min_u64(count, g->options.max_nodes);
    for (size_t i = g->node_count; i < count; i++)
        leave_out(g, &rows->row[ranked[i].row]);
    g->node = calloc(g->node_count + 1, sizeof *g->node);
    for (uint32_t i = 0; g->node && i < g->node_count; i++) {
        g->node[i].row = ranked[i].row;
        node_of[ranked[i].row] = i;
    }
    free(ranked);
    return g->node ? 0 : E_NOMEM;
}

/* --- modules --- */

static int add_module(struct analysis_callgraph *g, struct idxmap *map, uint32_t node)
{
    const struct analysis_row *row = &g->rows->row[g->node[node].row];
    char *name = row->special || !row->file.len
                     ? strdup("")
                     : analysis_module_name(row->file.text, row->file.len);
    if (!name)
        return E_NOMEM;
    uint32_t hash = hash_bytes(name, strlen(name)), at;
    IDXMAP_FIND(map, hash, i, strcmp(g->module[i], name) == 0, at);
    if (at != IDXMAP_NONE) {
        free(name);
        g->node[node].module = at;
        return 0;
    }
    g->node[node].module = (uint32_t)g->module_count;
    g->module[g->module_count++] = name;
    return idxmap_insert(map, hash, g->node[node].module);
}

static int find_modules(struct analysis_callgraph *g)
{
    struct idxmap map = {0};
    g->module = calloc(g->node_count + 1, sizeof *g->module);
    int r = g->module ? 0 : E_NOMEM;
    for (uint32_t i = 0; r == 0 && i < g->node_count; i++)
        r = add_module(g, &map, i);
    idxmap_release(&map);
    return r;
}

/* --- edges --- */

static int compare_edges(const void *a, const void *b)
{
    const struct analysis_callgraph_edge *x = a, *y = b;
    if (x->total.weight != y->total.weight)
        return x->total.weight > y->total.weight ? -1 : 1;
    uint64_t ends_x = (uint64_t)x->from << 32 | x->to, ends_y = (uint64_t)y->from << 32 | y->to;
    return ends_x < ends_y ? -1 : ends_x > ends_y;
}

static int choose_edges(struct analysis_callgraph *g, const uint32_t *node_of)
{
    struct analysis_edges edges = {0};
    int r = analysis_edges_init_among(g->rows, node_of, &edges);
    if (r < 0)
        return r;
    double least = g->options.least_edge * (double)g->rows->weights->total.weight;
    g->edge = calloc(edges.count + 1, sizeof *g->edge);
    for (size_t i = 0; g->edge && i < edges.count; i++) {
        const struct analysis_edge *e = &edges.by_caller[i];
        if ((double)e->total.weight < least) {
            g->edges_left++;
            continue;
        }
        g->edge[g->edge_count++] = (struct analysis_callgraph_edge){
            .from = node_of[e->caller],
            .to = node_of[e->callee],
            .total = e->total,
            .calls = e->calls,
        };
    }
    analysis_edges_release(&edges);
    if (!g->edge)
        return E_NOMEM;
    qsort(g->edge, g->edge_count, sizeof *g->edge, compare_edges);
    return 0;
}

/* --- circles --- */

struct tarjan {
    struct analysis_callgraph *g;
    uint32_t *out_at, *out; /* targets of each node */
    uint32_t *number, *low; /* number: 0 is not seen yet */
    uint32_t *stack, *path, *next;
    bool *on_stack;
    uint32_t seen;
    size_t stacked;
};

static int tarjan_init(struct tarjan *t, struct analysis_callgraph *g)
{
    size_t n = g->node_count + 2;
    *t = (struct tarjan){.g = g};
    t->out_at = calloc(n + 1, sizeof *t->out_at);
    t->out = malloc((g->edge_count + 1) * sizeof *t->out);
    t->number = calloc(n, sizeof *t->number);
    t->low = calloc(n, sizeof *t->low);
    t->stack = calloc(n, sizeof *t->stack);
    t->path = calloc(n, sizeof *t->path);
    t->next = calloc(n, sizeof *t->next);
    t->on_stack = calloc(n, sizeof *t->on_stack);
    if (!t->out_at || !t->out || !t->number || !t->low || !t->stack || !t->path || !t->next ||
        !t->on_stack)
        return E_NOMEM;
    uint32_t *next = t->out_at + 1;
    for (size_t i = 0; i < g->edge_count; i++)
        next[g->edge[i].from + 1]++;
    for (size_t i = 1; i <= g->node_count; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < g->edge_count; i++)
        t->out[next[g->edge[i].from]++] = g->edge[i].to;
    return 0;
}

static void tarjan_release(struct tarjan *t)
{
    free(t->out_at);
    free(t->out);
    free(t->number);
    free(t->low);
    free(t->stack);
    free(t->path);
    free(t->next);
    free(t->on_stack);
}

static void open_node(struct tarjan *t, uint32_t node, size_t depth)
{
    t->number[node] = t->low[node] = ++t->seen;
    t->stack[t->stacked++] = node;
    t->on_stack[node] = true;
    t->path[depth] = node;
    t->next[depth] = t->out_at[node];
}

/* A node that reaches nothing older: what lies above it on the stack is one component. */
static void close_component(struct tarjan *t, uint32_t node)
{
    uint32_t cycle = 0;
    if (t->stack[t->stacked - 1] != node)
        cycle = (uint32_t)++t->g->cycle_count;
    uint32_t member;
    do {
        member = t->stack[--t->stacked];
        t->on_stack[member] = false;
        t->g->node[member].cycle = cycle;
    } while (member != node);
}

static void walk_from(struct tarjan *t, uint32_t root)
{
    size_t depth = 1;
    open_node(t, root, 0);
    while (depth) {
        uint32_t node = t->path[depth - 1];
        if (t->next[depth - 1] < t->out_at[node + 1]) {
            uint32_t to = t->out[t->next[depth - 1]++];
            if (!t->number[to])
                open_node(t, to, depth++);
            else if (t->on_stack[to])
                t->low[node] = (uint32_t)min_u64(t->low[node], t->number[to]);
            continue;
        }
        if (t->low[node] == t->number[node])
            close_component(t, node);
        if (--depth)
            t->low[t->path[depth - 1]] =
                (uint32_t)min_u64(t->low[t->path[depth - 1]], t->low[node]);
    }
}

static int find_cycles(struct analysis_callgraph *g)
{
    struct tarjan t;
    int r = tarjan_init(&t, g);
    for (uint32_t i = 0; r == 0 && i < g->node_count; i++)
        if (!t.number[i])
            walk_from(&t, i);
    tarjan_release(&t);
    for (size_t i = 0; r == 0 && i < g->edge_count; i++) {
        struct analysis_callgraph_edge *e = &g->edge[i];
        uint32_t cycle = g->node[e->from].cycle;
        e->is_recursion = e->from == e->to || (cycle && cycle == g->node[e->to].cycle);
    }
    return r;
}

int analysis_callgraph_init(const struct analysis_rows *rows,
                            const struct analysis_callgraph_options *options,
                            struct analysis_callgraph *ret)
{
    if (rows->by != ANALYSIS_BY_FUNCTION)
        return E_INVALID;
    struct analysis_callgraph g = {.rows = rows, .options = *options};
    if (!g.options.max_nodes || g.options.max_nodes > ANALYSIS_CALLGRAPH_NODES_MAX)
        g.options.max_nodes = ANALYSIS_CALLGRAPH_NODES_MAX;
    _cleanup_free_ uint32_t *node_of = malloc((rows->count + 1) * sizeof *node_of);
    int r = node_of ? choose_nodes(&g, node_of) : E_NOMEM;
    r = r < 0 ? r : find_modules(&g);
    r = r < 0 ? r : choose_edges(&g, node_of);
    r = r < 0 ? r : find_cycles(&g);
    if (r < 0) {
        analysis_callgraph_release(&g);
        return r;
    }
    *ret = g;
    return 0;
}

void analysis_callgraph_release(struct analysis_callgraph *g)
{
    free(g->node);
    free(g->edge);
    for (size_t i = 0; i < g->module_count; i++)
        free(g->module[i]);
    free(g->module);
    *g = (struct analysis_callgraph){0};
}
