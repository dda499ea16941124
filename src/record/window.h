/* The flight recorder: of every thread's timeline only the blocks of the last seconds are kept, in memory, and
 * go into the file when the recording ends. Inside src/record; under drain.c's lock.
 *
 * What the program does is thus bounded by time and not by the disk; what it does in that time is bounded as
 * well: past WINDOW_MAX_BYTES the oldest blocks of all threads go first, and the window begins later. */
#ifndef PYROMETER_RECORD_WINDOW_H
#define PYROMETER_RECORD_WINDOW_H

#include "record/feed.h"

#define WINDOW_MAX_BYTES ((size_t)512 << 20)

struct window {
    uint64_t length_ns; /* 0: there is none, everything is kept */
    uint64_t start_ns;  /* complete from here on, as far as is known */
    size_t bytes;       /* of all blocks that are kept */
    uint64_t forgotten; /* events, since the last asking */
};

/* The last event of all came then. */
void window_move(struct window *w, uint64_t latest_ns);

/* Takes a thread's finished blocks over, and lets go of what is too old: blocks, marks and counters. Returns
 * the bytes that left e->done. */
size_t window_take(struct window *w, struct feed *f);

/* Lets go of the oldest of these threads' blocks until the rest fits. NULL threads are passed over. */
void window_shrink(struct window *w, struct feed *const *feeds, size_t count,
                   struct feed *const *more, size_t more_count);

/* The recording ends: what is kept is to be written, and stands in e->done again. */
void window_give(struct window *w, struct feed *f);

#endif
