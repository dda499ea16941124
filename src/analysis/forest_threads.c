/* The stacks of each thread by itself. Threads share most of the trie, so a trie for each would be
 * many times as large as the one there is. Instead there are pairs of a thread and a stack, with
 * what the thread spent there: gathered in one pass over the samples, sorted, and equal ones added
 * up whenever a thread's list is full.
 *
 * Top down, stacks have the numbers of a walk of the trie. A subtree is a range of numbers, so what
 * a thread spent in it is a slice of the thread's pairs, and the difference of two sums. Nodes are
 * made from their parent's slice when somebody opens it.
 *
 * Bottom up, pairs are all there is: they climb the common trie and end at their thread. */
#include "analysis/forest.h"

#include "analysis/stream.h"
#include "analysis/trie.h"
#include "base/err.h"
#include "base/large.h"
#include "base/vec.h"

enum {
    FULL_AT_LEAST = 4096, /* pairs of a thread before equal ones are looked for */
    RADIX_BITS = 11,
    RADIX = 1 << RADIX_BITS,
    RADIX_FROM = 256, /* pairs: below, comparing is quicker */
    AHEAD_RUNS = 64,  /* looked up together */
};

struct pair {
    uint32_t stack; /* or its number */
    struct analysis_weight weight;
};

struct pairs {
    VEC(struct pair) pair;
};

struct gathering {
    struct pairs *thread; /* owned: one for each */
    size_t thread_count;
    const uint32_t *number; /* of each stack; NULL: its own id */
    VEC(struct pair) scratch;
};

/* --- sorting --- */

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

static void scatter(const struct pair *from, size_t n, unsigned shift, struct pair *to)
{
    size_t at[RADIX] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        at[from[i].stack >> shift & (RADIX - 1)]++;
    for (size_t i = 0; i < RADIX; i++) {
        size_t count = at[i];
        at[i] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[from[i].stack >> shift & (RADIX - 1)]++] = from[i];
}

/* By stack, digit by digit. */
static int sort_pairs(struct gathering *g, struct pairs *p)
{
    size_t n = p->pair.len;
    uint32_t bits = 0;
    if (n < RADIX_FROM) {
        if (n)
            qsort(p->pair.data, n, sizeof *p->pair.data, compare_pairs);
        return 0;
    }
    if (!vec_reserve(&g->scratch, n))
        return E_NOMEM;
    for (size_t i = 0; i < n; i++)
        bits |= p->pair.data[i].stack;
    struct pair *from = p->pair.data, *to = g->scratch.data;
    for (unsigned shift = 0; shift < 32 && bits >> shift; shift += RADIX_BITS) {
        scatter(from, n, shift, to);
        struct pair *swap = from;
        from = to;
        to = swap;
    }
    if (from != p->pair.data)
        memcpy(p->pair.data, from, n * sizeof *from);
    return 0;
}

/* Sorts a thread's pairs and adds up equal ones. */
static int tidy(struct gathering *g, struct pairs *p)
{
    int r = sort_pairs(g, p);
    size_t kept = 0;
    for (size_t i = 0; r == 0 && i < p->pair.len; i++) {
        struct pair *last = kept ? &p->pair.data[kept - 1] : NULL;
        if (last && last->stack == p->pair.data[i].stack)
            analysis_weight_add(&last->weight, p->pair.data[i].weight);
        else
            p->pair.data[kept++] = p->pair.data[i];
    }
    if (r == 0)
        p->pair.len = kept;
    return r;
}

/* --- gathering --- */

static int add_pair(struct gathering *g, uint32_t thread, uint32_t stack,
                    struct analysis_weight weight)
{
    struct pairs *p = &g->thread[thread];
    struct pair *last = p->pair.len ? &p->pair.data[p->pair.len - 1] : NULL;
    if (last && last->stack == stack) {
        analysis_weight_add(&last->weight, weight);
        return 0;
    }
    if (p->pair.len == p->pair.cap && p->pair.len >= FULL_AT_LEAST) {
        int r = tidy(g, p);
        if (r < 0)
            return r;
        /* where most were different, there is to be more room before the next time */
        if (p->pair.len > p->pair.cap / 2 && !vec_reserve(&p->pair, p->pair.cap + 1))
            return E_NOMEM;
    }
    struct pair *slot = vec_push(&p->pair);
    if (!slot)
        return E_NOMEM;
    *slot = (struct pair){stack, weight};
    return 0;
}

/* Stacks are met in no order: the numbers of a stretch are looked up together. */
static int on_runs(void *ctx, const struct analysis_run *runs, size_t n)
{
    struct gathering *g = ctx;
    uint32_t stack[AHEAD_RUNS];
    int r = 0;
    for (size_t from = 0; r == 0 && from < n; from += AHEAD_RUNS) {
        size_t len = min_u64(n - from, AHEAD_RUNS);
        for (size_t i = 0; i < len; i++)
            stack[i] = g->number ? g->number[runs[from + i].stack] : runs[from + i].stack;
        for (size_t i = 0; r == 0 && i < len; i++)
            r = add_pair(g, runs[from + i].thread, stack[i], runs[from + i].weight);
    }
    return r;
}

static void gathering_release(struct gathering *g)
{
    for (size_t i = 0; g->thread && i < g->thread_count; i++)
        vec_release(&g->thread[i].pair);
    free(g->thread);
    vec_release(&g->scratch);
}

/* Every thread's pairs, sorted; `*ret_count` in all. Also on failure `g` is to be released. */
static int gather(struct gathering *g, const struct analysis_rows *rows,
                  const struct analysis_query *query, size_t *ret_count)
{
    const struct profile *profile = rows->weights->profile;
    g->thread_count = profile_tables(profile)->thread_count;
    g->thread = calloc(g->thread_count + 1, sizeof *g->thread);
    int r = g->thread ? analysis_stream_batches(profile, query, on_runs, g) : E_NOMEM;
    size_t count = 0;
    for (size_t i = 0; r == 0 && i < g->thread_count; i++) {
        r = tidy(g, &g->thread[i]);
        count += g->thread[i].pair.len;
    }
    if (r == 0 && count >= UINT32_MAX)
        r = E_LIMIT;
    if (r == 0)
        *ret_count = count;
    return r;
}

/* --- top down --- */

/* What a node was made of: the thread's pairs from `from` to `to` lie in the subtree of `number`. */
struct slice {
    uint32_t number, from, to;
};

struct analysis_threads {
    uint32_t rootless;
    uint32_t *stack;             /* of each pair, thread by thread: its number, ascending */
    struct analysis_weight *sum; /* of all pairs before each, and behind the last of all */
    uint32_t *row, *end;         /* of each number: its row, and the number past its subtree */
    VEC(struct slice) slice;     /* of each node; the columns below likewise */
    VEC(uint32_t) node_row;
    VEC(uint32_t) first;
    VEC(uint32_t) next;
    VEC(struct analysis_weight) own;
    VEC(struct analysis_weight) subtree;
};

static struct analysis_weight sum_of(const struct analysis_threads *t, uint32_t from, uint32_t to)
{
    return (struct analysis_weight){t->sum[to].weight - t->sum[from].weight,
                                    t->sum[to].samples - t->sum[from].samples};
}

/* A node under `parent`, after its sibling `*last` (0: the first), which it becomes. */
static int add_node(struct analysis_threads *t, uint32_t parent, uint32_t row, struct slice slice,
                    uint32_t *last)
{
    uint32_t at = (uint32_t)t->slice.len;
    struct slice *s = vec_push(&t->slice);
    uint32_t *r = vec_push(&t->node_row), *first = vec_push(&t->first), *next = vec_push(&t->next);
    struct analysis_weight *own = vec_push(&t->own), *subtree = vec_push(&t->subtree);
    if (!s || !r || !first || !next || !own || !subtree)
        return E_NOMEM;
    if (at == UINT32_MAX)
        return E_LIMIT;
    *s = slice;
    *r = row;
    *subtree = sum_of(t, slice.from, slice.to);
    bool ends_here = slice.from < slice.to && t->stack[slice.from] == slice.number;
    bool is_thread = slice.number == 0;
    if (ends_here && !(is_thread && t->rootless != ANALYSIS_ROW_NONE))
        *own = sum_of(t, slice.from, slice.from + 1);
    if (*last)
        t->next.data[*last] = at;
    else if (at)
        t->first.data[parent] = at;
    *last = at;
    return 0;
}

/* What a thread carries without a Python frame stands under it as a node of its own, which has
 * nothing to open. */
static int add_rootless(struct analysis_threads *t, uint32_t thread, uint32_t pair, uint32_t *last)
{
    int r = add_node(t, thread, t->rootless, (struct slice){0, pair, pair + 1}, last);
    if (r < 0)
        return r;
    t->own.data[*last] = t->subtree.data[*last];
    t->slice.data[*last].to = pair;
    return 0;
}

/* The first pair from `from` on, before `to`, whose stack is not below `number`; `to` if none is. */
static uint32_t find_pair(const uint32_t *stack, uint32_t from, uint32_t to, uint32_t number)
{
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (stack[middle] < number)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

int analysis_threads_open(struct analysis_threads *t, uint32_t node)
{
    struct slice s = t->slice.data[node];
    uint32_t last = 0, child = s.number + 1;
    int r = 0;
    if (!node || s.from == s.to) /* the threads themselves were made at once */
        return 0;
    if (t->stack[s.from] == s.number) {
        if (!s.number && t->rootless != ANALYSIS_ROW_NONE)
            r = add_rootless(t, node, s.from, &last);
        s.from++;
    }
    while (r == 0 && s.from < s.to) {
        while (t->end[child] <= t->stack[s.from])
            child = t->end[child]; /* its next sibling */
        uint32_t to = find_pair(t->stack, s.from, s.to, t->end[child]);
        r = add_node(t, node, t->row[child], (struct slice){child, s.from, to}, &last);
        s.from = to;
        child = t->end[child];
    }
    return r;
}

struct analysis_threads_columns analysis_threads_columns(const struct analysis_threads *t)
{
    return (struct analysis_threads_columns){.row = t->node_row.data,
                                             .first = t->first.data,
                                             .next = t->next.data,
                                             .own = t->own.data,
                                             .subtree = t->subtree.data};
}

void analysis_threads_free(struct analysis_threads *t)
{
    if (!t)
        return;
    free(t->stack);
    free(t->sum);
    free(t->row);
    free(t->end);
    vec_release(&t->slice);
    vec_release(&t->node_row);
    vec_release(&t->first);
    vec_release(&t->next);
    vec_release(&t->own);
    vec_release(&t->subtree);
    free(t);
}

/* The columns by number: rows and ends. */
static int lay_out(struct analysis_threads *t, const struct analysis_rows *rows,
                   const uint32_t *number, const uint32_t *end)
{
    size_t count = profile_tables(rows->weights->profile)->node_count;
    t->row = large_calloc(count + 1, sizeof *t->row);
    t->end = large_calloc(count + 1, sizeof *t->end);
    if (!t->row || !t->end)
        return E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        t->row[number[i]] = rows->node_row[i];
        t->end[number[i]] = end[i];
    }
    return 0;
}

/* The root and the threads that have pairs; the pairs move here from where they were gathered. */
static int plant(struct analysis_threads *t, struct gathering *g, size_t rows, size_t pairs)
{
    uint32_t at = 0, last = 0;
    t->stack = large_calloc(pairs + 1, sizeof *t->stack);
    t->sum = large_calloc(pairs + 1, sizeof *t->sum);
    if (!t->stack || !t->sum)
        return E_NOMEM;
    int r = add_node(t, 0, ANALYSIS_ROW_NONE, (struct slice){0}, &last);
    for (size_t i = 0; r == 0 && i < g->thread_count; i++) {
        struct pairs *p = &g->thread[i];
        uint32_t from = at;
        for (size_t k = 0; k < p->pair.len; k++, at++) {
            t->stack[at] = p->pair.data[k].stack;
            t->sum[at + 1] = t->sum[at];
            analysis_weight_add(&t->sum[at + 1], p->pair.data[k].weight);
        }
        vec_release(&p->pair);
        if (at > from)
            r = add_node(t, 0, (uint32_t)(rows + i), (struct slice){0, from, at}, &last);
    }
    if (r == 0)
        t->subtree.data[0] = t->sum[pairs];
    return r;
}

static int split_top_down(const struct analysis_rows *rows, const struct analysis_query *query,
                          struct analysis_forest *f)
{
    const struct profile_tables *tables = profile_tables(rows->weights->profile);
    struct gathering g = {0};
    uint32_t *number = NULL, *end = NULL;
    size_t pairs = 0;
    f->threads = calloc(1, sizeof *f->threads);
    int r = f->threads
                ? analysis_trie_number(tables->node_parent, tables->node_count, &number, &end)
                : E_NOMEM;
    if (r == 0)
        r = lay_out(f->threads, rows, number, end);
    free(end);
    g.number = number;
    if (r == 0)
        r = gather(&g, rows, query, &pairs);
    free(number);
    if (r == 0) {
        f->threads->rootless = analysis_forest_rootless(rows);
        r = plant(f->threads, &g, rows->count, pairs);
    }
    gathering_release(&g);
    return r;
}

/* --- bottom up --- */

enum { OWN_PARENT_AND_ROW, OWN_WEIGHT, OWN_PAIR_NODE, OWN_PAIR_THREAD };

/* The trie's columns; then a node for each thread, and one for samples without a Python frame. */
static void put_trie(const struct analysis_rows *rows, uint32_t *parent, uint32_t *row)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    size_t n = t->node_count;
    memcpy(parent, t->node_parent, n * sizeof *parent);
    memcpy(row, rows->node_row, n * sizeof *row);
    for (size_t i = 0; i < t->thread_count; i++)
        row[n + i] = (uint32_t)(rows->count + i);
    row[n + t->thread_count] = analysis_forest_rootless(rows);
}

static void put_pairs(const struct gathering *g, uint32_t first_thread, uint32_t rootless,
                      struct analysis_weight *own, uint32_t *node, uint32_t *thread)
{
    size_t at = 0;
    for (size_t i = 0; i < g->thread_count; i++)
        for (size_t k = 0; k < g->thread[i].pair.len; k++, at++) {
            const struct pair *p = &g->thread[i].pair.data[k];
            thread[at] = first_thread + (uint32_t)i;
            node[at] = p->stack                        ? p->stack
                       : rootless != ANALYSIS_ROW_NONE ? first_thread + (uint32_t)g->thread_count
                                                       : thread[at];
            own[at] = p->weight;
        }
}

static int split_bottom_up(const struct analysis_rows *rows, const struct analysis_query *query,
                           struct analysis_forest *f)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    size_t nodes = t->node_count + t->thread_count + 1, pairs = 0;
    struct gathering g = {0};
    int r = nodes < UINT32_MAX ? gather(&g, rows, query, &pairs) : E_LIMIT;
    if (r == 0) {
        uint32_t *parent = f->owned[OWN_PARENT_AND_ROW] = calloc(2 * nodes, sizeof *parent);
        f->owned[OWN_WEIGHT] = large_calloc(pairs + 1, sizeof *f->own);
        f->owned[OWN_PAIR_NODE] = calloc(pairs + 1, sizeof *f->pair_node);
        f->owned[OWN_PAIR_THREAD] = calloc(pairs + 1, sizeof *f->pair_thread);
        for (size_t i = 0; i < ARRAY_LEN(f->owned); i++)
            r = f->owned[i] ? r : E_NOMEM;
        if (r == 0) {
            f->parent = parent;
            f->row = parent + nodes;
            put_trie(rows, parent, parent + nodes);
            put_pairs(&g, (uint32_t)t->node_count, analysis_forest_rootless(rows),
                      f->owned[OWN_WEIGHT], f->owned[OWN_PAIR_NODE], f->owned[OWN_PAIR_THREAD]);
        }
    }
    gathering_release(&g);
    f->count = pairs;
    f->own = f->owned[OWN_WEIGHT];
    f->pair_node = f->owned[OWN_PAIR_NODE];
    f->pair_thread = f->owned[OWN_PAIR_THREAD];
    return r;
}

int analysis_forest_init_threads(const struct analysis_rows *rows,
                                 const struct analysis_query *query, bool bottom_up,
                                 struct analysis_forest *ret)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    struct analysis_forest f = {.row_count = rows->count + t->thread_count,
                                .rootless = ANALYSIS_ROW_NONE};
    int r = bottom_up ? split_bottom_up(rows, query, &f) : split_top_down(rows, query, &f);
    if (r < 0) {
        analysis_forest_release(&f);
        return r;
    }
    *ret = f;
    return 0;
}
