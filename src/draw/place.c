/* Coordinates. Within a layer the order is given and so is the least distance between neighbours;
 * each item wants to stand where its neighbours in the other layers do. The places that come
 * nearest to all the wishes (least squares) are found exactly, by isotonic regression: where two
 * wishes collide, the two become a block that stands at the mean of what its members want. Sweeps
 * down and up let the layers agree. Bends pull hard at each other: long arrows become straight. */
#include "base/err.h"
#include "draw/internal.h"

#include <math.h>

enum { ONE_SIDED_SWEEPS = 8, BOTH_SIDED_SWEEPS = 14 };

/* How hard a link pulls, by how many of its ends are bends; groups pull a little, too. */
static const double PULL[3] = {1, 2, 8};
static const double PULL_GROUP = 0.6, PULL_REST = 0.02;
/* Layers move apart where arrows run far to the side, lest they lie flat. */
static const double GAP_PER_WAY = 0.07, GAP_MORE_MAX = 90;

struct block {
    double wish, weight;
    uint32_t first;
};

struct placing {
    struct sketch *s;
    struct block *block;
    double *offset;      /* least distance from the layer's first item */
    double *sum, *count; /* by group: of its members in the layers around */
    double heaviest;
};

/* Patches reach into the gap, so their edges need room of their own. */
static double gap_between(const struct sketch *s, const struct sketch_item *a,
                          const struct sketch_item *b)
{
    bool is_bend = a->box == DRAW_NONE || b->box == DRAW_NONE;
    double gap = is_bend ? SKETCH_BEND_GAP : SKETCH_BOX_GAP;
    if (a->group != b->group || a->group == DRAW_NONE)
        gap += SKETCH_PATCH_PAD * (sketch_has_patch(s, a) + sketch_has_patch(s, b));
    return a->right + gap + b->left;
}

/* --- one layer --- */

static void pull_to(double *sum, double *weight, double x, double pull)
{
    *sum += pull * x;
    *weight += pull;
}

static void pull_links(const struct placing *p, uint32_t item, bool above, double *sum,
                       double *weight)
{
    const struct sketch *s = p->s;
    const uint32_t *at = above ? s->up_at : s->down_at, *list = above ? s->up : s->down;
    for (uint32_t k = at[item]; k < at[item + 1]; k++) {
        const struct sketch_link *link = &s->links.data[list[k]];
        const struct sketch_item *a = &s->items.data[link->upper], *b = &s->items.data[link->lower];
        int bends = (a->box == DRAW_NONE) + (b->box == DRAW_NONE);
        double heavy = 0.25 + sqrt(link->weight / p->heaviest);
        pull_to(sum, weight, above ? a->x : b->x, PULL[bends] * heavy);
    }
}

static void note_groups(const struct placing *p, uint32_t layer, bool clear)
{
    const struct sketch *s = p->s;
    for (uint32_t k = s->layer_at[layer]; k < s->layer_at[layer + 1]; k++) {
        const struct sketch_item *item = &s->items.data[s->order[k]];
        if (item->group == DRAW_NONE)
            continue;
        p->sum[item->group] = clear ? 0 : p->sum[item->group] + item->x;
        p->count[item->group] = clear ? 0 : p->count[item->group] + 1;
    }
}

static void gather_groups(const struct placing *p, uint32_t layer, bool above, bool below)
{
    above = above && layer > 0;
    below = below && layer + 1 < p->s->layer_count;
    note_groups(p, layer, true);
    for (int pass = 0; pass < 2; pass++) {
        if (above)
            note_groups(p, layer - 1, pass == 0);
        if (below)
            note_groups(p, layer + 1, pass == 0);
    }
}

static void pull_item(const struct placing *p, uint32_t item, bool above, bool below, double *ret_x,
                      double *ret_weight)
{
    const struct sketch_item *it = &p->s->items.data[item];
    double sum = 0, weight = 0;
    if (above)
        pull_links(p, item, true, &sum, &weight);
    if (below)
        pull_links(p, item, false, &sum, &weight);
    if (it->group != DRAW_NONE && p->count[it->group] > 0)
        pull_to(&sum, &weight, p->sum[it->group] / p->count[it->group], PULL_GROUP);
    if (weight <= 0)
        pull_to(&sum, &weight, it->x, PULL_REST);
    *ret_x = sum / weight;
    *ret_weight = weight;
}

/* Pools neighbours whose wishes cross, from left to right; `block` is a stack of pools. */
static void place_layer(struct placing *p, uint32_t layer, bool above, bool below)
{
    struct sketch *s = p->s;
    const uint32_t *items = s->order + s->layer_at[layer];
    uint32_t n = s->layer_at[layer + 1] - s->layer_at[layer];
    size_t blocks = 0;
    gather_groups(p, layer, above, below);
    for (uint32_t i = 0; i < n; i++) {
        struct block b = {.first = i};
        p->offset[i] = i ? p->offset[i - 1] + gap_between(s, &s->items.data[items[i - 1]],
                                                          &s->items.data[items[i]])
                         : 0;
        pull_item(p, items[i], above, below, &b.wish, &b.weight);
        b.wish -= p->offset[i];
        while (blocks && p->block[blocks - 1].wish >= b.wish) {
            const struct block *left = &p->block[--blocks];
            double weight = left->weight + b.weight;
            b.wish = (left->wish * left->weight + b.wish * b.weight) / weight;
            b.weight = weight;
            b.first = left->first;
        }
        p->block[blocks++] = b;
    }
    for (size_t k = 0; k < blocks; k++) {
        uint32_t end = k + 1 < blocks ? p->block[k + 1].first : n;
        for (uint32_t i = p->block[k].first; i < end; i++)
            s->items.data[items[i]].x = p->block[k].wish + p->offset[i];
    }
}

/* --- all layers --- */

static void sweep(struct placing *p, bool down, bool both)
{
    uint32_t n = p->s->layer_count;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t layer = down ? i : n - 1 - i;
        place_layer(p, layer, down || both, !down || both);
    }
}

/* Side by side and centred: somewhere to start from. */
static void pack_layers(struct sketch *s)
{
    for (uint32_t layer = 0; layer < s->layer_count; layer++) {
        double x = 0;
        uint32_t first = s->layer_at[layer], last = s->layer_at[layer + 1];
        for (uint32_t k = first; k < last; k++) {
            struct sketch_item *item = &s->items.data[s->order[k]];
            if (k > first)
                x += gap_between(s, &s->items.data[s->order[k - 1]], item);
            item->x = x;
        }
        for (uint32_t k = first; k < last; k++)
            s->items.data[s->order[k]].x -= x / 2;
    }
}

static bool begins_patch(const struct sketch *s, uint32_t layer)
{
    for (uint32_t k = s->layer_at[layer]; k < s->layer_at[layer + 1]; k++)
        if (sketch_has_patch(s, &s->items.data[s->order[k]]))
            return true;
    return false;
}

static int stack_layers(struct sketch *s)
{
    s->top = calloc((size_t)s->layer_count + 1, sizeof *s->top);
    s->bottom = calloc((size_t)s->layer_count + 1, sizeof *s->bottom);
    _cleanup_free_ double *way = calloc((size_t)s->layer_count + 1, sizeof *way);
    if (!s->top || !s->bottom || !way)
        return E_NOMEM;
    for (size_t i = 0; i < s->links.len; i++) {
        const struct sketch_item *a = &s->items.data[s->links.data[i].upper];
        const struct sketch_item *b = &s->items.data[s->links.data[i].lower];
        way[b->layer] = fmax(way[b->layer], fabs(a->x - b->x));
    }
    double y = 0;
    for (uint32_t layer = 0; layer < s->layer_count; layer++) {
        double height = 0;
        for (uint32_t k = s->layer_at[layer]; k < s->layer_at[layer + 1]; k++) {
            const struct sketch_item *item = &s->items.data[s->order[k]];
            if (item->box != DRAW_NONE)
                height = fmax(height, s->graph->box[item->box].height);
        }
        if (layer)
            y += SKETCH_LAYER_GAP + fmin(GAP_MORE_MAX, GAP_PER_WAY * way[layer]);
        if (begins_patch(s, layer))
            y += s->graph->patch_head + SKETCH_PATCH_PAD;
        s->top[layer] = y;
        y += height;
        s->bottom[layer] = y;
    }
    return 0;
}

int sketch_make_places(struct sketch *s)
{
    struct placing p = {.s = s, .heaviest = 1e-300};
    p.block = malloc((s->items.len + 1) * sizeof *p.block);
    p.offset = malloc((s->items.len + 1) * sizeof *p.offset);
    p.sum = calloc((size_t)s->group_count + 1, sizeof *p.sum);
    p.count = calloc((size_t)s->group_count + 1, sizeof *p.count);
    int r = p.block && p.offset && p.sum && p.count ? 0 : E_NOMEM;
    if (r == 0) {
        for (size_t i = 0; i < s->links.len; i++)
            p.heaviest = fmax(p.heaviest, s->links.data[i].weight);
        pack_layers(s);
        for (int i = 0; i < ONE_SIDED_SWEEPS; i++)
            sweep(&p, i % 2 == 0, false);
        for (int i = 0; i < BOTH_SIDED_SWEEPS; i++)
            sweep(&p, i % 2 == 0, true);
        r = stack_layers(s);
    }
    free(p.block);
    free(p.offset);
    free(p.sum);
    free(p.count);
    return r;
}
