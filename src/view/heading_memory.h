/* What stands above a table of memory, inside of the headings that all views have (heading.h). */
#ifndef PYROMETER_VIEW_HEADING_MEMORY_H
#define PYROMETER_VIEW_HEADING_MEMORY_H

#include "analysis/weights.h"
#include "view/emit.h"

/* How much, in how many blocks, of which moment, and how sure. */
void view_heading_memory(struct view_emit *e, const struct analysis_weights *w);

/* The same in an open object: `memory`. */
void view_heading_memory_facts(struct json *j, const struct analysis_weights *w);

/* Half of the 95 % interval of an estimate with that variance; absent if it is not known. */
struct view_cell view_memory_error_cell(double variance);

#endif
