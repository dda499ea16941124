/* The first steps: which arrows point up, which layer a box is in, and where long arrows bend.
 *
 * Arrows that close a circle are found by walking down from the boxes that nobody points to, the
 * heaviest arrow first: in a call graph the ones turned round are then the recursive calls. */
#include "base/err.h"
#include "draw/internal.h"

#include <math.h>

enum {
    TIGHTEN_ROUNDS = 60,
    BENDS_MAX = 40000,  /* arrows that would need more go straight */
    LAYER_WIDTH = 2400, /* a layer wider than this hands leaves down to the next */
};

/* Arrows by their ends, in both directions. */
struct arcs {
    uint32_t *out_at, *out, *in_at, *in;
};

static void arcs_release(struct arcs *a)
{
    free(a->out_at);
    free(a->out);
    free(a->in_at);
    free(a->in);
}

/* Counts, then sums, then places: `at` gets count + 2 places, list one for each arrow. */
static int index_ends(const struct sketch *s, bool by_upper, uint32_t **ret_at, uint32_t **ret)
{
    uint32_t *at = calloc(s->box_count + 2, sizeof *at);
    uint32_t *list = malloc((s->arrows.len + 1) * sizeof *list);
    *ret_at = at;
    *ret = list;
    if (!at || !list)
        return E_NOMEM;
    uint32_t *next = at + 1;
    for (size_t i = 0; i < s->arrows.len; i++) {
        const struct sketch_arrow *a = &s->arrows.data[i];
        next[(by_upper ? a->upper : a->lower) + 1]++;
    }
    for (size_t i = 1; i <= s->box_count; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < s->arrows.len; i++) {
        const struct sketch_arrow *a = &s->arrows.data[i];
        list[next[by_upper ? a->upper : a->lower]++] = (uint32_t)i;
    }
    return 0;
}

static int arcs_init(const struct sketch *s, struct arcs *a)
{
    int r = index_ends(s, true, &a->out_at, &a->out);
    return r < 0 ? r : index_ends(s, false, &a->in_at, &a->in);
}

/* --- circles --- */

enum { NEW, OPEN, DONE };

struct walk {
    uint8_t *state;
    uint32_t *path, *next; /* the boxes that are open, and the next arrow of each */
};

/* Depth first from `root`; an arrow to a box that is still open closes a circle. */
static void walk_from(struct sketch *s, const struct arcs *a, struct walk *w, uint32_t root)
{
    size_t depth = 1;
    w->path[0] = root;
    w->next[0] = a->out_at[root];
    w->state[root] = OPEN;
    while (depth) {
        uint32_t box = w->path[depth - 1];
        if (w->next[depth - 1] == a->out_at[box + 1]) {
            w->state[box] = DONE;
            depth--;
            continue;
        }
        struct sketch_arrow *arrow = &s->arrows.data[a->out[w->next[depth - 1]++]];
        uint32_t to = arrow->lower;
        arrow->back = w->state[to] == OPEN;
        if (w->state[to] != NEW)
            continue;
        w->state[to] = OPEN;
        w->path[depth] = to;
        w->next[depth++] = a->out_at[to];
    }
}

static int turn_back_arrows(struct sketch *s)
{
    struct arcs a = {0};
    struct walk w = {
        calloc(s->box_count + 1, 1),
        malloc((s->box_count + 1) * sizeof *w.path),
        malloc((s->box_count + 1) * sizeof *w.next),
    };
    int r = w.state && w.path && w.next ? arcs_init(s, &a) : E_NOMEM;
    for (uint32_t i = 0; r == 0 && i < s->box_count; i++)
        if (a.in_at[i] == a.in_at[i + 1])
            walk_from(s, &a, &w, i);
    for (uint32_t i = 0; r == 0 && i < s->box_count; i++)
        if (w.state[i] == NEW)
            walk_from(s, &a, &w, i);
    for (size_t i = 0; r == 0 && i < s->arrows.len; i++) {
        struct sketch_arrow *arrow = &s->arrows.data[i];
        if (arrow->back) {
            uint32_t upper = arrow->lower;
            arrow->lower = arrow->upper;
            arrow->upper = upper;
        }
    }
    arcs_release(&a);
    free(w.state);
    free(w.path);
    free(w.next);
    return r;
}

/* --- layers --- */

/* Boxes in an order in which no arrow points to an earlier one. */
static int sort_boxes(const struct sketch *s, const struct arcs *a, uint32_t *order)
{
    _cleanup_free_ uint32_t *left = malloc((s->box_count + 1) * sizeof *left);
    if (!left)
        return E_NOMEM;
    size_t count = 0;
    for (uint32_t i = 0; i < s->box_count; i++) {
        left[i] = a->in_at[i + 1] - a->in_at[i];
        if (!left[i])
            order[count++] = i;
    }
    for (size_t done = 0; done < count; done++)
        for (uint32_t k = a->out_at[order[done]]; k < a->out_at[order[done] + 1]; k++) {
            uint32_t to = s->arrows.data[a->out[k]].lower;
            if (--left[to] == 0)
                order[count++] = to;
        }
    return 0;
}

static void layers_by_longest_way(struct sketch *s, const struct arcs *a, const uint32_t *order)
{
    for (size_t i = 0; i < s->box_count; i++) {
        uint32_t layer = s->items.data[order[i]].layer;
        for (uint32_t k = a->out_at[order[i]]; k < a->out_at[order[i] + 1]; k++) {
            struct sketch_item *to = &s->items.data[s->arrows.data[a->out[k]].lower];
            if (to->layer <= layer)
                to->layer = layer + 1;
        }
    }
}

static double weight_of(const struct sketch *s, const struct sketch_arrow *arrow)
{
    return s->graph->arrow[arrow->arrow].weight;
}

/* Between its neighbours a box may move freely; the length of all arrows, weighed, then changes
 * evenly, so it goes to one end: down if more weight hangs below it than above. */
static bool tighten_box(struct sketch *s, const struct arcs *a, uint32_t box)
{
    uint32_t lowest = 0, highest = UINT32_MAX;
    double pull = 0;
    for (uint32_t k = a->in_at[box]; k < a->in_at[box + 1]; k++) {
        const struct sketch_arrow *arrow = &s->arrows.data[a->in[k]];
        uint32_t layer = s->items.data[arrow->upper].layer + 1;
        lowest = layer > lowest ? layer : lowest;
        pull -= weight_of(s, arrow);
    }
    for (uint32_t k = a->out_at[box]; k < a->out_at[box + 1]; k++) {
        const struct sketch_arrow *arrow = &s->arrows.data[a->out[k]];
        uint32_t layer = s->items.data[arrow->lower].layer - 1;
        highest = layer < highest ? layer : highest;
        pull += weight_of(s, arrow);
    }
    uint32_t *layer = &s->items.data[box].layer;
    uint32_t want = highest == UINT32_MAX ? lowest : pull > 0 ? highest : lowest;
    if (want == *layer)
        return false;
    *layer = want;
    return true;
}

static void tighten(struct sketch *s, const struct arcs *a, const uint32_t *order)
{
    for (int round = 0; round < TIGHTEN_ROUNDS; round++) {
        bool moved = false;
        for (size_t i = s->box_count; i-- > 0;)
            moved |= tighten_box(s, a, order[i]);
        if (!moved)
            break;
    }
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < s->box_count; i++)
        least = s->items.data[i].layer < least ? s->items.data[i].layer : least;
    for (size_t i = 0; i < s->box_count; i++)
        s->items.data[i].layer -= least;
}

static double room_of(const struct sketch *s, size_t box)
{
    return s->graph->box[s->items.data[box].box].width + SKETCH_BOX_GAP;
}

/* Spreads the leaves of one layer over as many as they need, in turns, so that the arrows to the
 * lower ones pass between the upper ones. */
static void spread_leaves(struct sketch *s, const struct arcs *a, uint32_t layer, double limit,
                          uint32_t last_layer)
{
    double leaves = 0, others = 0;
    for (size_t i = 0; i < s->box_count; i++)
        if (s->items.data[i].layer == layer)
            *(a->out_at[i] == a->out_at[i + 1] ? &leaves : &others) += room_of(s, i);
    if (leaves + others <= limit || leaves <= 0)
        return;
    uint32_t rows = (uint32_t)ceil(leaves / fmax(limit - others, limit / 3)), turn = 0;
    if (layer + rows > last_layer)
        return;
    for (size_t i = 0; i < s->box_count; i++) {
        struct sketch_item *item = &s->items.data[i];
        if (item->layer == layer && a->out_at[i] == a->out_at[i + 1])
            item->layer += turn++ % rows;
    }
}

/* A function that calls a hundred others would make a layer nobody can look at: those that call
 * nothing themselves may go further down. */
static void narrow_layers(struct sketch *s, const struct arcs *a)
{
    double area = 0;
    uint32_t layers = 0;
    for (size_t i = 0; i < s->box_count; i++) {
        area += room_of(s, i) * (s->graph->box[s->items.data[i].box].height + SKETCH_LAYER_GAP);
        layers = s->items.data[i].layer >= layers ? s->items.data[i].layer + 1 : layers;
    }
    double limit = fmax(LAYER_WIDTH, 1.7 * sqrt(area));
    for (uint32_t layer = 0; layer < layers; layer++) /* what is spread is below the limit */
        spread_leaves(s, a, layer, limit, 2 * layers + (uint32_t)sqrt((double)s->box_count));
}

/* --- bends --- */

static int add_link(struct sketch *s, uint32_t upper, uint32_t lower, double weight)
{
    struct sketch_link *link = vec_push(&s->links);
    if (!link)
        return E_NOMEM;
    *link = (struct sketch_link){upper, lower, weight};
    return 0;
}

static int cut_arrow(struct sketch *s, struct sketch_arrow *arrow)
{
    uint32_t from = s->items.data[arrow->upper].layer, to = s->items.data[arrow->lower].layer;
    double weight = weight_of(s, arrow);
    uint32_t before = arrow->upper;
    arrow->first_bend = (uint32_t)s->items.len;
    if (s->items.len - s->box_count + (to - from) > BENDS_MAX)
        return 0;
    for (uint32_t layer = from + 1; layer < to; layer++) {
        struct sketch_item *bend = vec_push(&s->items);
        if (!bend)
            return E_NOMEM;
        *bend = (struct sketch_item){.box = DRAW_NONE, .group = DRAW_NONE, .layer = layer};
        int r = add_link(s, before, (uint32_t)s->items.len - 1, weight);
        if (r < 0)
            return r;
        before = (uint32_t)s->items.len - 1;
        arrow->bend_count++;
    }
    return add_link(s, before, arrow->lower, weight);
}

static int fill_layers(struct sketch *s)
{
    for (size_t i = 0; i < s->items.len; i++)
        if (s->items.data[i].layer >= s->layer_count)
            s->layer_count = s->items.data[i].layer + 1;
    s->layer_at = calloc((size_t)s->layer_count + 2, sizeof *s->layer_at);
    s->order = malloc((s->items.len + 1) * sizeof *s->order);
    if (!s->layer_at || !s->order)
        return E_NOMEM;
    uint32_t *next = s->layer_at + 1;
    for (size_t i = 0; i < s->items.len; i++)
        next[s->items.data[i].layer + 1]++;
    for (uint32_t i = 1; i <= s->layer_count; i++)
        next[i] += next[i - 1];
    for (uint32_t i = 0; i < s->items.len; i++) {
        struct sketch_item *item = &s->items.data[i];
        item->at = next[item->layer] - s->layer_at[item->layer];
        s->order[next[item->layer]++] = i;
    }
    return 0;
}

int sketch_make_layers(struct sketch *s)
{
    int r = turn_back_arrows(s);
    struct arcs a = {0};
    _cleanup_free_ uint32_t *order = calloc(s->box_count + 1, sizeof *order);
    if (r == 0)
        r = order ? arcs_init(s, &a) : E_NOMEM;
    if (r == 0)
        r = sort_boxes(s, &a, order);
    if (r == 0) {
        layers_by_longest_way(s, &a, order);
        tighten(s, &a, order);
        narrow_layers(s, &a);
    }
    arcs_release(&a);
    for (size_t i = 0; r == 0 && i < s->arrows.len; i++)
        r = cut_arrow(s, &s->arrows.data[i]);
    if (r == 0)
        r = fill_layers(s);
    return r < 0 ? r : sketch_index_links(s);
}
