/* A look: a copy of a running thread's stack in one system call, and the walk over it. Inside
 * src/remote only.
 *
 * It copies the thread state, the GIL's holder, and the regions of the plan (plan.h). A frame that the plan
 * does not cover is chased, added to the plan, and the look is repeated, so that a walk only ever uses
 * bytes of one call.
 *
 * The thread runs meanwhile, and a system call takes it microseconds, in which it may call and return a hundred times. Two things tell
 * what is true of such a copy.
 *
 * Where frames lie on a data stack (3.11 and later) a look that has to decide copies the newest part of it three times in a row. The copy in
 * the middle is what the walk is of, and a caller that is the same before and after it was there in the middle. Frames that lie
 * elsewhere, of generators, are copied before these three and after them, and then so is the data stack, for the callers of generators
 * must not have changed all the while. What is older on the data stack is copied once, and has to be what the look before has shown.
 * `held` says how many of the outermost frames did not change. The few that did are from one short stretch, which is copied in about a
 * microsecond: what stands next to each other there is a call, or has mostly been one a moment ago. Which pairs are believed edges.h says.
 * The kernel copies the ranges in their order, but the parts of one may be of moments a microsecond apart, in any order.
 *
 * Where each frame is an object of its own (3.8 to 3.10) reading them takes as long as two looks would, and that is what it takes: the top is read
 * once more at the end, and a look at which it has moved is none. */
#ifndef PYROMETER_REMOTE_LOOK_H
#define PYROMETER_REMOTE_LOOK_H

#include "remote/internal.h"

/* A first look mostly finds what was there before, and then needs nothing else; it asks who holds the GIL unless that was asked a
 * moment ago. The looks that decide about a new stack are doubled, or read the top again. */
enum look_kind { LOOK_FIRST, LOOK_WITH_GIL, LOOK_AGAIN };

/* look_take(): 0 a whole walk, LOOK_MOVED the top moved or the plan could not keep up, or a negative code */
enum { LOOK_MOVED = 1 };

/* The copies of a look that decides; others have the same for all. */
enum look_copy {
    LOOK_FIRST_OF_ALL,
    LOOK_BEFORE,
    LOOK_MIDDLE,
    LOOK_AFTER,
    LOOK_LAST_OF_ALL,
    LOOK_COPIES
};

/* Looks: the walk goes to t->now, what is known of it to t->held, t->sound, t->strict. */
int look_take(struct remote *r, struct thread *t, enum look_kind kind);

/* The bytes there in one of the copies, `len` of them; NULL if the look has not brought them. */
const uint8_t *look_bytes(struct thread *t, uint64_t addr, uint32_t len, enum look_copy copy);

/* The same, if it is known which region has them. */
static inline const uint8_t *look_bytes_in(const struct thread *t, const struct region *g,
                                           uint64_t addr, enum look_copy copy)
{
    uint64_t offset = addr - g->addr;
    if (offset < (copy == LOOK_LAST_OF_ALL ? g->last : g->again))
        copy = LOOK_FIRST_OF_ALL;
    return t->copy + g->local[copy] + (int64_t)offset;
}

/* What a copied frame runs, and where it is; a shim is not known here. */
void look_read_frame(const struct pylayout *l, const uint8_t *frame, struct walked *w);

/* The outermost frame of a walk; NULL if it has none. */
const struct walked *look_base(const walked_vec *stack);

/* The code object that runs, by a walk; 0: none does. */
uint64_t look_top(const walked_vec *stack);

/* --- walk.c --- */

/* The same frames running the same code, each caller at the same instruction? Where the running
 * frame is within itself does not matter: it moves all the time, and each place is true. */
bool walk_same(const walked_vec *a, const walked_vec *b);

/* Walks from the frame that was the newest when the look began. What it has called or returned from by the moment of the middle copy
 * counts, where that can be seen. 0; LOOK_MOVED with *ret_miss = the frame that was not covered, 0 if this is no stack. */
int walk_stack(struct remote *r, struct thread *t, uint64_t newest, uint64_t *ret_miss);

/* Compares the copies: t->held, t->sound, t->strict. */
void walk_compare(const struct remote *r, struct thread *t);

/* Has a caller in t->now, that of the generator `callee`, got that at hand, in its variables or on its stack? Then it can have called no
 * other. That is so if it iterates over it, awaits it, or gives it to a function such as next(). */
bool walk_binds(const struct remote *r, struct thread *t, size_t caller, size_t callee);

#endif
