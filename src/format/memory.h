/* ALLOCATIONS payloads: a checkpoint of one process's memory, to bytes and back. Inside src/format only;
 * docs/format.md draws the encoding. */
#ifndef PYROMETER_FORMAT_MEMORY_H
#define PYROMETER_FORMAT_MEMORY_H

#include "base/buf.h"
#include "format/reader.h"

/* Sites in any order; sorted by thread and stack they take least room. */
void memory_put(struct buf *b, const struct record_memory *memory, const struct record_sizes *sizes,
                size_t size_count, const struct record_site *sites, size_t site_count);

int memory_visit(const uint8_t *data, size_t len, uint32_t records,
                 const struct format_visitor *visitor, void *ctx);

#endif
