/* The local variables of a sampled frame: names and values as text. */
#ifndef PYROMETER_REMOTE_LOCALS_H
#define PYROMETER_REMOTE_LOCALS_H

#include "base/vec.h"

#include <stdint.h>

struct remote;

enum {
    REMOTE_MAX_LOCALS = 512, /* variables of one frame that are shown */
};

struct remote_local {
    char *name;  /* owned, UTF-8 */
    char *value; /* owned, UTF-8 without control characters; cut to a safe length */
};

struct remote_locals {
    VEC(struct remote_local) list; /* in the order of the code's own list; unbound ones left out */
};

/* The locals of frame number `frame` (leaf is 0) of the last sample of a thread. The target runs
 * on: each value is what its variable held at some moment since the sample. E_NOTREADY if that
 * sample was moving, the frame is no more or is none of Python's; E_BADMEM and the others as for a
 * sample. */
int remote_frame_locals(struct remote *r, size_t thread_index, uint32_t frame,
                        struct remote_locals *ret);
void remote_locals_release(struct remote_locals *l);

#endif
