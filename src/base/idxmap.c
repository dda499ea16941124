#include "base/idxmap.h"

#include "base/err.h"
#include "base/large.h"

#include <string.h>

enum { IDXMAP_FIRST_SLOTS = 64 };

void idxmap_release(struct idxmap *m)
{
    free(m->slots);
    *m = (struct idxmap){0};
}

void idxmap_clear(struct idxmap *m)
{
    if (m->slots)
        memset(m->slots, 0xff, ((size_t)m->mask + 1) * sizeof *m->slots);
    m->used = 0;
}

static void place(struct idxmap *m, uint32_t hash, uint32_t index)
{
    uint32_t at = hash & m->mask;
    while (m->slots[at].index != IDXMAP_NONE)
        at = (at + 1) & m->mask;
    m->slots[at] = (struct idxmap_slot){hash, index};
}

static int grow(struct idxmap *m)
{
    size_t want = m->slots ? ((size_t)m->mask + 1) * 2 : IDXMAP_FIRST_SLOTS;
    if (want > UINT32_MAX / 2)
        return E_NOMEM;
    struct idxmap bigger = {.mask = (uint32_t)want - 1, .used = m->used};
    bigger.slots = large_calloc(want, sizeof *bigger.slots);
    if (!bigger.slots)
        return E_NOMEM;
    memset(bigger.slots, 0xff, want * sizeof *bigger.slots);
    if (m->slots) {
        for (size_t i = 0; i <= m->mask; i++)
            if (m->slots[i].index != IDXMAP_NONE)
                place(&bigger, m->slots[i].hash, m->slots[i].index);
    }
    free(m->slots);
    *m = bigger;
    return 0;
}

int idxmap_insert(struct idxmap *m, uint32_t hash, uint32_t index)
{
    /* at most half full: linear probing stays short */
    if (!m->slots || m->used >= m->mask / 2) {
        int r = grow(m);
        if (r < 0)
            return r;
    }
    place(m, hash, index);
    m->used++;
    return 0;
}

uint32_t hash_bytes(const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t h = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3ull;
    return hash_u64(h);
}

uint32_t hash_long(const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t h = 0xcbf29ce484222325ull ^ len, word;
    for (; len >= sizeof word; p += sizeof word, len -= sizeof word) {
        memcpy(&word, p, sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3ull;
    return hash_u64(h);
}
