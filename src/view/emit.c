/* The three outputs behind one set of calls. JSON and CSV stream; text gathers in a table, since
 * the width of a column is known only after its last row. */
#include "view/emit.h"

#include "base/err.h"
#include "view/text.h"
#include "view/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/ioctl.h>

enum {
    DEFAULT_WIDTH = 80,
    CELL_BYTES_MAX = 64 << 20,
};

struct view_style view_style_of(FILE *out)
{
    int fd = fileno(out);
    if (fd < 0 || !isatty(fd))
        return (struct view_style){0};
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    struct winsize size;
    bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return (struct view_style){
        .colour = !(no_colour && *no_colour) && term && strcmp(term, "dumb") != 0,
        .width = known ? size.ws_col : DEFAULT_WIDTH,
    };
}

void view_emit_init(struct view_emit *e, FILE *out, enum view_format format,
                    struct view_style style)
{
    *e = (struct view_emit){.out = out, .format = format, .style = style};
    view_table_init(&e->table);
    if (format == VIEW_JSON) {
        json_init(&e->json, out);
        json_object_begin(&e->json);
    }
}

int view_emit_finish(struct view_emit *e)
{
    if (e->format == VIEW_JSON) {
        json_object_end(&e->json);
        putc('\n', e->out);
    }
    view_table_release(&e->table);
    if (!e->error && (fflush(e->out) != 0 || ferror(e->out)))
        e->error = errno ? err_from_errno(errno) : E_IO;
    return e->error;
}

struct json *view_emit_json(struct view_emit *e)
{
    return e->format == VIEW_JSON ? &e->json : NULL;
}

void view_emit_line(struct view_emit *e, const char *fmt, ...)
{
    if (e->format != VIEW_TEXT)
        return;
    va_list args;
    va_start(args, fmt);
    vfprintf(e->out, fmt, args);
    va_end(args);
    putc('\n', e->out);
}

static bool is_text(enum view_kind kind)
{
    return kind == VIEW_NAME || kind == VIEW_PATH;
}

static bool is_whole(enum view_kind kind)
{
    return kind == VIEW_BOOL || kind == VIEW_COUNT || kind == VIEW_ID;
}

/* --- JSON --- */

static void json_cells(struct view_emit *e, const struct view_cell *cells)
{
    json_object_begin(&e->json);
    for (size_t i = 0; i < e->column_count; i++) {
        const struct view_column *column = &e->columns[i];
        if (column->place == VIEW_ONLY_TEXT)
            continue;
        json_key(&e->json, column->key);
        if (cells[i].absent)
            json_null(&e->json);
        else if (is_text(column->kind))
            json_text_n(&e->json, cells[i].text, cells[i].len);
        else if (column->kind == VIEW_BOOL)
            json_bool(&e->json, cells[i].count);
        else if (is_whole(column->kind))
            json_u64(&e->json, cells[i].count);
        else
            json_real(&e->json, cells[i].real);
    }
}

/* --- CSV (RFC 4180) --- */

static void csv_text(FILE *out, const char *text, size_t len)
{
    bool plain = true;
    for (size_t i = 0; plain && i < len; i++)
        plain = text[i] != '"' && text[i] != ',' && text[i] != '\n' && text[i] != '\r';
    if (plain) {
        fwrite(text, 1, len, out);
        return;
    }
    putc('"', out);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            putc('"', out);
        putc(text[i], out);
    }
    putc('"', out);
}

static void csv_heading(struct view_emit *e)
{
    const char *comma = "";
    if (e->has_relations) {
        fputs("relation", e->out);
        comma = ",";
    }
    for (size_t i = 0; i < e->column_count; i++) {
        if (e->columns[i].place == VIEW_ONLY_TEXT)
            continue;
        fprintf(e->out, "%s%s", comma, e->columns[i].key);
        comma = ",";
    }
    fputs("\r\n", e->out);
}

static void csv_cells(struct view_emit *e, const struct view_cell *cells)
{
    const char *comma = "";
    if (e->has_relations) {
        fputs(e->relation ? e->relation : "row", e->out);
        comma = ",";
    }
    for (size_t i = 0; i < e->column_count; i++) {
        if (e->columns[i].place == VIEW_ONLY_TEXT)
            continue;
        fputs(comma, e->out);
        comma = ",";
        if (cells[i].absent)
            continue;
        if (is_text(e->columns[i].kind))
            csv_text(e->out, cells[i].text, cells[i].len);
        else if (is_whole(e->columns[i].kind))
            fprintf(e->out, "%" PRIu64, cells[i].count);
        else
            fprintf(e->out, "%.15g", cells[i].real);
    }
    fputs("\r\n", e->out);
}

/* --- text --- */

static void text_heading(struct view_emit *e)
{
    for (size_t i = 0; i < e->column_count; i++) {
        enum view_kind kind = e->columns[i].kind;
        if (e->columns[i].place != VIEW_ONLY_DATA)
            view_table_column(&e->table, kind == VIEW_PATH   ? VIEW_LEFT_CUT_LEFT
                                         : kind == VIEW_NAME ? VIEW_LEFT_CUT_MIDDLE
                                                             : VIEW_RIGHT);
    }
    view_table_row(&e->table, false);
    for (size_t i = 0; i < e->column_count; i++)
        if (e->columns[i].place != VIEW_ONLY_DATA)
            view_table_cell(&e->table, e->columns[i].title, strlen(e->columns[i].title));
}

static void number_text(const struct view_cell *cell, enum view_kind kind, struct buf *out)
{
    if (kind >= VIEW_SECONDS_CHANGE && cell->real > 0)
        buf_put_u8(out, '+');
    switch (kind) {
    case VIEW_COUNT:
        buf_puts(out, view_units_count(cell->count).text);
        break;
    case VIEW_BOOL:
    case VIEW_ID:
        buf_printf(out, "%" PRIu64, cell->count);
        break;
    case VIEW_SECONDS:
    case VIEW_SECONDS_CHANGE:
        buf_puts(out, view_units_seconds(cell->real).text);
        break;
    case VIEW_PLAIN_SECONDS:
        buf_printf(out, "%.6f", cell->real);
        break;
    case VIEW_BYTES:
    case VIEW_BYTES_CHANGE:
        buf_puts(out, view_units_bytes(cell->real).text);
        break;
    case VIEW_POINTS:
        buf_printf(out, "%.1f", cell->real);
        break;
    case VIEW_COUNT_CHANGE:
        buf_printf(out, "%.0f", cell->real);
        break;
    default:
        buf_puts(out, view_units_percent(cell->real).text);
        break;
    }
}

static void text_cells(struct view_emit *e, const struct view_cell *cells)
{
    struct buf text;
    buf_init(&text, CELL_BYTES_MAX);
    const char *mark = e->mark;
    view_table_row(&e->table, mark != NULL);
    for (size_t i = 0; i < e->column_count; i++) {
        if (e->columns[i].place == VIEW_ONLY_DATA)
            continue;
        buf_clear(&text);
        if (mark && is_text(e->columns[i].kind)) {
            buf_puts(&text, mark);
            mark = NULL;
        }
        if (cells[i].absent)
            ;
        else if (is_text(e->columns[i].kind) || e->columns[i].kind == VIEW_WORD)
            view_text_escape(&text, cells[i].text, cells[i].len);
        else
            number_text(&cells[i], e->columns[i].kind, &text);
        const char *shown = buf_cstr(&text);
        view_table_cell(&e->table, shown, text.len);
    }
    buf_release(&text);
}

/* --- the calls --- */

void view_emit_table_begin(struct view_emit *e, const char *key, const struct view_column *columns,
                           size_t count, bool has_relations)
{
    e->columns = columns;
    e->column_count = count;
    e->has_relations = has_relations;
    if (e->format == VIEW_JSON) {
        json_key(&e->json, key);
        json_array_begin(&e->json);
    } else if (e->format == VIEW_CSV) {
        csv_heading(e);
    } else {
        text_heading(e);
    }
}

void view_emit_row_begin(struct view_emit *e, const struct view_cell *cells)
{
    if (e->format == VIEW_JSON)
        json_cells(e, cells); /* the object stays open for sub-rows */
    else if (e->format == VIEW_CSV)
        csv_cells(e, cells);
    else
        text_cells(e, cells);
}

void view_emit_row_end(struct view_emit *e)
{
    if (e->format == VIEW_JSON)
        json_object_end(&e->json);
}

void view_emit_table_end(struct view_emit *e)
{
    if (e->format == VIEW_JSON) {
        json_array_end(&e->json);
    } else if (e->format == VIEW_TEXT) {
        int r = view_table_print(&e->table, e->out, e->style.width, e->style.colour);
        e->error = e->error ? e->error : r;
        view_table_release(&e->table);
    }
    e->columns = NULL;
    e->column_count = 0;
}

void view_emit_sub_begin(struct view_emit *e, const char *key, const char *mark,
                         const char *relation)
{
    e->mark = mark;
    e->relation = relation;
    if (e->format == VIEW_JSON) {
        json_key(&e->json, key);
        json_array_begin(&e->json);
    }
}

void view_emit_sub_row(struct view_emit *e, const struct view_cell *cells)
{
    view_emit_row_begin(e, cells);
    view_emit_row_end(e);
}

void view_emit_sub_end(struct view_emit *e)
{
    e->mark = NULL;
    e->relation = NULL;
    if (e->format == VIEW_JSON)
        json_array_end(&e->json);
}
