/* The writing thread. One mutex guards the queue and the flags; a job belongs to whoever holds it. */
#include "format/sink.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "format/compress.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/uio.h>

struct job {
    struct job *next;
    enum format_chunk_kind kind;
    uint32_t records;
    struct buf payload;
};

struct sink {
    int fd;            /* the thread's, after start */
    uint32_t sequence; /* the thread's */
    struct compressor *compressor;
    struct buf scratch; /* the thread's: compressed bytes */
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* queue, stopping */
    struct job *first, *last;
    size_t queued_bytes;
    bool stopping;
    int error; /* sticky */

    _Atomic uint64_t cpu_ns;
};

static int write_chunk(struct sink *s, struct job *job)
{
    const uint8_t *stored = job->payload.data;
    size_t stored_len = job->payload.len;
    struct format_chunk_header h = {
        .magic = FORMAT_CHUNK_MAGIC,
        .kind = (uint16_t)job->kind,
        .sequence = s->sequence,
        .raw_bytes = (uint32_t)job->payload.len,
        .records = job->records,
    };
    buf_clear(&s->scratch);
    if (stored_len && buf_reserve(&s->scratch, compress_bound(stored_len))) {
        size_t n = compress(s->compressor, s->scratch.data, s->scratch.cap, stored, stored_len);
        if (n) {
            h.flags |= FORMAT_CHUNK_ZSTD;
            stored = s->scratch.data;
            stored_len = n;
        }
    }
    h.stored_bytes = (uint32_t)stored_len;
    h.checksum = checksum_chunk(&h, stored);

    /* one writev: a chunk is whole or, after a crash, visibly torn at the end of the file */
    struct iovec iov[2] = {{&h, sizeof h}, {(void *)stored, stored_len}};
    ssize_t n = writev(s->fd, iov, stored_len ? 2 : 1);
    int r = 0;
    size_t done = n > 0 ? (size_t)n : 0;
    if (done < sizeof h) {
        r = io_write_all(s->fd, (uint8_t *)&h + done, sizeof h - done);
        done = sizeof h;
    }
    if (r == 0 && stored_len)
        r = io_write_all(s->fd, stored + (done - sizeof h), stored_len - (done - sizeof h));
    if (r == 0)
        s->sequence++;
    return r;
}

static void *sink_main(void *arg)
{
    struct sink *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->stopping)
            pthread_cond_wait(&s->changed, &s->lock);
        struct job *job = s->first;
        if (!job)
            break;
        s->first = job->next;
        if (!s->first)
            s->last = NULL;
        int error = s->error;
        pthread_mutex_unlock(&s->lock);

        /* after a failure the rest is thrown away: a hole in the middle would be worse than an end */
        size_t len = job->payload.len;
        if (!error)
            error = write_chunk(s, job);
        buf_release(&job->payload);
        free(job);
        atomic_store_explicit(&s->cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID), memory_order_relaxed);

        pthread_mutex_lock(&s->lock);
        if (!s->error) /* a submission may have failed meanwhile */
            s->error = error;
        s->queued_bytes -= len;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int sink_start(int fd, struct sink **ret)
{
    struct sink *s = calloc(1, sizeof *s);
    if (!s)
        return E_NOMEM;
    s->fd = fd;
    buf_init(&s->scratch, compress_bound(FORMAT_MAX_CHUNK_BYTES));
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->compressor = compressor_new();
    int r = s->compressor ? 0 : E_NOMEM;

    /* signals are the recorder's affair: none may land in this thread */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (r == 0)
        r = err_from_errno(pthread_create(&s->thread, NULL, sink_main, s));
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r < 0) {
        compressor_free(s->compressor);
        free(s);
        return r;
    }
    *ret = s;
    return 0;
}

int sink_submit(struct sink *s, enum format_chunk_kind kind, struct buf *payload, uint32_t records)
{
    struct job *job = calloc(1, sizeof *job);
    int r = job ? buf_error(payload) : E_NOMEM;
    if (r == 0) {
        job->kind = kind;
        job->records = records;
        job->payload = *payload;
        *payload = (struct buf){.max = payload->max};
    }

    pthread_mutex_lock(&s->lock);
    while (s->queued_bytes > SINK_MAX_QUEUED && !s->error)
        pthread_cond_wait(&s->changed, &s->lock);
    if (r < 0) {
        if (!s->error)
            s->error = r;
    } else {
        s->queued_bytes += job->payload.len;
        if (s->last)
            s->last->next = job;
        else
            s->first = job;
        s->last = job;
        job = NULL;
        pthread_cond_broadcast(&s->changed);
    }
    r = s->error;
    pthread_mutex_unlock(&s->lock);
    free(job);
    return r;
}

int sink_stop(struct sink *s, uint64_t *ret_cpu_ns)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    int r = s->error;
    if (ret_cpu_ns)
        *ret_cpu_ns = sink_cpu_ns(s);
    if (close(s->fd) < 0 && r == 0)
        r = E_IO;
    buf_release(&s->scratch);
    compressor_free(s->compressor);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
    return r;
}

size_t sink_queued(struct sink *s)
{
    pthread_mutex_lock(&s->lock);
    size_t bytes = s->queued_bytes;
    pthread_mutex_unlock(&s->lock);
    return bytes;
}

uint64_t sink_cpu_ns(const struct sink *s)
{
    return atomic_load_explicit(&s->cpu_ns, memory_order_relaxed);
}
