/* The pen that draws a plot as .png, by our own rasteriser and font. */
#include "base/err.h"
#include "draw/png.h"
#include "view/plot_picture.h"

static void png_line(void *ctx, double x0, double y0, double x1, double y1,
                     const struct plot_stroke *s)
{
    draw_move(ctx, x0, y0);
    draw_line(ctx, x1, y1);
    /* ends are round: the gap has to make up for them */
    draw_stroke(ctx, s->width, s->colour, s->dash, s->dash > 0 ? s->gap + s->width : 0);
}

static void png_disc(void *ctx, double x, double y, double radius, uint32_t colour,
                     const char *tip ATTR_UNUSED)
{
    draw_rect(ctx, x - radius, y - radius, 2 * radius, 2 * radius, radius);
    draw_fill(ctx, colour);
}

static void png_rect(void *ctx, double x, double y, double width, double height, uint32_t colour)
{
    draw_rect(ctx, x, y, width, height, 0);
    draw_fill(ctx, colour);
}

static void png_text(void *ctx, const struct draw_font *font, double x, double y,
                     enum draw_align align, const char *text)
{
    draw_text(ctx, font, x, y, align, text);
}

int view_plot_write_png(const struct view_plot *plot, double scale, FILE *out)
{
    struct plot_size size = plot_picture_size(plot);
    struct draw_canvas canvas;
    int r = draw_canvas_init(&canvas, size.width, size.height,
                             draw_canvas_fit(size.width, size.height, scale));
    if (r < 0)
        return r;
    struct plot_pen pen = {png_line, png_disc, png_rect, png_text, &canvas};
    r = plot_picture_draw(plot, &pen);
    r = r < 0 ? r : draw_canvas_error(&canvas);
    r = r < 0 ? r : draw_png_write(&canvas, out);
    draw_canvas_release(&canvas);
    return r;
}
