/* The drawing of a plot, told to a pen: .svg and .png are two pens. Inside the view only. */
#ifndef PYROMETER_VIEW_PLOT_PICTURE_H
#define PYROMETER_VIEW_PLOT_PICTURE_H

#include "draw/font.h"
#include "view/plot.h"

#define PLOT_TEXT_SIZE  11.5
#define PLOT_SMALL_SIZE 10.5

struct plot_stroke {
    double width;
    uint32_t colour;
    double dash, gap; /* 0: whole */
};

struct plot_pen {
    void (*line)(void *ctx, double x0, double y0, double x1, double y1,
                 const struct plot_stroke *s);
    void (*disc)(void *ctx, double x, double y, double radius, uint32_t colour, const char *tip);
    void (*rect)(void *ctx, double x, double y, double width, double height, uint32_t colour);
    void (*text)(void *ctx, const struct draw_font *font, double x, double y, enum draw_align align,
                 const char *text);
    void *ctx;
};

struct plot_size {
    double width, height;
};
struct plot_size plot_picture_size(const struct view_plot *plot);

/* 0 or E_NOMEM. */
int plot_picture_draw(const struct view_plot *plot, const struct plot_pen *pen);

#endif
