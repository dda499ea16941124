#include "meter/relay.h"

#include "base/clock.h"
#include "base/err.h"
#include "meter/relay_process.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PIPE_BYTES = 1 << 20 };

enum kind { ALONE, FILE_BACK, CHANNEL, MERGED /* into standard output's */ };

struct relay {
    struct relay_shared *shared; /* with the relay process; NULL: there is none */
    size_t shared_bytes;
    enum kind kind[RELAY_STREAMS];
    int ours[RELAY_STREAMS];   /* the relay's end, until it is started; else -1 */
    int theirs[RELAY_STREAMS]; /* the program's end, until it is started; else -1 */
    bool is_pty[RELAY_STREAMS];
    struct termios modes[RELAY_STREAMS];
    struct winsize size[RELAY_STREAMS];
    char terminal[32];                 /* name of the pseudo-terminal; "" none */
    int64_t file_start[RELAY_STREAMS]; /* FILE_BACK: where it began to write, */
    int64_t file_end[RELAY_STREAMS];   /* and where it ended: what follows is ours */
    size_t keep;
    int bell; /* writing end: tells the relay that the program has ended */
};

static const int fd_of[RELAY_STREAMS] = {STDOUT_FILENO, STDERR_FILENO};

/* --- channels --- */

static int open_pipe(struct relay *r, int stream)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_from_errno(errno);
    fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES); /* as large as the system lets us */
    r->ours[stream] = fds[0];
    r->theirs[stream] = fds[1];
    r->kind[stream] = CHANNEL;
    return 0;
}

/* The inner terminal is as the outer one, but changes no byte: the outer will do that. */
static int open_pty(struct relay *r, int stream)
{
    struct termios modes;
    struct winsize size;
    int outer = fd_of[stream], ours, theirs;
    if (tcgetattr(outer, &modes) < 0)
        return err_from_errno(errno);
    modes.c_oflag &= ~(tcflag_t)OPOST;
    bool has_size = ioctl(outer, TIOCGWINSZ, &size) == 0;
    if (openpty(&ours, &theirs, NULL, &modes, has_size ? &size : NULL) < 0)
        return err_from_errno(errno);
    fcntl(ours, F_SETFD, FD_CLOEXEC);
    fcntl(theirs, F_SETFD, FD_CLOEXEC);
    r->ours[stream] = ours;
    r->theirs[stream] = theirs;
    r->is_pty[stream] = true;
    if (!r->terminal[0] && ttyname_r(theirs, r->terminal, sizeof r->terminal) != 0)
        r->terminal[0] = '\0';
    /* read here, not by the relay: the program may be quicker than that with changes of its own */
    tcgetattr(ours, &r->modes[stream]);
    ioctl(ours, TIOCGWINSZ, &r->size[stream]);
    r->kind[stream] = CHANNEL;
    return 0;
}

static void note_file(struct relay *r, int stream, const struct stat *st)
{
    int flags = fcntl(fd_of[stream], F_GETFL);
    off_t at = flags >= 0 && flags & O_APPEND ? st->st_size : lseek(fd_of[stream], 0, SEEK_CUR);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || at < 0)
        return;
    r->file_start[stream] = at;
    r->kind[stream] = FILE_BACK;
}

static int choose(struct relay *r, int stream, const struct stat *st)
{
    int fd = fd_of[stream];
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return 0;
    if (S_ISREG(st->st_mode))
        note_file(r, stream, st);
    else if (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode))
        return open_pipe(r, stream);
    else if (S_ISCHR(st->st_mode) && isatty(fd))
        return open_pty(r, stream);
    return 0;
}

static bool has_room(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max >= RELAY_MIN_DESCRIPTORS;
}

static int choose_all(struct relay *r)
{
    struct stat st[RELAY_STREAMS];
    if (!has_room())
        return 0; /* all stay as they are */
    for (int i = 0; i < RELAY_STREAMS; i++) {
        if (fstat(fd_of[i], &st[i]) < 0)
            continue;
        bool same = i == RELAY_STDERR && r->kind[RELAY_STDOUT] != ALONE &&
                    st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
        if (same)
            r->kind[i] = MERGED;
        else if (choose(r, i, &st[i]) < 0)
            r->kind[i] = ALONE; /* no more descriptors or terminals: the program matters more */
    }
    return 0;
}

/* --- start --- */

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Forks twice, so that the relay has no parent here. While somebody makes us a subreaper it would
 * come back to us; it must not. */
static int start_process(struct relay *r, const char *git_folder)
{
    int bell[2];
    /* a socket: the relay may be gone by the time, and that is no reason for SIGPIPE */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bell) < 0)
        return err_from_errno(errno);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    pid_t pid = fork();
    if (pid == 0) {
        pid_t second = fork();
        if (second == 0) {
            struct relay_job job = {
                .shared = r->shared, .keep = r->keep, .bell = bell[0], .git_folder = git_folder};
            for (int i = 0; i < RELAY_STREAMS; i++) {
                job.from[i] = r->kind[i] == CHANNEL ? r->ours[i] : -1;
                job.is_pty[i] = r->is_pty[i];
                job.modes[i] = r->modes[i];
                job.size[i] = r->size[i];
            }
            relay_process(&job);
        }
        _exit(second < 0);
    }
    int status = -1;
    close(bell[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0) { /* no process to be had: the program's streams are left alone */
        close(bell[1]);
        return E_SYSTEM;
    }
    r->bell = bell[1];
    for (int i = 0; i < RELAY_STREAMS; i++)
        close_fd(&r->ours[i]);
    return 0;
}

int relay_new(bool capture, size_t keep, const char *git_folder, struct relay **ret)
{
    struct relay *r = calloc(1, sizeof *r);
    if (!r)
        return E_NOMEM;
    *r = (struct relay){.ours = {-1, -1}, .theirs = {-1, -1}, .bell = -1, .keep = keep / 2 * 2};
    int rc = capture ? choose_all(r) : 0;
    bool needed = git_folder != NULL;
    for (int i = 0; i < RELAY_STREAMS; i++)
        needed |= r->kind[i] == CHANNEL;
    if (rc == 0 && needed) {
        r->shared_bytes = sizeof *r->shared + RELAY_STREAMS * r->keep;
        r->shared =
            mmap(NULL, r->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (r->shared == MAP_FAILED) {
            r->shared = NULL;
            rc = E_NOMEM;
        } else {
            atomic_store(&r->shared->git_dirty, git_folder ? RELAY_GIT_PENDING : -1);
            rc = start_process(r, git_folder);
        }
    }
    if (rc < 0) { /* without it the program has its streams as they are */
        relay_free(r);
        return rc;
    }
    *ret = r;
    return 0;
}

void relay_enter(const struct relay *r)
{
    for (int i = 0; i < RELAY_STREAMS; i++) {
        int from = r->kind[i] == CHANNEL  ? r->theirs[i]
                   : r->kind[i] == MERGED ? r->theirs[RELAY_STDOUT]
                                          : -1;
        if (from >= 0)
            dup2(from, fd_of[i]);
    }
}

void relay_started(struct relay *r)
{
    for (int i = 0; i < RELAY_STREAMS; i++)
        close_fd(&r->theirs[i]);
}

/* --- end --- */

static bool has_channel(const struct relay *r)
{
    return r->kind[RELAY_STDOUT] == CHANNEL || r->kind[RELAY_STDERR] == CHANNEL;
}

/* Where the program has written up to. */
static int64_t end_of_file(int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -1;
    return flags & O_APPEND ? (fstat(fd, &st) == 0 ? st.st_size : -1) : lseek(fd, 0, SEEK_CUR);
}

void relay_drain(struct relay *r, uint64_t patience_ns)
{
    for (int i = 0; i < RELAY_STREAMS; i++)
        if (r->kind[i] == FILE_BACK)
            r->file_end[i] = end_of_file(fd_of[i]);
    if (!r->shared || !has_channel(r) || r->bell < 0)
        return;
    if (send(r->bell, "e", 1, MSG_NOSIGNAL) != 1)
        return; /* all has been passed on, and the relay has ended */
    uint64_t seen = 0, since = clock_mono_ns();
    struct timespec nap = {0, 50 * (long)NS_PER_US};
    while (!atomic_load(&r->shared->drained)) {
        uint64_t passed = atomic_load(&r->shared->passed), now = clock_mono_ns();
        if (passed != seen) {
            seen = passed;
            since = now;
        } else if (now - since > patience_ns) {
            return;
        }
        nanosleep(&nap, NULL);
    }
}

static bool read_back(const struct relay *r, int stream, struct buf *ret, uint64_t *ret_total)
{
    char path[32];
    int fd = fd_of[stream];
    int64_t start = r->file_start[stream], end = r->file_end[stream];
    if (end < start)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    _cleanup_close_ int in = open(path, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return false;
    uint64_t total = (uint64_t)(end - start);
    struct {
        uint64_t at, len;
    } parts[2] = {{0, min_u64(total, r->keep / 2)}};
    parts[1].len = min_u64(total - parts[0].len, r->keep / 2);
    parts[1].at = total - parts[1].len;
    for (int i = 0; i < 2; i++) {
        if (!parts[i].len)
            continue;
        if (!buf_reserve(ret, parts[i].len))
            return false;
        ssize_t n = pread(in, ret->data + ret->len, parts[i].len, start + (off_t)parts[i].at);
        if (n > 0)
            ret->len += (size_t)n;
    }
    *ret_total = total;
    return true;
}

bool relay_kept(struct relay *r, enum relay_stream stream, struct buf *ret, uint64_t *ret_total)
{
    if (r->kind[stream] == FILE_BACK)
        return read_back(r, stream, ret, ret_total);
    if (r->kind[stream] != CHANNEL)
        return false;
    uint64_t total = atomic_load(&r->shared->total[stream]);
    const uint8_t *head = r->shared->bytes + stream * r->keep, *tail = head + r->keep / 2;
    size_t half = r->keep / 2;
    buf_append(ret, head, min_u64(total, half));
    if (half && total > half) { /* the tail is a ring */
        uint64_t rest = total - half, have = min_u64(rest, half), at = (rest - have) % half;
        size_t first = min_u64(have, half - at);
        buf_append(ret, tail + at, first);
        buf_append(ret, tail, have - first);
    }
    *ret_total = total;
    return buf_error(ret) == 0;
}

bool relay_is_merged(const struct relay *r)
{
    return r->kind[RELAY_STDERR] == MERGED;
}

int relay_git_dirty(const struct relay *r, uint64_t patience_ns)
{
    if (!r->shared)
        return -1;
    uint64_t give_up = clock_mono_ns() + patience_ns;
    struct timespec nap = {0, 100 * (long)NS_PER_US};
    int dirty;
    while ((dirty = atomic_load(&r->shared->git_dirty)) == RELAY_GIT_PENDING) {
        if (clock_mono_ns() >= give_up)
            return -1;
        nanosleep(&nap, NULL);
    }
    return dirty;
}

const char *relay_typed_at(const struct relay *r)
{
    return r->terminal[0] && r->shared && atomic_load(&r->shared->typed) ? r->terminal : NULL;
}

void relay_hand_over(struct relay *r)
{
    atomic_store(&r->shared->wanted, 1);
}

void relay_free(struct relay *r)
{
    if (!r)
        return;
    for (int i = 0; i < RELAY_STREAMS; i++) {
        close_fd(&r->ours[i]);
        close_fd(&r->theirs[i]);
    }
    close_fd(&r->bell);
    if (r->shared)
        munmap(r->shared, r->shared_bytes);
    free(r);
}
