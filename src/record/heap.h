/* The memory of one process, as the events of its rings tell it: which blocks are alive and who allocated them, how much
 * there is, how much there was at most. Inside src/record; under drain.c's lock.
 *
 * A site is a stack, a thread and an allocator. The high-water mark by site costs no more than a test at each event: when a
 * new one is reached, a number is counted up; a site keeps what it had at the last one when it is touched for the first
 * time after it, for until then nothing of it has changed.
 *
 * A block takes 12 bytes in a table that is at most 17/20 full. Sizes that do not fit are kept apart. */
#ifndef PYROMETER_RECORD_HEAP_H
#define PYROMETER_RECORD_HEAP_H

#include "base/idxmap.h"
#include "base/vec.h"
#include "format/record.h"
#include "record/heap_blocks.h"
#include "record/heap_halves.h"
#include "record/memlog.h"

#include <stdbool.h>

enum {
    HEAP_MAX_NODES =
        1
        << 21, /* of the stacks' trie; what comes after is charged to HEAP_BEYOND below its known part */
    HEAP_BINS = 48,           /* of sizes */
    HEAP_SAMPLE_SCALE = 1024, /* sums of estimates are kept in such parts */
};
#define HEAP_BEYOND UINT32_MAX /* code number of what stands for stacks that were too many */

/* "Called from `parent`, in code `code` at this instruction." Node 0 is the root. */
struct heap_node {
    uint32_t parent, code;
    int32_t offset;
    uint32_t last_child; /* the one that was asked for last */
    uint32_t last_site;  /* plus 1 */
    uint32_t stack;      /* in the file; 0: not there yet */
};

struct heap_sums {
    uint64_t count, bytes;
    uint64_t freed, freed_bytes;
    uint64_t brief, brief_bytes;
    double variance;
};

struct heap_peak {
    uint64_t count, bytes;
    double variance; /* of the bytes, of a sample */
};

struct heap_site {
    uint32_t node, thread; /* `thread`: the owner's number for it */
    uint32_t allocator;
    uint32_t group;               /* the carrier's; UINT32_MAX: none yet */
    bool changed;                 /* since the last snapshot */
    bool is_cut;                  /* told with others as one: HEAP_BEYOND, without a stack */
    struct heap_sums sums, taken; /* ever, and by the last snapshot */
    double live_variance;
    uint64_t peak_number; /* of the high-water mark that these are of */
    uint64_t peak_count, peak_bytes;
    double peak_variance;
    struct heap_peak peak_taken; /* by the last snapshot */
};

struct heap_range { /* pages */
    uint64_t start, end;
    uint32_t site;
    uint32_t slot;  /* in the log */
    uint32_t whole; /* which mapping it is a piece of */
    uint64_t tick;  /* when it was mapped */
};

struct heap_large { /* sizes that do not fit a key, by address */
    uint64_t address, size;
};

struct heap {
    VEC(struct heap_node) nodes;
    struct idxmap node_map;
    VEC(struct heap_site) sites;
    struct idxmap site_map;
    struct heap_blocks blocks;
    VEC(struct heap_large) large; /* an open table of its own */
    size_t large_used;
    VEC(struct heap_range) ranges; /* by address */
    VEC(uint32_t) pieces;          /* of each mapping: a part of it may have gone */
    VEC(uint32_t) free_wholes;     /* numbers of mappings that are free again */
    uint64_t live_bytes, live_count;
    uint64_t object_bytes; /* of live_bytes, in Python's own allocators */
    uint64_t peak_bytes, peak_tick, peak_number;
    /* of samples: of what is alive, and by the whole and by half of them at the peak */
    double live_variance, peak_variance, peak_half_variance;
    struct heap_halves halves;
    uint64_t bins[RECORD_ALLOCATOR_COUNT][HEAP_BINS][2]; /* count, bytes since the last snapshot */
    struct memlog *log; /* every event is kept; NULL: they are not. Owned */
    uint64_t log_ns;    /* what time it is, for the log */
    uint64_t peak_ns;   /* what it was by that at the peak */
    uint32_t interval;  /* of sampling, in bytes; 0: everything is told */
    /* For tests, and told to nobody, for neither is a loss: releases of what was never seen (it was there before us), and blocks
     * whose release was not seen, though their address is somebody else's by now (seen of what libc allocates for a thread). */
    uint64_t unknown, missed;
    bool failed; /* out of memory: what follows is not counted */
};

/* A release, to be undone. */
struct heap_undo {
    uint64_t address, size;
    uint32_t site; /* UINT32_MAX: there is nothing to undo */
    uint32_t halves;
    bool brief;
};

int heap_init(struct heap *h, uint32_t interval, bool log);
void heap_release(struct heap *h);

/* The child of a node, made if need be. */
uint32_t heap_child(struct heap *h, uint32_t parent, uint32_t code, int32_t offset);

/* The site of a node, made if need be; UINT32_MAX without memory. */
uint32_t heap_site(struct heap *h, uint32_t node, uint32_t thread, uint32_t allocator);

void heap_alloc(struct heap *h, uint32_t site, uint64_t address, uint64_t size, uint64_t tick);
/* `brief`: its thread has allocated nothing else since. */
void heap_free(struct heap *h, uint64_t address, bool brief, struct heap_undo *ret);
/* It was there all the time; once only. */
void heap_undo(struct heap *h, struct heap_undo *undo, uint64_t tick);
void heap_map(struct heap *h, uint32_t site, uint64_t address, uint64_t size, uint64_t tick);
/* `tick`: before the call, which is told after it. What was mapped since then is not meant: somebody else was quicker to
 * tell that he had the address. */
void heap_unmap(struct heap *h, uint64_t address, uint64_t size, uint64_t tick);

/* All is gone at once: the process executes another program. */
void heap_drop_all(struct heap *h);

/* The site has, or has had, its share of the last high-water mark: makes peak_count and peak_bytes good. */
void heap_settle(const struct heap *h, struct heap_site *s);

/* Of a sampled peak, how much of it chance has added, by our best knowledge; else 0. */
double heap_peak_excess(const struct heap *h);

/* What the settled site had at the peak, without its part of the excess: they take part in it by their variances, which is where chance
 * had its play. The sum over all sites is the peak, and that of the variances is the peak's, the error of the excess in it. */
struct heap_peak heap_peak_of(const struct heap *h, const struct heap_site *s, double excess);

#endif
