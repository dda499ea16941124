/* What the draining thread and the recorder's, which carries what it has found into the file, share: under one lock. Inside
 * src/record, for drain.c and drain_carry.c. */
#ifndef PYROMETER_RECORD_DRAIN_STATE_H
#define PYROMETER_RECORD_DRAIN_STATE_H

#include "record/drain.h"
#include "record/feed.h"
#include "record/heaps.h"
#include "record/window.h"

#include <pthread.h>

/* A process whose guest told what its probes cost, and how quick the machine was since. */
struct calibrated {
    uint32_t process;
    struct ring_calibration cost;
    uint64_t pace_ticks, pace_count;
};

struct drain {
    const struct session *session; /* borrowed */
    pthread_t thread;
    bool started;
    _Atomic bool stop;
    uint64_t stop_tick;  /* when that was; set before */
    pthread_cond_t wake; /* with the lock: the end cuts the thread's naps short */
    _Atomic uint64_t cpu_ns;
    _Atomic size_t held_bytes;          /* finished blocks that wait to be carried into the file */
    _Atomic size_t memory_bytes;        /* the same of memory's */
    _Atomic bool has_checkpoint;        /* of memory, which should be in the file soon */
    const struct events_options *trace; /* borrowed; NULL: no timeline */
    uint64_t origin_ns;
    uint64_t blocks_ns; /* when open blocks were ended last; the recorder's */

    pthread_mutex_t lock; /* of all below */
    struct window window;
    struct feed *feed[RING_MAX_SLOTS];
    VEC(struct feed *) done; /* given back by their thread, not yet by us */
    struct heaps *heaps;     /* NULL: memory is not watched */
    struct feed_codes codes;
    VEC(struct calibrated) calibrated;
    VEC(uint32_t) file_code;    /* number of the session -> id in the file; 0: not defined yet */
    struct sources_place *here; /* ours: for the files of processes that are gone */
    uint32_t waiting_code; /* id of what stands for EVENTS_WAITING_CODE; 0: not asked for yet */
    uint32_t gc_code[EVENTS_GC_KINDS]; /* so too for garbage collections */
};

#endif
