/* A signature, then chunks: length, name, bytes, checksum. The rows are one zlib stream, cut into
 * IDAT chunks; each row begins with the filter it was made by. "Up" (the difference to the row
 * above) suits pictures of flat colour, whose rows are mostly alike.
 *
 * A large picture is compressed in bands, one on each of a few threads: deflate streams can be put
 * one behind the other where each but the last ends on a whole byte, and the checksum of the whole
 * follows from those of the parts. */
#include "draw/png.h"

#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK_BYTES = 64 << 10, FILTER_UP = 2, LEVEL = 3, COLOUR_RGB = 2, BITS = 8 };
enum { BANDS_MAX = 8, BAND_PIXELS_LEAST = 1 << 18, BAND_BYTES_MAX = 1 << 30 };
enum { NO_ZLIB_FRAME = -15, ZLIB_MEMORY = 8 }; /* zlib's largest window, and its own default */

/* Rows `from` to `to`, and what becomes of them. */
struct band {
    const struct draw_canvas *canvas;
    uint32_t from, to;
    bool is_last;
    struct buf packed;
    uLong sum;    /* Adler-32 of the rows */
    size_t bytes; /* of them, filters included */
    int result;
};

/* --- compression --- */

/* Runs the compressor until it has taken everything and, but for Z_NO_FLUSH, given everything. */
static void pump(z_stream *z, int flush, struct buf *out)
{
    uint8_t bytes[CHUNK_BYTES];
    do {
        z->next_out = bytes;
        z->avail_out = sizeof bytes;
        deflate(z, flush);
        buf_append(out, bytes, sizeof bytes - z->avail_out);
    } while (!z->avail_out);
}

/* Bytes less bytes, eight at a time: the top bit of each keeps borrows out of its neighbour. */
static void subtract(uint8_t *to, const uint8_t *a, const uint8_t *b, size_t n)
{
    static const uint64_t TOPS = 0x8080808080808080u;
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= n; i += sizeof(uint64_t)) {
        uint64_t x, y;
        memcpy(&x, a + i, sizeof x);
        memcpy(&y, b + i, sizeof y);
        x = ((x | TOPS) - (y & ~TOPS)) ^ ((x ^ ~y) & TOPS);
        memcpy(to + i, &x, sizeof x);
    }
    for (; i < n; i++)
        to[i] = (uint8_t)(a[i] - b[i]);
}

static void press_rows(struct band *b, z_stream *z, uint8_t *row)
{
    const struct draw_canvas *c = b->canvas;
    size_t size = 3 * (size_t)c->width;
    b->sum = adler32(0, NULL, 0);
    row[0] = FILTER_UP;
    for (uint32_t y = b->from; y < b->to; y++) {
        const uint8_t *now = c->rgb + y * size;
        if (y)
            subtract(row + 1, now, now - size, size);
        else
            memcpy(row + 1, now, size);
        b->sum = adler32(b->sum, row, (uInt)(size + 1));
        b->bytes += size + 1;
        z->next_in = row;
        z->avail_in = (uInt)(size + 1);
        pump(z, Z_NO_FLUSH, &b->packed);
    }
    pump(z, b->is_last ? Z_FINISH : Z_FULL_FLUSH, &b->packed);
}

static void *press(void *arg)
{
    struct band *b = arg;
    _cleanup_free_ uint8_t *row = malloc(3 * (size_t)b->canvas->width + 1);
    z_stream z = {0};
    b->result = E_NOMEM;
    if (!row ||
        deflateInit2(&z, LEVEL, Z_DEFLATED, NO_ZLIB_FRAME, ZLIB_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    press_rows(b, &z, row);
    deflateEnd(&z);
    b->result = buf_error(&b->packed);
    return NULL;
}

static unsigned choose_bands(const struct draw_canvas *c)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t bands = (size_t)c->width * c->height / BAND_PIXELS_LEAST;
    bands = min_u64(bands, cores > 1 ? (uint64_t)cores : 1);
    bands = min_u64(bands, c->height);
    return bands < 1 ? 1 : bands > BANDS_MAX ? BANDS_MAX : (unsigned)bands;
}

/* Each band on a thread, the last on this one; what finds no thread is done here too. */
static int press_all(struct band *band, unsigned count)
{
    pthread_t thread[BANDS_MAX];
    bool started[BANDS_MAX] = {false};
    int r = 0;
    for (unsigned i = 0; i + 1 < count; i++)
        started[i] = pthread_create(&thread[i], NULL, press, &band[i]) == 0;
    for (unsigned i = 0; i < count; i++)
        if (!started[i])
            press(&band[i]);
    for (unsigned i = 0; i < count; i++) {
        if (started[i])
            pthread_join(thread[i], NULL);
        r = r < 0 ? r : band[i].result;
    }
    return r;
}

/* --- the file --- */

static void put_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static int put_bytes(FILE *out, const void *data, size_t len)
{
    errno = 0;
    if (len && fwrite(data, 1, len, out) != len)
        return errno ? err_from_errno(errno) : E_IO;
    return 0;
}

static int put_chunk(FILE *out, const char *name, const uint8_t *data, uint32_t len)
{
    uint8_t head[8], tail[4];
    put_u32(head, len);
    memcpy(head + 4, name, 4);
    uLong sum = crc32(crc32(0, NULL, 0), head + 4, 4);
    if (len)
        sum = crc32(sum, data, len);
    put_u32(tail, (uint32_t)sum);
    int r = put_bytes(out, head, sizeof head);
    r = r < 0 ? r : put_bytes(out, data, len);
    return r < 0 ? r : put_bytes(out, tail, sizeof tail);
}

/* The frame of a zlib stream around the bands: two bytes before, a checksum behind. */
static int put_bands(const struct band *band, unsigned count, FILE *out)
{
    static const uint8_t head[] = {0x78, 0x01};
    uint8_t tail[4];
    uLong sum = adler32(0, NULL, 0);
    int r = put_chunk(out, "IDAT", head, sizeof head);
    for (unsigned i = 0; r == 0 && i < count; i++) {
        for (size_t at = 0; r == 0 && at < band[i].packed.len; at += CHUNK_BYTES)
            r = put_chunk(out, "IDAT", band[i].packed.data + at,
                          (uint32_t)min_u64(CHUNK_BYTES, band[i].packed.len - at));
        sum = adler32_combine(sum, band[i].sum, (z_off_t)band[i].bytes);
    }
    put_u32(tail, (uint32_t)sum);
    return r < 0 ? r : put_chunk(out, "IDAT", tail, sizeof tail);
}

int draw_png_write(const struct draw_canvas *c, FILE *out)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    struct band band[BANDS_MAX];
    unsigned count = choose_bands(c);
    for (unsigned i = 0; i < count; i++) {
        band[i] = (struct band){.canvas = c,
                                .from = (uint32_t)((uint64_t)c->height * i / count),
                                .to = (uint32_t)((uint64_t)c->height * (i + 1) / count),
                                .is_last = i + 1 == count};
        buf_init(&band[i].packed, BAND_BYTES_MAX);
    }
    uint8_t head[13] = {[8] = BITS, [9] = COLOUR_RGB};
    put_u32(head, c->width);
    put_u32(head + 4, c->height);
    int r = press_all(band, count);
    r = r < 0 ? r : put_bytes(out, signature, sizeof signature);
    r = r < 0 ? r : put_chunk(out, "IHDR", head, sizeof head);
    r = r < 0 ? r : put_bands(band, count, out);
    r = r < 0 ? r : put_chunk(out, "IEND", NULL, 0);
    for (unsigned i = 0; i < count; i++)
        buf_release(&band[i].packed);
    if (r == 0 && fflush(out) != 0)
        r = err_from_errno(errno);
    return r;
}
