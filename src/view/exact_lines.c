/* Prints file after file: one source is in memory at a time. The layouts are those that people know by
 * heart from the two tools they come from, to the column. */
#include "view/exact_lines.h"

#include "base/err.h"
#include "view/heading.h"
#include "view/run.h"
#include "view/text.h"

#include <inttypes.h>

enum { TEXT_MAX = 64 << 20 };
#define SECONDS(ns) ((double)(ns)*1e-9)

struct printer {
    const struct view_exact_lines *view;
    const struct analysis_exact_lines *exact;
    const struct profile_tables *t;
    struct view_emit emit;
    struct buf text; /* scratch */
    analysis_span_vec spans;
    size_t files_shown;
};

/* A file on its way out. */
struct page {
    const struct analysis_file *file;
    struct profile_source source;
    struct analysis_pysource lines; /* zero without source */
};

static double percent_of(const struct printer *p, uint64_t ns)
{
    uint64_t total = p->exact->weights.total.weight;
    return total ? 100 * (double)ns / (double)total : 0;
}

static double per(double seconds, uint64_t hits)
{
    return hits ? seconds / (double)hits : 0;
}

static bool text_of(const struct page *page, uint32_t number, struct profile_string *ret)
{
    if (number == 0 || number > page->lines.count)
        return false;
    const struct analysis_pyline *line = &page->lines.line[number - 1];
    *ret = (struct profile_string){page->lines.text + line->at, line->len};
    return true;
}

static const char *escaped(struct printer *p, struct profile_string s)
{
    buf_clear(&p->text);
    view_text_escape(&p->text, s.text, s.len);
    return buf_cstr(&p->text);
}

/* The source of a line, harmless for a terminal; "" if there is none. Tabs stay: columns behind the
 * source there are none. */
static const char *source_text(struct printer *p, const struct page *page, uint32_t number)
{
    struct profile_string s = {"", 0};
    text_of(page, number, &s);
    buf_clear(&p->text);
    for (size_t from = 0, i = 0; i <= s.len; i++)
        if (i == s.len || s.text[i] == '\t') {
            view_text_escape(&p->text, s.text + from, i - from);
            if (i < s.len)
                buf_put_u8(&p->text, '\t');
            from = i + 1;
        }
    return buf_cstr(&p->text);
}

typedef void line_fn(struct printer *p, const struct page *page, uint32_t number,
                     const struct analysis_line *line);

static void each_line_of(struct printer *p, const struct page *page, struct analysis_span span,
                         line_fn *fn)
{
    static const struct analysis_line never = {0};
    for (uint64_t n = span.from; n <= span.to; n++) {
        const struct analysis_line *line =
            analysis_lines_find(&p->exact->lines, page->file, (uint32_t)n);
        if (line || (n && n <= page->lines.count))
            fn(p, page, (uint32_t)n, line ? line : &never);
    }
}

/* --- as pprofile --- */

static void pprofile_line(struct printer *p, const struct page *page, uint32_t number,
                          const struct analysis_line *line)
{
    double own = SECONDS(line->self.weight);
    fprintf(p->emit.out, "%6" PRIu32 "|%10" PRIu64 "|%13g|%13g|%6.2f%%|%s\n", number,
            line->self.samples, own, per(own, line->self.samples), percent_of(p, line->self.weight),
            source_text(p, page, number));
    size_t count;
    const struct analysis_line_call *call =
        analysis_exact_calls(p->exact, page->file->path, number, &count);
    for (size_t i = 0; i < count; i++) {
        const struct record_code *code = &p->t->codes[call[i].callee];
        double time = SECONDS(call[i].ns);
        fprintf(p->emit.out, "(call)|%10" PRIu64 "|%13g|%13g|%6.2f%%|# %s:", call[i].calls, time,
                per(time, call[i].calls), percent_of(p, call[i].ns),
                escaped(p, p->t->strings[code->file]));
        fprintf(p->emit.out, "%" PRIu32 " %s\n", code->first_line,
                escaped(p, analysis_code_name(p->t, call[i].callee)));
    }
}

/* What is to be known about the source before its lines are believed. */
static const char *note_of(const struct page *page)
{
    if (page->source.origin == PROFILE_SOURCE_NONE)
        return "no source to be had: only the lines that ran";
    if (!page->source.changed)
        return NULL;
    return page->source.origin == PROFILE_SOURCE_KEPT
               ? "the file has changed since: this is the text that ran, kept in the recording"
               : "the file has changed since, and the text that ran was not kept: the lines may "
                 "not fit";
}

static void pprofile_file(struct printer *p, const struct page *page)
{
    FILE *out = p->emit.out;
    uint64_t own = page->file->self.weight;
    fprintf(out, "File: %s\n", escaped(p, page->file->path));
    fprintf(out, "File duration: %gs (%.2f%%)\n", SECONDS(own), percent_of(p, own));
    if (note_of(page))
        fprintf(out, "(%s)\n", note_of(page));
    fputs("Line #|      Hits|         Time| Time per hit|      %|Source code\n"
          "------+----------+-------------+-------------+-------+-----------\n",
          out);
    for (size_t i = 0; i < p->spans.len; i++) {
        if (i && page->lines.count)
            fprintf(out, "%6s|%10s|%13s|%13s|%7s|\n", "...", "", "", "", "");
        each_line_of(p, page, p->spans.data[i], pprofile_line);
    }
}

/* --- as line_profiler --- */

static void line_profiler_line(struct printer *p, const struct page *page, uint32_t number,
                               const struct analysis_line_part *part, uint64_t total_ns)
{
    FILE *out = p->emit.out;
    uint64_t ns = part ? part->own_ns + part->callee_ns : 0;
    if (part && part->hits)
        fprintf(out, "%6" PRIu32 " %9" PRIu64 " %12.1f %8.1f %8.1f  ", number, part->hits,
                (double)ns * 1e-3, per((double)ns * 1e-3, part->hits),
                total_ns ? 100 * (double)ns / (double)total_ns : 0);
    else if (
        ns) /* before its first line a function is at its def: no hit, but a part of the total */
        fprintf(out, "%6" PRIu32 " %9s %12.1f %8s %8.1f  ", number, "", (double)ns * 1e-3, "",
                100 * (double)ns / (double)total_ns);
    else
        fprintf(out, "%6" PRIu32 " %9s %12s %8s %8s  ", number, "", "", "", "");
    fprintf(out, "%s\n", source_text(p, page, number));
}

/* The parts of one function, `count` of them. */
static void line_profiler_function(struct printer *p, const struct page *page,
                                   const struct analysis_line_part *part, size_t count)
{
    FILE *out = p->emit.out;
    const struct record_code *code = &p->t->codes[part->code];
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += part[i].own_ns + part[i].callee_ns;
    fprintf(out, "\nTotal time: %g s\nFile: %s\n", SECONDS(total), escaped(p, page->file->path));
    fprintf(out, "Function: %s at line %" PRIu32 "\n",
            escaped(p, analysis_code_name(p->t, part->code)), code->first_line);
    if (note_of(page))
        fprintf(out, "(%s)\n", note_of(page));
    fputs("\nLine #      Hits         Time  Per Hit   % Time  Line Contents\n"
          "==============================================================\n",
          out);
    uint32_t next = code->first_line ? code->first_line : 1;
    uint32_t end = page->lines.count ? analysis_pysource_end(&page->lines, next) : 0;
    for (size_t i = 0; i < count; i++) {
        /* between two lines that ran those that did not, as far as the source goes */
        for (; next < part[i].line && next <= page->lines.count; next++)
            line_profiler_line(p, page, next, NULL, total);
        line_profiler_line(p, page, part[i].line, &part[i], total);
        next = part[i].line < UINT32_MAX ? part[i].line + 1 : part[i].line;
    }
    for (; next <= end; next++)
        line_profiler_line(p, page, next, NULL, total);
}

static bool same_function(const struct printer *p, uint32_t a, uint32_t b)
{
    const struct record_code *x = &p->t->codes[a], *y = &p->t->codes[b];
    return x->file == y->file && x->first_line == y->first_line && x->name == y->name &&
           x->qualname == y->qualname;
}

static void line_profiler_file(struct printer *p, const struct page *page)
{
    const struct analysis_exact_lines *e = p->exact;
    for (size_t i = 0, n; i < e->part_count; i += n) {
        const struct analysis_line_part *part = &e->part[i];
        const struct record_code *code = &p->t->codes[part->code];
        for (n = 1; i + n < e->part_count && same_function(p, part->code, part[n].code); n++)
            ;
        if (p->t->strings[code->file].text != page->file->path.text)
            continue;
        bool shown = false;
        for (size_t k = 0; k < n && !shown; k++)
            shown = analysis_exact_is_worth(e, &part[k], p->view->select, &p->text);
        if (shown)
            line_profiler_function(p, page, part, n);
    }
}

/* --- JSON --- */

static void json_string(struct json *j, const char *key, bool known, struct profile_string text)
{
    json_key(j, key);
    if (known)
        json_text_n(j, text.text, text.len);
    else
        json_null(j);
}

static void json_times(struct printer *p, struct analysis_weight self, struct analysis_weight total)
{
    struct json *j = &p->emit.json;
    json_kv_u64(j, "hits", self.samples);
    json_kv_real(j, "self", SECONDS(self.weight));
    json_kv_real(j, "self_percent", percent_of(p, self.weight));
    json_kv_real(j, "total", SECONDS(total.weight));
    json_kv_real(j, "total_percent", percent_of(p, total.weight));
}

static void json_calls(struct printer *p, const struct page *page, uint32_t number)
{
    struct json *j = &p->emit.json;
    size_t count;
    const struct analysis_line_call *call =
        analysis_exact_calls(p->exact, page->file->path, number, &count);
    json_key(j, "calls");
    json_array_begin(j);
    for (size_t i = 0; i < count; i++) {
        const struct record_code *code = &p->t->codes[call[i].callee];
        json_object_begin(j);
        json_string(j, "function", true, analysis_code_name(p->t, call[i].callee));
        json_string(j, "file", true, p->t->strings[code->file]);
        json_kv_u64(j, "line", code->first_line);
        json_kv_u64(j, "calls", call[i].calls);
        json_kv_real(j, "total", SECONDS(call[i].ns));
        json_object_end(j);
    }
    json_array_end(j);
}

static void json_line(struct printer *p, const struct page *page, uint32_t number,
                      const struct analysis_line *line)
{
    struct json *j = &p->emit.json;
    struct profile_string text = {0};
    bool known = text_of(page, number, &text);
    json_object_begin(j);
    json_kv_u64(j, "line", number);
    json_string(j, "function", line->function.text != NULL, line->function);
    json_times(p, line->self, line->total);
    json_calls(p, page, number);
    json_string(j, "text", known, text);
    json_object_end(j);
}

static void json_file(struct printer *p, const struct page *page)
{
    static const char *const origins[] = {NULL, "file", "zip", "kept"};
    struct json *j = &p->emit.json;
    const char *origin = origins[page->source.origin];
    json_object_begin(j);
    json_string(j, "file", true, page->file->path);
    json_string(j, "source", origin != NULL,
                (struct profile_string){origin, origin ? (uint32_t)strlen(origin) : 0});
    json_kv_bool(j, "changed", page->source.changed);
    json_kv_u64(j, "hits", page->file->self.samples);
    json_kv_real(j, "self", SECONDS(page->file->self.weight));
    json_kv_real(j, "self_percent", percent_of(p, page->file->self.weight));
    json_key(j, "lines");
    json_array_begin(j);
    for (size_t i = 0; i < p->spans.len; i++)
        each_line_of(p, page, p->spans.data[i], json_line);
    json_array_end(j);
    json_object_end(j);
}

/* --- CSV --- */

static void csv_line(struct printer *p, const struct page *page, uint32_t number,
                     const struct analysis_line *line)
{
    struct profile_string text = {0}, file = page->file->path;
    bool known = text_of(page, number, &text);
    const struct view_cell cells[] = {
        {.text = file.text, .len = file.len},
        {.count = number},
        {.text = line->function.text, .len = line->function.len, .absent = !line->function.text},
        {.count = line->self.samples},
        {.real = SECONDS(line->self.weight)},
        {.real = percent_of(p, line->self.weight)},
        {.real = SECONDS(line->total.weight)},
        {.real = percent_of(p, line->total.weight)},
        {.text = text.text, .len = text.len, .absent = !known},
    };
    view_emit_row_begin(&p->emit, cells);
    view_emit_row_end(&p->emit);
}

static const struct view_column COLUMNS[] = {
    {"file", NULL, VIEW_PATH, VIEW_ONLY_DATA},
    {"line", NULL, VIEW_ID, VIEW_ONLY_DATA},
    {"function", NULL, VIEW_NAME, VIEW_ONLY_DATA},
    {"hits", NULL, VIEW_COUNT, VIEW_ONLY_DATA},
    {"self", NULL, VIEW_SECONDS, VIEW_ONLY_DATA},
    {"self_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
    {"total", NULL, VIEW_SECONDS, VIEW_ONLY_DATA},
    {"total_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA},
    {"text", NULL, VIEW_NAME, VIEW_ONLY_DATA},
};

/* --- all of it --- */

static void print_page(struct printer *p, const struct page *page)
{
    if (p->emit.format == VIEW_JSON)
        json_file(p, page);
    else if (p->emit.format == VIEW_CSV)
        for (size_t i = 0; i < p->spans.len; i++)
            each_line_of(p, page, p->spans.data[i], csv_line);
    else if (p->view->style == VIEW_LINE_PROFILER)
        line_profiler_file(p, page);
    else
        pprofile_file(p, page);
    p->files_shown++;
}

/* All lines of a file that has a source, and what ran behind its end. */
static int whole_span(struct printer *p, const struct page *page)
{
    uint32_t count = page->lines.count;
    size_t kept = 0;
    for (size_t i = 0; i < p->spans.len; i++)
        if (p->spans.data[i].from > count)
            p->spans.data[kept++] = p->spans.data[i];
    p->spans.len = kept;
    struct analysis_span *span = vec_push(&p->spans);
    if (!span)
        return E_NOMEM;
    memmove(p->spans.data + 1, p->spans.data, kept * sizeof *span);
    p->spans.data[0] = (struct analysis_span){1, count};
    return 0;
}

static int print_file(struct printer *p, const struct analysis_file *file)
{
    const struct view_exact_lines *v = p->view;
    const struct analysis_lines *l = &v->exact->lines;
    struct page page = {.file = file};
    p->spans.len = 0;
    /* is there anything to show? the source is read only then */
    int r = analysis_lines_spans(l, file, v->select, NULL, &p->spans);
    if (r < 0 || !p->spans.len)
        return r;
    r = profile_source_find(v->sources, file->path, &page.source);
    if (r == 0 && page.source.text)
        r = analysis_pysource_init(page.source.text, page.source.len, &page.lines);
    if (r == 0 && page.source.text) {
        p->spans.len = 0;
        r = analysis_lines_spans(l, file, v->select, &page.lines, &p->spans);
        if (r == 0 && v->whole_files)
            r = whole_span(p, &page);
    }
    if (r == 0)
        print_page(p, &page);
    analysis_pysource_release(&page.lines);
    profile_source_release(&page.source);
    return r;
}

static int print_files(struct printer *p)
{
    const struct analysis_lines *l = &p->exact->lines;
    int r = 0;
    for (size_t i = 0; r == 0 && i < l->file_count; i++)
        r = print_file(p, &l->file[i]);
    return r;
}

static int print_json(struct printer *p)
{
    struct json *j = view_emit_json(&p->emit);
    const struct analysis_weights *w = &p->exact->weights;
    view_run_json(j, w->profile);
    json_kv_bool(j, "exact", true);
    json_kv_real(j, "total", SECONDS(w->total.weight));
    json_kv_u64(j, "hits", w->total.samples);
    view_run_losses_json(j, w->profile, w->damaged_chunks);
    json_key(j, "files");
    json_array_begin(j);
    int r = print_files(p);
    json_array_end(j);
    return r;
}

static int print_text(struct printer *p)
{
    const struct analysis_weights *w = &p->exact->weights;
    if (p->view->style == VIEW_PPROFILE) {
        buf_clear(&p->text);
        view_run_command(w->profile, &p->text);
        fprintf(p->emit.out, "Command line: %s\n", buf_cstr(&p->text));
        fprintf(p->emit.out, "Total duration: %gs\n", SECONDS(w->total.weight));
    } else {
        fputs("Timer unit: 1e-06 s\n", p->emit.out);
    }
    fputs("(" VIEW_HEADING_LINE_PROBES ")\n", p->emit.out);
    int r = print_files(p);
    size_t left = p->exact->lines.file_count - p->files_shown;
    if (!p->files_shown)
        view_emit_line(&p->emit, "No line is left by --match, --min-percent and --min-hits.");
    if (left && p->files_shown)
        view_emit_line(&p->emit, "\n… and %zu more file%s (--min-percent 0 shows all)", left,
                       left == 1 ? "" : "s");
    buf_clear(&p->text);
    view_run_losses(w->profile, w->damaged_chunks, &p->text);
    if (p->text.len)
        view_emit_line(&p->emit, "\nlost: %s", buf_cstr(&p->text));
    return r;
}

static int print_csv(struct printer *p)
{
    view_emit_table_begin(&p->emit, "lines", COLUMNS, ARRAY_LEN(COLUMNS), false);
    int r = print_files(p);
    view_emit_table_end(&p->emit);
    return r;
}

int view_exact_lines_print(const struct view_exact_lines *view, FILE *out, enum view_format format,
                           struct view_style style)
{
    struct printer p = {
        .view = view, .exact = view->exact, .t = profile_tables(view->exact->weights.profile)};
    buf_init(&p.text, TEXT_MAX);
    view_emit_init(&p.emit, out, format, style);
    int r = format == VIEW_JSON  ? print_json(&p)
            : format == VIEW_CSV ? print_csv(&p)
                                 : print_text(&p);
    int finished = view_emit_finish(&p.emit);
    r = r ? r : buf_error(&p.text) ? buf_error(&p.text) : finished;
    vec_release(&p.spans);
    buf_release(&p.text);
    return r;
}
