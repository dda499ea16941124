/* The rings, with both of their ends in one process: the guest's own writing side in many threads, the
 * recorder's draining thread, and what arrives in the file. Meant for ThreadSanitizer, too. */
#include "agent/guest.h"
#include "agent/pyver.h"
#include "base/err.h"
#include "profile/profile.h"
#include "record/drain.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* All threads at once, and some of them longer than their rings: more would tell nothing new, and take long under TSan. */
enum { THREADS = 64, LONG_ONES = 8, CALLS = 40000, FEW_CALLS = 4000, CODE = 1 };
static_assert(4 * CALLS > RING_WORDS, "who makes as many goes round its ring");

static const char TEMPLATE[] = "/tmp/pyrometer-ring-XXXXXX";
static char path[sizeof TEMPLATE];

static unsigned long ident(void)
{
    return (unsigned long)pthread_self();
}

/* What codes.c writes when a code object is met. */
static void define(uint32_t id, const char *name)
{
    struct ring_code code = {.id = id, .name_len = (uint32_t)strlen(name)};
    const struct guest_piece pieces[] = {{&code, sizeof code}, {name, strlen(name)}};
    guest_emit_ext(RING_EXT_CODE, pieces, 2);
}

struct job {
    int calls;
    pthread_barrier_t *start; /* NULL: at once */
};

static void *produce(void *arg)
{
    const struct job *job = arg;
    guest_emit(RING_ASIDE, 0); /* now it has a ring */
    if (job->start)
        pthread_barrier_wait(job->start);
    for (int i = 0; i < job->calls; i++) {
        guest_emit(RING_ENTER, CODE);
        guest_emit(RING_C_ENTER, CODE + 1);
        guest_emit(RING_C_LEAVE, CODE + 1);
        guest_emit(RING_LEAVE, CODE);
    }
    guest_close_thread();
    return NULL;
}

/* A recorder without a program: session, drain, writer. */
struct rig {
    struct session session;
    struct drain *drain;
    struct record_stats stats;
    struct threadids threads;
    struct target_shared shared;
    struct procs *procs;
};

static void rig_up(struct rig *r)
{
    *r = (struct rig){.session = {.fd = -1}};
    memcpy(path, TEMPLATE, sizeof path);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(session_new(RING_CALLS, NULL, &r->session), 0);
    struct format_writer_options options = {.force = true};
    r->shared = (struct target_shared){.stats = &r->stats, .threads = &r->threads};
    assert_int_equal(format_writer_open(path, &options, &r->shared.writer), 0);
    assert_int_equal(target_shared_init(&r->shared), 0);
    assert_int_equal(procs_new(&r->shared, false, &r->procs), 0);
    assert_int_equal(drain_new(&r->session, NULL, 0, &r->drain), 0);
    session_export(&r->session);
    unsetenv("LD_PRELOAD");
    py.PyThread_get_thread_ident = ident;
    assert_true(guest_enter(getenv(RING_VARIABLE)));
    atomic_store(&guest.on, true);
}

static void rig_down(struct rig *r)
{
    drain_stop(r->drain);
    drain_flush(r->drain, &r->shared, r->procs);
    assert_int_equal(format_writer_finish(r->shared.writer), 0);
    drain_free(r->drain);
    procs_free(r->procs);
    format_writer_free(r->shared.writer);
    target_shared_release(&r->shared);
    threadids_release(&r->threads);
    session_release(&r->session);
    atomic_store(&guest.on, false);
}

static int count(void *ctx, const struct record_calls *calls)
{
    *(uint64_t *)ctx += calls->calls;
    return 0;
}

static void test_nothing_is_lost(void **state ATTR_UNUSED)
{
    struct rig r;
    pthread_t thread[THREADS];
    pthread_barrier_t start; /* all rings are there at once */
    pthread_barrier_init(&start, NULL, THREADS);
    struct job many = {CALLS, &start}, few = {FEW_CALLS, &start};
    rig_up(&r);
    /* nobody loses patience: on a busy machine the draining thread may have to wait for a CPU behind all these */
    r.session.shared->wait_max_ms = UINT32_MAX;
    define(CODE, "outer");
    define(CODE + 1, "inner");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, produce, i < LONG_ONES ? &many : &few),
                         0);
    for (int i = 0; i < THREADS; i++) {
        drain_flush(r.drain, &r.shared, r.procs); /* while they write */
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    guest_close_thread();
    pthread_barrier_destroy(&start);
    rig_down(&r);
    assert_int_equal(r.stats.value[RECORD_STAT_EVENTS_LOST], 0);
    assert_int_equal(r.stats.value[RECORD_STAT_EVENTS_DAMAGED], 0);
    struct profile *p = NULL;
    uint64_t calls = 0;
    assert_int_equal(profile_load(path, &p), 0);
    assert_int_equal(profile_each_calls(p, count, &calls, NULL), 0);
    const uint64_t made = (uint64_t)LONG_ONES * CALLS + (uint64_t)(THREADS - LONG_ONES) * FEW_CALLS;
    assert_int_equal(calls, 2 * made);
    assert_true(profile_tables(p)->thread_count >= THREADS);
    profile_free(p);
    unlink(path);
}

static struct ring_header *the_ring(const struct rig *r)
{
    for (uint32_t slot = 0; slot < RING_MAX_SLOTS; slot++)
        if (atomic_load(&r->session.shared->slot_state[slot]) == RING_LIVE)
            return session_map_slot(&r->session, slot);
    return NULL;
}

/* A recorder whose time is up reads no more, and says so. Whoever waits for room in a full ring then waits in vain, and with the GIL
 * in its hand: it must not wait to the end of its patience, which here is more than a month. What it could not tell is no loss. */
static void test_nobody_waits_after_the_end(void **state ATTR_UNUSED)
{
    struct rig r;
    pthread_t thread;
    struct ring_header *ring = NULL;
    struct job many = {.calls = CALLS};
    rig_up(&r);
    r.session.shared->wait_max_ms = UINT32_MAX;
    drain_stop(r.drain);
    assert_int_equal(pthread_create(&thread, NULL, produce, &many), 0);
    while (!ring)
        ring = the_ring(&r);
    enum { NEARLY = 16 }; /* a few words are kept back */
    while (atomic_load(&ring->head) < RING_WORDS - NEARLY)
        sched_yield();
    atomic_store(&r.session.shared->stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(atomic_load(&guest.on));
    assert_int_equal(atomic_load(&ring->lost), 0);
    session_unmap_slot(ring);
    rig_down(&r);
    assert_int_equal(r.stats.value[RECORD_STAT_EVENTS_LOST], 0);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_lost),
                                       cmocka_unit_test(test_nobody_waits_after_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
