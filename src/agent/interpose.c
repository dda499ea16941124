/* Passing through: programs that are started with an environment of their own, and threads.
 *
 * exec and posix_spawn put back what a cleaned environment lacks, on the stack, since they may run
 * between vfork and exec where nothing may be allocated. system() and popen() start their shell by a name
 * that is libc's own, so there the shell itself is asked to. pthread_create and pthread_setspecific tell
 * when a thread is about to run Python for the first time: below 3.12 its profile function has to be
 * set. Every wrapper calls the next definition of its name, and gives back what that does. */
#include "agent/interpose.h"

#include "agent/hooks.h"
#include "agent/memory.h"
#include "agent/pyver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

char interpose_preload[4096];
char interpose_variable[96];
extern char **environ;

/* The next definition of a name; a pointer that is found once. */
#define NEXT(name)                                                                                 \
    static __typeof__(name) *next;                                                                 \
    if (!next)                                                                                     \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);

enum { MAX_ENVIRONMENT = 1 << 16 }; /* entries; larger ones pass as they are */

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static size_t count(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

/* What an environment has for LD_PRELOAD, "" if nothing. */
static const char *preload_of(char *const *env)
{
    for (size_t i = 0; env && env[i]; i++)
        if (starts_with(env[i], "LD_PRELOAD="))
            return env[i] + strlen("LD_PRELOAD=");
    return "";
}

/* With room for ours. */
static size_t preload_size(char *const *env)
{
    return strlen(interpose_preload) + strlen(preload_of(env)) + sizeof ":";
}

/* An LD_PRELOAD of the program's own is kept: ours goes before it, unless it is there. */
static void join_preload(char *out, size_t max, const char *theirs)
{
    const char *ours = interpose_preload + strlen("LD_PRELOAD=");
    bool there = strstr(theirs, ours) != NULL;
    snprintf(out, max, "LD_PRELOAD=%s%s%s", there ? "" : ours, there || !*theirs ? "" : ":",
             theirs);
}

/* Writes the environment with ours into `out`, which has room for three more. */
static void complete(char **out, char *const *env, char *preload, size_t preload_max)
{
    size_t n = 0;
    for (size_t i = 0; env && env[i]; i++)
        if (!starts_with(env[i], "LD_PRELOAD=") && !starts_with(env[i], RING_VARIABLE "="))
            out[n++] = env[i];
    join_preload(preload, preload_max, preload_of(env));
    out[n++] = preload;
    out[n++] = interpose_variable;
    out[n] = NULL;
}

/* Is there a recorder behind an invitation, "PID:FD:KEY"? */
static bool has_recorder(const char *invitation)
{
    char path[64], *at;
    int why = errno;
    unsigned long pid = strtoul(invitation, &at, 10);
    unsigned long fd = *at == ':' ? strtoul(at + 1, NULL, 10) : 0;
    snprintf(path, sizeof path, "/proc/%lu/fd/%lu", pid, fd);
    bool has = access(path, F_OK) == 0;
    errno = why;
    return has;
}

/* Another recorder, that of a `pyrometer run` in the program, starts this child. One that is no more counts for nothing. */
static bool is_invited_elsewhere(char *const *env)
{
    for (size_t i = 0; env && env[i]; i++)
        if (starts_with(env[i], RING_VARIABLE "=") && strcmp(env[i], interpose_variable) != 0)
            return has_recorder(env[i] + strlen(RING_VARIABLE "="));
    return false;
}

static bool wants_completing(char *const *env)
{
    return interpose_preload[0] && guest.session && count(env) < MAX_ENVIRONMENT &&
           !is_invited_elsewhere(env);
}

/* Asked once: the answer may be another one in the next moment, and the room is for this one. */
#define WITH_ENVIRONMENT(env)                                                                      \
    const bool wanted_ = wants_completing(env);                                                    \
    char *room_[wanted_ ? count(env) + 3 : 1];                                                     \
    char preload_[preload_size(env)];                                                              \
    if (wanted_) {                                                                                 \
        complete(room_, env, preload_, sizeof preload_);                                           \
        (env) = room_;                                                                             \
    }

#pragma GCC diagnostic ignored "-Wvla" /* nothing may be allocated between vfork and exec */

PUBLIC int execve(const char *path, char *const argv[], char *const envp[])
{
    NEXT(execve);
    char *const *env = envp;
    WITH_ENVIRONMENT(env);
    struct ring_header *told = memory_executes();
    int failed = next(path, argv, (char *const *)env);
    memory_execution_failed(told);
    return failed;
}

PUBLIC int execvpe(const char *file, char *const argv[], char *const envp[])
{
    NEXT(execvpe);
    char *const *env = envp;
    WITH_ENVIRONMENT(env);
    struct ring_header *told = memory_executes();
    int failed = next(file, argv, (char *const *)env);
    memory_execution_failed(told);
    return failed;
}

PUBLIC int fexecve(int fd, char *const argv[], char *const envp[])
{
    NEXT(fexecve);
    char *const *env = envp;
    WITH_ENVIRONMENT(env);
    struct ring_header *told = memory_executes();
    int failed = next(fd, argv, (char *const *)env);
    memory_execution_failed(told);
    return failed;
}

PUBLIC int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

PUBLIC int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's names are not for us */

/* Those that take their arguments one by one. libc's own call execve by a name that is not to be come before. Declares `argv`, a
 * list of them on the stack, and leaves `more` behind their end. */
#define LIST_ARGUMENTS(arg, more)                                                                  \
    size_t count_ = 0;                                                                             \
    va_start(more, arg);                                                                           \
    for (const char *at_ = (arg); at_; at_ = va_arg(more, const char *))                           \
        count_++;                                                                                  \
    va_end(more);                                                                                  \
    const char *argv[count_ + 1];                                                                  \
    argv[0] = (arg);                                                                               \
    va_start(more, arg);                                                                           \
    for (size_t i_ = 1; i_ <= count_; i_++)                                                        \
        argv[i_] = va_arg(more, const char *);

PUBLIC int execl(const char *path, const char *arg, ...)
{
    va_list more;
    LIST_ARGUMENTS(arg, more);
    va_end(more);
    return execve(path, (char *const *)argv, environ);
}

PUBLIC int execlp(const char *file, const char *arg, ...)
{
    va_list more;
    LIST_ARGUMENTS(arg, more);
    va_end(more);
    return execvpe(file, (char *const *)argv, environ);
}

PUBLIC int execle(const char *path, const char *arg, ...)
{
    va_list more;
    LIST_ARGUMENTS(arg, more);
    char *const *env = va_arg(more, char *const *);
    va_end(more);
    return execve(path, (char *const *)argv, env);
}

PUBLIC int posix_spawn(pid_t *restrict pid, const char *restrict path,
                       const posix_spawn_file_actions_t *restrict actions,
                       const posix_spawnattr_t *restrict attr, char *const argv[restrict],
                       char *const envp[restrict])
{
    NEXT(posix_spawn);
    char *const *env = envp;
    WITH_ENVIRONMENT(env);
    return next(pid, path, actions, attr, argv, (char *const *)env);
}

PUBLIC int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                        const posix_spawn_file_actions_t *restrict actions,
                        const posix_spawnattr_t *restrict attr, char *const argv[restrict],
                        char *const envp[restrict])
{
    NEXT(posix_spawnp);
    char *const *env = envp;
    WITH_ENVIRONMENT(env);
    return next(pid, file, actions, attr, argv, (char *const *)env);
}

/* Does a child with this environment find us? */
static bool leads_to_us(char *const *env)
{
    bool invites = false;
    for (size_t i = 0; env && env[i]; i++)
        invites |= strcmp(env[i], interpose_variable) == 0;
    return invites && strstr(preload_of(env), interpose_preload + strlen("LD_PRELOAD="));
}

/* The shell sets for its children what it has not got itself. Changing `environ` meanwhile would be felt by other threads. Returns the
 * command with that before it, to be unmapped; NULL: it is good as it is. */
static char *with_exports(const char *command, size_t *ret_len)
{
    if (!command || !wants_completing(environ) || leads_to_us(environ))
        return NULL;
    char preload[preload_size(environ)];
    join_preload(preload, sizeof preload, preload_of(environ));
    *ret_len = strlen(command) + sizeof preload + sizeof interpose_variable + 32;
    char *text = strchr(preload, '\'') ? NULL : guest_map(*ret_len, -1, 0);
    if (text)
        snprintf(text, *ret_len, "export '%s' '%s'; %s", preload, interpose_variable, command);
    return text;
}

static void drop_exports(char *text, size_t len)
{
    int why = errno;
    if (text)
        guest_unmap(text, len);
    errno = why;
}

PUBLIC int system(const char *command)
{
    NEXT(system);
    size_t len = 0;
    char *text = with_exports(command, &len);
    int status = next(text ? text : command);
    drop_exports(text, len);
    return status;
}

PUBLIC FILE *popen(const char *command, const char *modes)
{
    NEXT(popen);
    size_t len = 0;
    char *text = with_exports(command, &len);
    FILE *stream = next(text ? text : command, modes); /* the shell has its own copy by then */
    drop_exports(text, len);
    return stream;
}

/* --- threads --- */

static _Atomic bool started;

void interpose_start(void)
{
    atomic_store(&started, true);
}

/* Does this thread hold the GIL? PyGILState_Check() does not answer that: it says yes where there is no interpreter any more, and
 * to everybody once there was a second one. */
static bool holds_gil(void)
{
    const py_tstate *mine = py.PyGILState_GetThisThreadState();
    return mine && py.current_thread() == mine;
}

PUBLIC int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
                          void *(*routine)(void *), void *restrict arg)
{
    NEXT(pthread_create);
    /* Python makes a thread's state before the thread, and holds the GIL meanwhile */
    if (atomic_load_explicit(&started, memory_order_relaxed) && holds_gil())
        profile_cover_threads();
    return next(thread, attr, routine, arg);
}

/* Threads that C code has made get their state in PyGILState_Ensure, which in a static Python nobody can come before. But it
 * keeps the state for the thread here, as soon as it is made. */
PUBLIC int pthread_setspecific(pthread_key_t key, const void *value)
{
    NEXT(pthread_setspecific);
    int r = next(key, value);
    if (!value || !atomic_load_explicit(&started, memory_order_relaxed))
        return r;
    py_tstate *mine = py.PyGILState_GetThisThreadState();
    if (value == mine) /* else it is another's key */
        profile_meet(mine);
    return r;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
