#include "record/linetree.h"

#include "base/err.h"

int linetree_init(struct linetree *t)
{
    *t = (struct linetree){0};
    if (!vec_push(&t->cells) || !vec_push(&t->stack)) {
        linetree_release(t);
        return E_NOMEM;
    }
    return 0;
}

void linetree_release(struct linetree *t)
{
    vec_release(&t->cells);
    idxmap_release(&t->map);
    vec_release(&t->stack);
    vec_release(&t->changed);
}

uint32_t linetree_find(struct linetree *t, uint32_t code, uint32_t line, uint32_t callee)
{
    uint64_t key = ((uint64_t)code << 32 | line) ^ (uint64_t)callee * 0x9e3779b97f4a7c15ull;
    uint32_t hash = hash_u64(key), at;
    IDXMAP_FIND(&t->map, hash, i,
                t->cells.data[i].code == code && t->cells.data[i].line == line &&
                    t->cells.data[i].callee == callee,
                at);
    if (at != IDXMAP_NONE)
        return at;
    at = (uint32_t)t->cells.len;
    struct linetree_cell *c = at < LINETREE_MAX_CELLS ? vec_push(&t->cells) : NULL;
    if (!c)
        return UINT32_MAX;
    c->code = code;
    c->line = line;
    c->callee = callee;
    if (idxmap_insert(&t->map, hash, at) < 0) {
        t->cells.len--;
        return UINT32_MAX;
    }
    return at;
}

/* The cell of this line's calls of this function, with the callee's first cell in its `next`. */
static uint32_t call_cell(struct linetree *t, uint32_t from, uint32_t code)
{
    uint32_t last = t->cells.data[from].last_call;
    if (likely(last && t->cells.data[last].callee == code))
        return last;
    const struct linetree_cell *line = &t->cells.data[from];
    uint32_t call = linetree_find(t, line->code, line->line, code);
    if (call == UINT32_MAX)
        return call;
    if (!t->cells.data[call].next) {
        uint32_t first = linetree_find(t, code, 0, 0);
        if (first == UINT32_MAX)
            return first;
        t->cells.data[call].next = first;
    }
    t->cells.data[from].last_call = call;
    return call;
}

static void begin(struct linetree *t, uint32_t cell)
{
    struct linetree_cell *c = &t->cells.data[cell];
    if (c->active++)
        return;
    c->begin = t->now;
    c->own_before = c->now.own;
}

static void end(struct linetree *t, uint32_t cell)
{
    struct linetree_cell *c = &t->cells.data[cell];
    if (--c->active)
        return;
    c->now.callee += t->now - c->begin - (c->now.own - c->own_before);
    linetree_touch(t, cell);
}

void linetree_enter(struct linetree *t, uint32_t code, bool resumes)
{
    if (unlikely(!code))
        return;
    if (unlikely(t->failed)) {
        t->lost++;
        return;
    }
    if (unlikely(t->stack.len >= LINETREE_MAX_DEPTH)) {
        t->skipped++;
        return;
    }
    uint32_t from = linetree_top(t)->cell, call = call_cell(t, from, code);
    struct linetree_frame *f = call == UINT32_MAX ? NULL : vec_push(&t->stack);
    if (unlikely(!f)) {
        t->failed = true;
        t->lost++;
        return;
    }
    *f = (struct linetree_frame){code, t->cells.data[call].next, call};
    t->cells.data[call].now.hits += !resumes;
    begin(t, call);
    begin(t, from);
    linetree_touch(t, call);
}

static void pop(struct linetree *t)
{
    struct linetree_frame f = *linetree_top(t);
    t->stack.len--;
    t->left = f.cell;
    end(t, f.call);
    end(t, linetree_top(t)->cell);
}

void linetree_leave(struct linetree *t, uint32_t code)
{
    if (unlikely(t->failed))
        return;
    if (unlikely(t->skipped)) {
        t->skipped--;
        return;
    }
    size_t depth = t->stack.len;
    while (depth > 1 && t->stack.data[depth - 1].code != code)
        depth--;
    if (depth <= 1)
        return;                   /* it began before we came */
    while (t->stack.len >= depth) /* what stands above it was left unseen */
        pop(t);
}

void linetree_finish(struct linetree *t)
{
    while (t->stack.len > 1)
        pop(t);
    t->skipped = 0;
}
