/* The calls of a time range, as boxes that a picture of so many pixels can show: a row for each depth of
 * each thread. Calls narrower than a pixel share a box with their neighbours.
 *
 * What is read of the recording depends on the picture and not on its length: the coarsest summaries
 * that are still finer than a pixel, and blocks of events where none is. */
#ifndef PYROMETER_ANALYSIS_TIMELINE_H
#define PYROMETER_ANALYSIS_TIMELINE_H

#include "analysis/query.h"
#include "format/lod.h"

enum {
    ANALYSIS_TIMELINE_MAX_PIXELS = 1 << 20,
    /* Blocks of events that are read for one picture. Past that, summaries are good enough, and the
     * result says so. */
    ANALYSIS_TIMELINE_MAX_BLOCKS = 160,
    ANALYSIS_TIMELINE_MAX_NOTES = 1 << 18, /* of a thread */
};

/* What is known of a single call beside its times. */
struct analysis_timeline_note {
    uint32_t depth;
    uint32_t kind;    /* enum record_note_kind */
    uint64_t time_ns; /* within its call */
    size_t at, len;   /* in the thread's note_text */
};

struct analysis_timeline_thread {
    uint32_t thread;
    struct lod boxes;
    VEC(struct analysis_timeline_note)
    notes; /* by depth, then time; of calls that were read as such */
    struct buf note_text;
    bool has_marks;            /* told by the program itself; without any, the two are empty */
    struct lod spans, moments; /* rows by nesting, one row; `code` is the id of a string */
};

struct analysis_timeline_point {
    uint64_t time_ns;
    double value;
};

/* A value that the program told, over time; a few points for each pixel at most. */
struct analysis_timeline_counter {
    uint32_t process;
    uint32_t name; /* string id */
    VEC(struct analysis_timeline_point) points;
};

struct analysis_timeline {
    const struct profile *profile; /* borrowed */
    uint64_t from_ns, to_ns;
    uint64_t pixel_ns;
    struct analysis_timeline_thread
        *thread; /* those with events or marks in the range, in the file's order */
    size_t thread_count;
    VEC(struct analysis_timeline_counter) counter;
    uint32_t
        deepest_cut; /* a call so deep is not shown, for summaries have no row for it; 0: none */
    bool coarse;     /* boxes are wider than a pixel in places */
    uint64_t read_bytes, read_blocks, read_summaries;
    uint32_t damaged;
};

/* Of the query: threads, processes and the range; without one, from the first event or
 * mark to the last. */
int analysis_timeline_init(const struct profile *profile, const struct analysis_query *query,
                           uint64_t pixels, struct analysis_timeline *ret);
void analysis_timeline_release(struct analysis_timeline *t);

#endif
