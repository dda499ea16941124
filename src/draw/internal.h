/* One connected part of a graph on its way through the steps of the layout:
 *
 *     layers.c   turns arrows that close a circle, gives every box a layer, cuts long arrows into
 *                links from layer to layer with bends between
 *     order.c    finds an order within the layers with few crossings
 *     place.c    finds the coordinates
 *     route.c    draws the arrows' ways and the patches
 *     layout.c   takes the graph apart, calls these, and puts the parts side by side
 *
 * Inside draw only (and for unit tests). */
#ifndef PYROMETER_DRAW_INTERNAL_H
#define PYROMETER_DRAW_INTERNAL_H

#include "base/vec.h"
#include "draw/layout.h"

/* All distances are in the unit of the boxes' sizes: pixels at scale 1. */
enum {
    SKETCH_BOX_GAP = 22,   /* between boxes of a layer */
    SKETCH_BEND_GAP = 12,  /* between bends, and between a bend and a box */
    SKETCH_PATCH_PAD = 9,  /* a patch reaches out around its boxes by this */
    SKETCH_LAYER_GAP = 44, /* between layers, at least */
    SKETCH_LOOP = 26,      /* room for a loop beside its box */
};

/* A box, or a bend: the place where a long arrow passes through a layer. */
struct sketch_item {
    uint32_t box;       /* in the graph; DRAW_NONE: a bend */
    uint32_t group;     /* DRAW_NONE: none, as for all bends */
    uint32_t layer, at; /* at: its place within the layer */
    double left, right; /* how far it reaches from x */
    double x;
};

/* From one layer to the next. */
struct sketch_link {
    uint32_t upper, lower; /* items */
    double weight;
};

/* An arrow, upper end first. The bends are items that stand in a row. */
struct sketch_arrow {
    uint32_t arrow;        /* in the graph */
    uint32_t upper, lower; /* items */
    bool back;
    uint32_t first_bend, bend_count;
};

/* An arrow from a box to itself. */
struct sketch_loop {
    uint32_t arrow, item;
};

struct sketch {
    const struct draw_graph *graph; /* borrowed */
    VEC(struct sketch_item) items;  /* boxes first, then bends */
    size_t box_count;
    VEC(struct sketch_arrow) arrows; /* without loops */
    VEC(struct sketch_loop) loops;
    VEC(struct sketch_link) links;
    uint32_t layer_count;
    uint32_t *layer_at; /* items of layer i: order[layer_at[i]] up to order[layer_at[i + 1]] */
    uint32_t *order;
    /* links of item i, as seen from below and from above: up[up_at[i]] … are links whose lower end
     * it is, down[…] those whose upper end it is */
    uint32_t *up_at, *up, *down_at, *down;
    double *top, *bottom; /* of each layer */
    uint32_t group_count; /* groups are below this */
    uint32_t *group_size; /* boxes of each group in this part */
};

void sketch_release(struct sketch *s);

int sketch_make_layers(struct sketch *s);
int sketch_index_links(struct sketch *s);
int sketch_make_order(struct sketch *s);
int sketch_make_places(struct sketch *s);

/* Where the finished parts are put together; they are moved to their place later. */
struct sketch_output {
    struct draw_point *box;
    struct draw_route *route;
    VEC(struct draw_point) points;
    VEC(struct draw_patch) patches;
};

int sketch_make_routes(const struct sketch *s, struct sketch_output *out);
int sketch_make_patches(const struct sketch *s, struct sketch_output *out);

/* Crossings of the links between two neighbouring layers, for tests and for order.c. */
int sketch_count_crossings(const struct sketch *s, uint64_t *ret);

/* True if the two stand so close that they need the room of a patch's edge between them. */
static inline bool sketch_has_patch(const struct sketch *s, const struct sketch_item *i)
{
    return i->group != DRAW_NONE && s->group_size[i->group] > 1;
}

#endif
