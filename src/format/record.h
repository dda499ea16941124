/* The records inside the chunks, as plain structs: what a writer is given and a reader gives back.
 * Their encoding (varints, deltas) is written in codec.c and drawn in docs/format.md. */
#ifndef PYROMETER_FORMAT_RECORD_H
#define PYROMETER_FORMAT_RECORD_H

#include <stddef.h>
#include <stdint.h>

/* Id 0 of every table is predefined and never written:
 * string 0 = "", code 0 = "<unknown>", stack 0 = the empty stack (the root of the trie). */
enum { RECORD_STRING_EMPTY = 0, RECORD_CODE_UNKNOWN = 0, RECORD_STACK_ROOT = 0 };

/* A code object, or a pseudo-frame such as `<moving>` (flag SPECIAL). Texts are string ids. */
struct record_code {
    uint32_t name;
    uint32_t qualname; /* 0 where the version has none */
    uint32_t file;
    uint32_t first_line;
    uint32_t flags; /* enum record_code_flag */
};

enum record_code_flag {
    RECORD_CODE_SPECIAL = 1,   /* not Python code: a note of the sampler about the stack */
    RECORD_CODE_C = 2,         /* a C function: it has no file and no lines */
    RECORD_CODE_GENERATOR = 4, /* may be suspended and resumed */
};

/* A node of the stack trie: "called from `parent`, in `code` at `line`". line 0: not known. The
 * parent's id is always smaller than the node's own. */
struct record_stack {
    uint32_t parent;
    uint32_t code;
    uint32_t line;
};

enum record_process_kind {
    RECORD_PROCESS_UNKNOWN = 0,    /* not looked at yet, or gone before it could be */
    RECORD_PROCESS_PYTHON = 1,     /* sampled */
    RECORD_PROCESS_OTHER = 2,      /* another kind of program */
    RECORD_PROCESS_REFUSED = 3,    /* Python or not: we have no right to read it */
    RECORD_PROCESS_UNSUPPORTED = 4 /* Python, but of a version we cannot read */
};

/* The last record for an id counts. Times in ns after the file's clock origin; 0 end: not seen. */
struct record_process {
    uint32_t id;
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t kind;    /* enum record_process_kind */
    uint32_t command; /* string id: arguments joined by spaces */
    uint32_t
        python_version; /* string id: "3.11.7", or "3.11" where the micro version is not known */
    uint64_t start_ns;
    uint64_t end_ns;
};

struct record_thread {
    uint32_t id;
    uint32_t process; /* id of its process */
    uint32_t tid;     /* the kernel's; 0: not known */
    uint32_t name;    /* string id, "" while not known */
    uint64_t ident;   /* Python's threading ident */
    uint32_t interpreter;
    uint64_t start_ns;
};

enum record_sample_state {
    RECORD_ON_CPU = 1 << 0,    /* running or ready to run */
    RECORD_HOLDS_GIL = 1 << 1, /* */
    RECORD_WAITS_GIL = 1 << 2, /* blocked in take_gil */
    RECORD_MOVING = 1 << 3,    /* marked: the stack changed during every try; leaf is `<moving>` */
    RECORD_DAMAGED = 1 << 4,   /* a frame could not be read; it stands as `<unreadable>` */
    RECORD_STATE_MASK = (1 << 5) - 1,
};

/* `count` consecutive samples of one thread with the same stack and state. `duration_ns` is the time
 * they stand for, from start_ns on: the sum of the gaps before each of them. */
struct record_sample {
    uint32_t thread;
    uint32_t stack;
    uint32_t state; /* enum record_sample_state */
    uint32_t count;
    uint64_t start_ns;
    uint64_t duration_ns;
};

/* Exact calls since the last such record for the same thread and stack: sums count. The stack's nodes
 * have no lines. Times are as they were stamped, the cost of the stamping included; the fact
 * `calibration` says what that was. */
struct record_calls {
    uint32_t thread;
    uint32_t stack;
    uint64_t calls;    /* of the function at its end, from the one above it */
    uint64_t resumes;  /* of generators and coroutines: goings on that were no calls */
    uint64_t self_ns;  /* time in that function, its callees' left out */
    uint64_t alive_ns; /* coroutines that have ended: from begin to end, waiting included */
    /* of self_ns: what probes cost that tell of no call, and instructions that a profile function slows down, by the guest's own
     * measure */
    uint64_t probes_ns;
};

/* Exact lines since the last such record for the same thread, code, line and callee: sums count.
 *
 * callee 0: the line itself. `hits` are line events, `own_ns` the time in the line with what it
 * called left out, `callee_ns` the time in what it called. line 0: a function before its first line.
 * callee not 0: what the line called. `hits` are calls, `callee_ns` the time in them, own_ns is 0.
 * Recursion: while a line (or a line's call of one function) is on the stack already, its callee time is
 * not counted again; so own_ns + callee_ns of a line is never more than the time that passed. */
struct record_line {
    uint32_t thread;
    uint32_t code;
    uint32_t line;
    uint32_t callee; /* code id */
    uint64_t hits;
    uint64_t own_ns;
    uint64_t callee_ns;
};

/* Who was asked for memory: name in JSON and in tables, what it is. */
#define RECORD_ALLOCATORS(X)                                                                       \
    X(MALLOC, "malloc", "malloc, and C++'s new")                                                   \
    X(CALLOC, "calloc", "calloc")                                                                  \
    X(REALLOC, "realloc", "realloc and reallocarray")                                              \
    X(POSIX_MEMALIGN, "posix_memalign", "posix_memalign")                                          \
    X(ALIGNED_ALLOC, "aligned_alloc", "aligned_alloc")                                             \
    X(MEMALIGN, "memalign", "memalign")                                                            \
    X(VALLOC, "valloc", "valloc")                                                                  \
    X(PVALLOC, "pvalloc", "pvalloc")                                                               \
    X(MMAP, "mmap", "pages mapped by mmap or mremap")                                              \
    X(BRK, "brk", "the heap moved by brk or sbrk, by the program itself")                          \
    X(PYTHON_RAW, "python raw", "PyMem_RawMalloc: Python's own, without its lock")                 \
    X(PYTHON_MEM, "python mem", "PyMem_Malloc: buffers of Python objects")                         \
    X(PYTHON_OBJECT, "python object", "PyObject_Malloc: Python objects")

enum record_allocator {
#define X(id, name, text) RECORD_ALLOCATOR_##id,
    RECORD_ALLOCATORS(X)
#undef X
        RECORD_ALLOCATOR_COUNT
};
enum { RECORD_MAX_ALLOCATORS = 32 }; /* of this and newer versions */

/* The allocator's name, or NULL for one we do not know. */
const char *record_allocator_name(uint32_t allocator);

enum record_memory_flag {
    RECORD_MEMORY_MARK = 1,    /* taken where the program has set a mark */
    RECORD_MEMORY_LAST = 2,    /* the process has ended */
    RECORD_MEMORY_SAMPLED = 4, /* counts and bytes are estimates, and have variances */
};

/* A checkpoint: what the memory of one process was at a moment. Its records of sizes and sites follow
 * it in its chunk. */
struct record_memory {
    uint32_t process;
    uint32_t flags; /* enum record_memory_flag */
    uint64_t time_ns;
    uint64_t live_bytes, live_count; /* allocated and not given back by then */
    uint64_t peak_bytes;             /* the most until then, or an estimate of it … */
    uint64_t peak_ns;                /* … and when */
};

/* Allocations of 2^bin to 2^(bin+1)-1 bytes (bin 0: of 0 or 1) since the checkpoint before: sums
 * count. */
struct record_sizes {
    uint32_t allocator; /* enum record_allocator, or one of a newer version */
    uint32_t bin;
    uint64_t count, bytes;
};

/* What one thread asked of one allocator at one stack (a site): since the checkpoint before, so
 * sums count; but the last `peak_*` do. A block belongs to the site that allocated it, whoever gives it
 * back. A realloc gives back the old block and allocates the new one. */
struct record_site {
    uint32_t thread;
    uint32_t stack;
    uint32_t allocator;          /* enum record_allocator, or one of a newer version */
    uint64_t count, bytes;       /* allocated */
    uint64_t freed, freed_bytes; /* of its blocks, given back */
    uint64_t brief, brief_bytes; /* of those, before their thread allocated anything else */
    uint64_t peak_count,
        peak_bytes;       /* of its blocks, alive at the high-water mark of its process */
    double variance;      /* of `bytes`, if that is an estimate; sums count */
    double live_variance; /* of what is alive by now; the last counts */
    double peak_variance; /* of `peak_bytes`; the last counts */
};

enum record_memory_event_kind {
    RECORD_MEMORY_ALLOCATE = 0,
    RECORD_MEMORY_FREE = 1,
    RECORD_MEMORY_SHRINK = 2, /* pages: a part of them is given back, or the last that is left */
};

/* One event of a process's memory. Slots stand for blocks: one that was given back is used again. */
struct record_memory_event {
    uint64_t time_ns; /* exact for one event in some */
    uint64_t size;    /* allocated, or given back of pages; not told of a free */
    uint32_t slot;
    uint32_t site; /* of an allocation: its place in the block's list; else UINT32_MAX */
    enum record_memory_event_kind kind;
};

struct record_memory_site {
    uint32_t thread, stack, allocator;
};

/* A block of them, in the order in which they happened. A process's blocks must be read from the first on. */
struct record_memory_events {
    uint32_t process;
    uint64_t start_ns, end_ns;
    const struct record_memory_site *sites; /* borrowed for the call */
    uint64_t site_count;
};

/* What happens to a call on the timeline. The first four end it, the others begin it. */
enum record_event_kind {
    RECORD_EVENT_RETURN = 0,
    RECORD_EVENT_RAISE = 1,   /* left by an exception */
    RECORD_EVENT_SUSPEND = 2, /* a generator or coroutine yields or awaits */
    RECORD_EVENT_LOST = 3,    /* its end was not seen; it had ended by then */
    RECORD_EVENT_BEGIN = 4,
    RECORD_EVENT_RESUME = 5, /* a generator or coroutine goes on */
};

struct record_event {
    uint64_t time_ns;
    uint64_t begin_ns; /* of the call; equal to time_ns where it begins */
    uint32_t code;
    uint32_t depth; /* of the call: 0 is the outermost */
    enum record_event_kind kind;
};

/* A call that had begun before a block of events did. */
struct record_open {
    uint64_t begin_ns;
    uint32_t code;
    enum record_event_kind kind; /* how it began */
};

enum record_note_kind {
    RECORD_NOTE_ARGUMENTS = 0, /* of a begin: what it was called with */
    RECORD_NOTE_TASK = 1,   /* of a begin: the asyncio task whose outermost coroutine runs here */
    RECORD_NOTE_RESULT = 2, /* of an end: what it returned */
    RECORD_NOTE_EXCEPTION = 3, /* of an end: the type of the exception that left it */
    RECORD_NOTE_COLLECTED = 4, /* of an end: objects that a garbage collection has freed */
    RECORD_NOTE_KINDS
};
enum { RECORD_MAX_NOTE_BYTES = 4096 };

/* The kind's name in JSON and in exports ("args"), or NULL for one we do not know. */
const char *record_note_name(uint32_t kind);

/* What is known of one event beside that it happened. */
struct record_note {
    uint32_t event;   /* its place in the block */
    uint32_t kind;    /* enum record_note_kind, or one of a newer version */
    const char *text; /* borrowed for the call */
    uint32_t len;
};

/* The block that notes are about. */
struct record_notes {
    uint32_t thread;
    uint64_t start_ns;
};

/* A block: the events of one thread from start_ns to end_ns. The blocks of a thread follow each other
 * without gaps, and each can be understood alone. */
struct record_events {
    uint32_t thread;
    uint64_t start_ns, end_ns;
    const struct record_open *open; /* outermost first; borrowed for the call */
    size_t open_count;
    const struct record_note *notes; /* by event; borrowed. NULL from the reader: see src/profile */
    size_t note_count;
};

enum record_box_flag {
    RECORD_BOX_CUT_LEFT = 1,  /* a call that began before the summary did */
    RECORD_BOX_CUT_RIGHT = 2, /* and one that went on after it */
};

/* A piece of the timeline at one depth: a call, or several short ones near each other. */
struct record_box {
    uint64_t begin_ns, end_ns;
    uint64_t covered_ns; /* of that, in calls */
    uint64_t longest_ns; /* the longest of them … */
    uint32_t code;       /* … and what it ran */
    uint32_t calls;
    uint32_t flags; /* enum record_box_flag */
};

/* A summary of a stretch of a thread's events: boxes of at least 2^shift ns, or several calls each.
 * Level 1 summarises one block of events, level n some of level n - 1. */
struct record_summary {
    uint32_t thread;
    uint32_t level, shift;
    uint64_t start_ns, end_ns;
    uint64_t events;  /* that it stands for */
    uint32_t rows;    /* depths; the row of depth d follows that of d - 1 */
    uint32_t deepest; /* depth of the deepest call, which may have no row */
};

/* Where a block of events (level 0) or a summary is: its chunk's number in the file. */
struct record_place {
    uint32_t thread;
    uint32_t level, shift;
    uint32_t sequence;
    uint64_t start_ns, end_ns;
};

enum record_mark_kind {
    RECORD_MARK_MOMENT = 0,
    RECORD_MARK_SPAN = 1,
    RECORD_MARK_OPEN = 2, /* a span whose end was not seen */
};

/* What the program says of itself: a named moment, or a span. */
struct record_mark {
    uint32_t thread;
    uint32_t kind; /* enum record_mark_kind */
    uint32_t name; /* string id */
    uint64_t start_ns, duration_ns;
};

/* A value of the program's own, from this moment on. */
struct record_counter {
    uint32_t thread;
    uint32_t name; /* string id */
    uint64_t time_ns;
    double value;
};

enum record_source_flag {
    RECORD_SOURCE_TEXT = 1 << 0,      /* the text was kept */
    RECORD_SOURCE_HASHED = 1 << 1,    /* `hash` is known */
    RECORD_SOURCE_LINECACHE = 1 << 2, /* no file: the text stood in the program's linecache */
    RECORD_SOURCE_OVER = 1 << 3,      /* it was to be kept, but a limit was reached */
};

/* A source file as it was when its code was first seen: its print, and, where the file may vanish
 * or was none, its text. The last record for a path counts. */
struct record_source {
    uint32_t path;     /* string id: the file name that code objects have */
    uint32_t flags;    /* enum record_source_flag */
    uint64_t size;     /* in bytes; of the member, if it is one of a zip */
    uint64_t mtime_ns; /* since 1970; of the archive, if it is in a zip; 0: not known */
    uint64_t hash;     /* record_source_hash() of the content */
    const char *text;  /* borrowed for the call; NULL without RECORD_SOURCE_TEXT */
    size_t text_len;
};

/* XXH3-64 of the bytes. */
uint64_t record_source_hash(const void *text, size_t len);

/* What the sampler says of itself, in STATS chunks. name in the file and in JSON, meaning. */
#define RECORD_STATS(X)                                                                            \
    X(TICKS_REQUESTED, "ticks_requested", "moments at which a look was due")                       \
    X(TICKS_TAKEN, "ticks_taken", "moments at which a look was taken")                             \
    X(TICKS_MISSED, "ticks_missed", "looks skipped because the sampler came too late")             \
    X(SAMPLES, "samples", "thread stacks recorded")                                                \
    X(SAMPLES_RETRIED, "samples_retried", "stacks that moved and were read again")                 \
    X(SAMPLES_MARKED, "samples_marked", "stacks that never held still: kept as <moving>")          \
    X(SAMPLES_DAMAGED, "samples_damaged", "stacks with an unreadable frame")                       \
    X(SAMPLES_FAILED, "samples_failed", "looks that found a thread but no stack")                  \
    X(RATE_MILLIHERTZ, "rate_millihertz", "requested rate, in 1/1000 Hz")                          \
    X(SAMPLER_CPU_NS, "sampler_cpu_ns", "CPU time of the sampling thread")                         \
    X(WRITER_CPU_NS, "writer_cpu_ns", "CPU time of the compressing and writing thread")            \
    X(SAMPLED_NS, "sampled_ns", "time from the first look to the last")                            \
    X(PROCESSES_SEEN, "processes_seen", "processes of the program")                                \
    X(PROCESSES_PYTHON, "processes_python", "of these, sampled as Python")                         \
    X(PROCESSES_OTHER, "processes_other", "of these, not Python")                                  \
    X(PROCESSES_SHORT, "processes_short", "of these, gone before they could be looked at")         \
    X(PROCESSES_REFUSED, "processes_refused", "of these, not readable for want of rights")         \
    X(PROCESSES_LEFT, "processes_left", "of these, Python that went on after the command's end")   \
    X(NUMBERS_VANISHED, "numbers_vanished",                                                        \
      "processes or threads, not always the program's, that came and went between two looks")      \
    X(THREADS_SEEN, "threads_seen", "Python threads")                                              \
    X(EVENTS, "events", "records that came from inside the program")                               \
    X(EVENTS_LOST, "events_lost", "of these, dropped because the recorder was too slow")           \
    X(EVENTS_DAMAGED, "events_damaged", "of these, not understood")                                \
    X(EVENTS_TRACED, "events_traced", "begins and ends of calls on the timeline")                  \
    X(EVENTS_LEFT_OUT, "events_left_out", "calls that the timeline leaves out, as was asked")      \
    X(FUNCTIONS_LEFT_OUT, "functions_left_out", "functions met but not traced, as was asked")      \
    X(EVENTS_FORGOTTEN, "events_forgotten", "begins and ends that were too old to be kept")        \
    X(EVENTS_TOO_DEEP, "events_too_deep", "calls too deep for the timeline")                       \
    X(EVENT_WAIT_NS, "event_wait_ns", "time the program waited for the recorder; left out")        \
    X(EVENT_PAUSED_NS, "event_paused_ns", "time in which threads could not be traced")             \
    X(THREADS_REFUSED, "threads_refused", "threads for which there was no ring")                   \
    X(AGENTS_REFUSED, "agents_refused", "guests that turned back: of another version")             \
    X(AGENTS_UNHOOKED, "agents_unhooked",                                                          \
      "guests whose hooks could not be set, or were taken out")                                    \
    X(OWN_NEW, "own_new", "processes whose allocator has a C++ new of its own, not watched")       \
    X(INTERPRETERS_UNTRACED, "interpreters_untraced", "sub-interpreters, where no hook is")        \
    X(DRAIN_CPU_NS, "drain_cpu_ns", "CPU time of the thread that empties the rings")               \
    X(ELAPSED_NS, "elapsed_ns", "wall time of the command")                                        \
    X(USER_NS, "user_ns", "its user CPU time, children included")                                  \
    X(SYSTEM_NS, "system_ns", "its system CPU time, children included")                            \
    X(PEAK_RSS_BYTES, "peak_rss_bytes", "largest resident set of one of its processes")            \
    X(EXIT_STATUS, "exit_status", "as a shell would see it")                                       \
    X(CHUNKS_LOST, "chunks_lost", "chunks that a repair could not save")                           \
    X(END_LOST, "end_lost", "1: what was repaired had no end")

enum record_stat {
#define X(id, name, text) RECORD_STAT_##id,
    RECORD_STATS(X)
#undef X
        RECORD_STAT_COUNT
};

struct record_stats {
    uint64_t value[RECORD_STAT_COUNT];
};

const char *record_stat_name(enum record_stat stat);
const char *record_stat_text(enum record_stat stat);

#endif
