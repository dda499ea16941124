/* pyrometer attach: record a program that already runs. */
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/recording.h"
#include "cmd/refusal.h"
#include "remote/remote.h"

int cmd_attach(int argc, char **argv)
{
    struct cmd_recording r = {0};
    const struct cmd_option options[] = {
        {"sample", 0, CMD_OPT_TEXT, &r.sample, NULL},
        {"output", 'o', CMD_TEXT, &r.output, NULL},
        {"force", 0, CMD_FLAG, &r.force, NULL},
        {"for", 0, CMD_REAL, &r.seconds, &r.has_seconds},
        {"quiet", 0, CMD_FLAG, &r.quiet, NULL},
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
    struct remote *probe = NULL; /* before anything is made for a process that cannot be read */
    int probed = remote_open(NULL, pid, &probe);
    remote_close(probe);
    if (probed < 0)
        return cmd_process_refused(pid, probed);
    struct record_options o;
    status = cmd_recording_begin(&r, &o);
    if (status == 0) {
        o.pid = pid;
        struct record_result result;
        int rc = record_attach(&o, &result);
        if (rc < 0 && cmd_is_refusal(rc))
            status = cmd_process_refused(pid, rc);
        else if (rc < 0)
            status = cmd_recording_refused(&r, rc);
        else
            cmd_recording_end(&r, &result);
    }
    cmd_recording_release(&r);
    return status;
}
