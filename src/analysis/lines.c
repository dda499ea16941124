/* Two groupings, by place and by file, joined by the file's name: interned in the profile, so that
 * its address is its identity. */
#include "analysis/lines.h"

#include "analysis/match.h"
#include "base/err.h"

/* --- gathering --- */

/* For each row by place, the code object that begins last before its line. */
static void find_functions(const struct analysis_rows *places, uint32_t *code_of)
{
    const struct profile_tables *t = profile_tables(places->weights->profile);
    memset(code_of, 0, (places->count + 1) * sizeof *code_of);
    for (size_t i = 1; i < t->node_count; i++) {
        uint32_t row = places->node_row[i], code = t->node_code[i];
        uint32_t best = t->codes[code_of[row]].first_line, here = t->codes[code].first_line;
        if (!code_of[row] || (here > best && here <= t->node_line[i]))
            code_of[row] = code;
    }
}

static int compare_ptr(const char *a, const char *b)
{
    return (uintptr_t)a < (uintptr_t)b ? -1 : (uintptr_t)a > (uintptr_t)b;
}

static int compare_places(const void *a, const void *b, void *ctx)
{
    const struct analysis_row *rows = ctx;
    const struct analysis_row *x = &rows[*(const uint32_t *)a], *y = &rows[*(const uint32_t *)b];
    int c = compare_ptr(x->file.text, y->file.text);
    return c ? c : x->line < y->line ? -1 : x->line > y->line;
}

static int compare_file_ptrs(const void *a, const void *b)
{
    const struct analysis_file *x = a, *y = b;
    return compare_ptr(x->path.text, y->path.text);
}

static int compare_u64_falling(uint64_t a, uint64_t b)
{
    return a > b ? -1 : a < b;
}

static int compare_files(const void *a, const void *b)
{
    const struct analysis_file *x = a, *y = b;
    int c = compare_u64_falling(x->self.weight, y->self.weight);
    if (!c)
        c = compare_u64_falling(x->total.weight, y->total.weight);
    if (!c)
        c = memcmp(x->path.text, y->path.text, min_u64(x->path.len, y->path.len));
    return c ? c : x->path.len < y->path.len ? -1 : x->path.len > y->path.len;
}

static int compare_special(const void *a, const void *b)
{
    const struct analysis_row *x = a, *y = b;
    int c = compare_u64_falling(x->self.weight, y->self.weight);
    return c ? c : memcmp(x->name.text, y->name.text, min_u64(x->name.len, y->name.len));
}

static void take_files(const struct analysis_rows *files, struct analysis_lines *l)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct analysis_row *row = &files->row[i];
        if (!row->total.samples)
            continue;
        if (row->special)
            l->special[l->special_count++] = *row;
        else
            l->file[l->file_count++] =
                (struct analysis_file){.path = row->file, .self = row->self, .total = row->total};
    }
    qsort(l->special, l->special_count, sizeof *l->special, compare_special);
    qsort(l->file, l->file_count, sizeof *l->file, compare_file_ptrs);
    size_t kept = 0; /* files whose names were lost with a damaged chunk share one */
    for (size_t i = 0; i < l->file_count; i++) {
        if (kept && l->file[kept - 1].path.text == l->file[i].path.text) {
            analysis_weight_add(&l->file[kept - 1].self, l->file[i].self);
            analysis_weight_add(&l->file[kept - 1].total, l->file[i].total);
        } else {
            l->file[kept++] = l->file[i];
        }
    }
    l->file_count = kept;
}

static void take_lines(const struct analysis_rows *places, const uint32_t *order, size_t count,
                       const uint32_t *code_of, struct analysis_lines *l)
{
    const struct profile_tables *t = profile_tables(places->weights->profile);
    struct analysis_file *file = l->file;
    for (size_t i = 0; i < count; i++) {
        const struct analysis_row *row = &places->row[order[i]];
        const struct record_code *code = &t->codes[code_of[order[i]]];
        while (file->path.text != row->file.text)
            file++; /* both are in the order of the addresses */
        if (!file->count) {
            file->first = l->line_count;
        } else if (l->line[l->line_count - 1].line == row->line) {
            struct analysis_line *same = &l->line[l->line_count - 1];
            analysis_weight_add(&same->self, row->self);
            analysis_weight_add(&same->total, row->total);
            same->self_variance += row->self_variance;
            same->total_variance += row->total_variance;
            continue;
        }
        file->count++;
        struct profile_string name = t->strings[code->qualname ? code->qualname : code->name];
        bool is_module = name.len == 8 && memcmp(name.text, "<module>", 8) == 0;
        l->line[l->line_count++] = (struct analysis_line){
            .line = row->line,
            .function_line = is_module ? 0 : code->first_line,
            .function = name,
            .self = row->self,
            .total = row->total,
            .self_variance = row->self_variance,
            .total_variance = row->total_variance,
        };
    }
}

static int gather(const struct analysis_rows *places, const struct analysis_rows *files,
                  struct analysis_lines *l)
{
    _cleanup_free_ uint32_t *code_of = malloc((places->count + 1) * sizeof *code_of);
    _cleanup_free_ uint32_t *order = malloc((places->count + 1) * sizeof *order);
    l->file = calloc(files->count + 1, sizeof *l->file);
    l->special = calloc(files->count + 1, sizeof *l->special);
    l->line = calloc(places->count + 1, sizeof *l->line);
    if (!code_of || !order || !l->file || !l->special || !l->line)
        return E_NOMEM;
    size_t count = 0;
    for (uint32_t i = 0; i < places->count; i++)
        if (!places->row[i].special && places->row[i].total.samples)
            order[count++] = i;
    qsort_r(order, count, sizeof *order, compare_places, places->row);
    find_functions(places, code_of);
    take_files(files, l);
    take_lines(places, order, count, code_of, l);
    qsort(l->file, l->file_count, sizeof *l->file, compare_files);
    return 0;
}

int analysis_lines_init(const struct analysis_weights *weights, struct analysis_lines *ret)
{
    struct analysis_lines l = {.weights = weights};
    struct analysis_rows places = {0}, files = {0};
    int r = analysis_rows_init(weights, ANALYSIS_BY_PLACE, &places);
    if (r == 0)
        r = analysis_rows_init(weights, ANALYSIS_BY_FILE, &files);
    if (r == 0)
        r = gather(&places, &files, &l);
    analysis_rows_release(&places);
    analysis_rows_release(&files);
    if (r < 0) {
        analysis_lines_release(&l);
        return r;
    }
    *ret = l;
    return 0;
}

void analysis_lines_release(struct analysis_lines *l)
{
    free(l->file);
    free(l->line);
    free(l->special);
    *l = (struct analysis_lines){0};
}

const struct analysis_line *analysis_lines_find(const struct analysis_lines *l,
                                                const struct analysis_file *file, uint32_t line)
{
    size_t from = file->first, to = file->first + file->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (l->line[middle].line == line)
            return &l->line[middle];
        if (l->line[middle].line < line)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

/* --- choosing --- */

static bool is_worth(const struct analysis_lines *l, const struct analysis_file *file,
                     const struct analysis_line *line, const struct analysis_lines_select *s,
                     struct buf *scratch)
{
    double least = s->min_percent / 100 * (double)l->weights->total.weight;
    return line->total.samples >= s->min_samples && (double)line->total.weight >= least &&
           (!s->match ||
            analysis_match_code(s->match, line->function, file->path, line->line, scratch));
}

/* The end of the function last asked for: its lines follow one another. */
struct memo {
    uint32_t first, end;
};

static struct analysis_span span_of(const struct analysis_line *line,
                                    const struct analysis_lines_select *s,
                                    const struct analysis_pysource *source, struct memo *memo)
{
    struct analysis_span span = {line->line, line->line};
    if (!source || line->line == 0)
        return span;
    if (s->has_context) {
        uint32_t k = (uint32_t)min_u64(s->context, UINT32_MAX);
        span.from = line->line > k ? line->line - k : 1;
        span.to = (uint32_t)min_u64((uint64_t)line->line + k, source->count);
    } else if (line->function_line) {
        if (memo->first != line->function_line)
            *memo = (struct memo){line->function_line,
                                  analysis_pysource_end(source, line->function_line)};
        span.from = memo->first;
        span.to = memo->end;
    } else {
        span.to = analysis_pysource_end(source, line->line);
    }
    /* a source that has changed may be shorter than the line's number says */
    span.from = span.from > line->line ? line->line : span.from;
    span.to = span.to < line->line ? line->line : span.to;
    return span;
}

static int compare_spans(const void *a, const void *b)
{
    const struct analysis_span *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Spans that touch or overlap become one. */
static void merge(analysis_span_vec *spans)
{
    size_t kept = 0;
    for (size_t i = 0; i < spans->len; i++) {
        struct analysis_span *last = kept ? &spans->data[kept - 1] : NULL;
        struct analysis_span next = spans->data[i];
        if (last && next.from <= (uint64_t)last->to + 1)
            last->to = next.to > last->to ? next.to : last->to;
        else
            spans->data[kept++] = next;
    }
    spans->len = kept;
}

int analysis_lines_spans(const struct analysis_lines *l, const struct analysis_file *file,
                         const struct analysis_lines_select *select,
                         const struct analysis_pysource *source, analysis_span_vec *spans)
{
    struct buf scratch;
    buf_init(&scratch, ANALYSIS_MATCH_BYTES_MAX);
    struct memo memo = {0};
    int r = 0;
    for (size_t i = file->first; r == 0 && i < file->first + file->count; i++) {
        const struct analysis_line *line = &l->line[i];
        if (!is_worth(l, file, line, select, &scratch))
            continue;
        struct analysis_span *span = vec_push(spans);
        if (span)
            *span = span_of(line, select, source, &memo);
        else
            r = E_NOMEM;
    }
    if (r == 0)
        r = buf_error(&scratch);
    buf_release(&scratch);
    if (r == 0 && spans->len) {
        qsort(spans->data, spans->len, sizeof *spans->data, compare_spans);
        merge(spans);
    }
    return r;
}
