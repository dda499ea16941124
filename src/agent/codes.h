/* Numbers for code objects and C functions, and their definitions.
 *
 * A code object carries its number in a co_extra slot: an address means another object as soon as
 * the first has died, and code made by exec() dies young. C functions are numbered by their method
 * definition, which lives as long as their module. A definition is written to the ring of the thread
 * that first meets it, before the record that uses it; if it has no ring, or no room in it, the function
 * stays unknown until the next one meets it. The GIL is held throughout. */
#ifndef PYROMETER_AGENT_CODES_H
#define PYROMETER_AGENT_CODES_H

#include "agent/guest.h"
#include "agent/pyver.h"

/* What the slot holds: the number and, below it, enum ring_code_flag and these. */
typedef uint64_t code_mark;
enum { CODE_MARK_SHIFT = 8 };
enum code_flag {
    CODE_NO_LINES = 16, /* its calls are wanted, its lines are not */
    CODE_LONG = 32,     /* its lines come by way of its instructions: see lines_monitoring.c */
    CODE_NOTED = 64,    /* its arguments and results are told */
};

/* A code object at first sight. Texts end with a NUL, and are borrowed. */
struct code_facts {
    py_object *code; /* NULL of a C function */
    uint32_t flags;  /* enum ring_code_flag */
    uint32_t first_line;
    const char *name, *qualname /* "" below 3.11 */, *file;
};
/* Asked at first sight of each code object, and of each C function, for more flags; NULL: nobody is. May
 * arm the code. */
extern uint32_t (*codes_judge)(const struct code_facts *facts);

struct code_extras { /* behind a code object's co_extra */
    ptrdiff_t size;
    void *slot[];
};

extern ptrdiff_t codes_index; /* our slot; below 0: not there yet */

/* Asks the interpreter for a slot. */
bool codes_init(void);

/* 3.11 counts calls and turns of loops in each code object, until it has seen a few and makes the code quicker; while a profile
 * function is set nothing is quicker so. From outside the recorder sees by that how often slowed instructions run (record/slowed.h),
 * if it goes on: from here the counter has some way to go. Left alone, it arrives soon. */
enum { CODES_COUNT_FROM = INT16_MIN, CODES_COUNT_AGAIN = INT16_MIN / 2 };
extern bool codes_counting;
static inline void codes_count_on(py_object *code)
{
    int16_t *count = (int16_t *)((char *)code + py.code_warmup);
    if (*count > CODES_COUNT_AGAIN && *count < 0)
        *count = CODES_COUNT_FROM;
}

code_mark codes_meet(py_object *code);
code_mark codes_meet_c(py_object *callable, void *definition);

static inline code_mark codes_mark(py_object *code)
{
    const struct code_extras *extras = py_pointer(code, py.code_extra);
    if (likely(extras && extras->size > codes_index)) {
        code_mark mark = (code_mark)(uintptr_t)extras->slot[codes_index];
        if (likely(mark))
            return mark;
    }
    return codes_meet(code);
}

/* C functions are met so often that the last ones are kept in a small table. */
enum { C_SLOTS = 1 << 13 };
struct c_entry {
    void *definition;
    code_mark mark;
};
extern struct c_entry codes_c[C_SLOTS];

static inline uint32_t codes_c_slot(const void *definition)
{
    return (uint32_t)((uintptr_t)definition * 0x9e3779b97f4a7c15ull >> 48) & (C_SLOTS - 1);
}

static inline code_mark codes_mark_c(py_object *callable, void *definition)
{
    const struct c_entry *e = &codes_c[codes_c_slot(definition)];
    if (likely(e->definition == definition))
        return e->mark;
    return codes_meet_c(callable, definition);
}

static inline uint32_t codes_number(code_mark mark)
{
    return (uint32_t)(mark >> CODE_MARK_SHIFT);
}

/* A record of a function; of a coroutine it says which one, by what `frame` evaluates to. */
#define codes_emit(kind, mark, frame)                                                              \
    (unlikely((mark)&RING_CODE_COROUTINE) ? guest_emit_frame(kind, codes_number(mark), frame)      \
                                          : guest_emit(kind, codes_number(mark)))

#endif
