/* The call graph in graphviz's language: what `export dot` writes and `graph -o x.dot`. */
#ifndef PYROMETER_EXPORT_DOT_H
#define PYROMETER_EXPORT_DOT_H

#include "analysis/callgraph.h"

#include <stdio.h>

struct export_dot {
    const struct analysis_callgraph *graph;
    const char *title; /* NULL: the command that was recorded */
    bool clusters;     /* a frame around the functions of each module */
};

/* All borrowed for the call. 0, or why the output could not be written. */
int export_dot_write_graph(const struct export_dot *dot, FILE *out);

#endif
