/* The frames of the calling thread, read where they lie: no API, no GIL, no reference, no allocation. A thread's
 * chain of frames is changed by nobody but itself, so from inside that thread it holds still.
 *
 * What differs between versions is a shape. Functions that take one are inlined with a constant, so that the walk is
 * a few loads for each frame. */
#ifndef PYROMETER_AGENT_PYVER_WALK_H
#define PYROMETER_AGENT_PYVER_WALK_H

#include "agent/guest.h"
#include "agent/pyver.h"

struct walk_shape {
    uint8_t code, previous, instr, owner; /* offsets in a frame */
    uint8_t shim;   /* owners from here on are the interpreter's own frames; 0: there are none */
    uint8_t tags;   /* low bits of the code's address that mean something else */
    uint8_t step;   /* instr is an index of so many bytes each; 0: it is an address … */
    uint16_t first; /* … and instructions begin here in the code object */
    uint8_t top;    /* where a thread state points to its innermost frame … */
    uint8_t cframe; /* … or, plus 1, to what does at this offset; 0: directly */
    uint16_t name, qualname, file, first_line, lines; /* offsets in a code object; 0: it has none */
};

/* 3.8 and 3.9; 3.10; 3.11; 3.12; 3.13; 3.14 and 3.15. */
#define WALK_SHAPE_38  ((struct walk_shape){32, 24, 104, 0, 0, 0, 1, 0, 24, 0, 112, 0, 104, 40, 120})
#define WALK_SHAPE_310 ((struct walk_shape){32, 24, 96, 0, 0, 0, 2, 0, 24, 0, 112, 0, 104, 40, 120})
#define WALK_SHAPE_311                                                                             \
    ((struct walk_shape){32, 48, 56, 69, 0, 0, 0, 184, 56, 9, 120, 128, 112, 72, 136})
#define WALK_SHAPE_312                                                                             \
    ((struct walk_shape){0, 8, 56, 70, 3, 0, 0, 192, 56, 1, 120, 128, 112, 68, 136})
#define WALK_SHAPE_313                                                                             \
    ((struct walk_shape){0, 8, 56, 70, 3, 0, 0, 200, 72, 0, 120, 128, 112, 68, 136})
#define WALK_SHAPE_314                                                                             \
    ((struct walk_shape){0, 8, 56, 74, 3, 3, 0, 208, 72, 0, 120, 128, 112, 68, 136})

/* The innermost frame of a thread; NULL: it runs no Python. */
static inline const char *walk_top(const py_tstate *t, struct walk_shape s)
{
    const char *at = py_pointer(t, s.top);
    return s.cframe && at ? py_pointer(at, s.cframe - 1u) : at;
}

static inline const char *walk_previous(const char *frame, struct walk_shape s)
{
    return py_pointer(frame, s.previous);
}

/* What it runs, as it is kept. Enough to tell whether that is still the same. */
static inline uintptr_t walk_runs(const char *frame, struct walk_shape s)
{
    return (uintptr_t)py_pointer(frame, s.code);
}

/* The code object's address; 0: a frame of the interpreter itself. */
static inline uintptr_t walk_code(const char *frame, struct walk_shape s)
{
    if (s.shim && unlikely((uint8_t)frame[s.owner] >= s.shim))
        return 0;
    return walk_runs(frame, s) & ~(uintptr_t)s.tags;
}

/* From 3.12 on a call of a class that was met before leaves a frame between the caller and the class's __init__, of a code object that is
 * the interpreter's own. Python's tracebacks do not show it, nor do we: it is called __init__ three times over, and begins nowhere. */
static inline bool walk_is_inner_code(uintptr_t code, struct walk_shape s)
{
    const char *c = (const char *)code;
    return s.qualname && py_u32(c, s.first_line) == 0 &&
           py_pointer(c, s.name) == py_pointer(c, s.file) &&
           py_pointer(c, s.name) == py_pointer(c, s.qualname);
}

/* The instruction that it is at, as it is kept. */
static inline uint64_t walk_instr(const char *frame, struct walk_shape s)
{
    if (s.step)
        return py_u32(frame, s.instr);
    return (uint64_t)(uintptr_t)py_pointer(frame, s.instr);
}

/* As an offset in bytes. */
static inline int32_t walk_offset(uintptr_t code, uint64_t instr, struct walk_shape s)
{
    if (s.step)
        return (int32_t)instr * s.step;
    return (int32_t)(instr - code - s.first);
}

#endif
