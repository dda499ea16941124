/* The call graph for graphviz: a box for each function with its share, itself and in all; an arrow
 * for each call with the share of the stacks it stands in. What is too cheap to be seen is left
 * out, and a comment and the graph's label say how much that was. */
#include "analysis/edges.h"
#include "export/source.h"

#include "base/err.h"

enum {
    NAME_BYTES_MAX = 120,
    NODES_MAX = 400, /* graphviz takes minutes beyond that, and nobody can read it */
};
static const double NODE_LEAST = 0.005, EDGE_LEAST = 0.001; /* of the whole */

struct writing {
    const struct export_source *source;
    const struct analysis_edges *edges;
    double total;
    uint8_t *shown; /* by row */
    size_t nodes, nodes_left, edges_left;
    struct buf buf;
};

static double share(const struct writing *w, uint64_t weight)
{
    return w->total > 0 ? (double)weight / w->total : 0;
}

/* In a quoted string of dot, '"' ends it and '\' begins an escape (\N, \G, \l, …). */
static void put_quoted(struct buf *b, struct profile_string text)
{
    size_t from = b->len;
    struct buf plain;
    buf_init(&plain, EXPORT_BUF_MAX);
    export_put_line(&plain, text, NAME_BYTES_MAX);
    for (size_t i = 0; i < plain.len; i++) {
        if (plain.data[i] == '"' || plain.data[i] == '\\')
            buf_put_u8(b, '\\');
        buf_put_u8(b, plain.data[i]);
    }
    if (b->len == from)
        buf_put_u8(b, '?');
    buf_release(&plain);
}

/* From pale yellow to dark red, by share; as hue, saturation and value, which graphviz takes. */
static void put_heat(struct buf *b, double s)
{
    double heat = s > 1 ? 1 : s < 0 ? 0 : s;
    unsigned hue = (unsigned)(150 * (1 - heat)), saturation = 100 + (unsigned)(800 * heat);
    buf_printf(b, "0.%03u 0.%03u 0.%03u", hue, saturation, 990 - (unsigned)(290 * heat));
}

static void choose_nodes(struct writing *w)
{
    const struct analysis_rows *rows = &w->source->rows;
    double least = NODE_LEAST;
    for (;; least *= 1.5) { /* ends: no share is above 1, and few can be near it */
        w->nodes = w->nodes_left = 0;
        for (size_t i = 0; i < rows->count; i++) {
            uint64_t weight = rows->row[i].total.weight;
            w->shown[i] = weight && share(w, weight) >= least;
            w->nodes += w->shown[i];
            w->nodes_left += weight && !w->shown[i];
        }
        if (w->nodes <= NODES_MAX || least > 1)
            return;
    }
}

static void put_node(struct writing *w, size_t at)
{
    const struct analysis_row *row = &w->source->rows.row[at];
    double self = share(w, row->self.weight), total = share(w, row->total.weight);
    struct buf *b = &w->buf;
    buf_printf(b, "  n%zu [label=\"", at);
    put_quoted(b, row->name);
    if (row->file.len) {
        const char *slash = memrchr(row->file.text, '/', row->file.len);
        size_t skip = slash ? (size_t)(slash + 1 - row->file.text) : 0;
        buf_puts(b, "\\n");
        put_quoted(b,
                   (struct profile_string){row->file.text + skip, row->file.len - (uint32_t)skip});
        if (row->line)
            buf_printf(b, ":%u", row->line);
    }
    buf_printf(b, "\\nself %.1f %%\\ntotal %.1f %%\", tooltip=\"", self * 100, total * 100);
    put_quoted(b, row->file.len ? row->file : row->name);
    buf_puts(b, "\", fillcolor=\"");
    put_heat(b, self);
    buf_printf(b, "\", fontsize=%u, weight=%u];\n", 10 + (unsigned)(14 * self),
               (unsigned)(total * 1000));
}

static bool is_shown(const struct writing *w, const struct analysis_edge *e)
{
    return w->shown[e->caller] && w->shown[e->callee] && share(w, e->total.weight) >= EDGE_LEAST;
}

static void put_edge(struct writing *w, const struct analysis_edge *e)
{
    double part = share(w, e->total.weight);
    struct buf *b = &w->buf;
    buf_printf(b, "  n%u -> n%u [label=\"%.1f %%\", penwidth=%u.%u, weight=%u, color=\"", e->caller,
               e->callee, part * 100, 1 + (unsigned)(5 * part), (unsigned)(50 * part) % 10,
               1 + (unsigned)(part * 100));
    put_heat(b, part);
    buf_puts(b, "\"];\n");
}

static int write_graph(struct writing *w, const struct profile *profile, FILE *out)
{
    const struct analysis_rows *rows = &w->source->rows;
    const struct analysis_metric *m = w->source->query.metric;
    struct buf *b = &w->buf;
    choose_nodes(w);
    for (size_t i = 0; i < w->edges->count; i++)
        w->edges_left += !is_shown(w, &w->edges->by_caller[i]);
    const char *command = profile_meta_value(profile, "command");
    struct profile_string title = {command ? command : "", 0};
    title.len = (uint32_t)strlen(title.text);
    buf_printf(b,
               "// pyrometer " PYROMETER_VERSION ": %s, %zu functions; left out: %zu functions and "
               "%zu calls below %.1f %% and %.1f %% of the whole\n",
               m->name, w->nodes, w->nodes_left, w->edges_left, NODE_LEAST * 100, EDGE_LEAST * 100);
    buf_puts(b, "digraph pyrometer {\n  graph [labelloc=t, fontname=\"sans-serif\", label=\"");
    put_quoted(b, title);
    buf_printf(b, "\\n%s; %zu of %zu functions\"];\n", m->name, w->nodes, w->nodes + w->nodes_left);
    buf_puts(b, "  node [shape=box, style=filled, fontname=\"sans-serif\"];\n"
                "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    int r = 0;
    for (size_t i = 0; r == 0 && i < rows->count; i++) {
        if (w->shown[i])
            put_node(w, i);
        r = export_drain(b, out, false);
    }
    for (size_t i = 0; r == 0 && i < w->edges->count; i++) {
        if (is_shown(w, &w->edges->by_caller[i]))
            put_edge(w, &w->edges->by_caller[i]);
        r = export_drain(b, out, false);
    }
    buf_puts(b, "}\n");
    if (r == 0)
        r = export_drain(b, out, true);
    return r < 0 ? r : export_finish(out);
}

int export_dot_write(const struct profile *profile, const struct export_options *options, FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_FUNCTION, &source);
    if (r < 0)
        return r;
    struct analysis_edges edges = {0};
    struct writing w = {.source = &source, .edges = &edges};
    w.total = (double)source.weights.total.weight;
    w.shown = calloc(source.rows.count + 1, 1);
    buf_init(&w.buf, EXPORT_BUF_MAX);
    r = w.shown ? analysis_edges_init(&source.rows, &edges) : E_NOMEM;
    if (r == 0)
        r = write_graph(&w, profile, out);
    analysis_edges_release(&edges);
    buf_release(&w.buf);
    free(w.shown);
    export_source_release(&source);
    return r;
}
