/* The one place that names zstd and xxhash. Inside src/format only. */
#ifndef PYROMETER_FORMAT_COMPRESS_H
#define PYROMETER_FORMAT_COMPRESS_H

#include "format/format.h"

#include <stddef.h>

struct compressor; /* reusable context; one per thread */

struct compressor *compressor_new(void);
void compressor_free(struct compressor *c);

/* The most bytes `len` can become. */
size_t compress_bound(size_t len);

/* Compresses into dst; the size, or 0 if it did not help or failed (store it raw then). */
size_t compress(struct compressor *c, void *dst, size_t cap, const void *src, size_t len);

/* Exactly `raw_len` bytes must come out; E_CORRUPT otherwise. */
int decompress(void *dst, size_t raw_len, const void *src, size_t len);

uint64_t checksum_file_header(const struct format_file_header *h);
uint64_t checksum_chunk(const struct format_chunk_header *h, const void *payload);

#endif
