/* `pyrometer graph`: who calls whom and what it costs, as a picture. */
#include "view/graph.h"

#include "base/buf.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "cmd/output.h"
#include "export/dot.h"

enum { FILTERS_BYTES_MAX = 64 << 10 };
static const double SCALE_LEAST = 0.1, SCALE_MOST = 8;

enum graph_kind { GRAPH_SVG, GRAPH_PNG, GRAPH_DOT };

struct graph_options {
    const char *output, *title;
    bool force, no_clusters;
    double min_percent, min_edge_percent, scale;
    bool has_scale;
    uint64_t limit;
    struct cmd_query_options query;
};

/* The command line, understood. */
struct graph_request {
    const struct graph_options *options;
    enum graph_kind kind;
    struct analysis_query query;
    struct analysis_callgraph_options prune;
    struct buf filters; /* as the user gave them */
};

static int check_output(const char *output, enum graph_kind *ret)
{
    static const char *const suffixes[] = {
        [GRAPH_SVG] = ".svg", [GRAPH_PNG] = ".png", [GRAPH_DOT] = ".dot"};
    if (!output)
        return cmd_fail(CMD_USAGE, "graph needs a file to draw into: -o graph.svg, .png or .dot");
    for (int kind = GRAPH_SVG; kind <= GRAPH_DOT; kind++)
        if (cmd_output_has_suffix(output, suffixes[kind])) {
            *ret = (enum graph_kind)kind;
            return 0;
        }
    return cmd_fail(
        CMD_USAGE, "-o '%s': the name ends in .svg, .png or .dot, which says what to draw", output);
}

static int check_numbers(const struct graph_options *o, enum graph_kind kind)
{
    if (o->min_percent > 100)
        return cmd_fail(CMD_USAGE, "--min-percent %g: it is between 0 and 100", o->min_percent);
    if (o->min_edge_percent > 100)
        return cmd_fail(CMD_USAGE, "--min-edge-percent %g: it is between 0 and 100",
                        o->min_edge_percent);
    if (!o->limit || o->limit > ANALYSIS_CALLGRAPH_NODES_MAX)
        return cmd_fail(CMD_USAGE, "--limit %llu: it is between 1 and %d",
                        (unsigned long long)o->limit, ANALYSIS_CALLGRAPH_NODES_MAX);
    if (o->has_scale && kind != GRAPH_PNG)
        return cmd_fail(CMD_USAGE, "--scale is for .png; the others have no pixels");
    if (o->scale < SCALE_LEAST || o->scale > SCALE_MOST)
        return cmd_fail(CMD_USAGE, "--scale %g: it is between %g and %g", o->scale, SCALE_LEAST,
                        SCALE_MOST);
    return 0;
}

static int understand(struct graph_options *o, struct graph_request *q)
{
    int status = check_output(o->output, &q->kind);
    if (!status)
        status = check_numbers(o, q->kind);
    if (!status)
        status = cmd_query_make(&o->query, &q->query);
    if (status)
        return status;
    q->prune = (struct analysis_callgraph_options){
        .least_node = o->min_percent / 100,
        .least_edge = o->min_edge_percent / 100,
        .max_nodes = o->limit,
    };
    cmd_query_describe(&o->query, &q->filters);
    return 0;
}

/* --- the picture --- */

static int write_picture(const struct graph_request *q, const struct analysis_callgraph *graph,
                         FILE *out)
{
    const struct graph_options *o = q->options;
    if (q->kind == GRAPH_DOT) {
        struct export_dot dot = {graph, o->title, !o->no_clusters};
        return export_dot_write_graph(&dot, out);
    }
    struct view_graph view = {
        .graph = graph,
        .title = o->title,
        .filters = buf_cstr((struct buf *)&q->filters),
        .clusters = !o->no_clusters,
    };
    if (q->kind == GRAPH_SVG)
        return view_graph_write_svg(&view, out);
    double scale;
    int r = view_graph_write_png(&view, o->scale, out, &scale);
    if (r == 0 && scale < o->scale)
        cmd_warn("the picture is large: drawn at scale %.3g instead of %g; .svg has no such limit",
                 scale, o->scale);
    return r;
}

static int draw(const struct graph_request *q, const struct analysis_callgraph *graph,
                const char *recording)
{
    struct cmd_output output;
    int status = cmd_output_open(q->options->output, q->options->force, recording, &output);
    if (status)
        return status;
    return cmd_output_close(&output, write_picture(q, graph, output.file));
}

/* Thresholds can leave nothing, which is no picture either. */
static int check_graph(const struct analysis_callgraph *g, const char *path)
{
    if (g->node_count)
        return 0;
    return cmd_fail(CMD_FAILED,
                    "nothing to draw: no function of '%s' reaches %g %%; lower --min-percent", path,
                    g->options.least_node * 100);
}

static int draw_weights(const struct graph_request *q, const struct analysis_weights *weights)
{
    const char *path = profile_path(weights->profile);
    if (!weights->total.weight)
        return cmd_fail(CMD_FAILED, "nothing to draw: '%s' holds no samples%s", path,
                        weights->recorded_samples ? " that pass the filters" : "");
    struct analysis_rows rows = {0};
    struct analysis_callgraph graph = {0};
    int r = analysis_rows_init(weights, ANALYSIS_BY_FUNCTION, &rows);
    if (r == 0)
        r = analysis_callgraph_init(&rows, &q->prune, &graph);
    int status = r < 0 ? cmd_fail(CMD_FAILED, "cannot make the graph: %s", err_text(r))
                       : check_graph(&graph, path);
    if (!status)
        status = draw(q, &graph, path);
    analysis_callgraph_release(&graph);
    analysis_rows_release(&rows);
    return status;
}

static int draw_run(const struct graph_request *q, const char *name)
{
    struct profile *profile = NULL;
    int status = cmd_load_run(name, &profile);
    if (status)
        return status;
    struct analysis_weights weights;
    int r = analysis_weights_init(profile, &q->query, &weights);
    if (r < 0) {
        status = cmd_load_failed(profile_path(profile), r);
    } else {
        status = cmd_query_check(&q->query, profile);
        if (!status)
            status = draw_weights(q, &weights);
        analysis_weights_release(&weights);
    }
    profile_free(profile);
    return status;
}

int cmd_graph(int argc, char **argv)
{
    struct graph_options o = {
        .min_percent = ANALYSIS_CALLGRAPH_LEAST_NODE * 100,
        .min_edge_percent = ANALYSIS_CALLGRAPH_LEAST_EDGE * 100,
        .limit = ANALYSIS_CALLGRAPH_NODES,
        .scale = VIEW_GRAPH_SCALE,
    };
    const struct cmd_option options[] = {
        {"output", 'o', CMD_TEXT, &o.output, NULL},
        {"force", 0, CMD_FLAG, &o.force, NULL},
        {"min-percent", 0, CMD_REAL, &o.min_percent, NULL},
        {"min-edge-percent", 0, CMD_REAL, &o.min_edge_percent, NULL},
        {"limit", 0, CMD_COUNT, &o.limit, NULL},
        {"no-clusters", 0, CMD_FLAG, &o.no_clusters, NULL},
        {"scale", 0, CMD_REAL, &o.scale, &o.has_scale},
        {"title", 0, CMD_TEXT, &o.title, NULL},
        CMD_QUERY_OPTIONS(&o.query),
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands > 1)
        return cmd_fail(CMD_USAGE, "graph takes one RUN, not %d", operands);

    struct graph_request q = {.options = &o};
    buf_init(&q.filters, FILTERS_BYTES_MAX);
    int status = understand(&o, &q);
    if (!status)
        status = draw_run(&q, operands ? argv[first] : "@");
    buf_release(&q.filters);
    cmd_query_release(&o.query);
    return status;
}
