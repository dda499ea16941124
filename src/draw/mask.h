/* Shapes that stand in a picture again and again, characters above all: their coverage is found out
 * once and kept with the canvas, and then only blended. */
#ifndef PYROMETER_DRAW_MASK_H
#define PYROMETER_DRAW_MASK_H

#include "base/idxmap.h"
#include "draw/canvas.h"

/* What a shape is, for whoever draws it: equal keys, equal coverage. */
struct draw_mask_key {
    uint64_t shape, style;
};

struct draw_mask {
    struct draw_mask_key key;
    int32_t left, top; /* from the shape's origin to the first pixel, in pixels */
    uint32_t width, height;
    uint8_t *alpha; /* owned by the masks; row by row, 255 is covered */
};

struct draw_masks {
    VEC(struct draw_mask) mask;
    struct idxmap map;
};

/* NULL: not there yet. Valid until the next one is added. */
const struct draw_mask *draw_masks_find(const struct draw_canvas *c, struct draw_mask_key key);

/* Keeps what is drawn on `scratch`, black on white, whose origin is at the pixel (x, y). NULL without
 * memory, which the canvas then remembers. */
const struct draw_mask *draw_masks_add(struct draw_canvas *c, struct draw_mask_key key,
                                       const struct draw_canvas *scratch, int32_t x, int32_t y);

void draw_masks_free(struct draw_masks *masks);

/* With the origin at the pixel (x, y); what lies outside of the canvas is cut. */
void draw_mask_put(struct draw_canvas *c, const struct draw_mask *mask, int32_t x, int32_t y,
                   uint32_t colour);

#endif
