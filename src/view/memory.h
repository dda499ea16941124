/* Tables of memory by function, line or file: what the peak was made of, what was never given back, what
 * was given back at once. For people, as JSON (docs/json.md is the contract) and as CSV. */
#ifndef PYROMETER_VIEW_MEMORY_H
#define PYROMETER_VIEW_MEMORY_H

#include "analysis/leaks.h"
#include "analysis/select.h"
#include "view/emit.h"

/* What the interpreter keeps for its whole life, told apart from what the program does. */
struct view_memory_runtime {
    bool is_shown; /* it is among the rows */
    struct analysis_weight all, no_python;
};

struct view_memory {
    const struct analysis_rows *rows; /* of a metric of memory */
    const struct analysis_selection *selection;
    /* Of leaks; NULL else. */
    const struct analysis_growth *growth;
    const struct view_memory_runtime *runtime;
    const struct analysis_arenas *arenas;
    /* Of what was given back at once: the same rows of the metric `count`; NULL else. */
    const struct analysis_rows *allocations;
};

/* 0, E_NOMEM, or why the output could not be written. */
int view_memory_print(const struct view_memory *view, FILE *out, enum view_format format,
                      struct view_style style);

/* The table alone, inside of another view: `key` names its array, `title` is a line above it. */
void view_memory_table(const struct view_memory *view, struct view_emit *e, const char *key);

#endif
