/* Checks a recording chunk by chunk; repairs by copying what is good. */
#include "format/verify.h"

#include "base/err.h"
#include "base/io.h"
#include "base/progress.h"
#include "format/codec.h"
#include "format/compress.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* How many ids of each kind are defined, and what was referred to beyond that. */
struct census {
    uint32_t strings, codes, stacks; /* one past the largest id defined; 0 counts as defined */
    uint64_t dangling;
    uint64_t records, samples;
    uint64_t lost_chunks, lost_end; /* by an earlier repair */
    bool is_directory;              /* the chunk names others by their numbers */
};

static void define(uint32_t *limit, uint32_t id)
{
    if (id >= *limit)
        *limit = id + 1;
}

static void refer(struct census *c, uint32_t limit, uint32_t id)
{
    if (id != 0 && id >= limit)
        c->dangling++;
}

static int census_string(void *ctx, uint32_t id, const char *text, size_t len)
{
    (void)text, (void)len;
    struct census *c = ctx;
    define(&c->strings, id);
    c->records++;
    return 0;
}

static int census_code(void *ctx, uint32_t id, const struct record_code *code)
{
    struct census *c = ctx;
    define(&c->codes, id);
    refer(c, c->strings, code->name);
    refer(c, c->strings, code->qualname);
    refer(c, c->strings, code->file);
    c->records++;
    return 0;
}

static int census_stack(void *ctx, uint32_t id, const struct record_stack *node)
{
    struct census *c = ctx;
    refer(c, c->codes, node->code);
    refer(c, c->stacks, node->parent);
    define(&c->stacks, id);
    c->records++;
    return 0;
}

static int census_samples(void *ctx, const struct record_sample *samples, size_t n)
{
    struct census *c = ctx;
    for (size_t i = 0; i < n; i++) {
        refer(c, c->stacks, samples[i].stack);
        c->samples += samples[i].count;
    }
    c->records += n;
    return 0;
}

static int census_calls(void *ctx, const struct record_calls *calls)
{
    struct census *c = ctx;
    refer(c, c->stacks, calls->stack);
    c->records++;
    return 0;
}

static int census_line(void *ctx, const struct record_line *line)
{
    struct census *c = ctx;
    refer(c, c->codes, line->code);
    refer(c, c->codes, line->callee);
    c->records++;
    return 0;
}

static int census_memory(void *ctx, const struct record_memory *memory)
{
    (void)ctx, (void)memory;
    return 0;
}

static int census_sizes(void *ctx, const struct record_memory *memory,
                        const struct record_sizes *sizes)
{
    (void)memory, (void)sizes;
    ((struct census *)ctx)->records++;
    return 0;
}

static int census_site(void *ctx, const struct record_memory *memory,
                       const struct record_site *site)
{
    (void)memory;
    struct census *c = ctx;
    refer(c, c->stacks, site->stack);
    c->records++;
    return 0;
}

static int census_memory_events(void *ctx, const struct record_memory_events *block,
                                const struct record_memory_event *events, size_t n)
{
    struct census *c = ctx;
    for (size_t i = 0; i < n; i++)
        if (events[i].kind == RECORD_MEMORY_ALLOCATE)
            refer(c, c->stacks, block->sites[events[i].site].stack);
    c->records += n;
    return 0;
}

static int census_mark(void *ctx, const struct record_mark *mark)
{
    struct census *c = ctx;
    refer(c, c->strings, mark->name);
    c->records++;
    return 0;
}

static int census_counter(void *ctx, const struct record_counter *counter)
{
    struct census *c = ctx;
    refer(c, c->strings, counter->name);
    c->records++;
    return 0;
}

static int census_events(void *ctx, const struct record_events *block,
                         const struct record_event *events, size_t n)
{
    struct census *c = ctx;
    for (size_t i = 0; i < block->open_count && !n; i++)
        refer(c, c->codes, block->open[i].code);
    for (size_t i = 0; i < n; i++)
        refer(c, c->codes, events[i].code);
    c->records += n;
    return 0;
}

static int census_summary(void *ctx, const struct record_summary *summary)
{
    (void)ctx, (void)summary;
    return 0;
}

static int census_box(void *ctx, const struct record_summary *summary, uint32_t depth,
                      const struct record_box *box)
{
    (void)summary, (void)depth;
    struct census *c = ctx;
    refer(c, c->codes, box->code);
    c->records++;
    return 0;
}

static int census_directory(void *ctx, uint32_t sequence, uint32_t previous)
{
    (void)sequence, (void)previous;
    ((struct census *)ctx)->is_directory = true;
    return 0;
}

static int census_meta(void *ctx, const char *key, size_t key_len, const char *value,
                       size_t value_len)
{
    (void)key, (void)key_len, (void)value, (void)value_len;
    ((struct census *)ctx)->records++;
    return 0;
}

static int census_process(void *ctx, const struct record_process *p)
{
    struct census *c = ctx;
    refer(c, c->strings, p->command);
    refer(c, c->strings, p->python_version);
    c->records++;
    return 0;
}

static int census_thread(void *ctx, const struct record_thread *t)
{
    struct census *c = ctx;
    refer(c, c->strings, t->name);
    c->records++;
    return 0;
}

static int census_source(void *ctx, const struct record_source *s)
{
    struct census *c = ctx;
    refer(c, c->strings, s->path);
    c->records++;
    return 0;
}

static int census_stat(void *ctx, enum record_stat stat, uint64_t value)
{
    struct census *c = ctx;
    if (stat == RECORD_STAT_CHUNKS_LOST)
        c->lost_chunks = value;
    if (stat == RECORD_STAT_END_LOST)
        c->lost_end = value;
    c->records++;
    return 0;
}

static int census_note(void *ctx, const struct record_notes *block, const struct record_note *note)
{
    (void)block;
    ((struct census *)ctx)->records += note != NULL;
    return 0;
}

static const struct format_visitor census_visitor = {
    .meta = census_meta,
    .string = census_string,
    .code = census_code,
    .stack = census_stack,
    .process = census_process,
    .thread = census_thread,
    .samples = census_samples,
    .calls = census_calls,
    .line = census_line,
    .memory = census_memory,
    .sizes = census_sizes,
    .site = census_site,
    .memory_events = census_memory_events,
    .mark = census_mark,
    .counter = census_counter,
    .events = census_events,
    .note = census_note,
    .summary = census_summary,
    .box = census_box,
    .directory = census_directory,
    .stat = census_stat,
    .source = census_source,
};

static bool checksum_holds(const struct format_reader *r, size_t index)
{
    static const struct format_visitor nobody = {0};
    return format_reader_visit_chunk(r, index, &nobody, NULL) == 0;
}

static int examine(const struct format_reader *r, struct format_verdict *ret)
{
    struct census census = {0};
    struct format_verdict v = {.summary = *format_reader_summary(r)};
    progress_begin("checking the recording", format_reader_chunk_count(r));
    for (size_t i = 0; i < format_reader_chunk_count(r); i++) {
        int rc = format_reader_visit_chunk(r, i, &census_visitor, &census);
        v.checked_chunks++;
        progress_add(1);
        if (rc == E_NOMEM)
            return rc;
        if (rc == 0)
            continue;
        if (checksum_holds(r, i))
            v.bad_contents++;
        else
            v.bad_checksums++;
    }
    v.dangling_refs = census.dangling;
    v.records = census.records;
    v.samples = census.samples;
    v.lost_chunks = census.lost_chunks;
    v.lost_end = census.lost_end;
    *ret = v;
    return 0;
}

int format_verify(const char *path, struct format_verdict *ret)
{
    struct format_reader *r = NULL;
    int rc = format_reader_open(path, &r);
    if (rc == 0)
        rc = examine(r, ret);
    format_reader_free(r);
    return rc;
}

bool format_verdict_is_whole(const struct format_verdict *v)
{
    return v->summary.finished && !v->summary.torn && !v->summary.damaged_chunks &&
           !v->summary.missing_chunks && !v->bad_checksums && !v->bad_contents &&
           (!v->dangling_refs || v->lost_chunks);
}

/* Appends one chunk under a new sequence number, so that the copy has no gaps. */
static int append_chunk(int fd, struct format_chunk_header h, const void *payload,
                        uint32_t sequence)
{
    h.sequence = sequence;
    h.checksum = checksum_chunk(&h, payload);
    int rc = io_write_all(fd, &h, sizeof h);
    return rc < 0 ? rc : io_write_all(fd, payload, h.stored_bytes);
}

/* A copy has no gaps and an end, so what it lacks must be said in it, for all who read it. `left_out`: chunks that were not copied. */
static int append_losses(int fd, const struct format_verdict *v, uint64_t left_out,
                         uint32_t *sequence)
{
    /* a broken frame is a gap in the numbers, too */
    uint64_t unframed = max_u64(v->summary.damaged_chunks, v->summary.missing_chunks);
    uint64_t chunks = v->lost_chunks + left_out + unframed;
    bool end = v->lost_end || !v->summary.finished;
    if (!chunks && !end)
        return 0;
    struct buf payload;
    buf_init(&payload, FORMAT_MAX_CHUNK_BYTES);
    codec_put_stat(&payload, RECORD_STAT_CHUNKS_LOST, chunks);
    codec_put_stat(&payload, RECORD_STAT_END_LOST, end);
    struct format_chunk_header h = {.magic = FORMAT_CHUNK_MAGIC,
                                    .kind = FORMAT_CHUNK_STATS,
                                    .stored_bytes = (uint32_t)payload.len,
                                    .raw_bytes = (uint32_t)payload.len,
                                    .records = 2};
    int rc = buf_error(&payload);
    if (rc == 0)
        rc = append_chunk(fd, h, payload.data, (*sequence)++);
    buf_release(&payload);
    return rc;
}

static int copy_good_chunks(const struct format_reader *r, const struct format_verdict *v, int in,
                            int out)
{
    struct census census = {0};
    struct format_file_header file = format_reader_summary(r)->header;
    int rc = io_write_all(out, &file, sizeof file);
    uint32_t sequence = 0;
    uint64_t left_out = 0;
    progress_begin("copying what is good", format_reader_chunk_count(r));
    for (size_t i = 0; rc == 0 && i < format_reader_chunk_count(r); i++) {
        const struct format_chunk *c = format_reader_chunk(r, i);
        census.is_directory = false;
        progress_add(1);
        if (c->kind == FORMAT_CHUNK_END)
            continue; /* the copy has its own */
        int visit = format_reader_visit_chunk(r, i, &census_visitor, &census);
        if (visit == E_NOMEM)
            return visit;
        left_out += visit < 0;
        if (visit < 0 || census.is_directory)
            continue; /* chunks get new numbers: a directory of the old ones would mislead */
        struct format_chunk_header h;
        _cleanup_free_ uint8_t *payload = malloc(c->stored_bytes ? c->stored_bytes : 1);
        if (!payload)
            return E_NOMEM;
        if (pread(in, &h, sizeof h, (off_t)c->offset) != (ssize_t)sizeof h ||
            pread(in, payload, c->stored_bytes, (off_t)(c->offset + sizeof h)) !=
                (ssize_t)c->stored_bytes)
            return E_IO;
        rc = append_chunk(out, h, payload, sequence++);
    }
    if (rc == 0)
        rc = append_losses(out, v, left_out, &sequence);
    struct format_chunk_header end = {.magic = FORMAT_CHUNK_MAGIC, .kind = FORMAT_CHUNK_END};
    return rc < 0 ? rc : append_chunk(out, end, "", sequence);
}

int format_repair(const char *path, const char *out, bool force, struct format_verdict *ret)
{
    struct format_reader *r = NULL;
    struct format_verdict v;
    int rc = format_reader_open(path, &r);
    if (rc == 0)
        rc = examine(r, &v);
    _cleanup_close_ int in = rc < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_close_ int fd = -1;
    if (rc == 0 && in < 0)
        rc = err_from_errno(errno);
    struct stat from, to;
    /* truncating the original before reading it would be the opposite of a repair */
    if (rc == 0 && stat(out, &to) == 0 && fstat(in, &from) == 0 && from.st_dev == to.st_dev &&
        from.st_ino == to.st_ino)
        rc = E_EXISTS;
    if (rc == 0) {
        bool is_new;
        fd = io_create(out, force, &is_new);
        rc = fd < 0 ? fd : copy_good_chunks(r, &v, in, fd);
        if (rc < 0 && fd >= 0 && is_new)
            unlink(out); /* half a copy would pass for a whole one */
    }
    format_reader_free(r);
    if (rc == 0)
        *ret = v;
    return rc;
}
