/* The functions and lines that explain a difference: for people, for a pull request, as JSON. */
#ifndef PYROMETER_VIEW_CULPRIT_H
#define PYROMETER_VIEW_CULPRIT_H

#include "analysis/culprit.h"
#include "view/emit.h"

/* A table of the blamed, or a line that nobody is; then what is needed to read it. */
void view_culprits_print(struct view_emit *emit, const struct analysis_culprits *c);

/* The keys of docs/json.md, inside the object that is open. */
void view_culprits_json(struct json *j, const struct analysis_culprits *c);

/* A list in markdown. */
void view_culprits_markdown(FILE *out, const struct analysis_culprits *c);

/* "parse (app.py:31), line 38" of the first that is blamed for growth; false if there is none. */
bool view_culprit_first(const struct analysis_culprits *c, struct buf *out);

#endif
