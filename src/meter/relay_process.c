#include "meter/relay_process.h"

#include "base/attr.h"
#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>

enum {
    CHUNK = 256 << 10,
    MODES_MS = 20, /* how late a change of the terminal's modes may arrive */
    FROM_AT = 10,  /* descriptors are moved there, and the rest is closed */
    BELL_AT = FROM_AT + RELAY_STREAMS,
    NOTHING_AT, /* /dev/null: what takes the place of a stream that is let go */
    FIRST_TO_CLOSE,
};
static_assert(FIRST_TO_CLOSE + RELAY_STREAMS + 1 < RELAY_MIN_DESCRIPTORS, "and all out of the way");

struct state {
    const struct relay_job *job;
    struct relay_shared *shared;
    int from[RELAY_STREAMS]; /* -1 once it has ended */
    int bell, git;
    bool ended; /* the program has; what it left is being passed on */
    struct termios modes[RELAY_STREAMS];
    struct winsize size[RELAY_STREAMS];
    uint8_t chunk[CHUNK];
};

static const int out_of[RELAY_STREAMS] = {STDOUT_FILENO, STDERR_FILENO};

static volatile sig_atomic_t size_changed;

static void on_winch(int sig)
{
    (void)sig;
    size_changed = 1;
}

/* --- keeping --- */

static void keep(struct state *s, int stream, const uint8_t *bytes, size_t len)
{
    size_t half = s->job->keep / 2;
    uint8_t *head = s->shared->bytes + (size_t)stream * s->job->keep, *tail = head + half;
    uint64_t total = atomic_load_explicit(&s->shared->total[stream], memory_order_relaxed);
    size_t n = total < half ? min_u64(len, half - total) : 0;
    memcpy(head + total * (n > 0), bytes, n);
    uint64_t at = total + n; /* of what goes into the ring only the end will be left */
    const uint8_t *p = bytes + n;
    size_t left = len - n;
    if (left > half) {
        at += left - half;
        p += left - half;
        left = half;
    }
    while (left && half) {
        size_t place = (at - half) % half, part = min_u64(left, half - place);
        memcpy(tail + place, p, part);
        p += part;
        at += part;
        left -= part;
    }
    atomic_store(&s->shared->total[stream], total + len);
}

/* --- passing on --- */

/* False: nobody reads any more. */
static bool pass(struct state *s, int stream, const uint8_t *bytes, size_t len)
{
    int out = out_of[stream];
    while (len) {
        ssize_t n = write(out, bytes, len);
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
            atomic_fetch_add(&s->shared->passed, (uint64_t)n);
        } else if (n < 0 && errno == EAGAIN) { /* somebody made it non-blocking */
            struct pollfd p = {.fd = out, .events = POLLOUT};
            poll(&p, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return false;
        }
    }
    return true;
}

static void end_stream(struct state *s, int stream)
{
    close(s->from[stream]);
    s->from[stream] = -1;
    dup2(NOTHING_AT,
         out_of[stream]); /* whoever reads there sees the end when the program's is there */
}

static void take(struct state *s, int stream)
{
    ssize_t n = read(s->from[stream], s->chunk, sizeof s->chunk);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) { /* a pseudo-terminal says EIO when the last writer has closed */
        end_stream(s, stream);
        return;
    }
    keep(s, stream, s->chunk, (size_t)n);
    if (!pass(s, stream, s->chunk, (size_t)n))
        end_stream(s, stream); /* the program gets SIGPIPE, or EIO from its terminal */
}

/* --- the terminal --- */

static tcflag_t changed(tcflag_t theirs, tcflag_t now, tcflag_t before)
{
    tcflag_t difference = now ^ before;
    return (theirs & ~difference) | (now & difference);
}

static bool is_same(const struct termios *a, const struct termios *b)
{
    return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_lflag == b->c_lflag &&
           !memcmp(a->c_cc, b->c_cc, sizeof a->c_cc);
}

/* What the program sets on its terminal is meant for the one that the user sits at. */
static void follow_modes(struct state *s, int stream)
{
    struct termios now, outer, *before = &s->modes[stream];
    if (tcgetattr(s->from[stream], &now) < 0 || is_same(&now, before))
        return;
    /* bytes are changed once, by the outer terminal, and there that stays as it was */
    if (now.c_oflag & OPOST) {
        now.c_oflag &= ~(tcflag_t)OPOST;
        tcsetattr(s->from[stream], TCSANOW, &now);
    }
    if (tcgetattr(out_of[stream], &outer) == 0) {
        outer.c_iflag = changed(outer.c_iflag, now.c_iflag, before->c_iflag);
        outer.c_lflag = changed(outer.c_lflag, now.c_lflag, before->c_lflag);
        outer.c_oflag = changed(outer.c_oflag, now.c_oflag, before->c_oflag);
        for (int i = 0; i < NCCS; i++)
            if (now.c_cc[i] != before->c_cc[i])
                outer.c_cc[i] = now.c_cc[i];
        tcsetattr(out_of[stream], TCSANOW, &outer);
    }
    *before = now;
}

/* The program got SIGWINCH from the outer terminal, perhaps before the inner had the new size: it
 * is told again. */
static void follow_size(struct state *s, int stream)
{
    struct winsize now, *before = &s->size[stream];
    if (ioctl(out_of[stream], TIOCGWINSZ, &now) < 0 || !memcmp(&now, before, sizeof now))
        return;
    *before = now;
    ioctl(s->from[stream], TIOCSWINSZ, &now);
    kill(0, SIGWINCH);
}

/* What the user typed goes to the inner terminal if somebody waits there. The outer one has echoed it. */
static void hand_over(struct state *s, int stream)
{
    char keys[4096];
    struct termios modes, silent;
    ssize_t n = read(out_of[stream], keys, sizeof keys);
    if (n <= 0 || tcgetattr(s->from[stream], &modes) < 0)
        return;
    bool echoes = modes.c_lflag & (ECHO | ECHONL);
    silent = modes;
    silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    if (echoes)
        tcsetattr(s->from[stream], TCSANOW, &silent);
    for (ssize_t at = 0, put;
         at < n && (put = write(s->from[stream], keys + at, (size_t)(n - at))) > 0;)
        at += put;
    if (!echoes)
        return;
    struct timespec while_it_arrives = {0, 5 * (long)NS_PER_MS}; /* the kernel does it later */
    nanosleep(&while_it_arrives, NULL);
    tcsetattr(s->from[stream], TCSANOW, &modes);
}

/* Only while the program is in the foreground: what is typed is for it. */
static void follow_keyboard(struct state *s, int stream)
{
    struct pollfd p = {.fd = out_of[stream], .events = POLLIN};
    bool typed =
        tcgetpgrp(out_of[stream]) == getpgrp() && poll(&p, 1, 0) == 1 && p.revents & POLLIN;
    atomic_store(&s->shared->typed, typed);
    if (atomic_exchange(&s->shared->wanted, 0) && typed)
        hand_over(s, stream);
}

static void follow_terminal(struct state *s)
{
    bool first = true; /* where there are two, the user has one keyboard all the same */
    for (int i = 0; i < RELAY_STREAMS; i++) {
        if (s->from[i] < 0 || !s->job->is_pty[i])
            continue;
        follow_modes(s, i);
        follow_size(s, i);
        if (first)
            follow_keyboard(s, i);
        first = false;
    }
    size_changed = 0;
}

/* --- git --- */

static void ask_git(struct state *s)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        static const char *const argv[] = {
            "git",         "--no-optional-locks",  "-c", "core.fsmonitor=false", "status",
            "--porcelain", "--untracked-files=no", NULL};
        dup2(NOTHING_AT, STDIN_FILENO);
        dup2(NOTHING_AT, STDERR_FILENO);
        dup2(fds[1], STDOUT_FILENO);
        for (int sig = 1; sig < NSIG; sig++)
            signal(sig, SIG_DFL);
        if (chdir(s->job->git_folder) == 0)
            execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(fds[1]);
    if (pid > 0)
        s->git = fds[0];
    else
        close(fds[0]);
}

/* One byte of an answer is a change; none and a good end is a clean tree. */
static void hear_git(struct state *s)
{
    char byte;
    ssize_t n = read(s->git, &byte, 1);
    if (n < 0 && errno == EINTR)
        return;
    int status = -1;
    close(s->git);
    s->git = -1;
    if (n != 1 && (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0))
        n = -1;
    atomic_store(&s->shared->git_dirty, n > 0 ? 1 : n == 0 ? 0 : -1);
}

/* --- the loop --- */

static void quiet_signals(void)
{
    /* what is sent to the program's group is not for us; git's end is waited for */
    for (int sig = 1; sig < NSIG; sig++)
        if (sig != SIGCHLD && sig != SIGKILL && sig != SIGSTOP && sig != SIGWINCH &&
            sig != SIGCONT && sig != SIGSEGV && sig != SIGBUS && sig != SIGABRT && sig != SIGFPE &&
            sig != SIGILL)
            signal(sig, SIG_IGN);
    struct sigaction winch = {.sa_handler = on_winch};
    sigaction(SIGWINCH, &winch, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int move_fd(int fd, int to)
{
    if (fd < 0)
        return -1;
    return fd == to ? fd : dup3(fd, to, O_CLOEXEC);
}

/* Where nothing else is to go. */
static int move_away(int fd)
{
    return fd < 0 || fd >= FIRST_TO_CLOSE ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_TO_CLOSE);
}

/* Holds nothing that is not its business: not the caller's files, not its folder, not a stream that
 * is not passed on. */
static void let_go(struct state *s)
{
    const struct relay_job *job = s->job;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) { /* the program's may be tight; it is not ours */
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    /* the ends may lie where others are to go: first out of the way */
    int from[RELAY_STREAMS];
    int bell = move_away(job->bell);
    for (int i = 0; i < RELAY_STREAMS; i++)
        from[i] = move_away(job->from[i]);
    s->bell = move_fd(bell, BELL_AT);
    move_fd(open("/dev/null", O_RDWR | O_CLOEXEC), NOTHING_AT);
    for (int i = 0; i < RELAY_STREAMS; i++) {
        s->from[i] = move_fd(from[i], FROM_AT + i);
        if (s->from[i] < 0) {
            dup2(NOTHING_AT, out_of[i]);
            /* what lies there may be the program's end of the other stream, and then that never ends */
            close(FROM_AT + i);
        } else {
            fcntl(out_of[i], F_SETFD, FD_CLOEXEC);
        }
    }
    dup2(NOTHING_AT, STDIN_FILENO);
    for (int fd = STDERR_FILENO + 1; fd < FROM_AT; fd++)
        close(fd);
    if (syscall(SYS_close_range, (unsigned)FIRST_TO_CLOSE, ~0u, 0) < 0)
        for (int fd = FIRST_TO_CLOSE; fd < 4096; fd++) /* before Linux 5.9 */
            close(fd);
}

static bool has_streams(const struct state *s)
{
    return s->from[RELAY_STDOUT] >= 0 || s->from[RELAY_STDERR] >= 0;
}

static void hear_bell(struct state *s)
{
    char byte;
    if (read(s->bell, &byte, 1) < 0 && errno == EINTR)
        return;
    close(s->bell); /* told, or the recorder is gone: there is nobody to tell of the end */
    s->bell = -1;
    s->ended = true;
}

static void loop(struct state *s)
{
    bool is_pty = s->job->is_pty[RELAY_STDOUT] || s->job->is_pty[RELAY_STDERR];
    while (has_streams(s) || s->git >= 0) {
        struct pollfd p[RELAY_STREAMS + 2];
        for (int i = 0; i < RELAY_STREAMS; i++)
            p[i] = (struct pollfd){.fd = s->from[i], .events = POLLIN};
        p[RELAY_STREAMS] = (struct pollfd){.fd = s->bell, .events = POLLIN};
        p[RELAY_STREAMS + 1] = (struct pollfd){.fd = s->git, .events = POLLIN};
        bool draining = s->ended && !atomic_load(&s->shared->drained);
        int timeout = draining ? 0 : is_pty && has_streams(s) ? MODES_MS : -1;
        int n = poll(p, ARRAY_LEN(p), timeout);
        if (is_pty)
            follow_terminal(s);
        if (n < 0)
            continue;
        bool any = false;
        for (int i = 0; i < RELAY_STREAMS; i++)
            if (p[i].revents && s->from[i] >= 0) {
                take(s, i);
                any = true;
            }
        if (draining && !any)
            atomic_store(&s->shared->drained, 1);
        if (p[RELAY_STREAMS].revents)
            hear_bell(s);
        if (p[RELAY_STREAMS + 1].revents)
            hear_git(s);
    }
    atomic_store(&s->shared->drained, 1);
}

noreturn void relay_process(const struct relay_job *job)
{
    static struct state s;
    s.job = job;
    s.shared = job->shared;
    s.git = -1;
    prctl(PR_SET_NAME, "pyrometer-relay");
    quiet_signals();
    let_go(&s);
    memcpy(s.modes, job->modes, sizeof s.modes);
    memcpy(s.size, job->size, sizeof s.size);
    if (job->git_folder) {
        ask_git(&s);
        if (s.git < 0)
            atomic_store(&s.shared->git_dirty, -1);
    }
    if (chdir("/") < 0)
        _exit(1);
    loop(&s);
    _exit(0);
}
