/* Deep recursion, below 3.11, where every call of a Python function takes C stack, and with a profile
 * function set it takes more. A program that recurses to the end of its stack must get as far as it
 * would alone. So a thread that has used up its allowance is not traced any more until it is back
 * from there; the pause is told.
 *
 * Without a hook nobody calls us when it comes back, so for as long as there are such threads, a
 * thread of ours takes the GIL every few milliseconds to look. (A pending call would be kinder, but
 * 3.9 and 3.10 do not notice those of threads that are not Python's.) */
#ifndef PYROMETER_AGENT_DEEP_H
#define PYROMETER_AGENT_DEEP_H

#include "agent/pyver.h"

/* The address below which this thread has used `allowance` bytes of its C stack, or one `part` of it if
 * that is less. NULL: it cannot be told. */
const char *deep_mark(size_t allowance, unsigned part);

/* `set` takes a thread's hook out and puts it in again. */
void deep_init(void (*set)(py_tstate *t, bool on));

/* Is it paused? Then whoever covers threads leaves it alone. */
bool deep_is_paused(const py_tstate *t);

/* A thread has its ring: how deep may it be traced? */
void deep_new_thread(void);

/* This thread is too deep: takes its hook out. False: it cannot be told about, so it stays. */
bool deep_pause(void);

/* In a forked child our thread is gone. */
void deep_forked(void);

#endif
