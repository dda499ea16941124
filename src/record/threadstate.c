#include "record/threadstate.h"

#include "format/record.h"

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

bool threadstate_slept(struct threadstate *s)
{
    char text[96];
    /* "run_ns wait_ns runs": the third counts how often it was put on a CPU */
    if (!read_again(s->schedstat_fd, text, sizeof text))
        return false;
    const char *p = strrchr(text, ' ');
    uint64_t runs = p ? strtoull(p + 1, NULL, 10) : 0;
    bool slept = s->runs_known && p && runs == s->runs;
    s->runs = runs;
    s->runs_known = p != NULL && runs != 0; /* all zeros: the kernel does not count */
    return slept;
}

/* Without `syscall`: the letter after the command name, which may itself hold any character. */
static unsigned state_from_letter(const struct threadstate *s)
{
    char text[512];
    if (!read_again(s->stat_fd, text, sizeof text))
        return RECORD_ON_CPU;
    const char *p = strrchr(text, ')');
    return p && p[1] == ' ' && p[2] != 'R' ? 0 : RECORD_ON_CPU;
}

unsigned threadstate_read(struct threadstate *s, uint64_t gil_begin, uint64_t gil_end)
{
    char text[192];
    if (!read_again(s->syscall_fd, text, sizeof text))
        return state_from_letter(s);
    if (text[0] == 'r') /* "running" */
        return RECORD_ON_CPU;
    char *end;
    long number = strtol(text, &end, 10);
    if (number != SYS_futex || gil_begin == gil_end)
        return 0;
    uint64_t word = strtoull(end, NULL, 16); /* what it waits on */
    return word >= gil_begin && word < gil_end ? RECORD_WAITS_GIL : 0;
}
