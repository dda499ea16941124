/* An aligned text table: rows are gathered, then columns get the width they need, or, on a terminal
 * too narrow, the text columns share what is there. Cells must be harmless text already (text.h).
 */
#ifndef PYROMETER_VIEW_TABLE_H
#define PYROMETER_VIEW_TABLE_H

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdio.h>

enum { VIEW_TABLE_MAX_COLUMNS = 24 };

enum view_table_align { VIEW_RIGHT, VIEW_LEFT_CUT_LEFT, VIEW_LEFT_CUT_MIDDLE };

struct view_table_cell {
    size_t at; /* into bytes */
    uint32_t len;
    uint32_t width;
};

struct view_table {
    size_t column_count;
    enum view_table_align align[VIEW_TABLE_MAX_COLUMNS];
    struct buf bytes;
    VEC(struct view_table_cell) cells; /* row after row; the first row is the heading */
    VEC(uint8_t) faint;                /* one for each row */
};

void view_table_init(struct view_table *t);
void view_table_release(struct view_table *t);

/* Columns first, then rows: a row is a call of _row and then one of _cell for each column. */
void view_table_column(struct view_table *t, enum view_table_align align);
void view_table_row(struct view_table *t, bool faint);
void view_table_cell(struct view_table *t, const char *text, size_t len);

/* `width` 0: nothing is cut. 0 or E_NOMEM. */
int view_table_print(struct view_table *t, FILE *out, unsigned width, bool colour);

#endif
