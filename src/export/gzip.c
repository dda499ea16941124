/* The quickest level: profiles are made of repeats, and readers wait for the writer. */
#include "export/gzip.h"

#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

enum { GZIP_WINDOW_BITS = 15 + 16 /* a gzip header and not zlib's */, OUT_BYTES = 64 << 10 };

struct export_gzip {
    FILE *out;
    z_stream z;
    unsigned char bytes[OUT_BYTES];
};

int export_gzip_new(FILE *out, struct export_gzip **ret)
{
    struct export_gzip *g = calloc(1, sizeof *g);
    if (!g)
        return E_NOMEM;
    g->out = out;
    if (deflateInit2(&g->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        free(g);
        return E_NOMEM;
    }
    *ret = g;
    return 0;
}

/* Runs the compressor until it has taken everything (and, at the end, given everything). */
static int pump(struct export_gzip *g, int flush)
{
    int state;
    do {
        g->z.next_out = g->bytes;
        g->z.avail_out = OUT_BYTES;
        state = deflate(&g->z, flush);
        size_t made = OUT_BYTES - g->z.avail_out;
        if (made && fwrite(g->bytes, 1, made, g->out) != made)
            return errno ? err_from_errno(errno) : E_IO;
    } while (g->z.avail_out == 0 && state != Z_STREAM_END);
    return 0;
}

int export_gzip_write(struct export_gzip *g, const void *data, size_t len)
{
    const unsigned char *at = data;
    int r = 0;
    while (r == 0 && len) {
        unsigned part = len > 1u << 30 ? 1u << 30 : (unsigned)len;
        g->z.next_in = (unsigned char *)at;
        g->z.avail_in = part;
        r = pump(g, Z_NO_FLUSH);
        at += part;
        len -= part;
    }
    return r;
}

int export_gzip_finish(struct export_gzip *g)
{
    return pump(g, Z_FINISH);
}

void export_gzip_free(struct export_gzip *g)
{
    if (!g)
        return;
    deflateEnd(&g->z);
    free(g);
}
