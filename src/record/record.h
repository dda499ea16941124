/* Recording a program: the whole interface of this folder to the commands.
 *
 * One thread does everything but compression: it wakes at jittered moments, looks at every Python
 * thread of every process of the program, and appends what it saw. The program is never stopped,
 * written to, or waited for; if the recorder dies, the program does not notice. */
#ifndef PYROMETER_RECORD_RECORD_H
#define PYROMETER_RECORD_RECORD_H

#include "format/record.h"

#include <stdbool.h>
#include <sys/types.h>

#define RECORD_DEFAULT_HZ 1000.0
#define RECORD_MAX_HZ     1000000.0

struct meter;

struct record_options {
    const char *path; /* the recording */
    bool force;       /* may replace it */
    uint8_t run_id[16];
    uint32_t instruments;  /* enum ring_instrument: what is asked of guests; 0: nobody is sent in */
    const char *selection; /* whose lines and calls: as ring_session has it; NULL: everybody's */
    uint64_t min_ns;       /* the timeline leaves out calls shorter than this, */
    uint32_t max_depth;    /* and those that are deeper; 0: none */
    uint64_t last_ns;      /* and all but so much before the end; 0: nothing */
    bool memory_events;    /* of memory every event is kept, not only sums */
    bool sample;           /* take stacks from outside, `hz` times a second */
    double hz;
    double seconds;      /* stop recording after this; 0: to the end */
    char *const *argv;   /* record_run: the command, NULL-terminated */
    pid_t pid;           /* record_attach: the target */
    int invite_fd;       /* record_invite: where the invitation is written */
    const char *version; /* ours, for the file */
    struct meter *meter; /* record_run: told of the command; borrowed; NULL: nobody meters it */
    /* record_attach: called when looking at the target has begun; may be NULL. How many samples there are is told in base/progress.h. */
    void (*started)(void);
    /* Called when the program is over or let go, and the file not yet whole; may be NULL. */
    void (*finishing)(void);
    bool unsafe_no_check; /* test seam: believe every stack */
};

struct record_result {
    int exit_status;  /* record_run: as a shell would see it; 127 not found, 126 not executable */
    int exec_error;   /* errno if the command could not be started, else 0 */
    int write_error;  /* E_ code if the recording is not complete, else 0 */
    bool interrupted; /* record_attach: ended by a signal to us */
    struct record_stats stats;
};

/* Starts the command and records it to its end. 0 with the result, or a negative code if the recording
 * could not be begun (then the command was not started). */
int record_run(const struct record_options *options, struct record_result *ret);

/* Starts the command and only meters it: no profile, no file. */
int record_metered(char *const *argv, struct meter *meter, struct record_result *ret);

/* Records a process that already runs, and its children, until it ends, the time is up, or SIGINT,
 * SIGTERM or SIGHUP reaches us. E_NOPROC, E_NOTPYTHON, E_PERM, E_VERSION before anything is written. */
int record_attach(const struct record_options *options, struct record_result *ret);

/* Waits for a guest in the process `pid`, which asks for it itself (`pyrometer.memory` in Python): writes the
 * invitation and the path of the guest's library, two lines, to `invite_fd`, and records what the guest tells until the process has
 * ended or one of these signals reaches us. The process is not looked at from outside. */
int record_invite(const struct record_options *options, struct record_result *ret);

#endif
