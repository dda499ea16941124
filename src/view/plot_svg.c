/* The pen that writes a plot as .svg: plain shapes, no script; what a point is shows when the mouse
 * rests on it. */
#include "base/err.h"
#include "view/flame_text.h"
#include "view/plot_picture.h"

#include <errno.h>

static void svg_line(void *ctx, double x0, double y0, double x1, double y1,
                     const struct plot_stroke *s)
{
    FILE *out = ctx;
    fprintf(out, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#%06x\" stroke-width=\"%.1f\"", x0, y0,
            x1, y1, s->colour, s->width);
    if (s->dash > 0)
        fprintf(out, " stroke-dasharray=\"%.1f %.1f\"", s->dash, s->gap);
    fputs("/>\n", out);
}

static void svg_disc(void *ctx, double x, double y, double radius, uint32_t colour, const char *tip)
{
    FILE *out = ctx;
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#%06x\"", x, y, radius, colour);
    if (!*tip) {
        fputs("/>\n", out);
        return;
    }
    fputs("><title>", out);
    flame_put_markup(out, tip);
    fputs("</title></circle>\n", out);
}

static void svg_rect(void *ctx, double x, double y, double width, double height, uint32_t colour)
{
    fprintf(ctx, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#%06x\"/>\n", x,
            y, width, height, colour);
}

static void svg_text(void *ctx, const struct draw_font *font, double x, double y,
                     enum draw_align align, const char *text)
{
    static const char *const anchors[] = {
        [DRAW_LEFT] = "start", [DRAW_CENTRE] = "middle", [DRAW_RIGHT] = "end"};
    FILE *out = ctx;
    fprintf(
        out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" text-anchor=\"%s\" fill=\"#%06x\"%s>",
        x, y, font->size, anchors[align], font->colour, font->bold ? " font-weight=\"600\"" : "");
    flame_put_markup(out, text);
    fputs("</text>\n", out);
}

int view_plot_write_svg(const struct view_plot *plot, FILE *out)
{
    struct plot_size size = plot_picture_size(plot);
    struct plot_pen pen = {svg_line, svg_disc, svg_rect, svg_text, out};
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 "
            "0 %.0f %.0f\" role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', "
            "'DejaVu Sans', sans-serif\" stroke-linecap=\"round\">\n",
            size.width, size.height, size.width, size.height);
    int r = plot_picture_draw(plot, &pen);
    fputs("</svg>\n", out);
    if (r == 0 && (fflush(out) != 0 || ferror(out)))
        r = err_from_errno(errno);
    return r;
}
