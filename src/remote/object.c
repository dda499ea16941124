/* Python objects read from outside: strings so far. */
#include "base/buf.h"
#include "base/err.h"
#include "remote/internal.h"

static void put_utf8(struct buf *b, uint32_t c)
{
    if (c >= 0xd800 && c < 0xe000) /* a lone surrogate has no UTF-8 */
        c = 0xfffd;
    if (c < 0x80) {
        buf_put_u8(b, (uint8_t)c);
    } else if (c < 0x800) {
        buf_put_u8(b, (uint8_t)(0xc0 | c >> 6));
        buf_put_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buf_put_u8(b, (uint8_t)(0xe0 | c >> 12));
        buf_put_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        buf_put_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
    } else if (c < 0x110000) {
        buf_put_u8(b, (uint8_t)(0xf0 | c >> 18));
        buf_put_u8(b, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
        buf_put_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        buf_put_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
    }
}

static char *to_utf8(const uint8_t *data, size_t count, unsigned kind)
{
    struct buf b;
    buf_init(&b, count * 4 + 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t c = kind == 1   ? data[i]
                     : kind == 2 ? (uint32_t)data[2 * i] | (uint32_t)data[2 * i + 1] << 8
                                 : field_u32(data, (uint32_t)(4 * i));
        put_utf8(&b, c);
    }
    return buf_detach(&b);
}

char *object_read_str(const struct remote *r, uint64_t addr, size_t max)
{
    const struct pylayout *l = &r->layout;
    uint8_t head[128];
    if (!mem_plausible(addr) || l->unicode.compact_size > sizeof head ||
        mem_read(&r->mem, addr, head, l->unicode.ascii_size) < 0)
        return NULL;
    uint64_t length = field_u64(head, l->unicode.length);
    uint32_t state = field_u32(head, l->unicode.state);
    unsigned kind = state >> l->unicode.state_kind_shift & 7;
    bool compact = state >> (l->unicode.state_kind_shift + 3) & 1;
    bool ascii = state >> (l->unicode.state_kind_shift + 4) & 1;
    if (!compact || (kind != 1 && kind != 2 && kind != 4) || length > (1ull << 40))
        return NULL;
    size_t count = min_u64(length, max / 4);
    uint8_t *data = malloc(count * kind + 1);
    uint64_t at = addr + (ascii ? l->unicode.ascii_size : l->unicode.compact_size);
    char *text = NULL;
    if (data && (count == 0 || mem_read(&r->mem, at, data, count * kind) == 0))
        text = to_utf8(data, count, kind);
    free(data);
    return text;
}
