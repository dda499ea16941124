/* Walking through a call tree. Every change makes the list of lines anew: that costs as much as there
 * are lines, and nothing can get out of step. */
#include "view/tree_model.h"

#include "analysis/match.h"
#include "base/err.h"

const char *const TREE_SORT_NAMES[TREE_SORT_COUNT] = {"total", "self", "name"};

static const struct analysis_tree_node *nodes(const struct tree_model *m)
{
    return m->t->tree.node;
}

/* --- the order of children --- */

static int compare_weights(struct analysis_weight a, struct analysis_weight b)
{
    return a.weight == b.weight ? 0 : a.weight > b.weight ? -1 : 1;
}

static int compare_texts(struct profile_string a, struct profile_string b)
{
    int order = memcmp(a.text, b.text, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Folded ones are last, whatever the order. */
static int compare_nodes(const void *a, const void *b, void *model)
{
    const struct tree_model *m = model;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const struct analysis_tree_node *l = &nodes(m)[left], *r = &nodes(m)[right];
    if (!l->folded != !r->folded)
        return l->folded ? 1 : -1;
    int order = 0;
    const struct analysis_row *label = analysis_calltree_label(m->t, left),
                              *other = analysis_calltree_label(m->t, right);
    if (m->sort == TREE_SORT_NAME && label && other)
        order = compare_texts(label->name, other->name);
    if (m->sort == TREE_SORT_SELF)
        order = compare_weights(l->self, r->self);
    if (!order)
        order = compare_weights(l->total, r->total);
    return order ? order : (left > right) - (left < right);
}

/* Puts the children of a node on the list of what is to do, the first one on top. */
static int push_children(struct tree_model *m, uint32_t node, uint32_t level)
{
    m->children.len = 0;
    for (uint32_t c = nodes(m)[node].first_child; c; c = nodes(m)[c].next) {
        uint32_t *slot = vec_push(&m->children);
        if (!slot)
            return E_NOMEM;
        *slot = c;
    }
    size_t count = m->children.len;
    if (count > 1 && m->sort != TREE_SORT_TOTAL) /* by total is how the tree was made */
        qsort_r(m->children.data, count, sizeof *m->children.data, compare_nodes, m);
    for (size_t i = count; i-- > 0;) {
        struct tree_line *line = vec_push(&m->todo);
        if (!line)
            return E_NOMEM;
        *line = (struct tree_line){m->children.data[i], level + (node && count > 1)};
    }
    return 0;
}

static int make_lines(struct tree_model *m)
{
    m->lines.len = m->todo.len = 0;
    int r = m->t->tree.count ? push_children(m, 0, 0) : 0;
    while (r == 0 && m->todo.len) {
        struct tree_line line = m->todo.data[--m->todo.len];
        struct tree_line *slot = vec_push(&m->lines);
        if (!slot)
            return E_NOMEM;
        *slot = line;
        if (m->open[line.node])
            r = push_children(m, line.node, line.level);
    }
    return r;
}

static int make_order(struct tree_model *m)
{
    m->todo.len = 0;
    if (m->order.len)
        return 0;
    int r = push_children(m, 0, 0);
    while (r == 0 && m->todo.len) {
        uint32_t node = m->todo.data[--m->todo.len].node;
        uint32_t *slot = vec_push(&m->order);
        if (!slot)
            return E_NOMEM;
        *slot = node;
        r = push_children(m, node, 0);
    }
    return r;
}

/* --- the cursor --- */

static void keep_in_sight(struct tree_model *m)
{
    if (m->cursor >= m->lines.len)
        m->cursor = m->lines.len ? m->lines.len - 1 : 0;
    if (m->cursor < m->top)
        m->top = m->cursor;
    if (m->cursor >= m->top + m->height)
        m->top = m->cursor - m->height + 1;
    if (m->top && m->top + m->height > m->lines.len) /* no empty lines that need not be */
        m->top = m->lines.len > m->height ? m->lines.len - m->height : 0;
}

/* Makes the lines and puts the cursor on the node, or on the nearest caller that has a line. */
static int remake(struct tree_model *m, uint32_t node)
{
    int r = make_lines(m);
    while (node && !m->open[nodes(m)[node].parent])
        node = nodes(m)[node].parent;
    for (size_t i = 0; r == 0 && i < m->lines.len; i++)
        if (m->lines.data[i].node == node)
            m->cursor = i;
    keep_in_sight(m);
    return r;
}

void tree_model_resize(struct tree_model *m, size_t height)
{
    m->height = height ? height : 1;
    keep_in_sight(m);
}

uint32_t tree_model_node(const struct tree_model *m)
{
    return m->cursor < m->lines.len ? m->lines.data[m->cursor].node : 0;
}

bool tree_model_can_open(const struct tree_model *m, uint32_t node)
{
    return nodes(m)[node].first_child != 0;
}

void tree_model_move(struct tree_model *m, ptrdiff_t lines)
{
    size_t distance = lines < 0 ? (size_t)0 - (size_t)lines : (size_t)lines;
    size_t last = m->lines.len ? m->lines.len - 1 : 0;
    if (lines < 0)
        m->cursor = m->cursor > distance ? m->cursor - distance : 0;
    else
        m->cursor = last - m->cursor > distance ? m->cursor + distance : last;
    keep_in_sight(m);
}

/* --- opening and closing --- */

static int set_open(struct tree_model *m, uint32_t node, bool open)
{
    m->open[node] = open;
    return remake(m, node);
}

int tree_model_toggle(struct tree_model *m)
{
    uint32_t node = tree_model_node(m);
    return node && tree_model_can_open(m, node) ? set_open(m, node, !m->open[node]) : 0;
}

int tree_model_right(struct tree_model *m)
{
    uint32_t node = tree_model_node(m);
    if (!node || !tree_model_can_open(m, node))
        return 0;
    if (!m->open[node])
        return set_open(m, node, true);
    tree_model_move(m, 1);
    return 0;
}

int tree_model_left(struct tree_model *m)
{
    uint32_t node = tree_model_node(m);
    if (node && m->open[node])
        return set_open(m, node, false);
    uint32_t parent = node ? nodes(m)[node].parent : 0;
    return parent ? remake(m, parent) : 0;
}

static uint32_t heaviest_child(const struct tree_model *m, uint32_t node)
{
    uint32_t best = 0;
    for (uint32_t c = nodes(m)[node].first_child; c; c = nodes(m)[c].next)
        if (!nodes(m)[c].folded &&
            (!best || nodes(m)[c].total.weight > nodes(m)[best].total.weight))
            best = c;
    return best;
}

int tree_model_descend(struct tree_model *m)
{
    uint32_t node = tree_model_node(m);
    for (uint32_t child = node ? heaviest_child(m, node) : 0; child;) {
        m->open[node] = true;
        node = child;
        child = heaviest_child(m, node);
    }
    return remake(m, node);
}

int tree_model_show(struct tree_model *m, uint32_t node)
{
    for (uint32_t up = nodes(m)[node].parent; up; up = nodes(m)[up].parent)
        m->open[up] = true;
    return remake(m, node);
}

/* --- jumps --- */

static uint64_t heat_of(const struct tree_model *m, uint32_t node)
{
    const struct analysis_tree_node *n = &nodes(m)[node];
    if (n->folded)
        return 0;
    if (m->t->options.tree.bottom_up)
        return n->parent ? 0 : n->total.weight;
    return n->self.weight;
}

int tree_model_hottest(struct tree_model *m)
{
    uint32_t here = tree_model_node(m), best = 0;
    bool goes_on = here && here == m->hottest;
    uint64_t limit = goes_on ? heat_of(m, here) : UINT64_MAX;
    for (uint32_t i = 1; i < m->t->tree.count; i++) {
        uint64_t heat = heat_of(m, i);
        bool is_later = heat < limit || (heat == limit && i > here);
        if (heat && is_later && (!best || heat > heat_of(m, best)))
            best = i;
    }
    if (!best)
        return 0;
    m->hottest = best;
    return tree_model_show(m, best);
}

int tree_model_sort(struct tree_model *m, enum tree_sort sort)
{
    uint32_t node = tree_model_node(m);
    m->sort = sort;
    m->order.len = 0;
    return remake(m, node);
}

int tree_model_search(struct tree_model *m, const regex_t *match)
{
    if (!m->found)
        m->found = malloc(m->t->tree.count + 1);
    /* one match for each row, not for each of the many nodes that it has */
    size_t rows = m->t->rows.count + m->t->thread_count;
    _cleanup_free_ uint8_t *known = calloc(rows + 1, 1);
    if (!m->found || !known)
        return E_NOMEM;
    m->found_count = 0;
    for (uint32_t i = 0; i < m->t->tree.count; i++) {
        const struct analysis_row *label = analysis_calltree_label(m->t, i);
        m->found[i] = false;
        if (!label)
            continue;
        uint8_t *answer = &known[nodes(m)[i].row];
        if (!*answer)
            *answer = analysis_match_code(match, label->name, label->file, label->line, &m->scratch)
                          ? 2
                          : 1;
        m->found[i] = *answer == 2;
        m->found_count += m->found[i];
    }
    return buf_error(&m->scratch);
}

int tree_model_next(struct tree_model *m, bool backwards)
{
    if (!m->found || !m->found_count)
        return 0;
    int r = make_order(m);
    if (r < 0)
        return r;
    uint32_t node = tree_model_node(m);
    size_t count = m->order.len, at = 0;
    while (at < count && m->order.data[at] != node)
        at++;
    for (size_t i = 1; i <= count; i++) {
        uint32_t other = m->order.data[(at + (backwards ? count - i : i)) % count];
        if (m->found[other])
            return tree_model_show(m, other);
    }
    return 0;
}

/* --- another tree of the same recording --- */

static bool is_same(const struct analysis_row *a, const struct analysis_row *b)
{
    return a && b && a->line == b->line && a->tid == b->tid &&
           compare_texts(a->name, b->name) == 0 && compare_texts(a->file, b->file) == 0;
}

/* The child of `parent` here that is what `node` is there; 0: none. */
static uint32_t counterpart(const struct tree_model *m, uint32_t parent,
                            const struct tree_model *other, uint32_t node)
{
    const struct analysis_row *label = analysis_calltree_label(other->t, node);
    for (uint32_t c = nodes(m)[parent].first_child; c; c = nodes(m)[c].next)
        if (is_same(analysis_calltree_label(m->t, c), label))
            return c;
    return 0;
}

int tree_model_follow(struct tree_model *m, const struct tree_model *other)
{
    _cleanup_free_ uint32_t *twin = calloc(other->t->tree.count + 1, sizeof *twin);
    if (!twin)
        return E_NOMEM;
    m->sort = other->sort;
    m->order.len = 0;
    uint32_t here = tree_model_node(other), node = 0;
    for (size_t i = 0; i < other->lines.len; i++) {
        uint32_t at = other->lines.data[i].node, parent = nodes(other)[at].parent;
        bool matters = other->open[at] || at == here; /* the others need no search */
        if (!matters || (parent && !twin[parent]))
            continue;
        twin[at] = counterpart(m, twin[parent], other, at);
        if (twin[at] && tree_model_can_open(m, twin[at]))
            m->open[twin[at]] |= other->open[at];
    }
    for (uint32_t up = here; up && !node; up = nodes(other)[up].parent)
        node = twin[up];
    m->open[0] = true;
    return node ? tree_model_show(m, node) : remake(m, tree_model_node(m));
}

/* --- life --- */

int tree_model_init(struct tree_model *m, const struct analysis_calltree *t)
{
    *m = (struct tree_model){.t = t, .height = 1};
    buf_init(&m->scratch, ANALYSIS_MATCH_BYTES_MAX);
    m->open = calloc(t->tree.count + 1, 1);
    if (!m->open)
        return E_NOMEM;
    m->open[0] = true;
    uint32_t node = t->tree.count ? heaviest_child(m, 0) : 0;
    for (; node && nodes(m)[node].total.weight >= t->tree.total.weight / 2;
         node = heaviest_child(m, node))
        m->open[node] = tree_model_can_open(m, node);
    return make_lines(m);
}

void tree_model_release(struct tree_model *m)
{
    free(m->open);
    free(m->found);
    vec_release(&m->lines);
    vec_release(&m->order);
    vec_release(&m->todo);
    vec_release(&m->children);
    buf_release(&m->scratch);
    *m = (struct tree_model){0};
}
