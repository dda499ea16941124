/* The recording loop: launch or attach, tick, flush, reap, finish. */
#include "record/record.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/progress.h"
#include "record/drain.h"
#include "record/facts.h"
#include "record/launch.h"
#include "record/procs.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FLUSH_NS       (NS_PER_SEC / 2) /* what a crash of ours can lose */
#define FIRST_FLUSH_NS (50 * NS_PER_MS)
#define RARE_STATS_NS  (60 * NS_PER_SEC) /* where only the end is kept */
#define MAX_SLEEP_NS   (50 * NS_PER_MS)  /* so that a signal between check and sleep waits little */
#define WATCH_NS       (5 * NS_PER_MS)   /* processes are looked after so often, samples or not */
/* Instructions are asked for a thousand times a second, where need be, and at first, as a short program is to have enough of them,
 * too, four thousand times. */
#define SLOWED_SOON_NS (NS_PER_MS / 4)
#define SLOWED_LATE_NS (2 * NS_PER_MS - SLOWED_SOON_NS)
#define SLOWED_FIRST   (2 * NS_PER_SEC)
#define SLOWED_SPARE                                                                               \
    10 /* a tenth of a processor is for this, until one look at all processes takes 2.5 ms */
#define SPIN_BELOW_NS (20 * NS_PER_US) /* shorter pauses than this cannot be slept */
#define MAX_GAP_NS    (100 * NS_PER_MS)
#define SLICE_NS      (100 * NS_PER_US) /* the shortest turn the kernel grants */

struct recorder {
    const struct record_options *options;
    struct format_writer *writer;
    struct target_shared shared;
    struct threadids threads;
    struct slowed slowed;
    struct procs *procs;
    struct session session; /* with the guests; none: fd < 0 */
    struct drain *drain;
    struct events_options trace;
    struct record_stats stats;
    struct record_result result;
    pid_t root;
    bool child;    /* root is our child: we reap it */
    bool done;     /* the program has ended */
    bool finished; /* the file is whole, or as whole as it gets */
    uint64_t start_ns, first_tick_ns, last_tick_ns, watched_ns, flush_ns, stats_ns;
    uint64_t asking_ns; /* what one tick takes, on average, where instructions are asked for */
    uint64_t cpu_start_ns;
    uint64_t sources_cpu_ns; /* of the thread that reads sources */
    uint64_t rng;
};

static void account(struct recorder *r, const struct rusage *u)
{
    uint64_t *v = r->stats.value;
    v[RECORD_STAT_USER_NS] +=
        (uint64_t)u->ru_utime.tv_sec * NS_PER_SEC + (uint64_t)u->ru_utime.tv_usec * NS_PER_US;
    v[RECORD_STAT_SYSTEM_NS] +=
        (uint64_t)u->ru_stime.tv_sec * NS_PER_SEC + (uint64_t)u->ru_stime.tv_usec * NS_PER_US;
    v[RECORD_STAT_PEAK_RSS_BYTES] =
        max_u64(v[RECORD_STAT_PEAK_RSS_BYTES], (uint64_t)u->ru_maxrss * 1024);
}

/* Collects every child that has ended: the command itself and orphans handed to us. */
static void reap(struct recorder *r)
{
    int status;
    struct rusage usage;
    pid_t pid;
    while ((pid = meter_wait(r->options->meter, &status, &usage)) > 0) {
        uint64_t now = clock_mono_ns();
        account(r, &usage);
        if (r->procs)
            procs_note_exit(r->procs, pid, now);
        if (pid != r->root)
            continue;
        r->done = true;
        r->result.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        r->stats.value[RECORD_STAT_ELAPSED_NS] = now - r->start_ns;
        r->stats.value[RECORD_STAT_EXIT_STATUS] = (uint64_t)r->result.exit_status;
    }
}

/* A uniform number in [0.5, 1.5) times the period: the mean is right, no rhythm to fall into. */
static uint64_t jittered(struct recorder *r, uint64_t period)
{
    r->rng = r->rng * 6364136223846793005ull + 1442695040888963407ull;
    return period / 2 + (uint64_t)((double)(r->rng >> 11) * 0x1p-53 * (double)period);
}

static void handle_signals(struct recorder *r)
{
    if (r->child) {
        launch_forward_signals(r->root);
        if (launch_take_child_event())
            reap(r);
    } else if (launch_take_stop_request()) {
        r->result.interrupted = true;
        r->done = true;
    }
}

/* Sleeps until `due`, looking at signals on the way. It is `now`; returns what it is then: flat out, a look is 3 µs and asking the
 * clock more often than need be shows. */
static uint64_t wait_until(struct recorder *r, uint64_t due, uint64_t now)
{
    for (;;) {
        handle_signals(r);
        if (r->done || now >= due)
            return now;
        uint64_t until = min_u64(due, now + MAX_SLEEP_NS);
        if (until - now >= SPIN_BELOW_NS) {
            const struct timespec ts = clock_timespec(until);
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
        }
        now = clock_mono_ns();
    }
}

static void update_stats(struct recorder *r, uint64_t now)
{
    uint64_t *v = r->stats.value;
    v[RECORD_STAT_TICKS_REQUESTED] = v[RECORD_STAT_TICKS_TAKEN] + v[RECORD_STAT_TICKS_MISSED];
    v[RECORD_STAT_SAMPLER_CPU_NS] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - r->cpu_start_ns;
    if (r->shared.sources)
        r->sources_cpu_ns = sources_cpu_ns(r->shared.sources);
    v[RECORD_STAT_WRITER_CPU_NS] = format_writer_cpu_ns(r->writer) + r->sources_cpu_ns;
    v[RECORD_STAT_SAMPLED_NS] = r->last_tick_ns - r->first_tick_ns;
    if (!r->child)
        v[RECORD_STAT_ELAPSED_NS] = now - r->start_ns;
}

static void take_events(struct recorder *r)
{
    if (!r->drain)
        return;
    drain_flush(r->drain, &r->shared, r->procs);
    uint64_t *v = r->stats.value;
    v[RECORD_STAT_THREADS_REFUSED] = atomic_load(&r->session.shared->no_slot);
    v[RECORD_STAT_FUNCTIONS_LEFT_OUT] = atomic_load(&r->session.shared->left_out);
    v[RECORD_STAT_AGENTS_REFUSED] = atomic_load(&r->session.shared->refused);
    v[RECORD_STAT_AGENTS_UNHOOKED] = atomic_load(&r->session.shared->unhooked);
    v[RECORD_STAT_OWN_NEW] = atomic_load(&r->session.shared->own_new);
    v[RECORD_STAT_INTERPRETERS_UNTRACED] = atomic_load(&r->session.shared->interpreters);
    v[RECORD_STAT_DRAIN_CPU_NS] = drain_cpu_ns(r->drain);
}

static void flush(struct recorder *r, uint64_t now)
{
    take_events(r);
    procs_flush(r->procs);
    sources_collect(r->shared.sources);
    update_stats(r, now);
    /* a file that is to stay small must not grow by these */
    if (now - r->stats_ns >=
        (r->options->last_ns ? RARE_STATS_NS : facts_stats_age(now - r->start_ns))) {
        format_writer_stats(r->writer, &r->stats);
        r->stats_ns = now;
    }
    int rc = format_writer_flush(r->writer);
    if (rc < 0 && !r->result.write_error)
        r->result.write_error = rc;
    r->flush_ns = now;
    progress_reach(r->stats.value[RECORD_STAT_SAMPLES]);
}

/* After every look, with samples or without. */
static void follow_up(struct recorder *r, uint64_t now)
{
    r->watched_ns = now;
    /* soon at first, so that a short run or a small disk keeps something */
    uint64_t interval = min_u64(FLUSH_NS, max_u64(FIRST_FLUSH_NS, (now - r->start_ns) / 4));
    if (now - r->flush_ns >= interval || format_writer_wants_flush(r->writer) ||
        (r->drain && drain_wants_flush(r->drain)))
        flush(r, now);
    if (!r->child && !procs_alive(r->procs, r->root))
        r->done = true;
}

static void tick(struct recorder *r, uint64_t now)
{
    if (!r->first_tick_ns)
        r->first_tick_ns = now;
    r->last_tick_ns = now;
    r->stats.value[RECORD_STAT_TICKS_TAKEN]++;
    procs_tick(r->procs, now);
    if (r->shared.slowing)
        r->asking_ns = (3 * r->asking_ns + clock_mono_ns() - now) / 4;
    follow_up(r, now);
}

/* Sleeps until the next tick is due. Where that is far off, a child could come and go meanwhile: so processes are
 * looked after on the way. */
static uint64_t wait_for_tick(struct recorder *r, uint64_t due, uint64_t now)
{
    for (;;) {
        now = wait_until(r, min_u64(due, r->watched_ns + WATCH_NS), now);
        if (r->done || r->result.write_error || now >= due)
            return now;
        procs_watch(r->procs, now);
        follow_up(r, now);
    }
}

/* Mean time from the `n`th tick to the next. Where instructions are asked for, two ticks follow so soon on each other that what is counted
 * in between can be told (slowed.c). */
static uint64_t period_at(const struct recorder *r, uint64_t n, uint64_t now)
{
    if (r->options->sample)
        return max_u64(1, r->shared.period_ns);
    if (!r->shared.slowing)
        return WATCH_NS; /* nobody to look at: only births and deaths of processes */
    if (n % 2)
        return SLOWED_SOON_NS;
    uint64_t late = now - r->start_ns < SLOWED_FIRST ? SLOWED_SOON_NS : SLOWED_LATE_NS;
    return max_u64(late, min_u64(UINT64_C(2) * SLOWED_SPARE * r->asking_ns, MAX_GAP_NS / 2));
}

static void record_loop(struct recorder *r)
{
    const struct record_options *o = r->options;
    uint64_t stop_at =
        o->seconds > 0 ? r->start_ns + (uint64_t)(o->seconds * (double)NS_PER_SEC) : UINT64_MAX;
    uint64_t now = clock_mono_ns(), due = now, ticks = 0;
    while (!r->done && now < stop_at && !r->result.write_error) {
        tick(r, now);
        uint64_t period = period_at(r, ticks++, now);
        due += jittered(r, period);
        now = clock_mono_ns();
        if (now > due + period) { /* came too late for some: count them, do not pile up */
            uint64_t missed = (now - due) / period;
            if (o->sample ||
                !r->shared.slowing) /* a late question for an instruction stands for more time */
                r->stats.value[RECORD_STAT_TICKS_MISSED] += missed;
            due += missed * period;
        }
        now = wait_for_tick(r, min_u64(due, stop_at), now);
    }
}

/* After the time is up, or the disk full: the program goes on, and its exit status is still owed. */
static void wait_for_child(struct recorder *r)
{
    if (r->drain && !r->done) {
        atomic_store(&r->session.shared->stop, 1); /* the guests take themselves out */
        drain_stop(r->drain);
    }
    for (uint64_t now = clock_mono_ns(); !r->done;)
        now = wait_until(r, now + MAX_SLEEP_NS, now);
}

static int begin(struct recorder *r, const struct record_options *o, const char *mode)
{
    r->start_ns = clock_mono_ns();
    r->rng = r->start_ns ^ (uint64_t)getpid() << 32;
    struct format_writer_options wo = {.force = o->force, .clock_origin_ns = r->start_ns};
    __builtin_memcpy(wo.run_id, o->run_id, sizeof wo.run_id);
    /* what may fail first, before a file is made */
    int rc = launch_survive_limits();
    if (rc == 0 && o->instruments)
        rc = session_new(o->instruments, o->selection, &r->session);
    r->session.keeps_memory_events = o->memory_events;
    if (rc == 0)
        rc = format_writer_open(o->path, &wo, &r->writer);
    if (rc < 0)
        return rc;
    facts_write(r->writer, o, mode);
    r->shared = (struct target_shared){
        .writer = r->writer,
        .stats = &r->stats,
        .origin_ns = r->start_ns,
        .threads = &r->threads,
        .sample = o->sample,
        .period_ns = (uint64_t)llround((double)NS_PER_SEC / o->hz),
        .unsafe = o->unsafe_no_check,
    };
    if (ring_asks_instructions(o->instruments))
        r->shared.slowed = &r->slowed;
    r->shared.max_gap_ns = max_u64(MAX_GAP_NS, 20 * r->shared.period_ns);
    r->trace = (struct events_options){
        .min_ns = o->min_ns, .max_depth = o->max_depth, .last_ns = o->last_ns};
    r->stats.value[RECORD_STAT_RATE_MILLIHERTZ] = (uint64_t)llround(o->hz * 1000);
    rc = target_shared_init(&r->shared);
    if (rc == 0)
        rc = sources_new(r->writer, &r->shared.sources);
    if (rc == 0)
        rc = procs_new(&r->shared, r->child, &r->procs);
    if (rc == 0 && o->instruments)
        rc = drain_new(&r->session, o->instruments & RING_TRACE ? &r->trace : NULL, r->start_ns,
                       &r->drain);
    return rc;
}

/* We open two small files per thread: as many as the system lets us. Called after the child was
 * started, whose limits are its own affair. */
static void raise_file_limit(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

/* Asks for short turns on the CPU: a thread that wants little is then let in sooner when the machine
 * is busy (EEVDF, Linux 6.12+; earlier kernels take no notice). Priority and share stay as they are. */
static void ask_for_short_slices(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {.size = sizeof attr};
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) == 0 && attr.policy == SCHED_OTHER) {
        attr.runtime = SLICE_NS;
        syscall(SYS_sched_setattr, 0, &attr, 0);
    }
}

/* Everything that makes us prompt; after the child was started, which must not inherit it. */
static void get_ready(struct recorder *r)
{
    prctl(PR_SET_TIMERSLACK, 1);
    raise_file_limit();
    ask_for_short_slices();
    r->cpu_start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void finish(struct recorder *r)
{
    uint64_t now = clock_mono_ns();
    if (r->child && r->done) /* else all that was asked for is there */
        r->stats.value[RECORD_STAT_PROCESSES_LEFT] = procs_running(r->procs);
    if (r->options->finishing)
        r->options->finishing();
    if (r->drain) {
        drain_stop(r->drain);
        take_events(r);
    }
    procs_flush(r->procs);
    procs_free(r->procs);
    r->procs = NULL;
    update_stats(r, now);
    sources_free(r->shared.sources);
    r->shared.sources = NULL;
    format_writer_stats(r->writer, &r->stats);
    int rc = format_writer_finish(r->writer);
    if (rc < 0 && !r->result.write_error)
        r->result.write_error = rc;
    r->result.stats = r->stats;
    r->finished = true;
}

static void release(struct recorder *r)
{
    drain_free(r->drain);
    session_release(&r->session);
    procs_free(r->procs);
    sources_free(r->shared.sources);
    if (r->finished)
        format_writer_free(r->writer);
    else
        format_writer_abandon(r->writer);
    target_shared_release(&r->shared);
    threadids_release(&r->threads);
    slowed_release(&r->slowed);
    launch_unwatch_signals();
}

/* The command runs from here to its end. */
static void follow_child(struct recorder *r)
{
    get_ready(r);
    procs_add_root(r->procs, r->root, clock_mono_ns());
    record_loop(r);
    if (r->result.write_error == 0 && !r->done)
        flush(r, clock_mono_ns());
    wait_for_child(r);
    if (r->options->meter)
        meter_ended(r->options->meter, r->result.exit_status);
    finish(r);
}

static int record_child(struct recorder *r)
{
    const struct record_options *o = r->options;
    int rc = begin(r, o, "run");
    if (rc == 0)
        rc = launch_watch_signals(true);
    if (rc < 0)
        return rc;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    r->result.exec_error = launch_start(o->argv, r->drain ? &r->session : NULL, o->meter, &r->root);
    if (!r->result.exec_error)
        follow_child(r);
    return 0;
}

int record_run(const struct record_options *options, struct record_result *ret)
{
    struct recorder r = {.child = true, .options = options, .session = {.fd = -1}};
    int rc = 0;
    r.result.exec_error = launch_find(options->argv[0]);
    if (!r.result.exec_error)
        rc = record_child(&r);
    else if (options->meter)
        meter_started(options->meter, 0);
    if (r.result.exec_error)
        r.result.exit_status = launch_exit_status(r.result.exec_error);
    *ret = r.result;
    release(&r);
    return rc;
}

/* "PID:FD:KEY" and the library. */
static int send_invitation(const struct recorder *r, int fd)
{
    char agent[PATH_MAX], text[PATH_MAX + sizeof r->session.variable];
    int rc = session_find_agent(agent, sizeof agent);
    if (rc < 0)
        return rc;
    int n = snprintf(text, sizeof text, "%s\n%s\n", strchr(r->session.variable, '=') + 1, agent);
    return io_write_all(fd, text, (size_t)n);
}

int record_invite(const struct record_options *options, struct record_result *ret)
{
    struct recorder r = {.root = options->pid, .options = options, .session = {.fd = -1}};
    int rc = begin(&r, options, "invite");
    if (rc == 0)
        rc = launch_watch_signals(false);
    if (rc == 0)
        rc = send_invitation(&r, options->invite_fd);
    if (rc < 0) {
        release(&r);
        return rc;
    }
    get_ready(&r);
    while (!r.done && (kill(r.root, 0) == 0 || errno == EPERM)) {
        uint64_t now = clock_mono_ns();
        if (now - r.flush_ns >= FLUSH_NS || drain_wants_flush(r.drain))
            flush(&r, now);
        wait_until(&r, now + MAX_SLEEP_NS, now);
    }
    atomic_store(&r.session.shared->stop, 1); /* nobody reads what the program writes from now on */
    finish(&r);
    *ret = r.result;
    release(&r);
    return 0;
}

int record_attach(const struct record_options *options, struct record_result *ret)
{
    struct recorder r = {.root = options->pid, .options = options, .session = {.fd = -1}};
    struct remote *remote = NULL;
    int rc = remote_open_patiently(options->pid, &remote);
    if (rc == 0)
        rc = begin(&r, options, "attach");
    if (rc == 0)
        rc = launch_watch_signals(false);
    if (rc < 0) {
        remote_close(remote);
        release(&r);
        return rc;
    }
    get_ready(&r);
    rc = procs_add_open(r.procs, remote, clock_mono_ns());
    if (rc == 0) {
        if (options->started)
            options->started();
        record_loop(&r);
        finish(&r);
    }
    *ret = r.result;
    release(&r);
    return rc;
}
