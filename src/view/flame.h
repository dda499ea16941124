/* Flame graphs: a call tree, or stacks along time, as one file that needs nothing else: a page
 * (.html, drawn by its own script) or a picture (.svg, drawn already, with a small script for
 * zooming and searching).
 *
 * Whatever stands in a name stays text. A page's script is the only one that its content security
 * policy lets run, and the policy forbids the network. */
#ifndef PYROMETER_VIEW_FLAME_H
#define PYROMETER_VIEW_FLAME_H

#include "analysis/sequence.h"
#include "analysis/tree.h"

#include <stdio.h>

#define VIEW_FLAME_COLOUR_LIST(X)                                                                  \
    X(MODULE, "module")                                                                            \
    X(CHANGE, "change")                                                                            \
    X(HEAT, "heat")

enum view_flame_colour {
#define X(id, name) VIEW_FLAME_##id,
    VIEW_FLAME_COLOUR_LIST(X)
#undef X
        VIEW_FLAME_COLOUR_COUNT
};

extern const char *const VIEW_FLAME_COLOURS[VIEW_FLAME_COLOUR_COUNT + 1]; /* NULL ends it */

/* How many blocks a picture is made of: levels of detail. A page draws what is visible and so takes
 * many and stays below 20 MB; a browser gets slow with more elements in an .svg than this. */
enum { VIEW_FLAME_HTML_BLOCKS = 120000, VIEW_FLAME_SVG_BLOCKS = 10000 };

/* All borrowed for the call. Either `tree` or `sequence` is there. */
struct view_flame {
    const struct analysis_rows *rows;
    const struct analysis_rows *before; /* of the run before: a differential graph; NULL else */
    const struct analysis_tree *tree;
    const struct analysis_sequence *sequence;
    bool bottom_up, by_line, by_thread;
    enum view_flame_colour colour; /* CHANGE only with `before` */
    const char *title;             /* NULL: the command */
    const char *filters;           /* as the user gave them, for the heading; NULL: none */
};

/* 0, E_NOMEM, or why the output could not be written. */
int view_flame_write_html(const struct view_flame *flame, FILE *out);
int view_flame_write_svg(const struct view_flame *flame, FILE *out);

#endif
