/* An open-addressing hash index: from a hash and an equality test to a dense index the caller keeps.
 *
 * The caller owns an array of things; the map stores (hash, index) pairs only, so one map type
 * serves strings, code objects and trie nodes alike, and a probe that misses costs one cache line.
 *
 *     uint32_t at;
 *     IDXMAP_FIND(&map, hash, i, same(&things[i], key), at);   // at == IDXMAP_NONE: not there
 *     if (at == IDXMAP_NONE && idxmap_insert(&map, hash, new_index) < 0) …
 */
#ifndef PYROMETER_BASE_IDXMAP_H
#define PYROMETER_BASE_IDXMAP_H

#include "base/attr.h"

#define IDXMAP_NONE UINT32_MAX

struct idxmap_slot {
    uint32_t hash;
    uint32_t index; /* IDXMAP_NONE: free */
};

struct idxmap {
    struct idxmap_slot *slots; /* owned */
    uint32_t mask;             /* capacity - 1, a power of two; 0 while empty */
    uint32_t used;
};

void idxmap_release(struct idxmap *m);
void idxmap_clear(struct idxmap *m);

/* Adds without looking for an equal one; 0 or E_NOMEM. */
int idxmap_insert(struct idxmap *m, uint32_t hash, uint32_t index);

#define IDXMAP_FIND(m, hash_value, candidate, equal, result)                                       \
    do {                                                                                           \
        const struct idxmap *im_ = (m);                                                            \
        uint32_t ih_ = (hash_value);                                                               \
        (result) = IDXMAP_NONE;                                                                    \
        if (im_->slots) {                                                                          \
            for (uint32_t ip_ = ih_ & im_->mask;; ip_ = (ip_ + 1) & im_->mask) {                   \
                uint32_t candidate = im_->slots[ip_].index;                                        \
                if (candidate == IDXMAP_NONE)                                                      \
                    break;                                                                         \
                if (im_->slots[ip_].hash == ih_ && (equal)) {                                      \
                    (result) = candidate;                                                          \
                    break;                                                                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Mixes 64 bits down to 32 good ones (the finaliser of MurmurHash3). */
static inline uint32_t hash_u64(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    x ^= x >> 33;
    return (uint32_t)x;
}

/* FNV-1a with a final mix: for short strings. What is shown depends on it (colours): it stays. */
uint32_t hash_bytes(const void *data, size_t len);

/* The same idea eight bytes at a time: for long ones. */
uint32_t hash_long(const void *data, size_t len);

#endif
