#include "remote/edges.h"

enum {
    VOTES_NEEDED = 5,
    HELD_NEEDED = 6,
    EVIDENCE_NEEDED = 8,
    EVIDENCE_PART = 8,        /* for each look that has shown the callee */
    VOTES_KNOWN = 255,        /* marks a known edge */
    ROUNDS_PER_HALVING = 256, /* old votes lose half their weight in so many samples */
};

void edges_release(struct edges *e)
{
    vec_release(&e->list);
    idxmap_release(&e->map);
}

void edges_next_round(struct edges *e)
{
    e->round++;
}

static uint32_t edge_hash(uint32_t caller, uint32_t callee)
{
    return hash_u64((uint64_t)caller << 32 | callee);
}

static struct edge *find(const struct edges *e, uint32_t caller, uint32_t callee)
{
    uint32_t at;
    IDXMAP_FIND(&e->map, edge_hash(caller, callee), i,
                e->list.data[i].caller == caller && e->list.data[i].callee == callee, at);
    return at == IDXMAP_NONE ? NULL : &e->list.data[at];
}

static struct edge *find_or_add(struct edges *e, uint32_t caller, uint32_t callee)
{
    struct edge *edge = find(e, caller, callee);
    if (edge)
        return edge;
    uint32_t at = (uint32_t)e->list.len;
    edge = vec_push(&e->list);
    if (!edge)
        return NULL;
    *edge = (struct edge){.caller = caller, .callee = callee, .round = e->round};
    if (idxmap_insert(&e->map, edge_hash(caller, callee), at) < 0) {
        e->list.len--;
        return NULL;
    }
    return edge;
}

bool edges_known(const struct edges *e, uint32_t caller, uint32_t callee)
{
    const struct edge *edge = find(e, caller, callee);
    return edge && edge->votes >= VOTES_KNOWN;
}

void edges_vote(struct edges *e, uint32_t caller, uint32_t callee)
{
    struct edge *edge = find_or_add(e, caller, callee);
    if (!edge || edge->votes >= VOTES_KNOWN)
        return;
    uint32_t halvings = (e->round - edge->round) / ROUNDS_PER_HALVING;
    edge->votes = halvings < 32 ? edge->votes >> halvings : 0;
    edge->round = e->round;
    if (++edge->votes >= VOTES_NEEDED)
        edge->votes = VOTES_KNOWN;
}

void edges_see(struct edges *e, uint32_t caller, uint32_t callee, uint32_t called,
               enum edge_evidence evidence)
{
    struct edge *edge = evidence ? find_or_add(e, caller, callee) : NULL;
    if (!edge || edge->votes >= VOTES_KNOWN)
        return;
    edge->evidence += evidence;
    edge->held += evidence == EDGE_HELD;
    if (edge->held >= HELD_NEEDED ||
        (edge->evidence >= EVIDENCE_NEEDED && (uint64_t)edge->evidence * EVIDENCE_PART >= called))
        edge->votes = VOTES_KNOWN;
}

void edges_learn(struct edges *e, uint32_t caller, uint32_t callee)
{
    struct edge *edge = find_or_add(e, caller, callee);
    if (edge)
        edge->votes = VOTES_KNOWN;
}
