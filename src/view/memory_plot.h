/* Memory over time, as a plot (view/plot.h: in the terminal, .svg and .png), as JSON (docs/json.md is the
 * contract) and as CSV. One panel for each process, the highest peaks first; the program's marks go
 * through all of them. */
#ifndef PYROMETER_VIEW_MEMORY_PLOT_H
#define PYROMETER_VIEW_MEMORY_PLOT_H

#include "analysis/curves.h"
#include "view/plot.h"

struct view_memory_plot; /* owns what the plot below points to */

/* The curves and the profile are borrowed and must outlive it. 0 or E_NOMEM. */
int view_memory_plot_new(const struct profile *profile, const struct analysis_curves *curves,
                         struct view_memory_plot **ret);
void view_memory_plot_free(struct view_memory_plot *plot);
const struct view_plot *view_memory_plot_of(const struct view_memory_plot *plot);

/* JSON or CSV. 0, E_NOMEM, or why the output could not be written. */
int view_memory_plot_data(const struct profile *profile, const struct analysis_curves *curves,
                          FILE *out, enum view_format format);

#endif
