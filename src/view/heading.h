/* What stands around a table of weights: which run, how much of what, how sure, what was lost; and
 * what is said instead of a table where there is none. The same words for every view. */
#ifndef PYROMETER_VIEW_HEADING_H
#define PYROMETER_VIEW_HEADING_H

#include "analysis/weights.h"
#include "view/emit.h"
#include "view/units.h"

/* Fewer samples than this say nothing about a program: the views say so instead. */
enum { VIEW_LEAST_SAMPLES = 20 };

/* True if the recording holds too little to make a table of. */
bool view_is_too_short(const struct analysis_weights *weights);

/* How the metric is shown, and a weight of it for people. */
enum view_kind view_metric_kind(const struct analysis_metric *metric);
struct view_units_text view_weight_text(const struct analysis_metric *metric, uint64_t weight);

/* What the weights' samples are: "sample", "block"; of exact calls "entry". */
const char *view_heading_unit(const struct analysis_weights *w, bool plural);

/* "1.23 s wall time", "12,345 samples"; appended. */
void view_heading_total(const struct analysis_metric *metric, uint64_t weight, struct buf *out);
void view_heading_samples(const struct analysis_weights *w, uint64_t samples, struct buf *out);

/* Said in the heading of all times of a recording with exact lines (docs/overhead.md). */
#define VIEW_HEADING_LINE_PROBES "what the probes of lines cost is in these times"

/* metric, unit, total, samples and too_short in an open object. */
void view_heading_facts(struct json *j, const struct analysis_weights *w);

/* "run 0123abcd  python app.py" */
void view_heading_run(struct view_emit *e, const struct profile *profile);

/* That line, and one that says how much there is and how sure it is; `worst_error` in points. */
void view_heading_print(struct view_emit *e, const struct analysis_weights *w, double worst_error);

/* The same for exact calls, with how many of them were not recursive. */
void view_heading_exact(struct view_emit *e, const struct analysis_weights *w, uint64_t primitive);

/* After the table: what was lost, if anything. */
void view_heading_losses(struct view_emit *e, const struct analysis_weights *w);

/* Instead of a table: too few samples, or none that the filters leave. */
void view_heading_too_short(struct view_emit *e, const struct analysis_weights *w);
void view_heading_nothing_left(struct view_emit *e, const struct analysis_weights *w);

#endif
