/* What is told of single calls beside that they happened: the type of an exception, the task of a coroutine,
 * arguments and results; and of threads their names. The GIL is held throughout.
 *
 * None of it runs code of the program: objects are looked at, by their exact types, and asked nothing. A
 * note is written before the record that it is about. */
#ifndef PYROMETER_AGENT_NOTES_H
#define PYROMETER_AGENT_NOTES_H

#include "agent/codes.h"

/* Is a timeline made? Without one nobody wants notes. */
static inline bool notes_are_wanted(void)
{
    return (guest.instruments & RING_TRACE) != 0;
}

/* A function is left by an exception of this type. */
void notes_exception(const py_object *type);

/* A coroutine begins. If nobody awaits it but the loop, it is the outermost of a task. `caller` is the code
 * of the function that made it run; NULL: none did. */
void notes_coroutine(py_object *code, py_object *caller);

/* A function begins, and its locals hold nothing but arguments. */
void notes_arguments(py_object *code, py_object *const *locals);

/* It returns this. */
void notes_result(const py_object *value);
/* It yields this. A coroutine does so to its loop, which is nobody's concern. */
void notes_yield(const py_object *code, const py_object *value);

/* Tells what Python calls this thread. False: it is not known yet. */
bool notes_thread_name(void);

#endif
