#include "record/window.h"

#include "base/clock.h"

enum { MAX_KEPT_MARKS = 1 << 17 }; /* of a thread: half of what it may wait with */

void window_move(struct window *w, uint64_t latest_ns)
{
    if (latest_ns > w->length_ns)
        w->start_ns = max_u64(w->start_ns, latest_ns - w->length_ns);
}

/* What a block takes, its summaries included. */
static size_t weight(const struct events_done *d)
{
    size_t bytes = events_done_bytes(d) + d->block.code_count * sizeof *d->block.codes;
    for (unsigned i = 0; i < d->summary_count; i++)
        bytes += d->summary[i].boxes.boxes * sizeof(struct record_box);
    return bytes;
}

static void forget_first(struct window *w, struct events *e, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        w->bytes -= weight(e->kept.data[i]);
        w->forgotten += e->kept.data[i]->block.count;
        events_done_free(e->kept.data[i]);
    }
    if (count)
        memmove(e->kept.data, e->kept.data + count, (e->kept.len - count) * sizeof *e->kept.data);
    e->kept.len -= count;
}

static void forget_marks(const struct window *w, struct feed *f)
{
    size_t old = f->marks.len > MAX_KEPT_MARKS ? f->marks.len - MAX_KEPT_MARKS : 0;
    while (old < f->marks.len && f->marks.data[old].end_ns < w->start_ns)
        old++;
    for (size_t i = 0; i < old; i++)
        feed_mark_release(&f->marks.data[i]);
    if (old)
        memmove(f->marks.data, f->marks.data + old, (f->marks.len - old) * sizeof *f->marks.data);
    f->marks.len -= old;
}

size_t window_take(struct window *w, struct feed *f)
{
    struct events *e = f->events;
    size_t bytes = e->done_bytes, old = 0;
    if (!vec_reserve(&e->kept, e->kept.len + e->done.len + 1))
        return 0; /* they wait where they are */
    for (size_t i = 0; i < e->done.len; i++) {
        w->bytes += weight(e->done.data[i]);
        e->kept.data[e->kept.len++] = e->done.data[i];
    }
    e->done.len = e->done_bytes = 0;
    while (old < e->kept.len && e->kept.data[old]->block.end_ns < w->start_ns)
        old++;
    forget_first(w, e, old);
    forget_marks(w, f);
    return bytes;
}

static void find_oldest(struct feed *const *feeds, size_t count, struct events **oldest)
{
    for (size_t i = 0; i < count; i++) {
        struct events *e = feeds[i] ? feeds[i]->events : NULL;
        if (e && e->kept.len &&
            (!*oldest || e->kept.data[0]->block.end_ns < (*oldest)->kept.data[0]->block.end_ns))
            *oldest = e;
    }
}

void window_shrink(struct window *w, struct feed *const *feeds, size_t count,
                   struct feed *const *more, size_t more_count)
{
    while (w->bytes > WINDOW_MAX_BYTES) {
        struct events *oldest = NULL;
        find_oldest(feeds, count, &oldest);
        find_oldest(more, more_count, &oldest);
        if (!oldest)
            return;
        w->start_ns = max_u64(w->start_ns, oldest->kept.data[0]->block.end_ns);
        forget_first(w, oldest, 1);
    }
}

void window_give(struct window *w, struct feed *f)
{
    struct events *e = f->events;
    window_take(w, f);
    if (e->done.len) /* no memory to keep them together: the later ones alone are a timeline, too */
        return;
    for (size_t i = 0; i < e->kept.len; i++) {
        w->bytes -= weight(e->kept.data[i]);
        e->done_bytes += events_done_bytes(e->kept.data[i]);
    }
    vec_release(&e->done);
    memcpy(&e->done, &e->kept, sizeof e->done);
    memset(&e->kept, 0, sizeof e->kept);
}
