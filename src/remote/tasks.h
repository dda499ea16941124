/* The kernel's numbers of a process's threads. Inside src/remote only.
 *
 * A process in a pid namespace of its own (a container, seen from the host) counts its threads otherwise than we do: what it
 * has noted of itself are the inner numbers, and /proc has the outer ones. */
#ifndef PYROMETER_REMOTE_TASKS_H
#define PYROMETER_REMOTE_TASKS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct task_number {
    uint32_t inner, outer;
};

struct tasks {
    bool nested; /* the process has numbers of its own */
    bool fresh;  /* the list is of this refresh: what is not in it is not there */
    VEC(struct task_number) list;
};

/* Asks whether the process has numbers of its own. */
void tasks_init(struct tasks *t, pid_t pid);
void tasks_release(struct tasks *t);

/* Our number of the thread that calls itself `tid`; 0 if the process has none. */
uint32_t tasks_find(struct tasks *t, pid_t pid, uint64_t tid);

/* The innermost of the numbers in a line "NSpid:" of a status file; *ret_count is how many there are, 0 if there is no such line. */
uint32_t tasks_inner_number(const char *status, size_t *ret_count);

#endif
