/* Every counted function stands somewhere in the estimated tree, so its row is found by its nodes.
 */
#include "analysis/exact.h"

#include "base/err.h"
#include "base/vec.h"

bool analysis_exact_has(const struct analysis_rows *rows)
{
    return analysis_weights_counted(rows->weights) &&
           profile_tables(rows->weights->profile)->counts &&
           (rows->by == ANALYSIS_BY_FUNCTION || rows->by == ANALYSIS_BY_LINE);
}

static uint32_t *map_codes(const struct analysis_rows *rows)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    uint32_t *code_row = malloc((t->code_count + 1) * sizeof *code_row);
    if (!code_row)
        return NULL;
    memset(code_row, 0xff, (t->code_count + 1) * sizeof *code_row);
    for (size_t i = 1; i < t->node_count; i++)
        code_row[t->node_code[i]] = rows->node_row[i];
    return code_row;
}

int analysis_exact_rows(struct analysis_rows *rows)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    _cleanup_free_ uint32_t *code_row = map_codes(rows);
    if (!code_row)
        return E_NOMEM;
    for (size_t i = 0; i < rows->count; i++) {
        struct analysis_row *row = &rows->row[i];
        row->self = row->total = (struct analysis_weight){0};
    }
    for (size_t i = 0; i < t->code_count; i++) {
        if (code_row[i] == ANALYSIS_ROW_NONE)
            continue;
        const struct profile_counts *c = &t->counts[i];
        struct analysis_row *row = &rows->row[code_row[i]];
        row->calls += c->calls;
        row->primitive_calls += c->primitive_calls;
        analysis_weight_add(&row->self, (struct analysis_weight){c->self_ns, c->calls});
        analysis_weight_add(&row->total, (struct analysis_weight){c->total_ns, c->calls});
    }
    return 0;
}

int analysis_exact_edges(const struct analysis_rows *rows, struct analysis_edge **ret,
                         size_t *ret_count)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    _cleanup_free_ uint32_t *code_row = map_codes(rows);
    struct analysis_edge *edges = calloc(t->call_count + 1, sizeof *edges);
    if (!code_row || !edges) {
        free(edges);
        return E_NOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < t->call_count; i++) {
        const struct profile_call *c = &t->calls[i];
        uint32_t caller = code_row[c->caller], callee = code_row[c->callee];
        if (caller == ANALYSIS_ROW_NONE || callee == ANALYSIS_ROW_NONE || !c->counts.calls)
            continue;
        edges[n++] = (struct analysis_edge){
            .caller = caller,
            .callee = callee,
            .calls = c->counts.calls,
            .primitive_calls = c->counts.primitive_calls,
            .self = {c->counts.self_ns, c->counts.calls},
            .total = {c->counts.total_ns, c->counts.calls},
        };
    }
    *ret = edges;
    *ret_count = n;
    return 0;
}
