/* The picture behind both kinds of call graph: boxes and arrows with their places, colours and
 * harmless texts; heading, legend and notes. The writers only have to draw them. Inside view only
 * (and for unit tests). */
#ifndef PYROMETER_VIEW_GRAPH_PICTURE_H
#define PYROMETER_VIEW_GRAPH_PICTURE_H

#include "base/buf.h"
#include "base/vec.h"
#include "draw/layout.h"
#include "view/graph.h"

/* Sizes in the picture's units, which are pixels at scale 1. Texts are set in a font of fixed
 * width, so that what fits can be told without measuring; widths are per column. */
#define GRAPH_NAME_COLUMN  7.3
#define GRAPH_SMALL_COLUMN 6.4
enum {
    GRAPH_MARGIN = 24,
    GRAPH_TOP = 72, /* title and facts */
    GRAPH_NAME_SIZE = 12,
    GRAPH_SMALL_SIZE = 10,
    GRAPH_BOX_TOP = 17, /* base line of the name */
    GRAPH_LINE = 14,    /* from line to line, in boxes */
    GRAPH_NOTE_LINE = 17,
    GRAPH_LEGEND = 46,
    GRAPH_PATCH_HEAD = 15,
};

/* Points of an arrow's head. */
enum { GRAPH_HEAD = 4 };

/* The lines of a box: name, place, shares, calls. */
enum { GRAPH_LINES = 4 };

struct graph_box {
    struct draw_point at; /* its middle */
    double width, height;
    char *line[GRAPH_LINES]; /* owned; NULL: none */
    char *tip;               /* owned */
    uint32_t fill;
    bool special, in_cycle;
};

struct graph_arrow {
    uint32_t from, to; /* boxes */
    double width;
    uint32_t colour;
    bool recursion;
    struct draw_point head[GRAPH_HEAD]; /* the tip first; the way ends inside it */
    struct draw_point label_at;         /* the middle of the label's base line */
    char *label, *tip;                  /* owned */
};

struct graph_module {
    char *name;    /* owned */
    uint32_t tint; /* the ground under its functions */
    uint32_t ink;  /* its name on it */
};

struct graph_picture {
    const struct view_graph *view; /* borrowed */
    double width, height;
    double legend_y, notes_y;
    struct draw_layout layout; /* with the margins added */
    VEC(struct graph_box) boxes;
    VEC(struct graph_arrow) arrows;
    VEC(struct graph_module) modules;
    double hottest; /* the largest own share, 0–1 */
    bool has_recursion;
    struct buf title, facts;
    VEC(char *) notes; /* each owned */
};

int graph_picture_init(const struct view_graph *view, struct graph_picture *ret);
void graph_picture_release(struct graph_picture *p);

/* Title, facts and notes. */
int graph_words_fill(struct graph_picture *p);

/* A share for people: "12.3 %". */
double graph_share(const struct graph_picture *p, uint64_t weight);

/* Places the labels of arrows that have a layout, where they hide neither boxes nor each other, as
 * far as that can be had. */
void graph_labels_place(struct graph_picture *p);

/* Gives every arrow its head, and ends its way there. */
void graph_heads_place(struct graph_picture *p);

/* The point at `t` (0–1) on a piece of a curve: four points. */
struct draw_point graph_curve_at(const struct draw_point *p, double t);

#endif
