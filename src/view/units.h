/* Numbers for people: three digits and a unit. Machines get the plain number from emit.h. */
#ifndef PYROMETER_VIEW_UNITS_H
#define PYROMETER_VIEW_UNITS_H

#include <stddef.h>
#include <stdint.h>

enum { VIEW_UNITS_SIZE = 32 };

struct view_units_text {
    char text[VIEW_UNITS_SIZE];
};

struct view_units_text view_units_seconds(double seconds); /* "1.23 s" "45.6 ms" "2 h 03 min" */
struct view_units_text view_units_percent(double percent); /* "45.6 %" */
struct view_units_text view_units_bytes(double bytes);     /* "1.50 MiB" */
struct view_units_text view_units_count(uint64_t count);   /* "1,234,567" */

#endif
