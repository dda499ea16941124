/* The processes of the program, looked at from time to time: how much memory they take, how many
 * threads they have, what CPU each has used. Inside src/meter; one thread owns it.
 *
 * All descendants of this process belong to the program: while a command runs we are a subreaper,
 * so also those whose parent has died. Births are noticed by the youngest process number of the
 * system (/proc/loadavg), as the recorder does it. */
#ifndef PYROMETER_METER_TREE_H
#define PYROMETER_METER_TREE_H

#include "base/buf.h"
#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

struct remote;

/* A process, as last seen. */
struct tree_process {
    pid_t pid, parent;
    char name[64];
    char command[160];    /* the beginning of its command line, blanks between */
    uint64_t start_ticks; /* tells a number that is used again */
    uint64_t user_ticks, system_ticks;
    uint64_t peak_kb, threads; /* VmHWM; most threads seen */
    bool gone;
    struct remote *remote; /* owned by python.c; NULL: none */
    void *marks;           /* its as well */
    uint64_t probe_ns, look_ns;
    unsigned probes;
    bool not_python;
};

/* Sums over time: a size in KiB times ns. */
struct tree_sums {
    double ns;                                 /* how long */
    double text, data, stack, total, resident; /* of the largest process at each moment */
    double tree_resident;                      /* of all together */
};

struct tree {
    VEC(struct tree_process) list; /* every one that was seen */
    size_t dropped;                /* more than are kept */
    struct tree_sums sums;
    uint64_t peak_tree_kb, peak_threads, peak_swap_kb, peak_processes;
    uint64_t looks;
    uint64_t last_ns; /* of the last look; 0: none */
    uint64_t youngest, scan_ns;
    int loadavg_fd;
};

void tree_init(struct tree *t);
void tree_release(struct tree *t);
void tree_add(struct tree *t, pid_t pid, pid_t parent);

/* One look at all of them. */
void tree_look(struct tree *t, uint64_t now_ns);

/* Looks for new processes only. */
void tree_births(struct tree *t, uint64_t now_ns);

#endif
