#include "view/lines_columns.h"

#include "view/heading.h"
#include "view/units.h"

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

static struct analysis_weight weight_of(const struct lines_columns *c, size_t column, uint32_t line)
{
    const struct view_lines_column *v = &c->view->column[column];
    const struct analysis_line *found =
        c->file[column] ? analysis_lines_find(v->lines, c->file[column], line) : NULL;
    return !found ? (struct analysis_weight){0} : v->is_self ? found->self : found->total;
}

unsigned lines_columns_width(const struct view_lines *view)
{
    return (unsigned)view->columns * (WIDTH + 1);
}

void lines_columns_heading(const struct view_lines *view, FILE *out)
{
    for (size_t i = 0; i < view->columns; i++)
        fprintf(out, " %*s", WIDTH, view->column[i].title);
}

static struct view_units_text text_of(const struct view_lines_column *column,
                                      struct analysis_weight w)
{
    const struct analysis_weights *weights = column->lines->weights;
    if (!column->is_percent)
        return view_weight_text(weights->metric, w.weight);
    return view_units_percent(100 * (double)w.weight / (double)weights->total.weight);
}

void lines_columns_text(const struct lines_columns *c, uint32_t line, FILE *out)
{
    for (size_t i = 0; i < c->view->columns; i++) {
        struct analysis_weight w = weight_of(c, i, line);
        fprintf(out, " %*s", WIDTH, w.weight ? text_of(&c->view->column[i], w).text : "");
    }
}

void lines_columns_json(const struct lines_columns *c, uint32_t line, struct json *j)
{
    for (size_t i = 0; i < c->view->columns; i++) {
        const struct view_lines_column *v = &c->view->column[i];
        if (v->key)
            json_kv_real(j, v->key,
                         (double)weight_of(c, i, line).weight * v->lines->weights->metric->scale);
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
        uint64_t weight = weight_of(c, i, line).weight;
        if (v->key)
            cells[n++] = (struct view_cell){
                .real = (double)weight * v->lines->weights->metric->scale, .count = weight};
    }
}
