/* Builds the rows. `total` comes from one walk of the trie: a node whose row is not on the stack
 * yet adds its whole subtree; counters say what is on the stack. O(nodes), whatever the depth. */
#include "analysis/rows.h"

#include "analysis/exact.h"
#include "analysis/groups.h"
#include "analysis/trie.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/large.h"
#include "base/progress.h"

#include <stdio.h>
#include <string.h>

const char *const ANALYSIS_BY_NAMES[ANALYSIS_BY_COUNT + 1] = {
#define X(id, name) [ANALYSIS_BY_##id] = (name),
    ANALYSIS_BY_LIST(X)
#undef X
};

bool analysis_by_is_code(enum analysis_by by)
{
    return by != ANALYSIS_BY_THREAD && by != ANALYSIS_BY_PROCESS;
}

/* --- rows that stand in stacks --- */

struct total_walk {
    struct analysis_row *row;
    const uint32_t *node_row;
    const struct analysis_calls_counts *counts; /* by node; NULL: calls were not counted */
    const struct analysis_weight *subtree;
    const double *variance; /* of the subtree; NULL: there is none */
    uint32_t *on_stack;     /* for each row: how often it stands on the current path */
};

static int enter(void *ctx, uint32_t node)
{
    struct total_walk *walk = ctx;
    uint32_t row = walk->node_row[node];
    struct analysis_row *to = &walk->row[row];
    bool outermost = walk->on_stack[row]++ == 0;
    if (outermost)
        analysis_weight_add(&to->total, walk->subtree[node]);
    if (outermost && walk->variance)
        to->total_variance += walk->variance[node];
    if (walk->counts) {
        const struct analysis_calls_counts *c = &walk->counts[node];
        to->calls += c->calls;
        to->primitive_calls += outermost ? c->calls : 0;
        to->resumes += c->resumes;
        to->alive_ns += outermost ? c->alive_ns : 0;
    }
    return 0;
}

static void leave(void *ctx, uint32_t node)
{
    struct total_walk *walk = ctx;
    walk->on_stack[walk->node_row[node]]--;
}

/* The selves' variances, and those of subtrees; *ret is NULL where the weights have none. */
static int add_variances(struct analysis_rows *rows, const struct profile_tables *t, double **ret)
{
    const double *own = rows->weights->variance;
    *ret = NULL;
    if (!own)
        return 0;
    double *subtree = large_calloc(t->node_count + 1, sizeof *subtree);
    if (!subtree)
        return E_NOMEM;
    memcpy(subtree, own, t->node_count * sizeof *subtree);
    for (size_t i = t->node_count; i-- > 1;)
        subtree[t->node_parent[i]] += subtree[i];
    for (size_t i = 1; i < t->node_count; i++)
        rows->row[rows->node_row[i]].self_variance += own[i];
    *ret = subtree;
    return 0;
}

static int weigh_rows(struct analysis_rows *rows)
{
    const struct analysis_weights *w = rows->weights;
    const struct profile_tables *t = profile_tables(w->profile);
    _cleanup_free_ struct analysis_weight *subtree =
        large_calloc(t->node_count + 1, sizeof *subtree);
    _cleanup_free_ uint32_t *on_stack = calloc(rows->count + 1, sizeof *on_stack);
    if (!subtree || !on_stack)
        return E_NOMEM;
    memcpy(subtree, w->node, t->node_count * sizeof *subtree);
    analysis_weights_accumulate(t, subtree);
    for (size_t i = 1; i < t->node_count; i++)
        analysis_weight_add(&rows->row[rows->node_row[i]].self, w->node[i]);
    _cleanup_free_ double *variance = NULL;
    int r = add_variances(rows, t, &variance);
    if (r < 0)
        return r;
    struct total_walk walk = {rows->row, rows->node_row, w->calls ? w->calls->node : NULL,
                              subtree,   variance,       on_stack};
    return analysis_trie_walk(t->node_parent, t->node_count, enter, leave, &walk);
}

/* Samples of threads that ran no Python at the moment end at the root, which has no row. */
static int add_rootless(struct analysis_rows *rows)
{
    static const char text[] = "<no Python frame>";
    struct analysis_weight w = rows->weights->node[RECORD_STACK_ROOT];
    if (!w.samples && !w.weight)
        return 0;
    struct analysis_row *grown = reallocarray(rows->row, rows->count + 1, sizeof *grown);
    if (!grown)
        return E_NOMEM;
    rows->row = grown;
    double variance = rows->weights->variance ? rows->weights->variance[RECORD_STACK_ROOT] : 0;
    rows->row[rows->count++] = (struct analysis_row){.name = {text, sizeof text - 1},
                                                     .file = {"", 0},
                                                     .special = true,
                                                     .self = w,
                                                     .total = w,
                                                     .self_variance = variance,
                                                     .total_variance = variance};
    return 0;
}

static int fill_code(struct analysis_rows *rows, bool weighed)
{
    int r = analysis_groups_fill(rows);
    if (r == 0 && weighed)
        r = weigh_rows(rows);
    if (r == 0 && analysis_exact_has(rows))
        return weighed ? analysis_exact_rows(rows) : 0;
    return r < 0 ? r : add_rootless(rows);
}

/* --- rows that are not in stacks --- */

static int name_row(struct analysis_rows *rows, struct analysis_row *row, const char *kind,
                    uint32_t number)
{
    char *text;
    if (asprintf(&text, "%s %u", kind, number) < 0)
        return E_NOMEM;
    rows->texts[rows->text_count++] = text;
    row->name = (struct profile_string){text, (uint32_t)strlen(text)};
    return 0;
}

static int reserve_plain(struct analysis_rows *rows, size_t count)
{
    rows->row = calloc(count + 1, sizeof *rows->row);
    rows->texts = calloc(count + 1, sizeof *rows->texts);
    return rows->row && rows->texts ? 0 : E_NOMEM;
}

static int fill_threads(struct analysis_rows *rows)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    int r = reserve_plain(rows, t->thread_count);
    for (size_t i = 0; r == 0 && i < t->thread_count; i++) {
        struct analysis_weight w = rows->weights->thread[i];
        if (!w.samples && !w.weight)
            continue;
        const struct record_thread *thread = &t->threads[i];
        struct analysis_row *row = &rows->row[rows->count++];
        *row = (struct analysis_row){.name = t->strings[thread->name],
                                     .file = {"", 0},
                                     .pid = t->processes[thread->process].pid,
                                     .tid = thread->tid,
                                     .self = w,
                                     .total = w};
        if (!row->name.len)
            r = name_row(rows, row, "thread", thread->tid);
    }
    return r;
}

static int fill_processes(struct analysis_rows *rows)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    int r = reserve_plain(rows, t->process_count);
    for (size_t i = 0; r == 0 && i < t->process_count; i++) {
        struct analysis_weight w = rows->weights->process[i];
        if (!w.samples && !w.weight)
            continue;
        const struct record_process *process = &t->processes[i];
        struct analysis_row *row = &rows->row[rows->count++];
        *row = (struct analysis_row){.name = t->strings[process->command],
                                     .file = {"", 0},
                                     .pid = process->pid,
                                     .self = w,
                                     .total = w};
        if (!row->name.len)
            r = name_row(rows, row, "process", process->pid);
    }
    return r;
}

int analysis_rows_init(const struct analysis_weights *weights, enum analysis_by by,
                       struct analysis_rows *ret)
{
    struct analysis_rows rows = {.by = by, .weights = weights};
    progress_begin("making rows", 0);
    int r = by == ANALYSIS_BY_THREAD    ? fill_threads(&rows)
            : by == ANALYSIS_BY_PROCESS ? fill_processes(&rows)
                                        : fill_code(&rows, true);
    if (r < 0) {
        analysis_rows_release(&rows);
        return r;
    }
    *ret = rows;
    return 0;
}

int analysis_rows_init_names(const struct analysis_weights *weights, enum analysis_by by,
                             struct analysis_rows *ret)
{
    struct analysis_rows rows = {.by = by, .weights = weights};
    progress_begin("making rows", 0);
    int r = fill_code(&rows, false);
    if (r < 0) {
        analysis_rows_release(&rows);
        return r;
    }
    *ret = rows;
    return 0;
}

void analysis_rows_release(struct analysis_rows *rows)
{
    for (size_t i = 0; i < rows->text_count; i++)
        free(rows->texts[i]);
    free(rows->texts);
    free(rows->row);
    free(rows->node_row);
    *rows = (struct analysis_rows){0};
}
