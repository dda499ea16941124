/* pyrometer attach: record a program that already runs. */
#include "base/err.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "cmd/recording.h"
#include "cmd/refusal.h"
#include "remote/remote.h"

#include <limits.h>

/* The process has started us itself, and lets a guest in. */
static int wait_for_guest(struct cmd_recording *r, pid_t pid, uint64_t fd)
{
    struct record_options o;
    struct record_result result;
    if (!r->memory)
        return cmd_fail(CMD_USAGE, "--invite-fd goes with --memory");
    if (fd < 1 || fd > INT_MAX)
        return cmd_fail(CMD_USAGE, "--invite-fd needs an open file descriptor above 0");
    int status = cmd_recording_begin(r, &o);
    if (status)
        return status;
    o.pid = pid;
    o.invite_fd = (int)fd;
    int rc = record_invite(&o, &result);
    if (rc < 0)
        return cmd_recording_refused(r, rc);
    cmd_recording_end(r, &result);
    return result.write_error ? CMD_FAILED : CMD_OK;
}

/* The program is at another terminal, or does not mind: this one is ours. */
static void show_samples(void)
{
    progress_begin("taking samples", 0);
    cmd_progress_begin();
}

int cmd_attach(int argc, char **argv)
{
    struct cmd_recording r = {0};
    uint64_t invite_fd = 0;
    bool has_invite_fd = false;
    const struct cmd_option options[] = {
        {"sample", 0, CMD_OPT_TEXT, &r.sample, NULL},
        {"output", 'o', CMD_TEXT, &r.output, NULL},
        {"force", 0, CMD_FLAG, &r.force, NULL},
        {"for", 0, CMD_REAL, &r.seconds, &r.has_seconds},
        {"quiet", 0, CMD_FLAG, &r.quiet, NULL},
        {"memory", 0, CMD_OPT_TEXT, &r.memory, NULL},
        {"invite-fd", 0, CMD_COUNT, &invite_fd, &has_invite_fd},
        {NULL, 0, CMD_FLAG, NULL, NULL},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    pid_t pid;
    if (operands != 1)
        return cmd_fail(CMD_USAGE, "attach needs the number of one process");
    int status = cmd_parse_pid(argv[first], &pid);
    if (status)
        return status;
    if (has_invite_fd) {
        status = wait_for_guest(&r, pid, invite_fd);
        cmd_recording_release(&r);
        return status;
    }
    if (r.memory)
        return cmd_fail(CMD_USAGE,
                        "attach --memory needs a program that lets us in by itself: start it with "
                        "'pyrometer run --memory', or use pyrometer.memory() in it");
    status = cmd_check_process(pid);
    if (status)
        return status;
    struct remote *probe = NULL; /* before anything is made for a process that cannot be read */
    int probed = remote_open_patiently(pid, &probe);
    remote_close(probe);
    if (probed < 0)
        return cmd_process_refused(pid, probed);
    struct record_options o;
    status = cmd_recording_begin(&r, &o);
    if (status == 0) {
        o.pid = pid;
        o.started = r.quiet ? NULL : show_samples;
        struct record_result result;
        int rc = record_attach(&o, &result);
        if (rc < 0 && cmd_is_refusal(rc))
            status = cmd_process_refused(pid, rc);
        else if (rc < 0)
            status = cmd_recording_refused(&r, rc);
        else
            cmd_recording_end(&r, &result);
        if (rc == 0 && result.write_error) /* unlike run's, the status is ours alone */
            status = CMD_FAILED;
    }
    cmd_recording_release(&r);
    return status;
}
