#include "agent/guest.h"

#include "agent/pace.h"
#include "agent/pyver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CHECK_WORDS = 1 << 13, /* words between two thoughts */
    CHECKS_PER_SECOND = 25,
    /* A thread that has no name yet is asked for it so often, and so many times. Python knows it some 60
     * words after its begin, and for as short as a call of its run(). */
    NAME_WORDS = 2,
    NAME_TRIES = 200,
    SPINS = 200, /* of the pause instruction before the first sleep */
    SLEEP_NS = 50000,
    BEAT_OLD_MS = 40, /* a recorder that has not looked for so long may be dead */
    FD_ABOVE = 400,   /* out of the way of programs that count on small numbers */
};

struct guest guest = {.fd = -1};
__thread struct guest_thread guest_me;
void (*guest_chore)(void);
void (*guest_new_thread)(enum ring_kind first);
bool (*guest_name_thread)(void);
void (*guest_take_out)(void);
void (*guest_thread_ends)(void);

static pthread_key_t end_key;
static bool has_end_key;

/* --- the session's file --- */

static bool is_ours(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == guest.file_dev &&
           st.st_ino == guest.file_ino;
}

/* "PID:FD:KEY" */
static bool parse(const char *text, unsigned long *pid, unsigned long *fd, uint64_t *key)
{
    char *end;
    *pid = strtoul(text, &end, 10);
    if (*end != ':')
        return false;
    *fd = strtoul(end + 1, &end, 10);
    if (*end != ':')
        return false;
    *key = strtoull(end + 1, &end, 16);
    return *end == 0;
}

static int open_file(void)
{
    unsigned long pid, number;
    uint64_t key;
    char path[64];
    if (!parse(guest.variable, &pid, &number, &key))
        return -1;
    snprintf(path, sizeof path, "/proc/%lu/fd/%lu", pid, number);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    return fd;
}

/* The program may have closed it, or even put something else there. */
static int session_fd(void)
{
    if (!is_ours(guest.fd)) {
        int fd = open_file();
        if (fd >= 0 && !is_ours(fd)) {
            close(fd);
            fd = -1;
        }
        guest.fd = fd;
    }
    return guest.fd;
}

/* --- our numbers ---
 *
 * A process in a pid namespace of its own counts otherwise than the recorder does. But the recorder's file was opened by way of a /proc
 * that has the recorder's numbers, and a link there says which are ours. */

struct numbers {
    uint32_t pid, tid;
};

static struct numbers own_numbers(void)
{
    return (struct numbers){(uint32_t)getpid(), (uint32_t)syscall(SYS_gettid)};
}

/* "PID/task/TID", and how else nobody can tell. */
static struct numbers numbers_outside(void)
{
    static const char between[] = "/task/";
    char text[64], *at;
    ssize_t n = readlink("/proc/thread-self", text, sizeof text - 1);
    text[n < 0 ? 0 : n] = 0;
    struct numbers found = {.pid = (uint32_t)strtoul(text, &at, 10)};
    if (strncmp(at, between, sizeof between - 1) == 0)
        found.tid = (uint32_t)strtoul(at + sizeof between - 1, NULL, 10);
    return found.pid && found.tid ? found : own_numbers();
}

static bool is_nested(void)
{
    return numbers_outside().pid != (uint32_t)getpid();
}

/* Other destructors give memory back, too, and may come after ours. They are called in rounds, and we wait for the last but
 * one: in the last the tools that watch a program (TSan) take their leave in the same way. */
static void on_thread_end(void *value)
{
    static __thread unsigned rounds;
    if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1 && pthread_setspecific(end_key, value) == 0)
        return;
    guest_close_thread();
    if (guest_thread_ends)
        guest_thread_ends();
}

bool guest_enter(const char *variable)
{
    unsigned long pid, number;
    uint64_t key;
    if (!variable || strlen(variable) >= sizeof guest.variable ||
        !parse(variable, &pid, &number, &key))
        return false;
    memcpy(guest.variable, variable, strlen(variable) + 1);
    int fd = open_file();
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < RING_SESSION_BYTES) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    struct ring_session *s = guest_map(RING_SESSION_BYTES, fd, 0);
    if (!s || s->magic != RING_MAGIC || s->key != key || s->version != RING_VERSION ||
        s->slots > RING_MAX_SLOTS) {
        if (s) {
            /* of another version; a program that is no Python misses nothing */
            if (s->magic == RING_MAGIC && s->key == key && pyver_load())
                atomic_fetch_add(&s->refused, 1);
            guest_unmap(s, RING_SESSION_BYTES);
        }
        close(fd);
        return false;
    }
    guest.fd = fd;
    guest.file_dev = st.st_dev;
    guest.file_ino = st.st_ino;
    guest.instruments = s->instruments;
    guest.tsc = s->clock == RING_CLOCK_TSC;
    guest.check_ticks = s->ticks_per_second / CHECKS_PER_SECOND;
    guest.image = guest_now();
    guest.session = s;
    guest.left = false;
    guest.entered_by = guest.pid = getpid();
    guest.nested = is_nested();
    if (!has_end_key)
        has_end_key = pthread_key_create(&end_key, on_thread_end) == 0;
    return true;
}

/* --- pages of our own; not by way of mmap, which may be watched --- */

void *guest_map(size_t len, int fd, uint64_t offset)
{
    long flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    long at = syscall(SYS_mmap, NULL, len, (long)(PROT_READ | PROT_WRITE), flags, (long)fd, offset);
    return at == -1 ? NULL : (void *)at;
}

void guest_unmap(void *at, size_t len)
{
    syscall(SYS_munmap, at, len);
}

void guest_leave(void)
{
    /* Threads that are on their way in find that it has ended. It stays until the next one has ended, too. */
    static struct ring_session *before;
    if (guest.entered_by == getpid()) /* a forked child has its parent's, which goes on */
        atomic_store(&guest.session->stop, 1);
    if (before)
        guest_unmap(before, RING_SESSION_BYTES);
    before = guest.session;
    guest.left = true;
    if (guest.fd >= 0)
        close(guest.fd);
    guest.fd = -1;
}

/* --- a thread's slot --- */

static bool claim(uint32_t *ret)
{
    struct ring_session *s = guest.session;
    uint32_t first = atomic_fetch_add(&s->next_slot, 1), slots = s->slots;
    for (uint32_t i = 0; i < slots; i++) {
        uint32_t slot = (first + i) % slots, free = RING_FREE;
        if (atomic_compare_exchange_strong(&s->slot_state[slot], &free, RING_CLAIMED)) {
            *ret = slot;
            return true;
        }
    }
    return false;
}

static void fill_header(struct ring_header *h, enum ring_content content, uint64_t now)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    struct numbers numbers = guest.nested ? numbers_outside() : own_numbers();
    h->pid = numbers.pid;
    h->tid = numbers.tid;
    h->parent_pid = guest.nested ? 0 : (uint32_t)getppid();
    h->content = content;
    h->image = guest.image;
    h->ident = py.PyThread_get_thread_ident();
    h->start_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    h->start_tick = now;
    memcpy(h->python, py.version, sizeof h->python);
    atomic_store(&h->head, 0);
    atomic_store(&h->lost, 0);
    atomic_store(&h->waits, 0);
    atomic_store(&h->waited_ticks, 0);
    atomic_store(&h->pace_ticks, 0);
    atomic_store(&h->pace_count, 0);
    atomic_store(&h->writing, 0);
    atomic_store(&h->tail, 0);
}

struct ring_header *guest_open_ring(enum ring_content content, uint64_t now, uint32_t *ret_slot)
{
    int fd = session_fd();
    uint32_t slot;
    if (fd < 0 || !claim(&slot)) {
        atomic_fetch_add(&guest.session->no_slot, 1);
        return NULL;
    }
    struct ring_header *h = guest_map(RING_SLOT_BYTES, fd, ring_slot_offset(slot));
    if (!h) {
        atomic_store(&guest.session->slot_state[slot], RING_FREE);
        atomic_fetch_add(&guest.session->no_slot, 1);
        return NULL;
    }
    fill_header(h, content, now);
    atomic_store_explicit(&guest.session->slot_state[slot], RING_LIVE, memory_order_release);
    if (has_end_key)
        pthread_setspecific(end_key, h);
    *ret_slot = slot;
    return h;
}

void guest_close_ring(struct ring_header *h, uint32_t slot)
{
    guest_unmap(h, RING_SLOT_BYTES);
    atomic_store_explicit(&guest.session->slot_state[slot], RING_CLOSED, memory_order_release);
}

static bool open_thread(uint64_t now)
{
    struct guest_thread *me = &guest_me;
    uint32_t slot;
    if (me->refused)
        return false;
    me->refused = true; /* until it has worked */
    struct ring_header *h = guest_open_ring(RING_CONTENT_EVENTS, now, &slot);
    if (!h)
        return false;
    *me = (struct guest_thread){.ring = h,
                                .page = me->page,
                                .words = (uint64_t *)((char *)h + RING_HEADER_BYTES),
                                .slot = slot,
                                .last = now,
                                .unnamed = NAME_TRIES,
                                .busy = true};
    return true;
}

void guest_close_thread(void)
{
    struct guest_thread *me = &guest_me;
    if (!me->ring)
        return;
    struct ring_header *h = me->ring;
    uint32_t slot = me->slot;
    if (me->page)
        guest_unmap(me->page, GUEST_PAGE);
    *me = (struct guest_thread){.refused = true};
    guest_close_ring(h, slot);
}

void guest_forked(void)
{
    struct guest_thread *me = &guest_me;
    if (me->ring)
        guest_unmap(me->ring, RING_SLOT_BYTES);
    *me = (struct guest_thread){0};
    guest.image = guest_now();
    if (getppid() != guest.pid) /* or the parent has ended meanwhile */
        guest.nested = is_nested();
    guest.pid = getpid();
}

/* --- the recorder --- */

static uint64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* The recorder holds a lock on the file for as long as it lives, and not a moment longer, even if
 * nobody has collected its remains. */
bool guest_recorder_lives(void)
{
    uint64_t beat_ms =
        atomic_load_explicit(&guest.session->beat_ns, memory_order_relaxed) / 1000000u;
    if (mono_ms() < beat_ms + BEAT_OLD_MS)
        return true;
    int fd = session_fd();
    if (fd < 0)
        return false; /* its descriptors are gone with it */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static void switch_off(void)
{
    if (!atomic_exchange(&guest.on, false))
        return;
    if (guest_take_out)
        guest_take_out();
}

/* A pause as a record of its own; there is always room for a few. */
static void put_pause(struct guest_thread *me, enum ring_kind kind, uint64_t now)
{
    uint64_t ticks = now > me->last ? now - me->last : 0;
    guest_put(me, ring_word(kind, (uint32_t)(ticks >> 32) & RING_MAX_VALUE, ticks & UINT32_MAX));
    me->last += ticks;
}

enum { KEPT_BACK = 4 }; /* words for the pauses that stand before a record */

static uint64_t room_until(const struct guest_thread *me)
{
    return atomic_load_explicit(&me->ring->tail, memory_order_acquire) + RING_WORDS - KEPT_BACK;
}

/* Waits for the recorder to make room, for a while. */
static bool wait_for_room(struct guest_thread *me, uint32_t words)
{
    uint64_t begin = guest_now(), begin_ms = mono_ms(), most = guest.session->wait_max_ms;
    bool room = false, alive = true;
    for (unsigned i = 0; !room && alive; i++) {
        if (i < SPINS) {
            _mm_pause();
        } else {
            struct timespec nap = {0, SLEEP_NS};
            syscall(SYS_nanosleep, &nap, NULL);
            alive = !guest_has_ended() && guest_recorder_lives() && mono_ms() < begin_ms + most;
        }
        room = me->head + words + CHECK_WORDS <= room_until(me);
    }
    atomic_fetch_add_explicit(&me->ring->waits, 1, memory_order_relaxed);
    uint64_t waited = guest_now() - begin;
    atomic_fetch_add_explicit(&me->ring->waited_ticks, waited, memory_order_relaxed);
    room = me->head + words <= room_until(me);
    if (!room)
        me->owed += waited;
    return room;
}

static bool make_room(struct guest_thread *me, uint32_t words)
{
    me->starved = me->head + words > room_until(me) && (me->starved || !wait_for_room(me, words));
    if (me->starved) {
        if (guest_has_ended()) /* nobody misses it; the next thought is the last */
            me->check_at = 0;
        else
            atomic_fetch_add_explicit(&me->ring->lost, 1, memory_order_relaxed);
        me->limit = me->head;
        return false;
    }
    uint64_t until = room_until(me);
    uint64_t soon = me->head + words + (me->unnamed ? NAME_WORDS : CHECK_WORDS);
    me->limit = until < soon ? until : soon;
    return true;
}

/* False: the recorder is gone, and we are out. */
static bool think(struct guest_thread *me, uint64_t now)
{
    if (now < me->check_at)
        return true;
    me->check_at = now + guest.check_ticks;
    if (guest_has_ended() || !guest_recorder_lives()) {
        switch_off();
        return false;
    }
    if (guest_chore)
        guest_chore();
    return true;
}

/* As often as there are records, whose cost is to follow it: while a thread has no name yet we come by oftener. */
static void note_pace(struct guest_thread *me)
{
    if (me->head < me->pace_at)
        return;
    me->pace_at = me->head + CHECK_WORDS + CHECK_WORDS / 2; /* every other time */
    struct ring_header *h = me->ring;
    uint64_t ticks = atomic_load_explicit(&h->pace_ticks, memory_order_relaxed) + pace_measure();
    uint64_t count = atomic_load_explicit(&h->pace_count, memory_order_relaxed) + 1;
    atomic_store_explicit(&h->pace_ticks, ticks, memory_order_relaxed);
    atomic_store_explicit(&h->pace_count, count, memory_order_relaxed);
}

bool guest_slow(uint64_t now, uint32_t words, enum ring_kind kind)
{
    struct guest_thread *me = &guest_me;
    if (me->busy || !atomic_load_explicit(&guest.on, memory_order_relaxed))
        return false;
    bool new_thread = !me->ring;
    if (new_thread && !open_thread(now))
        return false;
    me->busy = true;
    bool room = think(me, now) && make_room(me, words);
    if (room) {
        put_pause(me, RING_TIME, now - me->owed);
        note_pace(me);
        put_pause(me, RING_WAIT, guest_now());
        me->owed = 0;
    }
    me->busy = false;
    /* marks and garbage collections come without a hook: they do not say that it is back */
    if (room && me->resync && kind == RING_NONE)
        me->check_at = 0;
    else if (room && me->resync) {
        me->resync = false;
        guest_emit_ext(RING_EXT_GO, NULL, 0);
        new_thread = true;
    }
    if (room && new_thread && guest_new_thread) {
        guest_new_thread(kind);
        room = make_room(me, words);
    }
    if (room && me->unnamed && guest_name_thread) {
        uint8_t left = me->unnamed - 1;
        me->unnamed = 0; /* telling it must not ask again */
        me->unnamed = guest_name_thread() ? 0 : left;
        room = make_room(me, words);
    }
    return room;
}

void guest_resync(void)
{
    guest_me.resync = true;
    guest_me.check_at = 0;
}

void guest_leave_out(uint64_t begin)
{
    struct guest_thread *me = &guest_me;
    if (!me->ring || me->busy || (me->head + 2 > me->limit && !guest_slow(begin, 2, RING_EXT)))
        return;
    put_pause(me, RING_TIME, begin);
    put_pause(me, RING_WAIT, guest_now());
    guest_publish(me);
}

bool guest_emit_ext(enum ring_ext kind, const struct guest_piece *pieces, size_t count)
{
    struct guest_thread *me = &guest_me;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += pieces[i].len;
    uint32_t words = (uint32_t)((bytes + 7) / 8);
    uint64_t now = guest_now();
    if (words > RING_MAX_PAYLOAD_WORDS)
        return false;
    if (unlikely(me->head + words + 1 > me->limit || now >= me->check_at)) {
        bool begins = kind == RING_EXT_CODE || kind == RING_EXT_TASK || kind == RING_EXT_ARGUMENTS;
        if (!guest_slow(now, words + 1, begins ? RING_EXT : RING_NONE))
            return false;
        now = me->last;
    }
    guest_put(me, ring_word(RING_EXT, (uint32_t)kind | words << 8, now - me->last));
    me->last = now;
    uint64_t word = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < pieces[i].len; k++) {
            word |= (uint64_t)((const uint8_t *)pieces[i].data)[k] << 8 * (at % 8);
            if (++at % 8 == 0) {
                guest_put(me, word);
                word = 0;
            }
        }
    if (at % 8)
        guest_put(me, word);
    guest_publish(me);
    return true;
}

void guest_emit_pause(enum ring_pause why)
{
    uint64_t word = why;
    guest_emit_ext(RING_EXT_PAUSE, &(struct guest_piece){&word, sizeof word}, 1);
}
