/* How the command line speaks: what main, the option parser and the run names share beyond cmd.h.
 *
 * Every complaint is one line on stderr. It is made printable as a whole, so a file name with a
 * newline or an escape sequence in it can neither break the line nor paint the terminal. */
#ifndef PYROMETER_CMD_SPEAK_H
#define PYROMETER_CMD_SPEAK_H

#include "base/attr.h"

/* cmd_fail() in the name of a command: "pyrometer report: …". */
int cmd_fail_in(const char *command, int status, const char *fmt, ...) ATTR_PRINTF(3, 4);

/* "Did you mean": offer every known name in turn; `best` is then the nearest one that is near
 * enough to be worth saying, or NULL. Start with {.word = what the user typed}. */
struct cmd_near {
    const char *word; /* borrowed */
    const char *best; /* borrowed from the candidates */
    unsigned distance;
};
void cmd_near_offer(struct cmd_near *near, const char *candidate);

#endif
