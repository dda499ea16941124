#include "record/slowed.h"

#include <math.h>

#define MOST_PART  0.85 /* of what a block takes can be lost */
#define MOVES_SEEN 0.5  /* of its moves are seen at least, for all that processors do */
#define MOST_TIMES 8.0  /* more often than it should no block runs */
#define FEW_COUNTS 100

/* A count that was seen so long ago may have begun anew unnoticed: its steps are seldom quicker than 30 ns. */
enum { COUNT_NS = 450000 };

static uint32_t hash_of(uint32_t where, uint32_t what)
{
    return hash_u64((uint64_t)where << 32 | what);
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

static struct slowed_object *object_of(struct slowed *s, uint32_t process, uint32_t object)
{
    uint32_t hash = hash_of(process, object), at;
    IDXMAP_FIND(&s->object_map, hash, i,
                s->objects.data[i].process == process && s->objects.data[i].object == object, at);
    if (at != IDXMAP_NONE)
        return &s->objects.data[at];
    at = (uint32_t)s->objects.len;
    struct slowed_object *o = vec_push(&s->objects);
    if (!o || idxmap_insert(&s->object_map, hash, at) < 0)
        return NULL;
    *o = (struct slowed_object){.process = process, .object = object};
    return o;
}

/* With its function and object, which know all of theirs. */
static struct slowed_block *block_of(struct slowed *s, const struct slowed_block *like)
{
    uint32_t hash = hash_of(like->thread, like->object) ^ hash_of(like->code, like->block.begin),
             at;
    IDXMAP_FIND(&s->block_map, hash, i,
                s->blocks.data[i].thread == like->thread &&
                    s->blocks.data[i].object == like->object &&
                    s->blocks.data[i].code == like->code &&
                    s->blocks.data[i].block.begin == like->block.begin,
                at);
    if (at != IDXMAP_NONE)
        return &s->blocks.data[at];
    struct slowed_function *f = function_of(s, like->thread, like->code);
    struct slowed_object *o = object_of(s, like->process, like->object);
    at = (uint32_t)s->blocks.len;
    struct slowed_block *b = f && o ? vec_push(&s->blocks) : NULL;
    if (!b || idxmap_insert(&s->block_map, hash, at) < 0)
        return NULL;
    *b = (struct slowed_block){.process = like->process,
                               .thread = like->thread,
                               .code = like->code,
                               .object = like->object,
                               .block = like->block,
                               .next_of_function = f->blocks,
                               .next_of_object = o->blocks};
    f->blocks = o->blocks = at + 1;
    return b;
}

static void begin_anew(struct slowed *s)
{
    s->blocks.len = s->functions.len = s->objects.len = 0;
    idxmap_clear(&s->block_map);
    idxmap_clear(&s->function_map);
    idxmap_clear(&s->object_map);
}

void slowed_count(struct slowed *s, uint32_t process, uint32_t object, int16_t count,
                  uint64_t now_ns)
{
    struct slowed_object *o = object_of(s, process, object);
    if (!o)
        return;
    o->is_counted =
        count < 0 && o->count < 0 && count >= o->count && now_ns - o->count_ns <= COUNT_NS;
    if (o->is_counted)
        o->counted += count - o->count;
    o->count = count;
    o->count_ns = now_ns;
}

void slowed_add(struct slowed *s, const struct slowed_block *found, uint64_t now_ns)
{
    if (s->blocks.len >= SLOWED_MOST_BLOCKS || s->objects.len >= SLOWED_MOST_BLOCKS)
        begin_anew(s);
    struct slowed_block *b = block_of(s, found);
    const struct slowed_object *o = b ? object_of(s, found->process, found->object) : NULL;
    if (!o)
        return;
    b->found_ns += found->found_ns;
    b->found++;
    b->moves += found->moves;
    if (o->is_counted && o->count_ns == now_ns)
        b->counted_ns += found->found_ns;
}

/* What a block takes once, and how much of that is lost, in ns. */
struct once {
    double takes, slower, moves;
};

static struct once block_once(const struct remote_block *b, const struct slowed_cost *cost)
{
    const uint16_t counts[RING_SLOWED_KINDS] = {
        [RING_SLOWED_MOVE] = b->moves,           [RING_SLOWED_STORE] = b->stores,
        [RING_SLOWED_ITERATION] = b->iterations, [RING_SLOWED_ARITHMETIC] = b->arithmetic,
        [RING_SLOWED_DIVISION] = b->divisions,   [RING_SLOWED_COMPARISON] = b->comparisons,
        [RING_SLOWED_NAME] = b->names,           [RING_SLOWED_ATTRIBUTE] = b->attributes,
        [RING_SLOWED_ITEM] = b->items,           [RING_SLOWED_OTHER] = b->others,
        [RING_SLOWED_CALL] = b->calls,
    };
    const struct ring_slowed *kind = cost->measured->slowed;
    struct once o = {.moves = b->moves * cost->tick_ns * kind[RING_SLOWED_MOVE].takes};
    for (size_t i = 0; i < RING_SLOWED_KINDS; i++) {
        o.takes += counts[i] * cost->tick_ns * kind[i].takes;
        o.slower += counts[i] * cost->tick_ns * kind[i].slower;
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

/* By how much a block ran more often than its time tells; its function's blocks should have made `calls_due` calls. A call that it has is
 * known from its call; and where one is, it is not found, so that other instructions are, which the processor does meanwhile, as well. */
static double called_times(const struct slowed_block *b, const struct slowed_function *f,
                           double calls_due, const struct once *o)
{
    double runs = b->found_ns / o->takes, times = 1;
    if (b->block.begin == 0 && runs > 0 && f->calls > runs)
        times = f->calls / runs;
    if (b->block.calls && calls_due > 0 && f->made > calls_due * times)
        times = f->made / calls_due;
    return times < MOST_TIMES ? times : MOST_TIMES;
}

static double lost_ns(const struct slowed_block *b, const struct slowed_function *f,
                      double calls_due, const struct slowed_object *c, const struct once *o)
{
    if (!(o->takes > 0))
        return 0;
    double lost = b->found_ns / o->takes * o->slower, most = MOST_PART * b->found_ns;
    if (c && c->counted + c->expected >= FEW_COUNTS && c->counted < MOST_TIMES * c->expected) {
        lost *= c->counted / c->expected;
        return lost < most || b->block.calls ? lost : most;
    }
    lost *= usual_part(b, o);
    return (lost < most ? lost : most) * called_times(b, f, calls_due, o);
}

/* What a code object should have counted, by where its threads were found. */
static const struct slowed_object *expect_counts(struct slowed *s, const struct slowed_block *b,
                                                 const struct slowed_cost *cost)
{
    struct slowed_object *object = object_of(s, b->process, b->object);
    if (!object || object->expected_at == s->turn)
        return object;
    object->expected = 0;
    object->expected_at = s->turn;
    for (uint32_t at = object->blocks; at; at = s->blocks.data[at - 1].next_of_object) {
        const struct slowed_block *each = &s->blocks.data[at - 1];
        struct once once = block_once(&each->block, cost);
        if (once.takes > 0)
            object->expected += each->counted_ns / once.takes * each->block.counted;
    }
    return object;
}

static double calls_due(const struct slowed *s, const struct slowed_function *f,
                        const struct slowed_cost *cost)
{
    double calls = 0;
    for (uint32_t at = f->blocks; at; at = s->blocks.data[at - 1].next_of_function) {
        const struct slowed_block *b = &s->blocks.data[at - 1];
        struct once once = block_once(&b->block, cost);
        if (once.takes > 0)
            calls += b->found_ns / once.takes * b->block.calls;
    }
    return calls;
}

/* Makes what a function was found at into what it has lost. What is known of its counts and the machine's pace may have become better, so
 * that it is less than was thought. */
static void judge(struct slowed *s, struct slowed_function *f, const struct slowed_cost *cost)
{
    if (f->judged == s->turn)
        return;
    f->judged = s->turn;
    double due = calls_due(s, f, cost);
    for (uint32_t at = f->blocks; at; at = s->blocks.data[at - 1].next_of_function) {
        struct slowed_block *b = &s->blocks.data[at - 1];
        struct once once = block_once(&b->block, cost);
        double lost = lost_ns(b, f, due, expect_counts(s, b, cost), &once);
        f->lost_ns += lost - b->lost_ns;
        b->lost_ns = lost;
    }
}

bool slowed_has(const struct slowed *s, uint32_t process)
{
    for (size_t i = 0; i < s->objects.len; i++)
        if (s->objects.data[i].process == process)
            return true;
    return false;
}

void slowed_begin(struct slowed *s)
{
    s->turn++;
}

void slowed_tell(const struct slowed *s, struct slowed_function *f, double self_ns)
{
    if (f->turn != s->turn)
        f->known_ns = 0;
    f->turn = s->turn;
    f->known_ns += self_ns;
}

double slowed_take(struct slowed *s, struct slowed_function *f, const struct slowed_cost *cost,
                   double self_ns)
{
    judge(s, f, cost);
    if (f->turn != s->turn || !(self_ns > 0) || !(f->known_ns > 0))
        return 0;
    double lost = f->lost_ns * fmin(self_ns / f->known_ns, 1);
    lost = lost < 0 ? 0 : lost < MOST_PART * self_ns ? lost : MOST_PART * self_ns;
    f->lost_ns -= lost;
    f->known_ns -= self_ns;
    return lost;
}

void slowed_forgive(struct slowed *s, uint32_t thread, const struct slowed_cost *cost, double part)
{
    for (size_t i = 0; i < s->functions.len; i++) {
        struct slowed_function *f = &s->functions.data[i];
        if (f->thread != thread)
            continue;
        judge(s, f, cost);
        if (f->lost_ns > 0)
            f->lost_ns *= 1 - part;
    }
}

void slowed_release(struct slowed *s)
{
    vec_release(&s->blocks);
    vec_release(&s->functions);
    vec_release(&s->objects);
    idxmap_release(&s->block_map);
    idxmap_release(&s->function_map);
    idxmap_release(&s->object_map);
}
