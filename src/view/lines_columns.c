#include "view/lines_columns.h"

#include "view/heading.h"
#include "view/text.h"
#include "view/units.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 10 };

void lines_columns_init(struct lines_columns *c, const struct view_lines *view,
                        struct profile_string path)
{
    *c = (struct lines_columns){.view = view};
    for (size_t i = 0; i < view->columns; i++) {
        const struct analysis_lines *l = view->column[i].lines;
        for (size_t k = 0; k < l->file_count && !c->file[i]; k++) /* one profile, one text each */
            if (l->file[k].path.text == path.text && l->file[k].path.len == path.len)
                c->file[i] = &l->file[k];
    }
}

/* What the column says of a line; `value` in the metric's unit, NaN where it is not known. */
struct number {
    struct analysis_weight weight;
    double value;
};

static struct number number_of(const struct lines_columns *c, size_t column, uint32_t line)
{
    const struct view_lines_column *v = &c->view->column[column];
    const struct analysis_line *found =
        c->file[column] ? analysis_lines_find(v->lines, c->file[column], line) : NULL;
    if (!found)
        return (struct number){0};
    struct analysis_weight w = v->is_self ? found->self : found->total;
    double variance = v->is_self ? found->self_variance : found->total_variance;
    return (struct number){w, v->is_error ? analysis_memory_error(variance)
                                          : (double)w.weight * v->lines->weights->metric->scale};
}

unsigned lines_columns_width(const struct view_lines *view)
{
    return (unsigned)view->columns * (WIDTH + 1);
}

/* As wide as a column, whatever the number of its bytes. */
static void put_padded(FILE *out, const char *text)
{
    size_t len = strlen(text);
    fprintf(out, " %*s", WIDTH + (int)(len - view_text_width(text, len)), text);
}

void lines_columns_heading(const struct view_lines *view, FILE *out)
{
    for (size_t i = 0; i < view->columns; i++)
        put_padded(out, view->column[i].title);
}

static struct view_units_text text_of(const struct view_lines_column *column, struct number n)
{
    const struct analysis_weights *weights = column->lines->weights;
    if (column->is_error)
        return view_units_bytes(n.value);
    if (!column->is_percent)
        return view_weight_text(weights->metric, n.weight.weight);
    return view_units_percent(100 * (double)n.weight.weight / (double)weights->total.weight);
}

void lines_columns_text(const struct lines_columns *c, uint32_t line, FILE *out)
{
    for (size_t i = 0; i < c->view->columns; i++) {
        struct number n = number_of(c, i, line);
        bool is_shown = n.weight.weight && isfinite(n.value);
        put_padded(out, is_shown ? text_of(&c->view->column[i], n).text : "");
    }
}

void lines_columns_json(const struct lines_columns *c, uint32_t line, struct json *j)
{
    for (size_t i = 0; i < c->view->columns; i++) {
        if (!c->view->column[i].key)
            continue;
        double value = number_of(c, i, line).value;
        json_key(j, c->view->column[i].key);
        if (isfinite(value))
            json_real(j, value);
        else
            json_null(j);
    }
}

size_t lines_columns_add(const struct view_lines *view, struct view_column *columns)
{
    size_t n = 0;
    for (size_t i = 0; i < view->columns; i++) {
        const struct view_lines_column *v = &view->column[i];
        if (v->key)
            columns[n++] = (struct view_column){
                v->key, NULL, view_metric_kind(v->lines->weights->metric), VIEW_ONLY_DATA};
    }
    return n;
}

void lines_columns_cells(const struct lines_columns *c, uint32_t line, struct view_cell *cells)
{
    size_t n = 0;
    for (size_t i = 0; i < c->view->columns; i++) {
        const struct view_lines_column *v = &c->view->column[i];
        struct number number = number_of(c, i, line);
        if (v->key)
            cells[n++] = (struct view_cell){.real = number.value,
                                            .count = number.weight.weight,
                                            .absent = !isfinite(number.value)};
    }
}
