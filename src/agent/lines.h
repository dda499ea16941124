/* The line instrument. A hit is what sys.settrace calls a line event, no more and no fewer, whichever
 * way it comes by: on 3.12 and later by sys.monitoring (lines_monitoring.c), below by the C trace
 * function of each thread (trace.c). */
#ifndef PYROMETER_AGENT_LINES_H
#define PYROMETER_AGENT_LINES_H

#include "agent/codes.h"

static inline bool lines_are_wanted(void)
{
    return (guest.instruments & RING_LINES) != 0;
}

/* Calls are wanted of everybody, or of the selected functions alone? */
static inline bool lines_are_alone(void)
{
    return !(guest.instruments & RING_CALLS);
}

/* Sees to it that code objects are judged by the selection, which has been read. */
void lines_init(void);

/* --- 3.12 and later --- */

/* Finds the numbers of the events; the callbacks are monitoring.c's to register. */
bool lines_monitoring_init(void);
/* Asks for the events of a code object that is wanted. Returns flags for its mark. */
uint32_t lines_arm(const struct code_facts *facts);

extern const py_vectorcall lines_on_line, lines_on_jump, lines_on_instruction;

/* A CODE_LONG function begins, or goes on at an instruction. */
void lines_begins(void);
void lines_goes_on(py_object *code, const py_object *offset);

#endif
