/* Annotated source with exact hits and times: as pprofile prints it, or function by function as
 * line_profiler does, or as JSON (docs/json.md) or CSV. */
#ifndef PYROMETER_VIEW_EXACT_LINES_H
#define PYROMETER_VIEW_EXACT_LINES_H

#include "analysis/exact_lines.h"
#include "profile/source.h"
#include "view/emit.h"

enum view_exact_style { VIEW_PPROFILE, VIEW_LINE_PROFILER };

struct view_exact_lines {
    const struct analysis_exact_lines *exact;
    const struct analysis_lines_select *select; /* min_samples are hits */
    const struct profile_sources *sources;
    enum view_exact_style style;
    bool whole_files; /* every line of a file, not only of functions that ran */
};

/* 0, E_NOMEM, or why the output could not be written. */
int view_exact_lines_print(const struct view_exact_lines *view, FILE *out, enum view_format format,
                           struct view_style style);

#endif
