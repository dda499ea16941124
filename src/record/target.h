/* One Python process being sampled: its threads' open runs on the way into the file. Inside
 * src/record. */
#ifndef PYROMETER_RECORD_TARGET_H
#define PYROMETER_RECORD_TARGET_H

#include "format/writer.h"
#include "record/slowed.h"
#include "record/sources.h"
#include "record/threadids.h"
#include "remote/remote.h"

struct target;

/* What all targets of a recording share. */
struct target_shared {
    struct format_writer *writer; /* borrowed */
    struct record_stats *stats;   /* borrowed */
    uint64_t origin_ns;           /* of the file's clock */
    uint64_t period_ns;
    bool sample;               /* stacks are wanted; else only threads and their names */
    uint64_t max_gap_ns;       /* a longer pause between looks is a hole, not a long sample */
    struct threadids *threads; /* borrowed */
    uint32_t moving_code, unreadable_code; /* ids of the pseudo-frames */
    struct code_ids *codes;                /* code objects by content; owned */
    struct sources *sources;               /* borrowed; NULL: sources are not kept */
    struct slowed *slowed;                 /* borrowed; NULL: no profile function slows anything */
    size_t slowing;                        /* targets in which one does */
    bool is_refused;                       /* one or more processes could not be read */
    bool unsafe;
};

int target_shared_init(struct target_shared *s);
void target_shared_release(struct target_shared *s);

/* A code object in the file, one id for equal ones. */
uint32_t target_intern_code(struct target_shared *s, const struct record_code *code);

/* Takes over `remote`. */
int target_new(struct target_shared *shared, struct remote *remote, uint32_t process_id,
               struct target **ret);

/* One look at every thread at time `now_ns`, or at the list of threads only. 0, or why the process cannot be read any more:
 * E_NOPROC gone, E_NOTREADY no threads (starting or ending), E_BADMEM became something else, E_PERM. */
int target_sample(struct target *t, uint64_t now_ns);

/* Where its files are; NULL if they cannot be had. Borrowed. */
struct sources_place *target_place(const struct target *t);

/* Writes the open runs out; they start afresh. */
void target_flush(struct target *t);

/* Flushes and frees. NULL is fine. */
void target_free(struct target *t);

#endif
