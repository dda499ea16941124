/* The call graph as .png: the same picture as graph_svg.c draws, by our own rasteriser and font. */
#include "base/err.h"
#include "draw/font.h"
#include "draw/png.h"
#include "view/colour.h"
#include "view/graph.h"
#include "view/graph_picture.h"
#include "view/text.h"
#include "view/units.h"

#include <math.h>

enum {
    INK = 0x1c2330,
    INK_SOFT = 0x475467,
    INK_FAINT = 0x667085,
    FRAME = 0x8a94a6,
    FRAME_CYCLE = 0x8b5cf6,
    GROUND = 0xffffff,
    LEGEND_STEPS = 15,
};

static void put_text(struct draw_canvas *c, double size, bool bold, uint32_t colour, double x,
                     double y, enum draw_align align, const char *text)
{
    struct draw_font font = {size, bold, colour};
    draw_text(c, &font, x, y, align, text);
}

/* --- the ground under modules --- */

static void put_patches(const struct graph_picture *p, struct draw_canvas *c)
{
    enum { OVER = 10, RADIUS = 9 }; /* OVER: into both, to cover their round corners */
    for (size_t i = 0; i < p->layout.patch_count; i++) {
        const struct draw_patch *b = &p->layout.patch[i];
        uint32_t tint = p->modules.data[b->group].tint;
        draw_rect(c, b->left, b->top, b->right - b->left, b->bottom - b->top, RADIUS);
        draw_fill(c, tint);
        if (b->above == DRAW_NONE)
            continue;
        const struct draw_patch *a = &p->layout.patch[b->above];
        draw_move(c, a->left, a->bottom - OVER);
        draw_line(c, a->right, a->bottom - OVER);
        draw_line(c, a->right, a->bottom);
        draw_line(c, b->right, b->top);
        draw_line(c, b->right, b->top + OVER);
        draw_line(c, b->left, b->top + OVER);
        draw_line(c, b->left, b->top);
        draw_line(c, a->left, a->bottom);
        draw_fill(c, tint);
    }
}

static void put_patch_names(const struct graph_picture *p, struct draw_canvas *c, struct buf *text)
{
    for (size_t i = 0; i < p->layout.patch_count; i++) {
        const struct draw_patch *a = &p->layout.patch[i];
        const struct graph_module *m = &p->modules.data[a->group];
        if (a->above != DRAW_NONE)
            continue;
        buf_clear(text);
        view_text_fit(text, m->name, strlen(m->name),
                      (size_t)((a->right - a->left - 16) / GRAPH_SMALL_COLUMN), VIEW_CUT_LEFT);
        put_text(c, GRAPH_SMALL_SIZE, true, m->ink, a->left + 9, a->top + 14, DRAW_LEFT,
                 buf_cstr(text));
    }
}

/* --- arrows and boxes --- */

static void put_arrow(const struct graph_picture *p, size_t at, struct draw_canvas *c)
{
    const struct graph_arrow *a = &p->arrows.data[at];
    const struct draw_route *route = &p->layout.route[at];
    const struct draw_point *pt = p->layout.point + route->first;
    draw_move(c, pt[0].x, pt[0].y);
    for (uint32_t i = 1; i + 2 < route->count; i += 3)
        draw_curve(c, pt + i);
    /* ends are round: the gap has to make up for them */
    bool is_dashed = route->back || route->loop;
    draw_stroke(c, a->width, a->colour, is_dashed ? 4 + a->width : 0, 3.5 + a->width);
    draw_move(c, a->head[0].x, a->head[0].y);
    for (int i = 1; i < GRAPH_HEAD; i++)
        draw_line(c, a->head[i].x, a->head[i].y);
    draw_fill(c, a->colour);
}

static void put_arrow_label(const struct graph_picture *p, size_t at, struct draw_canvas *c)
{
    const struct graph_arrow *a = &p->arrows.data[at];
    double half = GRAPH_SMALL_COLUMN * (double)view_text_width(a->label, strlen(a->label)) / 2;
    draw_rect(c, a->label_at.x - half - 1, a->label_at.y - 9, 2 * half + 2, 11.5, 4);
    draw_fill(c, GROUND);
    put_text(c, GRAPH_SMALL_SIZE, false, INK_SOFT, a->label_at.x, a->label_at.y, DRAW_CENTRE,
             a->label);
}

static void put_box(const struct graph_box *b, struct draw_canvas *c)
{
    double x = b->at.x - b->width / 2, y = b->at.y - b->height / 2;
    draw_rect(c, x, y, b->width, b->height, 5);
    draw_fill(c, b->fill);
    draw_rect(c, x, y, b->width, b->height, 5);
    draw_stroke(c, b->in_cycle ? 1.6 : 1, b->in_cycle ? FRAME_CYCLE : FRAME, b->special ? 3 : 0, 2);
    double line = y + GRAPH_BOX_TOP;
    for (int i = 0; i < GRAPH_LINES; i++) {
        if (!b->line[i])
            continue;
        put_text(c, i ? GRAPH_SMALL_SIZE : GRAPH_NAME_SIZE, i == 0, i == 1 ? INK_SOFT : INK,
                 b->at.x, line, DRAW_CENTRE, b->line[i]);
        line += GRAPH_LINE;
    }
}

/* --- legend and notes --- */

static void put_legend(const struct graph_picture *p, struct draw_canvas *c)
{
    double y = p->legend_y, x = GRAPH_MARGIN;
    put_text(c, 11, false, INK_FAINT, x, y + 12, DRAW_LEFT, "self: 0 %");
    x += 68;
    for (int i = 0; i < LEGEND_STEPS; i++) {
        draw_rect(c, x + i * 10.0, y + 2, 10.4, 12, 0);
        draw_fill(c, view_colour_heat(sqrt((double)i / (LEGEND_STEPS - 1))));
    }
    x += LEGEND_STEPS * 10 + 8;
    put_text(c, 11, false, INK_FAINT, x, y + 12, DRAW_LEFT,
             view_units_percent(100 * p->hottest).text);
    x += 70;
    if (p->has_recursion) {
        draw_move(c, x, y + 8);
        draw_line(c, x + 34, y + 8);
        draw_stroke(c, 2, view_colour_oklch(0.56, 0.17, 300), 6, 4);
        put_text(c, 11, false, INK_FAINT, x + 44, y + 12, DRAW_LEFT, "recursion");
    }
}

static void draw(struct graph_picture *p, struct draw_canvas *c, struct buf *text)
{
    put_patches(p, c);
    for (size_t i = p->arrows.len; i-- > 0;) /* heavy ones over light ones */
        put_arrow(p, i, c);
    for (size_t i = p->arrows.len; i-- > 0;)
        put_arrow_label(p, i, c);
    put_patch_names(p, c, text);
    for (size_t i = 0; i < p->boxes.len; i++)
        put_box(&p->boxes.data[i], c);
    put_text(c, 17, true, INK, GRAPH_MARGIN, 30, DRAW_LEFT, buf_cstr(&p->title));
    put_text(c, 11.5, false, INK_FAINT, GRAPH_MARGIN, 51, DRAW_LEFT, buf_cstr(&p->facts));
    put_legend(p, c);
    for (size_t i = 0; i < p->notes.len; i++)
        put_text(c, 11, false, INK_FAINT, GRAPH_MARGIN, p->notes_y + (double)i * GRAPH_NOTE_LINE,
                 DRAW_LEFT, p->notes.data[i]);
}

int view_graph_write_png(const struct view_graph *view, double scale, FILE *out, double *ret_scale)
{
    struct graph_picture p;
    int r = graph_picture_init(view, &p);
    if (r < 0)
        return r;
    struct buf text;
    struct draw_canvas canvas;
    buf_init(&text, 1 << 20);
    scale = draw_canvas_fit(p.width, p.height, scale);
    r = draw_canvas_init(&canvas, p.width, p.height, scale);
    if (r == 0) {
        draw(&p, &canvas, &text);
        r = draw_canvas_error(&canvas);
        r = r < 0 ? r : buf_error(&text);
        r = r < 0 ? r : draw_png_write(&canvas, out);
        draw_canvas_release(&canvas);
    }
    buf_release(&text);
    graph_picture_release(&p);
    if (r == 0)
        *ret_scale = scale;
    return r;
}
