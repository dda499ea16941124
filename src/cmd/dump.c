/* `pyrometer dump`: every thread's stack, now.
 *
 * First everything is collected, then printed: a process that ends meanwhile gives one line, never
 * half a table. Threads are looked at one after the other, so each stack is true by itself, but not
 * all at one moment. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/refusal.h"
#include "record/threadstate.h"
#include "remote/locals.h"
#include "remote/remote.h"
#include "view/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

enum {
    NAME_BYTES = 256,
    STATE_BYTES = 64,
    COMMAND_MAX = 64 << 10, /* bytes of a command line */
    TEXT_MAX = 1 << 20,     /* of one line */
    SAMPLE_TRIES = 20,      /* while a stack moves */
    SAMPLE_PAUSE_MS = 2,
};

#define WAITS_FOR_GIL "waiting for the GIL"

struct frame {
    char *name, *qualname, *file; /* owned; name alone is never NULL */
    int32_t line;
    bool has_locals;
    struct remote_locals locals;
};

struct thread {
    struct remote_thread id;
    char name[NAME_BYTES]; /* "": not known */
    char state[STATE_BYTES];
    bool holds_gil, gil_known, moving;
    VEC(struct frame) frames; /* leaf first */
};

struct dump {
    pid_t pid;
    bool locals;
    char *command;
    const char *python; /* borrowed from the remote */
    VEC(struct thread) threads;
};

static void dump_release(struct dump *d)
{
    for (size_t i = 0; i < d->threads.len; i++) {
        struct thread *t = &d->threads.data[i];
        for (size_t k = 0; k < t->frames.len; k++) {
            struct frame *f = &t->frames.data[k];
            free(f->name);
            free(f->qualname);
            free(f->file);
            remote_locals_release(&f->locals);
        }
        vec_release(&t->frames);
    }
    vec_release(&d->threads);
    free(d->command);
}

static void pause_ms(long ms)
{
    struct timespec t = {.tv_nsec = ms * (long)NS_PER_MS};
    nanosleep(&t, NULL);
}

/* ---- what a thread does, by the kernel ---- */

/* System calls that threads of Python programs wait in. */
static const struct {
    long number;
    const char *name;
} waits[] = {
    {SYS_futex, "futex"},
    {SYS_read, "read"},
    {SYS_pread64, "pread64"},
    {SYS_readv, "readv"},
    {SYS_write, "write"},
    {SYS_writev, "writev"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_ppoll, "ppoll"},
    {SYS_pselect6, "pselect6"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_fsync, "fsync"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_io_uring_enter, "io_uring_enter"},
#ifdef SYS_poll /* not on the newer architectures */
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_pause, "pause"},
#endif
};

static void name_wait(long number, char dst[STATE_BYTES])
{
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        if (waits[i].number == number) {
            snprintf(dst, STATE_BYTES, "waiting (%s)", waits[i].name);
            return;
        }
    }
    if (number < 0)
        snprintf(dst, STATE_BYTES, "waiting");
    else
        snprintf(dst, STATE_BYTES, "waiting (system call %ld)", number);
}

static void read_state(const struct remote *r, size_t index, char dst[STATE_BYTES])
{
    pid_t pid = remote_pid(r);
    uint32_t tid = remote_thread(r, index)->tid;
    char letter = tid ? threadstate_letter(pid, tid) : 0;
    snprintf(dst, STATE_BYTES, "%s", letter == 'R' ? "running" : letter ? "waiting" : "unknown");
    if (letter == 'T' || letter == 't')
        snprintf(dst, STATE_BYTES, "stopped");
    if (!letter || strchr("RTtZX", letter))
        return;
    struct threadstate os;
    struct threadstate_call call;
    threadstate_open(&os, pid, tid);
    enum threadstate_verdict verdict = threadstate_blocked_in(&os, &call);
    threadstate_close(&os);
    uint64_t begin, stop;
    if (verdict == THREADSTATE_RUNNING) /* it went on since its letter was read */
        snprintf(dst, STATE_BYTES, "running");
    else if (verdict == THREADSTATE_BLOCKED && remote_gil_range(r, index, &begin, &stop) &&
             threadstate_waits_gil(&call, begin, stop))
        snprintf(dst, STATE_BYTES, WAITS_FOR_GIL);
    else if (verdict == THREADSTATE_BLOCKED)
        name_wait(call.number, dst);
}

/* ---- collecting ---- */

static int add_note(struct thread *t, const char *text)
{
    struct frame *f = vec_push(&t->frames);
    return f && (f->name = strdup(text)) ? 0 : E_NOMEM;
}

static char *copy_or_null(const char *text)
{
    return *text ? strdup(text) : NULL;
}

static int add_frame(struct dump *d, struct remote *r, size_t index, uint32_t number,
                     const struct remote_frame *from, struct thread *t)
{
    if (from->code == REMOTE_CODE_UNREADABLE)
        return add_note(t, "<unreadable>");
    const struct remote_code *c = remote_code(r, from->code);
    struct frame *f = vec_push(&t->frames);
    if (!f || !(f->name = strdup(c->name)))
        return E_NOMEM;
    f->qualname = copy_or_null(c->qualname);
    f->file = copy_or_null(c->file);
    f->line = from->line;
    if (d->locals && !t->moving)
        f->has_locals = remote_frame_locals(r, index, number, &f->locals) == 0;
    return 0;
}

/* A stack that moves gets some more chances; each is a whole series of looks by itself. */
static int sample(struct remote *r, size_t index, struct thread *t, struct remote_sample *ret)
{
    int rc = 0;
    for (int i = 0; i < SAMPLE_TRIES; i++) {
        if (i)
            pause_ms(SAMPLE_PAUSE_MS);
        read_state(r, index, t->state);
        rc = remote_sample_thread(r, index, ret);
        if (rc < 0 || !ret->moving)
            return rc;
    }
    return rc;
}

static void read_name(const struct dump *d, struct remote *r, size_t index, struct thread *t)
{
    if (remote_thread_name(r, index, t->name, sizeof t->name))
        return;
    t->name[0] = 0;
    /* so threading would call it, were it imported */
    if (t->id.tid == (uint32_t)d->pid && t->id.interpreter == 0)
        snprintf(t->name, sizeof t->name, "MainThread");
}

/* 0, also for a thread that has ended meanwhile or is damaged; else the process cannot be read. */
static int collect_thread(struct dump *d, struct remote *r, size_t index)
{
    struct thread t = {.id = *remote_thread(r, index)};
    struct remote_sample s = {0};
    int rc = sample(r, index, &t, &s);
    if (rc == E_NOTREADY)
        return 0;
    if (rc == E_NOPROC || rc == E_PERM || rc == E_NOMEM)
        return rc;
    bool readable = rc == 0;
    if (s.holds_gil && !strcmp(t.state, WAITS_FOR_GIL)) /* it got it since */
        snprintf(t.state, sizeof t.state, "running");
    t.moving = s.moving;
    t.holds_gil = s.holds_gil;
    t.gil_known = s.gil_known;
    struct thread *kept = vec_push(&d->threads);
    if (!kept)
        return E_NOMEM;
    *kept = t;
    rc = 0;
    if (!readable)
        rc = add_note(kept, "<unreadable>");
    else if (s.moving)
        rc = add_note(kept, "<moving>");
    for (uint32_t i = 0; readable && rc == 0 && i < s.depth; i++)
        rc = add_frame(d, r, index, i, &s.frames[i], kept);
    read_name(d, r, index, kept);
    return rc;
}

static void read_command(struct dump *d)
{
    char path[64];
    struct buf text;
    buf_init(&text, COMMAND_MAX);
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)d->pid);
    io_read_file(path, &text); /* too long: its beginning will do */
    while (text.len && text.data[text.len - 1] == 0)
        text.len--;
    for (size_t i = 0; i < text.len; i++)
        if (!text.data[i])
            text.data[i] = ' ';
    text.error = 0;
    d->command = strdup(buf_cstr(&text));
    buf_release(&text);
}

static int collect(struct dump *d, struct remote *r)
{
    read_command(d);
    if (!d->command)
        return E_NOMEM;
    d->python = remote_version(r);
    int rc = 0;
    /* the newest thread is first in the target's list */
    for (size_t i = remote_thread_count(r); rc == 0 && i-- > 0;)
        rc = collect_thread(d, r, i);
    return rc == 0 && !d->threads.len ? E_NOTREADY : rc;
}

/* ---- printing ---- */

/* Other people's text, made harmless. */
static void put_text(const char *text)
{
    struct buf b;
    buf_init(&b, TEXT_MAX);
    view_text_escape(&b, text, strlen(text));
    fwrite(b.data, 1, b.len, stdout);
    buf_release(&b);
}

static void print_frame(const struct frame *f)
{
    fputs("    ", stdout);
    put_text(f->qualname ? f->qualname : f->name);
    if (f->file) {
        fputs(" (", stdout);
        put_text(f->file);
        if (f->line > 0)
            printf(":%d", f->line);
        putchar(')');
    }
    putchar('\n');
    for (size_t i = 0; i < f->locals.list.len; i++) {
        fputs("        ", stdout);
        put_text(f->locals.list.data[i].name);
        fputs(" = ", stdout);
        put_text(f->locals.list.data[i].value);
        putchar('\n');
    }
}

static void print_text(const struct dump *d)
{
    printf("Process %d: ", (int)d->pid);
    put_text(d->command);
    printf(" (Python %s)\n", d->python);
    for (size_t i = 0; i < d->threads.len; i++) {
        const struct thread *t = &d->threads.data[i];
        printf("\nThread %u", t->id.tid);
        if (t->name[0]) {
            fputs(" \"", stdout);
            put_text(t->name);
            putchar('"');
        }
        if (t->id.interpreter)
            printf(" of interpreter %u", t->id.interpreter);
        printf(": %s%s\n", t->state, t->holds_gil ? ", holds the GIL" : "");
        if (t->moving)
            puts("    (its stack changed during every look: only the part that held still is "
                 "shown)");
        if (!t->frames.len)
            puts("    (no Python code runs)");
        for (size_t k = 0; k < t->frames.len; k++)
            print_frame(&t->frames.data[k]);
    }
}

static void json_text_or_null(struct json *j, const char *key, const char *text)
{
    json_key(j, key);
    if (text && *text)
        json_text(j, text);
    else
        json_null(j);
}

static void json_frame(struct json *j, const struct dump *d, const struct frame *f)
{
    json_object_begin(j);
    json_kv_text(j, "name", f->name);
    json_text_or_null(j, "qualname", f->qualname);
    json_text_or_null(j, "file", f->file);
    json_key(j, "line");
    if (f->line > 0)
        json_i64(j, f->line);
    else
        json_null(j);
    if (d->locals && f->has_locals) {
        json_key(j, "locals");
        json_object_begin(j);
        for (size_t i = 0; i < f->locals.list.len; i++)
            json_kv_text(j, f->locals.list.data[i].name, f->locals.list.data[i].value);
        json_object_end(j);
    } else if (d->locals) {
        json_key(j, "locals");
        json_null(j);
    }
    json_object_end(j);
}

static void json_thread(struct json *j, const struct dump *d, const struct thread *t)
{
    json_object_begin(j);
    json_text_or_null(j, "name", t->name);
    json_key(j, "tid");
    if (t->id.tid)
        json_u64(j, t->id.tid);
    else
        json_null(j);
    json_kv_u64(j, "ident", t->id.ident);
    json_kv_u64(j, "interpreter", t->id.interpreter);
    json_kv_text(j, "state", t->state);
    json_key(j, "holds_gil");
    if (t->gil_known)
        json_bool(j, t->holds_gil);
    else
        json_null(j);
    json_kv_bool(j, "moving", t->moving);
    json_key(j, "frames");
    json_array_begin(j);
    for (size_t i = 0; i < t->frames.len; i++)
        json_frame(j, d, &t->frames.data[i]);
    json_array_end(j);
    json_object_end(j);
}

static void print_json(const struct dump *d)
{
    struct json j;
    json_init(&j, stdout);
    json_object_begin(&j);
    json_kv_u64(&j, "pid", (uint64_t)d->pid);
    json_kv_text(&j, "command", d->command);
    json_kv_text(&j, "python", d->python);
    json_key(&j, "threads");
    json_array_begin(&j);
    for (size_t i = 0; i < d->threads.len; i++)
        json_thread(&j, d, &d->threads.data[i]);
    json_array_end(&j);
    json_object_end(&j);
    putchar('\n');
}

int cmd_dump(int argc, char **argv)
{
    struct dump d = {0};
    bool json = false;
    const struct cmd_option options[] = {
        {"locals", 0, CMD_FLAG, &d.locals, NULL},
        {"json", 0, CMD_FLAG, &json, NULL},
        {NULL, 0, CMD_FLAG, NULL, NULL},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands != 1)
        return cmd_fail(CMD_USAGE, "dump needs the number of one process");
    int status = cmd_parse_pid(argv[first], &d.pid);
    if (!status)
        status = cmd_check_process(d.pid);
    if (status)
        return status;
    struct remote *r = NULL;
    int rc = remote_open_patiently(d.pid, &r);
    if (rc == 0)
        rc = collect(&d, r);
    if (rc < 0)
        status = cmd_process_refused(d.pid, rc);
    else if (json)
        print_json(&d);
    else
        print_text(&d);
    dump_release(&d);
    remote_close(r);
    return status;
}
