/* The lines of one thread, grown from its events: how often each was reached, the time in it, and the
 * time in what it called. Inside src/record; one thread at a time.
 *
 * A cell is a line of a code object, or one line's calls of one function. Every running function
 * stands in a cell; time goes to the one on top, whatever ended the interval. A line's callee time
 * runs while any of its calls does: recursion counts it once, and the own time that the same line
 * spends further up is not callee time, so that own and callee time of a line never sum up to more
 * than the time that passed. pprofile does the like by discounts.
 *
 * C functions have no lines: their time is the line's own, with or without --calls. */
#ifndef PYROMETER_RECORD_LINETREE_H
#define PYROMETER_RECORD_LINETREE_H

#include "base/idxmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LINETREE_MAX_CELLS = 1 << 26,
    LINETREE_MAX_DEPTH = 1 << 20, /* the lines of deeper calls are counted to the deepest */
};

struct linetree_counts {
    uint64_t hits;        /* or calls */
    uint64_t own, callee; /* ticks */
};

struct linetree_cell {
    uint32_t code, line; /* line 0: not at a line yet */
    uint32_t callee;     /* 0: the line itself */
    uint32_t next;       /* line: the cell that came after it last, and mostly will again.
                            call: the cell where its callee begins */
    uint32_t last_call;  /* of a line: the call made last */
    uint32_t active;     /* calls that run */
    bool changed;
    uint64_t begin;      /* when the first of these began … */
    uint64_t own_before; /* … and now.own then */
    struct linetree_counts now, taken;
};

struct linetree_frame {
    uint32_t code;
    uint32_t cell; /* where it is */
    uint32_t call; /* the cell of the call that brought it about */
};

struct linetree {
    VEC(struct linetree_cell) cells; /* 0 is the thread itself */
    struct idxmap map;
    VEC(struct linetree_frame) stack; /* the first is the thread */
    VEC(uint32_t) changed;            /* cells with counts to be taken */
    uint64_t now;                     /* ticks that have passed */
    uint32_t left;                    /* the cell that the last function to leave was in */
    uint64_t skipped;                 /* calls below LINETREE_MAX_DEPTH */
    bool failed;                      /* out of memory: what follows is not counted … */
    uint64_t lost;                    /* … but as so many records, since the last taking */
};

int linetree_init(struct linetree *t);
void linetree_release(struct linetree *t);

void linetree_enter(struct linetree *t, uint32_t code, bool resumes);
void linetree_leave(struct linetree *t, uint32_t code);
/* No more will come: what still runs ends here. */
void linetree_finish(struct linetree *t);

/* The cell of these three, made if need be. UINT32_MAX without memory. */
uint32_t linetree_find(struct linetree *t, uint32_t code, uint32_t line, uint32_t callee);

static inline struct linetree_frame *linetree_top(const struct linetree *t)
{
    return &t->stack.data[t->stack.len - 1];
}

static inline void linetree_touch(struct linetree *t, uint32_t cell)
{
    struct linetree_cell *c = &t->cells.data[cell];
    if (c->changed)
        return;
    uint32_t *slot = vec_push(&t->changed);
    if (!slot)
        return; /* it is tried again at the next change */
    *slot = cell;
    c->changed = true;
}

/* Time passes in the line on top. */
static inline void linetree_time(struct linetree *t, uint64_t ticks)
{
    uint32_t cell = linetree_top(t)->cell;
    t->now += ticks;
    t->cells.data[cell].now.own += ticks;
    linetree_touch(t, cell);
}

/* The function on top gets to a line. */
static inline void linetree_line(struct linetree *t, uint32_t line)
{
    struct linetree_frame *f = linetree_top(t);
    if (unlikely(t->failed)) { /* whose line it is, is not known any more */
        t->lost++;
        return;
    }
    uint32_t cell = t->cells.data[f->cell].next;
    const struct linetree_cell *c = &t->cells.data[cell];
    if (unlikely(!cell || c->line != line || c->code != f->code)) {
        cell = linetree_find(t, f->code, line, 0);
        if (cell == UINT32_MAX) {
            t->failed = true;
            t->lost++;
            return;
        }
        t->cells.data[f->cell].next = cell;
    }
    t->cells.data[cell].now.hits++;
    f->cell = cell;
    linetree_touch(t, cell);
}

/* The function on top, which goes on, does so where it was. */
static inline void linetree_goes_on_in(struct linetree *t, uint32_t cell)
{
    if (cell && cell < t->cells.len && t->cells.data[cell].code == linetree_top(t)->code)
        linetree_top(t)->cell = cell;
}

#endif
