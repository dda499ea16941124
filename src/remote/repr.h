/* A value as text, as repr() would show it, without running anything in the target.
 *
 * Builtin types are shown by value, cut to a safe length, depth and number of items; all others,
 * subclasses of builtin types too, as `<Name object at 0x…>`, since their repr is the program's own
 * code. What cannot be read is `<unreadable>`. The text is UTF-8 and holds no control characters.
 * Inside src/remote only. */
#ifndef PYROMETER_REMOTE_REPR_H
#define PYROMETER_REMOTE_REPR_H

#include "base/buf.h"
#include "remote/internal.h"

enum {
    REPR_MAX_BYTES = 200, /* of one value, dots included */
    REPR_MAX_DEPTH = 3,   /* containers within containers */
    REPR_MAX_ITEMS = 8,   /* of one container */
    REPR_MAX_CHARS = 120, /* of one str or bytes */
};

#define REPR_UNREADABLE "<unreadable>"

/* Appends the value of the object at `addr`, at most REPR_MAX_BYTES. */
void repr_object(const struct remote *r, uint64_t addr, struct buf *out);

#endif
