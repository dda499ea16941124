#include "record/procfs.h"

#include "base/io.h"

#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* "Tgid:\t123" → 123; 0 if the field is not there */
static uint64_t status_field(const char *text, const char *name)
{
    const char *p = strstr(text, name);
    return p ? strtoull(p + strlen(name), NULL, 10) : 0;
}

enum procfs_number procfs_examine(uint64_t number, pid_t *ret_parent)
{
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%llu/status", (unsigned long long)number);
    if (io_read_text(path, text, sizeof text) <= 0)
        return PROCFS_GONE;
    if (status_field(text, "\nTgid:") != number)
        return PROCFS_THREAD;
    *ret_parent = (pid_t)status_field(text, "\nPPid:");
    return strstr(text, "\nVmSize:") ? PROCFS_PROCESS
                                     : PROCFS_ENDED; /* it has no memory any more */
}

bool procfs_exists(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return access(path, F_OK) == 0;
}

struct procfs_image procfs_image(pid_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat(path, &st) == 0 ? (struct procfs_image){st.st_dev, st.st_ino}
                                : (struct procfs_image){0};
}

bool procfs_same_image(struct procfs_image a, struct procfs_image b)
{
    return a.ino == b.ino && a.dev == b.dev;
}

bool procfs_share_memory(pid_t a, pid_t b)
{
    return syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0) == 0;
}

void procfs_command(pid_t pid, struct buf *out)
{
    char path[64];
    size_t start = out->len;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    io_read_file(path, out);
    while (out->len > start && out->data[out->len - 1] == 0)
        out->len--;
    for (size_t i = start; i < out->len; i++)
        if (out->data[i] == 0)
            out->data[i] = ' ';
}

uint64_t procfs_youngest(int loadavg_fd)
{
    char text[128];
    ssize_t n = loadavg_fd < 0 ? -1 : pread(loadavg_fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = 0;
    const char *last = strrchr(text, ' ');
    return last ? strtoull(last + 1, NULL, 10) : 0;
}
