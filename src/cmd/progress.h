/* The line that says how far a command is, for a user who waits at a terminal.
 *
 * If standard error is a terminal, then after a second of work one line appears there, is written anew a
 * few times a second (base/progress.h says what goes on), and is gone before anything else is printed and
 * when the command ends, in whatever way. Where it is no terminal, nothing of this happens.
 *
 * Commands call these from their first thread; cmd_progress_say() and cmd_progress_print() are for any. */
#ifndef PYROMETER_CMD_PROGRESS_H
#define PYROMETER_CMD_PROGRESS_H

#include <stddef.h>
#include <stdio.h>

/* Work begins that may take long. Again and again does no harm: the second counts from the first. */
void cmd_progress_begin(void);

/* It is over: the line is gone, and so is the thread that wrote it. No program that writes to the terminal may be started
 * before. */
void cmd_progress_end(void);

/* The user wants none, or the terminal is taken: from now on nothing begins. */
void cmd_progress_never(void);

/* Output begins to `fd`: the line is out of the way if it could come between. It stays away then, for
 * output is as good a sign of life. */
void cmd_progress_make_way(int fd);

/* Standard output, to print to, with the way made. */
FILE *cmd_stdout(void);

/* The same, but the line stays until the first bytes come: for a writer that works long before it
 * writes. Ends with cmd_stdout_finish(): 0, or a negative code with errno. */
FILE *cmd_stdout_begin(void);
int cmd_stdout_finish(FILE *out);

/* Writes to standard error, with the line out of the way meanwhile. */
void cmd_progress_say(const char *text, size_t len);

/* The same for any stream: for a command that prints, and goes on with what it shows the line for. */
void cmd_progress_print(FILE *to, const char *text, size_t len);

#endif
