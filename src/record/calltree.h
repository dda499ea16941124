/* The tree of calls of one thread, grown from its events: every path of calls that was taken, how often,
 * and the time spent at its end. Inside src/record; one thread at a time.
 *
 * Time goes to the node on top of the shadow stack, whatever ended the interval. A leave that does
 * not fit the top was preceded by losses: the stack is unwound to the frame it names, or, if there
 * is none, it is not ours and ignored. Counts since the last taking are kept in the nodes; nodes that
 * changed are in `changed`. */
#ifndef PYROMETER_RECORD_CALLTREE_H
#define PYROMETER_RECORD_CALLTREE_H

#include "base/idxmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CALLTREE_MAX_NODES = 1 << 26,
    CALLTREE_MAX_DEPTH = 1 << 20, /* deeper calls are counted to the deepest */
};

struct calltree_node {
    uint32_t parent, code;
    uint32_t last_child; /* the one called last: mostly the one called next */
    uint32_t stack;      /* its node in the file; 0: not there yet */
    bool changed;
    uint64_t calls, resumes;
    uint64_t asides; /* probes in it that tell of no call */
    uint64_t self;   /* ticks */
    uint64_t alive;  /* ticks from begin to end of coroutines, waits included */
};

/* A coroutine that has begun and not ended. */
struct calltree_open {
    uint64_t frame; /* its address; 0: a free place */
    uint64_t begin; /* tick */
    uint32_t node;
    uint32_t line_cell; /* where it stopped last: linetree.h's; 0: not known */
    uint32_t task;      /* whose outermost coroutine it is: feed.h's; 0: nobody's */
};

struct calltree {
    VEC(struct calltree_node) nodes; /* 0 is the thread itself */
    struct idxmap map;
    VEC(uint32_t) stack;   /* nodes of the functions that run; the first is the root */
    VEC(uint32_t) changed; /* nodes with counts to be taken */
    struct calltree_open *open;
    uint32_t open_mask, open_count;
    uint64_t skipped; /* calls below CALLTREE_MAX_DEPTH, so that their leaves are known */
    bool failed;      /* out of memory: what follows is not counted … */
    uint64_t lost;    /* … but as so many records, since the last taking */
};

int calltree_init(struct calltree *t);
void calltree_release(struct calltree *t);

/* The child of the top that runs `code`, made if need be. UINT32_MAX without memory. */
uint32_t calltree_child(struct calltree *t, uint32_t code);

void calltree_unwind(struct calltree *t, uint32_t code); /* a leave that is not the top's */

/* A coroutine begins or ends: the function that was entered last, or is about to be left. */
void calltree_begins(struct calltree *t, uint64_t frame, uint32_t node, uint64_t tick);
void calltree_ends(struct calltree *t, uint64_t frame, uint64_t tick);
/* All that have not ended have been there to the end. */
void calltree_finish(struct calltree *t, uint64_t tick);
/* One that has begun and not ended, or NULL; until the next one begins or ends. */
struct calltree_open *calltree_find_open(const struct calltree *t, uint64_t frame);

static inline uint32_t calltree_top(const struct calltree *t)
{
    return t->stack.data[t->stack.len - 1];
}

static inline void calltree_touch(struct calltree *t, uint32_t node)
{
    struct calltree_node *n = &t->nodes.data[node];
    if (n->changed)
        return;
    uint32_t *slot = vec_push(&t->changed);
    if (!slot)
        return; /* it is tried again at the next change */
    *slot = node;
    n->changed = true;
}

/* Time passes in the function on top. */
static inline void calltree_time(struct calltree *t, uint64_t ticks)
{
    uint32_t top = calltree_top(t);
    t->nodes.data[top].self += ticks;
    calltree_touch(t, top);
}

static inline void calltree_enter(struct calltree *t, uint32_t code, bool resumes)
{
    if (unlikely(t->failed)) {
        t->lost++;
        return;
    }
    if (unlikely(t->stack.len >= CALLTREE_MAX_DEPTH)) {
        t->skipped++;
        return;
    }
    uint32_t last = t->nodes.data[calltree_top(t)].last_child;
    uint32_t node = last && t->nodes.data[last].code == code ? last : calltree_child(t, code);
    uint32_t *slot = node == UINT32_MAX ? NULL : vec_push(&t->stack);
    if (unlikely(!slot)) {
        t->failed = true;
        t->lost++;
        return;
    }
    *slot = node;
    if (resumes)
        t->nodes.data[node].resumes++;
    else
        t->nodes.data[node].calls++;
    calltree_touch(t, node);
}

static inline void calltree_aside(struct calltree *t)
{
    t->nodes.data[calltree_top(t)].asides++;
}

static inline void calltree_leave(struct calltree *t, uint32_t code)
{
    if (unlikely(t->skipped)) {
        t->skipped--;
        return;
    }
    if (likely(t->stack.len > 1 && t->nodes.data[calltree_top(t)].code == code))
        t->stack.len--;
    else
        calltree_unwind(t, code);
}

/* A function that had begun before we came: on the stack, but not called. */
static inline void calltree_push_open(struct calltree *t, uint32_t code)
{
    calltree_enter(t, code, false);
    if (!t->failed && !t->skipped)
        t->nodes.data[calltree_top(t)].calls--;
}

#endif
