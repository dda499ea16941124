#include "meter/keyboard.h"

#include "base/attr.h"
#include "base/io.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

enum { ENTRIES_MAX = 4096 };

static bool is_terminal(pid_t pid, const char *fd, const char *terminal)
{
    char path[64], link[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%.20s", (int)pid, fd);
    ssize_t n = readlink(path, link, sizeof link - 1);
    if (n <= 0)
        return false;
    link[n] = '\0';
    return strcmp(link, terminal) == 0;
}

/* A descriptor above the standard ones. */
static bool has_opened(pid_t pid, const char *terminal)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    bool found = false;
    int left = ENTRIES_MAX;
    for (const struct dirent *e; dir && !found && left-- && (e = readdir(dir));)
        found = isdigit((unsigned char)e->d_name[0]) && strtol(e->d_name, NULL, 10) > 2 &&
                is_terminal(pid, e->d_name, terminal);
    if (dir)
        closedir(dir);
    return found;
}

static bool is_wait(long call)
{
    static const long waits[] = {SYS_poll,     SYS_ppoll,      SYS_select,
                                 SYS_pselect6, SYS_epoll_wait, SYS_epoll_pwait};
    for (size_t i = 0; i < ARRAY_LEN(waits); i++)
        if (call == waits[i])
            return true;
    return false;
}

/* "0 0x3 0x7ffe… …": the number of the call, then its arguments; "running" tells nothing. */
static bool task_waits(pid_t pid, const char *task, const char *terminal)
{
    char path[96], text[256], fd[24];
    long call;
    unsigned long first;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/syscall", (int)pid, task);
    if (io_read_text(path, text, sizeof text) <= 0 || sscanf(text, "%ld %lx", &call, &first) != 2)
        return false;
    snprintf(fd, sizeof fd, "%lu", first);
    return call == SYS_read ? is_terminal(pid, fd, terminal)
                            : is_wait(call) && has_opened(pid, terminal);
}

bool keyboard_is_awaited(pid_t pid, const char *terminal)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    bool found = false;
    int left = ENTRIES_MAX;
    for (const struct dirent *e; dir && !found && left-- && (e = readdir(dir));)
        found = isdigit((unsigned char)e->d_name[0]) && task_waits(pid, e->d_name, terminal);
    if (dir)
        closedir(dir);
    return found;
}
