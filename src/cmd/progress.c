/* One thread that sleeps most of the time, and one line.
 *
 * Who writes to the terminal holds the pen, and nobody is interrupted who holds it: signals wait
 * meanwhile. So the handler of a signal that ends us can wait for the pen too, erase the line, and keep
 * the pen for ever, whichever thread it runs in. All that the thread touches are counters and texts
 * that live as long as the process.
 *
 * The terminal may be somebody else's by now. In `pyrometer report | less` the pager has taken it, which
 * can be told by its modes; of a job in the background it is the shell's. Then nothing is drawn, and
 * nothing erased. */
#include "cmd/progress.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

enum {
    AFTER_MS = 1000,
    AFTER_MS_MAX = 3600 * 1000,
    PERIOD_MS = 200,
    LINE_SIZE = 160,
    WIDTH = 80,       /* of a terminal that does not tell */
    PEN_MS_MAX = 100, /* a signal waits no longer: the terminal may be halted (Ctrl-S) */
    PEN_FOREVER = -1,
    PEN_STEP_NS = 1000000,
};

#define ERASE "\r\x1b[K" /* to the first column, and all that is right of it */

/* Those that end us from outside. SIGPIPE comes with output, when the line is gone. */
static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* The first thread's. */
static struct {
    bool running, never;
    pthread_t thread;
    int stop; /* eventfd */
    int after_ms;
    uint64_t began_ns;
    bool took[ARRAY_LEN(ENDING)]; /* their handlers are ours */
} state;

static atomic_bool pen;   /* somebody writes to the terminal */
static atomic_bool shown; /* there is a line; the pen's */

/* --- the pen --- */

static bool take_pen(int ms)
{
    static const struct timespec step = {.tv_nsec = PEN_STEP_NS};
    while (atomic_exchange_explicit(&pen, true, memory_order_acquire)) {
        if (ms == 0)
            return false;
        if (ms > 0)
            ms--;
        nanosleep(&step, NULL);
    }
    return true;
}

static void give_pen(void)
{
    atomic_store_explicit(&pen, false, memory_order_release);
}

static bool terminal_is_ours(void)
{
    struct termios modes;
    pid_t group = tcgetpgrp(STDERR_FILENO);
    if (group >= 0 && group != getpgrp())
        return false;
    return tcgetattr(STDERR_FILENO, &modes) == 0 && (modes.c_lflag & ICANON);
}

/* What cannot be written is left: there is nobody to tell it to. */
static void put(const char *text, size_t len)
{
    ATTR_UNUSED ssize_t n = write(STDERR_FILENO, text, len);
}

/* For whoever has the pen; also from a handler. */
static void erase(void)
{
    if (atomic_exchange_explicit(&shown, false, memory_order_relaxed) && terminal_is_ours())
        put(ERASE, sizeof ERASE - 1);
}

/* The handler is the default one again by now (SA_RESETHAND): as soon as we return, it ends us. */
static void on_signal(int number)
{
    if (take_pen(PEN_MS_MAX))
        erase();
    raise(number);
}

/* --- the line --- */

static size_t compose(char line[LINE_SIZE])
{
    struct progress now;
    progress_now(&now);
    uint64_t seconds = (clock_mono_ns() - state.began_ns) / NS_PER_SEC;
    char much[64];
    if (now.total)
        snprintf(much, sizeof much, "%" PRIu64 " %%",
                 (uint64_t)((double)now.done / (double)now.total * 100));
    else if (now.done)
        snprintf(much, sizeof much, "%" PRIu64 ", %" PRIu64 " s", now.done, seconds);
    else
        snprintf(much, sizeof much, "%" PRIu64 " s", seconds);
    int n =
        snprintf(line, LINE_SIZE, ERASE "pyrometer: %s: %s", now.what ? now.what : "working", much);
    /* a line that reaches the last column might go on in the next, and could not be erased */
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    size_t width = (known ? size.ws_col : WIDTH) - 1;
    return min_u64(min_u64((uint64_t)n, LINE_SIZE - 1), sizeof ERASE - 1 + width);
}

static void show(void)
{
    char line[LINE_SIZE];
    size_t len = compose(line);
    take_pen(PEN_FOREVER);
    if (terminal_is_ours()) {
        put(line, len);
        atomic_store_explicit(&shown, true, memory_order_relaxed);
    }
    give_pen();
}

static void *watch(void *arg)
{
    (void)arg;
    struct pollfd stop = {.fd = state.stop, .events = POLLIN};
    int period = (int)min_u64(PERIOD_MS, max_u64(1, (uint64_t)state.after_ms));
    int wait = state.after_ms;
    for (;;) {
        int r = poll(&stop, 1, wait);
        if (r > 0 || (r < 0 && errno != EINTR))
            return NULL;
        show();
        wait = period;
    }
}

/* --- life --- */

static bool is_wanted(void)
{
    const char *term = getenv("TERM");
    return term && *term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO);
}

/* Tests have no second to spare, and no certainty that something takes one. */
static int choose_delay(void)
{
    const char *said = getenv("PYROMETER_PROGRESS_AFTER_MS");
    return said ? (int)min_u64(strtoull(said, NULL, 10), AFTER_MS_MAX) : AFTER_MS;
}

/* Only what nobody else has a use for: a signal that is ignored stays so. */
static void take_signals(void)
{
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND}, old;
    sigfillset(&ours.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(ENDING); i++)
        state.took[i] = sigaction(ENDING[i], NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) &&
                        old.sa_handler == SIG_DFL && sigaction(ENDING[i], &ours, NULL) == 0;
}

static void give_signals_back(void)
{
    for (size_t i = 0; i < ARRAY_LEN(ENDING); i++)
        if (state.took[i])
            signal(ENDING[i], SIG_DFL);
}

void cmd_progress_begin(void)
{
    if (state.running || state.never || !is_wanted())
        return;
    state.stop = eventfd(0, EFD_CLOEXEC);
    if (state.stop < 0)
        return; /* the work is done without */
    state.began_ns = clock_mono_ns();
    state.after_ms = choose_delay();
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* for good in the thread: it holds the pen */
    if (!state.after_ms)
        show(); /* whatever follows, and however quickly */
    state.running = pthread_create(&state.thread, NULL, watch, NULL) == 0;
    if (state.running)
        take_signals();
    else
        close(state.stop);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void cmd_progress_end(void)
{
    if (!state.running)
        return;
    uint64_t one = 1;
    io_write_all(state.stop, &one, sizeof one);
    pthread_join(state.thread, NULL);
    close(state.stop);
    state.running = false;
    cmd_progress_say("", 0);
    give_signals_back();
}

void cmd_progress_never(void)
{
    cmd_progress_end();
    state.never = true;
}

void cmd_progress_say(const char *text, size_t len)
{
    cmd_progress_print(stderr, text, len);
}

void cmd_progress_print(FILE *to, const char *text, size_t len)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    take_pen(PEN_FOREVER);
    erase();
    fwrite(text, 1, len, to);
    fflush(to);
    give_pen();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* --- standard output --- */

/* What goes into a file or to /dev/null comes between nothing. A pipe may well end at this terminal. */
static bool is_apart(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && !isatty(fd) && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode));
}

void cmd_progress_make_way(int fd)
{
    if (!is_apart(fd))
        cmd_progress_never();
    progress_begin("writing", 0);
}

FILE *cmd_stdout(void)
{
    cmd_progress_make_way(STDOUT_FILENO);
    return stdout;
}

static ssize_t write_late(void *unused, const char *data, size_t len)
{
    (void)unused;
    cmd_progress_never();
    return io_write_all(STDOUT_FILENO, data, len) < 0 ? 0 : (ssize_t)len; /* 0: an error */
}

FILE *cmd_stdout_begin(void)
{
    FILE *late = NULL;
    if (state.running && !is_apart(STDOUT_FILENO))
        late = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_late});
    return late ? late : stdout;
}

int cmd_stdout_finish(FILE *out)
{
    return out == stdout || fclose(out) == 0 ? 0 : err_from_errno(errno);
}
