/* The write half: interns definitions, encodes records into one pending payload per chunk kind, and
 * submits the payloads in an order in which every definition precedes its use. */
#include "format/writer.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/io.h"
#include "base/vec.h"
#include "format/blocks.h"
#include "format/codec.h"
#include "format/compress.h"
#include "format/memevents.h"
#include "format/memory.h"
#include "format/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* A SAMPLES chunk is due at this size: large enough to compress well, small enough to lose little. */
enum { FLUSH_BYTES = 1 << 20 };

/* The pending kinds, in the order in which they are submitted. */
enum pending {
    PENDING_META,
    PENDING_STRINGS,
    PENDING_CODES,
    PENDING_STACKS,
    PENDING_PROCESSES,
    PENDING_THREADS,
    PENDING_SOURCES,
    PENDING_SAMPLES,
    PENDING_CALLS,
    PENDING_LINES,
    PENDING_MARKS,
    PENDING_COUNTERS,
    PENDING_STATS,
    PENDING_COUNT
};

static const enum format_chunk_kind pending_kind[PENDING_COUNT] = {
    [PENDING_META] = FORMAT_CHUNK_META,           [PENDING_STRINGS] = FORMAT_CHUNK_STRINGS,
    [PENDING_CODES] = FORMAT_CHUNK_CODES,         [PENDING_STACKS] = FORMAT_CHUNK_STACKS,
    [PENDING_PROCESSES] = FORMAT_CHUNK_PROCESSES, [PENDING_THREADS] = FORMAT_CHUNK_THREADS,
    [PENDING_SOURCES] = FORMAT_CHUNK_SOURCES,     [PENDING_SAMPLES] = FORMAT_CHUNK_SAMPLES,
    [PENDING_CALLS] = FORMAT_CHUNK_CALLS,         [PENDING_LINES] = FORMAT_CHUNK_LINES,
    [PENDING_MARKS] = FORMAT_CHUNK_MARKS,         [PENDING_COUNTERS] = FORMAT_CHUNK_COUNTERS,
    [PENDING_STATS] = FORMAT_CHUNK_STATS,
};

struct text {
    char *data; /* owned */
    uint32_t len;
};

struct format_writer {
    char *path;
    bool is_new;       /* it was not there before */
    struct sink *sink; /* NULL once finished */
    int error;         /* sticky */
    struct buf pending[PENDING_COUNT];
    uint32_t records[PENDING_COUNT];
    struct codec_sample_state sample_state;
    struct codec_calls_state calls_state;
    struct codec_line_state line_state;
    uint64_t cpu_ns; /* of the writing thread, once it has ended */

    VEC(struct text) strings; /* index = id; 0 is "" */
    struct idxmap string_map;
    VEC(struct record_stack) stacks; /* index = id; 0 is the root */
    struct idxmap stack_map;
    uint32_t code_count; /* ids given out; 0 is predefined */
    struct blocks blocks;
    uint32_t sequence; /* of the next chunk */
};

static int write_header(int fd, const struct format_writer_options *options)
{
    struct format_file_header h = {
        .magic = FORMAT_MAGIC,
        .version_major = FORMAT_VERSION_MAJOR,
        .version_minor = FORMAT_VERSION_MINOR,
        .header_bytes = sizeof h,
        .created_ns = clock_real_ns(),
        .clock_origin_ns = options->clock_origin_ns,
    };
    memcpy(h.run_id, options->run_id, sizeof h.run_id);
    h.checksum = checksum_file_header(&h);
    return io_write_all(fd, &h, sizeof h);
}

int format_writer_open(const char *path, const struct format_writer_options *options,
                       struct format_writer **ret)
{
    struct format_writer *w = calloc(1, sizeof *w);
    if (!w)
        return E_NOMEM;
    for (int i = 0; i < PENDING_COUNT; i++)
        buf_init(&w->pending[i], FORMAT_MAX_CHUNK_BYTES);
    w->code_count = 1;
    w->path = strdup(path);
    bool ready = vec_push(&w->strings) && vec_push(&w->stacks) && w->path;
    int fd = ready ? io_create(path, options->force, &w->is_new) : E_NOMEM;
    int r = fd < 0 ? fd : write_header(fd, options);
    if (r == 0)
        r = sink_start(fd, &w->sink);
    if (r < 0) {
        if (fd >= 0)
            close(fd);
        format_writer_abandon(w);
        return r;
    }
    *ret = w;
    return 0;
}

static void fail(struct format_writer *w, int error)
{
    if (!w->error)
        w->error = error;
}

/* The payload to append one more record to; definition chunks begin with their first id. */
static struct buf *next_record(struct format_writer *w, enum pending kind, uint32_t id)
{
    struct buf *b = &w->pending[kind];
    bool has_first_id = kind == PENDING_STRINGS || kind == PENDING_CODES || kind == PENDING_STACKS;
    if (w->records[kind] == 0 && has_first_id)
        buf_put_varint(b, id);
    w->records[kind]++;
    return b;
}

void format_writer_meta(struct format_writer *w, const char *key, const char *value)
{
    struct buf *b = next_record(w, PENDING_META, 0);
    codec_put_text(b, key, strlen(key));
    codec_put_text(b, value, min_u64(strlen(value), FORMAT_MAX_STRING_BYTES));
}

uint32_t format_writer_string(struct format_writer *w, const char *text, size_t len)
{
    if (len == 0)
        return RECORD_STRING_EMPTY;
    len = min_u64(len, FORMAT_MAX_STRING_BYTES);
    uint32_t hash = hash_bytes(text, len), at;
    IDXMAP_FIND(&w->string_map, hash, i,
                w->strings.data[i].len == len && !memcmp(w->strings.data[i].data, text, len), at);
    if (at != IDXMAP_NONE)
        return at;
    uint32_t id = (uint32_t)w->strings.len;
    char *copy = id < FORMAT_MAX_IDS ? malloc(len) : NULL;
    struct text *slot = copy ? vec_push(&w->strings) : NULL;
    if (!slot || idxmap_insert(&w->string_map, hash, id) < 0) {
        if (!slot)
            free(copy);
        fail(w, E_NOMEM);
        return RECORD_STRING_EMPTY;
    }
    memcpy(copy, text, len);
    *slot = (struct text){copy, (uint32_t)len};
    codec_put_text(next_record(w, PENDING_STRINGS, id), text, len);
    return id;
}

uint32_t format_writer_code(struct format_writer *w, const struct record_code *code)
{
    if (w->code_count >= FORMAT_MAX_IDS) {
        fail(w, E_LIMIT);
        return RECORD_CODE_UNKNOWN;
    }
    uint32_t id = w->code_count++;
    codec_put_code(next_record(w, PENDING_CODES, id), code);
    return id;
}

uint32_t format_writer_stack(struct format_writer *w, const struct record_stack *node)
{
    uint64_t key = ((uint64_t)node->parent << 32 | node->code) ^ ((uint64_t)node->line << 20);
    uint32_t hash = hash_u64(key * 0x9e3779b97f4a7c15ull), at;
    IDXMAP_FIND(&w->stack_map, hash, i,
                w->stacks.data[i].parent == node->parent && w->stacks.data[i].code == node->code &&
                    w->stacks.data[i].line == node->line,
                at);
    if (likely(at != IDXMAP_NONE))
        return at;
    uint32_t id = (uint32_t)w->stacks.len;
    struct record_stack *slot = id < FORMAT_MAX_IDS ? vec_push(&w->stacks) : NULL;
    if (!slot || idxmap_insert(&w->stack_map, hash, id) < 0) {
        fail(w, E_NOMEM);
        return RECORD_STACK_ROOT;
    }
    *slot = *node;
    codec_put_stack(next_record(w, PENDING_STACKS, id), id, node);
    return id;
}

void format_writer_process(struct format_writer *w, const struct record_process *process)
{
    codec_put_process(next_record(w, PENDING_PROCESSES, 0), process);
}

void format_writer_thread(struct format_writer *w, const struct record_thread *thread)
{
    codec_put_thread(next_record(w, PENDING_THREADS, 0), thread);
}

void format_writer_sample(struct format_writer *w, const struct record_sample *sample)
{
    codec_put_sample(next_record(w, PENDING_SAMPLES, 0), &w->sample_state, sample);
}

void format_writer_calls(struct format_writer *w, const struct record_calls *calls)
{
    codec_put_calls(next_record(w, PENDING_CALLS, 0), &w->calls_state, calls);
}

void format_writer_line(struct format_writer *w, const struct record_line *line)
{
    codec_put_line(next_record(w, PENDING_LINES, 0), &w->line_state, line);
}

void format_writer_mark(struct format_writer *w, const struct record_mark *mark)
{
    codec_put_mark(next_record(w, PENDING_MARKS, 0), mark);
}

void format_writer_counter(struct format_writer *w, const struct record_counter *counter)
{
    codec_put_counter(next_record(w, PENDING_COUNTERS, 0), counter);
}

static void add_block(struct format_writer *w, enum format_chunk_kind kind, struct buf *payload,
                      uint32_t records, const struct record_place *place)
{
    int r = buf_error(payload);
    if (r == 0 && !blocks_add(&w->blocks, kind, payload, records, place))
        r = E_NOMEM;
    if (r < 0)
        fail(w, r);
    buf_release(payload);
}

void format_writer_events(struct format_writer *w, uint32_t thread,
                          const struct events_block *block)
{
    struct buf payload;
    buf_init(&payload, FORMAT_MAX_CHUNK_BYTES);
    events_put_block(&payload, thread, block);
    struct record_place place = {
        .thread = thread, .start_ns = block->start_ns, .end_ns = block->end_ns};
    add_block(w, FORMAT_CHUNK_EVENTS, &payload, block->count, &place);
    if (!block->note_count)
        return;
    buf_init(&payload, FORMAT_MAX_CHUNK_BYTES);
    events_put_notes(&payload, thread, block);
    /* they stand behind their block, and need no place */
    add_block(w, FORMAT_CHUNK_NOTES, &payload, block->note_count, NULL);
}

void format_writer_summary(struct format_writer *w, const struct record_summary *head,
                           const struct lod *boxes)
{
    struct buf payload;
    buf_init(&payload, FORMAT_MAX_CHUNK_BYTES);
    lod_put_summary(&payload, head, boxes);
    struct record_place place = {.thread = head->thread,
                                 .level = head->level,
                                 .shift = head->shift,
                                 .start_ns = head->start_ns,
                                 .end_ns = head->end_ns};
    add_block(w, FORMAT_CHUNK_INDEX, &payload, (uint32_t)boxes->boxes, &place);
}

void format_writer_memory(struct format_writer *w, const struct record_memory *memory,
                          const struct record_sizes *sizes, size_t size_count,
                          const struct record_site *sites, size_t site_count)
{
    struct buf payload;
    buf_init(&payload, FORMAT_MAX_CHUNK_BYTES);
    memory_put(&payload, memory, sizes, size_count, sites, site_count);
    add_block(w, FORMAT_CHUNK_ALLOCATIONS, &payload, (uint32_t)(size_count + site_count), NULL);
}

void format_writer_memory_events(struct format_writer *w, uint32_t process,
                                 const struct record_site *sites, uint32_t site_count,
                                 const struct memevents_block *block)
{
    struct buf payload;
    buf_init(&payload, FORMAT_MAX_CHUNK_BYTES);
    memevents_put_block(&payload, process, sites, site_count, block);
    add_block(w, FORMAT_CHUNK_MEMORY_EVENTS, &payload, block->count, NULL);
}

void format_writer_source(struct format_writer *w, const struct record_source *source)
{
    assert(source->text_len <= FORMAT_MAX_STRING_BYTES);
    codec_put_source(next_record(w, PENDING_SOURCES, 0), source);
}

void format_writer_stats(struct format_writer *w, const struct record_stats *stats)
{
    struct buf *b = &w->pending[PENDING_STATS];
    buf_clear(b); /* only the newest counts */
    codec_put_stats(b, stats);
    w->records[PENDING_STATS] = RECORD_STAT_COUNT;
}

bool format_writer_wants_flush(const struct format_writer *w)
{
    for (int i = 0; i < PENDING_COUNT; i++)
        if (w->pending[i].len >= FLUSH_BYTES)
            return true;
    return w->blocks.waiting_bytes >= FLUSH_BYTES;
}

size_t format_writer_backlog(const struct format_writer *w)
{
    return w->blocks.waiting_bytes + (w->sink ? sink_queued(w->sink) : 0);
}

static int flush(struct format_writer *w, bool last)
{
    for (int i = 0; i < PENDING_COUNT && w->sink; i++) {
        if (i == PENDING_STATS) { /* behind all definitions */
            int rc = blocks_submit(&w->blocks, w->sink, &w->sequence, last);
            if (rc < 0)
                fail(w, rc);
        }
        if (w->records[i] == 0)
            continue;
        w->sequence++;
        int r = sink_submit(w->sink, pending_kind[i], &w->pending[i], w->records[i]);
        if (r < 0)
            fail(w, r);
        buf_clear(&w->pending[i]); /* empty already, unless it failed */
        w->records[i] = 0;
    }
    w->sample_state = (struct codec_sample_state){0};
    w->calls_state = (struct codec_calls_state){0};
    w->line_state = (struct codec_line_state){0};
    return w->error;
}

int format_writer_flush(struct format_writer *w)
{
    return flush(w, false);
}

int format_writer_finish(struct format_writer *w)
{
    flush(w, true);
    if (w->sink) {
        struct buf nothing;
        buf_init(&nothing, 0);
        int r = sink_submit(w->sink, FORMAT_CHUNK_END, &nothing, 0);
        int stopped = sink_stop(w->sink, &w->cpu_ns);
        w->sink = NULL;
        if (r < 0 || stopped < 0)
            fail(w, r < 0 ? r : stopped);
    }
    return w->error;
}

uint64_t format_writer_cpu_ns(const struct format_writer *w)
{
    return w->sink ? sink_cpu_ns(w->sink) : w->cpu_ns;
}

void format_writer_free(struct format_writer *w)
{
    if (!w)
        return;
    if (w->sink)
        sink_stop(w->sink, NULL);
    for (int i = 0; i < PENDING_COUNT; i++)
        buf_release(&w->pending[i]);
    for (size_t i = 0; i < w->strings.len; i++)
        free(w->strings.data[i].data);
    blocks_release(&w->blocks);
    vec_release(&w->strings);
    vec_release(&w->stacks);
    idxmap_release(&w->string_map);
    idxmap_release(&w->stack_map);
    free(w->path);
    free(w);
}

void format_writer_abandon(struct format_writer *w)
{
    if (w && w->is_new)
        unlink(w->path);
    format_writer_free(w);
}
