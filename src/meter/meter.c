#include "meter/meter.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "meter/counters.h"
#include "meter/git.h"
#include "meter/host.h"
#include "meter/keyboard.h"
#include "meter/python.h"
#include "meter/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#define DRAIN_PATIENCE_NS (500 * NS_PER_MS) /* a reader that does not read */
#define GIT_PATIENCE_NS   (6 * NS_PER_MS)   /* an answer that is not there when the program ends */
enum {
    HOST_MAX = 32,
    FINALS_MAX = 4096,
    COST_SHARE = 50, /* looks take at most one part of so many */
};

struct fact {
    char *key, *value;
};

/* A process that was reaped: its own CPU time, to the last tick. */
struct final {
    pid_t pid;
    uint64_t user_ticks, system_ticks;
};

struct meter {
    struct meter_options options;
    struct relay *relay;
    _Atomic uint64_t *exec_ns; /* shared with the child: when it was about to exec */
    int metrics_fd;            /* the memory that pyrometer.metric() appends to */
    int counter;
    bool in_git;
    char git_folder[4096];
    uint64_t start_ns, end_ns, real_ns;
    int exit_status;
    struct rusage usage; /* of all that were reaped */
    uint64_t read_bytes, write_bytes, read_chars, write_chars;
    bool has_io;
    VEC(struct final) finals;

    pthread_t thread;
    bool running;
    _Atomic bool stop;
    int wake; /* eventfd: ends the thread's sleep */
    pid_t child;
    /* the thread's, until it has ended: */
    struct tree tree;
    struct python python;
    struct git git;
    struct fact host[HOST_MAX];
    size_t host_count;
};

/* --- before --- */

int meter_new(const struct meter_options *options, struct meter **ret)
{
    struct meter *m = calloc(1, sizeof *m);
    if (!m)
        return E_NOMEM;
    m->options = *options;
    m->counter = counters_open();
    m->metrics_fd = memfd_create("pyrometer-metrics", MFD_CLOEXEC);
    m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->exec_ns =
        mmap(NULL, sizeof *m->exec_ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m->exec_ns == MAP_FAILED)
        m->exec_ns = NULL;
    tree_init(&m->tree);
    char here[4096];
    if (options->ask_git && getcwd(here, sizeof here))
        m->in_git = git_find(here, m->git_folder, sizeof m->git_folder);
    int rc = m->exec_ns ? python_init(&m->python) : E_NOMEM;
    if (rc == 0 &&
        relay_new(options->capture, options->keep, m->in_git ? m->git_folder : NULL, &m->relay) < 0)
        m->relay = NULL; /* the program keeps its streams */
    m->start_ns = clock_mono_ns();
    m->real_ns = clock_real_ns();
    if (rc < 0)
        meter_free(m);
    else
        *ret = m;
    return rc;
}

void meter_enter(const struct meter *m)
{
    if (m->relay)
        relay_enter(m->relay);
    atomic_store(m->exec_ns, clock_mono_ns());
}

/* --- meanwhile: the thread --- */

static void add_host(void *ctx, const char *key, const char *value)
{
    struct meter *m = ctx;
    char *k = strdup(key), *v = strdup(value);
    if (k && v && m->host_count < HOST_MAX) {
        m->host[m->host_count++] = (struct fact){k, v};
        return;
    }
    free(k);
    free(v);
}

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
    return min_u64(max_u64(value, least), most);
}

/* We are above the program, so we may ask what it waits for; the relay may not. */
static void watch_keyboard(struct meter *m)
{
    const char *terminal = m->relay ? relay_typed_at(m->relay) : NULL;
    for (size_t i = 0; terminal && i < m->tree.list.len; i++)
        if (!m->tree.list.data[i].gone && keyboard_is_awaited(m->tree.list.data[i].pid, terminal)) {
            relay_hand_over(m->relay);
            return;
        }
}

/* Young programs are looked at often, so that short ones are seen at all. */
static void watch_loop(struct meter *m)
{
    uint64_t begin = clock_mono_ns(), tree_due = begin, python_due = begin;
    while (!atomic_load(&m->stop)) {
        uint64_t now = clock_mono_ns(), age = now - begin;
        tree_births(&m->tree, now);
        if (now >= tree_due) {
            uint64_t cost = clock_ns(CLOCK_THREAD_CPUTIME_ID);
            tree_look(&m->tree, now);
            cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cost;
            tree_due =
                now + max_u64(clamp(age / 50, 2 * NS_PER_MS, 100 * NS_PER_MS), cost * COST_SHARE);
        }
        watch_keyboard(m);
        if (now >= python_due)
            python_due = python_look(&m->python, &m->tree, now);
        uint64_t due = min_u64(min_u64(tree_due, python_due),
                               now + clamp(age / 100, NS_PER_MS, 20 * NS_PER_MS));
        now = clock_mono_ns();
        due = max_u64(due, now + NS_PER_MS / 4);
        struct timespec pause = {(time_t)((due - now) / NS_PER_SEC),
                                 (long)((due - now) % NS_PER_SEC)};
        struct pollfd p = {.fd = m->wake, .events = POLLIN};
        ppoll(&p, 1, &pause, NULL);
    }
}

static void *watch(void *ctx)
{
    struct meter *m = ctx;
    tree_add(&m->tree, m->child, getpid());
    tree_births(&m->tree, clock_mono_ns());
    tree_look(&m->tree, clock_mono_ns());
    host_facts(add_host, m);
    if (m->in_git)
        git_read(m->git_folder, &m->git);
    watch_loop(m);
    return NULL;
}

void meter_started(struct meter *m, pid_t child)
{
    if (m->relay)
        relay_started(m->relay);
    m->child = child;
    if (child <= 0)
        return;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all,
                    &old); /* signals are for the thread that waits for the child */
    m->running = pthread_create(&m->thread, NULL, watch, m) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (m->options.started)
        m->options.started(m->options.ctx);
}

/* --- ends --- */

static uint64_t io_field(const char *text, const char *name)
{
    const char *p = strstr(text, name);
    return p ? strtoull(p + strlen(name), NULL, 10) : 0;
}

/* Of one that has ended but is not reaped: what it and the children it waited for have read and
 * written. Nobody can ask afterwards. */
static void note_io(struct meter *m, pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    if (io_read_text(path, text, sizeof text) > 0) {
        m->has_io = true;
        m->read_chars += io_field(text, "rchar:");
        m->write_chars += io_field(text, "wchar:");
        m->read_bytes += io_field(text, "\nread_bytes:");
        m->write_bytes += io_field(text, "\nwrite_bytes:");
    }
    struct final *f = NULL;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (m->finals.len < FINALS_MAX && io_read_text(path, text, sizeof text) > 0 &&
        (f = vec_push(&m->finals))) {
        const char *close = strrchr(text, ')');
        unsigned long long user = 0, system = 0;
        if (close)
            sscanf(close + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
                   &system);
        *f = (struct final){pid, user, system};
    }
}

static void add_time(struct timeval *to, const struct timeval *add)
{
    timeradd(to, add, to);
}

static void add_usage(struct rusage *to, const struct rusage *u)
{
    add_time(&to->ru_utime, &u->ru_utime);
    add_time(&to->ru_stime, &u->ru_stime);
    to->ru_maxrss = u->ru_maxrss > to->ru_maxrss ? u->ru_maxrss : to->ru_maxrss;
    to->ru_majflt += u->ru_majflt;
    to->ru_minflt += u->ru_minflt;
    to->ru_nvcsw += u->ru_nvcsw;
    to->ru_nivcsw += u->ru_nivcsw;
    to->ru_inblock += u->ru_inblock;
    to->ru_oublock += u->ru_oublock;
}

pid_t meter_wait(struct meter *m, int *ret_status, struct rusage *ret_usage)
{
    if (!m)
        return wait4(-1, ret_status, WNOHANG, ret_usage);
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
        return 0;
    if (info.si_pid == m->child)
        m->end_ns = clock_mono_ns();
    note_io(m, info.si_pid);
    pid_t pid = wait4(info.si_pid, ret_status, WNOHANG, ret_usage);
    if (pid > 0)
        add_usage(&m->usage, ret_usage);
    return pid;
}

void meter_ended(struct meter *m, int exit_status)
{
    m->exit_status = exit_status;
    if (!m->end_ns)
        m->end_ns = clock_mono_ns();
    atomic_store(&m->stop, true);
    if (m->running) {
        uint64_t one = 1;
        if (write(m->wake, &one, sizeof one) < 0)
            one = 0; /* then it wakes by itself */
        pthread_join(m->thread, NULL);
    }
    m->running = false;
    if (m->relay)
        relay_drain(m->relay, DRAIN_PATIENCE_NS);
}

void meter_free(struct meter *m)
{
    if (!m)
        return;
    if (m->running)
        meter_ended(m, 0);
    relay_free(m->relay);
    python_release(&m->python, &m->tree);
    tree_release(&m->tree);
    for (size_t i = 0; i < m->host_count; i++) {
        free(m->host[i].key);
        free(m->host[i].value);
    }
    vec_release(&m->finals);
    if (m->exec_ns)
        munmap(m->exec_ns, sizeof *m->exec_ns);
    int fds[] = {m->metrics_fd, m->counter, m->wake};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(m);
}

/* --- afterwards --- */

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static double elapsed(const struct meter *m)
{
    uint64_t from = atomic_load(m->exec_ns);
    from = from ? from : m->start_ns;
    return m->end_ns > from ? (double)(m->end_ns - from) * 1e-9 : 0;
}

/* Rounded to whole KiB. */
static double average(const struct meter *m, double sum)
{
    return m->tree.sums.ns > 0 ? nearbyint(sum / m->tree.sums.ns) : NAN;
}

/* The names of the seed: what GNU time calls them. Where Linux says a constant 0, we do not. */
static void tell_classic(const struct meter *m, meter_metric_fn tell, void *ctx)
{
    const struct rusage *u = &m->usage;
    const struct tree_sums *s = &m->tree.sums;
    double user = seconds(&u->ru_utime), system = seconds(&u->ru_stime), wall = elapsed(m);
    tell(ctx, "user_time_sec", user);
    tell(ctx, "system_time_sec", system);
    tell(ctx, "pct_of_cpu", wall > 0 ? 100 * (user + system) / wall : NAN);
    tell(ctx, "elapsed_time_sec", wall);
    tell(ctx, "avg_shared_text_sz_kb", average(m, s->text));
    tell(ctx, "avg_unshared_text_sz_kb", average(m, s->data));
    tell(ctx, "avg_stack_sz_kb", average(m, s->stack));
    tell(ctx, "avg_total_sz_kb", average(m, s->total));
    tell(ctx, "max_res_set_sz_kb", (double)u->ru_maxrss);
    tell(ctx, "avg_res_set_sz_kb", average(m, s->resident));
    tell(ctx, "major_page_faults", (double)u->ru_majflt);
    tell(ctx, "minor_page_faults", (double)u->ru_minflt);
    tell(ctx, "voluntary_context_switches", (double)u->ru_nvcsw);
    tell(ctx, "involuntary_context_switches", (double)u->ru_nivcsw);
    tell(ctx, "swaps", NAN);
    tell(ctx, "file_system_inputs", (double)u->ru_inblock);
    tell(ctx, "file_system_outputs", (double)u->ru_oublock);
    tell(ctx, "socket_messages_sent", NAN);
    tell(ctx, "socket_messages_received", NAN);
    tell(ctx, "signals_delivered", NAN);
    tell(ctx, "page_size_bytes", (double)sysconf(_SC_PAGESIZE));
    tell(ctx, "exit_status", (double)m->exit_status);
}

void meter_metrics(struct meter *m, meter_metric_fn tell, void *ctx)
{
    tell_classic(m, tell, ctx);
    bool seen = m->tree.looks > 0;
    double none = NAN;
    tell(ctx, "tree_peak_rss_kb", seen ? (double)m->tree.peak_tree_kb : none);
    tell(ctx, "tree_avg_rss_kb", average(m, m->tree.sums.tree_resident));
    tell(ctx, "tree_peak_swap_kb", seen ? (double)m->tree.peak_swap_kb : none);
    tell(ctx, "peak_threads", seen ? (double)m->tree.peak_threads : none);
    tell(ctx, "peak_processes", seen ? (double)m->tree.peak_processes : none);
    tell(ctx, "processes", seen ? (double)(m->tree.list.len + m->tree.dropped) : none);
    tell(ctx, "io_read_bytes", m->has_io ? (double)m->read_bytes : none);
    tell(ctx, "io_write_bytes", m->has_io ? (double)m->write_bytes : none);
    tell(ctx, "io_read_chars", m->has_io ? (double)m->read_chars : none);
    tell(ctx, "io_write_chars", m->has_io ? (double)m->write_chars : none);
    tell(ctx, "instructions", counters_read(m->counter));
}

void meter_host_facts(struct meter *m, meter_fact_fn tell, void *ctx)
{
    for (size_t i = 0; i < m->host_count; i++)
        tell(ctx, m->host[i].key, m->host[i].value);
}

void meter_package_facts(struct meter *m, meter_fact_fn tell, void *ctx)
{
    packages_match(m->python.packages, &m->python.modules, tell, ctx);
}

int64_t meter_started_us(const struct meter *m)
{
    return (int64_t)(m->real_ns / NS_PER_US);
}

const char *meter_python(const struct meter *m)
{
    return m->python.version[0] ? m->python.version : NULL;
}

const char *meter_git_commit(const struct meter *m)
{
    return m->git.commit[0] ? m->git.commit : NULL;
}

const char *meter_git_branch(const struct meter *m)
{
    return m->git.branch[0] ? m->git.branch : NULL;
}

int meter_git_dirty(struct meter *m)
{
    return m->in_git && m->relay ? relay_git_dirty(m->relay, GIT_PATIENCE_NS) : -1;
}

bool meter_stream(struct meter *m, int stream, struct buf *ret, uint64_t *ret_total)
{
    return m->relay && relay_kept(m->relay, (enum relay_stream)stream, ret, ret_total);
}

bool meter_streams_merged(const struct meter *m)
{
    return m->relay && relay_is_merged(m->relay);
}

int meter_user_metrics(struct meter *m, struct buf *ret)
{
    char path[32];
    if (m->metrics_fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->metrics_fd);
    return io_read_file(path, ret);
}

static void tell_process(const struct meter *m, const struct tree_process *p, struct json *j)
{
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    uint64_t user = p->user_ticks, system = p->system_ticks;
    for (size_t i = 0; i < m->finals.len; i++)
        if (m->finals.data[i].pid == p->pid) {
            user = max_u64(user, m->finals.data[i].user_ticks);
            system = max_u64(system, m->finals.data[i].system_ticks);
        }
    json_object_begin(j);
    json_kv_u64(j, "pid", (uint64_t)p->pid);
    json_kv_u64(j, "parent", (uint64_t)p->parent);
    json_kv_text(j, "name", p->name);
    json_kv_text(j, "command", p->command);
    json_kv_real(j, "user_time_sec", (double)user * tick);
    json_kv_real(j, "system_time_sec", (double)system * tick);
    json_kv_u64(j, "max_res_set_sz_kb", p->peak_kb);
    json_kv_u64(j, "threads", p->threads);
    json_object_end(j);
}

void meter_processes(struct meter *m, struct buf *ret)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return;
    struct json j;
    json_init(&j, out);
    json_array_begin(&j);
    for (size_t i = 0; i < m->tree.list.len; i++)
        tell_process(m, &m->tree.list.data[i], &j);
    json_array_end(&j);
    if (fclose(out) == 0)
        buf_append(ret, text, len);
    free(text);
}
