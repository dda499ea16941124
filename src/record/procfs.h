/* What the kernel says of a process, for procs.c: whose number it is, which program it runs. Inside src/record. */
#ifndef PYROMETER_RECORD_PROCFS_H
#define PYROMETER_RECORD_PROCFS_H

#include "base/buf.h"

#include <stdbool.h>
#include <sys/types.h>

/* An ended process keeps its number until somebody has waited for it. */
enum procfs_number { PROCFS_GONE, PROCFS_THREAD, PROCFS_PROCESS, PROCFS_ENDED };

/* Whose number is it? The parent is given for a process only. */
enum procfs_number procfs_examine(uint64_t number, pid_t *ret_parent);

bool procfs_exists(pid_t pid);

/* Which program a process runs: tells exec. */
struct procfs_image {
    dev_t dev;
    ino_t ino;
};

/* Zero for a process that has ended, also if nobody has waited for it. */
struct procfs_image procfs_image(pid_t pid);
bool procfs_same_image(struct procfs_image a, struct procfs_image b);

/* True if both have one memory: a child between vfork() or posix_spawn() and its exec, whose stacks are still its parent's. False
 * also if the kernel does not tell. */
bool procfs_share_memory(pid_t a, pid_t b);

/* Appends the command line, arguments joined by blanks; what does not fit is cut off. */
void procfs_command(pid_t pid, struct buf *out);

/* The number of the youngest process or thread of the system, from an open /proc/loadavg; 0: not known. */
uint64_t procfs_youngest(int loadavg_fd);

#endif
