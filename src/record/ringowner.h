/* Whose ring it is: copied from its header when it is met, for the program can change that afterwards; and what its thread and
 * process are called in the file. Inside src/record. */
#ifndef PYROMETER_RECORD_RINGOWNER_H
#define PYROMETER_RECORD_RINGOWNER_H

#include "format/ring.h"

#include <stdbool.h>

struct target_shared;
struct procs;

struct ring_owner {
    uint32_t pid, parent_pid, tid;
    uint64_t ident, start_ns;
    char python[sizeof(((struct ring_header *)0)->python)];
    uint32_t thread; /* number in the file; UINT32_MAX: not asked for yet */
    uint32_t process;
    bool is_memory; /* a ring of memory; each thread may have one of both kinds */
};

void ring_owner_read(const struct ring_header *ring, struct ring_owner *ret);

/* Asks for the numbers, once, and writes the thread down. */
void ring_owner_meet(struct ring_owner *o, struct target_shared *shared, struct procs *procs);

/* Writes it down anew: its name has become known. */
void ring_owner_put(const struct ring_owner *o, struct target_shared *shared, uint32_t name);

#endif
