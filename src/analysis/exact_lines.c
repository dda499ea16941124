/* Records are many (one for each cell and flush), so they are gathered in two flat arrays, sorted and
 * merged; files, functions and lines then follow one another. */
#include "analysis/exact_lines.h"

#include "analysis/match.h"
#include "base/err.h"
#include "base/idxmap.h"

bool analysis_exact_lines_has(const struct profile *p)
{
    return profile_line_records(p) > 0;
}

struct profile_string analysis_code_name(const struct profile_tables *t, uint32_t code)
{
    const struct record_code *c = &t->codes[code];
    return t->strings[c->qualname ? c->qualname : c->name];
}

/* --- gathering --- */

struct gathering {
    const struct profile_tables *t;
    const struct analysis_query *q;
    VEC(struct analysis_line_part) parts;
    VEC(struct analysis_line_call) calls;
};

static int take_record(void *ctx, const struct record_line *r)
{
    struct gathering *g = ctx;
    if (!analysis_query_takes_thread(g->q, g->t, r->thread))
        return 0;
    const struct record_code *code = &g->t->codes[r->code];
    uint32_t line = r->line ? r->line : code->first_line;
    if (!r->callee) {
        struct analysis_line_part *part = vec_push(&g->parts);
        if (!part)
            return E_NOMEM;
        *part = (struct analysis_line_part){r->code, line, r->hits, r->own_ns, r->callee_ns};
        return 0;
    }
    struct analysis_line_call *call = vec_push(&g->calls);
    if (!call)
        return E_NOMEM;
    *call = (struct analysis_line_call){
        g->t->strings[code->file], line, r->callee, r->code, r->hits, r->callee_ns};
    return 0;
}

/* --- sorting and merging --- */

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_text(struct profile_string a, struct profile_string b)
{
    if (a.text == b.text)
        return 0;
    int c = memcmp(a.text, b.text, min_u64(a.len, b.len));
    return c ? c : compare_u64(a.len, b.len);
}

/* The same function, though its code was made more than once (an inner function, a reload). */
static int compare_codes(const struct profile_tables *t, uint32_t a, uint32_t b)
{
    const struct record_code *x = &t->codes[a], *y = &t->codes[b];
    int c = a == b ? 0
                   : compare_u64((uintptr_t)t->strings[x->file].text,
                                 (uintptr_t)t->strings[y->file].text);
    if (!c)
        c = compare_u64(x->first_line, y->first_line);
    return c || a == b ? c : compare_text(analysis_code_name(t, a), analysis_code_name(t, b));
}

static int compare_parts(const void *a, const void *b, void *ctx)
{
    const struct analysis_line_part *x = a, *y = b;
    int c = compare_codes(ctx, x->code, y->code);
    return c ? c : compare_u64(x->line, y->line);
}

static int compare_part_calls(const void *a, const void *b, void *ctx)
{
    const struct analysis_line_call *x = a, *y = b;
    int c = compare_codes(ctx, x->caller, y->caller);
    if (!c)
        c = compare_u64(x->line, y->line);
    return c ? c : compare_codes(ctx, x->callee, y->callee);
}

static int compare_calls(const void *a, const void *b, void *ctx)
{
    const struct analysis_line_call *x = a, *y = b;
    int c = compare_u64((uintptr_t)x->file.text, (uintptr_t)y->file.text);
    if (!c)
        c = compare_u64(x->line, y->line);
    return c ? c : compare_codes(ctx, x->callee, y->callee);
}

/* As the caller is shown them. */
static int compare_call_times(const void *a, const void *b)
{
    const struct analysis_line_call *x = a, *y = b;
    int c = compare_u64((uintptr_t)x->file.text, (uintptr_t)y->file.text);
    if (!c)
        c = compare_u64(x->line, y->line);
    if (!c)
        c = compare_u64(y->ns, x->ns);
    if (!c)
        c = compare_u64(y->calls, x->calls);
    return c ? c : compare_u64(x->callee, y->callee);
}

static void merge_parts(struct gathering *g)
{
    void *ctx = (void *)g->t;
    size_t kept = 0;
    if (g->parts.len)
        qsort_r(g->parts.data, g->parts.len, sizeof *g->parts.data, compare_parts, ctx);
    for (size_t i = 0; i < g->parts.len; i++) {
        struct analysis_line_part *next = &g->parts.data[i], *last = &g->parts.data[kept];
        if (i == 0 || compare_parts(--last, next, ctx) != 0) {
            g->parts.data[kept++] = *next;
        } else {
            last->hits += next->hits;
            last->own_ns += next->own_ns;
            last->callee_ns += next->callee_ns;
        }
    }
    g->parts.len = kept;
}

/* Sorts calls and adds up those that are equal; returns how many are left. */
static size_t merge_calls(struct analysis_line_call *call, size_t count, void *ctx,
                          int (*compare)(const void *, const void *, void *))
{
    size_t kept = 0;
    if (count)
        qsort_r(call, count, sizeof *call, compare, ctx);
    for (size_t i = 0; i < count; i++) {
        struct analysis_line_call *last = kept ? &call[kept - 1] : NULL;
        if (!last || compare(last, &call[i], ctx) != 0) {
            call[kept++] = call[i];
        } else {
            last->calls += call[i].calls;
            last->ns += call[i].ns;
        }
    }
    return kept;
}

/* The calls of each function's lines, and those of the lines whatever their function. */
static int make_calls(struct gathering *g, struct analysis_exact_lines *e)
{
    void *ctx = (void *)g->t;
    size_t count = merge_calls(g->calls.data, g->calls.len, ctx, compare_part_calls);
    struct analysis_line_call *call = malloc((count + 1) * sizeof *call);
    if (!call)
        return E_NOMEM;
    if (count)
        memcpy(call, g->calls.data, count * sizeof *call);
    e->call = call;
    e->call_count = merge_calls(call, count, ctx, compare_calls);
    e->part_call_count = count;
    if (e->call_count)
        qsort(call, e->call_count, sizeof *call, compare_call_times);
    return 0;
}

/* --- files and their lines --- */

static int compare_lines(const void *a, const void *b)
{
    const struct analysis_line *x = a, *y = b;
    int c = compare_u64(x->line, y->line);
    return c ? c : compare_u64(y->function_line, x->function_line); /* the innermost first */
}

static int compare_files(const void *a, const void *b)
{
    const struct analysis_file *x = a, *y = b;
    int c = compare_u64(y->self.weight, x->self.weight);
    return c ? c : compare_text(x->path, y->path);
}

static struct analysis_line line_of(const struct profile_tables *t,
                                    const struct analysis_line_part *part)
{
    struct profile_string name = analysis_code_name(t, part->code);
    bool is_module = name.len == 8 && memcmp(name.text, "<module>", 8) == 0;
    return (struct analysis_line){
        .line = part->line,
        .function_line = is_module ? 0 : t->codes[part->code].first_line,
        .function = name,
        .self = {part->own_ns, part->hits},
        .total = {part->own_ns + part->callee_ns, part->hits},
    };
}

/* Lines of several functions become one; the file's numbers are their sums. */
static void finish_file(struct analysis_lines *l, struct analysis_file *file)
{
    struct analysis_line *line = &l->line[file->first];
    size_t kept = 0;
    qsort(line, file->count, sizeof *line, compare_lines);
    for (size_t i = 0; i < file->count; i++) {
        analysis_weight_add(&file->self, line[i].self);
        analysis_weight_add(&file->total, line[i].self);
        if (kept && line[kept - 1].line == line[i].line) {
            analysis_weight_add(&line[kept - 1].self, line[i].self);
            analysis_weight_add(&line[kept - 1].total, line[i].total);
        } else {
            line[kept++] = line[i];
        }
    }
    file->count = kept;
    l->line_count = file->first + kept;
}

static int make_lines(const struct profile_tables *t, struct analysis_exact_lines *e)
{
    struct analysis_lines *l = &e->lines;
    l->file = calloc(e->part_count + 1, sizeof *l->file);
    l->line = calloc(e->part_count + 1, sizeof *l->line);
    if (!l->file || !l->line)
        return E_NOMEM;
    for (size_t i = 0; i < e->part_count;) {
        struct analysis_file *file = &l->file[l->file_count++];
        file->path = t->strings[t->codes[e->part[i].code].file];
        file->first = l->line_count;
        for (; i < e->part_count &&
               t->strings[t->codes[e->part[i].code].file].text == file->path.text;
             i++)
            l->line[file->first + file->count++] = line_of(t, &e->part[i]);
        finish_file(l, file);
        analysis_weight_add(&e->weights.total, file->self);
    }
    qsort(l->file, l->file_count, sizeof *l->file, compare_files);
    return 0;
}

int analysis_exact_lines_init(const struct profile *profile, const struct analysis_query *query,
                              struct analysis_exact_lines *ret)
{
    struct gathering g = {.t = profile_tables(profile), .q = query};
    *ret = (struct analysis_exact_lines){
        .weights = {.profile = profile, .metric = ANALYSIS_METRICS, .exact = true},
    };
    int r = profile_each_line(profile, take_record, &g, &ret->weights.damaged_chunks);
    if (r == 0) {
        merge_parts(&g);
        r = make_calls(&g, ret);
    }
    ret->lines.weights = &ret->weights;
    ret->part = g.parts.data;
    ret->part_count = g.parts.len;
    ret->part_call = g.calls.data;
    if (r == 0)
        r = make_lines(g.t, ret);
    if (r < 0)
        analysis_exact_lines_release(ret);
    return r;
}

void analysis_exact_lines_release(struct analysis_exact_lines *l)
{
    analysis_lines_release(&l->lines);
    free(l->part);
    free(l->call);
    free(l->part_call);
    *l = (struct analysis_exact_lines){0};
}

bool analysis_exact_is_worth(const struct analysis_exact_lines *l,
                             const struct analysis_line_part *part,
                             const struct analysis_lines_select *s, struct buf *scratch)
{
    const struct profile_tables *t = profile_tables(l->weights.profile);
    double least = s->min_percent / 100 * (double)l->weights.total.weight;
    return part->hits >= s->min_samples && (double)(part->own_ns + part->callee_ns) >= least &&
           (!s->match ||
            analysis_match_code(s->match, analysis_code_name(t, part->code),
                                t->strings[t->codes[part->code].file], part->line, scratch));
}

const struct analysis_line_call *analysis_exact_calls(const struct analysis_exact_lines *l,
                                                      struct profile_string file, uint32_t line,
                                                      size_t *ret_count)
{
    size_t from = 0, to = l->call_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const struct analysis_line_call *c = &l->call[middle];
        int order = compare_u64((uintptr_t)c->file.text, (uintptr_t)file.text);
        if (!order)
            order = compare_u64(c->line, line);
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    size_t n = 0;
    while (from + n < l->call_count && l->call[from + n].file.text == file.text &&
           l->call[from + n].line == line)
        n++;
    *ret_count = n;
    return n ? &l->call[from] : NULL;
}

const struct analysis_line_call *analysis_exact_part_calls(const struct analysis_exact_lines *l,
                                                           const struct analysis_line_part *part,
                                                           size_t *ret_count)
{
    const struct profile_tables *t = profile_tables(l->weights.profile);
    size_t from = 0, to = l->part_call_count, n = 0;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const struct analysis_line_call *c = &l->part_call[middle];
        int order = compare_codes(t, c->caller, part->code);
        if (!order)
            order = compare_u64(c->line, part->line);
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    while (from + n < l->part_call_count && l->part_call[from + n].line == part->line &&
           compare_codes(t, l->part_call[from + n].caller, part->code) == 0)
        n++;
    *ret_count = n;
    return n ? &l->part_call[from] : NULL;
}

/* --- rows of a report --- */

bool analysis_exact_has_metric(const struct analysis_metric *metric)
{
    return metric == analysis_metric_find("time");
}

bool analysis_exact_answers(const struct profile *p, const struct analysis_query *q)
{
    bool by_default = q->metric == ANALYSIS_METRICS && !profile_sample_records(p);
    return analysis_exact_lines_has(p) && (by_default || analysis_exact_has_metric(q->metric)) &&
           !q->has_from && !q->has_to && !q->include && !q->exclude;
}

int analysis_exact_rows_init(const struct analysis_exact_lines *l, struct analysis_rows *ret)
{
    const struct profile_tables *t = profile_tables(l->weights.profile);
    struct analysis_row *row = calloc(l->part_count + 1, sizeof *row);
    if (!row)
        return E_NOMEM;
    for (size_t i = 0; i < l->part_count; i++) {
        const struct analysis_line_part *p = &l->part[i];
        row[i] = (struct analysis_row){
            .name = analysis_code_name(t, p->code),
            .file = t->strings[t->codes[p->code].file],
            .line = p->line,
            .hits = p->hits,
            .self = {p->own_ns, p->hits},
            .total = {p->own_ns + p->callee_ns, p->hits},
        };
    }
    *ret = (struct analysis_rows){.by = ANALYSIS_BY_LINE,
                                  .weights = &l->weights,
                                  .row = row,
                                  .count = l->part_count,
                                  .has_hits = true};
    return 0;
}

/* Texts are interned, so equal ones are at equal places. */
static uint32_t hash_place(struct profile_string name, struct profile_string file, uint32_t line)
{
    uint64_t texts = (uint64_t)(uintptr_t)name.text * 31 + (uint64_t)(uintptr_t)file.text;
    return hash_u64(texts * 31 + line);
}

int analysis_exact_count(const struct analysis_exact_lines *l, struct analysis_rows *rows)
{
    const struct profile_tables *t = profile_tables(l->weights.profile);
    struct idxmap map = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < rows->count; i++) {
        const struct analysis_row *row = &rows->row[i];
        r = idxmap_insert(&map, hash_place(row->name, row->file, row->line), (uint32_t)i);
    }
    for (size_t i = 0; r == 0 && i < l->part_count; i++) {
        const struct analysis_line_part *p = &l->part[i];
        struct profile_string name = analysis_code_name(t, p->code);
        struct profile_string file = t->strings[t->codes[p->code].file];
        uint32_t at;
        IDXMAP_FIND(&map, hash_place(name, file, p->line), k,
                    rows->row[k].name.text == name.text && rows->row[k].file.text == file.text &&
                        rows->row[k].line == p->line && !rows->row[k].special,
                    at);
        if (at != IDXMAP_NONE)
            rows->row[at].hits += p->hits;
    }
    idxmap_release(&map);
    rows->has_hits = r == 0;
    return r;
}
