#include "format/blocks.h"

#include "base/err.h"
#include "format/lod.h"

/* Places in a directory. What a torn file lacks has to be looked for chunk by chunk. */
enum { DIRECTORY_PLACES = 512 };

bool blocks_add(struct blocks *b, enum format_chunk_kind kind, struct buf *payload,
                uint32_t records, const struct record_place *place)
{
    struct blocks_waiting *w = vec_push(&b->waiting);
    if (!w)
        return false;
    *w = (struct blocks_waiting){.payload = *payload, .kind = kind, .records = records};
    if (place) {
        w->place = *place;
        w->has_place = true;
    }
    *payload = (struct buf){.max = payload->max};
    b->waiting_bytes += w->payload.len;
    return true;
}

static int submit_directory(struct blocks *b, struct sink *sink, uint32_t *sequence)
{
    struct buf payload;
    buf_init(&payload, FORMAT_MAX_CHUNK_BYTES);
    lod_put_directory(&payload, *sequence, b->previous, b->places.data, b->places.len);
    int r = sink_submit(sink, FORMAT_CHUNK_INDEX, &payload, (uint32_t)b->places.len);
    buf_release(&payload);
    b->previous = ++*sequence;
    b->places.len = 0;
    return r;
}

int blocks_submit(struct blocks *b, struct sink *sink, uint32_t *sequence, bool last)
{
    int r = 0;
    for (size_t i = 0; i < b->waiting.len; i++) {
        struct blocks_waiting *w = &b->waiting.data[i];
        if (r == 0)
            r = sink_submit(sink, w->kind, &w->payload, w->records);
        buf_release(&w->payload);
        w->place.sequence = (*sequence)++;
        if (!w->has_place)
            continue;
        struct record_place *place = vec_push(&b->places);
        if (place)
            *place = w->place;
        else if (r == 0)
            r = E_NOMEM;
    }
    b->waiting.len = b->waiting_bytes = 0;
    bool due = b->places.len >= DIRECTORY_PLACES || (last && b->places.len);
    return r == 0 && due ? submit_directory(b, sink, sequence) : r;
}

void blocks_release(struct blocks *b)
{
    for (size_t i = 0; i < b->waiting.len; i++)
        buf_release(&b->waiting.data[i].payload);
    vec_release(&b->waiting);
    vec_release(&b->places);
}
