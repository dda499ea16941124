/* The parts of `pyrometer memory` that are tables of rows: summary, leaks, temporary and stats. */
#include "analysis/leaks.h"
#include "base/err.h"
#include "cmd/memory.h"
#include "cmd/progress.h"
#include "view/memory.h"
#include "view/memory_stats.h"

#include <errno.h>
#include <string.h>

/* Of each order in `stats` when the user does not say. */
enum { STATS_ROWS = 5 };

/* Weights, rows and which of them, of one metric. */
struct table {
    struct analysis_weights weights;
    struct analysis_rows rows;
    struct analysis_selection selection;
};

static int table_init(const struct cmd_memory *m, const struct analysis_query *query,
                      enum analysis_sort sort, uint64_t limit, struct table *ret)
{
    struct analysis_select select = {.sort = sort, .match = m->match, .limit = limit};
    struct table t = {0};
    int r = analysis_weights_init(m->profile, query, &t.weights);
    *ret = t; /* rows point to the weights' place */
    if (r == 0)
        r = analysis_rows_init(&ret->weights, m->by, &ret->rows);
    if (r == 0)
        r = analysis_selection_init(&ret->rows, &select, &ret->selection);
    return r;
}

static void table_release(struct table *t)
{
    analysis_selection_release(&t->selection);
    analysis_rows_release(&t->rows);
    analysis_weights_release(&t->weights);
}

static uint64_t limit_of(const struct cmd_memory *m)
{
    return cmd_list_limit(&m->o->list, m->format);
}

static int print(const struct cmd_memory *m, const struct view_memory *view, const char *what)
{
    errno = 0;
    int r = view_memory_print(view, cmd_stdout(), m->format, view_style_of(stdout));
    return r < 0 ? cmd_output_failed(what, r, errno) : CMD_OK;
}

static int failed(int code)
{
    return cmd_fail(CMD_FAILED, "cannot make the table: %s", err_text(code));
}

int cmd_memory_summary(struct cmd_memory *m)
{
    struct table t;
    int r = table_init(m, &m->query, ANALYSIS_SORT_SELF, limit_of(m), &t);
    struct view_memory view = {.rows = &t.rows, .selection = &t.selection};
    int status = r < 0 ? failed(r) : print(m, &view, "the summary");
    table_release(&t);
    return status;
}

int cmd_memory_temporary(struct cmd_memory *m)
{
    struct analysis_query all = m->query;
    all.metric = analysis_metric_find("count");
    struct table t, allocations = {0};
    int r = table_init(m, &m->query, ANALYSIS_SORT_SAMPLES, limit_of(m), &t);
    if (r == 0)
        r = table_init(m, &all, ANALYSIS_SORT_SELF, 0, &allocations);
    struct view_memory view = {
        .rows = &t.rows, .selection = &t.selection, .allocations = &allocations.rows};
    int status = r < 0 ? failed(r) : print(m, &view, "the table");
    table_release(&allocations);
    table_release(&t);
    return status;
}

/* What the interpreter keeps is known by the difference that leaving it out makes. */
static int find_runtime(const struct cmd_memory *m, struct view_memory_runtime *ret)
{
    struct analysis_query all = m->query, program = m->query;
    struct analysis_weights whole, rest;
    all.skips_runtime = false;
    program.skips_runtime = true;
    int r = analysis_weights_init_sums(m->profile, &all, &whole);
    if (r < 0)
        return r;
    r = analysis_weights_init_sums(m->profile, &program, &rest);
    if (r == 0) {
        *ret = (struct view_memory_runtime){
            .is_shown = m->o->all,
            .all = {whole.total.weight - rest.total.weight,
                    whole.total.samples - rest.total.samples},
            .no_python = whole.node[RECORD_STACK_ROOT],
        };
        analysis_weights_release(&rest);
    }
    analysis_weights_release(&whole);
    return r;
}

int cmd_memory_leaks(struct cmd_memory *m)
{
    struct table t;
    struct analysis_growth growth = {0};
    struct view_memory_runtime runtime;
    struct analysis_arenas arenas = {0};
    struct analysis_select select = {.match = m->match, .limit = limit_of(m)};
    struct analysis_selection selection = {0};
    m->query.skips_runtime = !m->o->all;
    int r = table_init(m, &m->query, ANALYSIS_SORT_SELF, 0, &t);
    if (r == 0)
        r = analysis_growth_init(&t.rows, &m->query, m->o->mark, &growth);
    if (r == 0)
        r = analysis_leaks_select(&t.rows, &growth, &select, &selection);
    if (r == 0)
        r = find_runtime(m, &runtime);
    if (r == 0)
        r = analysis_arenas_init(&t.rows, &arenas);
    struct view_memory view = {.rows = &t.rows,
                               .selection = &selection,
                               .growth = &growth,
                               .runtime = &runtime,
                               .arenas = &arenas};
    int status = r < 0 ? failed(r) : 0;
    if (!status && m->o->mark && !growth.row)
        status = cmd_fail(CMD_FAILED, "--mark '%s': there are not %d marks of that name",
                          m->o->mark, ANALYSIS_GROWTH_LEAST);
    if (!status)
        status = print(m, &view, "the table");
    analysis_selection_release(&selection);
    analysis_arenas_release(&arenas);
    analysis_growth_release(&growth);
    table_release(&t);
    return status;
}

int cmd_memory_stats(struct cmd_memory *m)
{
    uint64_t limit = m->o->list.has_limit || m->format != VIEW_TEXT ? limit_of(m) : STATS_ROWS;
    struct table t;
    struct analysis_selection by_count = {0};
    struct analysis_select select = {
        .sort = ANALYSIS_SORT_SAMPLES, .match = m->match, .limit = limit};
    struct analysis_sizes sizes;
    int r = table_init(m, &m->query, ANALYSIS_SORT_SELF, limit, &t);
    if (r == 0)
        r = analysis_selection_init(&t.rows, &select, &by_count);
    if (r == 0)
        r = analysis_sizes_init(m->profile, &m->query, t.weights.memory, &sizes);
    int status = r < 0 ? failed(r) : 0;
    if (!status) {
        struct view_memory_stats view = {
            .query = &m->query,
            .sizes = &sizes,
            .by_size = {.rows = &t.rows, .selection = &t.selection},
            .by_count = {.rows = &t.rows, .selection = &by_count},
        };
        errno = 0;
        r = view_memory_stats_print(&view, cmd_stdout(), m->format, view_style_of(stdout));
        status = r < 0 ? cmd_output_failed("the statistics", r, errno) : CMD_OK;
    }
    analysis_selection_release(&by_count);
    table_release(&t);
    return status;
}
