#include "agent/memory.h"

#include "agent/pyver.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CHECK_WORDS = 1 << 12, /* words between two thoughts */
    UNSTAMPED = 64,        /* records that go without a stamp: the time axis is as coarse */
    SMALL = 448,           /* larger blocks Python may take from malloc, where others are */
    SPINS = 200,           /* of the pause instruction before the first sleep */
    SLEEP_NS = 50000,
};

static _Atomic uint8_t nowhere;
_Atomic uint8_t *memory_switch = &nowhere;
__thread struct memory_thread memory_me;

/* Whose record was the last of those that go without a stamp. Written under the GIL. */
static struct memory_thread *last_writer;

static void close_thread(void);

bool memory_start(void)
{
    enum { PAGE = 4096 };
    bool sampled = guest.instruments & RING_SAMPLED;
    if (memory_switch != &nowhere) { /* not for the first time, but perhaps the first sampled one */
        memory_forget_codes();
        bool ready = !sampled || memory_sample_init();
        atomic_store(memory_switch, ready);
        atomic_fetch_add(&guest.session->unhooked, !ready);
        return ready;
    }
    uint8_t *page = guest_map(PAGE, -1, 0);
    bool good = page && syscall(SYS_madvise, page, (size_t)PAGE, (long)MADV_WIPEONFORK) == 0 &&
                memory_stack_init() && (!sampled || memory_sample_init());
    if (!good) {
        atomic_fetch_add(&guest.session->unhooked, 1);
        return false;
    }
    memory_watch_code();
    memory_libc_tell_name();
    guest_thread_ends = close_thread;
    memory_switch = (_Atomic uint8_t *)page;
    atomic_store(memory_switch, 1);
    return true;
}

void memory_stop(void)
{
    atomic_store(memory_switch, 0);
    memory_leave_python();
    close_thread();
    memory_me.refused = false;
}

void memory_forked(void)
{
    if (memory_switch == &nowhere)
        return;
    struct memory_thread *me = &memory_me;
    if (me->ring)
        guest_unmap(me->ring, RING_SLOT_BYTES);
    struct memory_frame *frames = me->frames;
    uint32_t capacity = me->capacity;
    memory_end_forked();
    *me = (struct memory_thread){.frames = frames, .capacity = capacity};
    atomic_store(memory_switch, !guest.left);
}

static void close_thread(void)
{
    struct memory_thread *me = &memory_me;
    memory_end_forget(me); /* also if its ring was another session's, and is gone */
    if (!me->ring)
        return;
    struct ring_header *h = me->ring;
    uint32_t slot = me->slot;
    bool is_stale = me->session != guest.image;
    me->inside++;
    if (me->frames)
        guest_unmap(me->frames, me->capacity * sizeof *me->frames);
    *me = (struct memory_thread){.refused = true, .session = guest.image};
    if (is_stale) /* of a recorder that is gone: the slot is somebody else's by now */
        guest_unmap(h, RING_SLOT_BYTES);
    else
        guest_close_ring(h, slot);
}

/* --- room --- */

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static uint64_t room_until(const struct memory_thread *me)
{
    return atomic_load_explicit(&me->ring->tail, memory_order_acquire) + RING_WORDS;
}

/* Waits for the recorder to make room, for a while. What was written so far is published: it cannot make room before
 * it has seen it. */
static bool wait_for_room(struct memory_thread *me, uint32_t words)
{
    uint64_t begin = guest_now(), begin_ms = now_ms(), most = guest.session->wait_max_ms;
    atomic_store_explicit(&me->ring->head, me->head, memory_order_release);
    bool room = false, alive = true;
    me->waited = true;
    for (unsigned i = 0; !room && alive; i++) {
        if (i < SPINS) {
            _mm_pause();
        } else {
            struct timespec nap = {0, SLEEP_NS};
            syscall(SYS_nanosleep, &nap, NULL);
            alive = !guest_has_ended() && guest_recorder_lives() && now_ms() < begin_ms + most;
        }
        room = me->head + words + CHECK_WORDS <= room_until(me);
    }
    atomic_fetch_add_explicit(&me->ring->waits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&me->ring->waited_ticks, guest_now() - begin, memory_order_relaxed);
    return me->head + words <= room_until(me);
}

static bool open_ring(struct memory_thread *me)
{
    if (me->refused)
        return false;
    me->refused = true; /* until it has worked */
    uint64_t now = guest_now();
    struct ring_header *h = guest_open_ring(RING_CONTENT_MEMORY, now, &me->slot);
    if (!h)
        return false;
    me->refused = false;
    me->ring = h;
    me->words = (uint64_t *)((char *)h + RING_HEADER_BYTES);
    me->head = me->limit = 0;
    me->last = now;
    me->depth = 0;
    return true;
}

bool memory_slow(struct memory_thread *me, uint32_t words)
{
    int before = errno;
    bool good = me->ring || open_ring(me);
    if (good && (guest_has_ended() || !guest_recorder_lives())) {
        atomic_store(memory_switch, 0);
        good = false;
    }
    if (good) {
        /* one that has waited in vain does not wait again until there is room */
        me->starved =
            me->head + words > room_until(me) && (me->starved || !wait_for_room(me, words));
        good = !me->starved;
        if (me->starved && !guest_has_ended())
            atomic_fetch_add_explicit(&me->ring->lost, 1, memory_order_relaxed);
    }
    if (good) {
        uint64_t until = room_until(me), soon = me->head + words + CHECK_WORDS;
        me->limit = until < soon ? until : soon;
    }
    errno = before;
    return good;
}

bool memory_put_ext(struct memory_thread *me, enum ringmem_ext kind,
                    const struct guest_piece *pieces, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += pieces[i].len;
    uint32_t words = (uint32_t)((bytes + 7) / 8);
    if (words > RING_MAX_PAYLOAD_WORDS || !memory_reserve(me, words + 1))
        return false;
    memory_put(me, ringmem_word(RINGMEM_EXT, (uint64_t)kind | (uint64_t)words << 4));
    uint64_t word = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < pieces[i].len; k++) {
            word |= (uint64_t)((const uint8_t *)pieces[i].data)[k] << 8 * (at % 8);
            if (++at % 8 == 0) {
                memory_put(me, word);
                word = 0;
            }
        }
    if (at % 8)
        memory_put(me, word);
    return true;
}

/* --- records --- */

/* Its ring is one of a session that has ended. */
static __attribute__((noinline)) void change_session(struct memory_thread *me)
{
    if (me->ring)
        guest_unmap(me->ring, RING_SLOT_BYTES);
    me->ring = NULL;
    me->head = me->limit = 0;
    me->depth = 0;
    me->refused = false;
    me->session = guest.image;
}

/* Comes in: false if this is inside of an allocator, or of us. */
static inline bool begin(struct memory_thread *me)
{
    if (me->inside)
        return false;
    me->inside = 1;
    if (unlikely(me->session != guest.image))
        change_session(me);
    if (likely(me->ring))
        atomic_store_explicit(&me->ring->writing, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static inline void end(struct memory_thread *me)
{
    if (likely(me->ring)) {
        atomic_store_explicit(&me->ring->head, me->head, memory_order_release);
        atomic_store_explicit(&me->ring->writing, 0, memory_order_release);
    }
    atomic_signal_fence(memory_order_seq_cst);
    me->inside = 0;
}

/* The ticks for the record that comes next, in so many bits; room for two words has been made. */
static inline uint64_t ticks_since(struct memory_thread *me, uint64_t now, unsigned bits)
{
    uint64_t ticks = now > me->last ? now - me->last : 0;
    me->last += ticks;
    if (likely(ticks >> bits == 0))
        return ticks;
    memory_put(me, ringmem_word(RINGMEM_TIME, ticks));
    return 0;
}

static inline bool wants_stamp(struct memory_thread *me, size_t size, enum memory_order_kind order)
{
    if (order == MEMORY_WITH_GIL && size <= SMALL && last_writer == me &&
        ++me->unstamped < UNSTAMPED)
        return false;
    if (order == MEMORY_WITH_GIL)
        last_writer = me;
    me->unstamped = 0;
    return true;
}

enum { MOST_WORDS = 3 }; /* of a record with its time */

static void put_block(struct memory_thread *me, enum ringmem_kind kind,
                      enum record_allocator allocator, const void *at, size_t size, uint64_t now)
{
    uint64_t length = size <= RINGMEM_MAX_SIZE ? size : RINGMEM_MAX_SIZE;
    uint64_t ticks = ticks_since(me, now, RINGMEM_ALLOC_TICKS);
    memory_put(me, ringmem_block(kind, allocator, (uint64_t)(uintptr_t)at, length));
    memory_put(me, ringmem_size(length, ticks));
}

/* Not told, and nobody has counted it: not for want of room in the ring (memory_slow()), but because there was no memory for the
 * stack, or no number for a code object, or because the frames were gone. */
static __attribute__((noinline, cold)) void count_untold(struct memory_thread *me)
{
    if (me->ring && !me->starved && memory_is_on())
        atomic_fetch_add_explicit(&me->ring->lost, 1, memory_order_relaxed);
}

/* Between vfork and exec the thread, and so the ring, is its parent's; and a ring of a session that has ended is not there any more. */
struct ring_header *memory_executes(void)
{
    if (!memory_is_on() || getpid() != guest.pid || memory_me.session != guest.image ||
        !memory_me.ring)
        return NULL;
    atomic_store(&memory_me.ring->exec_tick, guest_now_in_order());
    return memory_me.ring;
}

void memory_execution_failed(struct ring_header *told)
{
    if (told)
        atomic_store(&told->exec_tick, 0);
}

void memory_allocated(enum record_allocator allocator, const void *block, size_t size,
                      enum memory_order_kind order)
{
    struct memory_thread *me = &memory_me;
    if (guest.instruments & RING_SAMPLED) {
        if (me->inside || memory_passes(me, size) || !memory_chooses(me, block, size))
            return;
        if (order == MEMORY_WITH_GIL)
            order = MEMORY_HOLDS_GIL; /* it is rare: each has its stamp */
    }
    if (!begin(me))
        return;
    if (likely(memory_reserve(me, MOST_WORDS) && memory_sync_stack(me, order) &&
               memory_reserve(me, MOST_WORDS)))
        put_block(me, RINGMEM_ALLOC, allocator, block, size,
                  wants_stamp(me, size, order) ? guest_now_in_order() : me->last);
    else
        count_untold(me);
    end(me);
}

bool memory_frees(const void *block, enum memory_order_kind order)
{
    struct memory_thread *me = &memory_me;
    if (guest.instruments & RING_SAMPLED) {
        if (likely(!memory_was_chosen(block)))
            return false;
        order = MEMORY_ANY_THREAD;
    }
    if (!begin(me))
        return false;
    bool told = memory_reserve(me, MOST_WORDS);
    if (told) {
        uint64_t now = wants_stamp(me, 0, order) ? guest_now_in_order() : me->last;
        uint64_t ticks = ticks_since(me, now, RINGMEM_FREE_TICKS);
        memory_put(me, ringmem_free((uint64_t)(uintptr_t)block, ticks));
    }
    end(me);
    return told;
}

void memory_undo(const void *block)
{
    struct memory_thread *me = &memory_me;
    if (!begin(me))
        return;
    bool kept = !(guest.instruments & RING_SAMPLED) || memory_keep_chosen(block);
    if (kept && memory_reserve(me, 1)) /* else its release would not be told */
        memory_put(me, ringmem_word(RINGMEM_UNDO, 0));
    end(me);
}

void memory_mapped(enum record_allocator allocator, const void *at, size_t size)
{
    struct memory_thread *me = &memory_me;
    if (!begin(me))
        return;
    if (memory_reserve(me, MOST_WORDS) && memory_sync_stack(me, MEMORY_ANY_THREAD) &&
        memory_reserve(me, MOST_WORDS))
        put_block(me, RINGMEM_MAP, allocator, at, size, guest_now_in_order());
    else
        count_untold(me);
    end(me);
}

void memory_unmapped(const void *at, size_t size, uint64_t began)
{
    struct memory_thread *me = &memory_me;
    if (!begin(me))
        return;
    if (memory_reserve(me, MOST_WORDS))
        put_block(me, RINGMEM_UNMAP, 0, at, size, began);
    end(me);
}

void memory_mark(void)
{
    struct memory_thread *me = &memory_me;
    if (!memory_is_on() || !begin(me))
        return;
    uint64_t now = guest_now();
    const struct guest_piece piece = {&now, sizeof now};
    if (memory_put_ext(me, RINGMEM_EXT_MARK, &piece, 1) && now > me->last)
        me->last = now; /* the next record counts from here: the mark is a stamp */
    end(me);
}
