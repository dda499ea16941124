/* Searched forward from a block's home, and closed up behind what is taken out. */
#include "record/heap_blocks.h"

#include <stdlib.h>

static size_t home_of(const struct heap_blocks *b, uint64_t key)
{
    uint64_t mixed = (key >> HEAP_SIZE_BITS) * 0x9e3779b97f4a7c15ull;
    return (size_t)((unsigned __int128)mixed * b->size >> 64);
}

static size_t after(const struct heap_blocks *b, size_t i)
{
    return i + 1 < b->size ? i + 1 : 0;
}

/* Steps from one place on to another. */
static size_t steps(const struct heap_blocks *b, size_t from, size_t to)
{
    return to >= from ? to - from : to + b->size - from;
}

size_t heap_blocks_find(const struct heap_blocks *b, uint64_t address)
{
    uint64_t want = address >> 3;
    size_t i = home_of(b, want << HEAP_SIZE_BITS);
    while (b->key[i] && b->key[i] >> HEAP_SIZE_BITS != want)
        i = after(b, i);
    return i;
}

bool heap_blocks_grow(struct heap_blocks *b)
{
    struct heap_blocks bigger = {.size = b->size + b->size / 4, .used = b->used};
    bigger.key = calloc(bigger.size, sizeof *bigger.key);
    bigger.site = malloc(bigger.size * sizeof *bigger.site);
    if (b->slot)
        bigger.slot = malloc(bigger.size * sizeof *bigger.slot);
    if (!bigger.key || !bigger.site || (b->slot && !bigger.slot)) {
        free(bigger.key);
        free(bigger.site);
        free(bigger.slot);
        return false;
    }
    for (size_t i = 0; i < b->size; i++) {
        if (!b->key[i])
            continue;
        size_t at = home_of(&bigger, b->key[i]);
        while (bigger.key[at])
            at = after(&bigger, at);
        bigger.key[at] = b->key[i];
        bigger.site[at] = b->site[i];
        if (b->slot)
            bigger.slot[at] = b->slot[i];
    }
    free(b->key);
    free(b->site);
    free(b->slot);
    *b = bigger;
    return true;
}

void heap_blocks_remove(struct heap_blocks *b, size_t hole)
{
    size_t i = hole;
    for (;;) {
        i = after(b, i);
        if (!b->key[i])
            break;
        /* may it move into the hole? Only if its home is not between the two */
        size_t home = home_of(b, b->key[i]);
        if (steps(b, home, i) >= steps(b, hole, i)) {
            b->key[hole] = b->key[i];
            b->site[hole] = b->site[i];
            if (b->slot)
                b->slot[hole] = b->slot[i];
            hole = i;
        }
    }
    b->key[hole] = 0;
    b->used--;
}
