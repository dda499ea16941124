/* The read half: finds whole chunks in a mapped file, verifies, decompresses, decodes. */
#include "format/reader.h"

#include "base/err.h"
#include "base/progress.h"
#include "base/vec.h"
#include "format/codec.h"
#include "format/compress.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Pages are this large or a multiple; a range that does not begin on one is refused, no harm done. */
enum { PAGE_BYTES = 4096 };

struct format_reader {
    const uint8_t *data;
    size_t len;
    bool mapped;       /* data is ours to unmap */
    uint64_t searched; /* bytes that were taken for chunks, behind broken ones */
    struct format_summary summary;
    VEC(struct format_chunk) chunks;
};

static int check_file_header(const uint8_t *data, size_t len, struct format_file_header *ret)
{
    if (len == 0)
        return E_EMPTY;
    if (len < sizeof ret->magic || memcmp(data, FORMAT_MAGIC, sizeof ret->magic) != 0)
        return E_FORMAT;
    if (len < sizeof *ret)
        return E_SHORT;
    memcpy(ret, data, sizeof *ret);
    /* version first: a newer header may be checksummed in another way */
    if (ret->version_major > FORMAT_VERSION_MAJOR)
        return E_NEWER;
    if (ret->checksum != checksum_file_header(ret))
        return E_CORRUPT;
    if (ret->incompatible_flags & ~(uint32_t)FORMAT_KNOWN_INCOMPATIBLE)
        return E_NEWER;
    if (ret->header_bytes != sizeof *ret)
        return E_CORRUPT;
    return 0;
}

/* A sound frame at `at`: magic, sane sizes, all of it there. */
static bool frame_at(const struct format_reader *r, uint64_t at, struct format_chunk_header *ret)
{
    if (at > r->len || r->len - at < sizeof *ret)
        return false;
    memcpy(ret, r->data + at, sizeof *ret);
    return ret->magic == FORMAT_CHUNK_MAGIC && ret->stored_bytes <= FORMAT_MAX_CHUNK_BYTES &&
           ret->raw_bytes <= FORMAT_MAX_CHUNK_BYTES &&
           ret->stored_bytes <= r->len - at - sizeof *ret;
}

static bool payload_is_sound(const struct format_reader *r, uint64_t at,
                             const struct format_chunk_header *h)
{
    return checksum_chunk(h, r->data + at + sizeof *h) == h->checksum;
}

/* After a broken frame: the next place where a chunk begins whose checksum holds, or the end. A file that has been made up of
 * beginnings alone would have all behind each of them read: so it ends where that has come to a few times the file. */
static uint64_t resync(struct format_reader *r, uint64_t at)
{
    enum { MOST_TIMES = 4 };
    static const uint32_t magic = FORMAT_CHUNK_MAGIC;
    struct format_chunk_header h;
    while (at < r->len) {
        const uint8_t *hit = memmem(r->data + at, r->len - at, &magic, sizeof magic);
        if (!hit)
            break;
        at = (uint64_t)(hit - r->data);
        if (frame_at(r, at, &h)) {
            r->searched += h.stored_bytes;
            if (r->searched / MOST_TIMES > r->len)
                break;
            if (payload_is_sound(r, at, &h))
                return at;
        }
        at++;
    }
    return r->len;
}

/* In a file larger than this, timelines are checked by whoever asks for them: they are most of it. */
enum { CHECKED_AT_ONCE = 64 << 20 };

/* The kinds that every reader of a whole recording decodes, and so checks; and those that are most
 * of a large file. */
static bool is_decoded(const struct format_reader *r, unsigned kind)
{
    return (kind >= FORMAT_CHUNK_META && kind <= FORMAT_CHUNK_STATS) ||
           (r->len > CHECKED_AT_ONCE && (kind == FORMAT_CHUNK_EVENTS ||
                                         kind == FORMAT_CHUNK_INDEX || kind == FORMAT_CHUNK_NOTES));
}

/* May this frame be taken at its word? Checksums are verified when a chunk is decoded, for opening
 * must be quick; but where a false header would go unnoticed until then, or forever, it is done at
 * once: its successor does not begin where it says it ends, its number is not the next one, or it
 * is of a kind that a reader may pass over. */
static bool is_credible(const struct format_reader *r, uint64_t at,
                        const struct format_chunk_header *h, uint32_t expected)
{
    struct format_chunk_header next;
    uint64_t end = at + sizeof *h + h->stored_bytes;
    bool joins = frame_at(r, end, &next) && next.sequence == h->sequence + 1;
    return (joins && h->sequence == expected && is_decoded(r, h->kind)) ||
           payload_is_sound(r, at, h);
}

static int find_chunks(struct format_reader *r)
{
    struct format_summary *s = &r->summary;
    uint64_t at = sizeof(struct format_file_header);
    uint32_t expected = 0;
    s->good_bytes = at;
    progress_begin("looking through the file", r->len);
    while (at < r->len) {
        struct format_chunk_header h;
        progress_reach(at);
        if (!frame_at(r, at, &h) || !is_credible(r, at, &h, expected)) {
            uint64_t next = resync(r, at + 1);
            if (next == r->len) {
                s->torn = true;
                break;
            }
            s->damaged_chunks++;
            at = next;
            continue;
        }
        struct format_chunk *c = vec_push(&r->chunks);
        if (!c)
            return E_NOMEM;
        *c = (struct format_chunk){
            .offset = at,
            .kind = h.kind,
            .flags = h.flags,
            .sequence = h.sequence,
            .stored_bytes = h.stored_bytes,
            .raw_bytes = h.raw_bytes,
            .records = h.records,
        };
        if (h.sequence > expected)
            s->missing_chunks += h.sequence - expected;
        expected = h.sequence + 1;
        s->finished = h.kind == FORMAT_CHUNK_END;
        at += sizeof h + h.stored_bytes;
        s->good_bytes = at;
    }
    s->chunks = (uint32_t)r->chunks.len;
    return 0;
}

static int open_bytes(const uint8_t *data, size_t len, bool mapped, struct format_reader **ret)
{
    struct format_reader *r = calloc(1, sizeof *r);
    if (!r)
        return E_NOMEM;
    r->data = data;
    r->len = len;
    int rc = check_file_header(data, len, &r->summary.header);
    r->summary.file_bytes = len;
    if (rc == 0)
        rc = find_chunks(r);
    if (rc < 0) {
        format_reader_free(r);
        return rc;
    }
    r->mapped = mapped; /* only now: on failure the caller still owns the mapping */
    *ret = r;
    return 0;
}

int format_reader_open(const char *path, struct format_reader **ret)
{
    /* to open a named pipe would wait for somebody who writes into it */
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENXIO ? E_NOTFILE : err_from_errno(errno); /* ENXIO: a socket */
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_from_errno(errno);
    if (S_ISDIR(st.st_mode))
        return E_ISDIR;
    if (!S_ISREG(st.st_mode))
        return E_NOTFILE;
    if (st.st_size == 0)
        return E_EMPTY;
    size_t len = (size_t)st.st_size;
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return err_from_errno(errno);
    /* the headers lie far apart: what is between them is not to be read along */
    madvise(data, len, MADV_RANDOM);
    int r = open_bytes(data, len, true, ret);
    if (r < 0)
        munmap(data, len);
    return r;
}

int format_reader_open_memory(const void *data, size_t len, struct format_reader **ret)
{
    return open_bytes(data, len, false, ret);
}

void format_reader_free(struct format_reader *r)
{
    if (!r)
        return;
    if (r->mapped)
        munmap((void *)r->data, r->len);
    vec_release(&r->chunks);
    free(r);
}

const struct format_summary *format_reader_summary(const struct format_reader *r)
{
    return &r->summary;
}

size_t format_reader_chunk_count(const struct format_reader *r)
{
    return r->chunks.len;
}

const struct format_chunk *format_reader_chunk(const struct format_reader *r, size_t index)
{
    return &r->chunks.data[index];
}

/* Samples that have been read are rarely wanted again soon: their pages need not stay mapped, so that
 * what a reader occupies does not grow with the file. The system still has them cached. */
static void forget(const struct format_reader *r, const struct format_chunk *c)
{
    if (!r->mapped || c->kind != FORMAT_CHUNK_SAMPLES)
        return;
    uintptr_t from = (uintptr_t)r->data + c->offset, to = from + c->stored_bytes;
    from = (from + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    to = to / PAGE_BYTES * PAGE_BYTES;
    if (from < to)
        madvise((void *)from, to - from, MADV_DONTNEED); /* a hint: it may fail */
}

/* A chunk is read as a whole, and nothing but it. */
static void ask_for(const struct format_reader *r, const struct format_chunk *c)
{
    enum { PAGE = 4096 };
    uint64_t first = c->offset & ~(uint64_t)(PAGE - 1);
    uint64_t end = c->offset + sizeof(struct format_chunk_header) + c->stored_bytes;
    if (r->mapped && end - first > PAGE)
        madvise((void *)(r->data + first), end - first, MADV_WILLNEED);
}

bool format_reader_chunk_is_sound(const struct format_reader *r, size_t index)
{
    const struct format_chunk *c = &r->chunks.data[index];
    struct format_chunk_header h;
    ask_for(r, c);
    bool sound = frame_at(r, c->offset, &h) && payload_is_sound(r, c->offset, &h);
    forget(r, c);
    return sound;
}

static int visit_chunk(const struct format_reader *r, size_t index,
                       const struct format_visitor *visitor, void *ctx)
{
    const struct format_chunk *c = &r->chunks.data[index];
    struct format_chunk_header h;
    ask_for(r, c);
    if (!frame_at(r, c->offset, &h) || !payload_is_sound(r, c->offset, &h))
        return E_CORRUPT;
    const uint8_t *stored = r->data + c->offset + sizeof h;
    /* every record takes a byte at least: a count beyond that is a lie */
    if (h.records > h.raw_bytes)
        return E_CORRUPT;
    if (!(h.flags & FORMAT_CHUNK_ZSTD)) {
        if (h.stored_bytes != h.raw_bytes)
            return E_CORRUPT;
        return codec_visit(h.kind, stored, h.raw_bytes, h.records, visitor, ctx);
    }
    _cleanup_free_ uint8_t *raw = malloc(h.raw_bytes ? h.raw_bytes : 1);
    if (!raw)
        return E_NOMEM;
    int rc = decompress(raw, h.raw_bytes, stored, h.stored_bytes);
    return rc < 0 ? rc : codec_visit(h.kind, raw, h.raw_bytes, h.records, visitor, ctx);
}

int format_reader_visit_chunk(const struct format_reader *r, size_t index,
                              const struct format_visitor *visitor, void *ctx)
{
    int rc = visit_chunk(r, index, visitor, ctx);
    forget(r, &r->chunks.data[index]);
    return rc;
}

static bool wanted(unsigned kind, const struct format_visitor *v)
{
    switch (kind) {
    case FORMAT_CHUNK_META:
        return v->meta != NULL;
    case FORMAT_CHUNK_STRINGS:
        return v->string != NULL;
    case FORMAT_CHUNK_CODES:
        return v->code != NULL;
    case FORMAT_CHUNK_STACKS:
        return v->stack != NULL;
    case FORMAT_CHUNK_PROCESSES:
        return v->process != NULL;
    case FORMAT_CHUNK_THREADS:
        return v->thread != NULL;
    case FORMAT_CHUNK_SAMPLES:
        return v->samples != NULL;
    case FORMAT_CHUNK_CALLS:
        return v->calls != NULL;
    case FORMAT_CHUNK_LINES:
        return v->line != NULL;
    case FORMAT_CHUNK_ALLOCATIONS:
        return v->memory != NULL || v->sizes != NULL || v->site != NULL;
    case FORMAT_CHUNK_MEMORY_EVENTS:
        return v->memory_events != NULL;
    case FORMAT_CHUNK_STATS:
        return v->stat != NULL;
    case FORMAT_CHUNK_SOURCES:
        return v->source != NULL;
    case FORMAT_CHUNK_MARKS:
        return v->mark != NULL;
    case FORMAT_CHUNK_COUNTERS:
        return v->counter != NULL;
    case FORMAT_CHUNK_EVENTS:
        return v->events != NULL;
    case FORMAT_CHUNK_NOTES:
        return v->note != NULL;
    case FORMAT_CHUNK_INDEX:
        return v->summary != NULL || v->directory != NULL;
    default:
        return false;
    }
}

size_t format_reader_find(const struct format_reader *r, uint32_t sequence)
{
    size_t low = 0, high = r->chunks.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->chunks.data[middle].sequence < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->chunks.len && r->chunks.data[low].sequence == sequence ? low : SIZE_MAX;
}

/* What a pass over the wanted chunks will read. */
static uint64_t wanted_bytes(const struct format_reader *r, const struct format_visitor *visitor)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->chunks.len; i++)
        if (wanted(r->chunks.data[i].kind, visitor))
            bytes += r->chunks.data[i].stored_bytes;
    return bytes;
}

int format_reader_visit(const struct format_reader *r, const struct format_visitor *visitor,
                        void *ctx, uint32_t *ret_damaged)
{
    uint32_t damaged = 0;
    progress_begin("reading the recording", wanted_bytes(r, visitor));
    for (size_t i = 0; i < r->chunks.len; i++) {
        if (!wanted(r->chunks.data[i].kind, visitor))
            continue;
        int rc = format_reader_visit_chunk(r, i, visitor, ctx);
        progress_add(r->chunks.data[i].stored_bytes);
        if (rc == E_CORRUPT)
            damaged++;
        else if (rc)
            return rc;
    }
    if (ret_damaged)
        *ret_damaged = damaged;
    return 0;
}
