#include "format/compress.h"

#include "base/err.h"
#include "format/record.h"

#include <xxhash.h>
#include <zstd.h>

/* Level 1: the sampler shares a machine with its target, and stacks compress well at any level. */
enum { COMPRESS_LEVEL = 1 };

struct compressor *compressor_new(void)
{
    return (struct compressor *)ZSTD_createCCtx();
}

void compressor_free(struct compressor *c)
{
    ZSTD_freeCCtx((ZSTD_CCtx *)c);
}

size_t compress_bound(size_t len)
{
    return ZSTD_compressBound(len);
}

size_t compress(struct compressor *c, void *dst, size_t cap, const void *src, size_t len)
{
    size_t n = ZSTD_compressCCtx((ZSTD_CCtx *)c, dst, cap, src, len, COMPRESS_LEVEL);
    return ZSTD_isError(n) || n >= len ? 0 : n;
}

int decompress(void *dst, size_t raw_len, const void *src, size_t len)
{
    size_t n = ZSTD_decompress(dst, raw_len, src, len);
    return ZSTD_isError(n) || n != raw_len ? E_CORRUPT : 0;
}

uint64_t record_source_hash(const void *text, size_t len)
{
    return XXH3_64bits(text, len);
}

uint64_t checksum_file_header(const struct format_file_header *h)
{
    return XXH3_64bits(h, offsetof(struct format_file_header, checksum));
}

uint64_t checksum_chunk(const struct format_chunk_header *h, const void *payload)
{
    /* the header's own hash seeds the payload's: one pass over each, no copy */
    uint64_t seed = XXH3_64bits(h, offsetof(struct format_chunk_header, checksum));
    return XXH3_64bits_withSeed(payload, h->stored_bytes, seed);
}
