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

#define SHIM UINT64_MAX /* no code object's identity */

/* Where its callers are is a part of a stack, but on a data stack: there they are read with what they call. */
static uint64_t place(const struct remote *r, const struct walked *caller)
{
    return has_data_stack(r) ? 0 : (uint64_t)caller->instr;
}

/* One frame more: the hash of the stack that ends there, from which the next goes on by the
 * instruction that called it. 0: it is damaged, or its code was never met. */
static uint64_t add_frame(const struct remote *r, uint64_t callers, const struct walked *frame)
{
    uint64_t identity = frame->code == WALKED_SHIM ? SHIM : codes_identity(r, frame->code);
    return identity ? remote_mix(callers, identity) : 0;
}

uint64_t known_hash_of_outer(const struct remote *r, const walked_vec *stack, size_t frames)
{
    uint64_t callers = 0, hash = 0;
    for (size_t i = stack->len; i-- > stack->len - frames;) {
        hash = add_frame(r, callers, &stack->data[i]);
        if (!hash)
            return 0;
        callers = remote_mix(hash, place(r, &stack->data[i]));
    }
    return hash;
}

uint64_t known_hash(const struct remote *r, const walked_vec *stack)
{
    return known_hash_of_outer(r, stack, stack->len);
}

bool known_has(const struct remote *r, uint64_t hash)
{
    return hash && r->known && *slot_of(r, hash) == (hash | PROVEN_TWICE);
}

void known_learn(struct remote *r, const walked_vec *stack)
{
    if (!r->known && !(r->known = calloc(SLOTS, sizeof *r->known)))
        return; /* it is a memory of what can be found out again */
    uint64_t callers = 0;
    for (size_t i = stack->len; i-- > 0;) {
        uint64_t hash = add_frame(r, callers, &stack->data[i]);
        if (!hash)
            return;
        uint64_t *slot = slot_of(r, hash);
        *slot = (*slot | PROVEN_TWICE) == (hash | PROVEN_TWICE) ? hash | PROVEN_TWICE
                                                                : hash & ~PROVEN_TWICE;
        callers = remote_mix(hash, place(r, &stack->data[i]));
    }
}

void known_release(struct remote *r)
{
    free(r->known);
    r->known = NULL;
}
