/* Boxes and arrows → where they stand: a layered drawing (Sugiyama's method), made here so that a
 * picture needs no other program.
 *
 * What always holds of a layout: no two boxes overlap; an arrow runs downwards, from the bottom of
 * its box to the top of the other, unless it is marked `back` (it closes a circle and runs upwards)
 * or is a loop at the right side of its own box; the same input gives the same layout, on every
 * machine of one kind. Parts of the graph that nothing connects stand side by side. The work is
 * bounded: what would take too long is left less tidy, never undone.
 *
 * Boxes of one group stand side by side within a layer, and a patch is the ground under such a run;
 * patches of one group in two layers are joined where they overlap. */
#ifndef PYROMETER_DRAW_LAYOUT_H
#define PYROMETER_DRAW_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRAW_NONE UINT32_MAX

enum { DRAW_BOXES_MAX = 20000, DRAW_ARROWS_MAX = 200000 };

struct draw_point {
    double x, y;
};

struct draw_box {
    double width, height;
    uint32_t group; /* a small number: below the number of boxes; DRAW_NONE: in none */
};

struct draw_arrow {
    uint32_t from, to; /* boxes */
    double weight;     /* heavy ones are kept short and straight; above 0 */
};

/* Boxes and arrows that come first count as the more important ones. Borrowed. */
struct draw_graph {
    const struct draw_box *box;
    size_t box_count;
    const struct draw_arrow *arrow;
    size_t arrow_count;
    double patch_head; /* room for a name at the top of the first patch of a run of them */
};

/* The way of an arrow: a start, and three points for each piece of a Bézier curve. */
struct draw_route {
    uint32_t first, count; /* in `point` */
    bool back;             /* upwards */
    bool loop;
};

struct draw_patch {
    uint32_t group;
    double left, top, right, bottom;
    uint32_t above; /* the patch it is joined to, which stands before it; DRAW_NONE: none */
};

struct draw_layout {
    double width, height;
    struct draw_point *box; /* the middle of each */
    struct draw_route *route;
    struct draw_point *point;
    struct draw_patch *patch; /* of groups that have two boxes or more */
    size_t point_count, patch_count, layer_count;
};

/* 0, E_NOMEM, or E_LIMIT for more boxes or arrows than the maxima. E_INVALID: an arrow to nowhere. */
int draw_layout_init(const struct draw_graph *graph, struct draw_layout *ret);
void draw_layout_release(struct draw_layout *l);

#endif
