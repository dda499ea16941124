#include "base/zip.h"

#include "base/buf.h"
#include "base/err.h"

#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

/* The end record closes the file but for a comment; the directory stands right before it. Offsets
 * count from the archive's begin, which is not the file's where something was put before it, such
 * as the #! line of a zipapp. */
enum {
    END_BYTES = 22,
    END_COMMENT_MAX = 0xffff,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    FLAG_ENCRYPTED = 1,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
};
#define END_MAGIC   0x06054b50u
#define ENTRY_MAGIC 0x02014b50u
#define LOCAL_MAGIC 0x04034b50u

struct directory {
    uint64_t at;     /* in the file */
    uint64_t prefix; /* bytes before the archive */
    uint32_t bytes;
};

struct member {
    uint64_t local; /* offset in the file of its local header */
    uint32_t stored_bytes, raw_bytes, crc;
    uint16_t method;
};

static uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get_u32(const uint8_t *p)
{
    return get_u16(p) | (uint32_t)get_u16(p + 2) << 16;
}

static int read_at(int fd, void *dst, size_t len, uint64_t at)
{
    uint8_t *p = dst;
    while (len) {
        ssize_t n = pread(fd, p, len, (off_t)at);
        if (n <= 0)
            return n < 0 ? E_IO : E_CORRUPT;
        p += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

static int find_directory(int fd, uint64_t size, struct directory *ret)
{
    size_t len = min_u64(size, END_BYTES + END_COMMENT_MAX);
    if (len < END_BYTES)
        return E_NOENT;
    _cleanup_free_ uint8_t *tail = malloc(len);
    int r = tail ? read_at(fd, tail, len, size - len) : E_NOMEM;
    if (r < 0)
        return r;
    for (size_t i = len - END_BYTES + 1; i-- > 0;) {
        const uint8_t *end = tail + i;
        if (get_u32(end) != END_MAGIC || get_u16(end + 20) > len - END_BYTES - i)
            continue;
        uint64_t end_at = size - len + i;
        uint32_t bytes = get_u32(end + 12), offset = get_u32(end + 16);
        if (bytes > ZIP_MAX_DIRECTORY_BYTES)
            return E_LIMIT;
        if (bytes > end_at || offset > end_at - bytes)
            return E_CORRUPT;
        *ret = (struct directory){end_at - bytes, end_at - bytes - offset, bytes};
        return 0;
    }
    return E_NOENT;
}

static int find_member(const uint8_t *bytes, const struct directory *d, const char *name,
                       size_t name_len, struct member *ret)
{
    for (size_t at = 0; at + ENTRY_BYTES <= d->bytes;) {
        const uint8_t *e = bytes + at;
        size_t len = get_u16(e + 28);
        if (get_u32(e) != ENTRY_MAGIC || len > d->bytes - at - ENTRY_BYTES)
            return E_CORRUPT;
        if (len == name_len && memcmp(e + ENTRY_BYTES, name, len) == 0) {
            if (get_u16(e + 8) & FLAG_ENCRYPTED)
                return E_ACCESS;
            *ret = (struct member){
                .local = d->prefix + get_u32(e + 42),
                .stored_bytes = get_u32(e + 20),
                .raw_bytes = get_u32(e + 24),
                .crc = get_u32(e + 16),
                .method = get_u16(e + 10),
            };
            return 0;
        }
        at += ENTRY_BYTES + len + get_u16(e + 30) + get_u16(e + 32);
    }
    return E_NOENT;
}

static int unpack(uint8_t *dst, size_t raw, const uint8_t *src, size_t stored)
{
    z_stream z = {
        .next_in = (Bytef *)src, .avail_in = (uInt)stored, .next_out = dst, .avail_out = (uInt)raw};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return E_NOMEM;
    int rc = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    return rc == Z_STREAM_END && z.total_out == raw ? 0 : E_CORRUPT;
}

static int read_content(int fd, uint64_t size, const struct member *m, struct buf *out)
{
    uint8_t local[LOCAL_BYTES];
    if (m->local > size || size - m->local < sizeof local)
        return E_CORRUPT;
    int r = read_at(fd, local, sizeof local, m->local);
    if (r < 0)
        return r;
    uint64_t at = m->local + LOCAL_BYTES + get_u16(local + 26) + get_u16(local + 28);
    if (get_u32(local) != LOCAL_MAGIC || at > size || m->stored_bytes > size - at)
        return E_CORRUPT;
    if (m->raw_bytes > out->max - out->len)
        return E_LIMIT;
    /* deflate makes nothing much larger: more than this is a lie */
    if ((m->method != METHOD_STORED && m->method != METHOD_DEFLATED) ||
        m->stored_bytes > m->raw_bytes + m->raw_bytes / 1000 + 4096 ||
        (m->method == METHOD_STORED && m->stored_bytes != m->raw_bytes))
        return E_CORRUPT;
    if (m->raw_bytes == 0)
        return 0;
    _cleanup_free_ uint8_t *stored = malloc(m->stored_bytes + 1u);
    if (!stored || !buf_reserve(out, m->raw_bytes))
        return E_NOMEM;
    uint8_t *dst = out->data + out->len;
    r = read_at(fd, stored, m->stored_bytes, at);
    if (r == 0 && m->method == METHOD_STORED)
        memcpy(dst, stored, m->raw_bytes);
    else if (r == 0)
        r = unpack(dst, m->raw_bytes, stored, m->stored_bytes);
    if (r == 0 && crc32(0, dst, m->raw_bytes) != m->crc)
        r = E_CORRUPT;
    if (r == 0)
        out->len += m->raw_bytes;
    return r;
}

int zip_read_member(int fd, const char *name, size_t name_len, struct buf *out)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size < 0)
        return E_IO;
    uint64_t size = (uint64_t)st.st_size;
    struct directory d = {0};
    struct member m = {0};
    int r = find_directory(fd, size, &d);
    if (r < 0)
        return r;
    _cleanup_free_ uint8_t *bytes = malloc(d.bytes + 1u);
    r = bytes ? read_at(fd, bytes, d.bytes, d.at) : E_NOMEM;
    if (r == 0)
        r = find_member(bytes, &d, name, name_len, &m);
    return r < 0 ? r : read_content(fd, size, &m, out);
}
