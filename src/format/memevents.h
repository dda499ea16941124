/* Blocks of memory events to bytes and back: the payload of a MEMORY_EVENTS chunk. Inside src/format and for the recorder's
 * encoder; docs/format.md draws it.
 *
 * What keeps an event small: a site has a number of one block only; its size is mostly that of its last block; and what is given
 * back has no address but a slot, numbers that are used again as soon as they are free, so that the block given back last is the one
 * allocated next. Times stand at some events only. */
#ifndef PYROMETER_FORMAT_MEMEVENTS_H
#define PYROMETER_FORMAT_MEMEVENTS_H

#include "base/buf.h"
#include "format/reader.h"

enum {
    /* Symbols: a slot is given back; a part of what is in it is; from here on an allocation, plus the number of its site. */
    MEMEVENTS_FREE = 0,
    MEMEVENTS_SHRINK = 1,
    MEMEVENTS_FIRST_SITE = 2,
    MEMEVENTS_MAX_SLOTS = 1 << 30,
};

/* A block on its way into the file. */
struct memevents_block {
    uint64_t start_ns, end_ns;
    uint32_t count; /* events */
    struct buf symbols;
    struct buf
        sizes; /* of allocations: 0 as the site's last one, else the size plus 1; of shrinkings: the bytes */
    struct buf slots; /* of all: less the one before, signed */
    struct buf
        times; /* events since the last time, ns since it; the rest of the events are spread to end_ns */
};

/* The payload; `sites` are those that the symbols name (only thread, stack and allocator count). */
void memevents_put_block(struct buf *b, uint32_t process, const struct record_site *sites,
                         uint32_t site_count, const struct memevents_block *block);

int memevents_visit(const uint8_t *data, size_t len, uint32_t records,
                    const struct format_visitor *v, void *ctx);

#endif
