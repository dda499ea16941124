#include "record/launch.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "record/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNALS = 64 }; /* a bit of a word for each */

/* All that somebody may send to a program on purpose. Not faults, which are our own; not what tells us of children, pipes and limits;
 * and not SIGTSTP: a shell waits for us to stop. */
static bool is_forwarded(int sig)
{
    static const int ours[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS,  SIGABRT,
                               SIGKILL, SIGSTOP, SIGCHLD, SIGPIPE, SIGXFSZ, SIGXCPU, SIGTSTP};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (sig == ours[i])
            return false;
    return sig <= SIGSYS ||
           (sig >= SIGRTMIN && sig < SIGNALS); /* between them are the C library's */
}

/* Who sends a signal to us may send it to the group in the next moment (timeout(1) does): so long it is waited for. */
#define GROUP_NS (2 * NS_PER_MS)

/* Handlers have nowhere else to put what they saw: the signals of this process, one bit each. */
static struct {
    _Atomic uint64_t pending;
    _Atomic uint64_t terminal; /* those that the terminal driver sent, to the whole group */
    _Atomic bool child_event, stop_request;
    struct sigaction old[NSIG];
    bool changed[NSIG];
    bool has_witness;
    int witness;    /* to be asked about the rest */
    uint64_t early; /* it has told of these before they came to us */
} seen;

/* The terminal stops who uses it in the background: let it, as if there were no handler. */
static void stop_as_usual(int sig)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, ours;
    sigset_t this;
    sigemptyset(&this);
    sigaddset(&this, sig);
    sigaction(sig, &usual, &ours);
    raise(sig);
    pthread_sigmask(SIG_UNBLOCK, &this, NULL); /* here it stops */
    pthread_sigmask(SIG_BLOCK, &this, NULL);
    sigaction(sig, &ours, NULL);
}

static void on_forwarded(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code == SI_KERNEL && (sig == SIGTTIN || sig == SIGTTOU))
        stop_as_usual(sig);
    else
        atomic_fetch_or(info->si_code == SI_KERNEL ? &seen.terminal : &seen.pending, 1ull << sig);
}

static void on_child(int sig)
{
    (void)sig;
    atomic_store(&seen.child_event, true);
}

static void on_stop(int sig)
{
    (void)sig;
    atomic_store(&seen.stop_request, true);
}

static int install(int sig, const struct sigaction *action)
{
    struct sigaction old;
    if (sigaction(sig, action, &old) < 0)
        return err_from_errno(errno);
    if (!seen.changed[sig])
        seen.old[sig] = old;
    seen.changed[sig] = true;
    return 0;
}

/* Who ignores that the terminal would stop him may use it in the background. */
static bool is_usual_stop_ignored(int sig)
{
    struct sigaction old;
    return (sig == SIGTTIN || sig == SIGTTOU) && sigaction(sig, NULL, &old) == 0 &&
           old.sa_handler == SIG_IGN;
}

int launch_survive_limits(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    return install(SIGXFSZ, &ignore);
}

int launch_watch_signals(bool forward)
{
    int rc = 0;
    if (!forward) {
        struct sigaction stop = {.sa_handler = on_stop};
        static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
        for (size_t i = 0; rc == 0 && i < ARRAY_LEN(stops); i++)
            rc = install(stops[i], &stop);
        return rc;
    }
    if (!seen.has_witness) {
        prctl(PR_SET_CHILD_SUBREAPER, 0); /* set by a run before this one, if there was one */
        seen.witness = witness_start();
        seen.has_witness = seen.witness >= 0; /* else a signal to the group may arrive twice */
    }
    struct sigaction pass = {.sa_sigaction = on_forwarded, .sa_flags = SA_SIGINFO};
    for (int sig = 1; rc == 0 && sig < SIGNALS; sig++) {
        /* also what we were started to ignore (nohup, a shell's background): the program ignores it, too, unless it asks for it */
        if (is_forwarded(sig) && !is_usual_stop_ignored(sig))
            rc = install(sig, &pass);
    }
    struct sigaction child = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
    return rc < 0 ? rc : install(SIGCHLD, &child);
}

void launch_unwatch_signals(void)
{
    for (int sig = 1; sig < NSIG; sig++) {
        if (!seen.changed[sig] || sig == SIGXFSZ) /* there are more files to come */
            continue;
        sigaction(sig, &seen.old[sig], NULL);
        seen.changed[sig] = false;
    }
}

/* Code can ask whether it is being recorded: the variable names the recorder's process, so that it
 * says nothing once that is gone. The one thing the command would not find without us. */
static void tell_the_recorder(pid_t recorder)
{
    static char variable[sizeof "PYROMETER_ACTIVE=" + 3 * sizeof recorder]; /* lives to the exec */
    snprintf(variable, sizeof variable, "PYROMETER_ACTIVE=%d", (int)recorder);
    putenv(variable);
}

static void become(char *const *argv, const struct session *session, const struct meter *meter,
                   pid_t recorder, int report)
{
    for (int sig = 1; sig < NSIG; sig++)
        if (seen.changed[sig])
            sigaction(sig, &seen.old[sig], NULL);
    tell_the_recorder(recorder);
    if (session)
        session_export(session);
    if (meter)
        meter_enter(meter);
    execvp(argv[0], argv);
    int error = errno;
    while (write(report, &error, sizeof error) < 0 && errno == EINTR)
        ;
    _exit(127);
}

/* 0: it may be executed as far as one can see. Else errno. */
static int look_at(const char *path)
{
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

int launch_find(const char *name)
{
    if (strchr(name, '/'))
        return look_at(name);
    const char *folders = getenv("PATH");
    int found = *name ? 0 : ENOENT, denied = 0;
    for (const char *at = folders; *name && at;) {
        char path[PATH_MAX];
        size_t len = strcspn(at, ":");
        if (snprintf(path, sizeof path, "%.*s%s%s", (int)len, at, len ? "/" : "", name) < PATH_MAX)
            found = look_at(path);
        if (!found)
            return 0;
        denied = found == EACCES ? EACCES : denied;
        at = at[len] ? at + len + 1 : NULL;
    }
    return denied ? denied : found;
}

int launch_start(char *const *argv, const struct session *session, struct meter *meter,
                 pid_t *ret_pid)
{
    int fds[2], error = 0;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return errno;
    pid_t recorder = getpid(), pid = fork();
    if (pid == 0)
        become(argv, session, meter, recorder, fds[1]);
    if (pid < 0)
        error = errno;
    close(fds[1]);
    if (pid > 0) { /* the pipe closes at a successful exec */
        ssize_t n;
        while ((n = read(fds[0], &error, sizeof error)) < 0 && errno == EINTR)
            ;
        if (n != sizeof error)
            error = 0;
        else
            waitpid(pid, NULL, 0);
    }
    close(fds[0]);
    if (meter)
        meter_started(meter, error ? 0 : pid);
    *ret_pid = pid;
    return error;
}

/* A little sleep that lets signals in, whatever the caller keeps out. */
static void wait_for_group(void)
{
    struct timespec left = {0, GROUP_NS};
    sigset_t none, old;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &old);
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Those that the whole group got since the last call. */
static uint64_t ask_witness(void)
{
    uint64_t signals = 0;
    if (seen.has_witness && witness_ask(seen.witness, &signals) < 0) {
        close(seen.witness);
        seen.has_witness = false;
    }
    return signals;
}

void launch_forward_signals(pid_t child)
{
    uint64_t pending = atomic_load_explicit(&seen.pending, memory_order_relaxed);
    if (!pending && !atomic_load_explicit(&seen.terminal, memory_order_relaxed))
        return;
    if (pending)
        wait_for_group();
    pending = atomic_exchange(&seen.pending, 0);
    uint64_t terminal = atomic_exchange(&seen.terminal, 0);
    /* asked also where only the terminal has sent some, or it would tell of them at the next occasion */
    uint64_t group = seen.early | ask_witness();
    seen.early = group & ~(pending | terminal);
    if (getpgid(child) != getpgrp())
        group = 0; /* it has left the group */
    for (int sig = 1; sig < SIGNALS; sig++)
        if ((pending & ~group) >> sig & 1)
            kill(child, sig);
}

bool launch_take_child_event(void)
{
    return atomic_load_explicit(&seen.child_event, memory_order_relaxed) &&
           atomic_exchange(&seen.child_event, false);
}

bool launch_take_stop_request(void)
{
    return atomic_load_explicit(&seen.stop_request, memory_order_relaxed) &&
           atomic_exchange(&seen.stop_request, false);
}
