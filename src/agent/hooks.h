/* The ways into the interpreter. Each is put in with the GIL held, and taken out the same way. */
#ifndef PYROMETER_AGENT_HOOKS_H
#define PYROMETER_AGENT_HOOKS_H

#include <stdbool.h>

/* sys.monitoring, 3.12 and later: all threads at once. */
bool monitoring_install(void);

/* PEP 523, 3.11 without C functions: all threads at once. */
bool evalframe_install(void);

/* PyEval_SetProfile, 3.8 to 3.11: thread by thread. */
bool profile_install(void);
/* The threads that Python knows of and that have no profile function get ours. */
void profile_cover_threads(void);
/* The calling thread gets it, if it has none. */
void profile_cover_me(void);
/* The program sets or removes a profile function of its own: called before it does. */
void profile_others(void);

#endif
