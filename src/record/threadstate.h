/* What the kernel says a thread is doing: running, or blocked and where. Inside src/record.
 *
 * Two small files of /proc stay open per thread: `syscall` says "running" or names the system call a
 * thread is blocked in, arguments included, which is how a wait for the GIL is recognised;
 * `schedstat` counts how often the thread got a CPU, which tells a thread that has slept all the time
 * since the last look, so that it need not be looked at again. Where the kernel lacks one of them
 * the answers are less precise, never wrong: unknown is counted as running. */
#ifndef PYROMETER_RECORD_THREADSTATE_H
#define PYROMETER_RECORD_THREADSTATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct threadstate {
    int syscall_fd, schedstat_fd, stat_fd; /* -1: not to be had */
    uint64_t runs;                         /* as of the last threadstate_slept() */
    bool runs_known;
};

void threadstate_open(struct threadstate *s, pid_t pid, uint32_t tid);
void threadstate_close(struct threadstate *s);

/* Has it been off the CPU ever since the last call? False if that is not known. */
bool threadstate_slept(struct threadstate *s);

/* RECORD_ON_CPU, RECORD_WAITS_GIL or 0 (blocked elsewhere). gil_begin..gil_end: address range of the
 * GIL's lock, or 0, 0. */
unsigned threadstate_read(struct threadstate *s, uint64_t gil_begin, uint64_t gil_end);

#endif
