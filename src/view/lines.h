/* Annotated source: the lines of each file with what was seen of them, for people, as JSON
 * (docs/json.md is the contract) or as CSV. */
#ifndef PYROMETER_VIEW_LINES_H
#define PYROMETER_VIEW_LINES_H

#include "analysis/lines.h"
#include "profile/source.h"
#include "view/emit.h"

struct view_lines {
    const struct analysis_lines *lines;
    const struct analysis_lines_select *select;
    const struct profile_sources *sources;
};

/* 0, E_NOMEM, or why the output could not be written. */
int view_lines_print(const struct view_lines *view, FILE *out, enum view_format format,
                     struct view_style style);

#endif
