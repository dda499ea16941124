/* Processes named by the user, and why one of them cannot be read. For attach and dump. */
#ifndef PYROMETER_CMD_REFUSAL_H
#define PYROMETER_CMD_REFUSAL_H

#include <stdbool.h>
#include <sys/types.h>

/* A PID operand. 0, or the exit status after a line. */
int cmd_parse_pid(const char *text, pid_t *ret);

/* Is it no thread's number? The kernel takes one for its process, but a recording would have the wrong name. 0, or the exit status
 * after a line. */
int cmd_check_process(pid_t pid);

/* Is it a code by which remote_open() says that a process cannot be read? */
bool cmd_is_refusal(int code);

/* Prints the line that says why and what to do; returns the exit status. */
int cmd_process_refused(pid_t pid, int code);

#endif
