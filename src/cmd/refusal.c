#include "cmd/refusal.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "record/rights.h"

#include <errno.h>
#include <limits.h>

int cmd_parse_pid(const char *text, pid_t *ret)
{
    char *end;
    errno = 0;
    long pid = strtol(text, &end, 10);
    if (end == text || *end || errno || pid <= 0 || pid > INT_MAX)
        return cmd_fail(CMD_USAGE, "'%s' is not the number of a process", text);
    *ret = (pid_t)pid;
    return 0;
}

bool cmd_is_refusal(int code)
{
    return code == E_NOPROC || code == E_NOTPYTHON || code == E_NOTREADY || code == E_REPLACED ||
           code == E_PERM || code == E_VERSION || code == E_BADMEM;
}

int cmd_process_refused(pid_t pid, int code)
{
    char refusal[640];
    switch (code) {
    case E_NOPROC:
        return cmd_fail(CMD_FAILED, "there is no process %d", (int)pid);
    case E_NOTPYTHON:
        return cmd_fail(CMD_FAILED, "process %d is not a Python process", (int)pid);
    case E_NOTREADY:
        return cmd_fail(CMD_FAILED,
                        "process %d runs no Python code: its interpreter is starting or ending; "
                        "try again",
                        (int)pid);
    case E_PERM:
    case E_VERSION:
    case E_REPLACED:
        rights_refusal(pid, code, refusal, sizeof refusal);
        return cmd_fail(CMD_FAILED, "%s", refusal);
    default:
        return cmd_fail(CMD_FAILED, "cannot read process %d: %s", (int)pid, err_text(code));
    }
}
