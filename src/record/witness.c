#include "record/witness.h"

#include "base/err.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdnoreturn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SEAT = 0,          /* the witness's only descriptor */
    PATIENCE_MS = 200, /* a machine so busy that no answer comes in this time */
    CLOSED_BY_HAND = 4096,
};

/* --- the witness --- */

/* Takes what is pending, so that the next answer is about what comes from now on. */
static uint64_t take_pending(const sigset_t *all)
{
    static const struct timespec at_once;
    uint64_t signals = 0;
    for (int sig; (sig = sigtimedwait(all, NULL, &at_once)) > 0;)
        signals |= sig < 64 ? 1ull << sig : 0;
    return signals;
}

/* Everybody else's files are closed: a pipe that we held open would never end for who reads it. */
static void let_go(int fd)
{
    dup2(fd, SEAT);
    if (syscall(SYS_close_range, SEAT + 1u, ~0u, 0) < 0)
        for (int i = SEAT + 1; i < CLOSED_BY_HAND; i++) /* before Linux 5.9 */
            close(i);
    if (chdir("/") < 0)
        _exit(1);
    /* past a sanitizer's prctl(), which takes a lock that another thread may have had when we forked */
    syscall(SYS_prctl, PR_SET_NAME, "pyrometer-signal", 0, 0, 0);
}

static noreturn void sit(int fd)
{
    char question;
    sigset_t all;
    sigfillset(&all); /* they are blocked: whoever forked us saw to that */
    let_go(fd);
    while (read(SEAT, &question, 1) == 1) {
        uint64_t signals = take_pending(&all);
        if (send(SEAT, &signals, sizeof signals, MSG_NOSIGNAL) != (ssize_t)sizeof signals)
            break;
    }
    _exit(0);
}

/* --- who asks it --- */

int witness_start(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_from_errno(errno);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid_t pid = fork();
    if (pid == 0) {
        pid_t second = fork();
        if (second == 0) {
            close(ends[1]); /* or it would never see the end of us */
            sit(ends[0]);
        }
        _exit(second < 0);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close(ends[0]);
    if (status != 0) {
        close(ends[1]);
        return E_SYSTEM;
    }
    return ends[1];
}

int witness_ask(int fd, uint64_t *ret_signals)
{
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    uint64_t signals;
    if (send(fd, "?", 1, MSG_NOSIGNAL) != 1)
        return err_from_errno(errno);
    int n;
    while ((n = poll(&answer, 1, PATIENCE_MS)) < 0 && errno == EINTR)
        ;
    if (n <= 0 || recv(fd, &signals, sizeof signals, MSG_WAITALL) != (ssize_t)sizeof signals)
        return E_SYSTEM;
    *ret_signals = signals;
    return 0;
}
