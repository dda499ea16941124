/* The samples of a recording, on demand. A long recording that is wanted in order is decoded on a
 * thread of its own, a few blocks ahead of whoever takes them: decoding costs about as much as what
 * most callers do with a sample. */
#include "base/err.h"
#include "base/progress.h"
#include "base/vec.h"
#include "profile/internal.h"

#include <pthread.h>
#include <unistd.h>

enum {
    AHEAD_RECORDS = 1 << 20, /* with fewer, a thread is not worth its while */
    BLOCK_SAMPLES = 8192,    /* 256 KiB: what is passed on is still in the cache */
    BLOCKS = 4,
};

/* --- one chunk after the other --- */

struct sample_pass {
    const struct profile *profile;
    const uint8_t *thread_known;
    size_t thread_count, node_count;
    int (*fn)(void *ctx, const struct record_sample *samples, size_t n);
    void *ctx;
    VEC(struct record_sample) mended; /* a copy, only for batches with a wrong id */
};

static bool is_sound(const struct sample_pass *p, const struct record_sample *s)
{
    return s->stack < p->node_count && s->thread < p->thread_count && p->thread_known[s->thread];
}

static int mend_and_push(struct sample_pass *pass, const struct record_sample *samples, size_t n)
{
    if (!vec_reserve(&pass->mended, n))
        return E_NOMEM;
    struct record_sample *copy = pass->mended.data;
    memcpy(copy, samples, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        copy[i].stack = profile_mend_stack(pass->profile, copy[i].stack);
        copy[i].thread = profile_mend_thread(pass->profile, copy[i].thread);
    }
    return pass->fn(pass->ctx, copy, n);
}

static int on_samples(void *ctx, const struct record_sample *samples, size_t n)
{
    struct sample_pass *pass = ctx;
    bool sound = true;
    for (size_t i = 0; i < n; i++)
        sound &= is_sound(pass, &samples[i]);
    if (likely(sound))
        return pass->fn(pass->ctx, samples, n);
    return mend_and_push(pass, samples, n);
}

int profile_each_sample_part(const struct profile *p, unsigned part, unsigned parts,
                             int (*fn)(void *ctx, const struct record_sample *samples, size_t n),
                             void *ctx, uint32_t *ret_damaged)
{
    static const struct format_visitor visitor = {.samples = on_samples};
    const struct format_reader *reader = profile_reader(p);
    struct sample_pass pass = {
        .profile = p, .node_count = profile_tables(p)->node_count, .fn = fn, .ctx = ctx};
    pass.thread_known = profile_threads_known(p, &pass.thread_count);
    uint32_t damaged = 0;
    unsigned turn = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < format_reader_chunk_count(reader); i++) {
        if (format_reader_chunk(reader, i)->kind != FORMAT_CHUNK_SAMPLES || turn++ % parts != part)
            continue;
        r = format_reader_visit_chunk(reader, i, &visitor, &pass);
        progress_add(format_reader_chunk(reader, i)->records);
        if (r == E_CORRUPT) {
            damaged++;
            r = 0;
        }
    }
    vec_release(&pass.mended);
    if (ret_damaged)
        *ret_damaged = damaged;
    return r;
}

uint32_t profile_damaged_chunks(const struct profile *p)
{
    const struct format_reader *reader = profile_reader(p);
    size_t count = format_reader_chunk_count(reader);
    uint32_t damaged = profile_summary(p)->damaged_chunks;
    progress_begin("checking the samples", count);
    for (size_t i = 0; i < count; i++) {
        if (format_reader_chunk(reader, i)->kind == FORMAT_CHUNK_SAMPLES)
            damaged += !format_reader_chunk_is_sound(reader, i);
        progress_add(1);
    }
    return damaged;
}

/* --- decoded ahead --- */

struct block {
    size_t count;
    struct record_sample sample[BLOCK_SAMPLES];
};

/* The decoder fills blocks in turn and the caller empties them in turn. A block is the decoder's
 * while filled - emptied < BLOCKS, and the caller's from when it is counted as filled until it is
 * counted as emptied. */
struct ahead {
    const struct profile *profile;
    struct block *block;   /* owned: BLOCKS of them */
    struct block *filling; /* the decoder's */
    uint32_t damaged;      /* the decoder's until it has ended, as is `result` */
    int result;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    size_t filled, emptied;
    bool ended; /* the decoder is through */
    bool left;  /* the caller wants no more */
};

/* Waits for a block to fill. False: nobody wants it. */
static bool take_empty(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    while (!a->left && a->filled - a->emptied == BLOCKS)
        pthread_cond_wait(&a->changed, &a->lock);
    bool wanted = !a->left;
    a->filling = &a->block[a->filled % BLOCKS];
    pthread_mutex_unlock(&a->lock);
    a->filling->count = 0;
    return wanted;
}

static void give_filled(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->filled++;
    a->filling = NULL;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

/* E_INVALID stops the decoding; the caller has its own reason then. */
static int fill(void *ctx, const struct record_sample *samples, size_t n)
{
    struct ahead *a = ctx;
    while (n) {
        if (!a->filling && !take_empty(a))
            return E_INVALID;
        size_t part = min_u64(n, BLOCK_SAMPLES - a->filling->count);
        memcpy(a->filling->sample + a->filling->count, samples, part * sizeof *samples);
        a->filling->count += part;
        samples += part;
        n -= part;
        if (a->filling->count == BLOCK_SAMPLES)
            give_filled(a);
    }
    return 0;
}

static void *decode(void *arg)
{
    struct ahead *a = arg;
    a->result = profile_each_sample_part(a->profile, 0, 1, fill, a, &a->damaged);
    if (a->filling && a->filling->count)
        give_filled(a);
    pthread_mutex_lock(&a->lock);
    a->ended = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* The next block, when the one before (if any) is done with; NULL at the end. */
static const struct block *next_block(struct ahead *a, bool had_one)
{
    pthread_mutex_lock(&a->lock);
    a->emptied += had_one;
    if (had_one)
        pthread_cond_broadcast(&a->changed);
    while (!a->ended && a->filled == a->emptied)
        pthread_cond_wait(&a->changed, &a->lock);
    const struct block *b = a->filled > a->emptied ? &a->block[a->emptied % BLOCKS] : NULL;
    pthread_mutex_unlock(&a->lock);
    return b;
}

static void leave(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->left = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static bool is_long(const struct profile *p)
{
    return profile_sample_records(p) >= AHEAD_RECORDS && sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

int profile_each_sample(const struct profile *p,
                        int (*fn)(void *ctx, const struct record_sample *samples, size_t n),
                        void *ctx, uint32_t *ret_damaged)
{
    struct ahead a = {
        .profile = p, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t decoder;
    progress_begin("reading samples", profile_sample_records(p));
    a.block = is_long(p) ? malloc(BLOCKS * sizeof *a.block) : NULL;
    if (!a.block || pthread_create(&decoder, NULL, decode, &a) != 0) {
        free(a.block);
        return profile_each_sample_part(p, 0, 1, fn, ctx, ret_damaged);
    }
    int r = 0;
    const struct block *b = next_block(&a, false);
    for (; r == 0 && b; b = r == 0 ? next_block(&a, true) : NULL)
        r = fn(ctx, b->sample, b->count);
    leave(&a);
    pthread_join(decoder, NULL);
    free(a.block);
    if (r == 0)
        r = a.result;
    if (ret_damaged)
        *ret_damaged = a.damaged;
    return r;
}
