/* Where functions call each other, and where they only seem to. Inside src/remote only.
 *
 * A look reads first where the newest frame is, and half a microsecond later the frames. A program that
 * returns in between leaves them where they were, but each caller stands behind its call now. Of a
 * program that calls and returns all the time that is what nine of ten looks show that show no known
 * stack (known.h), and waiting for a better one takes ten looks more. With its callers put back into
 * their calls such a stack is that of the moment at which the newest frame was read.
 *
 * But a little behind one call there may be another of the same function. So for each place at which a
 * caller was seen it is remembered whether a proven stack had it there: then it is a call. A place that
 * turned up in many samples of which none could be proven is not, or it is one that no look can tell from
 * its neighbour. */
#ifndef PYROMETER_REMOTE_SITES_H
#define PYROMETER_REMOTE_SITES_H

#include "remote/internal.h"

/* A stack has been proven: its callers are in calls. */
void sites_learn(struct remote *r, const walked_vec *stack);

/* A stack is not known: callers that stand a little behind a call may have been returned to. */
void sites_doubt(struct remote *r, const walked_vec *stack);

/* The same stack with the callers that were doubted often enough put back into their calls. Returns
 * which of them is the outermost; 0: there is none. */
size_t sites_put_back(const struct remote *r, const walked_vec *stack, walked_vec *put_back);

void sites_release(struct remote *r);

#endif
