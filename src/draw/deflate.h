/* Compression for pictures of flat colour (RFC 1951). The rows of such a picture, as differences to
 * the rows above, are nine parts zeros: those are skipped over as fast as memory goes, and only what
 * lies between them is looked for in what came before. A general compressor spends most of its time
 * on the zeros. */
#ifndef PYROMETER_DRAW_DEFLATE_H
#define PYROMETER_DRAW_DEFLATE_H

#include "base/buf.h"

struct draw_deflate; /* opaque */

/* What is made goes to `out`, borrowed until the end; its sticky error tells. NULL without memory. */
struct draw_deflate *draw_deflate_new(struct buf *out);
void draw_deflate_free(struct draw_deflate *d);

/* Adds bytes. Each call is compressed by itself, so some hundred kilobytes at once are best; at most
 * DRAW_DEFLATE_BYTES_MAX. */
enum { DRAW_DEFLATE_BYTES_MAX = 1 << 30 };
void draw_deflate_add(struct draw_deflate *d, const uint8_t *data, size_t len);

/* Ends on a whole byte: as the end of all, or so that another stream may follow. */
void draw_deflate_end(struct draw_deflate *d, bool is_last);

#endif
