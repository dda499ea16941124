/* From a call graph to boxes and arrows with texts, and these laid out. */
#include "view/graph_picture.h"

#include "base/err.h"
#include "view/colour.h"
#include "view/heading.h"
#include "view/text.h"

#include <math.h>

enum {
    NAME_COLUMNS = 32,
    PLACE_COLUMNS = 38,
    TIP_BYTES = 600, /* of a name or a path in a tip, before escaping */
    TEXT_BYTES_MAX = 64 << 10,
    LEAST_WIDTH = 760, /* room for the heading */
    BOX_LEAST = 96,
};

double graph_share(const struct graph_picture *p, uint64_t weight)
{
    double whole = (double)p->view->graph->rows->weights->total.weight;
    double part = whole > 0 ? (double)weight / whole : 0;
    return part > 1 ? 1 : part; /* what another profiler timed may not add up */
}

/* --- texts --- */

/* Escapes the beginning of a text: what a picture shows of it is far shorter still. */
static void escape_head(struct buf *b, const char *text, size_t len)
{
    size_t n = len > TIP_BYTES ? TIP_BYTES : len;
    while (n < len && n > TIP_BYTES - 4 && ((uint8_t)text[n] & 0xc0) == 0x80)
        n--; /* not in the middle of a character */
    view_text_escape(b, text, n);
    if (n < len)
        buf_puts(b, "…");
}

static char *fitted(const char *text, size_t len, size_t columns, enum view_text_cut cut)
{
    struct buf escaped, b;
    buf_init(&escaped, TEXT_BYTES_MAX);
    buf_init(&b, TEXT_BYTES_MAX);
    /* the end of a long name matters as much as its beginning */
    if (len > TIP_BYTES && cut == VIEW_CUT_LEFT)
        escape_head(&escaped, text + len - TIP_BYTES / 2, TIP_BYTES / 2);
    else
        escape_head(&escaped, text, len);
    view_text_fit(&b, (const char *)escaped.data, escaped.len, columns, cut);
    buf_release(&escaped);
    return buf_detach(&b);
}

static char *place_text(const struct analysis_row *row)
{
    if (!row->file.len)
        return NULL;
    const char *slash = memrchr(row->file.text, '/', row->file.len);
    size_t skip = slash ? (size_t)(slash + 1 - row->file.text) : 0;
    struct buf b;
    buf_init(&b, TEXT_BYTES_MAX);
    char *file =
        fitted(row->file.text + skip, row->file.len - skip, PLACE_COLUMNS - 8, VIEW_CUT_MIDDLE);
    buf_puts(&b, file ? file : "");
    free(file);
    if (row->line)
        buf_printf(&b, ":%u", row->line);
    return buf_detach(&b);
}

static void put_share(struct buf *b, double share)
{
    buf_puts(b, view_units_percent(100 * share).text);
}

static char *shares_text(const struct graph_picture *p, const struct analysis_row *row)
{
    struct buf b;
    buf_init(&b, TEXT_BYTES_MAX);
    buf_puts(&b, "total ");
    put_share(&b, graph_share(p, row->total.weight));
    buf_puts(&b, "  self ");
    put_share(&b, graph_share(p, row->self.weight));
    return buf_detach(&b);
}

/* Recursive calls are told apart: "120 / 10×", of which 10 came from outside. */
static char *calls_text(const struct analysis_row *row)
{
    struct buf b;
    buf_init(&b, TEXT_BYTES_MAX);
    buf_puts(&b, view_units_count(row->calls).text);
    if (row->primitive_calls && row->primitive_calls != row->calls)
        buf_printf(&b, " / %s", view_units_count(row->primitive_calls).text);
    buf_puts(&b, "×");
    return buf_detach(&b);
}

static void put_weight(const struct graph_picture *p, struct buf *b, const char *word,
                       struct analysis_weight w)
{
    const struct analysis_weights *weights = p->view->graph->rows->weights;
    buf_printf(b, "\n%s %s (", word, view_weight_text(weights->metric, w.weight).text);
    put_share(b, graph_share(p, w.weight));
    if (!analysis_weights_counted(weights) && strcmp(weights->metric->name, "samples") != 0) {
        buf_puts(b, ", ");
        view_heading_samples(weights, w.samples, b);
    }
    buf_puts(b, ")");
}

static char *box_tip(const struct graph_picture *p, const struct analysis_callgraph_node *node)
{
    const struct analysis_callgraph *g = p->view->graph;
    const struct analysis_row *row = &g->rows->row[node->row];
    struct buf b;
    buf_init(&b, TEXT_BYTES_MAX);
    escape_head(&b, row->name.text, row->name.len);
    if (*g->module[node->module]) {
        buf_puts(&b, "\nmodule ");
        escape_head(&b, g->module[node->module], strlen(g->module[node->module]));
    }
    if (row->file.len) {
        buf_puts(&b, "\n");
        escape_head(&b, row->file.text, row->file.len);
        if (row->line)
            buf_printf(&b, ":%u", row->line);
    }
    put_weight(p, &b, "total", row->total);
    put_weight(p, &b, "self", row->self);
    if (row->calls)
        buf_printf(&b, "\n%s calls", view_units_count(row->calls).text);
    if (row->calls && row->primitive_calls != row->calls)
        buf_printf(&b, ", %s of them not from inside itself",
                   view_units_count(row->primitive_calls).text);
    if (node->cycle)
        buf_puts(&b, "\npart of a circle of calls");
    return buf_detach(&b);
}

/* --- boxes and arrows --- */

static double box_width(const struct graph_box *box)
{
    double widest = BOX_LEAST;
    for (int i = 0; i < GRAPH_LINES; i++)
        if (box->line[i])
            widest =
                fmax(widest, 20 + (i ? GRAPH_SMALL_COLUMN : GRAPH_NAME_COLUMN) *
                                      (double)view_text_width(box->line[i], strlen(box->line[i])));
    return ceil(widest);
}

static int add_box(struct graph_picture *p, const struct analysis_callgraph_node *node)
{
    const struct analysis_row *row = &p->view->graph->rows->row[node->row];
    struct graph_box *box = vec_push(&p->boxes);
    if (!box)
        return E_NOMEM;
    const char *name = row->name.len ? row->name.text : "?";
    box->line[0] = fitted(name, row->name.len ? row->name.len : 1, NAME_COLUMNS, VIEW_CUT_MIDDLE);
    box->line[1] = place_text(row);
    box->line[2] = shares_text(p, row);
    box->line[3] = row->calls ? calls_text(row) : NULL;
    box->tip = box_tip(p, node);
    box->special = row->special;
    box->in_cycle = node->cycle != 0;
    if (!box->line[0] || !box->line[2] || !box->tip)
        return E_NOMEM;
    double self = graph_share(p, row->self.weight);
    box->fill = row->special ? view_colour_oklch(0.90, 0, 0)
                : self > 0   ? view_colour_heat(sqrt(self / p->hottest))
                             : 0xffffff;
    box->width = box_width(box);
    /* one height for all that were counted and one for all that were not: rows look calm */
    box->height =
        8 + GRAPH_LINE * (analysis_weights_counted(p->view->graph->rows->weights) ? 4 : 3) + 5;
    return 0;
}

static char *arrow_label(const struct graph_picture *p, const struct analysis_callgraph_edge *e)
{
    struct buf b;
    buf_init(&b, TEXT_BYTES_MAX);
    put_share(&b, graph_share(p, e->total.weight));
    if (e->calls)
        buf_printf(&b, " %s×", view_units_count(e->calls).text);
    return buf_detach(&b);
}

static char *arrow_tip(const struct graph_picture *p, const struct analysis_callgraph_edge *e)
{
    struct buf b;
    buf_init(&b, TEXT_BYTES_MAX);
    buf_printf(&b, "%s → %s", p->boxes.data[e->from].line[0], p->boxes.data[e->to].line[0]);
    put_weight(p, &b, "total", e->total);
    if (e->calls)
        buf_printf(&b, "\n%s calls", view_units_count(e->calls).text);
    if (e->is_recursion)
        buf_puts(&b, "\nrecursion");
    return buf_detach(&b);
}

static int add_arrow(struct graph_picture *p, const struct analysis_callgraph_edge *e)
{
    struct graph_arrow *arrow = vec_push(&p->arrows);
    if (!arrow)
        return E_NOMEM;
    double share = graph_share(p, e->total.weight);
    arrow->from = e->from;
    arrow->to = e->to;
    arrow->width = 1.1 + 5 * share;
    arrow->recursion = e->is_recursion;
    p->has_recursion |= e->is_recursion;
    arrow->colour = e->is_recursion ? view_colour_oklch(0.56, 0.17, 300)
                                    : view_colour_oklch(0.76 - 0.36 * sqrt(share), 0.035, 260);
    arrow->label = arrow_label(p, e);
    arrow->tip = arrow_tip(p, e);
    return arrow->label && arrow->tip ? 0 : E_NOMEM;
}

static int add_module(struct graph_picture *p, const char *name)
{
    struct graph_module *module = vec_push(&p->modules);
    if (!module)
        return E_NOMEM;
    uint32_t hue = view_colour_module_hue(name);
    *module = (struct graph_module){
        .name = fitted(name, strlen(name), TIP_BYTES, VIEW_CUT_LEFT),
        .tint = view_colour_oklch(0.955, 0.022, hue),
        .ink = view_colour_oklch(0.50, 0.09, hue),
    };
    return module->name ? 0 : E_NOMEM;
}

static int fill(struct graph_picture *p)
{
    const struct analysis_callgraph *g = p->view->graph;
    int r = 0;
    for (size_t i = 0; i < g->node_count; i++)
        p->hottest = fmax(p->hottest, graph_share(p, g->rows->row[g->node[i].row].self.weight));
    for (size_t i = 0; r == 0 && i < g->module_count; i++)
        r = add_module(p, g->module[i]);
    for (size_t i = 0; r == 0 && i < g->node_count; i++)
        r = add_box(p, &g->node[i]);
    for (size_t i = 0; r == 0 && i < g->edge_count; i++)
        r = add_arrow(p, &g->edge[i]);
    return r;
}

/* --- layout --- */

static void move_layout(struct graph_picture *p, double x, double y)
{
    struct draw_layout *l = &p->layout;
    for (size_t i = 0; i < l->point_count; i++) {
        l->point[i].x += x;
        l->point[i].y += y;
    }
    for (size_t i = 0; i < l->patch_count; i++) {
        l->patch[i].left += x;
        l->patch[i].right += x;
        l->patch[i].top += y;
        l->patch[i].bottom += y;
    }
    for (size_t i = 0; i < p->boxes.len; i++) {
        l->box[i].x += x;
        l->box[i].y += y;
        p->boxes.data[i].at = l->box[i];
    }
}

static int lay_out(struct graph_picture *p)
{
    const struct analysis_callgraph *g = p->view->graph;
    _cleanup_free_ struct draw_box *box = calloc(g->node_count + 1, sizeof *box);
    _cleanup_free_ struct draw_arrow *arrow = calloc(g->edge_count + 1, sizeof *arrow);
    if (!box || !arrow)
        return E_NOMEM;
    for (size_t i = 0; i < g->node_count; i++) {
        bool grouped = p->view->clusters && *g->module[g->node[i].module];
        box[i] = (struct draw_box){p->boxes.data[i].width, p->boxes.data[i].height,
                                   grouped ? g->node[i].module : DRAW_NONE};
    }
    for (size_t i = 0; i < g->edge_count; i++)
        arrow[i] = (struct draw_arrow){g->edge[i].from, g->edge[i].to,
                                       (double)g->edge[i].total.weight + 1e-9};
    struct draw_graph graph = {box, g->node_count, arrow, g->edge_count, GRAPH_PATCH_HEAD};
    int r = draw_layout_init(&graph, &p->layout);
    if (r < 0)
        return r;
    double inner = fmax(p->layout.width, LEAST_WIDTH);
    p->width = ceil(inner + 2 * GRAPH_MARGIN);
    move_layout(p, floor(GRAPH_MARGIN + (inner - p->layout.width) / 2), GRAPH_TOP);
    p->legend_y = ceil(GRAPH_TOP + p->layout.height + 30);
    p->notes_y = p->legend_y + GRAPH_LEGEND;
    return 0;
}

int graph_picture_init(const struct view_graph *view, struct graph_picture *ret)
{
    struct graph_picture p = {.view = view};
    buf_init(&p.title, TEXT_BYTES_MAX);
    buf_init(&p.facts, TEXT_BYTES_MAX);
    int r = fill(&p);
    r = r < 0 ? r : lay_out(&p);
    r = r < 0 ? r : graph_words_fill(&p);
    if (r < 0) {
        graph_picture_release(&p);
        return r;
    }
    graph_labels_place(&p);
    graph_heads_place(&p);
    p.height = p.notes_y + (double)p.notes.len * GRAPH_NOTE_LINE + 6;
    *ret = p;
    return 0;
}

void graph_picture_release(struct graph_picture *p)
{
    for (size_t i = 0; i < p->boxes.len; i++) {
        for (int k = 0; k < GRAPH_LINES; k++)
            free(p->boxes.data[i].line[k]);
        free(p->boxes.data[i].tip);
    }
    for (size_t i = 0; i < p->arrows.len; i++) {
        free(p->arrows.data[i].label);
        free(p->arrows.data[i].tip);
    }
    for (size_t i = 0; i < p->modules.len; i++)
        free(p->modules.data[i].name);
    for (size_t i = 0; i < p->notes.len; i++)
        free(p->notes.data[i]);
    vec_release(&p->boxes);
    vec_release(&p->arrows);
    vec_release(&p->modules);
    vec_release(&p->notes);
    draw_layout_release(&p->layout);
    buf_release(&p->title);
    buf_release(&p->facts);
}
