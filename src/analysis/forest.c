/* The three forests. Only those with something new own their columns. */
#include "analysis/forest.h"

#include "analysis/partners.h"
#include "analysis/stream.h"
#include "base/err.h"
#include "base/vec.h"

enum { OWN_PARENT, OWN_ROW, OWN_WEIGHT, OWN_BEFORE };

/* Samples without a Python frame have the last row of all, if there are any. */
static uint32_t rootless_row(const struct analysis_rows *rows)
{
    bool has = rows->weights->node[RECORD_STACK_ROOT].samples && rows->count;
    return has ? (uint32_t)rows->count - 1 : ANALYSIS_ROW_NONE;
}

void analysis_forest_init(const struct analysis_rows *rows, struct analysis_forest *ret)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    *ret = (struct analysis_forest){.count = t->node_count,
                                    .parent = t->node_parent,
                                    .row = rows->node_row,
                                    .own = rows->weights->node,
                                    .row_count = rows->count,
                                    .rootless = rootless_row(rows)};
}

void analysis_forest_release(struct analysis_forest *f)
{
    for (size_t i = 0; i < ARRAY_LEN(f->owned); i++)
        free(f->owned[i]);
    *f = (struct analysis_forest){0};
}

/* --- by thread --- */

enum { PAGE_BITS = 10, PAGE_SIZE = 1 << PAGE_BITS };

/* A node of the new forest is a (thread, node of the trie) pair; the trie's root makes the thread
 * itself. From a pair to its node leads a table in two steps: pages are made where a thread has
 * nodes, and a stack and its callers are often on one page. */
struct splitting {
    const struct analysis_rows *rows;
    const struct profile_tables *t;
    uint32_t rootless;
    VEC(uint32_t) parent;
    VEC(uint32_t) row;
    VEC(struct analysis_weight) own;
    VEC(uint32_t) way;     /* from a stack up to the first node that is known */
    uint32_t ***pages;     /* [thread][node >> PAGE_BITS][node & …]: 0 is none */
    uint32_t *rootless_of; /* for each thread: its node without a Python frame; 0: none */
    size_t page_count;
};

static int add(struct splitting *s, uint32_t parent, uint32_t row, uint32_t *ret)
{
    uint32_t *p = vec_push(&s->parent), *r = vec_push(&s->row);
    if (!p || !r || !vec_push(&s->own))
        return E_NOMEM;
    if (s->parent.len >= UINT32_MAX)
        return E_LIMIT;
    *p = parent;
    *r = row;
    *ret = (uint32_t)s->parent.len - 1;
    return 0;
}

/* Where the node of a pair is kept; NULL without memory. */
static uint32_t *place_of(struct splitting *s, uint32_t thread, uint32_t node)
{
    uint32_t ***pages = &s->pages[thread];
    if (!*pages)
        *pages = calloc(s->page_count, sizeof **pages);
    if (!*pages)
        return NULL;
    uint32_t **page = &(*pages)[node >> PAGE_BITS];
    if (!*page)
        *page = calloc(PAGE_SIZE, sizeof **page);
    return *page ? *page + (node & (PAGE_SIZE - 1)) : NULL;
}

/* The node for a stack of a thread, made with all that is above it. */
static int node_of(struct splitting *s, uint32_t thread, uint32_t stack, uint32_t *ret)
{
    uint32_t at = 0;
    s->way.len = 0;
    for (uint32_t n = stack;; n = s->t->node_parent[n]) {
        const uint32_t *place = place_of(s, thread, n);
        if (!place)
            return E_NOMEM;
        at = *place;
        if (at)
            break;
        uint32_t *step = vec_push(&s->way);
        if (!step)
            return E_NOMEM;
        *step = n;
        if (n == RECORD_STACK_ROOT)
            break;
    }
    int r = 0;
    for (size_t i = s->way.len; r == 0 && i-- > 0;) {
        uint32_t n = s->way.data[i];
        uint32_t row = n ? s->rows->node_row[n] : (uint32_t)s->rows->count + thread;
        r = add(s, at, row, &at);
        if (r == 0)
            *place_of(s, thread, n) = at; /* the page is there: it was asked for above */
    }
    *ret = at;
    return r;
}

/* What a thread carries without a Python frame stands under it as a node of its own. */
static int rootless_node_of(struct splitting *s, uint32_t thread, uint32_t *ret)
{
    uint32_t parent;
    int r = 0;
    if (!s->rootless_of[thread]) {
        r = node_of(s, thread, RECORD_STACK_ROOT, &parent);
        if (r == 0)
            r = add(s, parent, s->rootless, &s->rootless_of[thread]);
    }
    *ret = s->rootless_of[thread];
    return r;
}

static int on_run(void *ctx, const struct analysis_run *run)
{
    struct splitting *s = ctx;
    uint32_t at;
    bool is_rootless = run->stack == RECORD_STACK_ROOT && s->rootless != ANALYSIS_ROW_NONE;
    int r = is_rootless ? rootless_node_of(s, run->thread, &at)
                        : node_of(s, run->thread, run->stack, &at);
    if (r == 0)
        analysis_weight_add(&s->own.data[at], run->weight);
    return r;
}

static void release_pages(struct splitting *s)
{
    for (size_t i = 0; s->pages && i < s->t->thread_count; i++) {
        for (size_t k = 0; s->pages[i] && k < s->page_count; k++)
            free(s->pages[i][k]);
        free(s->pages[i]);
    }
    free(s->pages);
    free(s->rootless_of);
}

int analysis_forest_init_threads(const struct analysis_rows *rows,
                                 const struct analysis_query *query, struct analysis_forest *ret)
{
    const struct profile *profile = rows->weights->profile;
    struct splitting s = {
        .rows = rows, .t = profile_tables(profile), .rootless = rootless_row(rows)};
    s.page_count = (s.t->node_count >> PAGE_BITS) + 1;
    s.pages = calloc(s.t->thread_count + 1, sizeof *s.pages);
    s.rootless_of = calloc(s.t->thread_count + 1, sizeof *s.rootless_of);
    uint32_t root;
    int r = s.pages && s.rootless_of ? add(&s, 0, ANALYSIS_ROW_NONE, &root) : E_NOMEM;
    if (r == 0)
        r = analysis_stream_each(profile, query, on_run, &s);
    release_pages(&s);
    vec_release(&s.way);
    struct analysis_forest f = {
        .count = s.parent.len,
        .parent = s.parent.data,
        .row = s.row.data,
        .own = s.own.data,
        .row_count = rows->count + s.t->thread_count,
        .rootless = ANALYSIS_ROW_NONE,
        .owned = {s.parent.data, s.row.data, s.own.data},
    };
    if (r < 0) {
        analysis_forest_release(&f);
        return r;
    }
    *ret = f;
    return 0;
}

/* --- two runs --- */

/* map[row of the run before] = row in the forest: that of its partner, or one of its own behind. */
static int map_rows(const struct analysis_rows *before, const struct analysis_rows *rows,
                    uint32_t *map)
{
    int r = analysis_partners_find(before, rows, map);
    for (size_t i = 0; r == 0 && i < before->count; i++)
        if (map[i] == ANALYSIS_ROW_NONE)
            map[i] = (uint32_t)(rows->count + i);
    return r;
}

/* The nodes of the run before follow those of the run after; the roots are one. */
static void lay_over(const struct analysis_rows *before, const struct analysis_rows *rows,
                     const uint32_t *map, struct analysis_forest *f)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    const struct profile_tables *old = profile_tables(before->weights->profile);
    uint32_t *parent = f->owned[OWN_PARENT], *row = f->owned[OWN_ROW];
    struct analysis_weight *own = f->owned[OWN_WEIGHT], *was = f->owned[OWN_BEFORE];
    memcpy(parent, t->node_parent, t->node_count * sizeof *parent);
    memcpy(row, rows->node_row, t->node_count * sizeof *row);
    memcpy(own, rows->weights->node, t->node_count * sizeof *own);
    was[0] = before->weights->node[0];
    uint32_t shift = (uint32_t)t->node_count - 1;
    for (size_t i = 1; i < old->node_count; i++) {
        size_t at = i + shift;
        parent[at] = old->node_parent[i] ? old->node_parent[i] + shift : 0;
        row[at] = map[before->node_row[i]];
        was[at] = before->weights->node[i];
    }
    f->rootless = rootless_row(rows);
    if (f->rootless == ANALYSIS_ROW_NONE && rootless_row(before) != ANALYSIS_ROW_NONE)
        f->rootless = map[rootless_row(before)];
}

int analysis_forest_init_diff(const struct analysis_rows *before, const struct analysis_rows *rows,
                              struct analysis_forest *ret)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    const struct profile_tables *old = profile_tables(before->weights->profile);
    size_t count = t->node_count + old->node_count - 1;
    if (count >= UINT32_MAX)
        return E_LIMIT;
    _cleanup_free_ uint32_t *map = malloc((before->count + 1) * sizeof *map);
    struct analysis_forest f = {.count = count, .row_count = rows->count + before->count};
    f.owned[OWN_PARENT] = calloc(count, sizeof(uint32_t));
    f.owned[OWN_ROW] = calloc(count, sizeof(uint32_t));
    f.owned[OWN_WEIGHT] = calloc(count, sizeof(struct analysis_weight));
    f.owned[OWN_BEFORE] = calloc(count, sizeof(struct analysis_weight));
    int r = map ? 0 : E_NOMEM;
    for (size_t i = 0; i < ARRAY_LEN(f.owned); i++)
        r = f.owned[i] ? r : E_NOMEM;
    if (r == 0)
        r = map_rows(before, rows, map);
    if (r < 0) {
        analysis_forest_release(&f);
        return r;
    }
    lay_over(before, rows, map, &f);
    f.parent = f.owned[OWN_PARENT];
    f.row = f.owned[OWN_ROW];
    f.own = f.owned[OWN_WEIGHT];
    f.before = f.owned[OWN_BEFORE];
    *ret = f;
    return 0;
}
