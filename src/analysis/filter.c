/* From a query to bytes. */
#include "analysis/filter.h"

#include "analysis/match.h"
#include "analysis/runtime.h"
#include "base/err.h"

static int skip_runtime(const struct profile_tables *t, struct analysis_filter *f)
{
    uint8_t *own;
    int r = analysis_runtime_nodes(t, &own);
    if (r < 0)
        return r;
    for (size_t i = 0; i < t->node_count; i++)
        own[i] = !own[i] && (!f->stack || f->stack[i]);
    free(f->stack);
    f->stack = own;
    return 0;
}

int analysis_filter_init(const struct profile *profile, const struct analysis_query *query,
                         struct analysis_filter *ret)
{
    const struct profile_tables *t = profile_tables(profile);
    struct analysis_filter f = {.query = query,
                                .metric = analysis_metric_of(profile, query->metric),
                                .thread = calloc(t->thread_count + 1, 1),
                                .clips = query->has_from || query->has_to};
    int r = f.thread ? analysis_match_nodes(t, query, &f.stack) : E_NOMEM;
    if (r == 0 && query->skips_runtime)
        r = skip_runtime(t, &f);
    if (r < 0) {
        analysis_filter_release(&f);
        return r;
    }
    for (size_t i = 0; i < t->thread_count; i++)
        f.thread[i] = analysis_query_takes_thread(query, t, (uint32_t)i);
    *ret = f;
    return 0;
}

void analysis_filter_release(struct analysis_filter *f)
{
    free(f->thread);
    free(f->stack);
    *f = (struct analysis_filter){0};
}
