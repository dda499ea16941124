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
#include "draw/deflate.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK_BYTES = 64 << 10, FILTER_UP = 2, COLOUR_RGB = 2, BITS = 8 };
enum { BANDS_MAX = 8, BAND_PIXELS_LEAST = 1 << 18, BAND_BYTES_MAX = 1 << 30 };
enum { STRETCH_BYTES = 256 << 10 }; /* that are filtered and compressed together */

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

/* --- rows --- */

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

/* Filters rows into `bytes`, one behind the other; returns the end. */
static uint8_t *filter_rows(const struct draw_canvas *c, uint32_t from, uint32_t to, uint8_t *bytes)
{
    size_t size = 3 * (size_t)c->width;
    for (uint32_t y = from; y < to; y++) {
        const uint8_t *now = c->rgb + y * size;
        *bytes++ = FILTER_UP;
        if (y)
            subtract(bytes, now, now - size, size);
        else
            memcpy(bytes, now, size);
        bytes += size;
    }
    return bytes;
}

static void *press(void *arg)
{
    struct band *b = arg;
    size_t row = 3 * (size_t)b->canvas->width + 1;
    uint32_t rows = (uint32_t)(STRETCH_BYTES / row) + 1;
    _cleanup_free_ uint8_t *bytes = malloc(rows * row);
    struct draw_deflate *d = draw_deflate_new(&b->packed);
    b->result = bytes && d ? 0 : E_NOMEM;
    b->sum = adler32(0, NULL, 0);
    for (uint32_t y = b->from; b->result == 0 && y < b->to; y += rows) {
        uint32_t to = (uint32_t)min_u64((uint64_t)y + rows, b->to);
        size_t len = (size_t)(filter_rows(b->canvas, y, to, bytes) - bytes);
        b->sum = adler32(b->sum, bytes, (uInt)len);
        b->bytes += len;
        draw_deflate_add(d, bytes, len);
        b->result = buf_error(&b->packed);
    }
    if (b->result == 0) {
        draw_deflate_end(d, b->is_last);
        b->result = buf_error(&b->packed);
    }
    draw_deflate_free(d);
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
