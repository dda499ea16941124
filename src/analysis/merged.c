/* Merging takes one pass, since parents stand before children; two more passes number the nodes
 * anew in the order of a walk.
 *
 * In that order the nodes after `a` up to `b` all lie under the last one that both share, and one of
 * them is its child. So what two paths share is the least depth in a range of numbers, less one. The
 * least of every block of BLOCK nodes, of every two, four, … blocks, and inside a block of its parts
 * to the left and to the right of each node is known beforehand: a range is two overlapping runs of
 * blocks and the parts of two blocks.
 *
 * The jumps are Myers' skew-binary ones: each node jumps either to its parent or over two jumps of
 * equal length, which the depths decide. */
#include "analysis/merged.h"

#include "analysis/trie.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/large.h"

/* Large enough that what is known of blocks stays in the cache. */
enum { BLOCK = 256 };

/* The merged nodes in the order they are met: no more than there are nodes, and two. */
struct merging {
    uint32_t *parent, *row;
    uint32_t count;
    struct idxmap map;
};

static int find_or_add(struct merging *m, uint32_t parent, uint32_t row, uint32_t *ret)
{
    uint32_t hash = hash_u64((uint64_t)parent << 32 | row), at;
    IDXMAP_FIND(&m->map, hash, i, m->parent[i] == parent && m->row[i] == row, at);
    if (at == IDXMAP_NONE) {
        at = m->count++;
        m->parent[at] = parent;
        m->row[at] = row;
        if (idxmap_insert(&m->map, hash, at) < 0)
            return E_NOMEM;
    }
    *ret = at;
    return 0;
}

static int merge(const struct analysis_rows *rows, struct merging *m, uint32_t *of)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    int r = 0;
    m->row[m->count++] = ANALYSIS_ROW_NONE;
    of[0] = 0;
    for (size_t i = 1; r == 0 && i < t->node_count; i++)
        r = find_or_add(m, of[t->node_parent[i]], rows->node_row[i], &of[i]);
    if (r == 0 && rows->count && rows->weights->node[RECORD_STACK_ROOT].samples)
        r = find_or_add(m, 0, (uint32_t)rows->count - 1, &of[0]);
    return r;
}

static int lay_out(const struct merging *m, size_t stacks, struct analysis_merged *made)
{
    size_t count = m->count;
    uint32_t *place, *end;
    int r = analysis_trie_number(m->parent, count, &place, &end);
    if (r < 0)
        return r;
    free(end);
    made->count = count;
    made->parent = large_calloc(count + 1, sizeof *made->parent);
    made->row = large_calloc(count + 1, sizeof *made->row);
    made->depth = large_calloc(count + 1, sizeof *made->depth);
    r = made->parent && made->row && made->depth ? 0 : E_NOMEM;
    for (size_t i = 0; r == 0 && i < count; i++) {
        uint32_t at = place[i], up = place[m->parent[i]];
        made->parent[at] = up;
        made->row[at] = m->row[i];
        made->depth[at] = i ? made->depth[up] + 1 : 0;
    }
    for (size_t i = 0; r == 0 && i < stacks; i++)
        made->of[i] = place[made->of[i]];
    free(place);
    return r;
}

int analysis_merged_init(const struct analysis_rows *rows, struct analysis_merged *ret)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    struct merging m = {.parent = large_calloc(t->node_count + 2, sizeof *m.parent),
                        .row = large_calloc(t->node_count + 2, sizeof *m.row)};
    struct analysis_merged made = {.of = large_calloc(t->node_count + 1, sizeof *made.of)};
    int r = made.of && m.parent && m.row ? merge(rows, &m, made.of) : E_NOMEM;
    idxmap_release(&m.map);
    if (r == 0)
        r = lay_out(&m, t->node_count, &made);
    free(m.parent);
    free(m.row);
    if (r < 0) {
        analysis_merged_release(&made);
        return r;
    }
    *ret = made;
    return 0;
}

void analysis_merged_release(struct analysis_merged *m)
{
    free(m->parent);
    free(m->row);
    free(m->depth);
    free(m->of);
    free(m->place);
    free(m->far);
    *m = (struct analysis_merged){0};
}

/* --- the index --- */

static unsigned log2_of(size_t n)
{
    return 63u - (unsigned)__builtin_clzll(n);
}

static void fill_near(struct analysis_merged *m)
{
    struct analysis_merged_place *p = m->place;
    for (size_t i = 0; i < m->count; i++)
        p[i].to = i % BLOCK ? (uint32_t)min_u64(p[i - 1].to, p[i].depth) : p[i].depth;
    for (size_t i = m->count; i-- > 0;) {
        bool last = i + 1 == m->count || (i + 1) % BLOCK == 0;
        p[i].from = last ? p[i].depth : (uint32_t)min_u64(p[i + 1].from, p[i].depth);
    }
}

static void fill_jumps(struct analysis_merged *m)
{
    struct analysis_merged_place *p = m->place;
    for (size_t i = 0; i < m->count; i++) {
        uint32_t up = m->parent[i], jump = p[up].jump;
        bool equal = p[up].depth - p[jump].depth == p[jump].depth - p[p[jump].jump].depth;
        p[i].depth = m->depth[i];
        p[i].jump = i && equal ? p[jump].jump : up;
    }
}

/* Level k, one row of `blocks` numbers: the least depth of the 2^k blocks from each on. */
static int fill_far(struct analysis_merged *m)
{
    size_t blocks = (m->count + BLOCK - 1) / BLOCK;
    unsigned levels = log2_of(blocks) + 1;
    m->far = malloc((blocks * levels + 1) * sizeof *m->far);
    if (!m->far)
        return E_NOMEM;
    for (size_t i = 0; i < blocks; i++)
        m->far[i] = m->place[i * BLOCK].from;
    for (unsigned k = 1; k < levels; k++) {
        const uint32_t *below = m->far + (k - 1) * blocks;
        uint32_t *row = m->far + k * blocks;
        size_t half = (size_t)1 << (k - 1);
        for (size_t i = 0; i < blocks; i++)
            row[i] = i + half < blocks ? (uint32_t)min_u64(below[i], below[i + half]) : below[i];
    }
    return 0;
}

int analysis_merged_index(struct analysis_merged *m)
{
    m->place = large_calloc(m->count + 1, sizeof *m->place);
    if (!m->place)
        return E_NOMEM;
    fill_jumps(m);
    fill_near(m);
    return fill_far(m);
}

uint32_t analysis_merged_ancestor(const struct analysis_merged *m, uint32_t node, uint32_t depth)
{
    const struct analysis_merged_place *p = m->place;
    while (p[node].depth > depth)
        node = p[p[node].jump].depth >= depth ? p[node].jump : m->parent[node];
    return node;
}

/* The whole blocks between two others: two runs of them, which overlap. */
struct runs {
    const uint32_t *left, *right;
};

static inline struct runs runs_between(const struct analysis_merged *m, size_t first, size_t last)
{
    size_t blocks = (m->count + BLOCK - 1) / BLOCK;
    unsigned k = log2_of(last - first - 1);
    const uint32_t *row = m->far + k * blocks;
    return (struct runs){row + first + 1, row + last - ((size_t)1 << k)};
}

void analysis_merged_fetch_between(const struct analysis_merged *m, uint32_t a, uint32_t b)
{
    size_t from = (a < b ? a : b) + (size_t)1, to = a < b ? b : a;
    size_t first = from / BLOCK, last = to / BLOCK;
    if (a == b || last - first <= 1)
        return;
    struct runs runs = runs_between(m, first, last);
    __builtin_prefetch(runs.left);
    __builtin_prefetch(runs.right);
}

uint32_t analysis_merged_shared(const struct analysis_merged *m, uint32_t a, uint32_t b)
{
    if (a == b)
        return m->place[a].depth;
    size_t from = (a < b ? a : b) + (size_t)1, to = a < b ? b : a;
    size_t first = from / BLOCK, last = to / BLOCK;
    if (first == last) {
        uint32_t least = m->depth[to];
        for (size_t i = from; i < to; i++)
            least = m->depth[i] < least ? m->depth[i] : least;
        return least - 1;
    }
    uint32_t least = (uint32_t)min_u64(m->place[from].from, m->place[to].to);
    if (last - first > 1) {
        struct runs runs = runs_between(m, first, last);
        least = (uint32_t)min_u64(least, min_u64(*runs.left, *runs.right));
    }
    return least - 1;
}
