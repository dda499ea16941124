#include "record/calltree.h"

#include "base/err.h"

enum { FIRST_OPEN = 64 };

int calltree_init(struct calltree *t)
{
    *t = (struct calltree){0};
    struct calltree_node *root = vec_push(&t->nodes);
    uint32_t *bottom = vec_push(&t->stack);
    if (!root || !bottom) {
        calltree_release(t);
        return E_NOMEM;
    }
    *root = (struct calltree_node){0};
    *bottom = 0;
    return 0;
}

void calltree_release(struct calltree *t)
{
    vec_release(&t->nodes);
    vec_release(&t->stack);
    vec_release(&t->changed);
    idxmap_release(&t->map);
    free(t->open);
    *t = (struct calltree){0};
}

uint32_t calltree_child(struct calltree *t, uint32_t code)
{
    uint32_t parent = calltree_top(t), at;
    uint32_t hash = hash_u64((uint64_t)parent << 32 | code);
    IDXMAP_FIND(&t->map, hash, i,
                t->nodes.data[i].parent == parent && t->nodes.data[i].code == code, at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)t->nodes.len;
        struct calltree_node *n = at < CALLTREE_MAX_NODES ? vec_push(&t->nodes) : NULL;
        if (!n)
            return UINT32_MAX;
        *n = (struct calltree_node){.parent = parent, .code = code};
        if (idxmap_insert(&t->map, hash, at) < 0) {
            t->nodes.len--;
            return UINT32_MAX;
        }
    }
    t->nodes.data[parent].last_child = at;
    return at;
}

void calltree_unwind(struct calltree *t, uint32_t code)
{
    for (size_t i = t->stack.len; i-- > 1;)
        if (t->nodes.data[t->stack.data[i]].code == code) {
            t->stack.len = i;
            return;
        }
}

/* --- coroutines: a table by frame, open addressing, no tombstones --- */

static uint32_t place_of(const struct calltree *t, uint64_t frame)
{
    return hash_u64(frame) & t->open_mask;
}

static struct calltree_open *find_open(const struct calltree *t, uint64_t frame)
{
    uint32_t at = place_of(t, frame);
    while (t->open[at].frame && t->open[at].frame != frame)
        at = (at + 1) & t->open_mask;
    return &t->open[at];
}

static bool grow_open(struct calltree *t)
{
    uint32_t old = t->open ? t->open_mask + 1 : 0, size = old ? old * 2 : FIRST_OPEN;
    struct calltree_open *before = t->open;
    t->open = calloc(size, sizeof *t->open);
    if (!t->open) {
        t->open = before;
        return false;
    }
    t->open_mask = size - 1;
    for (uint32_t i = 0; i < old; i++)
        if (before[i].frame)
            *find_open(t, before[i].frame) = before[i];
    free(before);
    return true;
}

void calltree_begins(struct calltree *t, uint64_t frame, uint32_t node, uint64_t tick)
{
    if (!frame || ((!t->open || t->open_count * 2 > t->open_mask) && !grow_open(t)))
        return;
    struct calltree_open *o = find_open(t, frame);
    t->open_count += !o->frame; /* an old one there has ended unseen */
    *o = (struct calltree_open){.frame = frame, .begin = tick, .node = node};
}

struct calltree_open *calltree_find_open(const struct calltree *t, uint64_t frame)
{
    struct calltree_open *o = t->open && frame ? find_open(t, frame) : NULL;
    return o && o->frame ? o : NULL;
}

void calltree_finish(struct calltree *t, uint64_t tick)
{
    for (uint32_t i = 0; t->open && i <= t->open_mask; i++) {
        struct calltree_open *o = &t->open[i];
        if (!o->frame)
            continue;
        t->nodes.data[o->node].alive += tick - o->begin;
        calltree_touch(t, o->node);
        o->frame = 0;
    }
    t->open_count = 0;
}

void calltree_ends(struct calltree *t, uint64_t frame, uint64_t tick)
{
    struct calltree_open *o = t->open && frame ? find_open(t, frame) : NULL;
    if (!o || !o->frame)
        return;
    t->nodes.data[o->node].alive += tick - o->begin;
    calltree_touch(t, o->node);
    t->open_count--;
    uint32_t hole = (uint32_t)(o - t->open);
    for (uint32_t at = hole;;) { /* those that came after it move up */
        at = (at + 1) & t->open_mask;
        if (!t->open[at].frame)
            break;
        uint32_t home = place_of(t, t->open[at].frame);
        if (((at - home) & t->open_mask) >= ((at - hole) & t->open_mask)) {
            t->open[hole] = t->open[at];
            hole = at;
        }
    }
    t->open[hole].frame = 0;
}
