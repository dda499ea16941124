/* The guest's one state, a thread's ring, and how a record gets into it.
 *
 * emit() is what every hook ends in: a stamp, a store, a store of the head. All that is rare (no ring
 * yet, ring full, time to see whether the recorder still lives, a long pause) is behind one test in
 * guest_slow(). Nothing here allocates, prints, raises or takes a lock. */
#ifndef PYROMETER_AGENT_GUEST_H
#define PYROMETER_AGENT_GUEST_H

#include "format/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <x86intrin.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct guest {
    struct ring_session *session; /* NULL: not invited, or turned back */
    uint32_t instruments;         /* enum ring_instrument */
    bool tsc;                     /* which clock */
    bool left;                    /* and gone again: another session may be entered */
    _Atomic bool on;              /* records are taken */
    int fd;                       /* the session's file; may be closed by the program */
    uint64_t file_dev, file_ino;  /* to tell whether it was */
    uint64_t image;               /* ring_header.image */
    int entered_by;               /* process: a child that it forks is a guest by inheritance */
    int pid;                      /* of this process, as it knows itself, */
    bool nested;                  /* which is not how the recorder knows it */
    uint64_t check_ticks;         /* the recorder is looked for so often */
    char variable[64];            /* what RING_VARIABLE holds, for children */
};
extern struct guest guest;

enum { GUEST_PAGE = 4096 };

/* A thread's side of its ring. head == limit == 0 while it has none. */
struct guest_thread {
    uint64_t head, limit; /* words ever written; where to stop and think */
    uint64_t last;        /* tick of the last record */
    uint64_t check_at;    /* tick at which to stop and think */
    uint64_t pace_at;     /* the record at which the pace is due */
    uint64_t *words;
    struct ring_header *ring;
    uint32_t slot;
    const char *deep; /* the C stack below here is the program's alone; NULL: no such place */
    bool resync;      /* functions have begun or ended unseen: tell those that run */
    bool refused;     /* there was no slot: do not ask at every event */
    bool busy;        /* in the slow path */
    uint8_t
        unnamed; /* times left to ask what Python calls this thread; 0: it was told, or never will be */
    void *
        page; /* GUEST_PAGE bytes for a hook that needs them; NULL: none did. (Few bytes may be the thread's own:
                    * a library that is loaded late finds little room for them) */
    uint64_t owed; /* ticks waited in vain, not yet told */
    bool starved;  /* it has waited in vain: until there is room again it does not */
};
extern __thread struct guest_thread guest_me __attribute__((tls_model("initial-exec")));

static inline uint64_t guest_now(void)
{
    if (likely(guest.tsc))
        return __rdtsc();
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The same, but not before all that stands before it has been done. A processor reads its counter while it still waits for an
 * exchange with another core, and the stamp is then earlier, by hundreds of ticks, than that of what the exchange has brought. */
static inline uint64_t guest_now_in_order(void)
{
    unsigned cpu;
    return likely(guest.tsc) ? __rdtscp(&cpu) : guest_now();
}

/* Before a record of this kind (RING_NONE: one that says nothing of what runs): makes room for `words` more and writes the time up to `now`, and what
 * this took as a wait; then me->last is the present. False: nothing can be written now. */
bool guest_slow(uint64_t now, uint32_t words, enum ring_kind kind);

static inline void guest_put(struct guest_thread *me, uint64_t word)
{
    me->words[me->head & (RING_WORDS - 1)] = word;
    me->head++;
}

static inline void guest_publish(struct guest_thread *me)
{
    atomic_store_explicit(&me->ring->head, me->head, memory_order_release);
}

static inline void guest_emit(enum ring_kind kind, uint32_t value)
{
    struct guest_thread *me = &guest_me;
    uint64_t now = guest_now();
    if (unlikely(me->head >= me->limit || now >= me->check_at)) {
        if (!guest_slow(now, 1, kind))
            return;
        now = me->last;
    }
    guest_put(me, ring_word(kind, value, now - me->last));
    me->last = now;
    guest_publish(me);
}

/* The same, followed by which frame it is. */
static inline void guest_emit_frame(enum ring_kind kind, uint32_t value, uint64_t frame)
{
    struct guest_thread *me = &guest_me;
    uint64_t now = guest_now();
    if (unlikely(me->head + 1 >= me->limit || now >= me->check_at)) {
        if (!guest_slow(now, 2, kind))
            return;
        now = me->last;
    }
    guest_put(me, ring_word(kind, value, now - me->last));
    guest_put(me, ring_word(RING_FRAME, (uint32_t)(frame >> 32), frame & UINT32_MAX));
    me->last = now;
    guest_publish(me);
}

/* What has passed since `begin` was spent by us: it is no time of the program's. */
void guest_leave_out(uint64_t begin);

/* An extended record out of several pieces. False: it was dropped, being larger than RING_MAX_PAYLOAD_WORDS, or
 * because the thread has no ring or no room in it. */
struct guest_piece {
    const void *data;
    size_t len;
};
bool guest_emit_ext(enum ring_ext kind, const struct guest_piece *pieces, size_t count);

/* From here on this thread is not traced. */
void guest_emit_pause(enum ring_pause why);

/* Comes in: reads what RING_VARIABLE holds and maps the session. False: not invited, or of another version. */
bool guest_enter(const char *variable);

/* Leaves a session, so that another can be entered. */
void guest_leave(void);

/* Claims a slot for this thread and maps it; NULL: there is none. */
struct ring_header *guest_open_ring(enum ring_content content, uint64_t now, uint32_t *ret_slot);
void guest_close_ring(struct ring_header *h, uint32_t slot);

/* Has the recorder been heard of lately, or is it there at all? */
bool guest_recorder_lives(void);

/* Has it said that nothing more is wanted? What is written from then on is read by nobody. */
static inline bool guest_has_ended(void)
{
    return atomic_load_explicit(&guest.session->stop, memory_order_relaxed);
}

/* Pages of our own, of a file or (fd -1) empty; NULL: there are none. */
void *guest_map(size_t len, int fd, uint64_t offset);
void guest_unmap(void *at, size_t len);

/* Gives the ring of this thread back: it ends. */
void guest_close_thread(void);

/* In a forked child: the rings are the parent's. */
void guest_forked(void);

/* What hooks have to do now and then, with the GIL held; set by whoever installed them. */
extern void (*guest_chore)(void);
/* A thread that has a ring ends; after guest_close_thread(). */
extern void (*guest_thread_ends)(void);
/* Called when a thread got its ring, before its first record: writes the functions that have begun
 * already. */
extern void (*guest_new_thread)(enum ring_kind first);
/* Tells what Python calls this thread; false: it is too early. */
extern bool (*guest_name_thread)(void);
/* This thread's hook is about to be taken out: when its next event comes, after whatever time, the
 * functions that run then are told anew. */
void guest_resync(void);

/* Takes the hooks out; called once, with the GIL held, when the recorder is gone. */
extern void (*guest_take_out)(void);

#endif
