/* Who waits for the keyboard at the terminal that we made? Inside src/meter.
 *
 * The program has the user's terminal as its standard input, and ours as its output. Most programs read the keyboard
 * where it belongs; pagers read it from their output (less opens the terminal of its standard error), where nobody types.
 * So when the user has typed something and some process waits to read from our terminal, it is handed over. Anything
 * else that was typed is left where it is: for the program's standard input, or for the shell afterwards. */
#ifndef PYROMETER_METER_KEYBOARD_H
#define PYROMETER_METER_KEYBOARD_H

#include <stdbool.h>
#include <sys/types.h>

/* Is a thread of the process blocked in a read of that terminal ("/dev/pts/7"), or in a wait while the process has it
 * open beside its standard streams? */
bool keyboard_is_awaited(pid_t pid, const char *terminal);

#endif
