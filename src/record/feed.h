/* One ring on its way into the file: decodes its words and grows the call tree of its thread. Inside
 * src/record; under drain.c's lock.
 *
 * Every word is hostile: kinds that do not exist are counted and skipped, lengths are checked, a
 * ring whose head is nonsense is given up. */
#ifndef PYROMETER_RECORD_FEED_H
#define PYROMETER_RECORD_FEED_H

#include "format/ring.h"
#include "record/calltree.h"
#include "record/events.h"
#include "record/linetree.h"
#include "record/ringowner.h"
#include "record/session.h"

/* A code's definition as it came; texts owned. */
struct feed_code {
    uint32_t id, flags, first_line;
    char *name, *qualname, *file;
    uint32_t name_len, qualname_len, file_len;
    uint32_t pid; /* whose it is */
};

/* What all rings of a session have in common. */
struct feed_codes {
    VEC(struct feed_code) fresh; /* to be carried into the file, then emptied */
};
void feed_code_release(struct feed_code *c);

/* What the program said: a mark, a span or a counter; text owned. */
struct feed_mark {
    enum ring_ext kind; /* RING_EXT_MARK, _COUNTER, _SPAN_BEGIN: still open, _SPAN_END: ended */
    uint64_t begin_ns, end_ns;
    uint64_t number; /* of a span */
    double value;
    char *text;
    uint32_t len;
};

/* What was said of the call that begins or ends next; len 0: nothing. */
struct feed_note {
    uint32_t len;
    char text[RING_MAX_NOTE];
};

struct feed {
    uint32_t slot;
    struct ring_header *ring; /* mapped */
    const uint64_t *words;
    uint64_t tail;
    uint64_t tick; /* the clock, at the last record */
    uint64_t origin_ns;
    struct ring_owner owner;

    struct calltree tree;
    bool has_lines; /* they are counted */
    struct linetree lines;
    struct events *events; /* the timeline; NULL: not wanted */
    uint32_t entered;      /* node of the last ENTER, for the RING_FRAME that may follow */
    enum ring_kind last;
    uint64_t paused_at; /* tick; 0: it is being traced */
    uint64_t paused_ticks, waited_ticks;
    uint64_t records, nonsense;
    uint64_t lost, room_ticks; /* as the header says: records dropped, time waited for room */
    uint64_t lost_carried, room_carried;
    VEC(struct feed_mark) marks; /* to be carried into the file, then emptied */
    VEC(struct feed_mark) spans; /* open, outermost first */
    struct ring_calibration calibration;
    uint64_t pace_ticks, pace_count; /* as the header says */
    uint64_t pace_ticks_carried, pace_count_carried;
    bool has_calibration;
    double aside_ticks; /* what a RING_ASIDE costs in its process */
    bool ignoring;      /* the guest measures itself */
    struct feed_note arguments, task, result, exception;
    VEC(char *) tasks; /* names of those that run, owned; NULL: a free place. 0 is not used */
    VEC(uint32_t) free_tasks;
    uint32_t gc_code; /* of the collection that runs; 0: none does */
    char *name;       /* of the thread, owned; NULL: not told, or carried already */
    uint32_t name_len;

    bool closed;        /* no more will come */
    uint64_t gone_tick; /* when that was seen; 0: not yet */
};

/* Takes over the mapped ring. `trace` (NULL: none) says what of the timeline is wanted; times count
 * from `origin_ns`. */
int feed_new(uint32_t slot, struct ring_header *ring, bool has_lines,
             const struct events_options *trace, uint64_t origin_ns, struct feed **ret);
void feed_free(struct feed *f);
void feed_mark_release(struct feed_mark *m);

/* Decodes what there is, at most `most` words, by the clock as it stands. Returns how many there were,
 * or E_CORRUPT. */
int64_t feed_take(struct feed *f, struct feed_codes *codes, const struct session_clock *clock,
                  uint64_t most);

/* Nothing comes after this: what runs, or is paused, has done so until that tick. */
void feed_finish(struct feed *f, const struct session_clock *clock, uint64_t tick);

/* How much of the ring is waiting. */
uint64_t feed_waiting(const struct feed *f);

#endif
