/* Whose lines are wanted: functions by module and qualified name, or by a pattern; everybody's where
 * nothing was said. And whose calls are: those that match one of some patterns and none of others.
 * Asked once for each code object, at first sight. */
#ifndef PYROMETER_AGENT_SELECT_H
#define PYROMETER_AGENT_SELECT_H

#include "agent/codes.h"

/* Reads the session's selection. */
void select_init(void);

/* Nothing was said of lines: all code is wanted. */
bool select_is_everything(void);

/* Is this one wanted? Its module is that of the frame that runs now. */
bool select_wants(const struct code_facts *facts);

/* Something was said of calls. */
bool select_has_filters(void);

/* Are the calls of this one left out? A C function has no file: it goes with whoever calls it, and is
 * left out by its own name only. */
bool select_leaves_out(const struct code_facts *facts);

/* The same for codes_judge, where nobody else has anything to say. */
uint32_t select_judge(const struct code_facts *facts);

#endif
