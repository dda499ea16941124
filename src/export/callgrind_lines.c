/* Callgrind's format of exact lines: under each function its lines with their own time and hits, and
 * under each line what it called, how often, and how long that took. */
#include "analysis/exact_lines.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "export/callgrind.h"

/* Functions that have lines, or are called by some. */
struct functions {
    VEC(struct analysis_row) row;
    uint32_t *of_code; /* plus one; 0: not yet */
};

struct writing {
    const struct analysis_exact_lines *lines;
    struct functions functions;
    struct callgrind_out to;
};

/* The same function may have been made more than once: it is its name and where it begins. */
static int add_function(struct functions *f, const struct profile_tables *t, uint32_t code,
                        struct idxmap *map)
{
    struct profile_string name = analysis_code_name(t, code),
                          file = t->strings[t->codes[code].file];
    uint32_t line = t->codes[code].first_line, at;
    uint64_t texts = (uint64_t)(uintptr_t)name.text * 31 + (uint64_t)(uintptr_t)file.text;
    if (f->of_code[code])
        return 0;
    uint32_t hash = hash_u64(texts * 31 + line);
    IDXMAP_FIND(map, hash, k,
                f->row.data[k].name.text == name.text && f->row.data[k].file.text == file.text &&
                    f->row.data[k].line == line,
                at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)f->row.len;
        struct analysis_row *row = vec_push(&f->row);
        if (!row || idxmap_insert(map, hash, at) < 0)
            return E_NOMEM;
        *row = (struct analysis_row){.name = name, .file = file, .line = line};
    }
    f->of_code[code] = at + 1;
    return 0;
}

static int find_functions(struct writing *w)
{
    const struct analysis_exact_lines *l = w->lines;
    const struct profile_tables *t = profile_tables(l->weights.profile);
    struct functions *f = &w->functions;
    struct idxmap map = {0};
    f->of_code = calloc(t->code_count + 1, sizeof *f->of_code);
    int r = f->of_code ? 0 : E_NOMEM;
    for (size_t i = 0; r == 0 && i < l->part_count; i++)
        r = add_function(f, t, l->part[i].code, &map);
    for (size_t i = 0; r == 0 && i < l->part_call_count; i++)
        r = add_function(f, t, l->part_call[i].callee, &map);
    idxmap_release(&map);
    return r;
}

static void put_calls(struct writing *w, const struct analysis_line_part *part, uint32_t from_row)
{
    size_t count;
    const struct analysis_line_call *call = analysis_exact_part_calls(w->lines, part, &count);
    for (size_t i = 0; i < count; i++) {
        uint32_t row = w->functions.of_code[call[i].callee] - 1;
        callgrind_put_call(&w->to, from_row, row, call[i].calls);
        callgrind_put_costs(&w->to, part->line, (struct analysis_weight){.weight = call[i].ns});
    }
}

static int put_lines(struct writing *w)
{
    uint32_t open = UINT32_MAX;
    int r = 0;
    for (size_t i = 0; r == 0 && i < w->lines->part_count; i++) {
        const struct analysis_line_part *part = &w->lines->part[i];
        uint32_t row = w->functions.of_code[part->code] - 1;
        if (row != open)
            callgrind_put_function(&w->to, row);
        open = row;
        callgrind_put_costs(&w->to, part->line, (struct analysis_weight){part->own_ns, part->hits});
        put_calls(w, part, row);
        r = export_drain(&w->to.buf, w->to.out, false);
    }
    return r;
}

int export_callgrind_write_lines(const struct profile *profile, const struct analysis_query *query,
                                 FILE *out)
{
    struct analysis_exact_lines lines;
    int r = analysis_exact_lines_init(profile, query, &lines);
    if (r < 0)
        return r;
    struct writing w = {.lines = &lines};
    r = find_functions(&w);
    if (r == 0)
        r = callgrind_out_init(&w.to, w.functions.row.data, w.functions.row.len, out);
    if (r == 0) {
        callgrind_put_heading(&w.to, &lines.weights, NULL, "Hits", "how often a line was reached");
        r = put_lines(&w);
    }
    if (r == 0)
        r = export_drain(&w.to.buf, out, true);
    if (r == 0)
        r = export_finish(out);
    callgrind_out_release(&w.to);
    vec_release(&w.functions.row);
    free(w.functions.of_code);
    analysis_exact_lines_release(&lines);
    return r;
}
