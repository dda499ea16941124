/* The memory that guests (src/agent) and the recorder share: layout and the words in it.
 *
 * One anonymous file, made by the recorder, sparse:
 *
 *   offset 0                      struct ring_session                    RING_SESSION_BYTES
 *   RING_SESSION_BYTES            slot 0: struct ring_header | words     RING_SLOT_BYTES
 *   + RING_SLOT_BYTES             slot 1 …
 *
 * A guest finds it by the variable RING_VARIABLE, "PID:FD:KEY": /proc/PID/fd/FD is the file, and KEY
 * must be the session's, or the number belongs to somebody else by now. Every thread that is traced
 * claims a slot by one compare-and-swap on its state, so fork needs no lock, and maps that slot alone, so a limit
 * on address space is felt late.
 *
 * A slot is a ring with one producer (the thread) and one consumer (the recorder). `head` and `tail`
 * count words for ever; word n lies at n % RING_WORDS. The producer publishes head with release
 * after every record; what is below head survives the producer's death, however it dies. Everything
 * here is hostile to the recorder: the program can scribble over it.
 *
 * A word:   bits 0–3   kind (enum ring_kind)
 *           bits 4–31  value: a code's number, a line, …
 *           bits 32–63 ticks since the record before
 * Code numbers count for the whole session, so that a forked child's mean the same as its parent's.
 * A number's definition may stand in another thread's ring, and reach the recorder after its use. */
#ifndef PYROMETER_FORMAT_RING_H
#define PYROMETER_FORMAT_RING_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_VARIABLE "PYROMETER_AGENT"
#define RING_MAGIC    0x31474e4952525950ull /* "PYRRING1" */

enum {
    RING_VERSION = 11,    /* of everything in this header; both sides must agree */
    RING_WORDS = 1 << 17, /* 1 MiB: stays in a core's cache; a larger one costs 5 to 10 ns a word */
    RING_MAX_SLOTS = 2048, /* threads traced at a time */
    RING_HEADER_BYTES = 4096,
    RING_SLOT_BYTES = RING_HEADER_BYTES + RING_WORDS * 8,
    RING_SESSION_BYTES = 64 << 10,
    RING_MAX_PAYLOAD_WORDS = 1 << 15, /* of one extended record */
    RING_MAX_TEXT = 60 << 10,         /* of one text in it, in bytes */
    RING_MAX_NOTE = 512,              /* of a text about one call */
    RING_MAX_SELECTION = 16 << 10,    /* bytes of ring_session.selection */
    RING_MAX_ALLOCATOR = 128,         /* bytes of ring_session.allocator */
};

/* What the guest is to deliver. */
enum ring_instrument {
    RING_CALLS = 1 << 0,   /* calls of Python functions */
    RING_C_CALLS = 1 << 1, /* calls of C functions */
    RING_LINES = 1 << 2,   /* lines */
    RING_TRACE = 1 << 3,   /* exceptions, GC, names of threads and tasks: what a timeline shows */
    RING_ARGS = 1 << 4,    /* arguments and return values */
    RING_HEAP = 1 << 5,    /* memory: malloc and its family, pages */
    RING_OBJECTS = 1 << 6, /* and what Python's own allocators give out */
    RING_SAMPLED = 1 << 7, /* of both, now and then one: see ring_session.memory_interval */
    RING_MEMORY = RING_HEAP | RING_OBJECTS | RING_SAMPLED,
    RING_ANY_EVENTS = RING_CALLS | RING_C_CALLS | RING_LINES | RING_TRACE | RING_ARGS,
};

/* Is it estimated what a profile function takes by slowing instructions down? Where lines are told, theirs and the cost of telling
 * cannot be told apart. */
static inline bool ring_asks_instructions(uint32_t instruments)
{
    return instruments & RING_C_CALLS && !(instruments & RING_LINES);
}

/* What a ring holds. A thread may have one of each. */
enum ring_content {
    RING_CONTENT_EVENTS = 0, /* words of this header */
    RING_CONTENT_MEMORY = 1, /* words of ringmem.h */
};

enum ring_clock {
    RING_CLOCK_TSC = 0,  /* the processor's time stamp counter, which never stops or changes pace */
    RING_CLOCK_MONO = 1, /* CLOCK_MONOTONIC in ns, where the counter cannot be trusted */
};

enum ring_slot_state {
    RING_FREE = 0,    /* to be claimed by a guest */
    RING_CLAIMED = 1, /* its header is being written */
    RING_LIVE = 2,    /* in use */
    RING_CLOSED = 3,  /* its thread has ended; the recorder drains and frees it */
};

enum ring_kind {
    RING_NONE = 0,    /* no record */
    RING_ENTER = 1,   /* a Python function begins; value: its code */
    RING_LEAVE = 2,   /* it returns */
    RING_UNWIND = 3,  /* it is left by an exception */
    RING_SUSPEND = 4, /* a generator or coroutine yields or awaits */
    RING_RESUME = 5,  /* and goes on */
    RING_C_ENTER = 6, /* a C function is called; value: its number among the codes */
    RING_C_LEAVE = 7, /* it returned */
    RING_C_RAISE = 8, /* it raised */
    RING_LINE = 9,    /* the running function gets to a line; value: the line */
    RING_OPEN = 10,   /* a function that had begun when tracing did; outermost first */
    RING_TIME = 11,   /* a long pause: ticks = value << 32 | ticks; nothing else happens */
    RING_WAIT = 12,   /* so too, but spent waiting for the recorder: no time of the program's */
    RING_FRAME = 13, /* of the record before: which generator; value << 32 | ticks is its address */
    RING_EXT = 14,   /* value: subtype | payload words << 8; then the payload */
    RING_ASIDE = 15, /* the running function called what is no function (a type, an object): such a
                      * call has its probes too, and they cost time */
};

enum ring_ext {
    RING_EXT_CODE = 1,  /* a code's definition: struct ring_code and its texts */
    RING_EXT_LOST = 2,  /* u64: so many records could not be written here */
    RING_EXT_PAUSE = 3, /* u64: enum ring_pause. From here on this thread is not traced … */
    RING_EXT_GO = 4,    /* … until here; RING_OPENs tell what runs now, unless it calibrated */
    RING_EXT_CALIBRATION = 5, /* struct ring_calibration */
    RING_EXT_THREAD_NAME = 6, /* text */
    RING_EXT_MARK = 7,        /* text */
    RING_EXT_COUNTER = 8,     /* f64 value, text */
    RING_EXT_SPAN_BEGIN = 9,  /* its number, text */
    RING_EXT_SPAN_END = 10,   /* its number */
    RING_EXT_GC_BEGIN = 12,   /* u64 generation */
    RING_EXT_GC_END = 13,     /* u64 collected */
    /* of the record that comes next; texts of RING_MAX_NOTE bytes at most */
    RING_EXT_EXCEPTION = 11, /* text: name of the type */
    RING_EXT_TASK = 14,      /* text: name of the task whose outermost coroutine begins */
    RING_EXT_ARGUMENTS = 15, /* text */
    RING_EXT_RESULT = 16,    /* text */
};

enum ring_pause {
    RING_PAUSE_DEEP = 1,        /* the C stack is getting short */
    RING_PAUSE_OTHER = 2,       /* another profiler took the interpreter's one slot */
    RING_PAUSE_CALIBRATION = 3, /* the guest measures itself: what follows is not the program's */
};

enum { RING_MAX_VALUE = (1 << 28) - 1 };

static inline uint64_t ring_word(enum ring_kind kind, uint32_t value, uint64_t ticks)
{
    return ticks << 32 | (uint64_t)value << 4 | (uint64_t)kind;
}

/* Payload of RING_EXT_CODE. Texts follow one another, unterminated: name, qualified name, file. */
struct ring_code {
    uint32_t id;
    uint32_t flags; /* enum ring_code_flag */
    uint32_t first_line;
    uint32_t name_len, qualname_len, file_len;
};

enum ring_code_flag {
    RING_CODE_GENERATOR = 1, /* may be suspended and resumed */
    RING_CODE_COROUTINE = 2, /* its suspensions and resumptions say which one it is */
    RING_CODE_LEFT_OUT = 4,  /* not wanted: its events are not delivered */
    RING_CODE_C = 8,         /* a C function */
};

enum { RING_CALIBRATION_SCALE = 1024 };

/* Where a profile function slows each instruction down: what one of a kind (remote/opcodes.h) takes, and how much of that is because of
 * it. Else all 0. Only how they compare counts: what a single one takes depends on its neighbours. */
struct ring_slowed {
    uint32_t takes;
    int32_t slower; /* below 0: it hides what its neighbours lose */
};
enum ring_slowed_kind {
    RING_SLOWED_MOVE,
    RING_SLOWED_STORE,
    RING_SLOWED_ITERATION,
    RING_SLOWED_ARITHMETIC,
    RING_SLOWED_DIVISION,
    RING_SLOWED_COMPARISON,
    RING_SLOWED_NAME,
    RING_SLOWED_ATTRIBUTE,
    RING_SLOWED_ITEM,
    RING_SLOWED_OTHER,
    RING_SLOWED_CALL, /* of anything: what it takes is not told, for it depends on what is called */
    RING_SLOWED_KINDS
};

/* What the guest measured of its own cost, in ticks times RING_CALIBRATION_SCALE, for one call: `inside` falls between
 * the two stamps of a call and is counted to the function, `outside` to its caller. */
struct ring_calibration {
    uint32_t python_inside, python_outside;
    uint32_t c_inside, c_outside;
    uint32_t aside; /* for one RING_ASIDE, all of it counted to the running function */
    uint32_t line;
    struct ring_slowed slowed[RING_SLOWED_KINDS];
    uint32_t pace;  /* how slow the machine was meanwhile: see ring_header.pace_ticks */
    uint32_t error; /* half of the spread of python_inside + python_outside */
};

/* Header of a slot. Written once by the producer but for the two lines at the end. */
struct ring_header {
    uint32_t pid, parent_pid, tid;
    uint32_t content;    /* enum ring_content */
    uint64_t ident;      /* Python's number of the thread */
    uint64_t start_ns;   /* CLOCK_MONOTONIC */
    uint64_t start_tick; /* the first record counts from here */
    char python[32];     /* its version, NUL-terminated */
    uint64_t
        image; /* tells what the process runs from what it ran before an exec, or its parent does */
    uint8_t reserved[48];
    /* the producer's line */
    _Atomic uint64_t head;
    _Atomic uint64_t lost;         /* records that were dropped */
    _Atomic uint64_t waits;        /* times it waited for room */
    _Atomic uint64_t waited_ticks; /* and how long in all */
    _Atomic uint64_t pace_ticks;   /* how slow the machine was (agent/pace.h), summed up … */
    _Atomic uint64_t pace_count;   /* … over so many times, spread over the records */
    _Atomic uint32_t writing; /* memory: a record is being made, and may have its stamp already */
    uint8_t producer_reserved[4];
    _Atomic uint64_t
        exec_tick; /* memory: since then another program is being executed; 0: none is */
    /* the consumer's line */
    _Atomic uint64_t tail;
    uint8_t consumer_reserved[56];
};
static_assert(sizeof(struct ring_header) == 256, "three lines and a head, each its own");
static_assert(sizeof(struct ring_header) <= RING_HEADER_BYTES, "words begin on a page");

enum ring_name_state { RING_NAME_NONE, RING_NAME_COMES, RING_NAME_THERE };

struct ring_session {
    /* The first four are where they are for ever: a guest of another version reads and counts itself here. */
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t refused; /* guests of another version, which turned back */
    uint64_t key;
    uint32_t recorder_pid;
    uint32_t instruments; /* enum ring_instrument */
    uint32_t clock;       /* enum ring_clock */
    uint64_t ticks_per_second;
    uint32_t wait_max_ms;          /* a full ring is waited for so long */
    uint32_t memory_interval;      /* bytes: of so many allocated one is sampled on average */
    uint64_t memory_seed;          /* for the dice that choose it */
    uint32_t slots;                /* as many there are: RING_MAX_SLOTS, or fewer */
    _Atomic uint32_t stop;         /* guests take themselves out */
    _Atomic uint64_t beat_ns;      /* CLOCK_MONOTONIC of the recorder's last look */
    _Atomic uint32_t next_code;    /* numbers given out so far */
    _Atomic uint32_t next_slot;    /* where to begin looking for a free one */
    _Atomic uint32_t no_slot;      /* threads that found none */
    _Atomic uint32_t unhooked;     /* guests that got no way in, or no memory, or were set aside */
    _Atomic uint32_t own_new;      /* guests of an allocator with a C++ operator new of its own */
    _Atomic uint32_t left_out;     /* functions that were met and are not wanted */
    _Atomic uint32_t interpreters; /* that were made besides the main one, and are not traced */
    _Atomic uint32_t slot_state[RING_MAX_SLOTS]; /* enum ring_slot_state */
    /* Whose lines are wanted: "f:MODULE:QUALNAME" and "m:REGEX"; neither: everybody's. Whose calls:
     * those that match an "i:REGEX", if there is one, and no "x:REGEX". One item on each line. A
     * REGEX is an extended one, for `file:line(function)`, the name or the file. */
    char selection[RING_MAX_SELECTION];
    /* Whose malloc it is, if not libc's: the name of its file, NUL-terminated, of the first guest that met one. */
    _Atomic uint32_t allocator_state; /* enum ring_name_state */
    char allocator[RING_MAX_ALLOCATOR];
};
static_assert(sizeof(struct ring_session) <= RING_SESSION_BYTES, "the session fits");
static_assert(offsetof(struct ring_session, magic) == 0 &&
                  offsetof(struct ring_session, version) == 8 &&
                  offsetof(struct ring_session, refused) == 12 &&
                  offsetof(struct ring_session, key) == 16,
              "all versions agree on these");

static inline uint64_t ring_slot_offset(uint32_t slot)
{
    return RING_SESSION_BYTES + (uint64_t)slot * RING_SLOT_BYTES;
}

#endif
