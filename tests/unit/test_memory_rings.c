/* Memory rings with both of their ends in one process: threads that hand blocks to each other tell what they allocate by the guest's
 * own code, and the recorder decodes it meanwhile. Addresses are used again at once, so that any disorder shows. Meant for
 * ThreadSanitizer, too. */
#include "agent/memory.h"
#include "agent/pyver.h"
#include "base/err.h"
#include "record/heaps.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

enum {
    THREADS = 8,
    ROUNDS = 40000,
    ADDRESSES = 4 * THREADS,
    MAILBOXES = 4,
    SHORT_LIVES = 300,
    MAX_BLOCK = 4096,
};
#define BLOCKS 0x7f0000001000ull

/* --- a Python without frames, unless a test gives it one, and without allocators of its own --- */

static unsigned long ident(void)
{
    return (unsigned long)pthread_self();
}

static _Atomic(py_tstate *) thread_state;

static py_tstate *this_thread(void)
{
    return atomic_load(&thread_state);
}

static py_tstate *no_thread(void) /* has the GIL */
{
    return NULL;
}

static _Atomic bool ends;

static int is_finalizing(void)
{
    return atomic_load(&ends);
}

/* As 3.12 has them (agent/pyver_walk.h). */
struct fake_code {
    _Alignas(8) char bytes[256];
};
struct fake_frame {
    struct fake_code *code;
    struct fake_frame *previous;
    char more[64];
};
struct fake_thread {
    char before[56];
    struct fake_frame **frame;
};

static void define(struct fake_code *code)
{
    enum { FIRST_LINE = 68 };
    *code = (struct fake_code){.bytes = {[FIRST_LINE] = 1}};
}

void memory_watch_code(void) {}

void memory_leave_python(void) {}

void memory_libc_tell_name(void) {}

/* --- an allocator whose blocks are but addresses --- */

static struct {
    pthread_mutex_t lock;
    uintptr_t free[ADDRESSES];
    size_t count;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *take_block(size_t size)
{
    pthread_mutex_lock(&pool.lock);
    assert(pool.count);
    void *block = (void *)pool.free[--pool.count];
    pthread_mutex_unlock(&pool.lock);
    memory_allocated(RECORD_ALLOCATOR_MALLOC, block, size, MEMORY_ANY_THREAD);
    return block;
}

static void give_block(void *block)
{
    memory_frees(block, MEMORY_ANY_THREAD);
    pthread_mutex_lock(&pool.lock);
    pool.free[pool.count++] = (uintptr_t)block;
    pthread_mutex_unlock(&pool.lock);
}

/* --- the recorder --- */

struct rig {
    struct session session;
    struct heaps *heaps;
    pthread_t recorder;
    _Atomic bool stop;
    _Atomic bool sleeps; /* does not look */
    uint64_t lost;       /* of the records, as it has to be */
};

static uint64_t look(struct rig *r, bool last)
{
    struct session_clock clock = session_clock_now(&r->session);
    atomic_store(&r->session.shared->beat_ns, r->session.start_ns);
    for (uint32_t slot = 0; slot < RING_MAX_SLOTS; slot++) {
        uint32_t state = atomic_load(&r->session.shared->slot_state[slot]);
        if ((state == RING_LIVE || state == RING_CLOSED) && !r->heaps->feed[slot])
            heaps_meet(r->heaps, slot, session_map_slot(&r->session, slot));
    }
    return heaps_turn(r->heaps, &clock, false, last);
}

static void *record(void *arg)
{
    struct rig *r = arg;
    while (!atomic_load(&r->stop))
        if (atomic_load(&r->sleeps))
            sched_yield();
        else
            look(r, false);
    while (look(r, true))
        ;
    return NULL;
}

static void rig_up(struct rig *r, uint32_t instruments)
{
    *r = (struct rig){.session = {.fd = -1}};
    assert_int_equal(session_new(instruments, NULL, &r->session), 0);
    r->session.shared->memory_seed = 12345;
    r->session.keeps_memory_events = true;
    r->session.shared->wait_max_ms = UINT32_MAX; /* nothing is lost, however slow we are */
    assert_int_equal(heaps_new(&r->session, r->session.start_ns, &r->heaps), 0);
    const char *variable = strchr(r->session.variable, '=');
    assert_true(guest_enter(variable + 1));
    memory_start();
    assert_true(memory_is_on());
    pool.count = ADDRESSES;
    for (uintptr_t i = 0; i < ADDRESSES; i++)
        pool.free[i] = BLOCKS + 8 * i;
    assert_int_equal(pthread_create(&r->recorder, NULL, record, r), 0);
}

/* The heap as the recorder has it in the end. */
static const struct heap *rig_stop(struct rig *r)
{
    memory_stop();
    atomic_store(&r->stop, true);
    assert_int_equal(pthread_join(r->recorder, NULL), 0);
    assert_int_equal(r->heaps->processes.len, 1);
    const struct heaps_process *p = r->heaps->processes.data[0];
    assert_true(p->ended);
    uint64_t lost = 0;
    for (size_t i = 0; i < p->feeds.len; i++) {
        lost += p->feeds.data[i]->lost;
        assert_int_equal(p->feeds.data[i]->nonsense, 0);
    }
    assert_int_equal(lost, r->lost);
    return &p->heap;
}

static void rig_down(struct rig *r)
{
    guest_leave();
    heaps_free(r->heaps);
    session_release(&r->session);
}

/* --- threads --- */

static _Atomic(void *) mailbox[MAILBOXES];
static pthread_barrier_t barrier;

struct worker {
    pthread_t thread;
    uint64_t dice, bytes;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    give_block(take_block(1)); /* there is a ring for each before one is given back */
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < ROUNDS; i++) {
        w->dice = w->dice * 6364136223846793005ull + 1442695040888963407ull;
        size_t size = (size_t)(w->dice >> 33) % MAX_BLOCK;
        w->bytes += size;
        void *other = atomic_exchange(&mailbox[(w->dice >> 50) % MAILBOXES], take_block(size));
        if (other)
            give_block(other);
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Returns the bytes that were asked for in the rounds. */
static uint64_t run_workers(void)
{
    struct worker workers[THREADS];
    uint64_t bytes = 0;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.dice = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        bytes += workers[i].bytes;
    }
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < MAILBOXES; i++)
        give_block(atomic_exchange(&mailbox[i], NULL));
    return bytes;
}

static void test_nothing_is_lost(void **state ATTR_UNUSED)
{
    static struct rig r;
    rig_up(&r, RING_HEAP);
    uint64_t bytes = run_workers(), count = 0, told = 0;
    const struct heap *h = rig_stop(&r);
    for (size_t i = 0; i < h->sites.len; i++) {
        count += h->sites.data[i].sums.count;
        told += h->sites.data[i].sums.bytes;
    }
    assert_int_equal(count, THREADS * (ROUNDS + 1));
    assert_int_equal(told, bytes + THREADS);
    assert_int_equal(h->unknown + h->missed, 0);
    assert_int_equal(h->live_count, 0);
    assert_int_equal(h->live_bytes, 0);
    assert_int_equal(h->log->events, 2 * count);
    rig_down(&r);
}

/* The dice choose as the weights presume, and every block that was told is told to be given back. */
static void test_sampled(void **state ATTR_UNUSED)
{
    static struct rig r;
    rig_up(&r, RING_HEAP | RING_SAMPLED);
    double bytes = (double)run_workers(), told = 0, variance = 0;
    const struct heap *h = rig_stop(&r);
    for (size_t i = 0; i < h->sites.len; i++) {
        told += (double)h->sites.data[i].sums.bytes / HEAP_SAMPLE_SCALE;
        variance += h->sites.data[i].sums.variance;
    }
    /* with one seed all threads throw alike: as if there were one, and the error is so much larger */
    assert_true(fabs(told - bytes) < 5 * sqrt(variance * THREADS));
    assert_true(sqrt(variance) < bytes / 20);
    assert_int_equal(h->unknown + h->missed, 0);
    assert_int_equal(h->live_count, 0);
    rig_down(&r);
}

/* A realloc that fails leaves the block where it is, and its release is told when it comes, sampled or not. */
static void test_undo(void **state ATTR_UNUSED)
{
    static const uint32_t instruments[] = {RING_HEAP, RING_HEAP | RING_SAMPLED};
    static struct rig r;
    for (size_t i = 0; i < ARRAY_LEN(instruments); i++) {
        rig_up(&r, instruments[i]);
        void *block = take_block((size_t)1 << 30); /* so large that the dice cannot but choose it */
        assert_true(memory_frees(block, MEMORY_ANY_THREAD));
        memory_undo(block);
        assert_true(memory_frees(block, MEMORY_ANY_THREAD));
        const struct heap *h = rig_stop(&r);
        assert_int_equal(h->unknown + h->missed, 0);
        assert_int_equal(h->live_count, 0);
        assert_int_equal(h->log->events, 4);
        rig_down(&r);
    }
}

/* A thread's first block, given back by another before the recorder may have seen its ring. */
static void *live_short(void *arg)
{
    atomic_store((_Atomic(void *) *)arg, take_block(16));
    return NULL;
}

static void test_short_lives(void **state ATTR_UNUSED)
{
    static struct rig r;
    rig_up(&r, RING_HEAP);
    give_block(take_block(1));
    for (int i = 0; i < SHORT_LIVES; i++) {
        pthread_t thread;
        void *block;
        assert_int_equal(pthread_create(&thread, NULL, live_short, &mailbox[0]), 0);
        while (!(block = atomic_exchange(&mailbox[0], NULL)))
            sched_yield();
        give_block(block);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    const struct heap *h = rig_stop(&r);
    assert_int_equal(h->unknown + h->missed, 0);
    assert_int_equal(h->live_count, 0);
    assert_int_equal(h->log->events, 2 * (SHORT_LIVES + 1));
    rig_down(&r);
}

/* A stack that cannot be told, for numbers of code objects are used up: what stands below it is counted as lost, pages and blocks,
 * and what comes later is told. */
static void test_untold_is_counted(void **state ATTR_UNUSED)
{
    static struct rig r;
    struct fake_code code;
    struct fake_frame frame = {.code = &code}, *top = &frame;
    struct fake_thread thread = {.frame = &top};
    define(&code);
    rig_up(&r, RING_HEAP);
    give_block(take_block(1));
    atomic_store(&thread_state, (py_tstate *)&thread);
    atomic_store(&r.session.shared->next_code, RING_MAX_VALUE);
    void *block = take_block(100);
    memory_mapped(RECORD_ALLOCATOR_MMAP, (void *)BLOCKS, MAX_BLOCK);
    atomic_store(&thread_state, NULL);
    give_block(block);
    give_block(take_block(10));
    r.lost = 2;
    const struct heap *h = rig_stop(&r);
    assert_int_equal(h->unknown, 1);
    assert_int_equal(h->live_count, 0);
    assert_int_equal(h->log->events, 4);
    rig_down(&r);
}

static void *allocate_once(void *arg)
{
    *(void **)arg = take_block(100);
    return NULL;
}

/* The stack is so deep that its ring is full before it is told; while the thread waits for room, the interpreter ends, and the frames
 * are gone: it must not look at them again. */
static void test_frames_gone_while_waiting(void **state ATTR_UNUSED)
{
    enum { DEPTH = RING_WORDS + 1000 };
    static struct rig r;
    struct fake_code code;
    size_t bytes = DEPTH * sizeof(struct fake_frame);
    struct fake_frame *frames =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(frames != MAP_FAILED);
    for (size_t i = 0; i < DEPTH; i++)
        frames[i] = (struct fake_frame){.code = &code, .previous = i ? &frames[i - 1] : NULL};
    struct fake_frame *top = &frames[DEPTH - 1];
    struct fake_thread thread = {.frame = &top};
    define(&code);
    rig_up(&r, RING_HEAP);
    atomic_store(&r.sleeps, true);
    atomic_store(&thread_state, (py_tstate *)&thread);
    pthread_t other;
    void *block;
    assert_int_equal(pthread_create(&other, NULL, allocate_once, &block), 0);
    uint32_t slot = 0; /* whose ring it is */
    while (atomic_load(&r.session.shared->slot_state[slot]) != RING_LIVE)
        slot = (slot + 1) % RING_MAX_SLOTS;
    struct ring_header *ring = session_map_slot(&r.session, slot);
    while (atomic_load(&ring->head) < RING_WORDS) /* it is waiting */
        sched_yield();
    atomic_store(&ends, true);
    assert_int_equal(mprotect(frames, bytes, PROT_NONE), 0);
    atomic_store(&r.sleeps, false);
    assert_int_equal(pthread_join(other, NULL), 0);
    atomic_store(&thread_state, NULL);
    atomic_store(&ends, false);
    r.lost = 1;
    assert_int_equal(rig_stop(&r)->log->events, 0);
    session_unmap_slot(ring);
    rig_down(&r);
    munmap(frames, bytes);
}

int main(void)
{
    py.minor = 12;
    py.PyThread_get_thread_ident = ident;
    py.current_thread = no_thread;
    py.is_finalizing = is_finalizing;
    py.PyGILState_GetThisThreadState = this_thread;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost),   cmocka_unit_test(test_short_lives),
        cmocka_unit_test(test_sampled),           cmocka_unit_test(test_undo),
        cmocka_unit_test(test_untold_is_counted), cmocka_unit_test(test_frames_gone_while_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
