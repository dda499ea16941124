#include "view/culprit.h"

#include "view/text.h"
#include "view/units.h"

#include <math.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20 };

static struct view_units_text amount(const struct analysis_culprits *c, double value)
{
    if (!strcmp(c->metric->unit, "seconds"))
        return view_units_seconds(value);
    if (!strcmp(c->metric->unit, "bytes"))
        return view_units_bytes(value);
    return view_units_count((uint64_t)fmax(0, value));
}

static struct view_units_text signed_amount(const struct analysis_culprits *c, double value)
{
    struct view_units_text plain = amount(c, fabs(value)), t;
    snprintf(t.text, sizeof t.text, "%s%.28s", value < 0 ? "-" : "+", plain.text);
    return t;
}

/* The part of the whole difference; above 100 % where something else got better. */
static double explained(const struct analysis_culprits *c, const struct analysis_culprit *one)
{
    double whole = c->after - c->before;
    return whole != 0 ? one->blame.change / whole * 100 : NAN;
}

static void append_place(struct buf *out, const struct analysis_place *p)
{
    const char *base = strrchr(p->file, '/');
    view_text_escape(out, base ? base + 1 : p->file, strlen(base ? base + 1 : p->file));
    if (p->line)
        buf_printf(out, ":%u", p->line);
}

static void append_function(struct buf *out, const struct analysis_place *p)
{
    view_text_escape(out, p->name, strlen(p->name));
    if (*p->file) {
        buf_puts(out, " (");
        append_place(out, p);
        buf_puts(out, ")");
    }
}

bool view_culprit_first(const struct analysis_culprits *c, struct buf *out)
{
    for (size_t i = 0; i < c->count && c->list[i].blame.is_blamed; i++) {
        if (c->list[i].blame.change <= 0)
            continue;
        append_function(out, &c->list[i].function);
        if (c->list[i].line.line)
            buf_printf(out, ", line %u", c->list[i].line.line);
        return true;
    }
    return false;
}

/* --- text --- */

enum column { CHANGE, ERROR, SHARE, BEFORE, AFTER, NAME, WHERE, LINE, CALLER, COLUMNS };

static const struct view_column COLUMN[COLUMNS] = {
    [CHANGE] = {NULL, "change", VIEW_WORD, VIEW_ONLY_TEXT},
    [ERROR] = {NULL, "±", VIEW_WORD, VIEW_ONLY_TEXT},
    [SHARE] = {NULL, "explains", VIEW_WORD, VIEW_ONLY_TEXT},
    [BEFORE] = {NULL, "before", VIEW_WORD, VIEW_ONLY_TEXT},
    [AFTER] = {NULL, "after", VIEW_WORD, VIEW_ONLY_TEXT},
    [NAME] = {NULL, "function", VIEW_NAME, VIEW_ONLY_TEXT},
    [WHERE] = {NULL, "file:line", VIEW_PATH, VIEW_ONLY_TEXT},
    [LINE] = {NULL, "most in line", VIEW_WORD, VIEW_ONLY_TEXT},
    [CALLER] = {NULL, "called from", VIEW_NAME, VIEW_ONLY_TEXT},
};

static struct view_cell cell(const char *text)
{
    return (struct view_cell){.text = text, .len = strlen(text)};
}

static void put_row(struct view_emit *emit, const struct analysis_culprits *c,
                    const struct analysis_culprit *one)
{
    struct view_units_text change = signed_amount(c, one->blame.change);
    struct view_units_text error = amount(c, one->blame.error);
    struct view_units_text before = amount(c, one->blame.before);
    struct view_units_text after = amount(c, one->blame.after), share, line = {""};
    snprintf(share.text, sizeof share.text, "%.0f %%", explained(c, one));
    if (one->line.line)
        snprintf(line.text, sizeof line.text, "%u", one->line.line);
    struct buf where, caller;
    buf_init(&where, TEXT_MAX);
    buf_init(&caller, TEXT_MAX);
    buf_puts(&where, one->function.file);
    if (one->function.line)
        buf_printf(&where, ":%u", one->function.line);
    if (one->caller.line)
        append_function(&caller, &one->caller);
    const struct view_cell cells[COLUMNS] = {
        [CHANGE] = cell(change.text),       [ERROR] = cell(error.text),
        [SHARE] = cell(share.text),         [BEFORE] = cell(before.text),
        [AFTER] = cell(after.text),         [NAME] = cell(one->function.name),
        [WHERE] = cell(buf_cstr(&where)),   [LINE] = cell(line.text),
        [CALLER] = cell(buf_cstr(&caller)),
    };
    view_emit_row_begin(emit, cells);
    view_emit_row_end(emit);
    buf_release(&where);
    buf_release(&caller);
}

static void put_heading(struct view_emit *emit, const struct analysis_culprits *c)
{
    view_emit_line(
        emit, "Functions that explain it, of %zu recording%s before and %zu after (%s, %s %s%s)",
        c->before_count, c->before_count == 1 ? "" : "s", c->after_count,
        signed_amount(c, c->after - c->before).text, "metric", c->metric->name,
        c->before_count + c->after_count == 2 ? "; of more runs smaller ones show" : "");
}

void view_culprits_print(struct view_emit *emit, const struct analysis_culprits *c)
{
    put_heading(emit, c);
    if (!c->blamed) {
        view_emit_line(emit, "No function can be blamed: none changed by more than equal programs "
                             "do, beside the whole.");
        return;
    }
    view_emit_table_begin(emit, "culprits", COLUMN, COLUMNS, false);
    for (size_t i = 0; i < c->count && c->list[i].blame.is_blamed; i++)
        put_row(emit, c, &c->list[i]);
    view_emit_table_end(emit);
    if (c->blamed > c->count)
        view_emit_line(emit, "… and %zu more", c->blamed - c->count);
}

/* --- JSON --- */

static void json_place(struct json *j, const char *key, const struct analysis_place *p)
{
    json_key(j, key);
    if (!p->line) {
        json_null(j);
        return;
    }
    json_object_begin(j);
    json_kv_text(j, "name", p->name);
    json_kv_text(j, "file", p->file);
    json_kv_u64(j, "line", p->line);
    json_kv_real(j, "before", p->before);
    json_kv_real(j, "after", p->after);
    json_object_end(j);
}

void view_culprits_json(struct json *j, const struct analysis_culprits *c)
{
    json_kv_u64(j, "recordings_before", c->before_count);
    json_kv_u64(j, "recordings_after", c->after_count);
    json_kv_u64(j, "blamed", c->blamed);
    json_key(j, "culprits");
    json_array_begin(j);
    for (size_t i = 0; i < c->count; i++) {
        const struct analysis_culprit *one = &c->list[i];
        json_object_begin(j);
        json_kv_text(j, "name", one->function.name);
        json_kv_text(j, "file", one->function.file);
        json_kv_u64(j, "line", one->function.line);
        json_kv_real(j, "before", one->blame.before);
        json_kv_real(j, "after", one->blame.after);
        json_kv_real(j, "change", one->blame.change);
        json_kv_real(j, "error", one->blame.error);
        json_kv_real(j, "explains_percent", explained(c, one));
        json_kv_real(j, "p", one->blame.p);
        json_kv_bool(j, "blamed", one->blame.is_blamed);
        json_kv_bool(j, "special", one->is_special);
        json_place(j, "most_in_line", &one->line);
        json_place(j, "called_from", &one->caller);
        json_object_end(j);
    }
    json_array_end(j);
}

/* --- markdown --- */

/* In a code span, where a backquote would end it. */
static void put_code(FILE *out, const char *text, size_t len)
{
    struct buf harmless;
    buf_init(&harmless, TEXT_MAX);
    view_text_escape(&harmless, text, len);
    fputc('`', out);
    for (const char *p = buf_cstr(&harmless); *p; p++)
        fputc(*p == '`' ? '\'' : *p, out);
    fputc('`', out);
    buf_release(&harmless);
}

void view_culprits_markdown(FILE *out, const struct analysis_culprits *c)
{
    if (!c->blamed) {
        fputs("No function can be blamed: none changed by more than equal programs do.\n", out);
        return;
    }
    for (size_t i = 0; i < c->count && c->list[i].blame.is_blamed; i++) {
        const struct analysis_culprit *one = &c->list[i];
        struct buf where;
        buf_init(&where, TEXT_MAX);
        buf_puts(&where, one->function.file);
        if (one->function.line)
            buf_printf(&where, ":%u", one->function.line);
        fprintf(out, "- **%s** (± %s, %.0f %% of the difference) in ",
                signed_amount(c, one->blame.change).text, amount(c, one->blame.error).text,
                explained(c, one));
        put_code(out, one->function.name, strlen(one->function.name));
        fputs(", ", out);
        put_code(out, buf_cstr(&where), where.len);
        if (one->line.line)
            fprintf(out, ", most of it in line %u", one->line.line);
        if (one->caller.line) {
            buf_clear(&where);
            append_function(&where, &one->caller);
            fputs(", called from ", out);
            put_code(out, buf_cstr(&where), where.len);
        }
        fputs("\n", out);
        buf_release(&where);
    }
}
