/* One pass over the runs of samples. Each thread has the path that is open, kept in segments:
 * blocks that lie over each other and began together, so one start and one end decide for all of
 * them whether they are short. A run climbs from the last stack to what both share; the segments
 * above close, and what the new stack has beyond becomes one segment. So a run costs the segments
 * it touches and not the depth of its stack. What closes is kept, or, if it is short, joins the
 * folded block that is pending under its caller. */
#include "analysis/sequence.h"

#include "analysis/merged.h"
#include "analysis/stream.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"

enum {
    COLUMNS = 20000,            /* a block shorter than the whole by this is folded */
    BREAK_NS = 100 * NS_PER_US, /* a longer gap between two runs ends the blocks */
    AHEAD_RUNS = 64,            /* looked up together */
    KEPT_BEFORE_PRUNING = 4,    /* times max_blocks: pruning is rare and memory bounded */
};

/* Short blocks under one caller that wait to be one. */
struct fold {
    uint64_t start_ns, end_ns;
    struct analysis_weight weight;
    uint32_t count;
};

/* Open blocks from depth `first` to `last` (1 is the outermost) that began together. Only the last
 * of them was ever the innermost of all: only it has a self, and only under it is something folded.
 */
struct segment {
    uint32_t first, last;
    uint64_t start_ns;
    struct analysis_weight before; /* what the thread had carried when it began */
    struct analysis_weight self;
    struct fold fold;
};

static const struct segment NOTHING_OPEN;

struct thread_state {
    VEC(struct segment) open; /* [0] stands for the thread itself, at depth 0 */
    struct analysis_weight carried;
    uint64_t end_ns; /* of the last run */
    uint32_t node;   /* its stack, merged */
    uint32_t ahead;  /* that of the last run that was looked up */
    uint32_t lane;   /* plus one; 0: not seen yet */
};

struct charting {
    const struct profile_tables *t;
    const struct analysis_merged *merged;
    size_t max_blocks;
    struct analysis_sequence *out;
    VEC(struct analysis_block) block;
    VEC(struct analysis_lane) lane;
    struct thread_state *thread;
};

/* --- keeping blocks --- */

static void prune(struct charting *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->block.len; i++) {
        const struct analysis_block *b = &c->block.data[i];
        if (b->end_ns - b->start_ns >= c->out->shortest_ns)
            c->block.data[kept++] = *b;
    }
    c->out->dropped += c->block.len - kept;
    c->block.len = kept;
}

/* Doubles the limit until no more than `max` are left. */
static void prune_to(struct charting *c, size_t max)
{
    while (c->block.len > max && c->out->shortest_ns <= UINT64_MAX / 2) {
        c->out->shortest_ns = c->out->shortest_ns ? c->out->shortest_ns * 2 : 1;
        prune(c);
    }
}

static int keep(struct charting *c, const struct analysis_block *block)
{
    struct analysis_block *slot = vec_push(&c->block);
    if (!slot)
        return E_NOMEM;
    *slot = *block;
    if (c->block.len > c->max_blocks * KEPT_BEFORE_PRUNING)
        prune_to(c, c->max_blocks);
    return 0;
}

/* --- opening and closing --- */

/* What is pending under the last block of a segment becomes a block. */
static int flush_fold(struct charting *c, const struct thread_state *th, struct segment *seg)
{
    struct fold fold = seg->fold;
    if (!fold.count)
        return 0;
    seg->fold = (struct fold){0};
    return keep(c, &(struct analysis_block){.lane = th->lane - 1,
                                            .depth = seg->last,
                                            .row = ANALYSIS_ROW_NONE,
                                            .folded = fold.count,
                                            .start_ns = fold.start_ns,
                                            .end_ns = fold.end_ns,
                                            .total = fold.weight,
                                            .self = fold.weight});
}

static int add_fold(struct charting *c, const struct thread_state *th, struct segment *under,
                    const struct fold *fold)
{
    int r = 0;
    c->out->folded++;
    if (under->fold.count && fold->start_ns - under->fold.end_ns > c->out->shortest_ns)
        r = flush_fold(c, th, under);
    if (!under->fold.count)
        under->fold.start_ns = fold->start_ns;
    under->fold.end_ns = fold->end_ns;
    under->fold.count++;
    analysis_weight_add(&under->fold.weight, fold->weight);
    return r;
}

static struct analysis_weight carried_since(const struct thread_state *th,
                                            const struct segment *seg)
{
    return (struct analysis_weight){th->carried.weight - seg->before.weight,
                                    th->carried.samples - seg->before.samples};
}

/* Keeps the blocks of a segment from depth `first` on. */
static int keep_segment(struct charting *c, const struct thread_state *th, struct segment *seg,
                        uint32_t first)
{
    int r = flush_fold(c, th, seg);
    uint32_t node = analysis_merged_ancestor(c->merged, th->node, seg->last);
    for (uint32_t depth = seg->last; r == 0 && depth >= first; depth--) {
        struct analysis_block b = {.lane = th->lane - 1,
                                   .depth = depth - 1,
                                   .row = c->merged->row[node],
                                   .start_ns = seg->start_ns,
                                   .end_ns = th->end_ns,
                                   .total = carried_since(th, seg)};
        if (depth == seg->last)
            b.self = seg->self;
        r = keep(c, &b);
        node = c->merged->parent[node];
    }
    return r;
}

/* Closes what is open below `depth`. Of blocks that are short only the outermost counts: the others
 * are parts of it. */
static int close_to(struct charting *c, struct thread_state *th, uint32_t depth)
{
    struct fold fold = {0};
    int r = 0;
    while (r == 0) {
        struct segment *seg = &th->open.data[th->open.len - 1];
        if (fold.count &&
            (seg->last <= depth || th->end_ns - seg->start_ns >= c->out->shortest_ns)) {
            r = add_fold(c, th, seg, &fold);
            fold.count = 0;
        }
        if (r < 0 || seg->last <= depth)
            break;
        uint32_t first = (uint32_t)max_u64(seg->first, depth + 1);
        bool is_short = th->end_ns - seg->start_ns < c->out->shortest_ns;
        if (is_short)
            fold = (struct fold){seg->start_ns, th->end_ns, carried_since(th, seg), 1};
        else
            r = keep_segment(c, th, seg, first);
        if (first == seg->first) {
            th->open.len--;
            seg--;
        } else { /* a part stays open; nothing was ever under its last block but what closed now */
            seg->last = depth;
            seg->self = (struct analysis_weight){0};
            seg->fold = (struct fold){0};
        }
        if (!is_short && r == 0)
            r = flush_fold(c, th, seg); /* what comes after stands right of what was kept */
    }
    return r;
}

/* Makes the open path that of `node`, from `start` on. */
static int follow(struct charting *c, struct thread_state *th, uint32_t node, uint64_t start)
{
    bool broken = start - th->end_ns > BREAK_NS;
    uint32_t shared = broken ? 0 : analysis_merged_shared(c->merged, th->node, node);
    uint32_t depth = c->merged->place[node].depth;
    int r = close_to(c, th, shared);
    th->node = node;
    if (r < 0 || depth == shared)
        return r;
    if (!vec_reserve(&th->open, th->open.len + 1))
        return E_NOMEM;
    struct segment *seg = &th->open.data[th->open.len++];
    *seg = NOTHING_OPEN;
    seg->first = shared + 1;
    seg->last = depth;
    seg->start_ns = start;
    seg->before = th->carried;
    return 0;
}

static int begin_lane(struct charting *c, struct thread_state *th, uint32_t thread)
{
    struct analysis_lane *lane = vec_push(&c->lane);
    if (!lane || !vec_push(&th->open))
        return E_NOMEM;
    lane->thread = thread;
    th->lane = (uint32_t)c->lane.len;
    return 0;
}

/* `node` is the run's stack, merged. */
static int add_run(struct charting *c, const struct analysis_run *run, uint32_t node)
{
    struct thread_state *th = &c->thread[run->thread];
    int r = th->lane ? 0 : begin_lane(c, th, run->thread);
    if (r < 0)
        return r;
    /* what overlaps is from a damaged file: the earlier one counts */
    uint64_t start = max_u64(run->start_ns, th->end_ns);
    uint64_t end = run->start_ns + min_u64(run->duration_ns, UINT64_MAX - run->start_ns);
    end = max_u64(start, end);
    if (node != th->node || start - th->end_ns > BREAK_NS)
        r = follow(c, th, node, start);
    th->end_ns = end;
    analysis_weight_add(&th->carried, run->weight);
    analysis_weight_add(&th->open.data[th->open.len - 1].self, run->weight);
    analysis_weight_add(&c->lane.data[th->lane - 1].total, run->weight);
    c->out->from_ns = c->out->to_ns ? (uint64_t)min_u64(c->out->from_ns, start) : start;
    c->out->to_ns = max_u64(c->out->to_ns, end);
    return r;
}

/* Stacks are met in no order: those of a stretch are looked up together, so that memory is waited
 * for once and not for each. First what the next stretch will ask for; then which nodes the runs of
 * this one end at; then what lies between each and the one before it. */
static void look_up(struct charting *c, const struct analysis_run *runs, size_t len, size_t next,
                    uint32_t *node)
{
    const struct analysis_merged *m = c->merged;
    for (size_t i = len; i < len + next; i++)
        __builtin_prefetch(&m->of[runs[i].stack]);
    for (size_t i = 0; i < len; i++) {
        node[i] = m->of[runs[i].stack];
        analysis_merged_fetch(m, node[i]);
    }
    for (size_t i = 0; i < len; i++) {
        struct thread_state *th = &c->thread[runs[i].thread];
        analysis_merged_fetch_between(m, th->ahead, node[i]);
        th->ahead = node[i];
    }
}

static int on_runs(void *ctx, const struct analysis_run *runs, size_t n)
{
    struct charting *c = ctx;
    uint32_t node[AHEAD_RUNS];
    int r = 0;
    for (size_t from = 0, len; r == 0 && from < n; from += len) {
        len = min_u64(n - from, AHEAD_RUNS);
        look_up(c, &runs[from], len, min_u64(n - from - len, AHEAD_RUNS), node);
        for (size_t i = 0; r == 0 && i < len; i++)
            r = add_run(c, &runs[from + i], node[i]);
    }
    return r;
}

/* --- the order of the picture --- */

static int compare_lanes(const void *x, const void *y, void *ctx)
{
    const struct analysis_lane *a = x, *b = y;
    const struct profile_tables *t = ctx;
    uint32_t p = t->threads[a->thread].process, q = t->threads[b->thread].process;
    if (p != q)
        return p < q ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

static int compare_blocks(const void *x, const void *y)
{
    const struct analysis_block *a = x, *b = y;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static int put_in_order(struct charting *c)
{
    size_t lanes = c->lane.len;
    _cleanup_free_ uint32_t *place = calloc(lanes + 1, sizeof *place);
    if (!place)
        return E_NOMEM;
    if (lanes)
        qsort_r(c->lane.data, lanes, sizeof *c->lane.data, compare_lanes, (void *)(uintptr_t)c->t);
    for (size_t i = 0; i < lanes; i++)
        place[c->thread[c->lane.data[i].thread].lane - 1] = (uint32_t)i;
    for (size_t i = 0; i < c->block.len; i++)
        c->block.data[i].lane = place[c->block.data[i].lane];
    if (c->block.len)
        qsort(c->block.data, c->block.len, sizeof *c->block.data, compare_blocks);
    for (size_t i = 0; i < c->block.len; i++) {
        struct analysis_lane *lane = &c->lane.data[c->block.data[i].lane];
        if (!lane->count++)
            lane->first = i;
        lane->depth = (uint32_t)max_u64(lane->depth, c->block.data[i].depth + 1);
    }
    return 0;
}

static int finish(struct charting *c)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < c->t->thread_count; i++) {
        struct thread_state *th = &c->thread[i];
        if (!th->lane)
            continue;
        r = close_to(c, th, 0);
        if (r == 0)
            r = flush_fold(c, th, &th->open.data[0]);
    }
    prune_to(c, c->max_blocks);
    return r < 0 ? r : put_in_order(c);
}

/* The longest thread's time says how short is short, without a pass to find the ends. */
static uint64_t shortest_of(const struct analysis_weights *w, const struct profile_tables *t)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < t->thread_count; i++)
        longest = max_u64(longest, w->thread[i].weight);
    return longest / COLUMNS;
}

int analysis_sequence_init(const struct analysis_rows *rows, const struct analysis_query *query,
                           size_t max_blocks, struct analysis_sequence *ret)
{
    const struct analysis_weights *w = rows->weights;
    const struct profile_tables *t = profile_tables(w->profile);
    struct analysis_sequence s = {.shortest_ns = shortest_of(w, t)};
    struct analysis_merged merged = {0};
    struct charting c = {.t = t, .merged = &merged, .max_blocks = max_blocks, .out = &s};
    c.thread = calloc(t->thread_count + 1, sizeof *c.thread);
    int r = c.thread ? analysis_merged_init(rows, &merged) : E_NOMEM;
    if (r == 0)
        r = analysis_merged_index(&merged);
    if (r == 0)
        r = analysis_stream_batches(w->profile, query, on_runs, &c);
    if (r == 0)
        r = finish(&c);
    for (size_t i = 0; c.thread && i < t->thread_count; i++)
        vec_release(&c.thread[i].open);
    free(c.thread);
    analysis_merged_release(&merged);
    s.block = c.block.data;
    s.count = c.block.len;
    s.lane = c.lane.data;
    s.lane_count = c.lane.len;
    if (r < 0) {
        analysis_sequence_release(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void analysis_sequence_release(struct analysis_sequence *s)
{
    free(s->block);
    free(s->lane);
    *s = (struct analysis_sequence){0};
}
