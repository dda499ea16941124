/* The blocks of a process that are alive: an open table from address to size and site. Inside src/record; a part of heap.c. */
#ifndef PYROMETER_RECORD_HEAP_BLOCKS_H
#define PYROMETER_RECORD_HEAP_BLOCKS_H

#include "base/attr.h"

#include <stdbool.h>

enum { HEAP_SIZE_BITS = 19 }; /* of a key */

struct heap_blocks {
    uint64_t *key; /* address / 8 above, size below; 0: free */
    uint32_t *site;
    uint32_t *slot; /* in the log; NULL: there is none */
    size_t size, used;
};

/* Where the block is, or where it would be: there the key is 0. */
size_t heap_blocks_find(const struct heap_blocks *b, uint64_t address);

/* By a quarter: while it grows there are two of them, and both together are to take at most 32 bytes for a block; 42 where
 * there is a log, whose slots are 4 of the 16 bytes of a place. */
bool heap_blocks_grow(struct heap_blocks *b);

void heap_blocks_remove(struct heap_blocks *b, size_t hole);

#endif
