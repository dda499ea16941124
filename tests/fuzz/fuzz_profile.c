/* Loading a recording and analysing it: every grouping, metric and filter, over arbitrary bytes.
 * The run id chooses which, so that one input costs one analysis. */
#include "analysis/curves.h"
#include "analysis/edges.h"
#include "analysis/leaks.h"
#include "analysis/select.h"
#include "analysis/sizes.h"
#include "reseal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first six are of samples and calls, the others of memory; the seeds' numbers are theirs. */
static const struct analysis_metric *metric_of(uint8_t choice)
{
    size_t count = 0;
    while (ANALYSIS_METRICS[count].name)
        count++;
    return &ANALYSIS_METRICS[choice % count];
}

static void check_tables(const struct profile_tables *t)
{
    for (size_t i = 0; i < t->node_count; i++)
        require((i == 0 || t->node_parent[i] < i) && t->node_code[i] < t->code_count);
    for (size_t i = 0; i < t->code_count; i++)
        require(t->codes[i].name < t->string_count && t->codes[i].qualname < t->string_count &&
                t->codes[i].file < t->string_count);
    for (size_t i = 0; i < t->string_count; i++)
        require(t->strings[i].text[t->strings[i].len] == 0);
    for (size_t i = 0; i < t->thread_count; i++)
        require(t->threads[i].process < t->process_count && t->threads[i].name < t->string_count);
    for (size_t i = 0; i < t->process_count; i++)
        require(t->processes[i].command < t->string_count &&
                t->processes[i].python_version < t->string_count);
}

static void select_rows(const struct analysis_rows *rows, const uint8_t *choice)
{
    struct analysis_select select = {
        .sort = (enum analysis_sort)(choice[4] % ANALYSIS_SORT_COUNT),
        .min_percent = choice[5] & 1 ? choice[5] / 10.0 : 0,
        .limit = choice[6],
    };
    regex_t match;
    bool matches = choice[7] & 1 && regcomp(&match, "a.*(b|_)", REG_EXTENDED) == 0;
    if (matches)
        select.match = &match;
    struct analysis_selection selection;
    if (analysis_selection_init(rows, &select, &selection) == 0) {
        for (size_t i = 0; i < selection.count; i++)
            require(selection.row[i] < rows->count);
        analysis_selection_release(&selection);
    }
    if (matches)
        regfree(&match);
}

static void check_edges(const struct analysis_rows *rows)
{
    struct analysis_edges edges;
    if (analysis_edges_init(rows, &edges) != 0)
        return;
    for (size_t i = 0; i < edges.count; i++)
        require(edges.by_caller[i].caller < rows->count && edges.by_callee[i].callee < rows->count);
    require(edges.callees_at[rows->count] == edges.count);
    analysis_edges_release(&edges);
}

static void check_memory(const struct analysis_rows *rows, const struct analysis_query *query)
{
    const struct profile *p = rows->weights->profile;
    struct analysis_growth growth;
    struct analysis_sizes sizes;
    struct analysis_curves curves;
    struct analysis_selection selection;
    struct analysis_select all = {0};
    if (analysis_growth_init(rows, query, NULL, &growth) == 0) {
        require(growth.points <= growth.iterations);
        if (analysis_leaks_select(rows, &growth, &all, &selection) == 0) {
            require(selection.count <= rows->count);
            analysis_selection_release(&selection);
        }
        analysis_growth_release(&growth);
    }
    analysis_sizes_init(p, query, rows->weights->memory, &sizes);
    if (analysis_curves_init(p, query, 7, &curves) == 0) {
        require(curves.count <= profile_tables(p)->process_count);
        analysis_curves_release(&curves);
    }
}

static void analyse(const struct profile *p, const uint8_t *choice)
{
    struct analysis_query query = {
        .metric = metric_of(choice[0]),
        .thread = choice[2] & 1   ? "MainThread"
                  : choice[2] & 2 ? "78"
                                  : NULL,
        .has_process = choice[2] & 4,
        .process = 77,
        .has_from = choice[3] & 1,
        .has_to = choice[3] & 2,
        .from = choice[3] / 256.0,
        .to = choice[3] & 4 ? 1e300 : choice[3] / 64.0,
        .has_at = choice[3] & 8,
        .at = choice[3] / 64.0,
        .skips_runtime = choice[3] & 16,
    };
    struct analysis_weights weights;
    if (analysis_weights_init(p, &query, &weights) != 0)
        return;
    struct analysis_rows rows;
    enum analysis_by by = (enum analysis_by)(choice[1] % ANALYSIS_BY_COUNT);
    if (analysis_rows_init(&weights, by, &rows) == 0) {
        uint64_t self = 0;
        for (size_t i = 0; i < rows.count; i++)
            self += rows.row[i].self.weight;
        require(self == weights.total.weight); /* the selves of all rows add up to the whole */
        select_rows(&rows, choice);
        if (analysis_by_is_code(by))
            check_edges(&rows);
        if (weights.memory && analysis_by_is_code(by))
            check_memory(&rows, &query);
        analysis_rows_release(&rows);
    }
    analysis_weights_release(&weights);
}

/* --- far ids: tables full of holes are slow, so only one in sixteen of such inputs is loaded ---
 */

enum { FAR_ID = 1 << 16 };

static int far_string(void *ctx, uint32_t id, const char *text, size_t len)
{
    (void)ctx, (void)text, (void)len;
    return id > FAR_ID;
}

static int far_code(void *ctx, uint32_t id, const struct record_code *code)
{
    (void)ctx, (void)code;
    return id > FAR_ID;
}

static int far_stack(void *ctx, uint32_t id, const struct record_stack *node)
{
    (void)ctx, (void)node;
    return id > FAR_ID;
}

static int far_process(void *ctx, const struct record_process *process)
{
    (void)ctx;
    return process->id > FAR_ID;
}

static int far_thread(void *ctx, const struct record_thread *thread)
{
    (void)ctx;
    return thread->id > FAR_ID;
}

static bool has_far_ids(const uint8_t *data, size_t size)
{
    static const struct format_visitor visitor = {
        .string = far_string,
        .code = far_code,
        .stack = far_stack,
        .process = far_process,
        .thread = far_thread,
    };
    struct format_reader *r = NULL;
    bool is_far = format_reader_open_memory(data, size, &r) == 0 &&
                  format_reader_visit(r, &visitor, NULL, NULL) > 0;
    format_reader_free(r);
    return is_far;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < sizeof(struct format_file_header))
        return 0;
    struct profile *p = NULL;
    uint8_t *copy = resealed_copy(data, size, true);
    bool skip =
        data[offsetof(struct format_file_header, run_id) + 8] % 16 != 0 && has_far_ids(copy, size);
    if (!skip && profile_load_memory(copy, size, &p) == 0) {
        check_tables(profile_tables(p));
        profile_meta_value(p, "command");
        analyse(p, data + offsetof(struct format_file_header, run_id));
        profile_free(p);
    }
    free(copy);
    return 0;
}
