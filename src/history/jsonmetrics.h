/* Numbers out of other people's JSON, as metrics of a run. */
#ifndef PYROMETER_HISTORY_JSONMETRICS_H
#define PYROMETER_HISTORY_JSONMETRICS_H

#include "history/run.h"

/* Every number in the text becomes a metric: `prefix`, then the keys on the way to it, with points between;
 * elements of arrays by their position, but for an array of one. A text whose only value is a string with JSON in it is
 * unpacked once more (that is how TileDB's statistics are written). E_BADJSON: no JSON (metrics found before stay), E_LIMIT,
 * E_NOMEM. */
int history_run_add_json(struct history_run *run, const char *prefix, const void *data, size_t len);

/* Lines {"name": …, "value": …}; how many were not that goes to *ret_bad. */
int history_run_add_metric_lines(struct history_run *run, const void *data, size_t len,
                                 size_t *ret_bad);

#endif
