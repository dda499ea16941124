/* The graph taken apart into what is connected, each part laid out, and all put side by side. */
#include "draw/layout.h"

#include "base/err.h"
#include "base/progress.h"
#include "draw/internal.h"

#include <math.h>

static const double PART_GAP = 34;
static const double ASPECT = 1.6; /* of the whole, where there are many small parts */

struct part {
    uint32_t first_box; /* the lowest number of its boxes */
    uint32_t first_point, first_patch;
    uint32_t point_count, patch_count;
    double left, top, width, height;
    uint32_t layer_count;
};

struct making {
    const struct draw_graph *g;
    uint32_t *part_of; /* by box */
    uint32_t *item_of; /* by box: its item in the part's sketch */
    uint32_t group_count;
    VEC(struct part) parts;
    struct sketch_output out;
};

void sketch_release(struct sketch *s)
{
    vec_release(&s->items);
    vec_release(&s->arrows);
    vec_release(&s->links);
    vec_release(&s->loops);
    free(s->layer_at);
    free(s->order);
    free(s->up_at);
    free(s->up);
    free(s->down_at);
    free(s->down);
    free(s->top);
    free(s->bottom);
    free(s->group_size);
}

static int index_one_side(const struct sketch *s, bool by_upper, uint32_t **ret_at, uint32_t **ret)
{
    uint32_t *at = *ret_at = calloc(s->items.len + 2, sizeof *at);
    uint32_t *list = *ret = malloc((s->links.len + 1) * sizeof *list);
    if (!at || !list)
        return E_NOMEM;
    uint32_t *next = at + 1;
    for (size_t i = 0; i < s->links.len; i++)
        next[(by_upper ? s->links.data[i].upper : s->links.data[i].lower) + 1]++;
    for (size_t i = 1; i <= s->items.len; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < s->links.len; i++)
        list[next[by_upper ? s->links.data[i].upper : s->links.data[i].lower]++] = (uint32_t)i;
    return 0;
}

int sketch_index_links(struct sketch *s)
{
    int r = index_one_side(s, true, &s->down_at, &s->down);
    return r < 0 ? r : index_one_side(s, false, &s->up_at, &s->up);
}

/* --- parts --- */

static uint32_t find_root(uint32_t *parent, uint32_t box)
{
    while (parent[box] != box)
        box = parent[box] = parent[parent[box]];
    return box;
}

/* The root of a part is its first box, so parts are numbered in the order of these. */
static int find_parts(struct making *m)
{
    size_t n = m->g->box_count;
    _cleanup_free_ uint32_t *parent = malloc((n + 1) * sizeof *parent);
    if (!parent)
        return E_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        parent[i] = i;
    for (size_t i = 0; i < m->g->arrow_count; i++) {
        uint32_t a = find_root(parent, m->g->arrow[i].from);
        uint32_t b = find_root(parent, m->g->arrow[i].to);
        parent[a > b ? a : b] = a < b ? a : b;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t root = find_root(parent, i);
        if (root == i) {
            struct part *p = vec_push(&m->parts);
            if (!p)
                return E_NOMEM;
            p->first_box = i;
            m->part_of[i] = (uint32_t)m->parts.len - 1;
        } else {
            m->part_of[i] = m->part_of[root];
        }
    }
    return 0;
}

static int add_boxes(struct making *m, struct sketch *s, const uint32_t *boxes, size_t count)
{
    s->group_count = m->group_count;
    s->group_size = calloc((size_t)m->group_count + 1, sizeof *s->group_size);
    if (!s->group_size)
        return E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct draw_box *box = &m->g->box[boxes[i]];
        struct sketch_item *item = vec_push(&s->items);
        if (!item)
            return E_NOMEM;
        item->box = boxes[i];
        item->group = box->group;
        item->left = item->right = box->width / 2;
        m->item_of[boxes[i]] = (uint32_t)i;
        if (box->group != DRAW_NONE)
            s->group_size[box->group]++;
    }
    s->box_count = count;
    return 0;
}

static int add_arrows(const struct making *m, struct sketch *s, const uint32_t *arrows,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct draw_arrow *a = &m->g->arrow[arrows[i]];
        if (a->from == a->to) {
            struct sketch_loop *loop = vec_push(&s->loops);
            if (!loop)
                return E_NOMEM;
            *loop = (struct sketch_loop){arrows[i], m->item_of[a->from]};
            s->items.data[loop->item].right = m->g->box[a->from].width / 2 + SKETCH_LOOP;
            continue;
        }
        struct sketch_arrow *arrow = vec_push(&s->arrows);
        if (!arrow)
            return E_NOMEM;
        *arrow = (struct sketch_arrow){
            .arrow = arrows[i], .upper = m->item_of[a->from], .lower = m->item_of[a->to]};
    }
    return 0;
}

static void grow(struct part *p, double x0, double y0, double x1, double y1)
{
    double right = fmax(p->left + p->width, x1), bottom = fmax(p->top + p->height, y1);
    p->left = fmin(p->left, x0);
    p->top = fmin(p->top, y0);
    p->width = right - p->left;
    p->height = bottom - p->top;
}

/* What the part covers, patches and ways included. */
static void measure_part(const struct making *m, const struct sketch *s, struct part *p)
{
    const struct sketch_item *first = &s->items.data[0];
    p->left = first->x;
    p->top = s->top[first->layer];
    for (size_t i = 0; i < s->items.len; i++) {
        const struct sketch_item *item = &s->items.data[i];
        grow(p, item->x - item->left, s->top[item->layer], item->x + item->right,
             s->bottom[item->layer]);
    }
    for (size_t i = p->first_patch; i < m->out.patches.len; i++) {
        const struct draw_patch *patch = &m->out.patches.data[i];
        grow(p, patch->left, patch->top, patch->right, patch->bottom);
    }
    p->point_count = (uint32_t)m->out.points.len - p->first_point;
    p->patch_count = (uint32_t)m->out.patches.len - p->first_patch;
    p->layer_count = s->layer_count;
}

static int lay_part(struct making *m, struct part *p, const uint32_t *boxes, size_t box_count,
                    const uint32_t *arrows, size_t arrow_count)
{
    struct sketch s = {.graph = m->g};
    p->first_point = (uint32_t)m->out.points.len;
    p->first_patch = (uint32_t)m->out.patches.len;
    int r = add_boxes(m, &s, boxes, box_count);
    r = r < 0 ? r : add_arrows(m, &s, arrows, arrow_count);
    r = r < 0 ? r : sketch_make_layers(&s);
    r = r < 0 ? r : sketch_make_order(&s);
    r = r < 0 ? r : sketch_make_places(&s);
    r = r < 0 ? r : sketch_make_routes(&s, &m->out);
    r = r < 0 ? r : sketch_make_patches(&s, &m->out);
    if (r == 0)
        measure_part(m, &s, p);
    sketch_release(&s);
    return r;
}

/* Numbers sorted by the part they belong to; at[i] is where part i begins. */
static int sort_by_part(const struct making *m, bool arrows, uint32_t **ret_at, uint32_t **ret)
{
    size_t n = arrows ? m->g->arrow_count : m->g->box_count;
    uint32_t *at = *ret_at = calloc(m->parts.len + 3, sizeof *at);
    uint32_t *list = *ret = calloc(n + 1, sizeof *list);
    if (!at || !list)
        return E_NOMEM;
    uint32_t *next = at + 1;
    for (size_t i = 0; i < n; i++)
        next[m->part_of[arrows ? m->g->arrow[i].from : i] + 1]++;
    for (size_t i = 1; i <= m->parts.len; i++)
        next[i] += next[i - 1];
    for (uint32_t i = 0; i < n; i++)
        list[next[m->part_of[arrows ? m->g->arrow[i].from : i]]++] = i;
    return 0;
}

static int lay_parts(struct making *m)
{
    _cleanup_free_ uint32_t *box_at = NULL, *boxes = NULL, *arrow_at = NULL, *arrows = NULL;
    int r = sort_by_part(m, false, &box_at, &boxes);
    r = r < 0 ? r : sort_by_part(m, true, &arrow_at, &arrows);
    for (size_t i = 0; r == 0 && i < m->parts.len; i++)
        r = lay_part(m, &m->parts.data[i], boxes + box_at[i], box_at[i + 1] - box_at[i],
                     arrows + arrow_at[i], arrow_at[i + 1] - arrow_at[i]);
    return r;
}

/* --- side by side --- */

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    bool x_first = x->first_box == 0, y_first = y->first_box == 0;
    if (x_first != y_first)
        return x_first ? -1 : 1;
    if (x->height != y->height)
        return x->height > y->height ? -1 : 1;
    return x->first_box < y->first_box ? -1 : x->first_box > y->first_box;
}

/* By shelves: the part of the most important box, then the highest ones. Afterwards a part's left and top are how far it moves. */
static void shelve(struct making *m, struct draw_layout *l)
{
    double area = 0, widest = 0, x = 0, y = 0, shelf = 0;
    for (size_t i = 0; i < m->parts.len; i++) {
        const struct part *p = &m->parts.data[i];
        area += (p->width + PART_GAP) * (p->height + PART_GAP);
        widest = fmax(widest, p->width);
    }
    double limit = fmax(widest, sqrt(ASPECT * area));
    for (size_t i = 0; i < m->parts.len; i++) {
        struct part *p = &m->parts.data[i];
        if (x > 0 && x + p->width > limit) {
            y += shelf + PART_GAP;
            x = shelf = 0;
        }
        l->width = fmax(l->width, x + p->width);
        l->height = fmax(l->height, y + p->height);
        p->left = x - p->left;
        p->top = y - p->top;
        x += p->width + PART_GAP;
        shelf = fmax(shelf, p->height);
    }
}

static void move_parts(struct making *m, const uint32_t *rank)
{
    for (size_t i = 0; i < m->parts.len; i++) {
        const struct part *p = &m->parts.data[i];
        for (uint32_t k = p->first_point; k < p->first_point + p->point_count; k++) {
            m->out.points.data[k].x += p->left;
            m->out.points.data[k].y += p->top;
        }
        for (uint32_t k = p->first_patch; k < p->first_patch + p->patch_count; k++) {
            struct draw_patch *patch = &m->out.patches.data[k];
            patch->left += p->left;
            patch->right += p->left;
            patch->top += p->top;
            patch->bottom += p->top;
        }
    }
    for (size_t i = 0; i < m->g->box_count; i++) {
        const struct part *p = &m->parts.data[rank[m->part_of[i]]];
        m->out.box[i].x += p->left;
        m->out.box[i].y += p->top;
    }
}

static int put_together(struct making *m, struct draw_layout *l)
{
    _cleanup_free_ uint32_t *rank = malloc((m->parts.len + 1) * sizeof *rank);
    if (!rank)
        return E_NOMEM;
    if (m->parts.len)
        qsort(m->parts.data, m->parts.len, sizeof *m->parts.data, compare_parts);
    for (uint32_t i = 0; i < m->parts.len; i++) {
        rank[m->part_of[m->parts.data[i].first_box]] = i;
        if (m->parts.data[i].layer_count > l->layer_count)
            l->layer_count = m->parts.data[i].layer_count;
    }
    shelve(m, l);
    move_parts(m, rank);
    l->box = m->out.box;
    l->route = m->out.route;
    l->point = m->out.points.data;
    l->point_count = m->out.points.len;
    l->patch = m->out.patches.data;
    l->patch_count = m->out.patches.len;
    return 0;
}

static int check(const struct draw_graph *g, uint32_t *ret_groups)
{
    if (g->box_count > DRAW_BOXES_MAX || g->arrow_count > DRAW_ARROWS_MAX)
        return E_LIMIT;
    for (size_t i = 0; i < g->arrow_count; i++)
        if (g->arrow[i].from >= g->box_count || g->arrow[i].to >= g->box_count)
            return E_INVALID;
    *ret_groups = 0;
    for (size_t i = 0; i < g->box_count; i++) {
        uint32_t group = g->box[i].group;
        if (group != DRAW_NONE && group >= g->box_count)
            return E_INVALID;
        if (group != DRAW_NONE && group >= *ret_groups)
            *ret_groups = group + 1;
    }
    return 0;
}

int draw_layout_init(const struct draw_graph *graph, struct draw_layout *ret)
{
    struct making m = {.g = graph};
    struct draw_layout l = {0};
    progress_begin("laying out the graph", 0);
    int r = check(graph, &m.group_count);
    if (r < 0)
        return r;
    m.part_of = calloc(graph->box_count + 1, sizeof *m.part_of);
    m.item_of = calloc(graph->box_count + 1, sizeof *m.item_of);
    m.out.box = calloc(graph->box_count + 1, sizeof *m.out.box);
    m.out.route = calloc(graph->arrow_count + 1, sizeof *m.out.route);
    r = m.part_of && m.item_of && m.out.box && m.out.route ? find_parts(&m) : E_NOMEM;
    r = r < 0 ? r : lay_parts(&m);
    r = r < 0 ? r : put_together(&m, &l);
    free(m.part_of);
    free(m.item_of);
    vec_release(&m.parts);
    if (r < 0) {
        free(m.out.box);
        free(m.out.route);
        vec_release(&m.out.points);
        vec_release(&m.out.patches);
        return r;
    }
    *ret = l;
    return 0;
}

void draw_layout_release(struct draw_layout *l)
{
    free(l->box);
    free(l->route);
    free(l->point);
    free(l->patch);
    *l = (struct draw_layout){0};
}
