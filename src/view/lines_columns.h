/* Further numbers beside the lines of a source, each from lines of its own metric: memory beside time, or
 * several numbers of memory. Inside the view only: view/lines.c calls it. */
#ifndef PYROMETER_VIEW_LINES_COLUMNS_H
#define PYROMETER_VIEW_LINES_COLUMNS_H

#include "view/lines.h"

enum { VIEW_LINES_COLUMNS_MAX = 12 };

/* The file that a page shows, in the lines of each column; NULL where they have none. */
struct lines_columns {
    const struct view_lines *view;
    const struct analysis_file *file[VIEW_LINES_COLUMNS_MAX];
};

void lines_columns_init(struct lines_columns *c, const struct view_lines *view,
                        struct profile_string path);

/* The heading and the cells of a text line, as wide as lines_columns_width(). */
void lines_columns_heading(const struct view_lines *view, FILE *out);
void lines_columns_text(const struct lines_columns *c, uint32_t line, FILE *out);
unsigned lines_columns_width(const struct view_lines *view);

/* What has a key, in an open object, and as columns and cells of a table; returns how many were added. */
void lines_columns_json(const struct lines_columns *c, uint32_t line, struct json *j);
size_t lines_columns_add(const struct view_lines *view, struct view_column *columns);
void lines_columns_cells(const struct lines_columns *c, uint32_t line, struct view_cell *cells);

#endif
