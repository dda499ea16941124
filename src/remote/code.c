/* Lines from the three encodings CPython has had. Tables come from a hostile process: a decoder stops
 * at the end of its bytes and never loops on anything but them. */
#include "remote/code.h"

#include <stdbool.h>

/* 3.8, 3.9: pairs (bytecode delta, signed line delta); a pair covers from its address on. */
int32_t line_from_lnotab(const uint8_t *table, size_t len, int32_t first, int64_t offset)
{
    int64_t address = 0;
    uint32_t line = (uint32_t)first; /* unsigned: hostile deltas may wrap, not trap */
    for (size_t i = 0; i + 1 < len; i += 2) {
        address += table[i];
        if (address > offset)
            break;
        line += (uint32_t)(int8_t)table[i + 1];
    }
    return (int32_t)line;
}

/* 3.10: pairs (bytes covered, signed line delta); -128 says "these bytes have no line". */
int32_t line_from_pep626(const uint8_t *table, size_t len, int32_t first, int64_t offset)
{
    int64_t end = 0;
    uint32_t line = (uint32_t)first;
    for (size_t i = 0; i + 1 < len; i += 2) {
        int8_t delta = (int8_t)table[i + 1];
        bool none = delta == -128;
        if (!none)
            line += (uint32_t)delta;
        end += table[i];
        if (end > offset)
            return none ? 0 : (int32_t)line;
    }
    return 0;
}

/* A location varint: six bits a byte, low first, 0x40 = more follows. */
static uint32_t location_varint(const uint8_t **p, const uint8_t *end)
{
    uint32_t v = 0;
    for (unsigned shift = 0; *p < end && shift < 32; shift += 6) {
        uint8_t byte = *(*p)++;
        v |= (uint32_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40))
            break;
    }
    return v;
}

static int32_t location_svarint(const uint8_t **p, const uint8_t *end)
{
    uint32_t v = location_varint(p, end);
    return v & 1 ? -(int32_t)(v >> 1) : (int32_t)(v >> 1);
}

/* 3.11+: entries of a head byte (0x80 | kind << 3 | units - 1) and what its kind asks for. */
int32_t line_from_locations(const uint8_t *table, size_t len, int32_t first, int64_t offset)
{
    enum { KIND_LONG = 14, KIND_NO_COLUMNS = 13, KIND_NONE = 15, KIND_ONE_LINE0 = 10 };
    const uint8_t *p = table, *end = table + len;
    int64_t covered = 0;
    uint32_t line = (uint32_t)first;
    while (p < end) {
        uint8_t head = *p++;
        unsigned kind = (head >> 3) & 15;
        covered += 2 * ((int64_t)(head & 7) + 1);
        if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
            line += (uint32_t)location_svarint(&p, end);
        else if (kind >= KIND_ONE_LINE0 && kind < KIND_NO_COLUMNS)
            line += kind - KIND_ONE_LINE0;
        if (covered > offset)
            return kind == KIND_NONE ? 0 : (int32_t)line;
        while (p < end && !(*p & 0x80)) /* the rest of this entry: columns */
            p++;
    }
    return 0;
}

int32_t remote_code_line(const struct remote_code *c, int64_t byte_offset)
{
    int32_t first = (int32_t)c->first_line, line = 0;
    if (byte_offset < 0) /* not started yet: the line of the definition */
        return first;
    if (!c->lines)
        return 0;
    switch (c->encoding) {
    case PYL_LINES_LNOTAB:
        line = line_from_lnotab(c->lines, c->lines_len, first, byte_offset);
        break;
    case PYL_LINES_PEP626:
        line = line_from_pep626(c->lines, c->lines_len, first, byte_offset);
        break;
    case PYL_LINES_LOCATION:
        line = line_from_locations(c->lines, c->lines_len, first, byte_offset);
        break;
    }
    return line > 0 ? line : 0;
}
