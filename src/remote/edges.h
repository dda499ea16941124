/* Which function has been seen to call which: the memory that tells a new stack from an impossible
 * one. Inside src/remote only.
 *
 * A copy of a running stack can, very rarely, be torn the same way twice: its outer part from one
 * moment, its inner part from another. Such a stack has a seam, a pair of neighbours that never call
 * each other. So neighbours seen for the first time are not believed on the evidence that is enough
 * for known ones. They become known by holding still through many looks at once, or by turning up
 * often within a short while, which seams do not. */
#ifndef PYROMETER_REMOTE_EDGES_H
#define PYROMETER_REMOTE_EDGES_H

#include "base/idxmap.h"
#include "base/vec.h"

#include <stdbool.h>

struct edge {
    uint32_t caller, callee; /* code indices */
    uint32_t round;          /* when it last got a vote */
    uint32_t votes;
};

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

/* Strong evidence: known from now on. */
void edges_learn(struct edges *e, uint32_t caller, uint32_t callee);

#endif
