/* A metric's value for people. The name of a metric tells its unit by its end (`_sec`, `_kb`,
 * `_bytes`) or its beginning (`pct_`); anything else is a plain number. */
#ifndef PYROMETER_VIEW_QUANTITY_H
#define PYROMETER_VIEW_QUANTITY_H

#include "view/units.h"

enum view_quantity {
    VIEW_QUANTITY_NUMBER,
    VIEW_QUANTITY_SECONDS,
    VIEW_QUANTITY_BYTES,
    VIEW_QUANTITY_PERCENT
};

enum view_quantity view_quantity_of(const char *metric);

/* "1.23 s", "45.6 MiB", "97.0 %", "1,234"; "?" of NaN. `metric` says the scale too (`_kb`). */
struct view_units_text view_quantity_text(const char *metric, double value);

/* One scale for a whole axis: numbers are divided by `divisor` and read in `unit` ("" for none). */
struct view_quantity_scale {
    double divisor;
    const char *unit;
};
struct view_quantity_scale view_quantity_scale_for(const char *metric, double largest);

#endif
