/* One step of UTF-8 decoding that trusts nothing: overlong forms, surrogates, values past U+10FFFF
 * and cut-off sequences are refused. Shared by everything that shows other people's text. */
#ifndef PYROMETER_BASE_UTF8_H
#define PYROMETER_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the character at `p` (`len` >= 1 bytes are there). Returns the number of bytes it takes
 * and writes it to *ret, or returns 0 if the first byte does not begin a valid character. */
static inline size_t utf8_decode(const char *p, size_t len, uint32_t *ret)
{
    const uint8_t *b = (const uint8_t *)p;
    if (b[0] < 0x80) {
        *ret = b[0];
        return 1;
    }
    size_t n = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
    if (b[0] < 0xc2 || b[0] > 0xf4 || n > len)
        return 0;
    uint32_t c = b[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (b[i] & 0x3fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret = c;
    return n;
}

/* A character as UTF-8: returns how many bytes. What is no character (a lone surrogate, past the last
 * one) stands as U+FFFD. */
static inline size_t utf8_encode(uint32_t c, char ret[4])
{
    if ((c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
        c = 0xfffd;
    if (c < 0x80) {
        ret[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; --i > 0; c >>= 6)
        ret[i] = (char)(0x80 | (c & 0x3f));
    ret[0] = (char)(0xf00u >> n | c); /* the high byte's marks: as many ones as bytes */
    return n;
}

/* The same for names from Python, which has bytes of file names that are no UTF-8 as lone surrogates ("surrogateescape"): they
 * become the bytes that they were, so that the file can be found and told from others. */
static inline size_t utf8_encode_name(uint32_t c, char ret[4])
{
    if (c < 0xdc80 || c > 0xdcff)
        return utf8_encode(c, ret);
    ret[0] = (char)(c & 0xff);
    return 1;
}

#endif
