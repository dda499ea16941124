/* The call tree as somebody walks through it: which nodes are open, which lines that makes, where
 * the cursor stands, what is searched for. It knows no terminal; view/tree_screen.c draws it.
 *
 * What always holds: the lines are the visible nodes in order, the cursor is on one of them (or there
 * are none), and its line is within the `height` lines from `top` on. */
#ifndef PYROMETER_VIEW_TREE_MODEL_H
#define PYROMETER_VIEW_TREE_MODEL_H

#include "analysis/calltree.h"
#include "base/buf.h"
#include "base/vec.h"

enum tree_sort { TREE_SORT_TOTAL, TREE_SORT_SELF, TREE_SORT_NAME, TREE_SORT_COUNT };
extern const char *const TREE_SORT_NAMES[TREE_SORT_COUNT];

struct tree_line {
    uint32_t node;
    uint32_t level; /* of indentation: an only child stands at its parent's */
};

struct tree_model {
    const struct analysis_calltree *t; /* borrowed */
    uint8_t *open;                     /* for each node: its children are shown */
    VEC(struct tree_line) lines;
    size_t cursor, top, height;
    enum tree_sort sort;
    VEC(uint32_t) order; /* all nodes but the root in depth-first order; made when it is needed */
    uint8_t *found;      /* for each node: the search matches; NULL: there is no search */
    size_t found_count;
    uint32_t hottest; /* the node of the last jump; 0: none */
    /* rooms that are used again */
    VEC(struct tree_line) todo;
    VEC(uint32_t) children;
    struct buf scratch;
};

/* Opens what carries half of the whole or more, so that the first look shows where it forks. 0 or
 * E_NOMEM. */
int tree_model_init(struct tree_model *m, const struct analysis_calltree *t);
void tree_model_release(struct tree_model *m);

/* How many lines can be seen at a time, at least one. */
void tree_model_resize(struct tree_model *m, size_t height);

/* The node under the cursor; 0 where there are no lines. */
uint32_t tree_model_node(const struct tree_model *m);

/* True if the node has children to show. */
bool tree_model_can_open(const struct tree_model *m, uint32_t node);

void tree_model_move(struct tree_model *m, ptrdiff_t lines); /* stops at both ends */

/* Opening and closing; 0 or E_NOMEM. Right: open, or go to the first child. Left: close, or go to
 * the parent. */
int tree_model_toggle(struct tree_model *m);
int tree_model_right(struct tree_model *m);
int tree_model_left(struct tree_model *m);

/* Opens the heaviest way down from the cursor and goes to its end. */
int tree_model_descend(struct tree_model *m);

/* Goes to the node with the largest self (bottom up: the largest total, which is the self of the
 * functions that the tree begins with); when it is there already, to the next one. */
int tree_model_hottest(struct tree_model *m);

int tree_model_sort(struct tree_model *m, enum tree_sort sort); /* the cursor stays on its node */

/* Opens what is above the node and goes there. */
int tree_model_show(struct tree_model *m, uint32_t node);

/* Searches all nodes, open or not, as --include does. _next goes to the next one that matches, round
 * the end; it goes nowhere if nothing does. */
int tree_model_search(struct tree_model *m, const regex_t *match);
int tree_model_next(struct tree_model *m, bool backwards);

/* Goes where the other model's cursor is, and opens what is open there, as far as the same names are
 * found: for a tree of the same recording and another question. */
int tree_model_follow(struct tree_model *m, const struct tree_model *other);

#endif
