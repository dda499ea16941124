/* The report: one table of rows, for people, as JSON (docs/json.md is the contract) or as CSV. */
#ifndef PYROMETER_VIEW_REPORT_H
#define PYROMETER_VIEW_REPORT_H

#include "analysis/edges.h"
#include "analysis/select.h"
#include "view/emit.h"

struct view_report {
    const struct analysis_weights *weights;
    const struct analysis_rows *rows;
    const struct analysis_selection *selection;
    const struct analysis_edges *edges; /* needed if one of the next two is set; NULL else */
    bool callers, callees;
    const struct analysis_select *select; /* what the selection was made by; NULL: not to be told */
};

/* 0, E_NOMEM, or why the output could not be written. */
int view_report_print(const struct view_report *report, FILE *out, enum view_format format,
                      struct view_style style);

#endif
