/* Prints file after file: one source is in memory at a time, whatever the size of the program. */
#include "view/lines.h"

#include "base/err.h"
#include "view/heading.h"
#include "view/lines_columns.h"
#include "view/run.h"
#include "view/text.h"

#include <inttypes.h>

enum {
    TEXT_MAX = 64 << 20,
    TAB_WIDTH = 8,
    MARGIN = 36,      /* columns before the source */
    CSV_COLUMNS = 11, /* before those of view_lines.column */
};

struct printer {
    const struct view_lines *view;
    const struct analysis_weights *weights;
    struct view_emit emit;
    struct buf text, fit; /* scratch */
    analysis_span_vec spans;
    size_t files_shown;
};

/* A file on its way out. */
struct page {
    const struct analysis_file *file;
    const struct analysis_file *beside; /* the same in view->beside; NULL: it is not there */
    struct profile_source source;
    struct analysis_pysource lines; /* zero without source */
    struct lines_columns columns;
};

static const char *const ORIGIN_NAMES[] = {NULL, "file", "zip", "kept"};

static double percent_of(const struct printer *p, struct analysis_weight w)
{
    uint64_t total = p->weights->total.weight;
    return total ? 100 * (double)w.weight / (double)total : 0;
}

static double error_of(const struct printer *p, struct analysis_weight w)
{
    if (p->weights->memory)
        return 0; /* what was sampled has errors of its own, in columns beside */
    return analysis_share_error(percent_of(p, w) / 100, analysis_weights_worth(p->weights));
}

/* The source of a line; false if there is none. */
static bool text_of(const struct page *page, uint32_t number, struct profile_string *ret)
{
    if (number == 0 || number > page->lines.count)
        return false;
    const struct analysis_pyline *line = &page->lines.line[number - 1];
    *ret = (struct profile_string){page->lines.text + line->at, line->len};
    return true;
}

typedef void line_fn(struct printer *p, const struct page *page, uint32_t number,
                     const struct analysis_line *line);

/* Calls `fn` for every line of a span. One that goes past the end of its source shows only those
 * lines there that were seen. */
static void each_line_of(struct printer *p, const struct page *page, struct analysis_span span,
                         line_fn *fn)
{
    for (uint64_t n = span.from; n <= span.to; n++) {
        const struct analysis_line *line =
            analysis_lines_find(p->view->lines, page->file, (uint32_t)n);
        const struct analysis_line *other =
            page->beside ? analysis_lines_find(p->view->beside, page->beside, (uint32_t)n) : NULL;
        struct analysis_line never = {0};
        if (other)
            never.function = other->function;
        if (line || other || (n && n <= page->lines.count))
            fn(p, page, (uint32_t)n, line ? line : &never);
    }
}

static void each_line(struct printer *p, const struct page *page, line_fn *fn)
{
    for (size_t i = 0; i < p->spans.len; i++)
        each_line_of(p, page, p->spans.data[i], fn);
}

/* --- JSON --- */

static void json_weights(struct printer *p, struct analysis_weight self,
                         struct analysis_weight total)
{
    struct json *j = &p->emit.json;
    double scale = p->weights->metric->scale;
    json_kv_real(j, "self", (double)self.weight * scale);
    json_kv_real(j, "self_percent", percent_of(p, self));
    json_kv_real(j, "error_percent", error_of(p, self));
    json_kv_real(j, "total", (double)total.weight * scale);
    json_kv_real(j, "total_percent", percent_of(p, total));
    json_kv_u64(j, "samples", self.samples);
    json_kv_u64(j, "total_samples", total.samples);
}

static void json_string(struct json *j, const char *key, bool known, struct profile_string text)
{
    json_key(j, key);
    if (known)
        json_text_n(j, text.text, text.len);
    else
        json_null(j);
}

static void json_line(struct printer *p, const struct page *page, uint32_t number,
                      const struct analysis_line *line)
{
    struct json *j = &p->emit.json;
    struct profile_string text = {0};
    bool known = text_of(page, number, &text);
    json_object_begin(j);
    json_key(j, "line");
    if (number)
        json_u64(j, number);
    else
        json_null(j);
    json_string(j, "function", line->function.text != NULL, line->function);
    json_weights(p, line->self, line->total);
    lines_columns_json(&page->columns, number, j);
    json_string(j, "text", known, text);
    json_object_end(j);
}

static void json_file(struct printer *p, const struct page *page)
{
    struct json *j = &p->emit.json;
    const char *origin = ORIGIN_NAMES[page->source.origin];
    json_object_begin(j);
    json_string(j, "file", true, page->file->path);
    json_string(j, "source", origin != NULL,
                (struct profile_string){origin, origin ? (uint32_t)strlen(origin) : 0});
    json_kv_bool(j, "changed", page->source.changed);
    json_weights(p, page->file->self, page->file->total);
    json_key(j, "lines");
    json_array_begin(j);
    each_line(p, page, json_line);
    json_array_end(j);
    json_object_end(j);
}

static void json_special(struct printer *p, bool too_short)
{
    struct json *j = &p->emit.json;
    const struct analysis_lines *l = p->view->lines;
    json_key(j, "special");
    json_array_begin(j);
    for (size_t i = 0; !too_short && i < l->special_count; i++) {
        json_object_begin(j);
        json_string(j, "name", true, l->special[i].name);
        json_weights(p, l->special[i].self, l->special[i].total);
        json_object_end(j);
    }
    json_array_end(j);
}

/* --- CSV --- */

static void csv_line(struct printer *p, const struct page *page, uint32_t number,
                     const struct analysis_line *line)
{
    struct profile_string text = {0}, file = page->file->path;
    bool known = text_of(page, number, &text);
    double scale = p->weights->metric->scale;
    struct view_cell cells[CSV_COLUMNS + VIEW_LINES_COLUMNS_MAX] = {
        {.text = file.text, .len = file.len},
        {.count = number, .absent = number == 0},
        {.text = line->function.text, .len = line->function.len, .absent = !line->function.text},
        {.real = (double)line->self.weight * scale, .count = line->self.weight},
        {.real = percent_of(p, line->self)},
        {.real = error_of(p, line->self)},
        {.real = (double)line->total.weight * scale, .count = line->total.weight},
        {.real = percent_of(p, line->total)},
        {.count = line->self.samples},
        {.count = line->total.samples},
        {.text = text.text, .len = text.len, .absent = !known},
    };
    lines_columns_cells(&page->columns, number, cells + CSV_COLUMNS);
    view_emit_row_begin(&p->emit, cells);
    view_emit_row_end(&p->emit);
}

static void csv_begin(struct printer *p, struct view_column *columns, size_t count)
{
    enum view_kind kind = view_metric_kind(p->weights->metric);
    columns[3].kind = columns[6].kind = kind;
    view_emit_table_begin(&p->emit, "lines", columns, count, false);
}

/* --- text --- */

/* Tabs as blanks, the rest harmless. */
static void append_source(struct buf *out, struct profile_string text)
{
    size_t from = 0, column = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.text[i] != '\t')
            continue;
        size_t before = out->len;
        view_text_escape(out, text.text + from, i - from);
        column += view_text_width((const char *)out->data + before, out->len - before);
        from = i + 1;
        if (i == text.len)
            break;
        do
            buf_put_u8(out, ' ');
        while (++column % TAB_WIDTH);
    }
}

/* Columns before the source. */
static unsigned margin_of(const struct view_lines *view)
{
    return view->columns ? 8 + lines_columns_width(view) : MARGIN;
}

static void text_line(struct printer *p, const struct page *page, uint32_t number,
                      const struct analysis_line *line)
{
    FILE *out = p->emit.out;
    struct profile_string text = {"", 0};
    text_of(page, number, &text);
    bool faint = p->emit.style.colour && !line->function.text;
    buf_clear(&p->text);
    buf_clear(&p->fit);
    append_source(&p->text, text);
    unsigned width = p->emit.style.width, margin = margin_of(p->view);
    size_t room = !width ? SIZE_MAX : width > margin ? width - margin : 1;
    view_text_fit(&p->fit, (const char *)p->text.data, p->text.len, room, VIEW_CUT_RIGHT);
    char self[VIEW_UNITS_SIZE] = "", total[VIEW_UNITS_SIZE] = "", at[16] = "?";
    if (line->total.samples) {
        snprintf(self, sizeof self, "%s", view_units_percent(percent_of(p, line->self)).text);
        snprintf(total, sizeof total, "%s", view_units_percent(percent_of(p, line->total)).text);
    }
    if (number)
        snprintf(at, sizeof at, "%" PRIu32, number);
    fputs(faint ? "\x1b[2m" : "", out);
    if (p->view->columns) {
        fprintf(out, "%6s", at);
        lines_columns_text(&page->columns, number, out);
    } else {
        fprintf(out, "%9s %8s %8s %6s", view_units_count(line->self.samples).text, self, total, at);
    }
    if (p->fit.len) {
        fputs("  ", out);
        fwrite(p->fit.data, 1, p->fit.len, out);
    }
    fputs(faint ? "\x1b[0m\n" : "\n", out);
}

/* What is to be known about the source before its lines are believed. */
static const char *note_of(const struct page *page)
{
    const struct profile_source *s = &page->source;
    if (s->origin == PROFILE_SOURCE_NONE)
        return "no source to be had: only the lines that were seen";
    if (s->origin == PROFILE_SOURCE_KEPT)
        return s->changed ? "the file has changed since: this is the text that ran, kept in the "
                            "recording"
                          : "kept in the recording: there is no such file";
    return s->changed ? "the file has changed since, and the text that ran was not kept: the lines "
                        "may not fit"
                      : NULL;
}

static void text_file(struct printer *p, const struct page *page)
{
    FILE *out = p->emit.out;
    bool colour = p->emit.style.colour;
    buf_clear(&p->text);
    view_text_escape(&p->text, page->file->path.text, page->file->path.len);
    fprintf(out, "%s%s%s%s  %s self, ", p->files_shown ? "\n" : "", colour ? "\x1b[1m" : "",
            buf_cstr(&p->text), colour ? "\x1b[0m" : "",
            view_units_percent(percent_of(p, page->file->self)).text);
    fprintf(out, "%s total\n", view_units_percent(percent_of(p, page->file->total)).text);
    const char *note = note_of(page);
    if (note)
        fprintf(out, "(%s)\n", note);
    if (p->view->columns) {
        fprintf(out, "%6s", "line");
        lines_columns_heading(p->view, out);
        fputs("  source\n", out);
    } else {
        fprintf(out, "%9s %8s %8s %6s  %s\n", "samples", "self %", "total %", "line", "source");
    }
    for (size_t i = 0; i < p->spans.len; i++) {
        if (i && page->lines.count)
            fprintf(out, "%*s…\n", (int)margin_of(p->view) - 2, "");
        each_line_of(p, page, p->spans.data[i], text_line);
    }
}

static void text_special(struct printer *p)
{
    const struct analysis_lines *l = p->view->lines;
    for (size_t i = 0; i < l->special_count; i++) {
        buf_clear(&p->text);
        view_text_escape(&p->text, l->special[i].name.text, l->special[i].name.len);
        const char *name = buf_cstr(&p->text);
        view_emit_line(&p->emit, "%s%9s %8s %8s         %s", i ? "" : "\nin no line:\n",
                       view_units_count(l->special[i].self.samples).text,
                       view_units_percent(percent_of(p, l->special[i].self)).text,
                       view_units_percent(percent_of(p, l->special[i].total)).text, name);
    }
}

static void text_begin(struct printer *p)
{
    double worst = 0;
    for (size_t i = 0; i < p->view->lines->line_count; i++) {
        double e = error_of(p, p->view->lines->line[i].self);
        worst = e > worst ? e : worst;
    }
    view_heading_print(&p->emit, p->weights, worst);
}

/* The file of that path; one profile has one text for each. */
static const struct analysis_file *file_of(const struct analysis_lines *l,
                                           struct profile_string path)
{
    for (size_t i = 0; i < l->file_count; i++)
        if (l->file[i].path.text == path.text && l->file[i].path.len == path.len)
            return &l->file[i];
    return NULL;
}

/* The next file that is beside only, from `*at` on; NULL: there is none. */
static const struct analysis_file *next_beside(const struct view_lines *v, size_t *at)
{
    while (v->beside && *at < v->beside->file_count) {
        const struct analysis_file *file = &v->beside->file[(*at)++];
        if (!file_of(v->lines, file->path))
            return file;
    }
    return NULL;
}

static void text_end(struct printer *p)
{
    size_t left = p->view->lines->file_count - p->files_shown, at = 0;
    while (next_beside(p->view, &at))
        left++;
    if (!p->files_shown)
        view_emit_line(&p->emit, "No line is left by --match, --min-percent and --min-samples.");
    text_special(p);
    if (left)
        view_emit_line(&p->emit, "\n… and %s more file%s (--min-percent 0 shows all)",
                       view_units_count(left).text, left == 1 ? "" : "s");
    view_heading_losses(&p->emit, p->weights);
}

/* --- all of it --- */

static void print_page(struct printer *p, const struct page *page)
{
    if (p->emit.format == VIEW_JSON)
        json_file(p, page);
    else if (p->emit.format == VIEW_CSV)
        each_line(p, page, csv_line);
    else
        text_file(p, page);
    p->files_shown++;
}

static int find_spans(struct printer *p, const struct page *page,
                      const struct analysis_pysource *source)
{
    const struct view_lines *v = p->view;
    p->spans.len = 0;
    int r = analysis_lines_spans(v->lines, page->file, v->select, source, &p->spans);
    if (r == 0 && page->beside)
        r = analysis_lines_spans(v->beside, page->beside, v->select, source, &p->spans);
    return r;
}

static int print_file(struct printer *p, const struct analysis_file *file)
{
    const struct view_lines *v = p->view;
    struct page page = {.file = file, .beside = v->beside ? file_of(v->beside, file->path) : NULL};
    lines_columns_init(&page.columns, v, file->path);
    /* is there anything to show? the source is read only then */
    int r = find_spans(p, &page, NULL);
    if (r < 0 || !p->spans.len)
        return r;
    r = profile_source_find(v->sources, file->path, &page.source);
    if (r == 0 && page.source.text)
        r = analysis_pysource_init(page.source.text, page.source.len, &page.lines);
    if (r == 0 && page.source.text)
        r = find_spans(p, &page, &page.lines);
    if (r == 0)
        print_page(p, &page);
    analysis_pysource_release(&page.lines);
    profile_source_release(&page.source);
    return r;
}

static int print_files(struct printer *p)
{
    int r = 0;
    uint64_t limit = p->view->limit ? p->view->limit : UINT64_MAX;
    for (size_t i = 0; r == 0 && i < p->view->lines->file_count && p->files_shown < limit; i++) {
        r = print_file(p, &p->view->lines->file[i]);
        if (r == 0 && ferror(p->emit.out)) /* nobody reads any more: view_emit_finish() says why */
            break;
    }
    const struct analysis_file *other;
    for (size_t at = 0; r == 0 && p->files_shown < limit && (other = next_beside(p->view, &at));)
        r = print_file(p, &(struct analysis_file){.path = other->path});
    return r;
}

static int print_json(struct printer *p, bool too_short)
{
    struct json *j = &p->emit.json;
    view_run_json(j, p->weights->profile);
    view_heading_facts(j, p->weights);
    view_run_sampling_json(j, p->weights->profile);
    view_run_losses_json(j, p->weights->profile, p->weights->damaged_chunks);
    json_special(p, too_short);
    json_key(j, "files");
    json_array_begin(j);
    int r = too_short ? 0 : print_files(p);
    json_array_end(j);
    return r;
}

static int print_csv(struct printer *p, bool too_short)
{
    struct view_column columns[CSV_COLUMNS + VIEW_LINES_COLUMNS_MAX] = {
        {"file", NULL, VIEW_PATH, VIEW_ONLY_DATA},
        {"line", NULL, VIEW_ID, VIEW_ONLY_DATA},
        {"function", NULL, VIEW_NAME, VIEW_ONLY_DATA},
        {"self", NULL, VIEW_SECONDS, VIEW_ONLY_DATA},
        {"self_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
        {"error_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
        {"total", NULL, VIEW_SECONDS, VIEW_ONLY_DATA},
        {"total_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
        {"samples", NULL, VIEW_COUNT, VIEW_ONLY_DATA},
        {"total_samples", NULL, VIEW_COUNT, VIEW_ONLY_DATA},
        {"text", NULL, VIEW_NAME, VIEW_ONLY_DATA},
    };
    csv_begin(p, columns, CSV_COLUMNS + lines_columns_add(p->view, columns + CSV_COLUMNS));
    int r = too_short ? 0 : print_files(p);
    view_emit_table_end(&p->emit);
    return r;
}

static int print_text(struct printer *p, bool too_short)
{
    if (too_short) {
        view_heading_too_short(&p->emit, p->weights);
        return 0;
    }
    if (!p->weights->total.samples) {
        view_heading_nothing_left(&p->emit, p->weights);
        return 0;
    }
    text_begin(p);
    int r = print_files(p);
    if (r == 0)
        text_end(p);
    return r;
}

int view_lines_print(const struct view_lines *view, FILE *out, enum view_format format,
                     struct view_style style)
{
    struct printer p = {.view = view, .weights = view->lines->weights};
    bool too_short = view_is_too_short(p.weights);
    buf_init(&p.text, TEXT_MAX);
    buf_init(&p.fit, TEXT_MAX);
    view_emit_init(&p.emit, out, format, style);
    int r = format == VIEW_JSON  ? print_json(&p, too_short)
            : format == VIEW_CSV ? print_csv(&p, too_short)
                                 : print_text(&p, too_short);
    int finished = view_emit_finish(&p.emit);
    r = r ? r : buf_error(&p.text) ? buf_error(&p.text) : finished;
    vec_release(&p.spans);
    buf_release(&p.text);
    buf_release(&p.fit);
    return r;
}
