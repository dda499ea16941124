/* Every event of a process's memory, on its way into the file (`run --memory-events`). Inside src/record; grown by heap.c. */
#ifndef PYROMETER_RECORD_MEMLOG_H
#define PYROMETER_RECORD_MEMLOG_H

#include "base/vec.h"
#include "format/memevents.h"

#include <stdbool.h>

/* A block that is finished. */
struct memlog_done {
    struct memevents_block block;
    uint32_t *sites; /* the heap's number of each site that its symbols name */
    uint32_t site_count;
};

struct memlog_site { /* what the open block knows of one of the heap's sites */
    uint32_t block;  /* in which it has the number below */
    uint32_t number;
    uint64_t size; /* of its last allocation */
};

struct memlog {
    VEC(struct memlog_done) done;
    size_t done_bytes;
    struct memevents_block block;
    bool open; /* the block has begun */
    uint32_t block_number;
    VEC(uint32_t) sites;           /* of the open block */
    VEC(struct memlog_site) known; /* by the heap's number */
    VEC(uint32_t) free_slots;      /* the last one is used next */
    uint32_t next_slot, last_slot;
    uint32_t untimed;
    uint64_t large; /* of blocks of this size the moment matters; the heap's to set */
    uint64_t events;
    bool failed;
};

void memlog_release(struct memlog *l);
void memlog_done_release(struct memlog_done *d);
size_t memlog_done_bytes(const struct memlog_done *d);

/* An allocation; returns its slot. `ns`: the time, of which some are kept. */
uint32_t memlog_allocate(struct memlog *l, uint32_t site, uint64_t size, uint64_t ns);
void memlog_free(struct memlog *l, uint32_t slot, uint64_t size, uint64_t ns);
/* Pages: a part of them goes, or the last that is left. */
void memlog_shrink(struct memlog *l, uint32_t slot, uint64_t size, bool is_last, uint64_t ns);

/* Ends the open block, if it has any events. */
void memlog_finish_block(struct memlog *l);

#endif
