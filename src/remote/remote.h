/* A Python process seen from outside: read-only, never stopped.
 *
 * Life: remote_open (find the interpreter in a process) → remote_sample_thread again and again →
 * remote_close. Everything is read with process_vm_readv; nothing is written, no ptrace. Memory of
 * another process is hostile: every pointer may be garbage, every length has a maximum, every walk is
 * bounded. One thread owns a struct remote. */
#ifndef PYROMETER_REMOTE_REMOTE_H
#define PYROMETER_REMOTE_REMOTE_H

#include "remote/code.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pylayout;
struct remote;

enum {
    REMOTE_MAX_FRAMES = 20000, /* frames of one stack; what is above is cut and marked damaged */
    REMOTE_MAX_THREADS = 8192, /* Python threads of one process */
    REMOTE_MAX_INTERPRETERS = 256,
    REMOTE_MAX_TRIES = 16, /* looks at a moving stack before it is kept as moving */
};

/* Remembers which files hold an interpreter; for a caller that opens many processes. */
struct remote_finder;
struct remote_finder *remote_finder_new(void); /* NULL without memory, which is no error */
void remote_finder_free(struct remote_finder *f);

/* Finds the interpreter of `pid`. `finder` may be NULL. E_NOTPYTHON: another kind of program (so far: it may exec).
 * E_NOTREADY: Python, but not initialised yet. E_PERM: no right to read. E_NOPROC: gone. */
int remote_open(struct remote_finder *finder, pid_t pid, struct remote **ret);
/* The same, of a process that somebody has named: one that is just starting, or whose threads come and go so quickly that
 * their list made no sense, is asked again for a second. */
int remote_open_patiently(pid_t pid, struct remote **ret);
void remote_close(struct remote *r);

pid_t remote_pid(const struct remote *r);
const struct pylayout *remote_layout(const struct remote *r); /* borrowed */
const char *remote_version(const struct remote *r);           /* "3.11.7", or "3.11" */

/* Switches the consistency check off: only for the test that proves the check is needed. */
void remote_set_unsafe(struct remote *r, bool unsafe);

/* How long to look again at a stack that moves, in bounds (stack.c). Where samples follow each
 * other quickly, one that takes the time of the next leaves out what is there when stacks move most. */
void remote_set_patience(struct remote *r, uint64_t ns);

/* A Python thread, as it was at the last refresh. */
struct remote_thread {
    uint64_t tstate;      /* its PyThreadState, in the target */
    uint64_t ident;       /* threading.get_ident() */
    uint32_t tid;         /* the kernel's id; 0 if it could not be found */
    uint32_t interpreter; /* id of its interpreter */
    uint32_t serial;      /* never used again for another thread of this process */
};

/* Reads the list of threads anew. E_NOTREADY when no interpreter or thread exists (starting up or
 * finalizing); E_NOPROC, E_BADMEM when the process is gone or became something else. */
int remote_refresh_threads(struct remote *r);

/* A quick look at the list heads: false if no thread can have been added since the last refresh. */
bool remote_threads_may_have_changed(struct remote *r);
size_t remote_thread_count(const struct remote *r);
const struct remote_thread *remote_thread(const struct remote *r, size_t index);

/* The kernel has no such task any more. If the next refresh finds the same thread state with the same ident all the same, it is another
 * thread: both addresses are used again. */
void remote_thread_has_ended(struct remote *r, size_t index);

/* A frame of a sample, leaf first. */
struct remote_frame {
    uint32_t code; /* index into the code table, or REMOTE_CODE_UNREADABLE */
    int32_t line;  /* 0: not known */
};
#define REMOTE_CODE_UNREADABLE UINT32_MAX

struct remote_sample {
    bool unchanged; /* the same frames as this thread's last sample: `frames` are those */
    bool moving;    /* marked: `frames` hold only the part (towards the root) that held still */
    bool damaged;   /* some frame could not be read */
    bool holds_gil;
    bool gil_known;
    uint32_t tries;  /* 1: the first look was good */
    uint32_t shared; /* frames, counted from the root, that are as in this thread's last sample */
    uint32_t depth;
    const struct remote_frame *frames; /* borrowed until the next call for this thread */
};

/* Looks at one thread. 0 with the sample (depth may be 0: no Python code runs there just now), or
 * E_NOTREADY (that thread is no more: refresh), E_NOPROC, E_PERM, E_BADMEM. */
int remote_sample_thread(struct remote *r, size_t index, struct remote_sample *ret);

/* Does every instruction of this interpreter take longer while a profile function is set? */
bool remote_slows_instructions(const struct remote *r);

/* Instructions that run one after the other, by what they do (opcodes.h). Those that calls consist of are left out. */
struct remote_block {
    uint32_t begin; /* where in its code */
    uint16_t moves, stores, iterations, arithmetic, divisions, comparisons, names, attributes,
        items, others, calls;
    uint16_t counted; /* calls and loops as remote_instruction counts them */
};

/* Of a code object, on 3.11 and while the guest keeps it below 0 (agent/codes.h): goes up by one with each of its calls and turns of its
 * loops, and starts anew now and then. 0: it is not kept. */
struct remote_count {
    uint32_t code;
    int16_t count;
};

/* Where the running thread was found. */
enum { REMOTE_COUNTS = 4 };
struct remote_instruction {
    size_t thread; /* its index */
    uint32_t code;
    bool suspends; /* it is a generator's or coroutine's */
    bool moves;    /* it is a move */
    struct remote_block block;
    /* known also if it was found nowhere: of those where it was found last */
    struct remote_count count[REMOTE_COUNTS];
    size_t counts;
};

/* Looks at whoever holds the GIL. 1 with the instruction; 0 if nobody does, or it says nothing; or a negative code as
 * remote_sample_thread(). Only where remote_slows_instructions(), and after a refresh of the threads. */
int remote_running_instruction(struct remote *r, uint64_t now_ns, struct remote_instruction *ret);

/* The code objects met so far; an index is never used again for another code object. */
size_t remote_code_count(const struct remote *r);
const struct remote_code *remote_code(const struct remote *r, uint32_t index);

/* Address range of the lock structure of the GIL that `thread` competes for; false if not known. A
 * thread that waits in a futex inside it waits for the GIL. */
bool remote_gil_range(const struct remote *r, size_t thread_index, uint64_t *ret_begin,
                      uint64_t *ret_end);

/* The text that the program's linecache has for a file name that is no file's (notebooks, generated
 * code), at most `max` bytes; owned by the caller. NULL if there is none or it cannot be read. */
char *remote_linecache_text(struct remote *r, const char *file, size_t max, size_t *ret_len);

/* Name of a thread as the threading module knows it; false if it has none. */
bool remote_thread_name(struct remote *r, size_t thread_index, char *dst, size_t size);

#endif
