/* The insides of struct remote, shared by the files of this folder only. */
#ifndef PYROMETER_REMOTE_INTERNAL_H
#define PYROMETER_REMOTE_INTERNAL_H

#include "base/idxmap.h"
#include "base/vec.h"
#include "remote/edges.h"
#include "remote/mem.h"
#include "remote/pylayout.h"
#include "remote/remote.h"
#include "remote/tasks.h"

/* --- code objects (codes.c) --- */

/* What tells two code objects at one address apart: fields that never change while the object lives. From 3.12 on there is a
 * number among them that no two have; below, the hash of its name, since a freed name's memory is used again as readily as
 * the code's. */
struct code_print {
    uint64_t type, name, qualname, file, lines, bytecode;
    uint32_t first_line, argcount, nlocals, flags;
    uint32_t frame_words, units; /* 3.11+: of its frame on the data stack, and instructions */
    uint64_t version, name_hash;
};

/* The entries that were asked for lately, by address: walks ask for the same ones again and again. */
enum { CODE_MEMO_SLOTS = 512 };
struct code_memo {
    uint64_t addr; /* 0: none */
    uint32_t entry, index;
};

struct code_entry {
    uint64_t addr;
    struct code_print print;
    uint32_t index;        /* in remote.codes */
    uint32_t confirmed;    /* how often it was found unchanged */
    uint64_t confirmed_ns; /* when last */
    uint64_t met_ns;       /* when it was read */
    uint32_t asked;        /* the check that last looked at it */
    /* what looks have shown of it as a callee (stack.c): how often it was one, how often, as a generator, at hand of its
     * caller; and the samples that have drawn it and do not show it, less those that show it for another one */
    uint32_t called, at_hand_of;
    int owed;
    /* whom it may call: the addresses of the names that it uses and of its constants, and of those that are texts the hashes; NULL until
     * they are asked for */
    uint64_t *at_hand, *at_hand_texts;
    size_t at_hand_len;
    bool at_hand_read;
};

/* --- stacks (stack.c) --- */

/* One frame as the walk saw it, leaf first. Two walks that agree on all of these saw one stack. */
struct walked {
    uint64_t frame; /* address */
    uint64_t code;  /* address of the code object, untagged; or one of the two below */
    int64_t instr;  /* pointer or index, as the version has it */
};
#define WALKED_SHIM       0ull /* an entry frame of the interpreter's own */
#define WALKED_GUESS      1    /* `instr` of one that was not seen */
#define WALKED_UNREADABLE 1ull /* the walk had to end here */
#define WALKED_NO_CODE    2ull /* and all below: no address of a code object */
typedef VEC(struct walked) walked_vec;
typedef VEC(struct remote_frame) frame_vec;

/* A piece of target memory that the next look copies. */
struct region {
    uint64_t addr;
    uint32_t len;
    uint32_t again;   /* what comes before that is not copied in the middle of a look, */
    uint32_t last;    /* nor this at its end, */
    int64_t local[5]; /* and where the copies are (enum look_copy); equal ones are one */
    bool loose;       /* single frames, not a chunk */
    bool pointers;    /* none at all: C frames, which say where the newest frame is */
    uint8_t idle;     /* looks since it was last needed */
};

typedef VEC(struct region) region_vec;

struct chunk {
    uint64_t base;
    uint64_t size;
};

struct thread {
    struct remote_thread pub;
    uint64_t interp;
    uint64_t gil; /* address of the GIL structure, 0 if not known */
    bool seen;    /* during a refresh */
    bool ended;   /* so says the kernel, and the list does not know it yet, or has another there */

    uint64_t cframe;          /* the interpreter's C frame (3.11, 3.12), by the last look; or 0 */
    uint64_t cframes[8];      /* where it was lately: the last one first */
    VEC(struct chunk) chunks; /* newest first */
    region_vec pieces;        /* the plan beyond the fixed head, */
    region_vec regions;       /* and what a look reads to have it, */
    bool in_order;            /* by address or as it comes */
    region_vec old_pieces;    /* scratch: the plan before */
    size_t spare;             /* pieces that the last walk did not need */
    size_t last_hit;          /* region that served the last lookup, */
    size_t last_piece;        /* and piece */
    size_t readable;          /* bytes of `copy` that the last look brought */
    uint64_t bad_addr;        /* a frame address that could not be read; 0: none */
    uint8_t *copy;            /* what a look brought; owned */
    size_t copy_cap;

    uint64_t base;          /* address of the outermost frame, by the majority of the looks */
    unsigned base_votes;    /* how many more looks have shown it than not, lately */
    struct walked voter;    /* running frame of the last look that voted */
    bool plain_base;        /* some look ended at a frame that is no generator's */
    walked_vec now, before; /* this look, the one before */
    walked_vec accepted;    /* the last sample's */

    /* how looks are made (look.c): whether the last sample was not what the one before was, so that looks have to
     * decide; whether the last look had to, and was made without a break; and what looks take, the first of a sample or not,
     * by the number of their ranges */
    bool flows, decides, at_once;
    uint32_t usual_ns[2][64];

    /* what the last one has shown (walk.c): */
    uint64_t newest;       /* the newest frame, by the pointer that is read first */
    uint64_t drawn_code;   /* what ran, whether or not it could be walked; 0: not known */
    uint64_t entries_end;  /* address of the outermost entry frame on the C stack; 0: none seen */
    VEC(uint64_t) climbed; /* frames of the data stack, in their order, if they were asked for */
    walked_vec last_walk;  /* the walk of the last look that had one */
    size_t held;           /* of `now`: outermost frames that did not change during the look. */
    bool sound;            /* The others are from one stretch, and so from one microsecond, */
    bool strict;           /* and the newest has its own caller */
    uint64_t unmet_code;   /* of what looks like a frame, and it was not met before; or 0, */
    uint64_t unmet_frame;  /* and where that is; */
    uint64_t no_code;      /* what turned out to be none when it was to be met, */
    uint64_t no_frame;     /* and where */

    uint64_t drawn[32];        /* unknown stacks that samples have begun with: the last ones, */
    unsigned draws;            /* and how many in all */
    bool holds_gil, gil_known; /* as of the last look that asked */
    uint64_t gil_ns;           /* when that was */
    frame_vec frames;          /* resolved, of the last sample given out */
    frame_vec spare_frames;
    bool accepted_damaged;
    uint64_t check_ns; /* until then its code objects need no check */
    bool has_accepted;
};

/* A list head in the target and what it held at the last refresh. */
struct list_head {
    uint64_t addr, value;
};

struct remote {
    struct mem mem;
    struct pylayout layout;
    char version[32];
    uint64_t runtime;     /* address of _PyRuntime */
    uint64_t code_type;   /* address of PyCode_Type, 0 if not known */
    bool unsafe;          /* no consistency check: for the test that proves it is needed */
    uint64_t patience_ns; /* 0: as much as there is */
    uint64_t rng;

    VEC(struct thread *) threads;
    uint32_t next_serial;
    size_t scan_hint;
    VEC(struct list_head) heads;
    struct tasks tasks;

    VEC(struct remote_code *) codes;
    VEC(struct code_entry) entries; /* by address: the object now believed to live there */
    struct idxmap entry_map;
    struct code_memo *code_memo; /* CODE_MEMO_SLOTS of them; NULL until there is an entry */
    uint32_t checks;             /* of codes_check(), so far */
    struct edges edges;
    uint64_t *known;        /* stacks proven before, by hash (known.c); NULL until there is one */
    struct line_memo *memo; /* (code, offset) -> line */
    struct instruction_watch *watch; /* NULL until it is asked for */

    uint64_t names_interp, names_active; /* where names.c last found threading._active */
};

/* --- between the files --- */

/* A random number, so that looks cannot fall into step with the target. */
static inline uint32_t remote_random(struct remote *r)
{
    r->rng = r->rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(r->rng >> 33);
}

/* A hash goes on by one more value. */
static inline uint64_t remote_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

/* Do frames lie behind each other on the thread's data stack (3.11 and later), or is each an object of its own? */
static inline bool has_data_stack(const struct remote *r)
{
    return r->layout.frames != PYL_FRAMES_HEAP;
}

void thread_free(struct thread *t);

/* Code object at `addr`: its entry's index, reading it now if it is new. Negative if the memory there
 * is no code object. */
int codes_lookup(struct remote *r, uint64_t addr, uint64_t now_ns, uint32_t *ret_entry);

/* The same of one met before, and without reading anything. */
bool codes_find(const struct remote *r, uint64_t addr, uint32_t *ret_entry);

/* What stands for a walked code object in a hash: never that of another one. 0: it has not been met. */
uint64_t codes_identity(const struct remote *r, uint64_t addr);

/* Compares the code objects of a walk with what is remembered of them, those that are due: young ones
 * always. One that changed is forgotten. True if all are as they were. */
bool codes_check(struct remote *r, const walked_vec *stack, uint64_t now_ns);

/* Did the stack of a look that began at `look_ns` run the code objects that are remembered? They are checked now, after it. No: one has changed,
 * or was not met, unless such are `allowed`: then they are none that can be read. Late: they are as they were, but the check came so late after
 * the look that one of them may have been another one meanwhile, unless a look after the check shows the same stack. */
enum codes_verdict { CODES_NO, CODES_LATE, CODES_YES };
enum codes_verdict codes_confirm(struct remote *r, const walked_vec *stack, bool allowed,
                                 uint64_t look_ns, uint64_t now_ns);

/* From when on a stack that does not change has to be checked again; 0: at once. */
uint64_t codes_next_check(const struct remote *r, const walked_vec *stack, uint64_t now_ns);

/* Does its code use a name that is the other one's, or is that one of its constants, as a lambda is? Then it may well call it. */
bool codes_names(struct remote *r, uint32_t caller, uint32_t callee);

/* Is it code of the interpreter's own, which nobody has written and no traceback shows? */
bool codes_is_inner(const struct remote *r, uint32_t entry);

/* Does the code object belong to a generator or coroutine, which may lose its caller at any time? */
bool codes_is_generator(struct remote *r, uint64_t addr);
bool codes_suspends(const struct remote *r, uint32_t entry);

/* From 3.11 on: how much of the data stack a frame of that code takes, */
static inline uint64_t codes_frame_bytes(const struct remote *r, uint32_t entry)
{
    return 8ull * r->entries.data[entry].print.frame_words;
}

/* and whether it can stand at that instruction. */
bool codes_has_place(const struct remote *r, uint32_t entry, int64_t instr);

/* Byte offset of an instruction in its code, by what the version keeps in a frame. */
int64_t codes_offset(const struct remote *r, uint32_t entry, int64_t instr);

/* Line of an instruction in a walked frame. */
int32_t codes_line(struct remote *r, uint32_t entry, int64_t instr);

void codes_release(struct remote *r);

/* A Python str as UTF-8, cut at `max` bytes; owned by the caller; NULL if it is none. */
char *object_read_str(const struct remote *r, uint64_t addr, size_t max);
/* The same with its length: a str may hold NULs. */
char *object_read_text(const struct remote *r, uint64_t addr, size_t max, size_t *ret_len);

#endif
