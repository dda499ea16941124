/* The call tree on a screen, to walk through: the model (view/tree_model.h) drawn, and keys that change
 * it. Keys are listed by `?` and in docs/man/pyrometer-tree.md. */
#ifndef PYROMETER_VIEW_TREE_SCREEN_H
#define PYROMETER_VIEW_TREE_SCREEN_H

#include "analysis/calltree.h"
#include "view/screen.h"

/* Nodes of a tree that is walked through; what is lighter is folded. */
enum { VIEW_TREE_SCREEN_NODES = 200000 };

/* Until the user quits, or screen_key() says stop. `tree` is a grown one on the heap and is owned from
 * here on, also on failure; `query` is the one it was made with, for other metrics and turns. 0, or why
 * it could not go on. */
int view_tree_browse(struct screen *screen, const struct profile *profile,
                     const struct analysis_query *query, struct analysis_calltree *tree);

#endif
