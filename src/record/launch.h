/* Starting the command and passing signals on. Inside src/record.
 *
 * The command runs in our process group and on our terminal, so what the terminal sends (Ctrl-C,
 * Ctrl-\, a hang-up), or anybody else to the whole group, reaches it directly and must not be sent
 * twice; what another process sends to us alone is passed on (witness.h tells them apart). While we finish the recording they
 * are taken and dropped, for it would be lost half-written to an impatient second Ctrl-C. */
#ifndef PYROMETER_RECORD_LAUNCH_H
#define PYROMETER_RECORD_LAUNCH_H

#include "meter/meter.h"
#include "record/session.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

/* A file that would grow past the limit of the user (ulimit -f) is from now on an error of the call that
 * wanted it, not our end. To be called before the first file is made. */
int launch_survive_limits(void);

/* Installs the handlers. `forward`: for a child of ours; else SIGINT, SIGTERM, SIGHUP ask us to stop. Before this
 * process becomes a subreaper. */
int launch_watch_signals(bool forward);

/* Puts the handlers back as they were found, once the recording is written: what comes from now on is for us. */
void launch_unwatch_signals(void);

/* Before anything is made or replaced: is there such a command? 0 if it may be executed as far as one can see from here, else the errno
 * that execvp would give. */
int launch_find(const char *name);

/* Forks and executes argv with the signals as we found them and PYROMETER_ACTIVE=<our pid> in its
 * environment, and what a guest needs if there is a session (or NULL); a meter (or NULL) is told. 0, or the errno of what kept it from
 * starting (nothing is left of it then). */
int launch_start(char *const *argv, const struct session *session, struct meter *meter,
                 pid_t *ret_pid);

/* What a shell would say of a command that did not start. */
static inline int launch_exit_status(int error)
{
    return error == ENOENT ? 127 : 126;
}

/* Sends on what has arrived for the child. */
void launch_forward_signals(pid_t child);

/* Has a child ended since the last call? */
bool launch_take_child_event(void);

/* Were we asked to stop? */
bool launch_take_stop_request(void);

#endif
