/* A block holds whole records and its length; the places of a thread's blocks in the file are kept
 * in memory, eight bytes for every BLOCK_RECORDS records. */
#include "export/spool.h"

#include "analysis/stream.h"
#include "base/err.h"
#include "base/large.h"
#include "base/progress.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>

enum {
    BLOCK_RECORDS = 1024,
    WORD_BITS = 64,
    PREFETCH_AHEAD = 12, /* sums are met in no order: each is asked for before its turn */
};

/* As it is kept. */
struct packed {
    uint64_t weight;
    uint32_t samples;
    uint32_t stack;
};

struct lane {
    struct packed *block; /* owned; BLOCK_RECORDS places; NULL until the first record */
    size_t used;
    uint64_t count; /* in all */
    struct analysis_weight total;
    VEC(uint64_t) written; /* offsets of full blocks */
};

struct export_spool {
    struct lane *lanes; /* by thread */
    size_t lane_count;
    size_t node_count;
    FILE *file; /* NULL until a block is full */
    uint64_t file_bytes;
    struct analysis_weight *sums; /* for each_stack: by node, zero between calls */
    uint64_t *seen;               /* a bit for each node that has a sum, zero between calls */
    size_t first_word, end_word;  /* of `seen`: bits are between these only */
};

static int write_block(struct export_spool *s, struct lane *lane)
{
    if (!s->file && !(s->file = tmpfile()))
        return err_from_errno(errno);
    uint64_t *at = vec_push(&lane->written);
    if (!at)
        return E_NOMEM;
    *at = s->file_bytes;
    if (fwrite(lane->block, sizeof *lane->block, lane->used, s->file) != lane->used)
        return errno ? err_from_errno(errno) : E_IO;
    s->file_bytes += lane->used * sizeof *lane->block;
    lane->used = 0;
    return 0;
}

static int on_run(void *ctx, const struct analysis_run *run)
{
    struct export_spool *s = ctx;
    struct analysis_weight weight = run->weight;
    struct lane *lane = &s->lanes[run->thread];
    if (!weight.samples && !weight.weight)
        return 0;
    analysis_weight_add(&lane->total, weight);
    struct packed *last = lane->used ? &lane->block[lane->used - 1] : NULL;
    if (last && last->stack == run->stack && last->samples <= UINT32_MAX - weight.samples) {
        last->weight += weight.weight;
        last->samples += (uint32_t)weight.samples;
        return 0;
    }
    if (!lane->block && !(lane->block = malloc(BLOCK_RECORDS * sizeof *lane->block)))
        return E_NOMEM;
    int r = lane->used == BLOCK_RECORDS ? write_block(s, lane) : 0;
    if (r < 0)
        return r;
    lane->block[lane->used++] =
        (struct packed){weight.weight, (uint32_t)weight.samples, run->stack};
    lane->count++;
    return 0;
}

int export_spool_new(const struct profile *profile, const struct analysis_query *query,
                     struct export_spool **ret)
{
    const struct profile_tables *t = profile_tables(profile);
    struct export_spool *s = calloc(1, sizeof *s);
    if (!s)
        return E_NOMEM;
    s->lane_count = t->thread_count;
    s->node_count = t->node_count;
    s->lanes = calloc(t->thread_count + 1, sizeof *s->lanes);
    int r = s->lanes ? analysis_stream_each(profile, query, on_run, s) : E_NOMEM;
    if (r == 0 && s->file && fflush(s->file) != 0)
        r = err_from_errno(errno);
    if (r < 0) {
        export_spool_free(s);
        return r;
    }
    uint64_t records = 0;
    for (size_t i = 0; i < s->lane_count; i++)
        records += s->lanes[i].count;
    progress_begin("writing samples", records);
    *ret = s;
    return 0;
}

void export_spool_free(struct export_spool *s)
{
    if (!s)
        return;
    for (size_t i = 0; s->lanes && i < s->lane_count; i++) {
        free(s->lanes[i].block);
        vec_release(&s->lanes[i].written);
    }
    free(s->lanes);
    free(s->sums);
    free(s->seen);
    if (s->file)
        fclose(s->file);
    free(s);
}

uint64_t export_spool_count(const struct export_spool *s, uint32_t thread)
{
    return s->lanes[thread].count;
}

struct analysis_weight export_spool_total(const struct export_spool *s, uint32_t thread)
{
    return s->lanes[thread].total;
}

static int push_block(const struct packed *block, size_t n, export_spool_fn *fn, void *ctx)
{
    struct export_record records[BLOCK_RECORDS];
    for (size_t i = 0; i < n; i++)
        records[i] = (struct export_record){block[i].stack, {block[i].weight, block[i].samples}};
    return n ? fn(ctx, records, n) : 0;
}

int export_spool_each(struct export_spool *s, uint32_t thread, export_spool_fn *fn, void *ctx)
{
    const struct lane *lane = &s->lanes[thread];
    _cleanup_free_ struct packed *block = NULL;
    if (lane->written.len && !(block = malloc(BLOCK_RECORDS * sizeof *block)))
        return E_NOMEM;
    int r = 0;
    for (size_t i = 0; r == 0 && i < lane->written.len; i++) {
        size_t bytes = BLOCK_RECORDS * sizeof *block;
        ssize_t got = pread(fileno(s->file), block, bytes, (off_t)lane->written.data[i]);
        if (got != (ssize_t)bytes)
            return got < 0 ? err_from_errno(errno) : E_IO;
        r = push_block(block, BLOCK_RECORDS, fn, ctx);
    }
    return r ? r : push_block(lane->block, lane->used, fn, ctx);
}

static int add_up(void *ctx, const struct export_record *records, size_t n)
{
    struct export_spool *s = ctx;
    progress_add(n);
    for (size_t i = 0; i < n; i++) {
        if (i + PREFETCH_AHEAD < n)
            __builtin_prefetch(&s->sums[records[i + PREFETCH_AHEAD].stack], 1);
        uint32_t stack = records[i].stack;
        size_t word = stack / WORD_BITS;
        analysis_weight_add(&s->sums[stack], records[i].weight);
        s->seen[word] |= (uint64_t)1 << stack % WORD_BITS;
        s->first_word = min_u64(s->first_word, word);
        s->end_word = max_u64(s->end_word, word + 1);
    }
    return 0;
}

/* The sums of the nodes of one word of `seen`, which become zero. */
static size_t take_word(struct export_spool *s, size_t word, struct export_record *to)
{
    size_t n = 0;
    for (uint64_t bits = s->seen[word]; bits; bits &= bits - 1) {
        size_t stack = word * WORD_BITS + (unsigned)__builtin_ctzll(bits);
        to[n++] = (struct export_record){(uint32_t)stack, s->sums[stack]};
        s->sums[stack] = (struct analysis_weight){0};
    }
    s->seen[word] = 0;
    return n;
}

int export_spool_each_stack(struct export_spool *s, uint32_t thread, export_spool_fn *fn, void *ctx)
{
    size_t words = s->node_count / WORD_BITS + 1;
    if (!s->sums)
        s->sums = large_calloc(s->node_count + 1, sizeof *s->sums);
    if (!s->seen)
        s->seen = calloc(words, sizeof *s->seen);
    if (!s->sums || !s->seen)
        return E_NOMEM;
    s->first_word = words;
    s->end_word = 0;
    int r = export_spool_each(s, thread, add_up, s);
    struct export_record records[BLOCK_RECORDS];
    size_t n = 0;
    for (size_t word = s->first_word; word < s->end_word; word++) {
        n += take_word(s, word, records + n);
        if (r == 0 && n > BLOCK_RECORDS - WORD_BITS)
            r = fn(ctx, records, n);
        n = n > BLOCK_RECORDS - WORD_BITS ? 0 : n;
    }
    return r || !n ? r : fn(ctx, records, n);
}
