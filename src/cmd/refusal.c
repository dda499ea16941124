#include "cmd/refusal.h"

#include "base/err.h"
#include "base/io.h"
#include "cmd/cmd.h"
#include "record/rights.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The process that a number belongs to, which may be a thread's; 0: nobody's. */
static long process_of(long number)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%ld/status", number);
    const char *found = io_read_text(path, text, sizeof text) > 0 ? strstr(text, "\nTgid:") : NULL;
    return found ? strtol(found + strlen("\nTgid:"), NULL, 10) : 0;
}

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

int cmd_check_process(pid_t pid)
{
    long whole = process_of(pid);
    if (!whole || whole == pid)
        return 0;
    return cmd_fail(CMD_FAILED, "%d is a thread of process %ld: give that number", (int)pid, whole);
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
