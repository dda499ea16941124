/* From a question to a call tree. */
#include "analysis/calltree.h"

#include "base/attr.h"
#include "base/err.h"

#include <stdio.h>

/* A thread's own name, or "thread TID" as in a report. */
static int label_thread(struct analysis_calltree *c, const struct profile_tables *t, size_t thread)
{
    const struct record_thread *record = &t->threads[thread];
    struct analysis_row *row = &c->thread[thread];
    *row = (struct analysis_row){.name = t->strings[record->name],
                                 .tid = record->tid,
                                 .pid = t->processes[record->process].pid};
    if (row->name.len)
        return 0;
    int len = asprintf(&c->texts[thread], "thread %u", row->tid);
    if (len < 0) {
        c->texts[thread] = NULL;
        return E_NOMEM;
    }
    row->name = (struct profile_string){c->texts[thread], (uint32_t)len};
    return 0;
}

static int label_threads(struct analysis_calltree *c)
{
    const struct profile_tables *t = profile_tables(c->weights.profile);
    c->thread_count = t->thread_count;
    c->thread = calloc(t->thread_count + 1, sizeof *c->thread);
    c->texts = calloc(t->thread_count + 1, sizeof *c->texts);
    int r = c->thread && c->texts ? 0 : E_NOMEM;
    for (size_t i = 0; r == 0 && i < t->thread_count; i++)
        r = label_thread(c, t, i);
    return r;
}

int analysis_calltree_weigh(struct analysis_calltree *c, const struct profile *profile,
                            const struct analysis_query *query)
{
    *c = (struct analysis_calltree){0};
    return analysis_weights_init(profile, query, &c->weights);
}

int analysis_calltree_grow(struct analysis_calltree *c, const struct analysis_query *query,
                           const struct analysis_calltree_options *options)
{
    struct analysis_forest forest = {0};
    c->options = *options;
    int r = analysis_rows_init_names(&c->weights, options->by, &c->rows);
    if (r == 0 && options->by_thread)
        r = label_threads(c);
    if (r == 0 && options->by_thread)
        r = analysis_forest_init_threads(&c->rows, query, options->tree.bottom_up, &forest);
    else if (r == 0)
        analysis_forest_init(&c->rows, &forest);
    if (r == 0)
        r = analysis_tree_init(&forest, &options->tree, &c->tree);
    analysis_forest_release(&forest);
    return r;
}

void analysis_calltree_release(struct analysis_calltree *c)
{
    for (size_t i = 0; c->texts && i < c->thread_count; i++)
        free(c->texts[i]);
    free(c->texts);
    free(c->thread);
    analysis_tree_release(&c->tree);
    analysis_rows_release(&c->rows);
    analysis_weights_release(&c->weights);
    *c = (struct analysis_calltree){0};
}

const struct analysis_row *analysis_calltree_label(const struct analysis_calltree *c, uint32_t node)
{
    uint32_t row = c->tree.node[node].row;
    if (row == ANALYSIS_ROW_NONE)
        return NULL;
    return row < c->rows.count ? &c->rows.row[row] : &c->thread[row - c->rows.count];
}
