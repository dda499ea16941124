/* Functions and counts as pstats writes them. */
#ifndef PYROMETER_VIEW_FAMILIAR_H
#define PYROMETER_VIEW_FAMILIAR_H

#include "analysis/rows.h"
#include "base/buf.h"

/* "app.py:12(main)", "{built-in method time.sleep}"; appended. */
void view_familiar_name(const struct analysis_row *row, struct buf *out);

/* "3" or, with recursion, "177/1". */
struct view_familiar_calls {
    char text[48];
    size_t len;
};
struct view_familiar_calls view_familiar_calls(uint64_t calls, uint64_t primitive);

#endif
