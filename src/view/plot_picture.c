#include "view/plot_picture.h"

#include "base/err.h"
#include "draw/axis.h"
#include "stats/sample.h"
#include "view/colour.h"
#include "view/text.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 960,
    LEFT = 78, /* room for the numbers of the axis */
    RIGHT = 26,
    TOP = 70,    /* title and facts */
    HEAD = 46,   /* of a panel: its name, and room for the changes' labels */
    LEGEND = 18, /* more if there are several series */
    FIELD = 210,
    FIELD_OF_MANY = 140,
    FOOT = 34, /* labels of runs */
    BOTTOM = 8,
    INK = 0x1c2330,
    INK_SOFT = 0x475467,
    INK_FAINT = 0x7a8699,
    GRID = 0xe7eaf0,
    AXIS = 0xb6bfcc,
    UP = 0xb42318,
    DOWN = 0x067647,
    STEPS = 5,
    TEXT_MAX = 1 << 20,
};

struct drawing {
    const struct view_plot *plot;
    const struct plot_pen *pen;
    const struct view_plot_panel *panel;
    struct draw_axis axis;
    struct view_quantity_scale scale;
    double left, right, top, bottom; /* of the field */
    struct buf text;
    double *work; /* values of a level; owned */
    int error;
};

static bool has_legend(const struct view_plot *plot)
{
    for (size_t i = 0; i < plot->panels; i++)
        if (plot->panel[i].count > 1)
            return true;
    return false;
}

static double field_height(const struct view_plot *plot)
{
    return plot->panels > 2 ? FIELD_OF_MANY : FIELD;
}

static double legend_height(const struct view_plot *plot)
{
    size_t most = 0;
    for (size_t i = 0; i < plot->panels; i++)
        most = max_u64(most, plot->panel[i].count);
    return has_legend(plot) ? (double)most * LEGEND : 0;
}

struct plot_size plot_picture_size(const struct view_plot *plot)
{
    double panel = HEAD + field_height(plot) + FOOT;
    return (struct plot_size){WIDTH,
                              TOP + (double)plot->panels * panel + legend_height(plot) + BOTTOM};
}

/* Hues far apart, one lightness: none looks more important. */
static uint32_t series_colour(size_t at, bool is_pale)
{
    static const double hues[] = {255, 45, 150, 320, 90, 200, 0, 285, 120, 225, 65, 175};
    double hue = hues[at % ARRAY_LEN(hues)];
    return is_pale ? view_colour_oklch(0.78, 0.09, hue) : view_colour_oklch(0.53, 0.16, hue);
}

static void put_text(struct drawing *d, double size, bool bold, uint32_t colour, double x, double y,
                     enum draw_align align, const char *text)
{
    struct draw_font font = {size, bold, colour};
    d->pen->text(d->pen->ctx, &font, x, y, align, text);
}

static void put_line(struct drawing *d, double x0, double y0, double x1, double y1,
                     struct plot_stroke stroke)
{
    d->pen->line(d->pen->ctx, x0, y0, x1, y1, &stroke);
}

static double place_x(const struct drawing *d, double at)
{
    return d->left + (at + 0.5) / (double)d->plot->places * (d->right - d->left);
}

static double place_y(const struct drawing *d, double value)
{
    return d->bottom - draw_axis_place(&d->axis, value / d->scale.divisor) * (d->bottom - d->top);
}

/* --- the axes --- */

static void put_grid(struct drawing *d)
{
    char number[48];
    for (size_t i = 0; i < d->axis.ticks; i++) {
        double y = d->bottom - draw_axis_place(&d->axis, d->axis.tick[i]) * (d->bottom - d->top);
        put_line(d, d->left, y, d->right, y, (struct plot_stroke){1, i ? GRID : AXIS, 0, 0});
        snprintf(number, sizeof number, "%.*f", d->axis.decimals, d->axis.tick[i]);
        put_text(d, PLOT_SMALL_SIZE, false, INK_FAINT, d->left - 9, y + 3.6, DRAW_RIGHT, number);
    }
}

static void put_label(struct drawing *d, size_t at, double room)
{
    const char *label = d->plot->label[at];
    size_t columns = (size_t)(room / (PLOT_SMALL_SIZE * DRAW_FONT_ADVANCE));
    buf_clear(&d->text);
    view_text_fit(&d->text, label, strlen(label), columns, VIEW_CUT_RIGHT);
    double x = place_x(d, (double)at), half = room / 2;
    enum draw_align align = x - half < d->left - 30    ? DRAW_LEFT
                            : x + half > d->right + 10 ? DRAW_RIGHT
                                                       : DRAW_CENTRE;
    put_line(d, x, d->bottom, x, d->bottom + 4, (struct plot_stroke){1, AXIS, 0, 0});
    put_text(d, PLOT_SMALL_SIZE, false, INK_FAINT,
             align == DRAW_LEFT    ? d->left
             : align == DRAW_RIGHT ? d->right
                                   : x,
             d->bottom + 18, align, buf_cstr(&d->text));
}

static void put_labels(struct drawing *d)
{
    enum { LABELS = 6 };
    size_t places = d->plot->places, widest = 0;
    for (size_t i = 0; i < places; i++)
        widest = max_u64(widest, view_text_width(d->plot->label[i], strlen(d->plot->label[i])));
    double width = ((double)widest + 2) * PLOT_SMALL_SIZE * DRAW_FONT_ADVANCE;
    size_t fit = (size_t)fmax(1, (d->right - d->left) / fmax(width, 60));
    size_t shown = min_u64(min_u64(fit, places), places <= 12 ? 12 : LABELS);
    double room = (d->right - d->left) / (double)shown;
    for (size_t i = 0; i < shown; i++)
        put_label(d, shown == 1 ? 0 : i * (places - 1) / (shown - 1), room);
}

/* --- a series --- */

static void put_joint(struct drawing *d, const struct view_plot_point *a,
                      const struct view_plot_point *b, uint32_t colour)
{
    const struct plot_stroke stroke = {1.5, colour, 0, 0};
    double x0 = place_x(d, (double)a->at), y0 = place_y(d, a->value);
    double x1 = place_x(d, (double)b->at), y1 = place_y(d, b->value);
    if (d->plot->is_stepped) {
        put_line(d, x0, y0, x1, y0, stroke);
        put_line(d, x1, y0, x1, y1, stroke);
    } else {
        put_line(d, x0, y0, x1, y1, stroke);
    }
}

static void put_points(struct drawing *d, size_t at)
{
    const struct view_plot_series *s = &d->panel->series[at];
    uint32_t pale = series_colour(at, !d->plot->is_joined), strong = series_colour(at, false);
    double radius = s->count > 400 ? 1.6 : s->count > 120 ? 2.2 : 3;
    for (size_t i = 0; i < s->count; i++) {
        const struct view_plot_point *p = &s->point[i];
        double x = place_x(d, (double)p->at);
        if (!isnan(p->low) && p->high > p->low)
            put_line(d, x, place_y(d, p->low), x, place_y(d, p->high),
                     (struct plot_stroke){1.4, series_colour(at, true), 0, 0});
        if (d->plot->is_joined && i)
            put_joint(d, &s->point[i - 1], p, strong);
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct view_plot_point *p = &s->point[i];
        buf_clear(&d->text);
        buf_printf(&d->text, "%s\n%s: %s", d->plot->label[p->at], s->name,
                   view_quantity_text(d->panel->metric, p->value).text);
        d->pen->disc(d->pen->ctx, place_x(d, (double)p->at), place_y(d, p->value), radius, pale,
                     buf_cstr(&d->text));
    }
}

/* A line through the median of each level: what the noise hides. */
static void put_levels(struct drawing *d, size_t at)
{
    const struct view_plot_series *s = &d->panel->series[at];
    if (d->plot->is_joined || s->count < 2)
        return;
    for (size_t i = 0; i <= s->changes; i++) {
        size_t from = i ? s->change[i - 1].at : 0, to = i < s->changes ? s->change[i].at : s->count;
        for (size_t k = from; k < to; k++)
            d->work[k - from] = s->point[k].value;
        double y = place_y(d, stats_median(d->work, to - from));
        put_line(d, place_x(d, (double)s->point[from].at - 0.4), y,
                 place_x(d, (double)s->point[to - 1].at + 0.4), y,
                 (struct plot_stroke){2.2, series_colour(at, false), 0, 0});
    }
}

static void put_changes(struct drawing *d, size_t at)
{
    const struct view_plot_series *s = &d->panel->series[at];
    double free_from = d->left;
    for (size_t i = 0; i < s->changes; i++) {
        const struct stats_change *c = &s->change[i];
        uint32_t colour = c->after > c->before ? UP : DOWN;
        double x = place_x(d, (double)s->point[c->at].at - 0.5);
        struct view_units_text text = view_plot_change_text(c);
        double half = (double)view_text_width(text.text, strlen(text.text)) * PLOT_SMALL_SIZE *
                      DRAW_FONT_ADVANCE / 2;
        put_line(d, x, d->top - 4, x, d->bottom, (struct plot_stroke){1.2, colour, 4, 3});
        if (x - half < free_from) /* no room beside the one before */
            continue;
        put_text(d, PLOT_SMALL_SIZE, true, colour, fmin(x, d->right - half), d->top - 9,
                 DRAW_CENTRE, text.text);
        free_from = x + half + 8;
    }
}

/* The program's own marks, with their names where there is room. */
static void put_marks(struct drawing *d)
{
    double free_from = d->left;
    for (size_t i = 0; i < d->plot->marks; i++) {
        const struct view_plot_mark *m = &d->plot->mark[i];
        double x = place_x(d, (double)m->at);
        double width =
            (double)view_text_width(m->name, strlen(m->name)) * PLOT_SMALL_SIZE * DRAW_FONT_ADVANCE;
        put_line(d, x, d->top - 4, x, d->bottom, (struct plot_stroke){1, AXIS, 2, 3});
        if (x < free_from || x + width > d->right)
            continue;
        put_text(d, PLOT_SMALL_SIZE, false, INK_SOFT, x, d->top - 9, DRAW_LEFT, m->name);
        free_from = x + width + 8;
    }
}

/* --- panels --- */

static void put_heading(struct drawing *d, double y)
{
    double x = d->left;
    const char *title = d->panel->title ? d->panel->title : d->panel->metric;
    put_text(d, 13, true, INK, x, y, DRAW_LEFT, title);
    x += ((double)view_text_width(title, strlen(title)) + 1) * 13 * DRAW_FONT_ADVANCE;
    if (*d->scale.unit)
        put_text(d, PLOT_TEXT_SIZE, false, INK_FAINT, x, y, DRAW_LEFT, d->scale.unit);
}

static int draw_panel(struct drawing *d, double top)
{
    struct view_plot_range range = view_plot_range_of(d->panel);
    size_t longest = 0;
    d->scale = view_quantity_scale_for(d->panel->metric, fmax(fabs(range.low), fabs(range.high)));
    d->axis = draw_axis_around(range.low / d->scale.divisor, range.high / d->scale.divisor, STEPS);
    d->left = LEFT;
    d->right = WIDTH - RIGHT;
    d->top = top + HEAD;
    d->bottom = d->top + field_height(d->plot);
    for (size_t i = 0; i < d->panel->count; i++)
        longest = max_u64(longest, d->panel->series[i].count);
    d->work = malloc((longest + 1) * sizeof *d->work);
    if (!d->work)
        return E_NOMEM;
    put_heading(d, top + 16);
    put_grid(d);
    put_labels(d);
    put_marks(d);
    for (size_t i = 0; i < d->panel->count; i++)
        put_points(d, view_plot_series_nth(d->panel, i));
    for (size_t i = 0; i < d->panel->count; i++)
        put_levels(d, i);
    for (size_t i = 0; i < d->panel->count; i++)
        put_changes(d, i);
    free(d->work);
    return 0;
}

static void put_legend(struct drawing *d, double y)
{
    const struct view_plot_panel *widest = d->plot->panel;
    for (size_t i = 1; i < d->plot->panels; i++)
        if (d->plot->panel[i].count > widest->count)
            widest = &d->plot->panel[i];
    for (size_t i = 0; i < widest->count; i++, y += LEGEND) {
        const char *name = widest->series[i].name;
        buf_clear(&d->text);
        view_text_fit(&d->text, name, strlen(name), 110, VIEW_CUT_MIDDLE);
        d->pen->disc(d->pen->ctx, LEFT + 5, y - 4, 4, series_colour(i, false), "");
        put_text(d, PLOT_TEXT_SIZE, false, INK_SOFT, LEFT + 17, y, DRAW_LEFT, buf_cstr(&d->text));
    }
}

int plot_picture_draw(const struct view_plot *plot, const struct plot_pen *pen)
{
    struct drawing d = {.plot = plot, .pen = pen};
    struct plot_size size = plot_picture_size(plot);
    double panel = HEAD + field_height(plot) + FOOT;
    int r = 0;
    buf_init(&d.text, TEXT_MAX);
    pen->rect(pen->ctx, 0, 0, size.width, size.height, 0xffffff);
    view_text_fit(&d.text, plot->title, strlen(plot->title), 84, VIEW_CUT_MIDDLE);
    put_text(&d, 17, true, INK, 24, 32, DRAW_LEFT, buf_cstr(&d.text));
    if (plot->facts)
        put_text(&d, PLOT_TEXT_SIZE, false, INK_FAINT, 24, 53, DRAW_LEFT, plot->facts);
    for (size_t i = 0; r == 0 && i < plot->panels; i++) {
        d.panel = &plot->panel[i];
        r = draw_panel(&d, TOP + (double)i * panel);
    }
    if (has_legend(plot))
        put_legend(&d, TOP + (double)plot->panels * panel + 6);
    r = r < 0 ? r : buf_error(&d.text);
    buf_release(&d.text);
    return r;
}
