/* The call graph as a picture that needs nothing else: .svg (with a small script that shows a
 * function's callers and callees, and searches) or .png.
 *
 * A box is a function: its name, where it is, its share in all and by itself, its calls where they
 * were counted; filled by its own heat. An arrow is a call, as thick as its share; recursion is
 * dashed, and a function that calls itself has a loop. Functions of one module stand together on a
 * ground of the module's colour. Whatever stands in a name stays text. */
#ifndef PYROMETER_VIEW_GRAPH_H
#define PYROMETER_VIEW_GRAPH_H

#include "analysis/callgraph.h"

#include <stdio.h>

/* All borrowed for the call. */
struct view_graph {
    const struct analysis_callgraph *graph;
    const char *title;   /* NULL: the command */
    const char *filters; /* as the user gave them, for the heading; NULL: none */
    bool clusters;       /* functions of a module stand together */
};

/* Pixels of a .png for each of the picture's units, where the user does not say. */
#define VIEW_GRAPH_SCALE 2.0

/* 0, E_NOMEM, or why the output could not be written. */
int view_graph_write_svg(const struct view_graph *view, FILE *out);

/* The scale falls where the picture would become too large (draw/canvas.h); *ret_scale is what was
 * used. */
int view_graph_write_png(const struct view_graph *view, double scale, FILE *out, double *ret_scale);

#endif
