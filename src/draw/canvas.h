/* A small antialiased rasteriser: filled shapes, strokes and text in flat colours on an opaque
 * ground. Coordinates are the picture's units; `scale` makes pixels of them.
 *
 * A shape is gathered by draw_move, draw_line and draw_curve, then filled or stroked, which also
 * forgets it. Coverage is exact (signed areas, as in font rasterisers), so slim lines keep their
 * weight. Failure of memory is sticky: draw on, and ask draw_canvas_error() once. */
#ifndef PYROMETER_DRAW_CANVAS_H
#define PYROMETER_DRAW_CANVAS_H

#include "base/vec.h"
#include "draw/layout.h"

/* A larger picture is beyond what viewers open in comfort; it takes 3 bytes a pixel here. */
enum { DRAW_SIDE_MAX = 32000, DRAW_PIXELS_MAX = 48 * 1000 * 1000 };

struct draw_canvas {
    uint32_t width, height; /* pixels */
    double scale;
    uint8_t *rgb; /* owned; three bytes a pixel, rows from top to bottom */
    int error;
    /* private */
    VEC(struct draw_point) points; /* of the shape, flattened, in pixels */
    VEC(uint32_t) starts;          /* of its lines, in points */
    float *cover;
    size_t cover_size;
    int32_t *row_from, *row_to; /* of the shape's rows, what was touched */
    struct draw_masks *masks;   /* owned; NULL: none yet (draw/mask.h) */
};

/* The scale at which a picture of that size is not too large: `scale` or less. */
double draw_canvas_fit(double width, double height, double scale);

/* A white canvas; the size must fit. 0 or E_NOMEM, E_LIMIT. */
int draw_canvas_init(struct draw_canvas *c, double width, double height, double scale);
void draw_canvas_release(struct draw_canvas *c);

static inline int draw_canvas_error(const struct draw_canvas *c)
{
    return c->error;
}

void draw_move(struct draw_canvas *c, double x, double y);
void draw_line(struct draw_canvas *c, double x, double y);
void draw_curve(struct draw_canvas *c, const struct draw_point p[3]); /* cubic, from where it is */
void draw_rect(struct draw_canvas *c, double x, double y, double width, double height,
               double radius); /* round corners */

void draw_fill(struct draw_canvas *c, uint32_t colour);

/* `dash` and `gap` are lengths; a dash of 0 draws the line whole. Ends and corners are round. */
void draw_stroke(struct draw_canvas *c, double width, uint32_t colour, double dash, double gap);

#endif
