/* The type of the exception that leaves a function, below 3.12, where a profile or trace function is told that one does, but not
 * which. The GIL is held throughout.
 *
 * The interpreter has put the exception aside for the time of the hook: into variables of the C function that calls the hook, or
 * that calls its caller. They lie in the stack above the hook's frame, always at the same distance, for one build of the interpreter
 * and of us. So the distance is learned at the start, by exceptions of our own, and nothing has to be known of versions. */
#ifndef PYROMETER_AGENT_PYVER_RAISED_H
#define PYROMETER_AGENT_PYVER_RAISED_H

#include "agent/pyver.h"

/* The functions that learning needs: to be run, with the result among `names` below, before the hooks go in. Each is left by an
 * exception, in ways that differ: raised, raised again at the end of a finally, raised in C, by a generator. */
#define PYVER_RAISED_PROGRAM                                                                       \
    "def leaves(kind):\n"                                                                          \
    "    raise kind\n"                                                                             \
    "def passes(kind):\n"                                                                          \
    "    try: leaves(kind)\n"                                                                      \
    "    finally: kind = 0\n"                                                                      \
    "def misses(kind):\n"                                                                          \
    "    {}[kind]\n"                                                                               \
    "def makes(kind):\n"                                                                           \
    "    yield\n"                                                                                  \
    "    raise kind\n"                                                                             \
    "def drives(kind):\n"                                                                          \
    "    for _ in makes(kind): pass\n"

/* Learns the distance, with the hook in. If it fails, no type is ever told. */
void pyver_raised_learn(py_object *names);

/* When a function is left by an exception: `hook` is the frame address of the hook itself, that is, of the function which the
 * interpreter has called. NULL: it cannot be told. Borrowed. */
const py_object *pyver_raised(void **hook);

#endif
