/* What an event costs here and now, measured on the interpreter we are in before the program runs.
 *
 * A call of an empty function is timed without hooks and with them; the difference is the cost of its
 * two events. The ring itself says which part of it lies between the two stamps, where it is counted
 * to the function, and what is left is counted to its caller. The recorder keeps both, and the views
 * take them out along the call path. The GIL is held throughout. */
#ifndef PYROMETER_AGENT_CALIBRATE_H
#define PYROMETER_AGENT_CALIBRATE_H

#define CALIBRATE_FILE "<pyrometer>" /* what the functions that are measured say they are from */

/* Before the hooks go in. */
void calibrate_bare(void);

/* After they have: measures, and has the recorder ignore what it did. */
void calibrate_hooked(void);

/* Tells what was measured, in the ring of a thread that has just begun. */
void calibrate_tell(void);

#endif
