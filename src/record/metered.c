/* A command that is only metered: started, waited for, reaped. */
#include "base/attr.h"
#include "base/err.h"
#include "meter/meter.h"
#include "record/launch.h"
#include "record/record.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Collects every child that has ended; true if the command was among them. */
static bool reap(struct meter *meter, pid_t root, int *ret_exit_status)
{
    int status;
    struct rusage usage;
    pid_t pid;
    bool ended = false;
    while ((pid = meter_wait(meter, &status, &usage)) > 0) {
        if (pid != root)
            continue;
        *ret_exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        ended = true;
    }
    return ended;
}

/* Signals are let in only while we sleep, so none arrives between the look and the sleep. */
static int wait_for(struct meter *meter, pid_t root)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int exit_status = 0;
    for (bool ended = false; !ended;) {
        launch_forward_signals(root);
        launch_take_child_event();
        ended = reap(meter, root, &exit_status);
        if (!ended)
            ppoll(NULL, 0, NULL, &old);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return exit_status;
}

int record_metered(char *const *argv, struct meter *meter, struct record_result *ret)
{
    struct record_result result = {0};
    pid_t root;
    int rc = launch_survive_limits();
    if (rc == 0)
        rc = launch_watch_signals(true);
    if (rc < 0)
        return rc;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    result.exec_error = launch_start(argv, NULL, meter, &root);
    if (result.exec_error)
        result.exit_status = launch_exit_status(result.exec_error);
    else
        result.exit_status = wait_for(meter, root);
    meter_ended(meter, result.exit_status);
    launch_unwatch_signals();
    *ret = result;
    return 0;
}
