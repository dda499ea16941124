#include "view/memory.h"

#include "base/err.h"
#include "view/heading.h"
#include "view/heading_memory.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

#include <math.h>

enum { WHERE_MAX = 64 << 20 };

enum column {
    NAME,
    FILE_,
    LINE,
    SELF,
    ERROR,
    SELF_PERCENT,
    COUNT,
    TOTAL,
    TOTAL_ERROR,
    TOTAL_PERCENT,
    TOTAL_COUNT,
    GROWTH,
    GROWTH_LOW,
    GROWTH_HIGH,
    GROWTH_ERROR,
    ARENAS,
    ALLOCATIONS,
    ALLOCATIONS_PERCENT,
    SPECIAL,
    TEXT_NAME,
    TEXT_WHERE,
    COLUMN_COUNT
};

struct printer {
    const struct view_memory *view;
    const struct analysis_weights *weights;
    struct view_emit *emit;
    struct view_column columns[COLUMN_COUNT];
    enum column which[COLUMN_COUNT];
    size_t column_count;
    struct buf where;
};

/* --- columns --- */

static void add_column(struct printer *p, enum column which, const char *key, const char *title,
                       enum view_kind kind)
{
    enum view_column_place place = !key ? VIEW_ONLY_TEXT : !title ? VIEW_ONLY_DATA : VIEW_BOTH;
    p->which[p->column_count] = which;
    p->columns[p->column_count++] = (struct view_column){key, title, kind, place};
}

static bool has_growth(const struct view_memory *view)
{
    return view->growth && view->growth->row;
}

static void choose_columns(struct printer *p)
{
    enum view_kind kind = view_metric_kind(p->weights->metric);
    enum analysis_by by = p->view->rows->by;
    bool is_path = by == ANALYSIS_BY_FILE, estimated = p->weights->variance != NULL;
    add_column(p, NAME, "name", NULL, VIEW_NAME);
    add_column(p, FILE_, "file", NULL, VIEW_PATH);
    add_column(p, LINE, "line", NULL, VIEW_ID);
    add_column(p, SELF, "self", "self", kind);
    if (estimated)
        add_column(p, ERROR, "error", "±", kind);
    add_column(p, SELF_PERCENT, "self_percent", "self %", VIEW_PERCENT);
    add_column(p, COUNT, "count", "blocks", VIEW_COUNT);
    add_column(p, TOTAL, "total", "total", kind);
    if (estimated)
        add_column(p, TOTAL_ERROR, "total_error", NULL, kind);
    add_column(p, TOTAL_PERCENT, "total_percent", "total %", VIEW_PERCENT);
    add_column(p, TOTAL_COUNT, "total_count", "in all", VIEW_COUNT);
    if (has_growth(p->view)) {
        add_column(p, GROWTH, "growth", "growth", VIEW_BYTES_CHANGE);
        add_column(p, GROWTH_LOW, "growth_low", NULL, VIEW_BYTES_CHANGE);
        add_column(p, GROWTH_HIGH, "growth_high", NULL, VIEW_BYTES_CHANGE);
        add_column(p, GROWTH_ERROR, NULL, "± ", VIEW_BYTES);
    }
    if (p->view->arenas && p->view->arenas->all)
        add_column(p, ARENAS, "arenas", "arenas", VIEW_COUNT);
    if (p->view->allocations) {
        add_column(p, ALLOCATIONS, "allocations", "of all", VIEW_COUNT);
        add_column(p, ALLOCATIONS_PERCENT, "temporary_percent", "share", VIEW_PERCENT);
    }
    add_column(p, SPECIAL, "special", NULL, VIEW_BOOL);
    add_column(p, TEXT_NAME, NULL, by == ANALYSIS_BY_LINE ? "function" : ANALYSIS_BY_NAMES[by],
               is_path ? VIEW_PATH : VIEW_NAME);
    if (!is_path)
        add_column(p, TEXT_WHERE, NULL, by == ANALYSIS_BY_MODULE ? "file" : "file:line", VIEW_PATH);
}

/* --- cells --- */

static struct view_cell size_cell(const struct printer *p, struct analysis_weight w)
{
    return (struct view_cell){.real = (double)w.weight * p->weights->metric->scale,
                              .count = w.weight};
}

static struct view_cell percent_cell(double part, double whole)
{
    return (struct view_cell){.real = whole > 0 ? 100 * part / whole : 0};
}

static struct view_cell real_cell(double real)
{
    return (struct view_cell){.real = real, .absent = !isfinite(real)};
}

static struct view_cell where_cell(struct printer *p, const struct analysis_row *row)
{
    buf_clear(&p->where);
    buf_append(&p->where, row->file.text, row->file.len);
    if (row->line)
        buf_printf(&p->where, ":%u", row->line);
    const char *text = buf_cstr(&p->where);
    return (struct view_cell){.text = text, .len = p->where.len};
}

static struct view_cell growth_cell(const struct printer *p, enum column which, uint32_t row)
{
    const struct stats_slope *s = &p->view->growth->row[row];
    return real_cell(which == GROWTH        ? s->slope
                     : which == GROWTH_LOW  ? s->low
                     : which == GROWTH_HIGH ? s->high
                                            : s->high - s->slope);
}

/* How many allocations the row made, of which these are some. */
static struct view_cell allocations_cell(const struct printer *p, enum column which, uint32_t row)
{
    const struct analysis_rows *all = p->view->allocations;
    uint64_t count = row < all->count ? all->row[row].self.weight : 0;
    if (which == ALLOCATIONS)
        return (struct view_cell){.count = count};
    return percent_cell((double)p->view->rows->row[row].self.samples, (double)count);
}

static struct view_cell text_cell(struct profile_string text, bool absent)
{
    return (struct view_cell){.text = text.text, .len = text.len, .absent = absent};
}

static struct view_cell cell_of(struct printer *p, enum column which, uint32_t at)
{
    const struct analysis_row *row = &p->view->rows->row[at];
    double whole = (double)p->weights->total.weight;
    switch (which) {
    case NAME:
    case TEXT_NAME:
        return text_cell(row->name, false);
    case FILE_:
        return text_cell(row->file, !row->file.len);
    case LINE:
        return (struct view_cell){.count = row->line, .absent = !row->line};
    case SELF:
        return size_cell(p, row->self);
    case ERROR:
        return view_memory_error_cell(row->self_variance);
    case SELF_PERCENT:
        return percent_cell((double)row->self.weight, whole);
    case COUNT:
        return (struct view_cell){.count = row->self.samples};
    case TOTAL:
        return size_cell(p, row->total);
    case TOTAL_ERROR:
        return view_memory_error_cell(row->total_variance);
    case TOTAL_PERCENT:
        return percent_cell((double)row->total.weight, whole);
    case TOTAL_COUNT:
        return (struct view_cell){.count = row->total.samples};
    case ARENAS:
        return (struct view_cell){.count = p->view->arenas->row[at]};
    case ALLOCATIONS:
    case ALLOCATIONS_PERCENT:
        return allocations_cell(p, which, at);
    case SPECIAL:
        return (struct view_cell){.count = row->special};
    case TEXT_WHERE:
        return where_cell(p, row);
    default:
        return growth_cell(p, which, at);
    }
}

static void print_table(struct printer *p, const char *key)
{
    view_emit_table_begin(p->emit, key, p->columns, p->column_count, false);
    for (size_t i = 0; i < p->view->selection->count; i++) {
        struct view_cell cells[COLUMN_COUNT];
        for (size_t k = 0; k < p->column_count; k++)
            cells[k] = cell_of(p, p->which[k], p->view->selection->row[i]);
        view_emit_row_begin(p->emit, cells);
        view_emit_row_end(p->emit);
    }
    view_emit_table_end(p->emit);
}

void view_memory_table(const struct view_memory *view, struct view_emit *e, const char *key)
{
    struct printer p = {.view = view, .weights = view->rows->weights, .emit = e};
    buf_init(&p.where, WHERE_MAX);
    choose_columns(&p);
    print_table(&p, key);
    buf_release(&p.where);
}

/* --- what stands around it --- */

static void json_real_or_null(struct json *j, const char *key, double value)
{
    json_key(j, key);
    if (isfinite(value))
        json_real(j, value);
    else
        json_null(j);
}

static void json_growth(struct json *j, const struct analysis_growth *g,
                        const struct profile_tables *t)
{
    json_key(j, "growth");
    if (!g->row) {
        json_null(j);
        return;
    }
    json_object_begin(j);
    json_key(j, "mark");
    json_text_n(j, g->mark.text, g->mark.len);
    json_kv_u64(j, "pid", t->processes[g->process].pid);
    json_kv_u64(j, "iterations", g->iterations);
    json_kv_u64(j, "points", g->points);
    json_real_or_null(j, "slope", g->total.slope);
    json_real_or_null(j, "low", g->total.low);
    json_real_or_null(j, "high", g->total.high);
    json_object_end(j);
}

static void json_facts(struct json *j, const struct view_memory *view)
{
    const struct analysis_weights *w = view->rows->weights;
    view_run_json(j, w->profile);
    view_heading_facts(j, w);
    json_kv_text(j, "by", ANALYSIS_BY_NAMES[view->rows->by]);
    json_kv_u64(j, "matched_rows", view->selection->matched);
    if (view->growth)
        json_growth(j, view->growth, profile_tables(w->profile));
    if (view->runtime) {
        const struct view_memory_runtime *r = view->runtime;
        json_key(j, "runtime");
        json_object_begin(j);
        json_kv_bool(j, "shown", r->is_shown);
        json_kv_u64(j, "bytes", r->all.weight);
        json_kv_u64(j, "count", r->all.samples);
        json_kv_u64(j, "no_python_bytes", r->no_python.weight);
        json_kv_u64(j, "no_python_count", r->no_python.samples);
        json_object_end(j);
    }
    view_run_losses_json(j, w->profile, w->damaged_chunks);
}

static void say_growth(struct view_emit *e, const struct analysis_growth *g)
{
    if (!g->row) {
        view_emit_line(e, "No growth can be told: the program sets no mark %d times or more.",
                       ANALYSIS_GROWTH_LEAST);
        return;
    }
    struct buf name;
    buf_init(&name, WHERE_MAX);
    view_text_escape(&name, g->mark.text, g->mark.len);
    if (!isfinite(g->total.slope)) {
        view_emit_line(e, "No growth can be told: of %s marks '%s' too few have a checkpoint.",
                       view_units_count(g->iterations).text, buf_cstr(&name));
    } else {
        bool is_flat = g->total.low >= 0 && g->total.high <= 0;
        bool is_sure = g->total.low > 0 || g->total.high < 0;
        view_emit_line(e, "%s: %s%s an iteration ('%s', %s of them), 95 %%: %s to %s%s",
                       is_sure   ? "growth"
                       : is_flat ? "does not grow"
                                 : "does not surely grow",
                       g->total.slope > 0 ? "+" : "", view_units_bytes(g->total.slope).text,
                       buf_cstr(&name), view_units_count(g->iterations).text,
                       view_units_bytes(g->total.low).text, view_units_bytes(g->total.high).text,
                       !is_sure             ? ""
                       : g->total.slope > 0 ? "; it grows"
                                            : "; it shrinks");
    }
    if (g->other_names)
        view_emit_line(e, "%u other mark%s could be iterations, too: --mark chooses.",
                       g->other_names, g->other_names == 1 ? "" : "s");
    buf_release(&name);
}

static void say_runtime(struct view_emit *e, const struct view_memory_runtime *r)
{
    if (!r->all.samples)
        return;
    view_emit_line(
        e,
        "%s the interpreter's own for its whole life: %s in %s blocks, of it %s without a "
        "Python frame%s",
        r->is_shown ? "of that" : "left out,", view_units_bytes((double)r->all.weight).text,
        view_units_count(r->all.samples).text, view_units_bytes((double)r->no_python.weight).text,
        r->is_shown ? "" : " (--all shows it)");
}

/* Where only the heap was watched, a leak of small objects is whole arenas on whichever line asked for one. */
static void say_arenas(struct view_emit *e, const struct view_memory *view)
{
    const char *mode = profile_meta_value(view->rows->weights->profile, "memory.mode");
    uint64_t n = view->arenas->all;
    if (n)
        view_emit_line(e,
                       "%s block%s the size of the arenas in which Python keeps small objects, and "
                       "which are seen as a whole only: --memory=objects tells of each object.",
                       view_units_count(n).text, n == 1 ? " has" : "s have");
    else if (view->growth && view->growth->total.low > 0 && mode && strcmp(mode, "heap") == 0)
        view_emit_line(e, "Small objects live in Python's arenas, which are seen as whole blocks "
                          "only: --memory=objects tells of each object.");
}

static void say_leaks(struct view_emit *e, const struct view_memory *view)
{
    if (view->runtime)
        say_runtime(e, view->runtime);
    if (view->growth)
        say_growth(e, view->growth);
    if (view->arenas)
        say_arenas(e, view);
}

static void print_text(struct view_emit *e, const struct view_memory *view)
{
    const struct analysis_weights *w = view->rows->weights;
    if (!w->total.samples && !view->selection->count) {
        bool has_other =
            (view->runtime && view->runtime->all.samples) || (view->growth && view->growth->row);
        if (!has_other) {
            view_heading_nothing_left(e, w);
            return;
        }
        view_heading_run(e, w->profile);
        view_emit_line(e, "The program has given back all that it allocated.");
        say_leaks(e, view);
        view_heading_losses(e, w);
        return;
    }
    view_heading_run(e, w->profile);
    view_heading_memory(e, w);
    say_leaks(e, view);
    view_emit_line(e, "%s", "");
    if (!view->selection->count)
        view_emit_line(e, "No row matches; without --match there are more.");
    else
        view_memory_table(view, e, "rows");
    if (view->selection->matched > view->selection->count)
        view_emit_line(e, "… and %s more row%s (--limit 0 shows all)",
                       view_units_count(view->selection->matched - view->selection->count).text,
                       view->selection->matched - view->selection->count == 1 ? "" : "s");
    view_heading_losses(e, w);
}

int view_memory_print(const struct view_memory *view, FILE *out, enum view_format format,
                      struct view_style style)
{
    struct view_emit e;
    view_emit_init(&e, out, format, style);
    if (view_emit_json(&e))
        json_facts(view_emit_json(&e), view);
    if (format == VIEW_TEXT)
        print_text(&e, view);
    else
        view_memory_table(view, &e, "rows");
    return view_emit_finish(&e);
}
