/* A block holds whole records and its length; the places of a thread's blocks in the file are kept
 * in memory, eight bytes for every BLOCK_RECORDS records. */
#include "export/spool.h"

#include "analysis/stream.h"
#include "base/err.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>

enum { BLOCK_RECORDS = 1024 };

struct record {
    uint64_t weight;
    uint32_t samples;
    uint32_t stack;
};

struct lane {
    struct record *block; /* owned; BLOCK_RECORDS places; NULL until the first record */
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
    VEC(uint32_t) touched;
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
    struct record *last = lane->used ? &lane->block[lane->used - 1] : NULL;
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
    lane->block[lane->used++] = (struct record){weight.weight, (uint32_t)weight.samples, run->stack};
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
    vec_release(&s->touched);
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

static int push_block(const struct record *block, size_t n,
                      int (*fn)(void *, uint32_t, struct analysis_weight), void *ctx)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = fn(ctx, block[i].stack, (struct analysis_weight){block[i].weight, block[i].samples});
    return r;
}

int export_spool_each(struct export_spool *s, uint32_t thread,
                      int (*fn)(void *ctx, uint32_t stack, struct analysis_weight weight),
                      void *ctx)
{
    const struct lane *lane = &s->lanes[thread];
    _cleanup_free_ struct record *block = NULL;
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

static int add_up(void *ctx, uint32_t stack, struct analysis_weight weight)
{
    struct export_spool *s = ctx;
    if (!s->sums[stack].samples && !s->sums[stack].weight) {
        uint32_t *slot = vec_push(&s->touched);
        if (!slot)
            return E_NOMEM;
        *slot = stack;
    }
    analysis_weight_add(&s->sums[stack], weight);
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int export_spool_each_stack(struct export_spool *s, uint32_t thread,
                            int (*fn)(void *ctx, uint32_t stack, struct analysis_weight weight),
                            void *ctx)
{
    if (!s->sums && !(s->sums = calloc(s->node_count + 1, sizeof *s->sums)))
        return E_NOMEM;
    s->touched.len = 0;
    int r = export_spool_each(s, thread, add_up, s);
    if (s->touched.len)
        qsort(s->touched.data, s->touched.len, sizeof *s->touched.data, compare_ids);
    for (size_t i = 0; i < s->touched.len; i++) {
        struct analysis_weight *sum = &s->sums[s->touched.data[i]];
        if (r == 0)
            r = fn(ctx, s->touched.data[i], *sum);
        *sum = (struct analysis_weight){0};
    }
    return r;
}
