#include "remote/known.h"

enum {
    SLOTS = 1 << 15, /* of 8 bytes, for each process */
};

/* A slot holds the upper bits of a hash; its lowest bit says that it was proven twice. */
#define PROVEN_TWICE 1ull

static uint64_t *slot_of(const struct remote *r, uint64_t hash)
{
    return &r->known[hash >> 40 & (SLOTS - 1)];
}

/* One frame more: the hash of the stack that ends there, from which the next goes on by the
 * instruction that called it. */
static uint64_t add_frame(uint64_t callers, const struct walked *frame)
{
    return remote_mix(callers, frame->code);
}

uint64_t known_hash(const struct remote *r, const walked_vec *stack)
{
    uint64_t callers = r->known_epoch, hash = 0;
    for (size_t i = stack->len; i-- > 0;) {
        if (stack->data[i].code == WALKED_UNREADABLE)
            return 0;
        hash = add_frame(callers, &stack->data[i]);
        callers = remote_mix(hash, (uint64_t)stack->data[i].instr);
    }
    return hash;
}

bool known_has(const struct remote *r, const walked_vec *stack)
{
    uint64_t hash = r->known ? known_hash(r, stack) : 0;
    return hash && *slot_of(r, hash) == (hash | PROVEN_TWICE);
}

void known_learn(struct remote *r, const walked_vec *stack)
{
    if (!r->known && !(r->known = calloc(SLOTS, sizeof *r->known)))
        return; /* it is a memory of what can be found out again */
    uint64_t callers = r->known_epoch;
    for (size_t i = stack->len; i-- > 0;) {
        if (stack->data[i].code == WALKED_UNREADABLE)
            return;
        uint64_t hash = add_frame(callers, &stack->data[i]);
        uint64_t *slot = slot_of(r, hash);
        *slot = (*slot | PROVEN_TWICE) == (hash | PROVEN_TWICE) ? hash | PROVEN_TWICE
                                                                : hash & ~PROVEN_TWICE;
        callers = remote_mix(hash, (uint64_t)stack->data[i].instr);
    }
}

void known_forget(struct remote *r)
{
    r->known_epoch = remote_mix(r->known_epoch, 1);
}

void known_release(struct remote *r)
{
    free(r->known);
    r->known = NULL;
}
