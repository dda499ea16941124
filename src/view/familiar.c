#include "view/familiar.h"

#include "analysis/match.h"

#include <inttypes.h>
#include <stdio.h>

void view_familiar_name(const struct analysis_row *row, struct buf *out)
{
    if (row->is_c) {
        analysis_match_c_name(row->name, out);
        return;
    }
    if (!row->special) {
        buf_append(out, row->file.text, row->file.len);
        buf_printf(out, ":%u(", row->line);
    }
    buf_append(out, row->name.text, row->name.len);
    buf_puts(out, row->special ? "" : ")");
}

struct view_familiar_calls view_familiar_calls(uint64_t calls, uint64_t primitive)
{
    struct view_familiar_calls c;
    int n = snprintf(c.text, sizeof c.text, "%" PRIu64, calls);
    if (primitive != calls)
        n += snprintf(c.text + n, sizeof c.text - (size_t)n, "/%" PRIu64, primitive);
    c.len = (size_t)n;
    return c;
}
