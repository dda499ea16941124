/* Memory: who allocates how much, and when it is given back.
 *
 * malloc and its family, mmap and its family pass through us (memory_libc.c), and with RING_OBJECTS so do Python's
 * own three allocators (memory_python.c). Each thread has a ring of its own for it (format/ringmem.h), so threads share
 * nothing: no lock, no counter. What is alive, the peak and the sums are made by the recorder.
 *
 * Only what the program asks for counts: what an allocator takes from another below it, and what we do
 * ourselves, is not counted again (`inside`). Nothing here allocates, takes a lock or needs the GIL; errno stays. */
#ifndef PYROMETER_AGENT_MEMORY_H
#define PYROMETER_AGENT_MEMORY_H

#include "agent/guest.h"
#include "agent/pyver.h"
#include "format/record.h"
#include "format/ringmem.h"

/* A frame as it was at the last allocation. */
struct memory_frame {
    const char *frame;
    uintptr_t runs; /* its code, as the frame keeps it */
    uint64_t instr;
    uint64_t number; /* of the code; 0: it has none, a frame of the interpreter itself */
};

struct memory_thread {
    uint32_t inside;      /* how deep in allocators, or in ourselves */
    uint32_t holds_gil;   /* how deep in what is called with the GIL only (memory_gil.c) */
    bool refused;         /* there was no ring */
    bool starved;         /* it has waited for room in vain: until there is some it does not */
    bool waited;          /* it has waited: what it knew of its frames is to be asked again */
    bool is_enrolled;     /* memory_end.c's: who is to be waited for, */
    _Atomic bool looks;   /* while it looks at its frames without the GIL */
    uint32_t unstamped;   /* records since the last stamp */
    uint64_t head, limit; /* words ever written; where to stop and think */
    uint64_t last;        /* tick of the last stamp */
    uint64_t *words;
    struct ring_header *ring;
    uint64_t
        session; /* whose ring it is: guest.image then, for an address may be another's later */
    uint32_t slot;
    uint32_t depth, capacity;
    struct memory_frame *frames; /* outermost first: what the recorder knows */
    uint64_t deaths;             /* of code objects, when the frames were looked at last */
    int64_t until_sample;        /* bytes to allocate before the next sample; 0: not known yet */
    uint64_t dice;
    const void *moves; /* the block that Python's allocators were asked last to make larger */
};
extern __thread struct memory_thread memory_me __attribute__((tls_model("initial-exec")));

/* Is memory watched? It is in a page that a forked child finds empty: until the child has rings of its own it must not write
 * into its parent's. */
extern _Atomic uint8_t *memory_switch;

/* Begins; a CPython is there. False: it is refused, and told so. */
bool memory_start(void);
/* Around an exec: it is told before, and taken back if it failed, with what the first has returned. */
struct ring_header *memory_executes(void);
void memory_execution_failed(struct ring_header *told);
/* Ends, so that it can begin anew. With the GIL. */
void memory_stop(void);
void memory_forked(void);

static inline bool memory_is_on(void)
{
    return unlikely(atomic_load_explicit(memory_switch, memory_order_relaxed));
}

/* Whether the interpreter's lock is held for sure, so that the thread is known that runs; and whether blocks are touched under it alone:
 * then threads cannot mix, and stamps may be saved. */
enum memory_order_kind { MEMORY_ANY_THREAD, MEMORY_HOLDS_GIL, MEMORY_WITH_GIL };

/* A block was allocated (not NULL) … */
void memory_allocated(enum record_allocator allocator, const void *block, size_t size,
                      enum memory_order_kind order);
/* … and is about to be given back (not NULL). True: it was told. */
bool memory_frees(const void *block, enum memory_order_kind order);
/* It was not, after all: a realloc has failed. Right after memory_frees(). */
void memory_undo(const void *block);

/* The same of pages. `began`: a tick before the call, since which they may be somebody else's. */
void memory_mapped(enum record_allocator allocator, const void *at, size_t size);
void memory_unmapped(const void *at, size_t size, uint64_t began);

/* A few bytes that free() passes over, at any place in them. NULL: there are none left. */
void *memory_take_for_ever(size_t size);

/* The program has set a mark. */
void memory_mark(void);

/* --- inside the agent's memory files --- */

/* Room for so many words. False: there is none, or nobody wants them any more. */
bool memory_slow(struct memory_thread *me, uint32_t words);

static inline bool memory_reserve(struct memory_thread *me, uint32_t words)
{
    return likely(me->head + words <= me->limit) || memory_slow(me, words);
}

static inline void memory_put(struct memory_thread *me, uint64_t word)
{
    me->words[me->head & (RING_WORDS - 1)] = word;
    me->head++;
}

/* An extended record out of several pieces. */
bool memory_put_ext(struct memory_thread *me, enum ringmem_ext kind,
                    const struct guest_piece *pieces, size_t count);

/* Tells the stack of this thread, as far as it has changed. False: it could not be told. */
bool memory_sync_stack(struct memory_thread *me, enum memory_order_kind order);

/* By the version that py names. False: there is no memory for it. */
bool memory_stack_init(void);

/* The same for sampling. */
bool memory_sample_init(void);

/* A code object dies: its address will mean another. */
void memory_forget_code(uintptr_t code);

/* All of them: another recorder listens, which knows none. */
void memory_forget_codes(void);

/* The deaths of code objects are told to memory_forget_code() from now on. */
void memory_watch_code(void);

/* Python's allocators are watched from now on. With the GIL. */
void memory_watch_python(void);
/* They are Python's own again, unless somebody else has put his before ours. */
void memory_leave_python(void);

/* --- sampling --- */

/* How many of the told blocks fall here. Every release looks into it, so it must leave room in the first cache for the
 * program; with a hundred blocks told one in eighty of the others goes on to the table. */
enum { MEMORY_SIEVE_BITS = 13, MEMORY_SIEVE_FULL = UINT8_MAX };
extern _Atomic uint8_t memory_sieve[1 << MEMORY_SIEVE_BITS];

static inline uint64_t memory_mix(const void *block)
{
    return (uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15ull;
}

/* So many bytes pass, and none of them is to be told. Else memory_allocated() asks the dice. */
static inline bool memory_passes(struct memory_thread *me, size_t size)
{
    if (likely(size < (uint64_t)me->until_sample)) {
        me->until_sample -= (int64_t)size;
        return true;
    }
    return false;
}

static inline bool memory_may_be_chosen(const void *block)
{
    uint64_t place = memory_mix(block) >> (64 - MEMORY_SIEVE_BITS);
    return atomic_load_explicit(&memory_sieve[place], memory_order_relaxed) != 0;
}

/* Does the allocator bring a C++ operator new of its own (jemalloc and tcmalloc do), which need not come by malloc? We do not step in
 * there: a library's own operators, which are its own affair, would be set aside with it. */
bool memory_libc_has_own_new(void);

/* --- memory_gil.c: more interpreters than one, below 3.12 --- */

/* This thread has this state for the main interpreter, or NULL, and nobody has said that it holds the GIL. May another interpreter run in
 * it just now? */
bool memory_gil_may_run_other(const py_tstate *own);

/* --- memory_end.c: the end of the interpreter --- */

/* May this thread look at its frames, without the GIL? If so it says when it is done. */
bool memory_end_may_look(struct memory_thread *me);
static inline void memory_end_looked(struct memory_thread *me)
{
    atomic_store_explicit(&me->looks, false, memory_order_release);
}
void memory_end_forget(struct memory_thread *me); /* its thread ends */
void memory_end_forked(void);
void memory_end_watch(void); /* with the GIL, before the program runs */

/* Tells the recorder whose malloc it is, if not libc's own. */
void memory_libc_tell_name(void);

/* From now on libc's allocations are sampled. */
void memory_libc_sample(void);

/* Is one of so many bytes, which have not passed, to be told? If so its address is kept. */
bool memory_chooses(struct memory_thread *me, const void *block, size_t size);
/* Was this block told? Then it is forgotten. */
bool memory_was_chosen(const void *block);
/* It is not to be forgotten, after all. False: there is no place for it any more. */
bool memory_keep_chosen(const void *block);

#endif
