#include "remote/sites.h"

enum {
    PAIR_SLOTS = 1 << 12,  /* of 16 bytes, for each process */
    PLACE_SLOTS = 1 << 13, /* of 8 bytes */
    MAX_BEYOND = 32,       /* how far behind its call a caller may stand, in the units of `instr` */
};

/* A slot of a place holds the upper bits of a hash, and in the lowest ones how often the place was
 * doubted; */
#define DOUBTS    7ull
#define DOUBTED   6ull /* often enough, */
#define IS_A_CALL 7ull /* or never again */

struct site_tables {
    struct pair {
        uint64_t hash; /* of caller and callee */
        int64_t instr; /* at which the one called the other when that was last proven */
    } pairs[PAIR_SLOTS];
    uint64_t places[PLACE_SLOTS];
};

/* The frame `i` of a stack, which called the one before it. */
struct caller {
    struct pair *pair;
    uint64_t *place;
    uint64_t pair_hash, place_hash;
};

static struct caller caller_of(const struct remote *r, const walked_vec *stack, size_t i)
{
    const struct walked *w = &stack->data[i];
    struct caller c;
    c.pair_hash = remote_mix(remote_mix(r->known_epoch, w->code), stack->data[i - 1].code);
    c.place_hash = remote_mix(c.pair_hash, (uint64_t)w->instr) & ~DOUBTS;
    c.pair = &r->sites->pairs[c.pair_hash >> 40 & (PAIR_SLOTS - 1)];
    c.place = &r->sites->places[c.place_hash >> 40 & (PLACE_SLOTS - 1)];
    return c;
}

/* Is it a little behind a call that was proven? */
static bool is_beyond(const struct caller *c, int64_t instr)
{
    uint64_t beyond = (uint64_t)instr - (uint64_t)c->pair->instr; /* huge if it is before that */
    return c->pair->hash == c->pair_hash && beyond > 0 && beyond <= MAX_BEYOND;
}

void sites_learn(struct remote *r, const walked_vec *stack)
{
    if (!r->sites && !(r->sites = calloc(1, sizeof *r->sites)))
        return; /* it is a memory of what can be found out again */
    for (size_t i = 1; i < stack->len; i++) {
        struct caller c = caller_of(r, stack, i);
        *c.pair = (struct pair){c.pair_hash, stack->data[i].instr};
        *c.place = c.place_hash | IS_A_CALL;
    }
}

void sites_doubt(struct remote *r, const walked_vec *stack)
{
    for (size_t i = 1; r->sites && i < stack->len; i++) {
        struct caller c = caller_of(r, stack, i);
        if (!is_beyond(&c, stack->data[i].instr))
            continue;
        if ((*c.place & ~DOUBTS) != c.place_hash)
            *c.place = c.place_hash;
        if ((*c.place & DOUBTS) < DOUBTED)
            ++*c.place;
    }
}

size_t sites_put_back(const struct remote *r, const walked_vec *stack, walked_vec *put_back)
{
    size_t outermost = 0;
    put_back->len = 0;
    if (!r->sites || !vec_reserve(put_back, stack->len))
        return 0;
    for (size_t i = 0; i < stack->len; i++) {
        struct walked w = stack->data[i];
        if (i > 0) {
            struct caller c = caller_of(r, stack, i);
            if (*c.place == (c.place_hash | DOUBTED) && is_beyond(&c, w.instr)) {
                w.instr = c.pair->instr;
                outermost = i;
            }
        }
        put_back->data[put_back->len++] = w;
    }
    return outermost;
}

void sites_release(struct remote *r)
{
    free(r->sites);
    r->sites = NULL;
}
