/* The call graph for graphviz: a box for each function with its share, itself and in all, and its
 * calls where they were counted; an arrow for each call with the share of the stacks it stands in,
 * dashed where it is recursion; a cluster for each module. What is too cheap to be seen is left
 * out, and a comment and the graph's label say how much that was. */
#include "export/dot.h"

#include "base/err.h"
#include "export/source.h"

enum { NAME_BYTES_MAX = 120 };

struct writing {
    const struct analysis_callgraph *graph;
    double total;
    struct buf buf;
};

static double share(const struct writing *w, uint64_t weight)
{
    double part = w->total > 0 ? (double)weight / w->total : 0;
    return part > 1 ? 1 : part;
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

static void put_quoted_text(struct buf *b, const char *text)
{
    put_quoted(b, (struct profile_string){text, (uint32_t)strnlen(text, EXPORT_CHUNK_BYTES)});
}

/* From pale yellow to dark red, by share; as hue, saturation and value, which graphviz takes. */
static void put_heat(struct buf *b, double heat)
{
    unsigned hue = (unsigned)(150 * (1 - heat)), saturation = 100 + (unsigned)(800 * heat);
    buf_printf(b, "0.%03u 0.%03u 0.%03u", hue, saturation, 990 - (unsigned)(290 * heat));
}

static void put_node(struct writing *w, size_t at)
{
    const struct analysis_row *row = &w->graph->rows->row[w->graph->node[at].row];
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
    buf_printf(b, "\\nself %.1f %%\\ntotal %.1f %%", self * 100, total * 100);
    if (row->calls) {
        buf_puts(b, "\\n");
        export_put_u64(b, row->calls);
        buf_puts(b, "×");
    }
    buf_puts(b, "\", tooltip=\"");
    put_quoted(b, row->file.len ? row->file : row->name);
    buf_puts(b, "\", fillcolor=\"");
    put_heat(b, self);
    buf_printf(b, "\", fontsize=%u, weight=%u%s];\n", 10 + (unsigned)(14 * self),
               (unsigned)(total * 1000), w->graph->node[at].cycle ? ", peripheries=2" : "");
}

static void put_edge(struct writing *w, const struct analysis_callgraph_edge *e)
{
    double part = share(w, e->total.weight);
    struct buf *b = &w->buf;
    buf_printf(b, "  n%u -> n%u [label=\"%.1f %%", e->from, e->to, part * 100);
    if (e->calls) {
        buf_puts(b, "\\n");
        export_put_u64(b, e->calls);
        buf_puts(b, "×");
    }
    buf_printf(b, "\", penwidth=%u.%u, weight=%u, color=\"", 1 + (unsigned)(5 * part),
               (unsigned)(50 * part) % 10, 1 + (unsigned)(part * 100));
    put_heat(b, part);
    buf_printf(b, "\"%s];\n", e->is_recursion ? ", style=dashed" : "");
}

static void put_head(struct writing *w, const char *title)
{
    const struct analysis_callgraph *g = w->graph;
    const char *metric = g->rows->weights->metric->name;
    struct buf *b = &w->buf;
    buf_printf(b,
               "// pyrometer " PYROMETER_VERSION ": %s, %zu functions; left out: %zu functions and "
               "%zu calls below %.1f %% and %.1f %% of the whole, %.1f %% in themselves\n",
               metric, g->node_count, g->nodes_left, g->edges_left, g->options.least_node * 100,
               g->options.least_edge * 100, share(w, g->left_self.weight) * 100);
    buf_puts(b, "digraph pyrometer {\n  graph [labelloc=t, fontname=\"sans-serif\", label=\"");
    put_quoted_text(b, title);
    buf_printf(b, "\\n%s; %zu of %zu functions\"];\n", metric, g->node_count,
               g->node_count + g->nodes_left);
    buf_puts(b, "  node [shape=box, style=filled, fontname=\"sans-serif\"];\n"
                "  edge [fontname=\"sans-serif\", fontsize=9];\n");
}

static int put_nodes(struct writing *w, bool clusters, FILE *out)
{
    const struct analysis_callgraph *g = w->graph;
    int r = 0;
    for (size_t m = 0; r == 0 && m < (clusters ? g->module_count : 1); m++) {
        bool framed = clusters && *g->module[m];
        if (framed) {
            buf_printf(&w->buf,
                       "  subgraph cluster_%zu { style=\"rounded,filled\"; color=\"#d8dde6\"; "
                       "fillcolor=\"#f6f7fa\"; label=\"",
                       m);
            put_quoted_text(&w->buf, g->module[m]);
            buf_puts(&w->buf, "\";\n");
        }
        for (size_t i = 0; r == 0 && i < g->node_count; i++) {
            if (clusters && g->node[i].module != m)
                continue;
            put_node(w, i);
            r = export_drain(&w->buf, out, false);
        }
        if (framed)
            buf_puts(&w->buf, "  }\n");
    }
    return r;
}

int export_dot_write_graph(const struct export_dot *dot, FILE *out)
{
    const struct analysis_callgraph *g = dot->graph;
    const struct analysis_weights *weights = g->rows->weights;
    struct writing w = {.graph = g, .total = (double)weights->total.weight};
    const char *command = profile_meta_value(weights->profile, "command");
    buf_init(&w.buf, EXPORT_BUF_MAX);
    put_head(&w, dot->title ? dot->title : command ? command : "");
    int r = put_nodes(&w, dot->clusters, out);
    for (size_t i = 0; r == 0 && i < g->edge_count; i++) {
        put_edge(&w, &g->edge[i]);
        r = export_drain(&w.buf, out, false);
    }
    buf_puts(&w.buf, "}\n");
    if (r == 0)
        r = export_drain(&w.buf, out, true);
    buf_release(&w.buf);
    return r < 0 ? r : export_finish(out);
}

int export_dot_write(const struct profile *profile, const struct export_options *options, FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_FUNCTION, &source);
    if (r < 0)
        return r;
    struct analysis_callgraph graph = {0};
    struct analysis_callgraph_options prune = {
        .least_node = ANALYSIS_CALLGRAPH_LEAST_NODE,
        .least_edge = ANALYSIS_CALLGRAPH_LEAST_EDGE,
        .max_nodes = ANALYSIS_CALLGRAPH_NODES,
    };
    r = analysis_callgraph_init(&source.rows, &prune, &graph);
    if (r == 0) {
        struct export_dot dot = {.graph = &graph, .clusters = true};
        r = export_dot_write_graph(&dot, out);
    }
    analysis_callgraph_release(&graph);
    export_source_release(&source);
    return r;
}
