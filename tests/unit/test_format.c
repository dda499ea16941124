/* The profile file: what is written is read back, and what is damaged is told and never believed.
 *
 * A small recording is written once. Its bytes are then torn, flipped and rebuilt in memory; a
 * chunk counts as read if its records, written out as text, are those of the undamaged file. */
#include "base/err.h"
#include "base/io.h"
#include "base/vec.h"
#include "format/codec.h"
#include "format/compress.h"
#include "format/reader.h"
#include "format/verify.h"
#include "format/writer.h"
#include "sanitized.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { MANY_BYTES = 8 << 20 };

static char path[] = "/tmp/pyrometer-format-XXXXXX";
static char other[sizeof path + 8];

/* --- records as text --- */

static int dump_meta(void *ctx, const char *key, size_t key_len, const char *value, size_t len)
{
    buf_printf(ctx, "meta %.*s=%.*s\n", (int)key_len, key, (int)len, value);
    return 0;
}

static int dump_string(void *ctx, uint32_t id, const char *text, size_t len)
{
    buf_printf(ctx, "string %u ", id);
    buf_append(ctx, text, len);
    buf_puts(ctx, "\n");
    return 0;
}

static int dump_code(void *ctx, uint32_t id, const struct record_code *c)
{
    buf_printf(ctx, "code %u %u %u %u %u %u\n", id, c->name, c->qualname, c->file, c->first_line,
               c->flags);
    return 0;
}

static int dump_stack(void *ctx, uint32_t id, const struct record_stack *n)
{
    buf_printf(ctx, "stack %u %u %u %u\n", id, n->parent, n->code, n->line);
    return 0;
}

static int dump_process(void *ctx, const struct record_process *p)
{
    buf_printf(ctx, "process %u %u %u %u %u %u %" PRIu64 " %" PRIu64 "\n", p->id, p->pid,
               p->parent_pid, p->kind, p->command, p->python_version, p->start_ns, p->end_ns);
    return 0;
}

static int dump_thread(void *ctx, const struct record_thread *t)
{
    buf_printf(ctx, "thread %u %u %u %u %" PRIu64 " %u %" PRIu64 "\n", t->id, t->process, t->tid,
               t->name, t->ident, t->interpreter, t->start_ns);
    return 0;
}

static int dump_samples(void *ctx, const struct record_sample *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(ctx, "sample %u %u %u %u %" PRIu64 " %" PRIu64 "\n", s[i].thread, s[i].stack,
                   s[i].state, s[i].count, s[i].start_ns, s[i].duration_ns);
    return 0;
}

static int dump_stat(void *ctx, enum record_stat stat, uint64_t value)
{
    buf_printf(ctx, "stat %s %" PRIu64 "\n", record_stat_name(stat), value);
    return 0;
}

static int dump_source(void *ctx, const struct record_source *s)
{
    buf_printf(ctx, "source %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " ", s->path, s->flags, s->size,
               s->mtime_ns, s->hash);
    buf_append(ctx, s->text, s->text_len);
    buf_puts(ctx, "\n");
    return 0;
}

static const struct format_visitor dumper = {
    .source = dump_source,
    .meta = dump_meta,
    .string = dump_string,
    .code = dump_code,
    .stack = dump_stack,
    .process = dump_process,
    .thread = dump_thread,
    .samples = dump_samples,
    .stat = dump_stat,
};

/* --- a small recording --- */

static struct format_writer *new_writer(const char *at)
{
    struct format_writer *w = NULL;
    struct format_writer_options options = {
        .force = true, .run_id = {1, 2, 3}, .clock_origin_ns = 12345};
    assert_int_equal(format_writer_open(at, &options, &w), 0);
    return w;
}

static uint32_t text(struct format_writer *w, const char *t)
{
    return format_writer_string(w, t, strlen(t));
}

/* Everything once; `expected` collects what a reader must say, in the order of the chunks. */
static void write_part(struct format_writer *w, uint32_t round, struct buf *expected)
{
    char name[32];
    snprintf(name, sizeof name, "function_%u", round);
    buf_printf(expected, "meta round=%s\n", name);
    format_writer_meta(w, "round", name);

    uint32_t s = text(w, name), file = text(w, "app.py");
    struct record_code code = {s, round ? s : 0, file, 10 + round, round ? 0 : RECORD_CODE_SPECIAL};
    uint32_t c = format_writer_code(w, &code);
    uint32_t outer = format_writer_stack(w, &(struct record_stack){0, c, 11});
    uint32_t inner = format_writer_stack(w, &(struct record_stack){outer, c, UINT32_MAX});
    assert_int_equal(c, round + 1);
    assert_int_equal(outer, 2 * round + 1);
    assert_int_equal(inner, 2 * round + 2);
    dump_string(expected, s, name, strlen(name));
    if (!round)
        dump_string(expected, file, "app.py", 6);
    dump_code(expected, c, &code);
    dump_stack(expected, outer, &(struct record_stack){0, c, 11});
    dump_stack(expected, inner, &(struct record_stack){outer, c, UINT32_MAX});

    struct record_process p = {1, 77, 1, RECORD_PROCESS_PYTHON, s, file, 5, round ? UINT64_MAX : 0};
    struct record_thread t = {1 + round, 1, 78, s, UINT64_MAX - round, 2, 1ull << 40};
    format_writer_process(w, &p);
    format_writer_thread(w, &t);
    dump_process(expected, &p);
    dump_thread(expected, &t);

    struct record_source sources[] = {
        {file, RECORD_SOURCE_TEXT | RECORD_SOURCE_HASHED, 7, UINT64_MAX, UINT64_MAX, "x = 1", 5},
        {s, RECORD_SOURCE_OVER, UINT64_MAX, 0, 0, NULL, 0},
        {s, RECORD_SOURCE_TEXT, 0, 1, 2, "", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        format_writer_source(w, &sources[i]);
        dump_source(expected, &sources[i]);
    }

    struct record_sample samples[] = {
        {1, inner, RECORD_ON_CPU | RECORD_HOLDS_GIL, 1, 1000, 500},
        {1, outer, 0, UINT32_MAX, 1500, 1ull << 60}, /* the same thread, a count */
        {2, inner, RECORD_STATE_MASK, 0, 10, 0},     /* back in time */
        {1, 0, RECORD_WAITS_GIL, 1, UINT64_MAX, 7},  /* past the end of time: wraps */
        {1, inner, RECORD_MOVING, 2, 3, UINT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        format_writer_sample(w, &samples[i]);
    dump_samples(expected, samples, ARRAY_LEN(samples));

    struct record_stats stats;
    for (int i = 0; i < RECORD_STAT_COUNT; i++)
        stats.value[i] = (uint64_t)round * 1000 + (uint64_t)i;
    stats.value[RECORD_STAT_CHUNKS_LOST] = stats.value[RECORD_STAT_END_LOST] =
        0;                                               /* it was never repaired */
    format_writer_stats(w, &(struct record_stats){{0}}); /* only the newest counts */
    format_writer_stats(w, &stats);
    for (int i = 0; i < RECORD_STAT_COUNT; i++)
        dump_stat(expected, (enum record_stat)i, stats.value[i]);
}

static struct buf file;     /* the bytes of the recording */
static struct buf expected; /* what is in it */
struct piece {
    uint64_t offset, end;
    struct buf dump;
};
static VEC(struct piece) pieces; /* its chunks */

static void read_bytes(const char *at, struct buf *ret)
{
    buf_init(ret, MANY_BYTES);
    assert_int_equal(io_read_file(at, ret), 0);
}

static int make_recording(void **state ATTR_UNUSED)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(other, sizeof other, "%s.other", path);
    buf_init(&expected, MANY_BYTES);
    struct format_writer *w = new_writer(path);
    for (uint32_t round = 0; round < 3; round++) {
        write_part(w, round, &expected);
        assert_int_equal(format_writer_flush(w), 0);
        assert_int_equal(format_writer_flush(w), 0); /* nothing new: writes nothing */
    }
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    read_bytes(path, &file);

    struct format_reader *r = NULL;
    assert_int_equal(format_reader_open_memory(file.data, file.len, &r), 0);
    for (size_t i = 0; i < format_reader_chunk_count(r); i++) {
        const struct format_chunk *c = format_reader_chunk(r, i);
        struct piece *p = vec_push(&pieces);
        p->offset = c->offset;
        p->end = c->offset + sizeof(struct format_chunk_header) + c->stored_bytes;
        buf_init(&p->dump, MANY_BYTES);
        assert_int_equal(format_reader_visit_chunk(r, i, &dumper, &p->dump), 0);
    }
    format_reader_free(r);
    return 0;
}

static int remove_recording(void **state ATTR_UNUSED)
{
    unlink(path);
    unlink(other);
    for (size_t i = 0; i < pieces.len; i++)
        buf_release(&pieces.data[i].dump);
    vec_release(&pieces);
    buf_release(&file);
    buf_release(&expected);
    return 0;
}

static struct format_reader *open_whole(const void *data, size_t len)
{
    struct format_reader *r = NULL;
    assert_int_equal(format_reader_open_memory(data, len, &r), 0);
    return r;
}

/* --- what is written is read --- */

static void test_round_trip(void **state ATTR_UNUSED)
{
    struct format_reader *r = NULL;
    struct buf got;
    uint32_t damaged = 77;
    buf_init(&got, MANY_BYTES);
    assert_int_equal(format_reader_open(path, &r), 0);
    assert_int_equal(format_reader_visit(r, &dumper, &got, &damaged), 0);
    assert_int_equal(damaged, 0);
    assert_string_equal(buf_cstr(&got), buf_cstr(&expected));
    const struct format_summary *s = format_reader_summary(r);
    assert_true(s->finished && !s->torn);
    assert_int_equal(s->damaged_chunks + s->missing_chunks, 0);
    assert_int_equal(s->chunks, 3 * 9 + 1);
    assert_int_equal(s->good_bytes, file.len);
    assert_int_equal(s->file_bytes, file.len);
    assert_int_equal(s->header.run_id[2], 3);
    assert_int_equal(s->header.clock_origin_ns, 12345);
    assert_true(s->header.created_ns > 0);
    for (uint32_t i = 0; i < s->chunks; i++)
        assert_int_equal(format_reader_chunk(r, i)->sequence, i);
    format_reader_free(r);
    buf_release(&got);
}

static void test_interning(void **state ATTR_UNUSED)
{
    struct format_writer *w = new_writer(other);
    assert_int_equal(text(w, ""), RECORD_STRING_EMPTY);
    uint32_t a = text(w, "a"), b = format_writer_string(w, "a\0b", 3);
    assert_int_equal(a, 1);
    assert_int_equal(b, 2);
    uint32_t node = format_writer_stack(w, &(struct record_stack){0, 1, 2});
    assert_int_equal(format_writer_flush(w), 0);
    assert_int_equal(text(w, "a"), a); /* ids are for the whole file */
    assert_int_equal(format_writer_string(w, "a\0b", 3), b);
    assert_int_equal(format_writer_stack(w, &(struct record_stack){0, 1, 2}), node);
    assert_int_not_equal(format_writer_stack(w, &(struct record_stack){0, 1, 3}), node);
    assert_int_not_equal(format_writer_stack(w, &(struct record_stack){node, 1, 2}), node);
    /* the same code twice is two codes */
    assert_int_not_equal(format_writer_code(w, &(struct record_code){.name = a}),
                         format_writer_code(w, &(struct record_code){.name = a}));
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);

    struct format_reader *r = NULL;
    struct buf got;
    buf_init(&got, MANY_BYTES);
    assert_int_equal(format_reader_open(other, &r), 0);
    assert_int_equal(format_reader_visit(r, &dumper, &got, NULL), 0);
    static const char begin[] = "string 1 a\nstring 2 a\0b\n";
    assert_memory_equal(got.data, begin, sizeof begin - 1);
    format_reader_free(r);
    buf_release(&got);
}

/* Enough for several batches and a compressed chunk; a run of many samples in one payload. */
static void test_many_samples(void **state ATTR_UNUSED)
{
    enum { MANY = 5000 };
    struct format_writer *w = new_writer(other);
    struct buf want, got;
    buf_init(&want, MANY_BYTES);
    buf_init(&got, MANY_BYTES);
    for (uint32_t i = 0; i < MANY; i++) {
        struct record_sample s = {i % 3, i * 7919 % 1000, i % 32, 1 + i % 5, i * 1000ull, 1000};
        format_writer_sample(w, &s);
        dump_samples(&want, &s, 1);
    }
    assert_false(format_writer_wants_flush(w));
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    struct format_reader *r = NULL;
    assert_int_equal(format_reader_open(other, &r), 0);
    assert_int_equal(format_reader_summary(r)->chunks, 2);
    assert_int_equal(format_reader_chunk(r, 0)->flags, FORMAT_CHUNK_ZSTD);
    assert_int_equal(format_reader_visit(r, &dumper, &got, NULL), 0);
    assert_string_equal(buf_cstr(&got), buf_cstr(&want));
    format_reader_free(r);
    buf_release(&want);
    buf_release(&got);
}

static int stop_at_third(void *ctx, uint32_t id, const char *t ATTR_UNUSED, size_t len ATTR_UNUSED)
{
    *(uint32_t *)ctx = id;
    return id >= 3 ? 42 : 0;
}

static void test_visitor_stops(void **state ATTR_UNUSED)
{
    struct format_reader *r = open_whole(file.data, file.len);
    struct format_visitor v = {.string = stop_at_third};
    uint32_t last = 0;
    assert_int_equal(format_reader_visit(r, &v, &last, NULL), 42);
    assert_int_equal(last, 3);
    format_reader_free(r);
}

static void test_open_refusals(void **state ATTR_UNUSED)
{
    struct format_reader *r = NULL;
    struct format_writer *w = NULL;
    struct format_writer_options options = {.force = false};
    assert_int_equal(format_writer_open(path, &options, &w), E_EXISTS);
    assert_int_equal(format_reader_open("/nonexistent/x", &r), E_NOENT);
    assert_int_equal(format_reader_open("/tmp", &r), E_ISDIR);
    assert_int_equal(format_reader_open("/dev/null", &r), E_NOTFILE);
    assert_int_equal(format_reader_open_memory("", 0, &r), E_EMPTY);
    assert_int_equal(format_reader_open_memory("MZ", 2, &r), E_FORMAT);
    assert_null(r);
    assert_null(w);
}

/* --- torn and flipped --- */

static bool equal(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

static const struct piece *piece_at(uint64_t offset)
{
    for (size_t i = 0; i < pieces.len; i++)
        if (pieces.data[i].offset == offset)
            return &pieces.data[i];
    return NULL;
}

/* Every chunk that decodes is one of the original's, unchanged. How many of them there are. */
static size_t good_pieces(const struct format_reader *r)
{
    size_t good = 0;
    for (size_t i = 0; i < format_reader_chunk_count(r); i++) {
        struct buf got;
        buf_init(&got, MANY_BYTES);
        if (format_reader_visit_chunk(r, i, &dumper, &got) == 0) {
            const struct piece *p = piece_at(format_reader_chunk(r, i)->offset);
            assert_non_null(p);
            assert_true(equal(&got, &p->dump));
            good++;
        }
        buf_release(&got);
    }
    return good;
}

static void test_torn_at_every_byte(void **state ATTR_UNUSED)
{
    for (size_t len = 0; len < file.len; len++) {
        /* a copy of exactly that size, so that a sanitizer sees a byte too many */
        uint8_t *bytes = malloc(len ? len : 1);
        memcpy(bytes, file.data, len);
        struct format_reader *r = NULL;
        int rc = format_reader_open_memory(bytes, len, &r);
        if (len < sizeof(struct format_file_header)) {
            assert_int_equal(rc, len == 0 ? E_EMPTY : len < 8 ? E_FORMAT : E_SHORT);
            free(bytes);
            continue;
        }
        assert_int_equal(rc, 0);
        size_t whole = 0;
        while (whole < pieces.len && pieces.data[whole].end <= len)
            whole++;
        uint64_t end = whole ? pieces.data[whole - 1].end : sizeof(struct format_file_header);
        const struct format_summary *s = format_reader_summary(r);
        assert_int_equal(good_pieces(r), whole);
        assert_int_equal(s->chunks, whole);
        assert_int_equal(s->good_bytes, end);
        assert_int_equal(s->torn, end < len);
        assert_false(s->finished);
        format_reader_free(r);
        free(bytes);
    }
}

/* Does a reader that visits everything learn that something is wrong? */
static bool is_told(const struct format_reader *r)
{
    const struct format_summary *s = format_reader_summary(r);
    uint32_t damaged = 0;
    struct buf got;
    buf_init(&got, MANY_BYTES);
    assert_int_equal(format_reader_visit(r, &dumper, &got, &damaged), 0);
    buf_release(&got);
    return damaged || s->damaged_chunks || s->missing_chunks || s->torn || !s->finished;
}

static void test_every_bit_flipped(void **state ATTR_UNUSED)
{
    uint8_t *bytes = malloc(file.len);
    memcpy(bytes, file.data, file.len);
    for (size_t bit = 0; bit < file.len * 8; bit += IS_SANITIZED ? 5 : 1) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        struct format_reader *r = NULL;
        int rc = format_reader_open_memory(bytes, file.len, &r);
        if (bit / 8 < sizeof(struct format_file_header)) {
            assert_true(rc == E_FORMAT || rc == E_CORRUPT || rc == E_NEWER);
        } else {
            assert_int_equal(rc, 0);
            /* the flip costs the one chunk it hit, not its neighbours */
            if (good_pieces(r) != pieces.len - 1)
                fail_msg("bit %zu (byte %zu): %zu chunks of %zu", bit, bit / 8, good_pieces(r),
                         pieces.len);
            if (!is_told(r))
                fail_msg("bit %zu (byte %zu): lost without a word", bit, bit / 8);
        }
        format_reader_free(r);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bytes);
}

/* A stretch of zeros, as a file system leaves it after a crash. */
static void test_zeroed_stretch(void **state ATTR_UNUSED)
{
    uint8_t *bytes = malloc(file.len);
    for (size_t at = sizeof(struct format_file_header); at < file.len; at += 13) {
        size_t len = file.len - at < 100 ? file.len - at : 100;
        memcpy(bytes, file.data, file.len);
        memset(bytes + at, 0, len);
        size_t hit = 0;
        for (size_t i = 0; i < pieces.len; i++)
            hit += memcmp(bytes + pieces.data[i].offset, file.data + pieces.data[i].offset,
                          pieces.data[i].end - pieces.data[i].offset) != 0;
        struct format_reader *r = open_whole(bytes, file.len);
        assert_int_equal(good_pieces(r), pieces.len - hit);
        assert_int_equal(is_told(r), hit > 0); /* zeros over zeros are no damage */
        format_reader_free(r);
    }
    free(bytes);
}

/* --- files made by hand --- */

static struct format_file_header file_header(void)
{
    struct format_file_header h;
    memcpy(&h, file.data, sizeof h);
    return h;
}

static void put_file_header(struct buf *b, struct format_file_header h)
{
    buf_init(b, MANY_BYTES);
    h.checksum = checksum_file_header(&h);
    buf_append(b, &h, sizeof h);
}

static void put_header(struct buf *b)
{
    put_file_header(b, file_header());
}

static void put_chunk_as(struct buf *b, struct format_chunk_header h, const void *payload)
{
    h.magic = FORMAT_CHUNK_MAGIC;
    h.checksum = checksum_chunk(&h, payload);
    buf_append(b, &h, sizeof h);
    buf_append(b, payload, h.stored_bytes);
}

static void put_chunk(struct buf *b, unsigned kind, uint32_t sequence, const void *payload,
                      size_t len, uint32_t records)
{
    put_chunk_as(b,
                 (struct format_chunk_header){.kind = (uint16_t)kind,
                                              .sequence = sequence,
                                              .stored_bytes = (uint32_t)len,
                                              .raw_bytes = (uint32_t)len,
                                              .records = records},
                 payload);
}

static void test_versions_and_flags(void **state ATTR_UNUSED)
{
    struct format_reader *r = NULL;
    struct buf b;
    struct format_file_header h = file_header();
    h.version_major = FORMAT_VERSION_MAJOR + 1;
    put_file_header(&b, h);
    b.data[60] ^= 1; /* and a checksum of which we know nothing */
    assert_int_equal(format_reader_open_memory(b.data, b.len, &r), E_NEWER);
    buf_release(&b);

    h = file_header();
    h.incompatible_flags = 1u << 31;
    put_file_header(&b, h);
    assert_int_equal(format_reader_open_memory(b.data, b.len, &r), E_NEWER);
    buf_release(&b);

    h = file_header();
    h.header_bytes = 128;
    put_file_header(&b, h);
    assert_int_equal(format_reader_open_memory(b.data, b.len, &r), E_CORRUPT);
    buf_release(&b);

    h = file_header();
    h.version_minor = FORMAT_VERSION_MINOR + 9;
    h.compatible_flags = UINT32_MAX;
    put_file_header(&b, h);
    put_chunk(&b, FORMAT_CHUNK_STRINGS, 0, "\x01\x03new", 5, 1);
    put_chunk(&b, 4000, 1, "anything at all", 15, 3); /* a kind of a later version */
    put_chunk(&b, FORMAT_CHUNK_INDEX, 2, "zz", 2, 1); /* one that waits for its instrument */
    put_chunk(&b, FORMAT_CHUNK_STATS, 3, "\x04tock\x07\x07samples\x63", 15, 2); /* a new counter */
    put_chunk(&b, FORMAT_CHUNK_STRINGS, 4, "\x02\x03too", 5, 1);
    put_chunk(&b, FORMAT_CHUNK_END, 5, "", 0, 0);
    r = open_whole(b.data, b.len);
    struct buf got;
    buf_init(&got, 4096);
    uint32_t damaged = 1;
    assert_int_equal(format_reader_visit(r, &dumper, &got, &damaged), 0);
    assert_int_equal(damaged, 0);
    assert_string_equal(buf_cstr(&got), "string 1 new\nstat samples 99\nstring 2 too\n");
    assert_false(format_reader_summary(r)->damaged_chunks || !format_reader_summary(r)->finished);
    assert_int_equal(format_reader_summary(r)->chunks, 6);
    format_reader_free(r);
    buf_release(&got);
    buf_release(&b);
}

static void test_sequence_gaps(void **state ATTR_UNUSED)
{
    struct buf b;
    put_header(&b);
    put_chunk(&b, FORMAT_CHUNK_STRINGS, 2, "\x01\x01x", 3, 1); /* 0 and 1 are lost */
    put_chunk(&b, FORMAT_CHUNK_STRINGS, 3, "\x02\x01x", 3, 1);
    put_chunk(&b, FORMAT_CHUNK_END, 7, "", 0, 0); /* 4 to 6 are lost */
    struct format_reader *r = open_whole(b.data, b.len);
    assert_int_equal(format_reader_summary(r)->missing_chunks, 5);
    format_reader_free(r);
    buf_release(&b);
}

/* The length field of a chunk is wrong: what follows is found again by its own checksum. */
static void test_resync(void **state ATTR_UNUSED)
{
    static const uint32_t wrong[] = {0, 1, 2, 4, 36, 64, 100, 1u << 20, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct buf b;
        put_header(&b);
        put_chunk(&b, FORMAT_CHUNK_STRINGS, 0,
                  "\x01\x01"
                  "a",
                  3, 1);
        size_t broken = b.len;
        put_chunk(&b, FORMAT_CHUNK_STRINGS, 1,
                  "\x02\x01"
                  "b",
                  3, 1);
        for (uint8_t k = 0; k < 4; k++) {
            uint8_t payload[] = {(uint8_t)(3 + k), 1, (uint8_t)('c' + k)};
            put_chunk(&b, FORMAT_CHUNK_STRINGS, 2u + k, payload, 3, 1);
        }
        put_chunk(&b, FORMAT_CHUNK_END, 6, "", 0, 0);
        memcpy(b.data + broken + offsetof(struct format_chunk_header, stored_bytes), &wrong[i], 4);
        struct format_reader *r = open_whole(b.data, b.len);
        struct buf got;
        buf_init(&got, 4096);
        uint32_t damaged = 0;
        assert_int_equal(format_reader_visit(r, &dumper, &got, &damaged), 0);
        assert_string_equal(buf_cstr(&got),
                            "string 1 a\nstring 3 c\nstring 4 d\nstring 5 e\nstring 6 f\n");
        assert_int_equal(damaged + format_reader_summary(r)->damaged_chunks, 1);
        assert_true(format_reader_summary(r)->finished);
        format_reader_free(r);
        buf_release(&got);
        buf_release(&b);
    }
}

/* Every 32 bytes a chunk seems to begin that reaches to the end. To try each would be half the file squared: with this one, hours. */
static void test_nothing_but_beginnings(void **state ATTR_UNUSED)
{
    enum { BYTES = 48 << 20 };
    uint8_t *bytes = test_calloc(1, BYTES);
    struct format_file_header h = {
        .magic = FORMAT_MAGIC, .version_major = FORMAT_VERSION_MAJOR, .header_bytes = sizeof h};
    h.checksum = checksum_file_header(&h);
    memcpy(bytes, &h, sizeof h);
    for (size_t at = sizeof h; at + sizeof(struct format_chunk_header) <= BYTES;
         at += sizeof(struct format_chunk_header)) {
        struct format_chunk_header c = {
            .magic = FORMAT_CHUNK_MAGIC,
            .kind = FORMAT_CHUNK_SAMPLES,
            .stored_bytes = (uint32_t)(BYTES - at - sizeof c),
            .raw_bytes = 1,
            .checksum = 1,
        };
        memcpy(bytes + at, &c, sizeof c);
    }
    struct format_reader *r = NULL;
    assert_int_equal(format_reader_open_memory(bytes, BYTES, &r), 0);
    assert_true(format_reader_summary(r)->torn);
    assert_int_equal(format_reader_chunk_count(r), 0);
    format_reader_free(r);
    test_free(bytes);
}

/* --- limits: the checksum holds, the content lies --- */

static int visit_one(unsigned kind, const void *payload, size_t len, uint32_t records,
                     struct buf *got)
{
    struct buf b;
    put_header(&b);
    put_chunk(&b, kind, 0, payload, len, records);
    struct format_reader *r = open_whole(b.data, b.len);
    assert_int_equal(format_reader_chunk_count(r), 1);
    buf_init(got, MANY_BYTES);
    int rc = format_reader_visit_chunk(r, 0, &dumper, got);
    format_reader_free(r);
    buf_release(&b);
    return rc;
}

#define MAX_ID_VARINT  "\xff\xff\xff\xff\x03" /* FORMAT_MAX_IDS - 1 */
#define PAST_ID_VARINT "\x80\x80\x80\x80\x04" /* FORMAT_MAX_IDS */
#define PAST_U32       "\x80\x80\x80\x80\x10"
#define MAX_U64        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"

static void test_contents_that_lie(void **state ATTR_UNUSED)
{
    static const struct {
        unsigned kind;
        const char *payload;
        size_t len;
        uint32_t records;
    } cases[] = {
#define CASE(kind, payload, records) {FORMAT_CHUNK_##kind, payload, sizeof payload - 1, records}
        CASE(META, "\x01k", 1),                  /* no value */
        CASE(META, "\x01k\x7fv", 1),             /* longer than what is there */
        CASE(META, "\x81\x80\x80\x02k\x01v", 1), /* longer than a text may be */
        CASE(STRINGS,
             "\x01\x01"
             "a",
             2), /* fewer than announced */
        CASE(STRINGS,
             "\x01\x01"
             "a",
             4), /* more than bytes */
        CASE(STRINGS,
             PAST_ID_VARINT "\x01"
                            "a",
             1), /* an id too large */
        CASE(STRINGS,
             MAX_ID_VARINT "\x01"
                           "a\x01"
                           "b",
             2),                                                              /* the second is */
        CASE(STRINGS, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 1), /* no varint */
        CASE(STRINGS, "\x01" MAX_U64 "a", 1),
        CASE(CODES, "\x01\x01\x01\x01\x01", 1),
        CASE(CODES, "\x01\x01" PAST_ID_VARINT "\x01\x01\x01", 1),
        CASE(CODES, "\x01\x01\x01\x01" PAST_U32 "\x01", 1),
        CASE(STACKS, "\x05\x00\x01\x01", 1), /* its own parent */
        CASE(STACKS, "\x05\x06\x01\x01", 1), /* a parent below the root */
        CASE(STACKS, "\x05" PAST_U32 "\x01\x01", 1),
        CASE(STACKS, "\x00\x00\x01\x01", 1), /* the root is not to be defined */
        CASE(PROCESSES, "\x01\x01\x01\x01\x01\x01\x01", 1),
        CASE(PROCESSES, PAST_ID_VARINT "\x01\x01\x01\x01\x01\x01\x01", 1),
        CASE(THREADS, "\x01\x01\x01\x01\x01\x01", 1),
        CASE(THREADS, "\x01" PAST_ID_VARINT "\x01\x01\x01\x01\x01", 1),
        CASE(SAMPLES, "\x40\x02\x02", 1),
        CASE(SAMPLES, "\x40\x01\x02\x02", 1),                                     /* stack -1 */
        CASE(SAMPLES, "\x40" MAX_U64 "\x02\x02", 1),                              /* INT64_MIN */
        CASE(SAMPLES, "\x40\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x02", 1), /* INT64_MAX */
        CASE(SAMPLES, "\x40\x02\x02\x02\x40\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x02", 2),
        CASE(SAMPLES, "\xc0\x02\x02\x02" PAST_U32, 1),
        CASE(SAMPLES, "\x00" PAST_ID_VARINT "\x02\x02\x02", 1),
        CASE(STATS, "\x07samples", 1),
        CASE(SOURCES, "\x01\x00\x01\x01", 1),
        CASE(SOURCES,
             "\x01\x01\x01\x01\x01\x7f"
             "a",
             1), /* longer than what is there */
        CASE(SOURCES, PAST_ID_VARINT "\x00\x01\x01\x01", 1),
#undef CASE
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf got;
        int rc = visit_one(cases[i].kind, cases[i].payload, cases[i].len, cases[i].records, &got);
        if (rc != E_CORRUPT)
            fail_msg("case %zu: %s\n%s", i, err_name(rc), buf_cstr(&got));
        buf_release(&got);
    }
}

/* At the very edge of a limit, still good; and records before a fault have been delivered. */
static void test_edges_of_limits(void **state ATTR_UNUSED)
{
    struct buf got;
    assert_int_equal(visit_one(FORMAT_CHUNK_STRINGS,
                               MAX_ID_VARINT "\x01"
                                             "a",
                               7, 1, &got),
                     0);
    assert_string_equal(buf_cstr(&got), "string 1073741823 a\n");
    buf_release(&got);
    assert_int_equal(visit_one(FORMAT_CHUNK_STACKS, "\x05\x05\x01\x01", 4, 1, &got), 0);
    assert_string_equal(buf_cstr(&got), "stack 5 0 1 1\n");
    buf_release(&got);
    assert_int_equal(visit_one(FORMAT_CHUNK_STRINGS,
                               "\x01\x01"
                               "a\x09"
                               "b",
                               5, 2, &got),
                     E_CORRUPT);
    assert_string_equal(buf_cstr(&got), "string 1 a\n");
    buf_release(&got);
    assert_int_equal(visit_one(FORMAT_CHUNK_SAMPLES, "\x01\x02\x04\x02\x02\x40\x01", 7, 2, &got),
                     E_CORRUPT);
    assert_string_equal(buf_cstr(&got), "sample 2 2 1 1 1 2\n");
    buf_release(&got);
}

static void test_frames_that_lie(void **state ATTR_UNUSED)
{
    static const struct format_chunk_header lies[] = {
        {.kind = FORMAT_CHUNK_STRINGS, .stored_bytes = 3, .raw_bytes = 4, .records = 1},
        {.kind = FORMAT_CHUNK_STRINGS,
         .stored_bytes = 3,
         .raw_bytes = 3,
         .records = 1,
         .flags = FORMAT_CHUNK_ZSTD}, /* no zstd frame */
        {.kind = FORMAT_CHUNK_STRINGS,
         .stored_bytes = 3,
         .raw_bytes = FORMAT_MAX_CHUNK_BYTES,
         .records = 1,
         .flags = FORMAT_CHUNK_ZSTD},
        {.kind = FORMAT_CHUNK_STRINGS, .stored_bytes = 0, .raw_bytes = 0, .records = 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct buf b, got;
        buf_init(&got, 4096);
        put_header(&b);
        put_chunk_as(&b, lies[i],
                     "\x01\x01"
                     "a");
        struct format_reader *r = open_whole(b.data, b.len);
        assert_int_equal(format_reader_visit_chunk(r, 0, &dumper, &got), E_CORRUPT);
        assert_int_equal(got.len, 0);
        format_reader_free(r);
        buf_release(&b);
    }
    /* sizes past the maximum are no frame at all */
    static const struct format_chunk_header large = {.kind = FORMAT_CHUNK_STRINGS,
                                                     .raw_bytes = FORMAT_MAX_CHUNK_BYTES + 1};
    struct buf b;
    put_header(&b);
    put_chunk_as(&b, large, "");
    struct format_reader *r = open_whole(b.data, b.len);
    assert_int_equal(format_reader_chunk_count(r), 0);
    assert_true(format_reader_summary(r)->torn);
    format_reader_free(r);
    buf_release(&b);
}

/* A zstd frame that holds more, or less, than the header says. */
static void test_zstd_of_another_size(void **state ATTR_UNUSED)
{
    uint8_t raw[300] = "\x01\x7f", packed[1000];
    struct compressor *c = compressor_new();
    size_t n = compress(c, packed, sizeof packed, raw, sizeof raw);
    compressor_free(c);
    assert_true(n > 0);
    for (uint32_t claimed = sizeof raw - 1; claimed <= sizeof raw + 1; claimed++) {
        struct buf b, got;
        buf_init(&got, 4096);
        put_header(&b);
        put_chunk_as(&b,
                     (struct format_chunk_header){.kind = FORMAT_CHUNK_STRINGS,
                                                  .flags = FORMAT_CHUNK_ZSTD,
                                                  .stored_bytes = (uint32_t)n,
                                                  .raw_bytes = claimed,
                                                  .records = 1},
                     packed);
        struct format_reader *r = open_whole(b.data, b.len);
        assert_int_equal(format_reader_visit_chunk(r, 0, &dumper, &got),
                         claimed == sizeof raw ? 0 : E_CORRUPT);
        format_reader_free(r);
        buf_release(&got);
        buf_release(&b);
    }
}

/* --- verify and repair --- */

static void write_bytes(const char *at, const void *data, size_t len)
{
    int fd = open(at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(io_write_all(fd, data, len), 0);
    close(fd);
}

static void test_verify(void **state ATTR_UNUSED)
{
    struct format_verdict v;
    assert_int_equal(format_verify(path, &v), 0);
    assert_true(format_verdict_is_whole(&v));
    assert_int_equal(v.checked_chunks, pieces.len);
    uint64_t lines = 0;
    for (size_t i = 0; i < expected.len; i++)
        lines += expected.data[i] == '\n';
    assert_int_equal(v.records, lines);

    write_bytes(other, file.data, file.len - 1);
    assert_int_equal(format_verify(other, &v), 0);
    assert_false(format_verdict_is_whole(&v));
    assert_true(v.summary.torn && !v.summary.finished);

    uint8_t *bytes = malloc(file.len);
    memcpy(bytes, file.data, file.len);
    bytes[pieces.data[1].offset + sizeof(struct format_chunk_header)] ^= 1;
    write_bytes(other, bytes, file.len);
    free(bytes);
    assert_int_equal(format_verify(other, &v), 0);
    assert_false(format_verdict_is_whole(&v));
    assert_int_equal(v.bad_checksums, 1);
    assert_int_equal(v.bad_contents, 0);
    assert_true(v.dangling_refs > 0); /* the first strings are gone */

    struct buf b;
    put_header(&b);
    put_chunk(&b, FORMAT_CHUNK_STRINGS, 0,
              "\x01\x7f"
              "a",
              3, 1);
    put_chunk(&b, FORMAT_CHUNK_END, 1, "", 0, 0);
    write_bytes(other, b.data, b.len);
    buf_release(&b);
    assert_int_equal(format_verify(other, &v), 0);
    assert_false(format_verdict_is_whole(&v));
    assert_int_equal(v.bad_contents, 1);
    assert_int_equal(v.bad_checksums, 0);
}

/* The copy is whole, and knows what it lacks; a copy of the copy, too. */
static void repair_and_check(const char *from, size_t want_chunks, uint64_t lost, bool lost_end)
{
    char out[sizeof other + 8], again[sizeof out + 8];
    struct format_verdict before, after;
    snprintf(out, sizeof out, "%s.fixed", path);
    snprintf(again, sizeof again, "%s.again", path);
    unlink(out);
    assert_int_equal(format_repair(from, out, false, &before), 0);
    assert_int_equal(format_repair(from, out, false, &before), E_EXISTS);
    assert_int_equal(format_repair(from, out, true, &before), 0);
    assert_int_equal(format_verify(out, &after), 0);
    assert_true(after.summary.finished && !after.summary.torn);
    assert_int_equal(after.summary.missing_chunks + after.summary.damaged_chunks, 0);
    assert_int_equal(after.bad_checksums + after.bad_contents, 0);
    assert_int_equal(after.checked_chunks,
                     want_chunks + (lost || lost_end)); /* what is lost has one */
    assert_true(format_verdict_is_whole(&after));
    assert_int_equal(after.lost_chunks, lost);
    assert_int_equal(after.lost_end, lost_end);
    assert_int_equal(format_repair(out, again, true, &before), 0);
    assert_int_equal(format_verify(again, &after), 0);
    assert_true(format_verdict_is_whole(&after) && after.lost_chunks == lost &&
                after.lost_end == lost_end);
    unlink(out);
    unlink(again);
}

static void test_repair(void **state ATTR_UNUSED)
{
    struct format_verdict v;
    uint8_t *bytes = malloc(file.len);
    assert_int_equal(format_repair(path, path, true, &v), E_EXISTS); /* never onto itself */
    repair_and_check(path, pieces.len, 0, false);
    for (size_t i = 0; i < pieces.len; i++) {
        /* torn in the middle of each chunk: those before it and a new END */
        write_bytes(other, file.data, (pieces.data[i].offset + pieces.data[i].end) / 2);
        repair_and_check(other, i + 1, 0, true);
        /* one damaged: the others; END is always new */
        memcpy(bytes, file.data, file.len);
        bytes[pieces.data[i].offset + 20] ^= 1;
        write_bytes(other, bytes, file.len);
        bool is_end = i + 1 == pieces.len;
        repair_and_check(other, is_end ? pieces.len : pieces.len - 1, !is_end, is_end);
    }
    free(bytes);
    /* a chunk that does not decode is not good, whatever its checksum says */
    struct buf b;
    put_header(&b);
    put_chunk(&b, FORMAT_CHUNK_STRINGS, 0,
              "\x01\x01"
              "a",
              3, 1);
    put_chunk(&b, FORMAT_CHUNK_STRINGS, 1,
              "\x02\x7f"
              "a",
              3, 1);
    put_chunk(&b, 4000, 2, "kept", 4, 1);
    write_bytes(other, b.data, b.len);
    buf_release(&b);
    repair_and_check(other, 3, 1, true);
}

/* --- a full disk --- */

/* Texts that do not compress, each in a chunk of its own. */
static int write_noise(struct format_writer *w, int chunks)
{
    uint64_t x = 88172645463325252ull;
    int rc = 0;
    for (int i = 0; i < chunks; i++) {
        uint64_t noise[256];
        for (size_t k = 0; k < ARRAY_LEN(noise); k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            noise[k] = x;
        }
        format_writer_string(w, (char *)noise, sizeof noise);
        rc = format_writer_flush(w);
    }
    return rc;
}

static void test_full_disk(void **state ATTR_UNUSED)
{
    enum { ROOM = 10000 }; /* four chunks and a piece of the fifth */
    struct rlimit old, tight;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct format_writer *w = new_writer(other);
    tight = (struct rlimit){ROOM, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    int early = write_noise(w, 20);
    int finish = format_writer_finish(w);
    int again = format_writer_flush(w);
    setrlimit(RLIMIT_FSIZE, &old);
    format_writer_free(w);
    assert_true(early == 0 || early == finish); /* the disk is slower than the writer */
    assert_true(finish < 0);
    assert_int_equal(again, finish);

    struct format_verdict v;
    assert_int_equal(format_verify(other, &v), 0);
    assert_int_equal(v.records, 4);
    assert_int_equal(v.bad_checksums + v.bad_contents, 0);
    assert_true(v.summary.torn && !v.summary.finished);

    struct format_writer_options options = {.force = true};
    if (access("/dev/full", W_OK) == 0)
        assert_int_equal(format_writer_open("/dev/full", &options, &w), E_NOSPACE);
}

/* Freed without being finished: what was flushed is there. */
static void test_unfinished(void **state ATTR_UNUSED)
{
    struct format_writer *w = new_writer(other);
    write_noise(w, 3);
    format_writer_free(w);
    struct format_verdict v;
    assert_int_equal(format_verify(other, &v), 0);
    assert_int_equal(v.records, 3);
    assert_true(!v.summary.finished && !v.summary.torn);
    format_writer_free(NULL);
}

static void test_names(void **state ATTR_UNUSED)
{
    assert_string_equal(format_chunk_kind_name(FORMAT_CHUNK_SAMPLES), "SAMPLES");
    assert_string_equal(format_chunk_kind_name(24), "INDEX");
    assert_null(format_chunk_kind_name(0));
    assert_null(format_chunk_kind_name(4000));
    assert_string_equal(record_stat_name(RECORD_STAT_SAMPLES), "samples");
    assert_string_equal(record_stat_name(RECORD_STAT_COUNT), "");
    assert_string_equal(record_stat_text(RECORD_STAT_COUNT), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_interning),
        cmocka_unit_test(test_many_samples),
        cmocka_unit_test(test_visitor_stops),
        cmocka_unit_test(test_open_refusals),
        cmocka_unit_test(test_torn_at_every_byte),
        cmocka_unit_test(test_every_bit_flipped),
        cmocka_unit_test(test_zeroed_stretch),
        cmocka_unit_test(test_versions_and_flags),
        cmocka_unit_test(test_sequence_gaps),
        cmocka_unit_test(test_resync),
        cmocka_unit_test(test_nothing_but_beginnings),
        cmocka_unit_test(test_contents_that_lie),
        cmocka_unit_test(test_edges_of_limits),
        cmocka_unit_test(test_frames_that_lie),
        cmocka_unit_test(test_zstd_of_another_size),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_repair),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, make_recording, remove_recording);
}
