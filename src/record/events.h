/* The timeline of one thread on its way into the file: encodes begins and ends into blocks
 * (format/events.h) and summarises them (format/lod.h). Inside src/record; under drain.c's lock.
 *
 * `stack` holds the calls that run. The first `written` of them stand in the file, or will; those above
 * are held back until they have lasted long enough to be wanted. A call that is long enough has
 * ancestors that are, so what is held back is always the top of the stack, and everything that was
 * written happened before it began: the stream stays in the order of time.
 *
 * Function numbers are the session's. The recorder translates them when it carries a finished block
 * into the file, for their definitions may come later. */
#ifndef PYROMETER_RECORD_EVENTS_H
#define PYROMETER_RECORD_EVENTS_H

#include "base/vec.h"
#include "format/events.h"
#include "format/lod.h"

enum {
    EVENTS_LEVELS = 6,        /* of summaries */
    EVENTS_FAN = 16,          /* of one level in one of the next */
    EVENTS_CACHE = 1 << 10,   /* functions whose number is remembered */
    EVENTS_WAITING_CODE = 0,  /* stands for: the program waits for the recorder */
    EVENTS_GC_CODE = 1 << 28, /* plus its generation: a garbage collection */
    EVENTS_GC_KINDS = 4,
};

/* What is wanted; zero: everything. */
struct events_options {
    uint64_t min_ns;    /* shorter calls are left out */
    uint32_t max_depth; /* so are deeper ones; 0: no limit */
    uint64_t last_ns;   /* only so much before the end is kept; 0: everything */
};

struct events_call {
    uint64_t begin_ns;
    uint32_t code;
    enum record_event_kind kind;
};

struct events_cached {
    uint32_t code_plus_1, number;
};

/* A note about the begin of a call that is held back. */
struct events_held {
    uint32_t depth, kind;
    size_t at, len; /* in `held_text` */
};

/* A finished block, and the summaries that ended with it. Owned. */
struct events_done {
    struct events_block block;
    struct events_summary {
        struct record_summary head;
        struct lod boxes;
    } summary[EVENTS_LEVELS];
    unsigned summary_count;
};

struct events {
    struct events_options options;
    VEC(struct events_call) stack;
    size_t written;
    uint64_t skipped; /* calls below the depth that is wanted, so that their ends are known */
    uint64_t last_ns; /* time never goes back */
    VEC(struct events_held) held; /* outermost first */
    struct buf held_text;
    struct record_note end_note; /* of the end that comes next; text NULL: none */

    struct events_block block; /* the open one; codes are in `codes` */
    VEC(uint32_t) codes;
    size_t full; /* bytes at which it is */
    struct events_cached cache[EVENTS_CACHE];

    struct lod lod[EVENTS_LEVELS];
    struct events_level {
        uint64_t start_ns, events;
        unsigned children;
    } level[EVENTS_LEVELS];

    VEC(struct events_done *) done; /* to be carried into the file, oldest first */
    size_t done_bytes;
    VEC(struct events_done *) kept;      /* window.h's, oldest first */
    uint64_t traced, left_out, too_deep; /* since the last taking */
    bool failed;                         /* out of memory: what follows is not kept … */
    uint64_t lost; /* … but counted, since the last taking, with what was to be kept */
};

void events_init(struct events *e, const struct events_options *options, uint64_t start_ns);
void events_release(struct events *e);

void events_begin(struct events *e, uint32_t code, enum record_event_kind kind, uint64_t ns);
void events_end(struct events *e, uint32_t code, enum record_event_kind kind, uint64_t ns);

/* What is known of the call that has just begun. Its text is copied. */
void events_note_begin(struct events *e, enum record_note_kind kind, const char *text, size_t len);
/* The same of an end. */
void events_end_noted(struct events *e, uint32_t code, enum record_event_kind kind, uint64_t ns,
                      enum record_note_kind note, const char *text, size_t len);

/* A call that had begun when tracing did. */
void events_open(struct events *e, uint32_t code, uint64_t ns);

/* Nothing comes after this moment: what has not ended has gone on until then. */
void events_reach(struct events *e, uint64_t ns);

/* Ends the open block, if there is anything in it; with `last`, all summaries too. */
void events_finish_block(struct events *e, bool last);

/* Its share of `done_bytes`. */
size_t events_done_bytes(const struct events_done *d);

void events_done_free(struct events_done *d);

#endif
