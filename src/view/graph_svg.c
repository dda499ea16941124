/* The call graph as .svg: drawn already, so that it also works where no script runs (as an image in
 * a page). The script (graph_svg.js) takes names and ends of arrows from the elements. */
#include "base/err.h"
#include "view/assets.h"
#include "view/colour.h"
#include "view/flame_text.h"
#include "view/graph.h"
#include "view/graph_picture.h"
#include "view/text.h"
#include "view/units.h"

#include <errno.h>
#include <math.h>

enum { LEGEND_WIDTH = 150, LEGEND_STEPS = 15 };

static void put_text(FILE *out, const char *class, double x, double y, const char *text)
{
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    flame_put_markup(out, text);
    fputs("</text>\n", out);
}

static void put_tip(FILE *out, const char *text)
{
    fputs("<title>", out);
    flame_put_markup(out, text);
    fputs("</title>", out);
}

static void put_head(const struct graph_picture *p, FILE *out)
{
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 "
            "0 %.0f %.0f\" role=\"img\">\n<style>",
            p->width, p->height, p->width, p->height);
    fwrite(VIEW_ASSET_GRAPH_SVG_CSS.text, 1, VIEW_ASSET_GRAPH_SVG_CSS.len, out);
    fprintf(out, "</style>\n<rect class=\"page\" width=\"%.0f\" height=\"%.0f\"/>\n", p->width,
            p->height);
}

/* --- the ground under modules --- */

/* The joint between two patches: as wide as both where they meet. */
static void put_joint(FILE *out, const struct draw_patch *a, const struct draw_patch *b)
{
    enum { OVER = 10 }; /* into both, to cover their round corners */
    fprintf(out, "M%.1f %.1fH%.1fV%.1fL%.1f %.1fV%.1fH%.1fV%.1fL%.1f %.1fz", a->left,
            a->bottom - OVER, a->right, a->bottom, b->right, b->top, b->top + OVER, b->left, b->top,
            a->left, a->bottom);
}

static void put_patches(const struct graph_picture *p, FILE *out)
{
    const struct draw_layout *l = &p->layout;
    fputs("<g id=\"modules\">\n", out);
    for (size_t i = 0; i < l->patch_count; i++) {
        const struct draw_patch *a = &l->patch[i];
        fprintf(out,
                "<g fill=\"#%06x\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "rx=\"9\"/>",
                p->modules.data[a->group].tint, a->left, a->top, a->right - a->left,
                a->bottom - a->top);
        if (a->above != DRAW_NONE) {
            fputs("<path d=\"", out);
            put_joint(out, &l->patch[a->above], a);
            fputs("\"/>", out);
        }
        fputs("</g>\n", out);
    }
    fputs("</g>\n", out);
}

static void put_patch_names(const struct graph_picture *p, struct buf *text, FILE *out)
{
    for (size_t i = 0; i < p->layout.patch_count; i++) {
        const struct draw_patch *a = &p->layout.patch[i];
        const struct graph_module *m = &p->modules.data[a->group];
        if (a->above != DRAW_NONE)
            continue;
        buf_clear(text);
        view_text_fit(text, m->name, strlen(m->name),
                      (size_t)((a->right - a->left - 16) / GRAPH_SMALL_COLUMN), VIEW_CUT_LEFT);
        fprintf(out, "<text class=\"module\" x=\"%.1f\" y=\"%.1f\" style=\"fill:#%06x\">",
                a->left + 9, a->top + 14, m->ink);
        flame_put_markup(out, buf_cstr(text));
        fputs("</text>\n", out);
    }
}

/* --- arrows and boxes --- */

static void put_arrow(const struct graph_picture *p, size_t at, FILE *out)
{
    const struct graph_arrow *a = &p->arrows.data[at];
    const struct draw_route *route = &p->layout.route[at];
    const struct draw_point *pt = p->layout.point + route->first;
    fprintf(out, "<g class=\"e%s\" data-from=\"%u\" data-to=\"%u\" stroke=\"#%06x\">",
            route->back || route->loop ? " r" : "", a->from, a->to, a->colour);
    put_tip(out, a->tip);
    fprintf(out, "<path stroke-width=\"%.1f\" d=\"M%.1f %.1f", a->width, pt[0].x, pt[0].y);
    for (uint32_t i = 1; i + 2 < route->count; i += 3)
        fprintf(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", pt[i].x, pt[i].y, pt[i + 1].x, pt[i + 1].y,
                pt[i + 2].x, pt[i + 2].y);
    fprintf(out, "\"/><path class=\"h\" fill=\"#%06x\" d=\"", a->colour);
    for (int i = 0; i < GRAPH_HEAD; i++)
        fprintf(out, "%c%.1f %.1f", i ? 'L' : 'M', a->head[i].x, a->head[i].y);
    double half = GRAPH_SMALL_COLUMN * (double)view_text_width(a->label, strlen(a->label)) / 2;
    fprintf(out,
            "z\"/><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"12\" rx=\"4\"/><text "
            "x=\"%.1f\" y=\"%.1f\">",
            a->label_at.x - half - 1, a->label_at.y - 9, 2 * half + 2, a->label_at.x,
            a->label_at.y);
    flame_put_markup(out, a->label);
    fputs("</text></g>\n", out);
}

static void put_box(const struct graph_picture *p, size_t at, FILE *out)
{
    const struct graph_box *b = &p->boxes.data[at];
    double x = b->at.x - b->width / 2, y = b->at.y - b->height / 2;
    fprintf(out, "<g class=\"n%s%s\" data-id=\"%zu\">", b->special ? " s" : "",
            b->in_cycle ? " c" : "", at);
    put_tip(out, b->tip);
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"5\" "
            "fill=\"#%06x\"/>",
            x, y, b->width, b->height, b->fill);
    double line = y + GRAPH_BOX_TOP;
    for (int i = 0; i < GRAPH_LINES; i++) {
        if (!b->line[i])
            continue;
        fprintf(out, "<text%s x=\"%.1f\" y=\"%.1f\">",
                i == 0   ? " class=\"name\""
                : i == 1 ? " class=\"place\""
                         : "",
                b->at.x, line);
        flame_put_markup(out, b->line[i]);
        fputs("</text>", out);
        line += GRAPH_LINE;
    }
    fputs("</g>\n", out);
}

/* --- legend and notes --- */

static void put_legend(const struct graph_picture *p, FILE *out)
{
    double y = p->legend_y, x = GRAPH_MARGIN;
    put_text(out, "facts", x, y + 12, "self: 0 %");
    x += 62;
    for (int i = 0; i < LEGEND_STEPS; i++)
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10.4\" height=\"12\" fill=\"#%06x\"/>",
                x + i * 10.0, y + 2, view_colour_heat(sqrt((double)i / (LEGEND_STEPS - 1))));
    x += LEGEND_WIDTH + 8;
    put_text(out, "facts", x, y + 12, view_units_percent(100 * p->hottest).text);
    x += 70;
    if (p->has_recursion) {
        fprintf(out,
                "<g class=\"e r\" stroke=\"#%06x\"><path stroke-width=\"2\" d=\"M%.1f "
                "%.1fh34\"/></g>\n",
                view_colour_oklch(0.56, 0.17, 300), x, y + 8);
        put_text(out, "facts", x + 44, y + 12, "recursion");
    }
}

static void draw(const struct graph_picture *p, struct buf *text, FILE *out)
{
    put_head(p, out);
    put_text(out, "title", GRAPH_MARGIN, 30, (const char *)p->title.data);
    put_text(out, "facts", GRAPH_MARGIN, 50, (const char *)p->facts.data);
    fprintf(out, "<text id=\"search\" class=\"button\" x=\"%.0f\" y=\"50\">search</text>\n",
            p->width - GRAPH_MARGIN);
    put_patches(p, out);
    fputs("<g id=\"arrows\">\n", out);
    for (size_t i = p->arrows.len; i-- > 0;) /* heavy ones over light ones */
        put_arrow(p, i, out);
    fputs("</g>\n", out);
    put_patch_names(p, text, out);
    fputs("<g id=\"boxes\">\n", out);
    for (size_t i = 0; i < p->boxes.len; i++)
        put_box(p, i, out);
    fputs("</g>\n", out);
    put_legend(p, out);
    for (size_t i = 0; i < p->notes.len; i++)
        put_text(out, "note", GRAPH_MARGIN, p->notes_y + (double)i * GRAPH_NOTE_LINE,
                 p->notes.data[i]);
    fputs("<script><![CDATA[\n", out);
    fwrite(VIEW_ASSET_GRAPH_SVG_JS.text, 1, VIEW_ASSET_GRAPH_SVG_JS.len, out);
    fputs("]]></script>\n</svg>\n", out);
}

int view_graph_write_svg(const struct view_graph *view, FILE *out)
{
    struct graph_picture p;
    int r = graph_picture_init(view, &p);
    if (r < 0)
        return r;
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_cstr(&p.title); /* ended by a NUL from here on */
    buf_cstr(&p.facts);
    errno = 0;
    draw(&p, &text, out);
    if (fflush(out) != 0 || ferror(out))
        r = errno ? err_from_errno(errno) : E_IO;
    if (r == 0)
        r = buf_error(&text);
    buf_release(&text);
    graph_picture_release(&p);
    return r;
}
