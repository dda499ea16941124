/* The aligned table. */
#include "view/table.h"

#include "base/err.h"
#include "view/text.h"

enum {
    TABLE_BYTES_MAX = 1 << 30,
    GAP = 2,              /* columns between columns */
    LEAST_TEXT_WIDTH = 12 /* a text column is not cut below this */
};

void view_table_init(struct view_table *t)
{
    *t = (struct view_table){0};
    buf_init(&t->bytes, TABLE_BYTES_MAX);
}

void view_table_release(struct view_table *t)
{
    buf_release(&t->bytes);
    vec_release(&t->cells);
    vec_release(&t->faint);
    t->column_count = 0;
}

void view_table_column(struct view_table *t, enum view_table_align align)
{
    if (t->column_count < VIEW_TABLE_MAX_COLUMNS)
        t->align[t->column_count++] = align;
}

void view_table_row(struct view_table *t, bool faint)
{
    uint8_t *slot = vec_push(&t->faint);
    if (slot)
        *slot = faint;
    else
        t->bytes.error = E_NOMEM;
}

void view_table_cell(struct view_table *t, const char *text, size_t len)
{
    struct view_table_cell *cell = vec_push(&t->cells);
    if (!cell) {
        t->bytes.error = E_NOMEM;
        return;
    }
    *cell =
        (struct view_table_cell){t->bytes.len, (uint32_t)len, (uint32_t)view_text_width(text, len)};
    buf_append(&t->bytes, text, len);
}

static void measure(const struct view_table *t, size_t *widths)
{
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = 0;
    for (size_t i = 0; i < t->cells.len; i++) {
        size_t *w = &widths[i % t->column_count];
        *w = t->cells.data[i].width > *w ? t->cells.data[i].width : *w;
    }
}

/* Takes columns from the widest text column until the table fits or no more can be taken. */
static void shrink(const struct view_table *t, size_t *widths, size_t width)
{
    size_t sum = GAP * (t->column_count - 1);
    for (size_t c = 0; c < t->column_count; c++)
        sum += widths[c];
    while (sum > width) {
        size_t widest = t->column_count;
        for (size_t c = 0; c < t->column_count; c++) {
            if (t->align[c] == VIEW_RIGHT || widths[c] <= LEAST_TEXT_WIDTH)
                continue;
            if (widest == t->column_count || widths[c] > widths[widest])
                widest = c;
        }
        if (widest == t->column_count)
            return;
        widths[widest]--;
        sum--;
    }
}

static void pad(FILE *out, size_t n)
{
    fprintf(out, "%*s", (int)n, "");
}

static void print_cell(const struct view_table *t, FILE *out, size_t column, size_t width,
                       const struct view_table_cell *cell, bool is_last, struct buf *fit)
{
    const char *text = (const char *)t->bytes.data + cell->at;
    if (t->align[column] == VIEW_RIGHT) {
        pad(out, width - cell->width);
        fwrite(text, 1, cell->len, out);
        return;
    }
    bool left = t->align[column] == VIEW_LEFT_CUT_LEFT;
    buf_clear(fit);
    view_text_fit(fit, text, cell->len, width, left ? VIEW_CUT_LEFT : VIEW_CUT_MIDDLE);
    size_t used = view_text_width((const char *)fit->data, fit->len);
    if (fit->len)
        fwrite(fit->data, 1, fit->len, out);
    if (!is_last) /* no blanks at the end of a line */
        pad(out, width > used ? width - used : 0);
}

int view_table_print(struct view_table *t, FILE *out, unsigned width, bool colour)
{
    if (buf_error(&t->bytes) || !t->column_count)
        return buf_error(&t->bytes);
    size_t widths[VIEW_TABLE_MAX_COLUMNS];
    measure(t, widths);
    if (width)
        shrink(t, widths, width);
    struct buf fit;
    buf_init(&fit, TABLE_BYTES_MAX);
    size_t rows = t->cells.len / t->column_count;
    for (size_t r = 0; r < rows; r++) {
        const char *on = r == 0 ? "\x1b[1m" : t->faint.data[r] ? "\x1b[2m" : NULL;
        if (colour && on)
            fputs(on, out);
        const struct view_table_cell *row = &t->cells.data[r * t->column_count];
        size_t used = t->column_count;
        while (used > 1 && !row[used - 1].width)
            used--;
        for (size_t c = 0; c < used; c++) {
            if (c)
                pad(out, GAP);
            print_cell(t, out, c, widths[c], &row[c], c + 1 == used, &fit);
        }
        fputs(colour && on ? "\x1b[0m\n" : "\n", out);
    }
    int error = buf_error(&fit);
    buf_release(&fit);
    return error;
}
