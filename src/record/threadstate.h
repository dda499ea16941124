/* What the kernel says a thread is doing: running, or blocked and where.
 *
 * Two small files of /proc stay open per thread: `syscall` says "running" or names the system call a
 * thread is blocked in, arguments included, which is how a wait for the GIL is recognised;
 * `schedstat` counts how often and how long the thread had a CPU, which tells a thread that has slept all the time
 * since the last look, so that it need not be looked at again. Where the kernel lacks one of them
 * the answers are less precise, never wrong: unknown is counted as running. */
#ifndef PYROMETER_RECORD_THREADSTATE_H
#define PYROMETER_RECORD_THREADSTATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct threadstate {
    int syscall_fd, schedstat_fd, stat_fd; /* -1: not to be had */
    char schedstat[96];                    /* as of the last threadstate_slept(); "": unknown */
    bool ended; /* found by threadstate_read(): there is no such task any more */
};

void threadstate_open(struct threadstate *s, pid_t pid, uint32_t tid);
void threadstate_close(struct threadstate *s);

/* Has it been off the CPU ever since the last call? False if that is not known. */
bool threadstate_slept(struct threadstate *s);

/* RECORD_ON_CPU, RECORD_WAITS_GIL or 0 (blocked elsewhere). gil_begin..gil_end: address range of the
 * GIL's lock, or 0, 0. */
unsigned threadstate_read(struct threadstate *s, uint64_t gil_begin, uint64_t gil_end);

/* What a thread is blocked in. */
struct threadstate_call {
    long number;   /* of the system call; negative: in none that could be named */
    uint64_t word; /* its first argument; for a futex, what it waits on */
};

enum threadstate_verdict { THREADSTATE_UNKNOWN, THREADSTATE_RUNNING, THREADSTATE_BLOCKED };

/* The same, in detail. `ret` is written only if it is blocked. */
enum threadstate_verdict threadstate_blocked_in(const struct threadstate *s,
                                                struct threadstate_call *ret);

/* Does a thread that is blocked so wait for the GIL, whose lock is at gil_begin..gil_end? */
bool threadstate_waits_gil(const struct threadstate_call *call, uint64_t gil_begin,
                           uint64_t gil_end);

/* Is there no such task any more? False if it was never found. */
bool threadstate_has_ended(const struct threadstate *s);

/* The letter that ps shows for a thread; 0 if it is not there any more. */
char threadstate_letter(pid_t pid, uint32_t tid);

#endif
