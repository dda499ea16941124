/* Whose lines are wanted: functions by module and qualified name, or by a pattern; everybody's where
 * nothing was said. Asked once for each code object, at first sight. */
#ifndef PYROMETER_AGENT_SELECT_H
#define PYROMETER_AGENT_SELECT_H

#include "agent/codes.h"

/* Reads the session's selection. */
void select_init(void);

/* Nothing was said: all code is wanted. */
bool select_is_everything(void);

/* Is this one wanted? Its module is that of the frame that runs now. */
bool select_wants(const struct code_facts *facts);

#endif
