/* The processes of the program: found, probed, followed to their end. Inside src/record.
 *
 * New processes are noticed without scanning: /proc/loadavg ends with the number of the youngest
 * process or thread of the system, so one short read says whether anything was born, and
 * the numbers since the last look are all there is to examine. A child whose parent dies at once is
 * handed to us (we are a subreaper while we run a command), so it is still recognised as ours.
 * A new process is probed until it proves to be Python, something else, or is gone. */
#ifndef PYROMETER_RECORD_PROCS_H
#define PYROMETER_RECORD_PROCS_H

#include "record/target.h"

struct procs;

/* `adopt`: processes whose parent is us belong to the program, too (record_run). */
int procs_new(struct target_shared *shared, bool adopt, struct procs **ret);
void procs_free(struct procs *p);

/* Puts a process (and the descendants it has) under watch. */
int procs_add_root(struct procs *p, pid_t pid, uint64_t now_ns);

/* The same for a root that has been probed already; takes over `remote`. */
int procs_add_open(struct procs *p, struct remote *remote, uint64_t now_ns);

/* One tick: notices births and deaths, probes, and looks at every Python process. */
void procs_tick(struct procs *p, uint64_t now_ns);

/* The same without looking at stacks, for the time between two ticks that are far apart: a child may come and go in
 * it, and the process that we are attached to may end. */
void procs_watch(struct procs *p, uint64_t now_ns);

/* Writes open runs and fills in the counters. */
void procs_flush(struct procs *p);

/* The number in the file of a process that a guest speaks for, also if it has ended meanwhile; made up
 * from what the guest says if it came and went between two looks. */
uint32_t procs_id_of(struct procs *p, pid_t pid, pid_t parent, const char *python,
                     uint64_t start_ns);

/* Where the files of a process are, while it is being looked at; else NULL. Borrowed. */
struct sources_place *procs_place(const struct procs *p, pid_t pid);

/* Is this process still under watch? */
bool procs_alive(const struct procs *p, pid_t pid);

/* How many that are Python run now. */
uint64_t procs_running(const struct procs *p);

/* Someone was reaped or left: note its end now. */
void procs_note_exit(struct procs *p, pid_t pid, uint64_t now_ns);

#endif
