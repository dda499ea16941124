/* Prints the report. The columns are one list; what a grouping has no use for is left out of it. */
#include "view/report.h"

#include "base/err.h"
#include "view/familiar.h"
#include "view/heading.h"
#include "view/heading_memory.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

#include <math.h>

enum {
    TEXT_EDGES = 8, /* callers or callees shown under a row of the text table */
    WHERE_MAX = 64 << 20,
    SURE_SAMPLES = 1000, /* with fewer, the error column is always shown */
};

enum column {
    NAME,
    FILE_,
    LINE,
    TID,
    PID,
    SELF,
    SELF_PERCENT,
    ERROR_PERCENT,
    TOTAL,
    TOTAL_PERCENT,
    TOTAL_ERROR,
    SAMPLES,
    TOTAL_SAMPLES,
    CALLS,
    PRIMITIVE_CALLS,
    RESUMES,
    ALIVE,
    HITS,
    ERROR,
    TOTAL_BYTES_ERROR,
    SPECIAL,
    TEXT_NAME,
    TEXT_WHERE,
    /* pstats' */
    NCALLS,
    TOTTIME,
    TOTTIME_PERCALL,
    CUMTIME,
    CUMTIME_PERCALL,
    TEXT_RESUMES,
    TEXT_ALIVE,
    STANDARD_NAME,
    COLUMN_COUNT
};

struct counts {
    uint64_t calls, primitive_calls, resumes, alive_ns;
};

struct printer {
    const struct view_report *report;
    struct view_emit emit;
    struct view_column columns[COLUMN_COUNT];
    enum column which[COLUMN_COUNT]; /* what stands in each of them */
    size_t column_count;
    bool in_edges;       /* the row being printed is a caller or callee: its errors are not */
    struct counts count; /* of the row being printed, where they were counted */
    struct view_familiar_calls ncalls;
    struct buf where;
};

/* --- columns --- */

static void add_column(struct printer *p, enum column which, struct view_column column)
{
    p->which[p->column_count] = which;
    p->columns[p->column_count++] = column;
}

/* The rows are lines that were counted and timed: their samples are hits. Blocks of memory are none. */
static bool is_of_hits(const struct view_report *report)
{
    return report->rows->has_hits && report->weights->exact && !report->weights->memory;
}

/* Functions that were counted and timed are shown as pstats shows them. */
static bool is_familiar(const struct view_report *report)
{
    enum analysis_by by = report->rows->by;
    return report->weights->exact && !report->rows->has_hits &&
           view_metric_kind(report->weights->metric) == VIEW_SECONDS &&
           (by == ANALYSIS_BY_FUNCTION || by == ANALYSIS_BY_LINE);
}

static void choose_familiar(struct printer *p)
{
    static const struct {
        enum column which;
        const char *title;
        enum view_kind kind;
    } columns[] = {
        {NCALLS, "ncalls", VIEW_WORD},
        {TOTTIME, "tottime", VIEW_PLAIN_SECONDS},
        {TOTTIME_PERCALL, "percall", VIEW_PLAIN_SECONDS},
        {CUMTIME, "cumtime", VIEW_PLAIN_SECONDS},
        {CUMTIME_PERCALL, "percall", VIEW_PLAIN_SECONDS},
        {TEXT_RESUMES, "resumes", VIEW_COUNT},
        {TEXT_ALIVE, "alive", VIEW_PLAIN_SECONDS},
        {STANDARD_NAME, "filename:lineno(function)", VIEW_PATH},
    };
    const struct view_report *report = p->report;
    bool resumes = false, alive = false; /* most programs have none */
    for (size_t i = 0; i < report->selection->count; i++) {
        const struct analysis_row *row = &report->rows->row[report->selection->row[i]];
        resumes |= row->resumes != 0;
        alive |= row->alive_ns != 0;
    }
    for (size_t i = 0; i < p->column_count; i++)
        p->columns[i].place = VIEW_ONLY_DATA;
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        if ((columns[i].which != TEXT_RESUMES || resumes) &&
            (columns[i].which != TEXT_ALIVE || alive))
            add_column(
                p, columns[i].which,
                (struct view_column){NULL, columns[i].title, columns[i].kind, VIEW_ONLY_TEXT});
}

static void choose_counted(struct printer *p)
{
    add_column(p, CALLS, (struct view_column){"calls", "calls", VIEW_COUNT, VIEW_BOTH});
    add_column(p, PRIMITIVE_CALLS,
               (struct view_column){"primitive_calls", "primitive", VIEW_COUNT, VIEW_BOTH});
    if (!p->report->weights->calls)
        return; /* another tool's counts have no more */
    add_column(p, RESUMES, (struct view_column){"resumes", NULL, VIEW_COUNT, VIEW_ONLY_DATA});
    add_column(p, ALIVE, (struct view_column){"alive", NULL, VIEW_SECONDS, VIEW_ONLY_DATA});
}

static void choose_columns(struct printer *p, bool with_error)
{
    enum analysis_by by = p->report->rows->by;
    bool code = analysis_by_is_code(by);
    enum view_kind kind = view_metric_kind(p->report->weights->metric);
    enum view_column_place total = code ? VIEW_BOTH : VIEW_ONLY_DATA;
    enum view_column_place error = with_error ? VIEW_BOTH : VIEW_ONLY_DATA;
    bool is_path = by == ANALYSIS_BY_FILE;
    bool counted = code && (p->report->weights->calls ||
                            (analysis_weights_counted(p->report->weights) &&
                             (by == ANALYSIS_BY_FUNCTION || by == ANALYSIS_BY_LINE)));
    bool hits_alone = is_of_hits(p->report);
    counted = counted && !hits_alone;
    enum view_column_place samples = counted || hits_alone ? VIEW_ONLY_DATA : VIEW_BOTH;

    add_column(p, NAME, (struct view_column){"name", NULL, VIEW_NAME, VIEW_ONLY_DATA});
    add_column(p, FILE_, (struct view_column){"file", NULL, VIEW_PATH, VIEW_ONLY_DATA});
    add_column(p, LINE, (struct view_column){"line", NULL, VIEW_ID, VIEW_ONLY_DATA});
    add_column(p, SELF,
               (struct view_column){"self",
                                    code                         ? "self"
                                    : p->report->weights->memory ? "size"
                                                                 : "time",
                                    kind, VIEW_BOTH});
    if (p->report->weights->variance)
        add_column(p, ERROR, (struct view_column){"error", "±", kind, VIEW_BOTH});
    add_column(
        p, SELF_PERCENT,
        (struct view_column){"self_percent", code ? "self %" : "share", VIEW_PERCENT, VIEW_BOTH});
    add_column(p, ERROR_PERCENT, (struct view_column){"error_percent", "±", VIEW_PERCENT, error});
    add_column(p, TOTAL, (struct view_column){"total", "total", kind, total});
    if (p->report->weights->variance)
        add_column(p, TOTAL_BYTES_ERROR,
                   (struct view_column){"total_error", NULL, kind, VIEW_ONLY_DATA});
    add_column(p, TOTAL_PERCENT,
               (struct view_column){"total_percent", "total %", VIEW_PERCENT, total});
    add_column(p, TOTAL_ERROR,
               (struct view_column){"total_error_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA});
    const char *entries = view_heading_unit(p->report->weights, true);
    add_column(p, SAMPLES, (struct view_column){"samples", entries, VIEW_COUNT, samples});
    add_column(p, TOTAL_SAMPLES,
               (struct view_column){"total_samples", NULL, VIEW_COUNT, VIEW_ONLY_DATA});
    if (p->report->rows->has_hits)
        add_column(p, HITS,
                   (struct view_column){"hits", "hits", VIEW_COUNT,
                                        p->report->weights->memory ? VIEW_ONLY_DATA : VIEW_BOTH});
    if (counted)
        choose_counted(p);
    add_column(p, SPECIAL, (struct view_column){"special", NULL, VIEW_BOOL, VIEW_ONLY_DATA});
    if (is_familiar(p->report)) {
        choose_familiar(p);
        return;
    }
    if (!code)
        add_column(p, PID, (struct view_column){"pid", "pid", VIEW_ID, VIEW_BOTH});
    if (by == ANALYSIS_BY_THREAD)
        add_column(p, TID, (struct view_column){"tid", "tid", VIEW_ID, VIEW_BOTH});
    add_column(p, TEXT_NAME,
               (struct view_column){NULL,
                                    by == ANALYSIS_BY_LINE ? "function" : ANALYSIS_BY_NAMES[by],
                                    is_path ? VIEW_PATH : VIEW_NAME, VIEW_ONLY_TEXT});
    if (code && !is_path)
        add_column(p, TEXT_WHERE,
                   (struct view_column){NULL, by == ANALYSIS_BY_MODULE ? "file" : "file:line",
                                        VIEW_PATH, VIEW_ONLY_TEXT});
}

/* --- cells --- */

static struct view_cell text_cell(struct profile_string text)
{
    return (struct view_cell){.text = text.text, .len = text.len};
}

static struct view_cell id_cell(uint32_t id)
{
    return (struct view_cell){.count = id, .absent = id == 0};
}

static double share_of(const struct printer *p, struct analysis_weight w)
{
    uint64_t total = p->report->weights->total.weight;
    return total ? (double)w.weight / (double)total : 0;
}

static double error_of(const struct printer *p, struct analysis_weight w)
{
    if (p->report->weights->exact)
        return 0;
    return analysis_share_error(share_of(p, w), analysis_weights_worth(p->report->weights));
}

static struct view_cell place_cell(struct printer *p, const struct analysis_row *row, bool familiar)
{
    buf_clear(&p->where);
    if (familiar) {
        view_familiar_name(row, &p->where);
    } else {
        buf_append(&p->where, row->file.text, row->file.len);
        if (row->line)
            buf_printf(&p->where, ":%u", row->line);
    }
    const char *text = buf_cstr(&p->where);
    return (struct view_cell){.text = text, .len = p->where.len};
}

static struct view_cell ncalls_cell(struct printer *p)
{
    p->ncalls = view_familiar_calls(p->count.calls, p->count.primitive_calls);
    return (struct view_cell){.text = p->ncalls.text, .len = p->ncalls.len};
}

static struct view_cell seconds_cell(uint64_t ns, uint64_t calls, bool absent)
{
    return (struct view_cell){.real = calls ? (double)ns * 1e-9 / (double)calls : 0,
                              .absent = absent || !calls};
}

static struct view_cell familiar_cell(struct printer *p, enum column which,
                                      const struct analysis_row *row, struct analysis_weight self,
                                      struct analysis_weight total)
{
    const struct counts *c = &p->count;
    switch (which) {
    case NCALLS:
        return ncalls_cell(p);
    case TOTTIME:
        return seconds_cell(self.weight, 1, false);
    case TOTTIME_PERCALL:
        return seconds_cell(self.weight, c->calls, false);
    case CUMTIME:
        return seconds_cell(total.weight, 1, false);
    case CUMTIME_PERCALL:
        return seconds_cell(total.weight, c->primitive_calls, false);
    case TEXT_RESUMES:
        return (struct view_cell){.count = c->resumes, .absent = !c->resumes};
    case TEXT_ALIVE:
        return seconds_cell(c->alive_ns, 1, !c->alive_ns);
    default:
        return place_cell(p, row, true);
    }
}

static struct view_cell cell_of(struct printer *p, enum column which,
                                const struct analysis_row *row, struct analysis_weight self,
                                struct analysis_weight total)
{
    double scale = p->report->weights->metric->scale;
    switch (which) {
    case NAME:
    case TEXT_NAME:
        return text_cell(row->name);
    case FILE_:
        return (struct view_cell){
            .text = row->file.text, .len = row->file.len, .absent = row->file.len == 0};
    case LINE:
        return id_cell(row->line);
    case TID:
        return id_cell(row->tid);
    case PID:
        return id_cell(row->pid);
    case SELF:
        return (struct view_cell){.real = (double)self.weight * scale, .count = self.weight};
    case SELF_PERCENT:
        return (struct view_cell){.real = share_of(p, self) * 100};
    case ERROR_PERCENT:
        return (struct view_cell){.real = error_of(p, self)};
    case TOTAL:
        return (struct view_cell){.real = (double)total.weight * scale, .count = total.weight};
    case TOTAL_PERCENT:
        return (struct view_cell){.real = share_of(p, total) * 100};
    case TOTAL_ERROR:
        return (struct view_cell){.real = error_of(p, total)};
    case SAMPLES:
        return (struct view_cell){.count = self.samples};
    case TOTAL_SAMPLES:
        return (struct view_cell){.count = total.samples};
    case CALLS:
        return (struct view_cell){.count = p->count.calls};
    case PRIMITIVE_CALLS:
        return (struct view_cell){.count = p->count.primitive_calls};
    case RESUMES:
        return (struct view_cell){.count = p->count.resumes};
    case ALIVE:
        return seconds_cell(p->count.alive_ns, 1, !p->count.alive_ns);
    case HITS:
        return (struct view_cell){.count = row->hits,
                                  .absent = !row->hits && !is_of_hits(p->report)};
    case ERROR:
        return view_memory_error_cell(p->in_edges ? NAN : row->self_variance);
    case TOTAL_BYTES_ERROR:
        return view_memory_error_cell(p->in_edges ? NAN : row->total_variance);
    case SPECIAL:
        return (struct view_cell){.count = row->special};
    case TEXT_WHERE:
        return place_cell(p, row, false);
    default:
        return familiar_cell(p, which, row, self, total);
    }
}

static void fill_cells(struct printer *p, const struct analysis_row *row,
                       struct analysis_weight self, struct analysis_weight total,
                       struct view_cell *cells)
{
    for (size_t i = 0; i < p->column_count; i++)
        cells[i] = cell_of(p, p->which[i], row, self, total);
}

/* --- the table --- */

static void print_edges(struct printer *p, uint32_t row, bool callers)
{
    const struct analysis_edges *e = p->report->edges;
    const size_t *at = callers ? e->callers_at : e->callees_at;
    const struct analysis_edge *edges = callers ? e->by_callee : e->by_caller;
    size_t from = at[row], to = at[row + 1];
    if (p->emit.format == VIEW_TEXT && to - from > TEXT_EDGES)
        to = from + TEXT_EDGES;
    view_emit_sub_begin(&p->emit, callers ? "callers" : "callees", callers ? "  ← " : "  → ",
                        callers ? "caller" : "callee");
    p->in_edges = true;
    for (size_t i = from; i < to; i++) {
        struct view_cell cells[COLUMN_COUNT];
        uint32_t other = callers ? edges[i].caller : edges[i].callee;
        p->count = (struct counts){edges[i].calls, edges[i].primitive_calls, edges[i].resumes,
                                   edges[i].alive_ns};
        fill_cells(p, &p->report->rows->row[other], edges[i].self, edges[i].total, cells);
        view_emit_sub_row(&p->emit, cells);
    }
    p->in_edges = false;
    view_emit_sub_end(&p->emit);
}

static void print_table(struct printer *p, bool empty)
{
    const struct view_report *report = p->report;
    view_emit_table_begin(&p->emit, "rows", p->columns, p->column_count,
                          report->callers || report->callees);
    for (size_t i = 0; !empty && i < report->selection->count; i++) {
        uint32_t at = report->selection->row[i];
        const struct analysis_row *row = &report->rows->row[at];
        struct view_cell cells[COLUMN_COUNT];
        p->count = (struct counts){row->calls, row->primitive_calls, row->resumes, row->alive_ns};
        fill_cells(p, row, row->self, row->total, cells);
        view_emit_row_begin(&p->emit, cells);
        if (report->callers)
            print_edges(p, at, true);
        if (report->callees)
            print_edges(p, at, false);
        view_emit_row_end(&p->emit);
    }
    view_emit_table_end(&p->emit);
}

/* --- what stands around it --- */

static double worst_error(const struct printer *p)
{
    const struct analysis_selection *s = p->report->selection;
    double worst = 0;
    for (size_t i = 0; i < s->count; i++)
        worst = fmax(worst, error_of(p, p->report->rows->row[s->row[i]].self));
    return worst;
}

static void print_facts(struct printer *p, struct json *j, bool too_short)
{
    const struct analysis_weights *w = p->report->weights;
    view_run_json(j, w->profile);
    view_heading_facts(j, w);
    json_kv_text(j, "by", ANALYSIS_BY_NAMES[p->report->rows->by]);
    json_kv_u64(j, "matched_rows", too_short ? 0 : p->report->selection->matched);
    view_run_sampling_json(j, w->profile);
    view_run_losses_json(j, w->profile, w->damaged_chunks);
}

static void print_footing(struct printer *p)
{
    const struct analysis_selection *s = p->report->selection;
    if (s->matched > s->count)
        view_emit_line(&p->emit, "… and %s more row%s (--limit 0 shows all)",
                       view_units_count(s->matched - s->count).text,
                       s->matched - s->count == 1 ? "" : "s");
    view_heading_losses(&p->emit, p->report->weights);
}

static void print_heading(struct printer *p)
{
    const struct view_report *report = p->report;
    const struct analysis_weights *w = report->weights;
    if (is_of_hits(report)) {
        view_heading_run(&p->emit, w->profile);
        view_emit_line(&p->emit, "%s in %s hits of %s lines, exact",
                       view_weight_text(w->metric, w->total.weight).text,
                       view_units_count(w->total.samples).text,
                       view_units_count(report->rows->count).text);
        view_emit_line(&p->emit, "%s\n", VIEW_HEADING_LINE_PROBES);
        return;
    }
    if (!w->calls || report->rows->by != ANALYSIS_BY_FUNCTION) {
        view_heading_print(&p->emit, w, worst_error(p));
        return;
    }
    uint64_t primitive = 0;
    for (size_t i = 0; i < report->rows->count; i++)
        primitive += report->rows->row[i].primitive_calls;
    view_heading_exact(&p->emit, w, primitive);
}

/* pstats' sentence for each restriction that left something out. */
static void print_restrictions(struct printer *p)
{
    const struct analysis_select *select = p->report->select;
    const size_t *left = p->report->selection->left;
    bool any = false, familiar = select && is_familiar(p->report);
    for (size_t i = 0; familiar && i < select->restriction_count; i++) {
        if (left[i] == left[i + 1])
            continue;
        const struct analysis_restriction *r = &select->restriction[i];
        const char *quote = r->match ? "'" : "";
        buf_clear(&p->where);
        view_text_escape(&p->where, r->text, strlen(r->text));
        view_emit_line(&p->emit, "List reduced from %zu to %zu due to restriction <%s%s%s>",
                       left[i], left[i + 1], quote, buf_cstr(&p->where), quote);
        any = true;
    }
    if (any)
        view_emit_line(&p->emit, "%s", "");
}

/* There are rows, but what was asked for leaves none: names what it was. */
static void print_no_row(struct printer *p)
{
    const struct analysis_select *select = p->report->select;
    bool match = false, limit = false, percent = select && select->min_percent > 0;
    for (size_t i = 0; select && i < select->restriction_count; i++)
        *(select->restriction[i].match ? &match : &limit) = true;
    view_emit_line(&p->emit, "No row matches; without%s%s%s%s%s there are more.",
                   match ? " --match" : "", match && percent ? " and" : "",
                   percent ? " --min-percent" : "", (match || percent) && limit ? " and" : "",
                   limit ? " --limit" : "");
}

static void print_text(struct printer *p, bool too_short)
{
    if (too_short) {
        view_heading_too_short(&p->emit, p->report->weights);
    } else if (!p->report->weights->total.samples) {
        view_heading_nothing_left(&p->emit, p->report->weights);
    } else if (!p->report->selection->count) {
        print_no_row(p);
    } else {
        print_heading(p);
        print_restrictions(p);
        print_table(p, false);
        print_footing(p);
    }
}

int view_report_print(const struct view_report *report, FILE *out, enum view_format format,
                      struct view_style style)
{
    struct printer p = {.report = report};
    bool too_short = view_is_too_short(report->weights);
    buf_init(&p.where, WHERE_MAX);
    bool unsure = report->weights->total.samples < SURE_SAMPLES || worst_error(&p) >= 1;
    choose_columns(&p, unsure && !report->weights->exact);
    view_emit_init(&p.emit, out, format, style);
    if (view_emit_json(&p.emit))
        print_facts(&p, view_emit_json(&p.emit), too_short);
    if (format == VIEW_TEXT)
        print_text(&p, too_short);
    else
        print_table(&p, too_short);
    int r = view_emit_finish(&p.emit);
    buf_release(&p.where);
    return r;
}
