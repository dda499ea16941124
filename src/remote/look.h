/* A look: one copy of a running thread's stack in one system call, and the walk over the copy. Inside
 * src/remote only.
 *
 * It copies, in this order: the thread state, the GIL's holder, the predicted C frame (3.11, 3.12),
 * the regions of the plan (plan.h), and last the top of the stack once more. A frame that the plan
 * does not cover is chased, added to the plan, and the look is repeated, so that a walk only ever uses
 * bytes of one call. */
#ifndef PYROMETER_REMOTE_LOOK_H
#define PYROMETER_REMOTE_LOOK_H

#include "remote/internal.h"

/* A first look mostly finds what was there before, and then needs no closing reading of the top; it
 * asks who holds the GIL unless that was asked a moment ago. The looks that decide about a new stack
 * have the closing reading. */
enum look_kind { LOOK_FIRST, LOOK_WITH_GIL, LOOK_AGAIN };

/* look_take(): 0 a whole walk, LOOK_MOVED the top moved or the plan could not keep up, or a negative code */
enum { LOOK_MOVED = 1 };

/* Looks: the walk goes to t->now. */
int look_take(struct remote *r, struct thread *t, enum look_kind kind);

/* Has a caller that the last look has shown left the instruction at which that saw it? A small read
 * tells. 1 yes; 0 no, or it cannot be told; or a negative code. */
int look_has_left(struct remote *r, const struct thread *t, const struct walked *caller);

/* What a copied frame runs, and where it is; a shim is not known here. */
void look_read_frame(const struct pylayout *l, const uint8_t *frame, struct walked *w);

/* The outermost frame of a walk; NULL if it has none. */
const struct walked *look_base(const walked_vec *stack);

#endif
