/* Starting the command and passing signals on. Inside src/record.
 *
 * The command runs in our process group and on our terminal, so what the terminal sends (Ctrl-C,
 * Ctrl-\, a hang-up), or anybody else to the whole group, reaches it directly and must not be sent
 * twice; what another process sends to us alone is passed on (witness.h tells them apart). */
#ifndef PYROMETER_RECORD_LAUNCH_H
#define PYROMETER_RECORD_LAUNCH_H

#include "meter/meter.h"
#include "record/session.h"

#include <stdbool.h>
#include <sys/types.h>

/* A file that would grow past the limit of the user (ulimit -f) is from now on an error of the call that
 * wanted it, not our end. To be called before the first file is made. */
int launch_survive_limits(void);

/* Installs the handlers. `forward`: for a child of ours; else SIGINT, SIGTERM, SIGHUP ask us to stop. Before this
 * process becomes a subreaper. */
int launch_watch_signals(bool forward);

/* Forks and executes argv with the signals as we found them and PYROMETER_ACTIVE=<our pid> in its
 * environment, and what a guest needs if there is a session (or NULL); a meter (or NULL) is told. 0 with *ret_exec_error = errno if the
 * exec failed (the child is gone then), or a negative code. */
int launch_start(char *const *argv, const struct session *session, struct meter *meter,
                 pid_t *ret_pid, int *ret_exec_error);

/* Sends on what has arrived for the child. */
void launch_forward_signals(pid_t child);

/* Has a child ended since the last call? */
bool launch_take_child_event(void);

/* Were we asked to stop? */
bool launch_take_stop_request(void);

#endif
