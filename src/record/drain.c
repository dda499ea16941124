#include "record/drain_state.h"

#include "base/cond.h"
#include "base/err.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

enum { MEMORY_BUSY_WORDS = 1 << 12 };
enum { TURN_WORDS = 1 << 16 }; /* decoded in one go with the lock held: about half a millisecond */
enum {
    MAX_HELD_BYTES = 32 << 20, /* of finished blocks */
    WANTS_BYTES = 4 << 20,     /* so much is worth a flush */
};
/* Between two turns. Much shorter, and our waking up disturbs the program by more than its probes do
 * (3 to 5 points of a share); much longer, and a ring may fill in it. */
#define NAP_NS (2 * NS_PER_MS)
/* Memory has no times to be disturbed, and a program that does little else fills its ring in three ms. */
#define SHORT_NAP_NS (200 * NS_PER_US)
/* Nothing has come for a while. */
#define IDLE_NS     (50 * NS_PER_MS)
#define LONG_NAP_NS (5 * NS_PER_MS)
#define DEATHS_NS   (20 * NS_PER_MS) /* processes that died without a word are looked for */

/* --- the draining thread --- */

static bool process_is_gone(uint32_t pid)
{
    return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static void take_in(struct drain *d, uint32_t slot)
{
    struct ring_header *ring = session_map_slot(d->session, slot);
    if (!ring)
        return;
    if (ring->content == RING_CONTENT_MEMORY && d->heaps) {
        heaps_meet(d->heaps, slot, ring);
        return;
    }
    bool has_lines = d->session->shared->instruments & RING_LINES;
    if (feed_new(slot, ring, has_lines, d->trace, d->origin_ns, &d->feed[slot]) < 0)
        session_unmap_slot(ring);
}

/* When the end of the recording was told, or else of a process, that it is over. */
static uint64_t end_tick(const struct drain *d)
{
    return atomic_load(&d->stop) ? d->stop_tick : session_tick(d->session);
}

/* Nothing comes after this: what runs, or is paused, has done so to the end. When the recording ends, that is known; when a process is
 * gone without a word we see it some time later, and when a ring is closed at our next turn. A pause lasts until we see that: rather told too
 * long than not told. */
static void conclude(const struct drain *d, struct feed *f)
{
    struct session_clock clock = session_clock_now(d->session);
    uint64_t late = (uint64_t)((double)(DEATHS_NS + LONG_NAP_NS) / clock.ns_per_tick);
    uint64_t end = f->gone_tick ? f->gone_tick : end_tick(d);
    if (!f->paused_at && (!atomic_load(&d->stop) || end < d->stop_tick))
        end = end - f->tick > late && end > f->tick ? end - late / 2 : f->tick;
    feed_finish(f, &clock, end);
}

/* Its thread or process has ended, and all it said has been taken. */
static void give_back(struct drain *d, uint32_t slot)
{
    struct feed *f = d->feed[slot];
    struct feed **place = vec_push(&d->done);
    f->closed = true;
    conclude(d, f);
    session_unmap_slot(f->ring);
    f->ring = NULL;
    if (place)
        *place = f;
    else
        feed_free(f);
    d->feed[slot] = NULL;
    session_free_slot(d->session, slot);
}

/* One slot. Returns the words that were taken. */
static uint64_t look_at(struct drain *d, uint32_t slot, bool deaths)
{
    _Atomic uint32_t *state = &d->session->shared->slot_state[slot];
    uint32_t now = atomic_load_explicit(state, memory_order_acquire);
    if (now != RING_LIVE && now != RING_CLOSED)
        return 0;
    if (!d->feed[slot] && !(d->heaps && d->heaps->feed[slot]))
        take_in(d, slot);
    struct feed *f = d->feed[slot];
    if (!f)
        return 0;
    bool gone = now == RING_CLOSED || (deaths && process_is_gone(f->owner.pid));
    if (gone && !f->gone_tick)
        f->gone_tick = end_tick(d);
    size_t held = f->events ? f->events->done_bytes : 0;
    /* The clock after the words: on a busy machine we may be put to sleep between the two, and what is stamped after the clock is
     * taken for a lie. */
    uint64_t waiting = feed_waiting(f);
    struct session_clock clock = session_clock_now(d->session);
    int64_t taken = feed_take(f, &d->codes, &clock, waiting < TURN_WORDS ? waiting : TURN_WORDS);
    f->nonsense += taken < 0; /* a ring of nonsense is given up */
    if (f->events)
        atomic_fetch_add(&d->held_bytes, f->events->done_bytes - held);
    if (taken < 0 || (gone && feed_waiting(f) == 0))
        give_back(d, slot);
    return taken < 0 ? 0 : (uint64_t)taken;
}

static uint64_t look_at_all(struct drain *d, bool deaths)
{
    uint64_t taken = 0;
    bool stop = atomic_load(&d->stop); /* before rings are looked for */
    atomic_store_explicit(&d->session->shared->beat_ns, clock_mono_ns(), memory_order_relaxed);
    /* the recorder, or the disk, is behind: rings fill, and their threads wait */
    if (atomic_load(&d->held_bytes) + atomic_load(&d->memory_bytes) > MAX_HELD_BYTES && !stop)
        return 0;
    struct session_clock clock = session_clock_now(d->session);
    for (uint32_t slot = 0; slot < RING_MAX_SLOTS; slot++) {
        if (atomic_load_explicit(&d->session->shared->slot_state[slot], memory_order_relaxed) ==
            RING_FREE)
            continue;
        pthread_mutex_lock(&d->lock);
        taken += look_at(d, slot, deaths);
        pthread_mutex_unlock(&d->lock);
    }
    if (d->heaps) {
        pthread_mutex_lock(&d->lock);
        taken += heaps_turn(d->heaps, &clock, deaths, stop);
        atomic_store(&d->memory_bytes, heaps_held_bytes(d->heaps));
        if (d->heaps->timely)
            atomic_store(&d->has_checkpoint, true);
        d->heaps->timely = false;
        pthread_mutex_unlock(&d->lock);
    }
    return taken;
}

/* Until the time is over, or there is no more to come: a program that has ended is not to wait for our naps. */
static void nap(struct drain *d, uint64_t ns)
{
    uint64_t until = clock_mono_ns() + ns;
    int rc = 0;
    pthread_mutex_lock(&d->lock);
    while (rc == 0 && !atomic_load(&d->stop))
        rc = cond_wait_until(&d->wake, &d->lock, until);
    pthread_mutex_unlock(&d->lock);
}

static void *drain_main(void *arg)
{
    struct drain *d = arg;
    uint64_t deaths_ns = 0, busy_ns = 0;
    while (!atomic_load_explicit(&d->stop, memory_order_relaxed)) {
        uint64_t now = clock_mono_ns();
        bool deaths = now - deaths_ns > DEATHS_NS;
        if (deaths)
            deaths_ns = now;
        uint64_t taken = look_at_all(d, deaths);
        atomic_store(&d->cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID));
        if (taken >= TURN_WORDS)
            continue; /* somebody is quicker than one turn: go on */
        if (taken)
            busy_ns = now;
        bool hurry = d->heaps && taken > MEMORY_BUSY_WORDS;
        bool idle = now - busy_ns > IDLE_NS;
        nap(d, hurry ? SHORT_NAP_NS : idle ? LONG_NAP_NS : NAP_NS);
    }
    while (look_at_all(d, true))
        ;
    look_at_all(d, true); /* those that had ended are given back */
    pthread_mutex_lock(&d->lock);
    for (uint32_t slot = 0; slot < RING_MAX_SLOTS; slot++)
        if (d->feed[slot]) /* its process outlives the recording */
            conclude(d, d->feed[slot]);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

int drain_new(const struct session *session, const struct events_options *trace, uint64_t origin_ns,
              struct drain **ret)
{
    struct drain *d = calloc(1, sizeof *d);
    if (!d)
        return E_NOMEM;
    d->session = session;
    d->trace = trace;
    d->window.length_ns = trace ? trace->last_ns : 0;
    d->origin_ns = origin_ns;
    pthread_mutex_init(&d->lock, NULL);
    cond_init(&d->wake);
    if (session->shared->instruments & RING_MEMORY &&
        heaps_new(session, origin_ns, &d->heaps) < 0) {
        drain_free(d);
        return E_NOMEM;
    }
    sigset_t all, before;
    sigfillset(&all); /* signals are the recorder's affair */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    d->started = pthread_create(&d->thread, NULL, drain_main, d) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!d->started) {
        drain_free(d);
        return E_NOMEM;
    }
    *ret = d;
    return 0;
}

void drain_stop(struct drain *d)
{
    if (!d->started)
        return;
    pthread_mutex_lock(&d->lock);
    d->stop_tick = session_tick(d->session);
    atomic_store(&d->stop, true);
    pthread_cond_signal(&d->wake);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    d->started = false;
}

bool drain_wants_flush(const struct drain *d)
{
    return atomic_load_explicit(&d->has_checkpoint, memory_order_relaxed) ||
           atomic_load_explicit(&d->held_bytes, memory_order_relaxed) +
                   atomic_load_explicit(&d->memory_bytes, memory_order_relaxed) >
               WANTS_BYTES;
}

uint64_t drain_cpu_ns(const struct drain *d)
{
    return atomic_load(&d->cpu_ns);
}

void drain_free(struct drain *d)
{
    if (!d)
        return;
    drain_stop(d);
    for (uint32_t slot = 0; slot < RING_MAX_SLOTS; slot++) {
        if (d->feed[slot])
            session_unmap_slot(d->feed[slot]->ring);
        feed_free(d->feed[slot]);
    }
    for (size_t i = 0; i < d->done.len; i++)
        feed_free(d->done.data[i]);
    for (size_t i = 0; i < d->codes.fresh.len; i++)
        feed_code_release(&d->codes.fresh.data[i]);
    vec_release(&d->done);
    vec_release(&d->codes.fresh);
    vec_release(&d->file_code);
    vec_release(&d->calibrated);
    sources_place_free(d->here);
    heaps_free(d->heaps);
    pthread_cond_destroy(&d->wake);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
