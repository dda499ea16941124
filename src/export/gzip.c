/* The quickest level: profiles are made of repeats, and readers wait for the writer. The compressor
 * runs in a thread of its own, one block behind whoever makes the bytes: two blocks, one being
 * filled, one being compressed. */
#include "export/gzip.h"

#include "base/attr.h"
#include "base/err.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

enum {
    GZIP_WINDOW_BITS = 15 + 16, /* a gzip header and not zlib's */
    OUT_BYTES = 64 << 10,
    BLOCK_BYTES = 1 << 20,
};

struct export_gzip {
    FILE *out;
    z_stream z;                    /* the thread's, from start to join */
    unsigned char *filling, *full; /* owned; swapped under the lock while `busy` is false */
    size_t filled;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t full_bytes;
    bool busy;    /* `full` is the thread's */
    bool last;    /* nothing comes after it */
    int error;    /* sticky */
    int os_errno; /* and what the system said; errno is each thread's own */
    bool joined;
    unsigned char bytes[OUT_BYTES]; /* the thread's */
};

/* Runs the compressor until it has taken everything (and, at the end, given everything). */
static int pump(struct export_gzip *g, size_t len, int flush)
{
    int state;
    g->z.next_in = g->full;
    g->z.avail_in = (unsigned)len;
    do {
        g->z.next_out = g->bytes;
        g->z.avail_out = OUT_BYTES;
        state = deflate(&g->z, flush);
        size_t made = OUT_BYTES - g->z.avail_out;
        errno = 0;
        if (made && fwrite(g->bytes, 1, made, g->out) != made)
            return errno ? err_from_errno(errno) : E_IO;
    } while (g->z.avail_out == 0 && state != Z_STREAM_END);
    return 0;
}

static void *compress_blocks(void *ctx)
{
    struct export_gzip *g = ctx;
    for (bool last = false; !last;) {
        pthread_mutex_lock(&g->lock);
        while (!g->busy)
            pthread_cond_wait(&g->changed, &g->lock);
        size_t len = g->full_bytes;
        bool failed = g->error < 0;
        last = g->last;
        pthread_mutex_unlock(&g->lock);
        int r = failed ? 0 : pump(g, len, last ? Z_FINISH : Z_NO_FLUSH);
        pthread_mutex_lock(&g->lock);
        if (r < 0) {
            g->error = r;
            g->os_errno = errno;
        }
        g->busy = false;
        pthread_cond_signal(&g->changed);
        pthread_mutex_unlock(&g->lock);
    }
    return NULL;
}

/* Hands the block over once the one before it is done. */
static int hand_over(struct export_gzip *g, bool last)
{
    pthread_mutex_lock(&g->lock);
    while (g->busy)
        pthread_cond_wait(&g->changed, &g->lock);
    unsigned char *empty = g->full;
    g->full = g->filling;
    g->full_bytes = g->filled;
    g->filling = empty;
    g->filled = 0;
    g->busy = true;
    g->last = last;
    int error = g->error;
    if (error < 0)
        errno = g->os_errno;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return error;
}

int export_gzip_new(FILE *out, struct export_gzip **ret)
{
    struct export_gzip *g = calloc(1, sizeof *g);
    if (!g)
        return E_NOMEM;
    g->out = out;
    g->filling = malloc(BLOCK_BYTES);
    g->full = malloc(BLOCK_BYTES);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    bool ready = g->filling && g->full &&
                 deflateInit2(&g->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW_BITS, 8,
                              Z_DEFAULT_STRATEGY) == Z_OK;
    g->joined = !ready || pthread_create(&g->thread, NULL, compress_blocks, g) != 0;
    if (g->joined) {
        export_gzip_free(g);
        return E_NOMEM;
    }
    *ret = g;
    return 0;
}

int export_gzip_write(struct export_gzip *g, const void *data, size_t len)
{
    const unsigned char *at = data;
    int r = 0;
    while (r == 0 && len) {
        size_t part = min_u64(len, BLOCK_BYTES - g->filled);
        memcpy(g->filling + g->filled, at, part);
        g->filled += part;
        at += part;
        len -= part;
        if (g->filled == BLOCK_BYTES)
            r = hand_over(g, false);
    }
    return r;
}

int export_gzip_finish(struct export_gzip *g)
{
    hand_over(g, true);
    pthread_join(g->thread, NULL);
    g->joined = true;
    if (g->error < 0)
        errno = g->os_errno;
    return g->error;
}

void export_gzip_free(struct export_gzip *g)
{
    if (!g)
        return;
    if (!g->joined)
        export_gzip_finish(g);
    deflateEnd(&g->z);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    free(g->filling);
    free(g->full);
    free(g);
}
