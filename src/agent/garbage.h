/* Garbage collections on the timeline. The program's own gc.callbacks stays as it is, and shows nothing of us.
 *
 * The interpreter calls what is in a list of its own, which the module gc shows as `callbacks`. The list is
 * the interpreter's by a pointer, so the pointer is what we change: it leads to a list of ours with one
 * function in it, and that calls the program's in turn, as the interpreter would have. Where the pointer
 * cannot be made out for certain, collections are not told. The GIL is held throughout. */
#ifndef PYROMETER_AGENT_GARBAGE_H
#define PYROMETER_AGENT_GARBAGE_H

/* Before the hooks are in. */
void garbage_prepare(void);

/* After the hooks are in; takes itself out with them. */
void garbage_install(void);

#endif
