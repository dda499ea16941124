/* One mutex guards the queue of files to read and the list of those read. The thread owns a job
 * while it works on it; the recorder's thread alone touches the writer. */
#include "record/sources.h"

#include "base/cond.h"
#include "base/err.h"
#include "base/io.h"
#include "base/srcfile.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define FINISH_WAIT_NS                                                                             \
    (2 *                                                                                           \
     NS_PER_SEC) /* a disk that hangs does not hold up the end for longer                      \
                      */
/* Code may be registered a moment after it first runs: asked at once, then later and later. */
#define ASK_AGAIN_NS (50 * NS_PER_MS)
enum { ASK_TRIES = 3, ASK_FACTOR = 10 };

struct pseudo {
    uint32_t path;
    char *name; /* owned */
    unsigned tries;
    uint64_t due_ns;
};

struct sources_place {
    _Atomic int refs; /* the target's and one for each job */
    pid_t pid;
    int root, cwd;
    VEC(struct pseudo) pseudo; /* the recorder's thread's */
};

struct job {
    struct job *next;
    struct sources_place *place; /* counted */
    char *path;                  /* owned */
    uid_t uid;                   /* whose rights count */
    gid_t gid;
    bool keeps;                  /* the text, not only the print */
    struct record_source source; /* the result; its text is owned */
    bool found;
};

struct sources {
    struct format_writer *writer;
    VEC(uint8_t) seen; /* by string id; the recorder's thread's, as is the next */
    size_t files;
    _Atomic size_t kept_bytes;
    _Atomic uint64_t cpu_ns;
    bool is_root;

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first, *last; /* to do */
    struct job *done;
    size_t open_jobs; /* to do, or being done */
    bool stopping;
    bool abandoned; /* nobody waits any more: the thread frees all */
};

/* --- places --- */

/* The real user and group, as they are now: a program may have given up its rights since it began,
 * and what a setuid program may read beyond them is not the user's. */
static bool read_owner(pid_t pid, uid_t *ret_uid, gid_t *ret_gid)
{
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (io_read_text(path, text, sizeof text) <= 0)
        return false;
    const char *uid = strstr(text, "\nUid:"), *gid = strstr(text, "\nGid:");
    if (!uid || !gid)
        return false;
    *ret_uid = (uid_t)strtoul(uid + 5, NULL, 10);
    *ret_gid = (gid_t)strtoul(gid + 5, NULL, 10);
    return true;
}

struct sources_place *sources_place_new(pid_t pid)
{
    char path[64];
    struct sources_place *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->refs = 1;
    p->pid = pid;
    snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
    p->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
    p->cwd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->root >= 0 && p->cwd >= 0)
        return p;
    sources_place_free(p);
    return NULL;
}

void sources_place_free(struct sources_place *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) > 1)
        return;
    if (p->root >= 0)
        close(p->root);
    if (p->cwd >= 0)
        close(p->cwd);
    for (size_t i = 0; i < p->pseudo.len; i++)
        free(p->pseudo.data[i].name);
    vec_release(&p->pseudo);
    free(p);
}

/* --- the thread --- */

static void job_free(struct job *job)
{
    sources_place_free(job->place);
    free(job->path);
    free((char *)job->source.text);
    free(job);
}

/* Takes on the rights of the process's user, for this thread's files only: glibc's calls would
 * change all threads. False if that is not possible: then nothing may be read. */
static bool become(const struct sources *s, const struct job *job)
{
    if (!s->is_root)
        return true;
    syscall(SYS_setfsuid, 0);
    bool good = syscall(SYS_setgroups, 1, &job->gid) == 0;
    syscall(SYS_setfsgid, job->gid);
    syscall(SYS_setfsuid, job->uid);
    return (good || job->uid == 0) && (uid_t)syscall(SYS_setfsuid, -1) == job->uid;
}

/* True if so much more may be kept. */
static bool spend(struct sources *s, size_t len)
{
    if (atomic_fetch_add(&s->kept_bytes, len) + len <= SOURCES_MAX_KEPT_BYTES)
        return true;
    atomic_fetch_sub(&s->kept_bytes, len);
    return false;
}

static void work(struct sources *s, struct job *job)
{
    struct srcfile_place place = {job->place->root, job->place->cwd};
    struct srcfile file;
    if (!become(s, job) || srcfile_read(&place, job->path, SOURCES_MAX_TEXT_BYTES, &file) < 0)
        return;
    struct record_source *source = &job->source;
    job->found = true;
    source->size = file.size;
    source->mtime_ns = file.mtime_ns;
    if (file.has_text) {
        source->hash =
            record_source_hash(file.text.len ? (void *)file.text.data : "", file.text.len);
        source->flags |= RECORD_SOURCE_HASHED;
    }
    if (job->keeps && file.has_text && spend(s, file.text.len)) {
        source->text_len = file.text.len;
        source->text = buf_detach(&file.text);
        source->flags |= source->text ? RECORD_SOURCE_TEXT : 0;
    } else if (job->keeps) {
        source->flags |= RECORD_SOURCE_OVER;
    }
    srcfile_release(&file);
}

static void free_jobs(struct job *job)
{
    while (job) {
        struct job *next = job->next;
        job_free(job);
        job = next;
    }
}

static void free_all(struct sources *s)
{
    free_jobs(s->first);
    free_jobs(s->done);
    vec_release(&s->seen);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
}

static void *thread_main(void *arg)
{
    struct sources *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->stopping)
            pthread_cond_wait(&s->changed, &s->lock);
        struct job *job = s->first;
        if (!job || s->abandoned)
            break;
        s->first = job->next;
        pthread_mutex_unlock(&s->lock);
        work(s, job);
        atomic_store_explicit(&s->cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID), memory_order_relaxed);
        pthread_mutex_lock(&s->lock);
        job->next = s->done;
        s->done = job;
        s->open_jobs--;
        pthread_cond_broadcast(&s->changed);
    }
    bool abandoned = s->abandoned;
    pthread_mutex_unlock(&s->lock);
    if (abandoned)
        free_all(s);
    return NULL;
}

int sources_new(struct format_writer *writer, struct sources **ret)
{
    struct sources *s = calloc(1, sizeof *s);
    if (!s)
        return E_NOMEM;
    s->writer = writer;
    s->is_root = geteuid() == 0;
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->changed);
    /* signals are the recorder's affair: none may land in this thread */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&s->thread, NULL, thread_main, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        free_all(s);
        return err_from_errno(rc);
    }
    *ret = s;
    return 0;
}

/* --- the recorder's side --- */

static void write_jobs(struct format_writer *w, struct job *jobs)
{
    for (const struct job *job = jobs; job; job = job->next)
        if (job->found)
            format_writer_source(w, &job->source);
    free_jobs(jobs);
}

void sources_collect(struct sources *s)
{
    pthread_mutex_lock(&s->lock);
    struct job *done = s->done;
    s->done = NULL;
    pthread_mutex_unlock(&s->lock);
    write_jobs(s->writer, done);
}

void sources_free(struct sources *s)
{
    if (!s)
        return;
    uint64_t until = clock_mono_ns() + FINISH_WAIT_NS;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->changed);
    int rc = 0;
    while (s->open_jobs && rc == 0)
        rc = cond_wait_until(&s->changed, &s->lock, until);
    bool abandoned = s->abandoned = s->open_jobs > 0;
    struct job *done = s->done;
    s->done = NULL;
    struct format_writer *writer = s->writer;
    pthread_t thread = s->thread;
    if (abandoned)
        pthread_detach(thread);
    pthread_mutex_unlock(&s->lock); /* if abandoned, `s` is the thread's from here on */
    write_jobs(writer, done);
    if (!abandoned) {
        pthread_join(thread, NULL);
        free_all(s);
    }
}

/* Is this a place where files stay: the standard library, or installed packages? */
static bool stays(const char *path)
{
    if (strstr(path, "/site-packages/") || strstr(path, "/dist-packages/"))
        return true;
    for (const char *p = path; (p = strstr(p, "/python3.")); p++) {
        const char *end = p + strlen("/python3.");
        end += strspn(end, "0123456789t");
        bool in_lib = (p - path >= 4 && !strncmp(p - 4, "/lib", 4)) ||
                      (p - path >= 6 && !strncmp(p - 6, "/lib64", 6));
        if (*end == '/' && in_lib)
            return true;
    }
    return false;
}

static bool mark_seen(struct sources *s, uint32_t path)
{
    if (path >= s->seen.len) {
        size_t old = s->seen.len;
        if (!vec_reserve(&s->seen, path + 1u))
            return false;
        memset(s->seen.data + old, 0, path + 1u - old);
        s->seen.len = path + 1u;
    }
    s->seen.data[path] = 1;
    return true;
}

static void want_file(struct sources *s, struct sources_place *place, uint32_t path,
                      const char *text)
{
    uid_t uid = 0;
    gid_t gid = 0;
    if (s->is_root && !read_owner(place->pid, &uid, &gid))
        return; /* it is gone, and nobody knows what it might have read */
    struct job *job = calloc(1, sizeof *job);
    char *copy = strdup(text);
    if (!job || !copy || !mark_seen(s, path)) {
        free(job);
        free(copy);
        return;
    }
    atomic_fetch_add(&place->refs, 1);
    job->place = place;
    job->path = copy;
    job->uid = uid;
    job->gid = gid;
    job->keeps = !stays(text);
    job->source.path = path;
    s->files++;
    pthread_mutex_lock(&s->lock);
    if (s->first)
        s->last->next = job;
    else
        s->first = job;
    s->last = job;
    s->open_jobs++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void want_pseudo(struct sources_place *place, uint32_t path, const char *text)
{
    for (size_t i = 0; i < place->pseudo.len; i++)
        if (place->pseudo.data[i].path == path)
            return;
    char *copy = place->pseudo.len < SOURCES_MAX_PSEUDO ? strdup(text) : NULL;
    struct pseudo *p = copy ? vec_push(&place->pseudo) : NULL;
    if (p)
        *p = (struct pseudo){.path = path, .name = copy};
    else
        free(copy);
}

void sources_want(struct sources *s, struct sources_place *place, uint32_t path, const char *text)
{
    if (!place || !*text || (path < s->seen.len && s->seen.data[path]) ||
        s->files >= SOURCES_MAX_FILES || strncmp(text, "<frozen ", 8) == 0)
        return;
    struct srcfile_place where = {place->root, place->cwd};
    if (text[0] != '<' && srcfile_exists(&where, text))
        want_file(s, place, path, text);
    else
        want_pseudo(place, path, text);
}

static bool ask(struct sources *s, const struct pseudo *p, struct remote *r)
{
    if (p->path < s->seen.len && s->seen.data[p->path]) /* another process had it */
        return true;
    struct record_source source = {.path = p->path, .flags = RECORD_SOURCE_LINECACHE};
    _cleanup_free_ char *text =
        remote_linecache_text(r, p->name, SOURCES_MAX_TEXT_BYTES, &source.text_len);
    if (!text || !mark_seen(s, p->path))
        return false;
    source.size = source.text_len;
    source.hash = record_source_hash(text, source.text_len);
    source.flags |= RECORD_SOURCE_HASHED;
    if (spend(s, source.text_len)) {
        source.text = text;
        source.flags |= RECORD_SOURCE_TEXT;
    } else {
        source.text_len = 0;
        source.flags |= RECORD_SOURCE_OVER;
    }
    format_writer_source(s->writer, &source);
    return true;
}

void sources_ask(struct sources *s, struct sources_place *place, struct remote *r, uint64_t now_ns)
{
    for (size_t i = 0; place && i < place->pseudo.len; i++) {
        struct pseudo *p = &place->pseudo.data[i];
        if (p->tries >= ASK_TRIES || now_ns < p->due_ns)
            continue;
        uint64_t wait = ASK_AGAIN_NS;
        for (unsigned k = 0; k < p->tries; k++)
            wait *= ASK_FACTOR;
        p->due_ns = now_ns + wait;
        p->tries = ask(s, p, r) ? ASK_TRIES : p->tries + 1;
        return; /* one in a tick is enough */
    }
}

uint64_t sources_cpu_ns(const struct sources *s)
{
    return atomic_load_explicit(&s->cpu_ns, memory_order_relaxed);
}
