/* The ways into the interpreter. Each is put in with the GIL held, and taken out the same way. */
#ifndef PYROMETER_AGENT_HOOKS_H
#define PYROMETER_AGENT_HOOKS_H

#include "agent/pyver.h"

/* sys.monitoring, 3.12 and later: all threads at once. */
bool monitoring_install(void);

/* For the line instrument: asks for events of one code object, finds an event's number, and what a
 * callback gives back to hear no more from where it was called. */
bool monitoring_set_local(py_object *code, long mask);
long monitoring_event(const char *name);
py_object *monitoring_never(void);

/* PEP 523, 3.11 without C functions: all threads at once. */
bool evalframe_install(void);

/* PyEval_SetProfile and PyEval_SetTrace, 3.8 to 3.11: thread by thread. */
bool profile_install(void);
/* The threads that Python knows of and that have no such function get ours. */
void profile_cover_threads(void);
/* A thread has just got its state, and has not got the GIL yet. */
void profile_meet(py_tstate *t);
/* The program sets or removes a profile or trace function of its own: called before it does. */
void profile_others(void);

/* A function begins or goes on, ends or stops: what both hooks make of it. `hook` is the hook's own frame address
 * (pyver_raised.h). */
void profile_on_call(py_frame *frame);
void profile_on_return(py_frame *frame, const py_object *value, void **hook);

/* The trace function, for lines: trace.c. Is it the one that tells of functions, too? */
bool trace_tells_functions(void);
void trace_cover(py_tstate *t);
void trace_take_out(py_tstate *t);

#endif
