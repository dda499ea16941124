/* How far the work is, for whoever waits in front of it.
 *
 * What takes long (a pass over a file, a sort, a picture) says here what it does and counts what it has
 * done, whether anybody looks or not: once per chunk, never per record. It prints nothing and asks for no
 * time; src/cmd looks now and then and tells the user.
 *
 * There is one of it in the process, as there is one user. The alternative, a pointer through every
 * function between a command and a loop over chunks, would tie all layers to something that changes no
 * result. Nothing but what is shown to the user may ever depend on it.
 *
 * Any thread may call any of these. */
#ifndef PYROMETER_BASE_PROGRESS_H
#define PYROMETER_BASE_PROGRESS_H

#include <stdint.h>

struct progress {
    const char *what; /* "reading samples"; NULL: nothing has begun */
    uint64_t done;
    uint64_t total; /* 0: not known */
};

/* Work begins of `total` steps of any kind (bytes, records; 0: not known), in place of what was going on
 * before. `what` is a literal: it is read at any time later. */
void progress_begin(const char *what, uint64_t total);

/* So many more steps are done; also from several threads that share the work. */
void progress_add(uint64_t steps);

/* So many steps are done in all. */
void progress_reach(uint64_t done);

/* What goes on now. `done` is not beyond a total that is known. */
void progress_now(struct progress *ret);

#endif
