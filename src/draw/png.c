/* A signature, then chunks: length, name, bytes, checksum. The rows are one zlib stream, cut into
 * IDAT chunks; each row begins with the filter it was made by. "Up" (the difference to the row
 * above) suits pictures of flat colour, whose rows are mostly alike. */
#include "draw/png.h"

#include "base/err.h"

#include <errno.h>
#include <zlib.h>

enum { CHUNK_BYTES = 64 << 10, FILTER_UP = 2, LEVEL = 3, COLOUR_RGB = 2, BITS = 8 };

static void put_u32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
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
    errno = 0;
    if (fwrite(head, 1, sizeof head, out) != sizeof head || fwrite(data, 1, len, out) != len ||
        fwrite(tail, 1, sizeof tail, out) != sizeof tail)
        return errno ? err_from_errno(errno) : E_IO;
    return 0;
}

/* Runs the compressor until it has taken everything (and, at the end, given everything). */
static int pump(z_stream *z, uint8_t *bytes, int flush, FILE *out)
{
    for (;;) {
        int state = deflate(z, flush);
        uint32_t made = CHUNK_BYTES - z->avail_out;
        bool done = flush == Z_FINISH ? state == Z_STREAM_END : z->avail_in == 0 && z->avail_out;
        if (!z->avail_out || (flush == Z_FINISH && made)) {
            int r = put_chunk(out, "IDAT", bytes, made);
            if (r < 0)
                return r;
            z->next_out = bytes;
            z->avail_out = CHUNK_BYTES;
        }
        if (done)
            return 0;
    }
}

static int put_rows(const struct draw_canvas *c, z_stream *z, uint8_t *bytes, uint8_t *row,
                    FILE *out)
{
    size_t size = 3 * (size_t)c->width;
    int r = 0;
    row[0] = FILTER_UP;
    for (uint32_t y = 0; r == 0 && y < c->height; y++) {
        const uint8_t *now = c->rgb + y * size, *above = y ? c->rgb + (y - 1) * size : NULL;
        for (size_t i = 0; i < size; i++)
            row[i + 1] = (uint8_t)(now[i] - (above ? above[i] : 0));
        z->next_in = row;
        z->avail_in = (uInt)(size + 1);
        r = pump(z, bytes, Z_NO_FLUSH, out);
    }
    z->avail_in = 0;
    return r < 0 ? r : pump(z, bytes, Z_FINISH, out);
}

int draw_png_write(const struct draw_canvas *c, FILE *out)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    _cleanup_free_ uint8_t *bytes = malloc(CHUNK_BYTES);
    _cleanup_free_ uint8_t *row = malloc(3 * (size_t)c->width + 1);
    z_stream z = {0};
    if (!bytes || !row || deflateInit(&z, LEVEL) != Z_OK)
        return E_NOMEM;
    z.next_out = bytes;
    z.avail_out = CHUNK_BYTES;
    uint8_t head[13] = {[8] = BITS, [9] = COLOUR_RGB};
    put_u32(head, c->width);
    put_u32(head + 4, c->height);
    errno = 0;
    int r = fwrite(signature, 1, sizeof signature, out) == sizeof signature ? 0
            : errno                                                         ? err_from_errno(errno)
                                                                            : E_IO;
    r = r < 0 ? r : put_chunk(out, "IHDR", head, sizeof head);
    r = r < 0 ? r : put_rows(c, &z, bytes, row, out);
    r = r < 0 ? r : put_chunk(out, "IEND", bytes, 0);
    deflateEnd(&z);
    if (r == 0 && fflush(out) != 0)
        r = err_from_errno(errno);
    return r;
}
