#include "record/slowed.h"

#include <math.h>

#define MOST_PART  0.85 /* of what a block takes can be lost */
#define MOVES_SEEN 0.5  /* of its moves are seen at least, for all that processors do */
#define MOST_TIMES 8.0  /* more often than it should no block runs */
#define FEW_COUNTS 100

/* A count that was seen so long ago may have begun anew unnoticed: its steps are seldom quicker than 30 ns. */
enum { COUNT_NS = 450000 };

static uint32_t hash_of(uint32_t where, uint32_t code)
{
    return hash_u64((uint64_t)where << 32 | code);
}

static struct slowed_block *block_of(struct slowed *s, const struct slowed_block *like)
{
    uint32_t hash = hash_of(like->thread, like->code) ^ hash_u64(like->block.begin), at;
    IDXMAP_FIND(&s->block_map, hash, i,
                s->blocks.data[i].thread == like->thread && s->blocks.data[i].code == like->code &&
                    s->blocks.data[i].block.begin == like->block.begin,
                at);
    if (at != IDXMAP_NONE)
        return &s->blocks.data[at];
    at = (uint32_t)s->blocks.len;
    struct slowed_block *b = vec_push(&s->blocks);
    if (!b || idxmap_insert(&s->block_map, hash, at) < 0)
        return NULL;
    *b = (struct slowed_block){
        .process = like->process, .thread = like->thread, .code = like->code, .block = like->block};
    return b;
}

struct slowed_function *slowed_find(struct slowed *s, uint32_t thread, uint32_t code)
{
    uint32_t at;
    IDXMAP_FIND(&s->function_map, hash_of(thread, code), i,
                s->functions.data[i].thread == thread && s->functions.data[i].code == code, at);
    return at == IDXMAP_NONE ? NULL : &s->functions.data[at];
}

static struct slowed_function *function_of(struct slowed *s, uint32_t thread, uint32_t code)
{
    struct slowed_function *f = slowed_find(s, thread, code);
    if (f)
        return f;
    uint32_t at = (uint32_t)s->functions.len;
    f = vec_push(&s->functions);
    if (!f || idxmap_insert(&s->function_map, hash_of(thread, code), at) < 0)
        return NULL;
    *f = (struct slowed_function){.thread = thread, .code = code};
    return f;
}

/* NULL: it counts nothing, as far as is known. */
static struct slowed_code *find_code(struct slowed *s, uint32_t process, uint32_t code)
{
    uint32_t at;
    IDXMAP_FIND(&s->code_map, hash_of(process, code), i,
                s->codes.data[i].process == process && s->codes.data[i].code == code, at);
    return at == IDXMAP_NONE ? NULL : &s->codes.data[at];
}

void slowed_count(struct slowed *s, uint32_t process, uint32_t code, int16_t count, uint64_t now_ns)
{
    struct slowed_code *c = find_code(s, process, code);
    uint32_t at = (uint32_t)s->codes.len;
    if (!c) {
        c = vec_push(&s->codes);
        if (!c || idxmap_insert(&s->code_map, hash_of(process, code), at) < 0)
            return;
        *c = (struct slowed_code){.process = process, .code = code};
    }
    c->is_counted =
        count < 0 && c->count < 0 && count >= c->count && now_ns - c->count_ns <= COUNT_NS;
    if (c->is_counted)
        c->counted += count - c->count;
    c->count = count;
    c->count_ns = now_ns;
}

void slowed_add(struct slowed *s, const struct slowed_block *found, uint64_t now_ns)
{
    struct slowed_block *b = block_of(s, found);
    if (!b || !function_of(s, found->thread, found->code))
        return;
    b->found_ns += found->found_ns;
    b->found++;
    b->moves += found->moves;
    const struct slowed_code *c = find_code(s, found->process, found->code);
    if (c && c->is_counted && c->count_ns == now_ns)
        b->counted_ns += found->found_ns;
}

/* What a block takes once, and how much of that is lost, in ns. */
struct once {
    double takes, slower, moves;
};

static struct once block_once(const struct remote_block *b, const struct ring_calibration *cost,
                              double tick_ns)
{
    const uint16_t counts[RING_SLOWED_KINDS] = {
        [RING_SLOWED_MOVE] = b->moves,           [RING_SLOWED_STORE] = b->stores,
        [RING_SLOWED_ITERATION] = b->iterations, [RING_SLOWED_ARITHMETIC] = b->arithmetic,
        [RING_SLOWED_DIVISION] = b->divisions,   [RING_SLOWED_COMPARISON] = b->comparisons,
        [RING_SLOWED_NAME] = b->names,           [RING_SLOWED_ATTRIBUTE] = b->attributes,
        [RING_SLOWED_ITEM] = b->items,           [RING_SLOWED_OTHER] = b->others,
        [RING_SLOWED_CALL] = b->calls,
    };
    struct once o = {.moves = b->moves * tick_ns * cost->slowed[RING_SLOWED_MOVE].takes};
    for (size_t i = 0; i < RING_SLOWED_KINDS; i++) {
        o.takes += counts[i] * tick_ns * cost->slowed[i].takes;
        o.slower += counts[i] * tick_ns * cost->slowed[i].slower;
    }
    if (o.slower < 0)
        o.slower = 0;
    return o;
}

/* How far its moves show a block to take what it should: 1, or less if something else in it takes so long that fewer are seen, by far, than
 * chance allows. */
static double usual_part(const struct slowed_block *b, const struct once *o)
{
    double due = MOVES_SEEN * o->moves / o->takes * b->found;
    double seen = b->moves + 2 * sqrt(b->moves + 1.0);
    return seen < due ? seen / due : 1;
}

/* By how much a block ran more often than its time tells. A call that it has is known from its call; and where one is, it is not
 * found, so that other instructions are, which the processor does meanwhile, as well. */
static double called_times(const struct slowed_block *b, const struct slowed_function *f,
                           const struct once *o)
{
    double runs = b->found_ns / o->takes, times = 1;
    if (b->block.begin == 0 && runs > 0 && f->calls > runs)
        times = f->calls / runs;
    if (b->block.calls && f->called > 0 && f->made > f->called * times)
        times = f->made / f->called;
    return times < MOST_TIMES ? times : MOST_TIMES;
}

static double lost_ns(const struct slowed_block *b, const struct slowed_function *f,
                      const struct slowed_code *c, const struct once *o)
{
    if (!(o->takes > 0))
        return 0;
    double lost = b->found_ns / o->takes * o->slower, most = MOST_PART * b->found_ns;
    if (c && c->counted + c->expected >= FEW_COUNTS && c->counted < MOST_TIMES * c->expected) {
        lost *= c->counted / c->expected;
        return lost < most || b->block.calls ? lost : most;
    }
    lost *= usual_part(b, o);
    return (lost < most ? lost : most) * called_times(b, f, o);
}

/* What a process's code should have counted, and a thread's functions called, by where they were found. */
static void expect_counts(struct slowed *s, uint32_t process, uint32_t thread,
                          const struct ring_calibration *cost, double tick_ns)
{
    for (size_t i = 0; i < s->codes.len; i++)
        if (s->codes.data[i].process == process)
            s->codes.data[i].expected = 0;
    for (size_t i = 0; i < s->functions.len; i++)
        if (s->functions.data[i].thread == thread)
            s->functions.data[i].called = 0;
    for (size_t i = 0; i < s->blocks.len; i++) {
        const struct slowed_block *b = &s->blocks.data[i];
        struct once o = block_once(&b->block, cost, tick_ns);
        if (b->process != process || !(o.takes > 0))
            continue;
        struct slowed_code *c = find_code(s, process, b->code);
        struct slowed_function *f = b->thread == thread ? slowed_find(s, thread, b->code) : NULL;
        if (c)
            c->expected += b->counted_ns / o.takes * b->block.counted;
        if (f)
            f->called += b->found_ns / o.takes * b->block.calls;
    }
}

void slowed_begin(struct slowed *s, uint32_t thread)
{
    for (size_t i = 0; i < s->functions.len; i++)
        if (s->functions.data[i].thread == thread)
            s->functions.data[i].known_ns = 0;
}

void slowed_judge(struct slowed *s, uint32_t process, uint32_t thread,
                  const struct ring_calibration *cost, double tick_ns)
{
    expect_counts(s, process, thread, cost, tick_ns);
    for (size_t i = 0; i < s->blocks.len; i++) {
        struct slowed_block *b = &s->blocks.data[i];
        struct slowed_function *f = b->thread == thread ? slowed_find(s, thread, b->code) : NULL;
        if (!f)
            continue;
        const struct slowed_code *c = find_code(s, process, b->code);
        struct once o = block_once(&b->block, cost, tick_ns);
        double lost = lost_ns(b, f, c, &o);
        f->lost_ns += lost - b->lost_ns;
        b->lost_ns = lost;
    }
}

void slowed_release(struct slowed *s)
{
    vec_release(&s->blocks);
    vec_release(&s->functions);
    vec_release(&s->codes);
    idxmap_release(&s->block_map);
    idxmap_release(&s->function_map);
    idxmap_release(&s->code_map);
}
