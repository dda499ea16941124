/* Chunks that are whole when they come to the writer (blocks of events, their summaries), waiting for
 * the definitions they use to go first; and the directory of where they went. Inside src/format only,
 * on the writer's thread. */
#ifndef PYROMETER_FORMAT_BLOCKS_H
#define PYROMETER_FORMAT_BLOCKS_H

#include "base/vec.h"
#include "format/record.h"
#include "format/sink.h"

struct blocks_waiting {
    struct buf payload; /* owned */
    enum format_chunk_kind kind;
    uint32_t records;
    struct record_place place; /* if it has one */
    bool has_place;
};

struct blocks {
    VEC(struct blocks_waiting) waiting;
    VEC(struct record_place) places; /* not in a directory yet */
    size_t waiting_bytes;
    uint32_t previous; /* number of the last directory's chunk, plus 1 */
};

/* Takes the payload's memory. Without a place it is not in the directory. False without memory. */
bool blocks_add(struct blocks *b, enum format_chunk_kind kind, struct buf *payload,
                uint32_t records, const struct record_place *place);

/* Hands all to the sink; `sequence` is the number of the next chunk and goes on. A directory follows
 * when there is enough for one, or `last` is set. */
int blocks_submit(struct blocks *b, struct sink *sink, uint32_t *sequence, bool last);

void blocks_release(struct blocks *b);

#endif
