/* Growing the tree. A candidate is a node that could be taken next: its place, its weight, and the
 * slice of entries (nodes of the forest) that are merged in it. A heap gives the heaviest; taking
 * it groups what lies one step further by row and so makes the next candidates. Top down a step
 * goes to the children, and an entry of the forest is looked at once; bottom up every stack has one
 * entry that climbs from its end towards the root, in place. No recursion: a Python stack may be
 * ten thousand frames deep. */
#include "analysis/tree.h"

#include "analysis/heap.h"
#include "base/large.h"
#include "base/progress.h"
#include "base/vec.h"

struct entry {
    uint32_t at;    /* a node of the forest */
    uint32_t stack; /* the node whose own weight is meant; `at` itself top down */
};

struct candidate {
    uint32_t parent; /* in the tree */
    uint32_t row;
    uint32_t first, len; /* entries */
    struct analysis_weight total, before;
    double variance; /* of the total */
};

struct growing {
    const struct analysis_forest *f;
    bool bottom_up;
    /* of the forest's nodes, and bottom up of its pairs, if it has some; what is made here is owned */
    struct analysis_threads_columns at;
    uint32_t *first, *next; /* top down only; owned, as are the next two */
    struct analysis_weight *subtree, *before_subtree; /* top down only; the latter may be NULL */
    double *variance;           /* of subtrees, top down; may be NULL; owned */
    double scale, before_scale; /* from weights to shares */
    VEC(struct entry) entries;
    VEC(struct candidate) candidates;
    struct heap heap;       /* of candidates */
    struct heap deep;       /* those that are never taken, for they lie too deep; in no order */
    VEC(struct entry) step; /* one step's entries, before they are grouped */
    uint32_t *slot;         /* for each row: its candidate in this step, or NONE */
    VEC(struct analysis_tree_node) node;
    VEC(struct analysis_weight) before_self, before_total;
    VEC(uint32_t) last_child; /* of each node of the tree while it grows */
    VEC(uint32_t) depth;      /* of each node of the tree; the root's is 0 */
    const struct analysis_tree_options *options;
    struct analysis_tree *tree;
};

static const struct analysis_weight NOTHING;

/* --- weights of entries --- */

static struct analysis_weight total_of(const struct growing *g, struct entry e)
{
    return g->bottom_up ? g->at.own[e.stack] : g->at.subtree[e.at];
}

static struct analysis_weight before_of(const struct growing *g, struct entry e)
{
    if (!g->f->before)
        return NOTHING;
    return g->bottom_up ? g->f->before[e.stack] : g->before_subtree[e.at];
}

static double variance_of(const struct growing *g, struct entry e)
{
    if (!g->f->variance)
        return 0;
    return g->bottom_up ? g->f->variance[e.stack] : g->variance[e.at];
}

static bool is_seen(const struct growing *g, struct entry e)
{
    return total_of(g, e).samples || before_of(g, e).samples;
}

/* --- one step --- */

static int group_step(struct growing *g, uint32_t parent, size_t *ret_first)
{
    size_t first = g->candidates.len;
    for (size_t i = 0; i < g->step.len; i++) {
        struct entry e = g->step.data[i];
        uint32_t row = e.at ? g->at.row[e.at] : g->f->rootless;
        if (g->slot[row] == ANALYSIS_ROW_NONE) {
            struct candidate *c = vec_push(&g->candidates);
            if (!c || g->candidates.len >= UINT32_MAX)
                return c ? E_LIMIT : E_NOMEM;
            g->slot[row] = (uint32_t)g->candidates.len - 1;
            c->parent = parent;
            c->row = row;
        }
        struct candidate *c = &g->candidates.data[g->slot[row]];
        analysis_weight_add(&c->total, total_of(g, e));
        analysis_weight_add(&c->before, before_of(g, e));
        c->variance += variance_of(g, e);
        c->len++;
    }
    *ret_first = first;
    return 0;
}

/* Lays the step's entries out by candidate, from `at` on, and puts the candidates in the heap. */
static int place_step(struct growing *g, size_t first, size_t at)
{
    if (at + g->step.len > UINT32_MAX)
        return E_LIMIT;
    for (size_t i = first; i < g->candidates.len; i++) {
        struct candidate *c = &g->candidates.data[i];
        c->first = (uint32_t)at;
        at += c->len;
        c->len = 0;
    }
    for (size_t i = 0; i < g->step.len; i++) {
        struct entry e = g->step.data[i];
        uint32_t row = e.at ? g->at.row[e.at] : g->f->rootless;
        struct candidate *c = &g->candidates.data[g->slot[row]];
        g->entries.data[c->first + c->len++] = e;
    }
    for (size_t i = first; i < g->candidates.len; i++) {
        const struct candidate *c = &g->candidates.data[i];
        g->slot[c->row] = ANALYSIS_ROW_NONE;
        double key =
            (double)c->total.weight * g->scale + (double)c->before.weight * g->before_scale;
        bool deep = g->options->max_depth && g->depth.data[c->parent] >= g->options->max_depth;
        struct heap_item item = {key, (uint32_t)i};
        int r = deep ? heap_set_aside(&g->deep, item) : heap_push(&g->heap, item);
        if (r < 0)
            return r;
    }
    return 0;
}

static int push_step(struct growing *g, struct entry e)
{
    struct entry *slot = vec_push(&g->step);
    if (!slot)
        return E_NOMEM;
    *slot = e;
    return 0;
}

/* A forest of threads makes its nodes as they are come to. */
static int open_node(struct growing *g, uint32_t at)
{
    if (!g->f->threads)
        return 0;
    int r = analysis_threads_open(g->f->threads, at);
    g->at = analysis_threads_columns(g->f->threads);
    return r;
}

/* Top down: the children of every entry; their own weights are this node's self. */
static int step_down(struct growing *g, uint32_t node, size_t first, size_t len)
{
    for (size_t i = first; i < first + len; i++) {
        uint32_t at = g->entries.data[i].at;
        bool is_rootless = at == 0 && node != 0;
        int r = open_node(g, at);
        if (r < 0)
            return r;
        analysis_weight_add(&g->node.data[node].self, g->at.own[at]);
        if (g->f->before)
            analysis_weight_add(&g->before_self.data[node], g->f->before[at]);
        for (uint32_t c = is_rootless ? 0 : g->at.first[at]; c; c = g->at.next[c])
            if (is_seen(g, (struct entry){c, c}) && push_step(g, (struct entry){c, c}) < 0)
                return E_NOMEM;
    }
    size_t at = g->entries.len;
    if (!vec_reserve(&g->entries, at + g->step.len))
        return E_NOMEM;
    g->entries.len = at + g->step.len;
    size_t from;
    int r = group_step(g, node, &from);
    return r < 0 ? r : place_step(g, from, at);
}

/* Who called; of pairs the outermost was called by their thread, if you will. */
static uint32_t caller_of(const struct analysis_forest *f, struct entry e)
{
    uint32_t up = f->parent[e.at];
    bool under_thread = !up && f->pair_thread && e.at != f->pair_thread[e.stack];
    return under_thread ? f->pair_thread[e.stack] : up;
}

/* Bottom up: every entry climbs to its caller, in the slice it has; who is at the top ends here. */
static int step_up(struct growing *g, uint32_t node, size_t first, size_t len)
{
    for (size_t i = first; i < first + len; i++) {
        struct entry e = g->entries.data[i];
        if (node && e.at)
            e.at = caller_of(g->f, e);
        if (e.at || (!node && g->f->rootless != ANALYSIS_ROW_NONE)) {
            if (push_step(g, e) < 0)
                return E_NOMEM;
            continue;
        }
        analysis_weight_add(&g->node.data[node].self, g->at.own[e.stack]);
        if (g->f->before)
            analysis_weight_add(&g->before_self.data[node], g->f->before[e.stack]);
    }
    size_t from;
    int r = group_step(g, node, &from);
    return r < 0 ? r : place_step(g, from, first);
}

/* --- the tree's own nodes --- */

static int add_node(struct growing *g, const struct candidate *c, uint32_t folded, uint32_t *ret)
{
    struct analysis_tree_node *n = vec_push(&g->node);
    if (!n || g->node.len >= UINT32_MAX)
        return n ? E_LIMIT : E_NOMEM;
    if (g->f->before) {
        struct analysis_weight *total = vec_push(&g->before_total);
        if (!total || !vec_push(&g->before_self))
            return E_NOMEM;
        *total = c->before;
    }
    uint32_t *depth = vec_push(&g->depth);
    if (!depth || !vec_push(&g->last_child))
        return E_NOMEM;
    *depth = g->node.len > 1 ? g->depth.data[c->parent] + 1 : 0;
    *n = (struct analysis_tree_node){.parent = c->parent,
                                     .row = c->row,
                                     .folded = folded,
                                     .total = c->total,
                                     .variance = c->variance};
    *ret = (uint32_t)g->node.len - 1;
    return 0;
}

static void hang(struct growing *g, uint32_t node)
{
    uint32_t parent = g->node.data[node].parent, last = g->last_child.data[parent];
    if (last)
        g->node.data[last].next = node;
    else
        g->node.data[parent].first_child = node;
    g->last_child.data[parent] = node;
}

static int take(struct growing *g, uint32_t candidate)
{
    struct candidate c = g->candidates.data[candidate];
    uint32_t node;
    int r = add_node(g, &c, 0, &node);
    if (r < 0)
        return r;
    if (node)
        hang(g, node);
    g->step.len = 0;
    return g->bottom_up ? step_up(g, node, c.first, c.len) : step_down(g, node, c.first, c.len);
}

/* Adds a candidate to the folded node of its parent, whose number is in fold[parent]; 0: make it. */
static int fold_one(struct growing *g, uint32_t candidate, uint32_t *fold)
{
    struct candidate c = g->candidates.data[candidate];
    uint32_t *at = &fold[c.parent];
    g->tree->folded++;
    g->tree->folded_weight += c.total.weight;
    g->tree->folded_heaviest = max_u64(g->tree->folded_heaviest, c.total.weight);
    c.row = ANALYSIS_ROW_NONE;
    if (!*at) {
        int r = add_node(g, &c, 1, at);
        if (r == 0)
            hang(g, *at);
        return r;
    }
    struct analysis_tree_node *n = &g->node.data[*at];
    n->folded++;
    analysis_weight_add(&n->total, c.total);
    n->variance += c.variance;
    if (g->f->before)
        analysis_weight_add(&g->before_total.data[*at], c.before);
    return 0;
}

/* What was not taken, one node for each parent. */
static int fold_rest(struct growing *g)
{
    _cleanup_free_ uint32_t *fold = calloc(g->node.len, sizeof *fold);
    int r = fold ? 0 : E_NOMEM;
    for (size_t i = 0; r == 0 && i < g->heap.item.len; i++)
        r = fold_one(g, g->heap.item.data[i].index, fold);
    for (size_t i = 0; r == 0 && i < g->deep.item.len; i++)
        r = fold_one(g, g->deep.item.data[i].index, fold);
    for (uint32_t i = 1; r == 0 && i < g->node.len; i++)
        if (g->node.data[i].folded) {
            g->node.data[i].self = g->node.data[i].total;
            if (g->f->before)
                g->before_self.data[i] = g->before_total.data[i];
        }
    return r;
}

/* --- the start --- */

static int accumulate(const struct analysis_forest *f, const struct analysis_weight *own,
                      struct analysis_weight **ret)
{
    struct analysis_weight *sum = large_calloc(f->count + 1, sizeof *sum);
    if (!sum)
        return E_NOMEM;
    memcpy(sum, own, f->count * sizeof *sum);
    for (size_t i = f->count; i-- > 1;)
        analysis_weight_add(&sum[f->parent[i]], sum[i]);
    *ret = sum;
    return 0;
}

static int accumulate_variance(const struct analysis_forest *f, double **ret)
{
    double *sum = large_calloc(f->count + 1, sizeof *sum);
    if (!sum)
        return E_NOMEM;
    memcpy(sum, f->variance, f->count * sizeof *sum);
    for (size_t i = f->count; i-- > 1;)
        sum[f->parent[i]] += sum[i];
    *ret = sum;
    return 0;
}

static int link_children(struct growing *g)
{
    const struct analysis_forest *f = g->f;
    g->first = large_calloc(f->count + 1, sizeof *g->first);
    g->next = large_calloc(f->count + 1, sizeof *g->next);
    if (!g->first || !g->next)
        return E_NOMEM;
    for (size_t i = f->count; i-- > 1;) {
        g->next[i] = g->first[f->parent[i]];
        g->first[f->parent[i]] = (uint32_t)i;
    }
    int r = accumulate(f, f->own, &g->subtree);
    if (r == 0 && f->before)
        r = accumulate(f, f->before, &g->before_subtree);
    if (r == 0 && f->variance)
        r = accumulate_variance(f, &g->variance);
    g->at.first = g->first;
    g->at.next = g->next;
    g->at.subtree = g->subtree;
    return r;
}

/* Top down from a forest that makes its nodes itself: all but the root is still to come. */
static int plant_threads(struct growing *g, struct candidate *root)
{
    g->at = analysis_threads_columns(g->f->threads);
    root->total = g->at.subtree[0];
    return vec_push(&g->entries) ? 0 : E_NOMEM;
}

static int plant_nodes(struct growing *g, struct candidate *root)
{
    const struct analysis_forest *f = g->f;
    for (size_t i = 0; i < f->count; i++) {
        analysis_weight_add(&root->total, f->own[i]);
        if (f->before)
            analysis_weight_add(&root->before, f->before[i]);
        bool seen = f->own[i].samples || (f->before && f->before[i].samples);
        if (!g->bottom_up ? i != 0 : !seen)
            continue;
        struct entry *e = vec_push(&g->entries);
        if (!e)
            return E_NOMEM;
        *e = (struct entry){f->pair_node ? f->pair_node[i] : (uint32_t)i, (uint32_t)i};
    }
    return 0;
}

/* The root as the first candidate: top down it is one entry, bottom up all stacks there are. */
static int plant(struct growing *g)
{
    struct candidate *root = vec_push(&g->candidates);
    if (!root)
        return E_NOMEM;
    root->row = ANALYSIS_ROW_NONE;
    int r = g->f->threads ? plant_threads(g, root) : plant_nodes(g, root);
    if (r < 0)
        return r;
    root->len = (uint32_t)g->entries.len;
    g->tree->total = root->total;
    g->tree->before = root->before;
    g->scale = root->total.weight ? 1 / (double)root->total.weight : 0;
    g->before_scale = root->before.weight ? 1 / (double)root->before.weight : 0;
    return 0;
}

/* Top down, what the root carries itself gets a child of its own, as in a report. */
static int take_rootless(struct growing *g)
{
    const struct analysis_forest *f = g->f;
    if (g->bottom_up || f->rootless == ANALYSIS_ROW_NONE)
        return 0;
    struct analysis_weight own = f->own[0], before = f->before ? f->before[0] : NOTHING;
    if (!(own.samples || before.samples))
        return 0;
    g->node.data[0].self = NOTHING;
    if (f->before)
        g->before_self.data[0] = NOTHING;
    struct candidate *c = vec_push(&g->candidates);
    struct entry *e = c ? vec_push(&g->entries) : NULL;
    if (!e)
        return E_NOMEM;
    *e = (struct entry){0, 0};
    *c = (struct candidate){.row = f->rootless,
                            .first = (uint32_t)g->entries.len - 1,
                            .len = 1,
                            .total = own,
                            .before = before,
                            .variance = f->variance ? f->variance[0] : 0};
    double key = (double)own.weight * g->scale + (double)before.weight * g->before_scale;
    return heap_push(&g->heap, (struct heap_item){key, (uint32_t)g->candidates.len - 1});
}

/* A child is never heavier than its parent: once the heaviest is too light, all are. */
static bool is_enough(const struct growing *g)
{
    if (!g->heap.item.len || (g->options->max_nodes && g->node.len >= g->options->max_nodes))
        return true;
    return g->options->min_share > 0 && g->heap.item.data[0].key < g->options->min_share;
}

static int grow(struct growing *g)
{
    int r = plant(g);
    if (r == 0)
        r = take(g, 0);
    if (r == 0)
        r = take_rootless(g);
    while (r == 0 && !is_enough(g))
        r = take(g, heap_pop(&g->heap).index);
    return r < 0 ? r : fold_rest(g);
}

int analysis_tree_init(const struct analysis_forest *forest,
                       const struct analysis_tree_options *options, struct analysis_tree *ret)
{
    struct analysis_tree tree = {0};
    struct growing g = {
        .f = forest, .bottom_up = options->bottom_up, .options = options, .tree = &tree};
    progress_begin("growing the tree", 0);
    g.at.row = forest->row;
    g.at.own = forest->own;
    g.slot = malloc((forest->row_count + 1) * sizeof *g.slot);
    int r = g.slot ? 0 : E_NOMEM;
    if (r == 0)
        memset(g.slot, 0xff, (forest->row_count + 1) * sizeof *g.slot);
    if (r == 0 && !g.bottom_up && !forest->threads)
        r = link_children(&g);
    if (r == 0)
        r = grow(&g);
    tree.node = g.node.data;
    tree.count = g.node.len;
    tree.before_self = g.before_self.data;
    tree.before_total = g.before_total.data;
    free(g.first);
    free(g.next);
    free(g.subtree);
    free(g.before_subtree);
    free(g.variance);
    free(g.slot);
    vec_release(&g.last_child);
    vec_release(&g.entries);
    vec_release(&g.candidates);
    vec_release(&g.heap.item);
    vec_release(&g.deep.item);
    vec_release(&g.depth);
    vec_release(&g.step);
    if (r < 0) {
        analysis_tree_release(&tree);
        return r;
    }
    *ret = tree;
    return 0;
}

void analysis_tree_release(struct analysis_tree *tree)
{
    free(tree->node);
    free(tree->before_self);
    free(tree->before_total);
    *tree = (struct analysis_tree){0};
}

uint32_t analysis_tree_next(const struct analysis_tree *tree, uint32_t node)
{
    const struct analysis_tree_node *n = tree->node;
    if (n[node].first_child)
        return n[node].first_child;
    while (node && !n[node].next)
        node = n[node].parent;
    return node ? n[node].next : 0;
}
