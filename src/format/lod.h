/* Levels of detail: rows of boxes over calls, coarse enough to be few; their bytes; and the directory
 * that says where they are. The payloads of INDEX chunks.
 *
 * Calls of one depth never overlap, and arrive in the order of time. So a row is a list to whose end
 * things are added: a call shorter than a bucket (2^shift ns) joins the box before it if both begin in
 * the same bucket, and stands alone otherwise. When there are too many boxes the buckets get twice as
 * wide and what fits together is joined again. The recorder makes summaries so, out of calls; higher
 * levels out of lower ones; and a reader the picture, out of both. */
#ifndef PYROMETER_FORMAT_LOD_H
#define PYROMETER_FORMAT_LOD_H

#include "base/buf.h"
#include "base/vec.h"
#include "format/reader.h"
#include "format/record.h"

enum {
    LOD_MAX_DEPTH = 256,  /* rows of a summary; what is deeper is in the events only */
    LOD_MAX_BOXES = 1536, /* of a summary */
    LOD_FIRST_SHIFT = 10,
    LOD_MAX_SHIFT = 62,
};

struct lod_row {
    VEC(struct record_box) boxes;
};

struct lod {
    VEC(struct lod_row) rows;
    uint32_t used; /* rows with boxes in them; memory of the others is kept */
    uint32_t shift;
    uint32_t deepest;        /* of all calls, also those without a row */
    size_t boxes, max_boxes; /* 0: as many as it takes */
    uint32_t max_depth;
    bool failed; /* out of memory: not to be used */
};

void lod_init(struct lod *l, uint32_t shift, size_t max_boxes, uint32_t max_depth);
void lod_clear(struct lod *l, uint32_t shift); /* keeps the memory */
void lod_release(struct lod *l);

void lod_add_slow(struct lod *l, uint32_t depth, const struct record_box *box);

static inline bool lod_is_short(const struct lod *l, const struct record_box *b)
{
    return b->end_ns - b->begin_ns < (1ull << l->shift) && !b->flags;
}

/* A call, or several: after all others of its depth. */
static inline void lod_add(struct lod *l, uint32_t depth, const struct record_box *box)
{
    if (likely(depth < l->used)) {
        struct lod_row *row = &l->rows.data[depth];
        struct record_box *last = row->boxes.len ? &row->boxes.data[row->boxes.len - 1] : NULL;
        if (likely(last && last->begin_ns >> l->shift == box->begin_ns >> l->shift &&
                   lod_is_short(l, last) && lod_is_short(l, box))) {
            last->end_ns = box->end_ns;
            last->covered_ns += box->covered_ns;
            last->calls += box->calls;
            if (box->longest_ns > last->longest_ns) {
                last->longest_ns = box->longest_ns;
                last->code = box->code;
            }
            return;
        }
    }
    lod_add_slow(l, depth, box);
}

/* All of another's. */
void lod_add_all(struct lod *l, const struct lod *from);

/* A summary's payload. */
void lod_put_summary(struct buf *b, const struct record_summary *head, const struct lod *l);

enum lod_payload { LOD_SUMMARY = 0, LOD_DIRECTORY = 1 };

/* A directory's: places, and the number of the chunk with the directory before it, plus 1. */
void lod_put_directory(struct buf *b, uint32_t sequence, uint32_t previous,
                       const struct record_place *places, size_t count);

/* Either, into the visitor's rows. */
int lod_visit(const uint8_t *data, size_t len, uint32_t records, const struct format_visitor *v,
              void *ctx);

#endif
