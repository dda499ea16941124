/* Reading hostile bytes: what every decoder of a payload is made of. Inside src/format only. */
#ifndef PYROMETER_FORMAT_CURSOR_H
#define PYROMETER_FORMAT_CURSOR_H

#include "base/attr.h"
#include "format/format.h"

#include <stdbool.h>

/* A position in hostile bytes. Fields are taken in statements of their own: the order of initialisers
 * is not C's to promise. Reading past the end sets `bad` and yields zeros, so a decoder reads a
 * whole record and asks once. */
struct cursor {
    const uint8_t *p;
    const uint8_t *end;
    bool bad;
};

/* Of eight bytes those up to the first that ends a number, seven bits each; *ret_bytes of them, 0 if
 * none ends it. Pairs, then fours, then all of the bytes move together. */
static inline uint64_t take_varint_word(const uint8_t *p, unsigned *ret_bytes)
{
    uint64_t w;
    __builtin_memcpy(&w, p, sizeof w);
    uint64_t ends = ~w & 0x8080808080808080u;
    if (unlikely(!ends)) {
        *ret_bytes = 0;
        return 0;
    }
    *ret_bytes = (unsigned)__builtin_ctzll(ends) / 8 + 1;
    w &= (ends ^ (ends - 1)) & 0x7f7f7f7f7f7f7f7fu;
    w = (w & 0x007f007f007f007fu) | (w & 0x7f007f007f007f00u) >> 1;
    w = (w & 0x00003fff00003fffu) | (w & 0x3fff00003fff0000u) >> 2;
    return (w & 0x000000000fffffffu) | (w & 0x0fffffff00000000u) >> 4;
}

static inline uint64_t get_varint_slow(struct cursor *c)
{
    uint64_t v = 0;
    if (likely(c->end - c->p >= 8)) {
        unsigned bytes;
        v = take_varint_word(c->p, &bytes);
        c->p += bytes;
        if (likely(bytes))
            return v;
    }
    for (unsigned shift = 0; shift < 64 && c->p < c->end; shift += 7) {
        uint8_t byte = *c->p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    c->bad = true;
    return 0;
}

static inline uint64_t get_varint(struct cursor *c)
{
    if (likely(c->p < c->end && *c->p < 0x80))
        return *c->p++;
    return get_varint_slow(c);
}

static inline int64_t get_svarint(struct cursor *c)
{
    uint64_t v = get_varint(c);
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline uint8_t get_u8(struct cursor *c)
{
    if (likely(c->p < c->end))
        return *c->p++;
    c->bad = true;
    return 0;
}

/* A varint that must fit 32 bits. */
static inline uint32_t get_u32(struct cursor *c)
{
    uint64_t v = get_varint(c);
    if (unlikely(v > UINT32_MAX)) {
        c->bad = true;
        return 0;
    }
    return (uint32_t)v;
}

/* An id: bounded, so that a table indexed by it stays of sane size. */
static inline uint32_t get_id(struct cursor *c)
{
    uint32_t v = get_u32(c);
    if (unlikely(v >= FORMAT_MAX_IDS)) {
        c->bad = true;
        return 0;
    }
    return v;
}

static inline const char *get_text(struct cursor *c, size_t *ret_len)
{
    uint64_t len = get_varint(c);
    if (c->bad || len > FORMAT_MAX_STRING_BYTES || len > (uint64_t)(c->end - c->p)) {
        c->bad = true;
        *ret_len = 0;
        return "";
    }
    const char *text = (const char *)c->p;
    c->p += len;
    *ret_len = (size_t)len;
    return text;
}

#endif
