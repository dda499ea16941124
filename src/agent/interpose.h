/* Functions of libc and CPython that the program calls and that pass through us, so that nothing of
 * it is missed: see interpose.c. They are found by the program by their names. */
#ifndef PYROMETER_AGENT_INTERPOSE_H
#define PYROMETER_AGENT_INTERPOSE_H

#include "agent/guest.h"

/* What a child must find in its environment to be our host too; set once by the constructor. */
extern char interpose_preload[4096]; /* "LD_PRELOAD=…"; empty: children are not followed */
extern char interpose_variable[96];  /* "PYROMETER_AGENT=…" */

/* From now on threads that start are covered. */
void interpose_start(void);

#endif
