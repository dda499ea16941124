/* Growing bytes, born with a maximum.
 *
 * Failure is sticky: once an append fails (no memory, past the maximum) the buffer keeps what it
 * had, every later append does nothing, and buf_error() tells. So a writer appends freely and
 * checks once. */
#ifndef PYROMETER_BASE_BUF_H
#define PYROMETER_BASE_BUF_H

#include "base/attr.h"

#include <stdbool.h>
#include <string.h>

struct buf {
    uint8_t *data; /* owned; NULL while empty */
    size_t len;
    size_t cap;
    size_t max; /* never grows past this */
    int error;  /* 0, E_NOMEM or E_LIMIT */
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);

/* Forgets the content and the error, keeps the memory. */
void buf_clear(struct buf *b);

/* Makes room for `extra` more bytes; false (and sticky error) if it cannot. */
bool buf_reserve(struct buf *b, size_t extra);

void buf_append(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *fmt, ...) ATTR_PRINTF(2, 3);

/* Ends the content with a NUL that is not counted and returns it; "" when nothing could be kept. */
const char *buf_cstr(struct buf *b);

/* Hands the NUL-terminated content over to the caller, who frees it; NULL on sticky error. */
char *buf_detach(struct buf *b);

static inline int buf_error(const struct buf *b)
{
    return b->error;
}

static inline void buf_put_u8(struct buf *b, uint8_t v)
{
    if (likely(b->len < b->cap && !b->error) || buf_reserve(b, 1))
        b->data[b->len++] = v;
}

/* LEB128: seven bits a byte, low bits first. */
enum { VARINT_MAX_BYTES = 10 };

static inline void buf_put_varint(struct buf *b, uint64_t v)
{
    if (unlikely(b->cap - b->len < VARINT_MAX_BYTES || b->error) &&
        !buf_reserve(b, VARINT_MAX_BYTES))
        return;
    uint8_t *p = b->data + b->len;
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    b->len = (size_t)(p - b->data);
}

/* Signed values by zigzag, so that small negative numbers stay small. */
static inline void buf_put_svarint(struct buf *b, int64_t v)
{
    buf_put_varint(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

#endif
