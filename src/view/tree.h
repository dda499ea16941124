/* The call tree as text, JSON or CSV.
 *
 * In text a node that has brothers and sisters is drawn as a branch; an only child stands right
 * under its parent, at the same margin: a Python stack is long and most of it does not fork. Where
 * folded nodes carry enough to be missed they have a line; the last line says what they are in all.
 */
#ifndef PYROMETER_VIEW_TREE_H
#define PYROMETER_VIEW_TREE_H

#include "analysis/calltree.h"
#include "view/emit.h"

/* JSON nests, and its readers do not nest for ever: a tree for JSON has at most so many levels. */
enum { VIEW_TREE_JSON_DEPTH = 120 };

/* A tree that was only weighed, not grown, is fine where view_is_too_short() holds. */
int view_tree_print(const struct analysis_calltree *tree, FILE *out, enum view_format format,
                    struct view_style style);

/* "file.py:12" of a label, "" where it has none; appended as it is, to be escaped. */
void view_tree_where(struct buf *out, const struct analysis_row *label);

#endif
