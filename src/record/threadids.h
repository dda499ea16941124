/* Numbers of threads in the file. The sampler and the guest's rings, of events and of memory, each meet the program's threads on
 * their own, and not at the same time; whoever comes later gets the number that the first was given.
 * Each side meets a thread once, or again if it had left it, and those of one ident in the order in which they lived. Inside
 * src/record; the recorder's thread only. */
#ifndef PYROMETER_RECORD_THREADIDS_H
#define PYROMETER_RECORD_THREADIDS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum threadid_user { THREADID_SAMPLER = 1, THREADID_EVENTS = 2, THREADID_MEMORY = 4 };

struct threadid {
    uint32_t process; /* its number in the file */
    uint64_t ident;   /* Python's, used again when a thread has ended */
    uint32_t tid;     /* the kernel's number; 0: not known */
    uint32_t id;
    uint32_t met_by; /* enum threadid_user, summed up; the others are still to come */
};

/* What each side knows better. */
struct threadid_fact {
    uint32_t tid;  /* the kernel's number, by the guest; 0: not told */
    uint32_t name; /* string id, by the sampler; 0: not known */
};

struct threadids {
    VEC(struct threadid) single;     /* not met by all sides, the oldest first */
    VEC(struct threadid_fact) facts; /* by number */
    uint32_t next;                   /* the next number to give out */
};

/* The number of a thread that `user` has just met; *ret_new if nobody had met it before. `tid`: 0 if it is not known. */
uint32_t threadids_get(struct threadids *t, enum threadid_user user, uint32_t process,
                       uint64_t ident, uint32_t tid, bool *ret_new);

/* `user` does not follow the thread any longer, but it has not ended: it may be met again. */
void threadids_leave(struct threadids *t, enum threadid_user user, uint32_t id);

/* Keeps what is not 0 of `told`, and fills in what it lacks from what was told before. */
void threadids_tell(struct threadids *t, uint32_t id, struct threadid_fact *told);

void threadids_release(struct threadids *t);

#endif
