/* The plan of a thread: which pieces of its memory the next look copies. Inside src/remote only.
 *
 * Those are the chunks of its data stack that are in use (3.11+), up to a little above the last known
 * top, and, one by one or side by side, the frames that live elsewhere: generators, the interpreter's
 * own shims, and below 3.11 every frame. The plan is what the last believed walk needed, and single
 * frames that earlier ones did: a program that goes to and fro between two stacks is else only ever
 * caught in the one that is planned.
 * These are its pieces; what is read are regions, in which pieces on neighbouring pages are one. */
#ifndef PYROMETER_REMOTE_PLAN_H
#define PYROMETER_REMOTE_PLAN_H

#include "remote/internal.h"

/* Bytes of a frame that the walk needs. */
uint32_t plan_frame_bytes(const struct pylayout *l);

/* And before a frame outside of the data stack: what a generator does stands there. A multiple of 8. */
static inline uint32_t plan_frame_lead(const struct pylayout *l)
{
    return l->frame.generator_state == PYL_NONE ? 0 : (l->frame.generator_state + 7) & ~7u;
}

/* Where on its data stack a thread's outermost frame lies: behind the one word that the first chunk keeps free. 0: it is not known. */
uint64_t plan_root(const struct remote *r, const struct thread *t);

/* The chunk of the data stack that this address lies in, or NULL. */
const struct chunk *plan_chunk(const struct thread *t, uint64_t addr);

/* The region that covers these bytes, or NULL. */
struct region *plan_search(struct thread *t, uint64_t addr, uint32_t len);

static inline bool plan_covers(const struct region *g, uint64_t addr, uint32_t len)
{
    return addr >= g->addr && addr - g->addr + len <= g->len;
}

static inline struct region *plan_find(struct thread *t, uint64_t addr, uint32_t len)
{
    /* mostly they follow each other */
    if (t->last_hit < t->regions.len && plan_covers(&t->regions.data[t->last_hit], addr, len))
        return &t->regions.data[t->last_hit];
    return plan_search(t, addr, len);
}

/* Tells a chain of frames that leads in a circle, as a torn one may: each is compared with an earlier one, which moves up at every
 * power of two (Brent). Begin with zeros. */
struct plan_circle {
    uint64_t mark;
    uint32_t steps, lap;
};

static inline bool plan_is_circle(struct plan_circle *c, uint64_t addr)
{
    if (addr == c->mark)
        return true;
    if (c->steps++ == c->lap) {
        c->mark = addr;
        c->lap = 2 * c->steps;
    }
    return false;
}

/* The interpreter's C frame is there (3.11, 3.12): it says which frame is the newest. There is one for each call of Python code by C, so
 * a thread goes to and fro between a few, and those met lately are all read: they are on neighbouring pages of the C stack. */
int plan_note_cframe(struct thread *t, uint64_t cframe);

/* One of these was met again. */
void plan_touch_cframe(struct thread *t, uint64_t cframe);

/* Reads the list of data-stack chunks anew. */
int plan_refresh_chunks(struct remote *r, struct thread *t, uint64_t newest);

/* Follows the frames from `addr` by single reads, only to learn where they are, and plans them. */
int plan_chase(struct remote *r, struct thread *t, uint64_t addr);

/* After a believed walk: plans what it used, in the order of use, and some of what others did. */
int plan_renew(struct remote *r, struct thread *t);

/* After each look of a thread that moves: what the last ones did not need for their walks is dropped. Else what an earlier stack has left there would make
 * looks slow, and slow looks are what fails. */
int plan_age(const struct remote *r, struct thread *t);

/* A region turned out unreadable: takes it out. Which frame it was shows when those needed are chased. */
int plan_drop(struct thread *t, size_t at);

#endif
