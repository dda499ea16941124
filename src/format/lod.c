#include "format/lod.h"

#include "base/err.h"
#include "format/cursor.h"

void lod_init(struct lod *l, uint32_t shift, size_t max_boxes, uint32_t max_depth)
{
    *l = (struct lod){.shift = shift, .max_boxes = max_boxes, .max_depth = max_depth};
}

void lod_clear(struct lod *l, uint32_t shift)
{
    for (uint32_t i = 0; i < l->used; i++)
        l->rows.data[i].boxes.len = 0;
    l->used = l->deepest = 0;
    l->boxes = 0;
    l->shift = shift;
}

void lod_release(struct lod *l)
{
    for (size_t i = 0; i < l->rows.len; i++)
        vec_release(&l->rows.data[i].boxes);
    vec_release(&l->rows);
}

/* Two pieces of one call, cut at the seam of two summaries. */
static bool is_one_call(const struct record_box *a, const struct record_box *b)
{
    return a->flags & RECORD_BOX_CUT_RIGHT && b->flags & RECORD_BOX_CUT_LEFT &&
           a->code == b->code && a->end_ns == b->begin_ns;
}

static void mend(struct record_box *a, const struct record_box *b)
{
    a->end_ns = b->end_ns;
    a->covered_ns += b->covered_ns;
    a->longest_ns += b->longest_ns;
    a->flags = (a->flags & RECORD_BOX_CUT_LEFT) | (b->flags & RECORD_BOX_CUT_RIGHT);
}

static struct lod_row *row_of(struct lod *l, uint32_t depth)
{
    while (l->rows.len <= depth)
        if (!vec_push(&l->rows))
            return NULL;
    if (depth >= l->used)
        l->used = depth + 1;
    return &l->rows.data[depth];
}

/* Wider buckets: what fits together now is joined. */
static void coarsen(struct lod *l)
{
    while (l->boxes > l->max_boxes / 4 * 3 && l->shift < LOD_MAX_SHIFT) {
        l->shift++;
        l->boxes = 0;
        for (uint32_t d = 0; d < l->used; d++) {
            struct lod_row *row = &l->rows.data[d];
            size_t n = row->boxes.len;
            row->boxes.len = 0;
            for (size_t i = 0; i < n; i++) { /* never more than were there: in place */
                struct record_box box = row->boxes.data[i];
                lod_add(l, d, &box);
            }
        }
    }
}

void lod_add_slow(struct lod *l, uint32_t depth, const struct record_box *box)
{
    if (depth > l->deepest)
        l->deepest = depth;
    if (depth >= l->max_depth || l->failed)
        return;
    struct lod_row *row = row_of(l, depth);
    if (!row) {
        l->failed = true;
        return;
    }
    struct record_box *last = row->boxes.len ? &row->boxes.data[row->boxes.len - 1] : NULL;
    if (last && is_one_call(last, box)) {
        mend(last, box);
        return;
    }
    struct record_box *slot = vec_push(&row->boxes);
    if (!slot) {
        l->failed = true;
        return;
    }
    *slot = *box;
    l->boxes++;
    if (l->max_boxes && l->boxes > l->max_boxes)
        coarsen(l);
}

void lod_add_all(struct lod *l, const struct lod *from)
{
    if (l->shift < from->shift)
        l->shift = from->shift;
    for (uint32_t d = 0; d < from->used; d++)
        for (size_t i = 0; i < from->rows.data[d].boxes.len; i++)
            lod_add(l, d, &from->rows.data[d].boxes.data[i]);
    if (from->deepest > l->deepest)
        l->deepest = from->deepest;
    l->failed |= from->failed;
}

/* ---- bytes ---- */

static void put_row(struct buf *b, const struct lod_row *row, uint64_t start_ns)
{
    uint64_t at = start_ns;
    buf_put_varint(b, row->boxes.len);
    for (size_t i = 0; i < row->boxes.len; i++) {
        const struct record_box *box = &row->boxes.data[i];
        uint64_t span = box->end_ns - box->begin_ns;
        buf_put_varint(b, box->begin_ns - at);
        buf_put_varint(b, span);
        buf_put_varint(b, (uint64_t)box->calls << 2 | box->flags);
        buf_put_varint(b, box->code);
        if (box->calls > 1) {
            buf_put_varint(b, span - box->covered_ns);
            buf_put_varint(b, box->longest_ns);
        }
        at = box->end_ns;
    }
}

void lod_put_summary(struct buf *b, const struct record_summary *head, const struct lod *l)
{
    buf_put_varint(b, LOD_SUMMARY);
    buf_put_varint(b, head->thread);
    buf_put_varint(b, head->level);
    buf_put_varint(b, head->shift);
    buf_put_varint(b, head->start_ns);
    buf_put_varint(b, head->end_ns - head->start_ns);
    buf_put_varint(b, head->events);
    buf_put_varint(b, head->deepest);
    buf_put_varint(b, l->used);
    for (uint32_t d = 0; d < l->used; d++)
        put_row(b, &l->rows.data[d], head->start_ns);
}

void lod_put_directory(struct buf *b, uint32_t sequence, uint32_t previous,
                       const struct record_place *places, size_t count)
{
    struct record_place last = {0};
    buf_put_varint(b, LOD_DIRECTORY);
    buf_put_varint(b, sequence);
    buf_put_varint(b, previous);
    for (size_t i = 0; i < count; i++) {
        const struct record_place *p = &places[i];
        buf_put_varint(b, p->thread);
        buf_put_varint(b, p->level);
        buf_put_varint(b, p->shift);
        buf_put_varint(b, sequence - p->sequence);
        buf_put_svarint(b, (int64_t)(p->start_ns - last.end_ns));
        buf_put_varint(b, p->end_ns - p->start_ns);
        last = *p;
    }
}

static bool get_box(struct cursor *c, uint64_t at, struct record_box *ret)
{
    struct record_box b = {0};
    b.begin_ns = at + get_varint(c);
    uint64_t span = get_varint(c), head = get_varint(c);
    b.end_ns = b.begin_ns + span;
    b.code = get_id(c);
    b.flags = head & 3;
    b.calls = (uint32_t)(head >> 2);
    b.covered_ns = b.longest_ns = span;
    if (b.calls > 1) {
        uint64_t gaps = get_varint(c);
        b.covered_ns = span - gaps;
        b.longest_ns = get_varint(c);
        if (gaps > span || b.longest_ns > b.covered_ns)
            return false;
    }
    *ret = b;
    return !c->bad && b.begin_ns >= at && b.end_ns >= b.begin_ns && head >> 2 <= UINT32_MAX;
}

static int visit_summary(struct cursor *c, const struct format_visitor *v, void *ctx)
{
    struct record_summary s = {0};
    s.thread = get_id(c);
    s.level = get_u32(c);
    s.shift = get_u32(c);
    s.start_ns = get_varint(c);
    s.end_ns = s.start_ns + get_varint(c);
    s.events = get_varint(c);
    s.deepest = get_u32(c);
    s.rows = get_u32(c);
    if (c->bad || s.rows > LOD_MAX_DEPTH || s.shift > LOD_MAX_SHIFT || s.end_ns < s.start_ns)
        return E_CORRUPT;
    int r = v->summary ? v->summary(ctx, &s) : 0;
    for (uint32_t d = 0; r == 0 && d < s.rows; d++) {
        uint64_t n = get_varint(c), at = s.start_ns;
        for (; r == 0 && n && !c->bad; n--) {
            struct record_box box;
            if (!get_box(c, at, &box) || box.end_ns > s.end_ns)
                return E_CORRUPT;
            at = box.end_ns;
            r = v->box ? v->box(ctx, &s, d, &box) : 0;
        }
        if (r == 0 && c->bad)
            r = E_CORRUPT;
    }
    return r;
}

static int visit_directory(struct cursor *c, uint32_t n, const struct format_visitor *v, void *ctx)
{
    uint32_t sequence = get_u32(c), previous = get_u32(c);
    uint64_t end_ns = 0;
    if (c->bad || previous > sequence)
        return E_CORRUPT;
    int r = v->directory ? v->directory(ctx, sequence, previous) : 0;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        struct record_place p = {0};
        p.thread = get_id(c);
        p.level = get_u32(c);
        p.shift = get_u32(c);
        uint32_t back = get_u32(c);
        p.sequence = sequence - back;
        p.start_ns = end_ns + (uint64_t)get_svarint(c);
        p.end_ns = p.start_ns + get_varint(c);
        if (c->bad || back > sequence || p.end_ns < p.start_ns || p.shift > LOD_MAX_SHIFT)
            return E_CORRUPT;
        end_ns = p.end_ns;
        r = v->place ? v->place(ctx, &p) : 0;
    }
    return r;
}

int lod_visit(const uint8_t *data, size_t len, uint32_t records, const struct format_visitor *v,
              void *ctx)
{
    struct cursor c = {data, data + len, false};
    switch (get_varint(&c)) {
    case LOD_SUMMARY:
        return c.bad ? E_CORRUPT : visit_summary(&c, v, ctx);
    case LOD_DIRECTORY:
        return visit_directory(&c, records, v, ctx);
    default: /* of a newer minor version */
        return 0;
    }
}
