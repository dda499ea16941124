/* Prints a diff. What makes two runs hard to compare is said before the table. */
#include "view/diff.h"

#include "base/err.h"
#include "view/culprit.h"
#include "view/heading.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

#include <math.h>

enum { TEXT_MAX = 64 << 20 };

/* Runs further apart than this are not of the same length, or rate. */
#define SAME_WITHIN 1.1

enum column {
    NAME,
    FILE_,
    LINE,
    SELF_BEFORE,
    SELF_AFTER,
    SELF_CHANGE,
    SELF_BEFORE_PERCENT,
    SELF_AFTER_PERCENT,
    SELF_POINTS,
    SELF_ERROR,
    SELF_NOISE,
    TOTAL_BEFORE,
    TOTAL_AFTER,
    TOTAL_CHANGE,
    TOTAL_BEFORE_PERCENT,
    TOTAL_AFTER_PERCENT,
    TOTAL_POINTS,
    TOTAL_ERROR,
    TOTAL_NOISE,
    SAMPLES_BEFORE,
    SAMPLES_AFTER,
    SPECIAL,
    TEXT_NOISE,
    TEXT_NAME,
    TEXT_WHERE,
    COLUMN_COUNT
};

struct printer {
    const struct analysis_diff *diff;
    const struct analysis_culprits *culprits; /* NULL: not looked for */
    const struct analysis_weights *before, *after;
    struct view_emit emit;
    struct view_column columns[COLUMN_COUNT];
    struct buf text;
};

/* --- columns and cells --- */

static void choose_columns(struct printer *p)
{
    enum analysis_by by = p->diff->after->by;
    bool code = analysis_by_is_code(by);
    enum view_kind kind = view_metric_kind(p->after->metric);
    enum view_kind change = kind == VIEW_SECONDS ? VIEW_SECONDS_CHANGE
                            : kind == VIEW_BYTES ? VIEW_BYTES_CHANGE
                                                 : VIEW_COUNT_CHANGE;
    enum view_column_place total = code ? VIEW_BOTH : VIEW_ONLY_DATA;
    const struct view_column columns[COLUMN_COUNT] = {
        [NAME] = {"name", NULL, VIEW_NAME, VIEW_ONLY_DATA},
        [FILE_] = {"file", NULL, VIEW_PATH, VIEW_ONLY_DATA},
        [LINE] = {"line", NULL, VIEW_ID, VIEW_ONLY_DATA},
        [SELF_BEFORE] = {"self_before", "self before", kind, VIEW_BOTH},
        [SELF_AFTER] = {"self_after", "after", kind, VIEW_BOTH},
        [SELF_CHANGE] = {"self_change", "change", change, VIEW_BOTH},
        [SELF_BEFORE_PERCENT] = {"self_before_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
        [SELF_AFTER_PERCENT] = {"self_after_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
        [SELF_POINTS] = {"self_points", "points", VIEW_POINTS, VIEW_BOTH},
        [SELF_ERROR] = {"self_error_points", "±", VIEW_PERCENT, VIEW_BOTH},
        [SELF_NOISE] = {"self_within_noise", NULL, VIEW_BOOL, VIEW_ONLY_DATA},
        [TOTAL_BEFORE] = {"total_before", "total before", kind, total},
        [TOTAL_AFTER] = {"total_after", "after", kind, total},
        [TOTAL_CHANGE] = {"total_change", "change", change, total},
        [TOTAL_BEFORE_PERCENT] = {"total_before_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
        [TOTAL_AFTER_PERCENT] = {"total_after_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
        [TOTAL_POINTS] = {"total_points", NULL, VIEW_POINTS, VIEW_ONLY_DATA},
        [TOTAL_ERROR] = {"total_error_points", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
        [TOTAL_NOISE] = {"total_within_noise", NULL, VIEW_BOOL, VIEW_ONLY_DATA},
        [SAMPLES_BEFORE] = {"samples_before", NULL, VIEW_COUNT, VIEW_ONLY_DATA},
        [SAMPLES_AFTER] = {"samples_after", NULL, VIEW_COUNT, VIEW_ONLY_DATA},
        [SPECIAL] = {"special", NULL, VIEW_BOOL, VIEW_ONLY_DATA},
        [TEXT_NOISE] = {NULL, "", VIEW_NAME, VIEW_ONLY_TEXT},
        [TEXT_NAME] = {NULL, by == ANALYSIS_BY_LINE ? "function" : ANALYSIS_BY_NAMES[by],
                       by == ANALYSIS_BY_FILE ? VIEW_PATH : VIEW_NAME, VIEW_ONLY_TEXT},
        [TEXT_WHERE] = {NULL, code && by != ANALYSIS_BY_FILE ? "file:line" : "", VIEW_PATH,
                        VIEW_ONLY_TEXT},
    };
    memcpy(p->columns, columns, sizeof columns);
}

static void change_cells(const struct printer *p, const struct analysis_change *c,
                         struct view_cell *cells)
{
    double scale = p->after->metric->scale;
    uint64_t before_whole = p->before->total.weight, after_whole = p->after->total.weight;
    double before = before_whole ? (double)c->before.weight / (double)before_whole : 0;
    double after = after_whole ? (double)c->after.weight / (double)after_whole : 0;
    enum { BASE = SELF_BEFORE };
    cells[SELF_BEFORE - BASE] =
        (struct view_cell){.real = (double)c->before.weight * scale, .count = c->before.weight};
    cells[SELF_AFTER - BASE] =
        (struct view_cell){.real = (double)c->after.weight * scale, .count = c->after.weight};
    cells[SELF_CHANGE - BASE] = (struct view_cell){.real = c->weight * scale};
    cells[SELF_BEFORE_PERCENT - BASE] = (struct view_cell){.real = before * 100};
    cells[SELF_AFTER_PERCENT - BASE] = (struct view_cell){.real = after * 100};
    cells[SELF_POINTS - BASE] = (struct view_cell){.real = c->points};
    cells[SELF_ERROR - BASE] = (struct view_cell){.real = c->error_points};
    cells[SELF_NOISE - BASE] = (struct view_cell){.count = c->is_noise};
}

/* Nothing to tell: of what is not there in either, too. */
static bool is_quiet(const struct analysis_change *c)
{
    return c->is_noise || (!c->before.weight && !c->after.weight);
}

static void fill_cells(struct printer *p, const struct analysis_diff_row *d,
                       struct view_cell *cells)
{
    const struct analysis_row *row = d->row;
    bool noise =
        is_quiet(&d->self) && is_quiet(&d->total) && (d->self.is_noise || d->total.is_noise);
    const char *mark = noise && (d->self.is_whole || d->total.is_whole) ? "as the whole"
                       : noise                                          ? "within noise"
                       : !d->in_before                                  ? "new"
                       : !d->in_after                                   ? "gone"
                                                                        : "";
    buf_clear(&p->text);
    if (p->columns[TEXT_WHERE].title[0]) {
        buf_append(&p->text, row->file.text, row->file.len);
        if (row->line)
            buf_printf(&p->text, ":%u", row->line);
    }
    const char *where = buf_cstr(&p->text);
    cells[NAME] = cells[TEXT_NAME] =
        (struct view_cell){.text = row->name.text, .len = row->name.len};
    cells[FILE_] = (struct view_cell){
        .text = row->file.text, .len = row->file.len, .absent = row->file.len == 0};
    cells[LINE] = (struct view_cell){.count = row->line, .absent = row->line == 0};
    change_cells(p, &d->self, &cells[SELF_BEFORE]);
    change_cells(p, &d->total, &cells[TOTAL_BEFORE]);
    cells[SAMPLES_BEFORE] = (struct view_cell){.count = d->self.before.samples};
    cells[SAMPLES_AFTER] = (struct view_cell){.count = d->self.after.samples};
    cells[SPECIAL] = (struct view_cell){.count = row->special};
    cells[TEXT_NOISE] = (struct view_cell){.text = mark, .len = strlen(mark)};
    cells[TEXT_WHERE] = (struct view_cell){.text = where, .len = p->text.len};
}

static void print_table(struct printer *p, bool empty)
{
    view_emit_table_begin(&p->emit, "rows", p->columns, COLUMN_COUNT, false);
    for (size_t i = 0; !empty && i < p->diff->count; i++) {
        struct view_cell cells[COLUMN_COUNT];
        fill_cells(p, &p->diff->row[i], cells);
        view_emit_row_begin(&p->emit, cells);
        view_emit_row_end(&p->emit);
    }
    view_emit_table_end(&p->emit);
}

/* --- what makes them hard to compare --- */

/* How many times the larger is the smaller; 1 if one of them is not known. */
static double ratio(double a, double b)
{
    return a > 0 && b > 0 ? fmax(a, b) / fmin(a, b) : 1;
}

typedef void note_fn(struct printer *p, const char *note);

static void note_line(struct printer *p, const char *note)
{
    view_emit_line(&p->emit, "%s", note);
}

static void note_json(struct printer *p, const char *note)
{
    json_text(&p->emit.json, note);
}

/* One has more than the other. Shares are compared then, but of memory bytes are what counts. */
static void note_length(struct printer *p, note_fn *fn)
{
    const struct analysis_weights *b = p->before, *a = p->after;
    const char *which = a->total.weight > b->total.weight ? "second" : "first",
               *name = a->metric->name;
    enum view_kind kind = view_metric_kind(a->metric);
    double times = ratio((double)b->total.weight, (double)a->total.weight);
    char note[256];
    if (times <= SAME_WITHIN)
        return;
    if (a->memory)
        snprintf(note, sizeof note, "The %s has %.3g times as many %s (%s).", which, times,
                 kind == VIEW_BYTES ? "bytes" : "blocks", name);
    else
        snprintf(note, sizeof note, "The %s has %.3g times as much %s%s: points tell more than %s.",
                 which, times, name, kind != VIEW_SECONDS || a->calls ? "" : " time",
                 kind == VIEW_SECONDS ? "seconds"
                 : kind == VIEW_BYTES ? "bytes"
                                      : "counts");
    fn(p, note);
}

static void each_note(struct printer *p, note_fn *fn)
{
    const struct analysis_weights *b = p->before, *a = p->after;
    char note[256];
    note_length(p, fn);
    if (!b->total.samples != !a->total.samples) {
        snprintf(note, sizeof note, "The %s has no %s of metric %s that the filters leave.",
                 b->total.samples ? "second" : "first", view_heading_unit(a, true),
                 a->metric->name);
        fn(p, note);
    }
    double b_hz = view_run_achieved_hz(b->profile), a_hz = view_run_achieved_hz(a->profile);
    if (!a->exact && !b->exact && ratio(b_hz, a_hz) > SAME_WITHIN) {
        snprintf(note, sizeof note, "They were sampled at different rates: %.0f and %.0f Hz.", b_hz,
                 a_hz);
        fn(p, note);
    }
    struct buf versions[2];
    buf_init(&versions[0], TEXT_MAX);
    buf_init(&versions[1], TEXT_MAX);
    view_run_pythons(b->profile, &versions[0]);
    view_run_pythons(a->profile, &versions[1]);
    if (strcmp(buf_cstr(&versions[0]), buf_cstr(&versions[1])) != 0) {
        snprintf(note, sizeof note, "They ran on different Pythons: %.80s and %.80s.",
                 buf_cstr(&versions[0]), buf_cstr(&versions[1]));
        fn(p, note);
    }
    buf_release(&versions[0]);
    buf_release(&versions[1]);
}

/* --- around the table --- */

static void json_side(struct printer *p, const char *key, const struct analysis_weights *w)
{
    struct json *j = &p->emit.json;
    json_key(j, key);
    json_object_begin(j);
    view_run_json(j, w->profile);
    view_heading_facts(j, w);
    view_run_sampling_json(j, w->profile);
    view_run_losses_json(j, w->profile, w->damaged_chunks);
    json_object_end(j);
}

static void json_facts(struct printer *p, bool too_short)
{
    struct json *j = &p->emit.json;
    json_side(p, "before", p->before);
    json_side(p, "after", p->after);
    json_kv_text(j, "metric", p->after->metric->name);
    json_kv_text(j, "unit", p->after->metric->unit);
    json_kv_text(j, "by", ANALYSIS_BY_NAMES[p->diff->after->by]);
    json_kv_u64(j, "matched_rows", too_short ? 0 : p->diff->matched);
    json_kv_bool(j, "too_short", too_short);
    json_key(j, "notes");
    json_array_begin(j);
    each_note(p, note_json);
    json_array_end(j);
    if (p->culprits)
        view_culprits_json(j, p->culprits);
}

static void heading_side(struct printer *p, const char *which, const struct analysis_weights *w)
{
    char id[PROFILE_ID_SIZE];
    profile_id_text(w->profile, id);
    buf_clear(&p->text);
    view_run_command(w->profile, &p->text);
    uint64_t n = w->calls ? w->calls->total.calls : w->total.samples;
    view_emit_line(&p->emit, "%-6s  run %.8s  %s in %s %s  %s", which, id,
                   view_weight_text(w->metric, w->total.weight).text, view_units_count(n).text,
                   w->calls ? "calls, exact" : view_heading_unit(w, true), buf_cstr(&p->text));
}

static void print_text(struct printer *p, bool too_short)
{
    if (too_short) {
        view_heading_too_short(&p->emit, view_is_too_short(p->before) ? p->before : p->after);
        return;
    }
    heading_side(p, "before", p->before);
    heading_side(p, "after", p->after);
    each_note(p, note_line);
    view_emit_line(&p->emit, "%s", "");
    if (!p->before->total.samples && !p->after->total.samples)
        view_heading_nothing_left(&p->emit, p->after);
    else if (!p->diff->count)
        view_emit_line(&p->emit, "No row matches; without --match there are more.");
    else
        print_table(p, false);
    if (p->diff->matched > p->diff->count)
        view_emit_line(&p->emit, "… and %s more row%s (--limit 0 shows all)",
                       view_units_count(p->diff->matched - p->diff->count).text,
                       p->diff->matched - p->diff->count == 1 ? "" : "s");
    if (p->culprits && p->diff->count) {
        view_emit_line(&p->emit, "%s", "");
        view_culprits_print(&p->emit, p->culprits);
    }
    view_heading_losses(&p->emit, p->before);
    view_heading_losses(&p->emit, p->after);
}

int view_diff_print(const struct analysis_diff *diff, const struct analysis_culprits *culprits,
                    FILE *out, enum view_format format, struct view_style style)
{
    struct printer p = {.diff = diff,
                        .culprits = culprits,
                        .before = diff->before->weights,
                        .after = diff->after->weights};
    bool too_short = view_is_too_short(p.before) || view_is_too_short(p.after);
    buf_init(&p.text, TEXT_MAX);
    choose_columns(&p);
    view_emit_init(&p.emit, out, format, style);
    if (format == VIEW_JSON)
        json_facts(&p, too_short);
    if (format == VIEW_TEXT)
        print_text(&p, too_short);
    else
        print_table(&p, too_short);
    int r = view_emit_finish(&p.emit);
    buf_release(&p.text);
    return r;
}
