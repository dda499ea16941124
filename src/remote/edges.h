/* Which function has been seen to call which: the memory that tells a new stack from an impossible
 * one. Inside src/remote only.
 *
 * A copy of a running stack can, very rarely, be torn the same way twice: its outer part from one
 * moment, its inner part from another. Such a stack has a seam, a pair of neighbours that never call
 * each other. So neighbours seen for the first time are not believed on the evidence that is enough
 * for known ones. They become known by holding still through many looks at once, or by turning up
 * often within a short while, which seams do not; and where frames lie on a data stack, where every look tells what held
 * still in it, by being no small part of all the looks that show the callee. */
#ifndef PYROMETER_REMOTE_EDGES_H
#define PYROMETER_REMOTE_EDGES_H

#include "base/idxmap.h"
#include "base/vec.h"

#include <stdbool.h>

struct edge {
    uint32_t caller, callee; /* code indices */
    uint32_t round;          /* when it last got a vote */
    uint32_t votes;
    uint32_t evidence, held; /* by edges_see(): all, and looks in which both held still */
};

/* What a look at the data stack says of two neighbours, in the order of its weight: nothing, for neither held still; the caller did, and called
 * through C, or by itself; both did. */
enum edge_evidence { EDGE_NOTHING = 0, EDGE_THROUGH_C = 1, EDGE_CALLER_HELD = 2, EDGE_HELD = 4 };

struct edges {
    VEC(struct edge) list;
    struct idxmap map;
    uint32_t round; /* counts samples */
};

void edges_release(struct edges *e);

/* A new sample begins: votes age by rounds. */
void edges_next_round(struct edges *e);

bool edges_known(const struct edges *e, uint32_t caller, uint32_t callee);

/* One more sighting on weak evidence; makes it known when there have been enough lately. */
void edges_vote(struct edges *e, uint32_t caller, uint32_t callee);

/* A look at the data stack has shown the pair, as one of `called` that have shown the callee. It becomes known by some evidence, if that
 * is no small part of what as many looks could have given, or by some more looks in which both held still. */
void edges_see(struct edges *e, uint32_t caller, uint32_t callee, uint32_t called,
               enum edge_evidence evidence);

/* Strong evidence: known from now on. */
void edges_learn(struct edges *e, uint32_t caller, uint32_t callee);

#endif
