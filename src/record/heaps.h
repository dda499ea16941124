/* The memory rings of a session, on their way into the file: decodes their words, each process's in one order (ringmem.h),
 * into a heap for every process. Inside src/record; under drain.c's lock.
 *
 * Every word is hostile: kinds that do not exist are counted and skipped, lengths are checked, a ring whose head is nonsense is
 * given up. */
#ifndef PYROMETER_RECORD_HEAPS_H
#define PYROMETER_RECORD_HEAPS_H

#include "record/heap.h"
#include "record/ringowner.h"
#include "record/session.h"
#include "remote/code.h"

/* A code's definition as it came. */
struct heaps_code {
    uint32_t id;
    struct remote_code code; /* texts and line table owned; name NULL: not defined */
    uint32_t pid;            /* whose it is */
    uint32_t file_code;      /* id in the file; 0: not there yet */
    bool asked;              /* its source is looked for */
};

/* A number that means the same as another. */
struct heaps_alias {
    uint32_t id, known;
};

/* One ring. It stays after its thread has ended, for its sites bear its number. */
struct heaps_feed {
    uint32_t slot;
    struct ring_header *ring; /* mapped; NULL: its thread has ended */
    const uint64_t *words;
    uint64_t tail, head; /* taken; published when the turn began */
    uint64_t image;      /* which program of its process it belongs to */
    bool writing;        /* a record was being made then: it may be older than others' */
    bool complete;       /* no more words will come */
    uint64_t tick;       /* the last stamp */
    uint64_t next_tick;  /* that of the record at the tail */
    struct ring_owner owner;
    uint32_t number;       /* of its thread, in the process's sites */
    VEC(uint32_t) path;    /* nodes of its stack, outermost first */
    uint64_t last_block;   /* address of its last allocation; 0: given back, or pages */
    struct heap_undo undo; /* its last release */
    uint64_t records, nonsense, lost, waited_ticks; /* since they were carried last */
    uint64_t lost_seen, waited_seen;                /* as the header says */
};

/* A site as it was at a checkpoint: what is new since the one before, and the peak. */
struct heaps_change {
    uint32_t site;
    struct heap_sums sums;
    uint64_t peak_count, peak_bytes;
    double live_variance, peak_variance;
};

/* A checkpoint on its way into the file. */
struct heaps_snapshot {
    struct record_memory head; /* without the process */
    struct record_sizes *sizes;
    size_t size_count;
    struct heaps_change *changes;
    size_t change_count;
};

struct heaps_point { /* of the curves */
    uint64_t time_ns, rss, heap, objects;
};

/* Sites of one thread, stack and allocator: instructions of one line are several. */
struct heaps_group {
    uint32_t thread, stack, allocator;
    uint64_t peak_count, peak_bytes;
    double live_variance, peak_variance;
    uint64_t scaled[6]; /* sums of estimates so far, in parts */
    uint32_t mark;      /* of the checkpoint that it was last in */
    uint32_t record;
};

struct heaps_process {
    uint32_t pid;
    uint64_t image; /* which program it runs; exec begins another, and all memory is gone */
    struct heap heap;
    VEC(struct heaps_feed *) feeds; /* all that ever were: sites bear their numbers */
    VEC(struct heaps_feed *) open;  /* of those, with a ring */
    VEC(struct heaps_snapshot) snapshots;
    VEC(struct heaps_point) points;
    uint64_t checkpoint_ns, point_ns; /* when the last ones were taken */
    uint64_t checkpoint_time_ns;      /* what the last one is of, by the recording's clock */
    uint64_t taken_tick;              /* the newest stamp that was taken */
    uint64_t checkpoint_bytes;        /* about what the last one took in the file */
    uint64_t marks;
    uint64_t start_ns;
    bool is_child; /* another was met before it */
    bool gone; /* was, when the last turn ended: by the next one all of its rings have been met */
    bool ended;
    uint64_t exec_tick,
        exec_taken; /* of the last exec into a program without us: told, and all given back */
    /* the carrier's */
    uint32_t process; /* id in the file; UINT32_MAX: not asked for yet */
    VEC(struct heaps_group) groups;
    struct idxmap group_map;
    uint32_t mark;
    VEC(struct heaps_change) carried; /* by site: what of its peak is in its group */
};

enum { HEAPS_LINES = 1 << 13 };
struct heaps_line {
    uint32_t code; /* 0: empty */
    int32_t offset;
    uint32_t line;
};

struct heaps {
    const struct session *session; /* borrowed */
    uint64_t origin_ns;
    VEC(struct heaps_process *) processes;
    struct heaps_feed *feed[RING_MAX_SLOTS];
    VEC(struct heaps_code) codes;
    struct idxmap code_map;    /* by number: a program may make up any */
    struct idxmap content_map; /* by what they say */
    VEC(struct heaps_alias) aliases;
    struct idxmap alias_map;
    uint64_t codes_new;       /* definitions that have come */
    struct heaps_line *lines; /* HEAPS_LINES of them: lines that were looked up lately */
    uint32_t beyond_code;     /* id of what stands for HEAP_BEYOND */
    uint64_t written_bytes;   /* about what all checkpoints have taken in the file */
    uint64_t met;             /* processes, ever */
    bool named;               /* the allocator's name is in the file */
    bool timely;              /* a checkpoint was due by time and taken; the owner clears it */
};

int heaps_new(const struct session *session, uint64_t origin_ns, struct heaps **ret);
void heaps_free(struct heaps *h);
void heaps_free_process(struct heaps_process *p);

/* A ring appears, mapped; it is ours from then on. */
void heaps_meet(struct heaps *h, uint32_t slot, struct ring_header *ring);

/* Decodes what there is, some of it at a time. `clock`: a moment before the slots were looked over for new rings, so that what is
 * stamped before it is published by now, or being written. `last`: no more will come. Returns the words that were taken. */
uint64_t heaps_turn(struct heaps *h, const struct session_clock *clock, bool deaths, bool last);

/* The number that stands for this one: that of an equal code that came before, or itself. */
uint32_t heaps_known_code(struct heaps *h, uint32_t number);

/* The definition of a code number; NULL: it has not come. Good until the next turn. */
struct heaps_code *heaps_find_code(struct heaps *h, uint32_t number);

/* Finished blocks of events that wait to be carried into the file. */
size_t heaps_held_bytes(const struct heaps *h);

/* --- heaps_words.c: what stands in a ring --- */

/* Goes over what says nothing of memory, up to the next record that does. False: there is none. */
bool heaps_find_record(struct heaps *h, struct heaps_process *p, struct heaps_feed *f);

/* Takes the record at the tail, which that has found. */
void heaps_take_record(struct heaps *h, struct heaps_process *p, struct heaps_feed *f,
                       const struct session_clock *clock);

/* --- heaps_time.c --- */

/* A tick as ns after the origin of the recording. */
uint64_t heaps_ns(const struct heaps *h, const struct session_clock *clock, uint64_t tick);

/* Whether another checkpoint is to be taken, of a process that is so old, so long after the last; and whether one is for its `n`th
 * mark. `each` is what one takes in the file, `written` what all have taken. */
bool heaps_is_due(uint64_t age, uint64_t since, uint64_t each, uint64_t written);
bool heaps_wants_mark(uint64_t n, uint64_t each, uint64_t written);

/* Takes points and checkpoints of a process when they are due. All that was stamped up to `tick` has been taken. */
void heaps_keep_time(struct heaps *h, struct heaps_process *p, const struct session_clock *clock,
                     uint64_t tick);

/* Takes a checkpoint of a process as it was then, for the carrier to write. A process's follow each other in time. Where the
 * room is used up, children tell but the largest of their sites by themselves, and all others as one. */
void heaps_snapshot(struct heaps *h, struct heaps_process *p, uint32_t flags, uint64_t now_ns);

/* --- heaps_carry.c: into the file, by the recorder's thread --- */

struct target_shared;
struct procs;
void heaps_carry(struct heaps *h, struct target_shared *shared, struct procs *procs,
                 double ns_per_tick, bool last);

#endif
