/* Callgrind's format, for KCachegrind, QCachegrind and callgrind_annotate: what each line of each
 * function cost itself, and under it the calls made from that line with what they cost in all.
 * https://valgrind.org/docs/manual/cl-format.html
 *
 * Sampling does not count calls. `calls=` must hold a number, so it holds the samples in which the
 * call was seen; the header says so. A stack counts a call once, however often it stands there.
 * Recordings of exact lines are written by callgrind_lines.c. */
#include "export/callgrind.h"
#include "analysis/edges.h"
#include "analysis/exact_lines.h"
#include "analysis/trie.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/large.h"
#include "base/progress.h"
#include "export/sites.h"
#include "export/source.h"

struct call {
    uint32_t site; /* the line that calls */
    uint32_t row;  /* the function called */
    struct analysis_weight total;
    uint64_t counted; /* calls, where they were counted */
};

struct calls {
    VEC(struct call) call;
    uint32_t *node_call; /* IDXMAP_NONE: called by nobody */
    struct analysis_weight *subtree;
    uint32_t *on_stack;
    size_t *at; /* where the calls of each site begin, and of the next end */
};

struct writing {
    const struct export_source *source;
    const struct export_sites *sites;
    struct callgrind_out to;
};

/* --- calls --- */

static int find_calls(const struct export_source *s, const struct export_sites *sites,
                      struct calls *c)
{
    const struct profile_tables *t = profile_tables(s->weights.profile);
    struct idxmap map = {0};
    int r = 0;
    c->node_call[0] = IDXMAP_NONE;
    for (size_t i = 1; r == 0 && i < t->node_count; i++) {
        c->node_call[i] = IDXMAP_NONE;
        if (!t->node_parent[i])
            continue;
        uint32_t site = sites->node_site[t->node_parent[i]], row = s->rows.node_row[i], at;
        uint32_t hash = hash_u64((uint64_t)site << 32 | row);
        IDXMAP_FIND(&map, hash, k, c->call.data[k].site == site && c->call.data[k].row == row, at);
        if (at == IDXMAP_NONE) {
            at = (uint32_t)c->call.len;
            struct call *call = vec_push(&c->call);
            r = call ? idxmap_insert(&map, hash, at) : E_NOMEM;
            if (r == 0)
                *call = (struct call){.site = site, .row = row};
        }
        c->node_call[i] = at;
    }
    idxmap_release(&map);
    return r;
}

static int enter(void *ctx, uint32_t node)
{
    struct calls *c = ctx;
    uint32_t at = c->node_call[node];
    if (at != IDXMAP_NONE && c->on_stack[at]++ == 0)
        analysis_weight_add(&c->call.data[at].total, c->subtree[node]);
    return 0;
}

static void leave(void *ctx, uint32_t node)
{
    struct calls *c = ctx;
    if (c->node_call[node] != IDXMAP_NONE)
        c->on_stack[c->node_call[node]]--;
}

static void calls_release(struct calls *c)
{
    vec_release(&c->call);
    free(c->node_call);
    free(c->subtree);
    free(c->on_stack);
    free(c->at);
}

/* Sorts the calls by their site, by counting: ret->at[i] is where those of site i begin. */
static int sort_calls(struct calls *c, size_t sites)
{
    size_t n = c->call.len;
    struct call *sorted = malloc((n + 1) * sizeof *sorted);
    c->at = calloc(sites + 2, sizeof *c->at);
    if (!sorted || !c->at) {
        free(sorted);
        return E_NOMEM;
    }
    size_t *next = c->at + 1; /* begins as the place of the next of site i, ends as that of i + 1 */
    for (size_t i = 0; i < n; i++)
        if (c->call.data[i].site + 1 < sites)
            next[c->call.data[i].site + 1]++;
    for (size_t i = 1; i < sites; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < n; i++)
        sorted[next[c->call.data[i].site]++] = c->call.data[i];
    free(c->call.data);
    c->call.data = sorted;
    c->call.cap = n + 1;
    return 0;
}

/* Where calls were counted, the counts: a function's calls all stand at its one line. */
static int take_counted(const struct export_source *s, const struct export_sites *sites,
                        struct calls *c)
{
    struct analysis_edges edges;
    _cleanup_free_ uint32_t *row_site = calloc(s->rows.count + 1, sizeof *row_site);
    int r = row_site ? analysis_edges_init(&s->rows, &edges) : E_NOMEM;
    if (r < 0)
        return r;
    for (size_t i = 0; i < sites->site.len; i++)
        row_site[sites->site.data[i].row] = (uint32_t)i;
    for (size_t i = 0; r == 0 && i < edges.count; i++) {
        const struct analysis_edge *e = &edges.by_caller[i];
        struct call *call = vec_push(&c->call);
        r = call ? 0 : E_NOMEM;
        if (r == 0)
            *call = (struct call){row_site[e->caller], e->callee, e->total, e->calls};
    }
    analysis_edges_release(&edges);
    return r;
}

static int weigh_calls(const struct export_source *s, const struct export_sites *sites,
                       struct calls *c)
{
    const struct profile_tables *t = profile_tables(s->weights.profile);
    c->node_call = large_calloc(t->node_count + 1, sizeof *c->node_call);
    c->subtree = large_calloc(t->node_count + 1, sizeof *c->subtree);
    int r = c->node_call && c->subtree ? find_calls(s, sites, c) : E_NOMEM;
    if (r < 0)
        return r;
    c->on_stack = calloc(c->call.len + 1, sizeof *c->on_stack);
    memcpy(c->subtree, s->weights.node, t->node_count * sizeof *c->subtree);
    analysis_weights_accumulate(t, c->subtree);
    return c->on_stack ? analysis_trie_walk(t->node_parent, t->node_count, enter, leave, c)
                       : E_NOMEM;
}

static int calls_init(const struct export_source *s, const struct export_sites *sites,
                      struct calls *ret)
{
    struct calls c = {0};
    int r = analysis_weights_counted(&s->weights) ? take_counted(s, sites, &c)
                                                  : weigh_calls(s, sites, &c);
    if (r == 0)
        r = sort_calls(&c, sites->site.len);
    if (r < 0) {
        calls_release(&c);
        return r;
    }
    *ret = c;
    return 0;
}

/* --- the file --- */

static void put_heading(struct writing *w)
{
    const struct analysis_weights *weights = &w->source->weights;
    bool entered = weights->calls != NULL, memory = weights->memory != NULL;
    callgrind_put_heading(&w->to, weights,
                          memory ? "Note: calls= counts the blocks of a call"
                          : weights->exact
                              ? NULL
                              : "Note: sampled; calls= counts the samples that saw a call",
                          entered  ? "Entries"
                          : memory ? "Blocks"
                                   : "Samples",
                          entered  ? "calls and resumes"
                          : memory ? "blocks"
                                   : "samples");
}

static void put_calls(struct writing *w, const struct call *call, size_t n, uint32_t from_row)
{
    bool exact = analysis_weights_counted(&w->source->weights);
    for (size_t i = 0; i < n; i++) {
        if (!call[i].total.samples)
            continue;
        callgrind_put_call(&w->to, from_row, call[i].row,
                           exact ? call[i].counted : call[i].total.samples);
        callgrind_put_costs(&w->to, w->sites->site.data[call[i].site].line, call[i].total);
    }
}

static int compare_sites(const void *a, const void *b, void *ctx)
{
    const struct export_sites *sites = ctx;
    const struct export_site *x = &sites->site.data[*(const uint32_t *)a];
    const struct export_site *y = &sites->site.data[*(const uint32_t *)b];
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int put_functions(struct writing *w, const struct calls *calls)
{
    const struct export_sites *sites = w->sites;
    size_t n = sites->site.len;
    _cleanup_free_ uint32_t *order = malloc((n + 1) * sizeof *order);
    if (!order)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, n, sizeof *order, compare_sites, (void *)sites);
    uint32_t open = UINT32_MAX;
    if (!calls->at)
        return E_INVALID;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct export_site *site = &sites->site.data[order[i]];
        const struct analysis_row *row = &w->source->rows.row[site->row];
        if (!row->total.samples)
            continue;
        if (site->row != open) {
            callgrind_put_function(&w->to, site->row);
            open = site->row;
        }
        if (site->self.samples)
            callgrind_put_costs(&w->to, site->line,
                                analysis_weights_counted(&w->source->weights) ? row->self
                                                                              : site->self);
        size_t from = calls->at[order[i]], to = calls->at[order[i] + 1];
        put_calls(w, calls->call.data + from, to - from, site->row);
        r = export_drain(&w->to.buf, w->to.out, false);
    }
    return r;
}

static int write_all(struct writing *w, const struct calls *calls)
{
    const struct analysis_rows *rows = &w->source->rows;
    progress_begin("writing functions", 0);
    put_heading(w);
    int r = put_functions(w, calls);
    struct analysis_weight rootless = w->source->weights.node[RECORD_STACK_ROOT];
    if (r == 0 && rootless.samples) {
        callgrind_put_function(&w->to, (uint32_t)rows->count - 1);
        callgrind_put_costs(&w->to, 0, rootless);
    }
    if (r == 0)
        r = export_drain(&w->to.buf, w->to.out, true);
    return r < 0 ? r : export_finish(w->to.out);
}

static int write_stacks(const struct profile *profile, const struct export_options *options,
                        FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_FUNCTION, &source);
    if (r < 0)
        return r;
    struct export_sites sites = {0};
    struct calls calls = {0};
    struct writing w = {.source = &source, .sites = &sites};
    r = callgrind_out_init(&w.to, source.rows.row, source.rows.count, out);
    if (r == 0)
        r = export_sites_init(&source.rows, &sites);
    if (r == 0)
        r = calls_init(&source, &sites, &calls);
    if (r == 0)
        r = write_all(&w, &calls);
    calls_release(&calls);
    export_sites_release(&sites);
    callgrind_out_release(&w.to);
    export_source_release(&source);
    return r;
}

int export_callgrind_write(const struct profile *profile, const struct export_options *options,
                           FILE *out)
{
    return analysis_exact_answers(profile, &options->query)
               ? export_callgrind_write_lines(profile, &options->query, out)
               : write_stacks(profile, options, out);
}
