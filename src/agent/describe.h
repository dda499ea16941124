/* A value in a few characters, without asking it: numbers, texts and bytes as Python writes them, cut; containers
 * as their type and length; anything else, and every subclass, as the name of its type. */
#ifndef PYROMETER_AGENT_DESCRIBE_H
#define PYROMETER_AGENT_DESCRIBE_H

#include "agent/pyver.h"

/* Both return how many of the `max` bytes they wrote; always whole characters. */
size_t describe_value(const py_object *value, char *out, size_t max);

/* "x=1, name='abc', *args=tuple[2]" of a function that begins. */
size_t describe_arguments(py_object *code, py_object *const *locals, char *out, size_t max);

#endif
