/* One set of calls, three outputs: an aligned table for people, JSON, CSV.
 *
 * A view describes its columns once and pushes rows of typed cells; the emitter decides what
 * becomes of them. Facts beside the table go to JSON through view_emit_json() (NULL for the other
 * outputs) and to people through view_emit_line() (nothing for the others), so that a view says
 * both in one place.
 *
 *     view_emit_init → [facts] → table_begin → { row_begin → [sub_begin → sub_row … → sub_end]
 *     → row_end } … → table_end → view_emit_finish
 */
#ifndef PYROMETER_VIEW_EMIT_H
#define PYROMETER_VIEW_EMIT_H

#include "base/buf.h"
#include "base/json.h"
#include "view/table.h"

enum view_format { VIEW_TEXT, VIEW_JSON, VIEW_CSV };

/* What the reader's terminal can do. Zero is a plain file. */
struct view_style {
    bool colour;
    unsigned width; /* columns; 0: as wide as it needs, nothing is cut */
};

/* Colour and width of a terminal; zero for a file or a pipe. Honours NO_COLOR and TERM=dumb. */
struct view_style view_style_of(FILE *out);

enum view_kind {
    VIEW_NAME,  /* text, cut in the middle */
    VIEW_PATH,  /* text, cut at the left */
    VIEW_BOOL,  /* count: 0 or 1 */
    VIEW_COUNT, /* whole number */
    VIEW_ID,    /* whole number without thousands marks: a line, a pid */
    VIEW_WORD,  /* text, at the right: a number in a notation of its own */
    VIEW_SECONDS,
    VIEW_PLAIN_SECONDS, /* without a unit, to the microsecond */
    VIEW_BYTES,
    VIEW_PERCENT,
    /* changes: real numbers, in text always with their sign */
    VIEW_SECONDS_CHANGE,
    VIEW_BYTES_CHANGE,
    VIEW_COUNT_CHANGE,
    VIEW_POINTS, /* of percentages */
};

enum view_column_place { VIEW_BOTH, VIEW_ONLY_TEXT, VIEW_ONLY_DATA };

struct view_column {
    const char *key;   /* in JSON and CSV; NULL with VIEW_ONLY_TEXT */
    const char *title; /* in the text table; NULL with VIEW_ONLY_DATA */
    enum view_kind kind;
    enum view_column_place place;
};

/* One value; which member counts is the column's kind. Texts are borrowed for the call. */
struct view_cell {
    bool absent; /* null, an empty field, a blank */
    const char *text;
    size_t len;
    double real;
    uint64_t count;
};

struct view_emit {
    FILE *out; /* borrowed */
    enum view_format format;
    struct view_style style;
    struct json json;
    const struct view_column *columns; /* borrowed while a table is open */
    size_t column_count;
    bool has_relations;   /* CSV gets a first column that tells rows from sub-rows */
    const char *mark;     /* text put before the first text cell of a sub-row; NULL in a row */
    const char *relation; /* the sub-row's kind in CSV */
    struct view_table table;
    int error;
};

void view_emit_init(struct view_emit *e, FILE *out, enum view_format format,
                    struct view_style style);

/* Closes what is open and flushes; 0, E_NOMEM, or why the output could not be written. */
int view_emit_finish(struct view_emit *e);

/* The JSON writer inside the one top object, or NULL if the output is another. */
struct json *view_emit_json(struct view_emit *e);

/* A line for people: text output only. Arguments are shown as they are: escape names first. */
void view_emit_line(struct view_emit *e, const char *fmt, ...) ATTR_PRINTF(2, 3);

/* `key` names the array in JSON. `has_relations`: rows may have sub-rows. */
void view_emit_table_begin(struct view_emit *e, const char *key, const struct view_column *columns,
                           size_t count, bool has_relations);
void view_emit_row_begin(struct view_emit *e, const struct view_cell *cells);
void view_emit_row_end(struct view_emit *e);
void view_emit_table_end(struct view_emit *e);

/* Rows under the open row, with the same columns: an array `key` inside it in JSON, lines that
 * begin with `mark` in text, lines of their own with `relation` in CSV. */
void view_emit_sub_begin(struct view_emit *e, const char *key, const char *mark,
                         const char *relation);
void view_emit_sub_row(struct view_emit *e, const struct view_cell *cells);
void view_emit_sub_end(struct view_emit *e);

#endif
