/* A plot in the terminal. A panel is a field of cells: each has dots (braille has two columns and
 * four rows of them) or one sign, and the series it belongs to, which is its colour. */
#include "base/err.h"
#include "draw/axis.h"
#include "view/plot.h"
#include "view/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    WIDTH = 80, /* where nothing is known */
    WIDTH_LEAST = 40,
    WIDTH_MOST = 400,
    ROWS = 12, /* of a panel, about */
    ROWS_OF_MANY = 8,
    GUTTER_LEAST = 6,
    STEPS = 4, /* of the axis */
    DOTS_X = 2,
    DOTS_Y = 4,
    LABEL_COLUMNS = 24,
    CHANGES_TOLD = 12,
    TEXT_MAX = 1 << 20,
};

struct cell {
    uint8_t dots;
    uint8_t series; /* from 1; 0: empty */
    bool is_mark;   /* of a change, or the program's own */
};

struct field {
    const struct view_plot *plot;
    const struct view_plot_panel *panel;
    enum view_plot_marks marks;
    bool colour;
    size_t columns, rows, gutter;
    struct draw_axis axis;
    struct view_quantity_scale scale;
    struct cell *cell; /* columns × rows; owned */
    FILE *out;
    struct buf text;
};

static const char *const SIGNS[] = {"●", "○", "◆", "◇", "▲", "△", "■", "□"};
static const char ASCII_SIGNS[] = "*o+x#@%&";
static const unsigned COLOURS[] = {34, 31, 32, 35, 33, 36, 94, 91};

/* --- filling the field --- */

static struct cell *cell_at(struct field *f, double x, double y)
{
    size_t column = (size_t)(x * (double)f->columns), row = (size_t)(y * (double)f->rows);
    column = column >= f->columns ? f->columns - 1 : column;
    row = row >= f->rows ? f->rows - 1 : row;
    return &f->cell[row * f->columns + column];
}

/* x and y from 0 to 1, y downwards. */
static void set_dot(struct field *f, double x, double y, size_t series)
{
    static const uint8_t bits[DOTS_Y][DOTS_X] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    struct cell *c = cell_at(f, x, y);
    size_t column = (size_t)(x * (double)f->columns * DOTS_X) % DOTS_X;
    size_t row = (size_t)(y * (double)f->rows * DOTS_Y) % DOTS_Y;
    if (x >= 1)
        column = DOTS_X - 1;
    if (y >= 1)
        row = DOTS_Y - 1;
    c->dots |= bits[row][column];
    c->series = (uint8_t)(series + 1);
}

static double place_x(const struct field *f, size_t at)
{
    return ((double)at + 0.5) / (double)f->plot->places;
}

/* The ends of the axis are in the middle of the first row and of the last: a row stands for what is nearest to its middle. */
static double axis_y(const struct field *f, double value)
{
    double down = fmin(fmax(1 - draw_axis_place(&f->axis, value), 0), 1);
    return (down * (double)(f->rows - 1) + 0.5) / (double)f->rows;
}

static double place_y(const struct field *f, double value)
{
    return axis_y(f, value / f->scale.divisor);
}

static void set_line(struct field *f, double x0, double y0, double x1, double y1, size_t series)
{
    double across = fabs(x1 - x0) * (double)f->columns * DOTS_X;
    double down = fabs(y1 - y0) * (double)f->rows * DOTS_Y;
    int steps = (int)ceil(fmax(fmax(across, down), 1));
    for (int i = 0; i <= steps; i++)
        set_dot(f, x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, series);
}

static void join(struct field *f, const struct view_plot_point *a, const struct view_plot_point *b,
                 size_t series)
{
    double x0 = place_x(f, a->at), y0 = place_y(f, a->value);
    double x1 = place_x(f, b->at), y1 = place_y(f, b->value);
    if (f->plot->is_stepped) {
        set_line(f, x0, y0, x1, y0, series);
        set_line(f, x1, y0, x1, y1, series);
    } else {
        set_line(f, x0, y0, x1, y1, series);
    }
}

static void fill_mark(struct field *f, double x)
{
    for (size_t row = 0; row < f->rows; row++)
        cell_at(f, x, ((double)row + 0.5) / (double)f->rows)->is_mark = true;
}

static void fill_series(struct field *f, size_t at)
{
    const struct view_plot_series *s = &f->panel->series[at];
    /* many points in few columns are a cloud, and lines would only blacken it */
    bool is_joined = f->marks == VIEW_PLOT_BRAILLE && s->count <= f->columns;
    for (size_t i = 0; i < s->count; i++) {
        set_dot(f, place_x(f, s->point[i].at), place_y(f, s->point[i].value), at);
        if (is_joined && i)
            join(f, &s->point[i - 1], &s->point[i], at);
    }
    for (size_t i = 0; i < s->changes; i++)
        fill_mark(f, place_x(f, s->point[s->change[i].at].at));
}

/* --- printing it --- */

static void put_cell(struct field *f, const struct cell *c)
{
    bool is_ascii = f->marks == VIEW_PLOT_ASCII;
    if (!c->series) {
        const char *mark = !c->is_mark ? " " : is_ascii ? ":" : "┊";
        fprintf(f->out, f->colour && c->is_mark ? "\033[2m%s\033[0m" : "%s", mark);
        return;
    }
    size_t series = (size_t)(c->series - 1);
    if (f->colour)
        fprintf(f->out, "\033[%um", COLOURS[series % ARRAY_LEN(COLOURS)]);
    if (f->marks == VIEW_PLOT_BRAILLE)
        fprintf(f->out, "\xe2%c%c", 0xa0 | c->dots >> 6, 0x80 | (c->dots & 0x3f));
    else if (is_ascii)
        fputc(ASCII_SIGNS[series % (sizeof ASCII_SIGNS - 1)], f->out);
    else
        fputs(SIGNS[series % ARRAY_LEN(SIGNS)], f->out);
    if (f->colour)
        fputs("\033[0m", f->out);
}

/* The label of the tick in this row, if there is one; its unit stands in the heading. */
static void put_tick(struct field *f, size_t row)
{
    const struct draw_axis *a = &f->axis;
    for (size_t i = 0; i < a->ticks; i++) {
        if ((size_t)(axis_y(f, a->tick[i]) * (double)f->rows) != row)
            continue;
        fprintf(f->out, "%*.*f %s", (int)f->gutter, a->decimals, a->tick[i],
                f->marks == VIEW_PLOT_ASCII ? "+" : "┤");
        return;
    }
    fprintf(f->out, "%*s %s", (int)f->gutter, "", f->marks == VIEW_PLOT_ASCII ? "|" : "│");
}

/* The first label at the left, the last at the right, one in the middle if there is room. */
static void put_labels(struct field *f)
{
    const struct view_plot *p = f->plot;
    bool is_ascii = f->marks == VIEW_PLOT_ASCII;
    fprintf(f->out, "%*s %s", (int)f->gutter, "", is_ascii ? "+" : "└");
    for (size_t i = 0; i < f->columns; i++)
        fputs(is_ascii ? "-" : "─", f->out);
    buf_clear(&f->text);
    const size_t places[] = {0, p->places / 2, p->places - 1};
    size_t used = 0;
    for (int i = 0; i < 3; i++) {
        const char *label = p->label[places[i]];
        size_t width = min_u64(view_text_width(label, strlen(label)), LABEL_COLUMNS);
        size_t from = i == 0   ? 0
                      : i == 1 ? f->columns / 2 - min_u64(width / 2, f->columns / 2)
                               : f->columns - min_u64(width, f->columns);
        bool is_same = i && places[i] == places[i - 1];
        bool has_room = !used || from >= used + 2;
        if (i == 1 && from + width + 2 + LABEL_COLUMNS > f->columns)
            has_room = false;
        if (is_same || !has_room)
            continue;
        for (; used < from; used++)
            buf_puts(&f->text, " ");
        view_text_fit(&f->text, label, strlen(label), LABEL_COLUMNS, VIEW_CUT_RIGHT);
        used += width;
    }
    fprintf(f->out, "\n%*s  %s\n", (int)f->gutter, "", buf_cstr(&f->text));
}

static void put_legend(struct field *f)
{
    for (size_t i = 0; i < f->panel->count; i++) {
        struct cell c = {.dots = 0x36, .series = (uint8_t)(i + 1)}; /* four dots in the middle */
        buf_clear(&f->text);
        view_text_fit(&f->text, f->panel->series[i].name, strlen(f->panel->series[i].name),
                      f->columns > 8 ? f->columns - 4 : 4, VIEW_CUT_MIDDLE);
        fprintf(f->out, "%*s  ", (int)f->gutter, "");
        put_cell(f, &c);
        fprintf(f->out, " %s\n", buf_cstr(&f->text));
    }
}

static void put_changes(struct field *f)
{
    bool is_ascii = f->marks == VIEW_PLOT_ASCII;
    for (size_t s = 0; s < f->panel->count; s++) {
        const struct view_plot_series *series = &f->panel->series[s];
        size_t first = series->changes > CHANGES_TOLD ? series->changes - CHANGES_TOLD : 0;
        if (first)
            fprintf(f->out, "%*s  %zu earlier changes\n", (int)f->gutter, "", first);
        for (size_t i = first; i < series->changes; i++) {
            const struct stats_change *c = &series->change[i];
            buf_clear(&f->text);
            const char *label = f->plot->label[series->point[c->at].at];
            view_text_fit(&f->text, label, strlen(label), LABEL_COLUMNS, VIEW_CUT_RIGHT);
            if (f->panel->count > 1) {
                buf_puts(&f->text, "  ");
                view_text_fit(&f->text, series->name, strlen(series->name), LABEL_COLUMNS,
                              VIEW_CUT_MIDDLE);
            }
            const char *sign = c->after > c->before ? is_ascii ? "^" : "▲" : is_ascii ? "v" : "▼";
            fprintf(f->out, "%*s  %s %s  %s %s %s  since %s\n", (int)f->gutter, "", sign,
                    view_plot_change_text(c).text,
                    view_quantity_text(f->panel->metric, c->before).text, is_ascii ? "->" : "→",
                    view_quantity_text(f->panel->metric, c->after).text, buf_cstr(&f->text));
        }
    }
}

/* About that many, so that there are as many from each tick to the next, and every tick is in the middle of its row. */
static size_t choose_rows(const struct draw_axis *axis, size_t want)
{
    size_t steps = axis->ticks > 1 ? axis->ticks - 1 : 1;
    return steps * max_u64((want - 1 + steps / 2) / steps, 1) + 1;
}

static int print_panel(struct field *f, unsigned width)
{
    struct view_plot_range range = view_plot_range_of(f->panel);
    f->scale = view_quantity_scale_for(f->panel->metric, fmax(fabs(range.low), fabs(range.high)));
    f->axis = draw_axis_around(range.low / f->scale.divisor, range.high / f->scale.divisor, STEPS);
    f->rows = choose_rows(&f->axis, f->plot->panels > 2 ? ROWS_OF_MANY : ROWS);
    f->gutter = GUTTER_LEAST;
    for (size_t i = 0; i < f->axis.ticks; i++) {
        int len = snprintf(NULL, 0, "%.*f", f->axis.decimals, f->axis.tick[i]);
        f->gutter = max_u64(f->gutter, (size_t)len);
    }
    f->columns = width > f->gutter + 12 ? width - f->gutter - 3 : 10;
    f->cell = calloc(f->columns * f->rows, sizeof *f->cell);
    if (!f->cell)
        return E_NOMEM;
    for (size_t i = 0; i < f->panel->count; i++)
        fill_series(f, view_plot_series_nth(f->panel, i));
    for (size_t i = 0; i < f->plot->marks; i++)
        fill_mark(f, place_x(f, f->plot->mark[i].at));
    const char *title = f->panel->title ? f->panel->title : f->panel->metric;
    fprintf(f->out, "%s%s%s%s%s%s\n", f->colour ? "\033[1m" : "", title, f->colour ? "\033[0m" : "",
            *f->scale.unit ? " (" : "", f->scale.unit, *f->scale.unit ? ")" : "");
    for (size_t row = 0; row < f->rows; row++) {
        put_tick(f, row);
        size_t last = f->columns;
        while (last && !f->cell[row * f->columns + last - 1].series &&
               !f->cell[row * f->columns + last - 1].is_mark)
            last--;
        for (size_t i = 0; i < last; i++)
            put_cell(f, &f->cell[row * f->columns + i]);
        fputc('\n', f->out);
    }
    put_labels(f);
    if (f->panel->count > 1)
        put_legend(f);
    put_changes(f);
    free(f->cell);
    f->cell = NULL;
    return buf_error(&f->text);
}

int view_plot_print(const struct view_plot *plot, FILE *out, struct view_style style,
                    enum view_plot_marks marks)
{
    unsigned width = style.width ? style.width : WIDTH;
    width = width < WIDTH_LEAST ? WIDTH_LEAST : width > WIDTH_MOST ? WIDTH_MOST : width;
    struct field f = {.plot = plot, .marks = marks, .colour = style.colour, .out = out};
    buf_init(&f.text, TEXT_MAX);
    int r = 0;
    view_text_fit(&f.text, plot->title, strlen(plot->title), width, VIEW_CUT_MIDDLE);
    fprintf(out, "%s\n", buf_cstr(&f.text));
    if (plot->facts)
        fprintf(out, "%s\n", plot->facts);
    for (size_t i = 0; r == 0 && i < plot->panels; i++) {
        f.panel = &plot->panel[i];
        fputc('\n', out);
        r = print_panel(&f, width);
    }
    buf_release(&f.text);
    if (r == 0 && (fflush(out) != 0 || ferror(out)))
        r = err_from_errno(errno);
    return r;
}
