/* What a call graph says in words above and below, and where the labels of its arrows stand. */
#include "view/graph.h"

#include "base/err.h"
#include "view/graph_picture.h"
#include "view/heading.h"
#include "view/run.h"
#include "view/text.h"

#include <math.h>

enum { LINE_BYTES_MAX = 64 << 10, TITLE_BYTES = 160 };

/* --- words --- */

/* Takes the buffer's content over as one more note. */
static int add_note(struct graph_picture *p, struct buf *b)
{
    char *line = buf_detach(b);
    char **slot = line ? vec_push(&p->notes) : NULL;
    if (!slot) {
        free(line);
        return E_NOMEM;
    }
    *slot = line;
    return 0;
}

static int fill_title(struct graph_picture *p)
{
    const struct view_graph *view = p->view;
    struct buf text;
    buf_init(&text, LINE_BYTES_MAX);
    if (view->title)
        view_text_escape(&text, view->title, strnlen(view->title, LINE_BYTES_MAX / 8));
    else
        view_run_command(view->graph->rows->weights->profile, &text);
    if (text.error == E_LIMIT) /* a command of many pages: its beginning must do */
        text.error = 0;
    if (!text.len)
        buf_puts(&text, "call graph");
    size_t columns = (size_t)((p->width - 2 * GRAPH_MARGIN) / 10.5);
    view_text_fit(&p->title, (const char *)text.data, text.len,
                  columns < TITLE_BYTES ? columns : TITLE_BYTES, VIEW_CUT_MIDDLE);
    int r = buf_error(&text) ? buf_error(&text) : buf_error(&p->title);
    buf_release(&text);
    return r;
}

static void next_fact(struct buf *b)
{
    if (b->len)
        buf_puts(b, "  ·  ");
}

static int fill_facts(struct graph_picture *p)
{
    const struct analysis_callgraph *g = p->view->graph;
    const struct analysis_weights *w = g->rows->weights;
    struct buf *b = &p->facts, word;
    buf_init(&word, LINE_BYTES_MAX);
    view_heading_total(w->metric, w->total.weight, b);
    if (analysis_weights_counted(w) && !w->calls)
        buf_printf(b, "  ·  %s calls", view_units_count(w->total.samples).text);
    else if (strcmp(w->metric->name, "samples") != 0) {
        next_fact(b);
        view_heading_samples(w, w->total.samples, b);
    }
    next_fact(b);
    buf_printf(b, "%zu of %zu functions", g->node_count, g->node_count + g->nodes_left);
    view_run_pythons(w->profile, &word);
    if (word.len) {
        next_fact(b);
        buf_printf(b, "Python %s", buf_cstr(&word));
    }
    buf_clear(&word);
    view_run_day(w->profile, &word);
    if (word.len) {
        next_fact(b);
        buf_puts(b, buf_cstr(&word));
    }
    buf_release(&word);
    return buf_error(b);
}

static void put_percent(struct buf *b, double share)
{
    buf_printf(b, "%.3g %%", 100 * share);
}

/* Which of the two thresholds cut is said as it was: by share, by number, or by both. */
static int note_functions(struct graph_picture *p, struct buf *b)
{
    const struct analysis_callgraph *g = p->view->graph;
    if (!g->nodes_left)
        return 0;
    buf_printf(b, "left out: %s function%s", view_units_count(g->nodes_left).text,
               g->nodes_left == 1 ? "" : "s");
    if (g->node_count == g->options.max_nodes) {
        buf_puts(b, ", each at most ");
        put_percent(b, graph_share(p, g->left_heaviest));
    } else {
        buf_puts(b, " below ");
        put_percent(b, g->options.least_node);
    }
    buf_puts(b, " of the whole; together they took ");
    buf_puts(b, view_units_percent(100 * graph_share(p, g->left_self.weight)).text);
    buf_puts(b, " themselves");
    return add_note(p, b);
}

static int note_calls(struct graph_picture *p, struct buf *b)
{
    const struct analysis_callgraph *g = p->view->graph;
    if (!g->edges_left)
        return 0;
    buf_printf(b, "left out: %s call%s between these functions, below ",
               view_units_count(g->edges_left).text, g->edges_left == 1 ? "" : "s");
    put_percent(b, g->options.least_edge);
    buf_puts(b, " of the whole");
    return add_note(p, b);
}

static int fill_notes(struct graph_picture *p)
{
    const struct analysis_weights *w = p->view->graph->rows->weights;
    struct buf b, losses;
    buf_init(&b, LINE_BYTES_MAX);
    buf_init(&losses, LINE_BYTES_MAX);
    int r = note_functions(p, &b);
    r = r < 0 ? r : note_calls(p, &b);
    if (r == 0 && p->view->filters && *p->view->filters) {
        buf_puts(&b, "only ");
        view_text_escape(&b, p->view->filters, strnlen(p->view->filters, LINE_BYTES_MAX / 8));
        r = add_note(p, &b);
    }
    if (r == 0 && profile_tables(w->profile)->counts && !w->exact) {
        buf_puts(&b, "this file holds counts of calls and no stacks: what the filters leave is an "
                     "estimate");
        r = add_note(p, &b);
    }
    view_run_losses(w->profile, w->damaged_chunks, &losses);
    if (r == 0 && losses.len) {
        buf_printf(&b, "the recording: %s", buf_cstr(&losses));
        r = add_note(p, &b);
    }
    buf_release(&losses);
    buf_release(&b);
    return r;
}

int graph_words_fill(struct graph_picture *p)
{
    int r = fill_title(p);
    r = r < 0 ? r : fill_facts(p);
    return r < 0 ? r : fill_notes(p);
}

/* --- labels of arrows --- */

enum { LABEL_HEIGHT = 11, LABELS_COMPARED = 400 };

struct area {
    double left, top, right, bottom;
};

struct draw_point graph_curve_at(const struct draw_point *p, double t)
{
    double u = 1 - t, a = u * u * u, b = 3 * u * u * t, c = 3 * u * t * t, d = t * t * t;
    return (struct draw_point){a * p[0].x + b * p[1].x + c * p[2].x + d * p[3].x,
                               a * p[0].y + b * p[1].y + c * p[2].y + d * p[3].y};
}

static bool meets(struct area a, struct area b)
{
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

static struct area label_area(const struct graph_arrow *a, struct draw_point at)
{
    double half = GRAPH_SMALL_COLUMN * (double)view_text_width(a->label, strlen(a->label)) / 2;
    return (struct area){at.x - half, at.y - LABEL_HEIGHT, at.x + half, at.y + 2};
}

static bool is_free(const struct graph_picture *p, size_t arrow, struct area area)
{
    for (size_t i = 0; i < p->boxes.len; i++) {
        const struct graph_box *b = &p->boxes.data[i];
        if (meets(area, (struct area){b->at.x - b->width / 2, b->at.y - b->height / 2,
                                      b->at.x + b->width / 2, b->at.y + b->height / 2}))
            return false;
    }
    for (size_t i = 0; i < arrow; i++)
        if (meets(area, label_area(&p->arrows.data[i], p->arrows.data[i].label_at)))
            return false;
    return true;
}

/* The places that are tried: on the last piece, which leads to the callee, then on the others. */
static struct draw_point candidate(const struct graph_picture *p, size_t arrow, int number)
{
    static const double along[] = {0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8};
    const struct draw_route *route = &p->layout.route[arrow];
    const struct draw_point *point = p->layout.point + route->first;
    size_t pieces = (route->count - 1) / 3;
    size_t piece = (size_t)number / ARRAY_LEN(along) % pieces;
    piece = route->back ? piece : pieces - 1 - piece;
    struct draw_point at =
        graph_curve_at(point + 3 * piece, along[(size_t)number % ARRAY_LEN(along)]);
    if (route->loop)
        at.x += 4 + GRAPH_SMALL_COLUMN * 3;
    at.y += 3.5;
    return at;
}

void graph_labels_place(struct graph_picture *p)
{
    enum { TRIES = 14 };
    for (size_t i = 0; i < p->arrows.len; i++) {
        struct graph_arrow *a = &p->arrows.data[i];
        a->label_at = candidate(p, i, 0);
        /* bounded: beyond so many labels nobody reads them one by one */
        for (int n = 0; i < LABELS_COMPARED && n < TRIES; n++) {
            struct draw_point at = candidate(p, i, n);
            if (is_free(p, i, label_area(a, at))) {
                a->label_at = at;
                break;
            }
        }
    }
}

/* --- heads of arrows --- */

/* Heads grow with their line, or a thick one would hide its own. */
void graph_heads_place(struct graph_picture *p)
{
    for (size_t i = 0; i < p->arrows.len; i++) {
        struct graph_arrow *a = &p->arrows.data[i];
        const struct draw_route *route = &p->layout.route[i];
        struct draw_point *end = p->layout.point + route->first + route->count - 1;
        double length = hypot(end->x - end[-1].x, end->y - end[-1].y);
        if (length <= 0)
            length = 1;
        double x = (end->x - end[-1].x) / length, y = (end->y - end[-1].y) / length;
        double back = 8 + 1.2 * a->width, half = 3.4 + 0.75 * a->width;
        a->head[0] = (struct draw_point){end->x, end->y};
        a->head[1] =
            (struct draw_point){end->x - back * x - half * y, end->y - back * y + half * x};
        a->head[2] = (struct draw_point){end->x - 0.72 * back * x, end->y - 0.72 * back * y};
        a->head[3] =
            (struct draw_point){end->x - back * x + half * y, end->y - back * y - half * x};
        *end = (struct draw_point){end->x - 0.6 * back * x, end->y - 0.6 * back * y};
    }
}
