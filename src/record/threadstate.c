#include "record/threadstate.h"

#include "format/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_task_file(pid_t pid, uint32_t tid, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/task/%u/%s", (int)pid, tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The file's beginning as text; false if it cannot be read any more. */
static bool read_again(int fd, char *dst, size_t size)
{
    ssize_t n = fd < 0 ? -1 : pread(fd, dst, size - 1, 0);
    if (n <= 0)
        return false;
    dst[n] = 0;
    return true;
}

void threadstate_open(struct threadstate *s, pid_t pid, uint32_t tid)
{
    *s = (struct threadstate){.syscall_fd = -1, .schedstat_fd = -1, .stat_fd = -1};
    if (!tid)
        return;
    char probe[16];
    s->syscall_fd = open_task_file(pid, tid, "syscall");
    if (!read_again(s->syscall_fd, probe, sizeof probe)) {
        if (s->syscall_fd >= 0)
            close(s->syscall_fd);
        s->syscall_fd = -1;
        s->stat_fd = open_task_file(pid, tid, "stat");
    }
    s->schedstat_fd = open_task_file(pid, tid, "schedstat");
}

void threadstate_close(struct threadstate *s)
{
    int *fds[] = {&s->syscall_fd, &s->schedstat_fd, &s->stat_fd};
    for (int i = 0; i < 3; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* "run_ns wait_ns runs". The last counts how often it was put on a CPU; the first also grows when it leaves one, so that it tells of a
 * thread that was running when last asked and went to sleep since. */
bool threadstate_slept(struct threadstate *s)
{
    char text[sizeof s->schedstat];
    if (!read_again(s->schedstat_fd, text, sizeof text))
        return false;
    bool slept = strcmp(text, s->schedstat) == 0;
    const char *runs = strrchr(text, ' ');
    s->schedstat[0] = 0;
    if (runs && strtoull(runs, NULL, 10) != 0) /* all zeros: the kernel does not count */
        memcpy(s->schedstat, text, strlen(text) + 1);
    return slept;
}

/* The letter stands behind the command's name, which may itself hold any character. */
static char read_letter(int stat_fd)
{
    char text[512];
    if (!read_again(stat_fd, text, sizeof text))
        return 0;
    const char *p = strrchr(text, ')');
    return p && p[1] == ' ' ? p[2] : 0;
}

char threadstate_letter(pid_t pid, uint32_t tid)
{
    int fd = open_task_file(pid, tid, "stat");
    char letter = read_letter(fd);
    if (fd >= 0)
        close(fd);
    return letter;
}

enum threadstate_verdict threadstate_blocked_in(const struct threadstate *s,
                                                struct threadstate_call *ret)
{
    char text[192], *end;
    if (!read_again(s->syscall_fd, text, sizeof text))
        return THREADSTATE_UNKNOWN;
    if (text[0] == 'r') /* "running" */
        return THREADSTATE_RUNNING;
    ret->number = strtol(text, &end, 10);
    ret->word = strtoull(end, NULL, 16);
    return THREADSTATE_BLOCKED;
}

bool threadstate_waits_gil(const struct threadstate_call *call, uint64_t gil_begin,
                           uint64_t gil_end)
{
    return call->number == SYS_futex && call->word >= gil_begin && call->word < gil_end;
}

bool threadstate_has_ended(const struct threadstate *s)
{
    char byte;
    int fd = s->syscall_fd >= 0 ? s->syscall_fd : s->stat_fd;
    return fd >= 0 && pread(fd, &byte, 1, 0) < 0 && errno == ESRCH;
}

unsigned threadstate_read(struct threadstate *s, uint64_t gil_begin, uint64_t gil_end)
{
    struct threadstate_call call;
    switch (threadstate_blocked_in(s, &call)) {
    case THREADSTATE_RUNNING:
        return RECORD_ON_CPU;
    case THREADSTATE_BLOCKED:
        return threadstate_waits_gil(&call, gil_begin, gil_end) ? RECORD_WAITS_GIL : 0;
    default: {
        s->ended = threadstate_has_ended(s);
        char letter = read_letter(s->stat_fd);
        return letter && letter != 'R' ? 0 : RECORD_ON_CPU;
    }
    }
}
