/* The reader: recursive by nature of the format, to MARSHAL_MAX_DEPTH. A container's items are
 * gathered on a stack of indices and moved behind one another once it is whole. */
#include "profile/marshal.h"

#include "base/err.h"

#include <math.h>

/* Letters of the format, as CPython's marshal.c has them. */
enum {
    FLAG_REF = 0x80,
    LONG_DIGIT_BITS = 15,
    LONG_MAX_DIGITS = 64, /* far more than any count of calls */
    UNFINISHED = UINT32_MAX,
};

struct reading {
    struct marshal *m;
    const uint8_t *at, *end;
    VEC(uint32_t) refs;     /* values by number of reference; UNFINISHED while being read */
    VEC(uint32_t) interned; /* of Python 2, by number of string reference */
    VEC(uint32_t) open;     /* items of containers being read */
    unsigned depth;
};

static int read_value(struct reading *r, uint32_t *ret, bool *ret_end);

static int take(struct reading *r, size_t n, const uint8_t **ret)
{
    if ((size_t)(r->end - r->at) < n)
        return E_BADPSTATS;
    *ret = r->at;
    r->at += n;
    return 0;
}

static int take_u32(struct reading *r, uint32_t *ret)
{
    const uint8_t *p;
    int rc = take(r, 4, &p);
    if (rc == 0)
        *ret = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return rc;
}

static int add_value(struct reading *r, struct marshal_value value, uint32_t *ret)
{
    struct marshal_value *slot = vec_push(&r->m->values);
    if (!slot)
        return E_NOMEM;
    *slot = value;
    *ret = (uint32_t)r->m->values.len - 1;
    return r->m->values.len >= UNFINISHED ? E_LIMIT : 0;
}

static int add_number(struct reading *r, double number, uint32_t *ret)
{
    struct marshal_value v = {.kind = MARSHAL_NUMBER, .number = isfinite(number) ? number : 0};
    return add_value(r, v, ret);
}

/* --- scalars --- */

static int read_text(struct reading *r, bool is_short, uint32_t *ret)
{
    uint32_t len = 0;
    const uint8_t *p;
    int rc = is_short ? take(r, 1, &p) : take_u32(r, &len);
    if (rc < 0)
        return rc;
    if (is_short)
        len = *p;
    rc = take(r, len, &p);
    if (rc < 0)
        return rc;
    struct marshal_value v = {.kind = MARSHAL_TEXT, .count = len, .text = (const char *)p};
    return add_value(r, v, ret);
}

/* 15 bits a digit, low digits first; the sign is the count's. */
static int read_long(struct reading *r, uint32_t *ret)
{
    uint32_t n;
    const uint8_t *p;
    int rc = take_u32(r, &n);
    if (rc < 0)
        return rc;
    bool negative = n >> 31;
    n = negative ? 0u - n : n;
    if (n > LONG_MAX_DIGITS)
        return E_BADPSTATS;
    rc = take(r, (size_t)n * 2, &p);
    if (rc < 0)
        return rc;
    double v = 0;
    for (uint32_t i = n; i-- > 0;)
        v = ldexp(v, LONG_DIGIT_BITS) + (double)(p[(size_t)2 * i] | p[(size_t)2 * i + 1] << 8);
    return add_number(r, negative ? -v : v, ret);
}

/* Version 0 and 1 wrote floats as text. */
static int read_text_float(struct reading *r, uint32_t *ret)
{
    char text[256] = "";
    const uint8_t *p = NULL, *digits = NULL;
    int rc = take(r, 1, &p);
    if (rc == 0)
        rc = take(r, *p, &digits);
    if (rc != 0)
        return rc;
    memcpy(text, digits, *p);
    return add_number(r, strtod(text, NULL), ret);
}

static int read_float(struct reading *r, uint32_t *ret)
{
    const uint8_t *p;
    double v;
    int rc = take(r, sizeof v, &p);
    if (rc < 0)
        return rc;
    memcpy(&v, p, sizeof v);
    return add_number(r, v, ret);
}

static int read_int(struct reading *r, uint32_t *ret)
{
    uint32_t v;
    int rc = take_u32(r, &v);
    return rc < 0 ? rc : add_number(r, (double)(int32_t)v, ret);
}

static int read_int64(struct reading *r, uint32_t *ret)
{
    uint32_t low = 0, high = 0;
    int rc = take_u32(r, &low);
    if (rc == 0)
        rc = take_u32(r, &high);
    if (rc < 0)
        return rc;
    return add_number(r, (double)(int64_t)((uint64_t)high << 32 | low), ret);
}

static int look_up(struct reading *r, const uint32_t *table, size_t count, uint32_t *ret)
{
    uint32_t n;
    int rc = take_u32(r, &n);
    if (rc < 0)
        return rc;
    if (n >= count || table[n] == UNFINISHED)
        return E_BADPSTATS;
    *ret = table[n];
    return 0;
}

/* --- containers --- */

/* Moves the items from `from` on behind the others and makes a row of them. */
static int close_row(struct reading *r, size_t from, uint32_t *ret)
{
    struct marshal *m = r->m;
    size_t n = r->open.len - from;
    struct marshal_value v = {.kind = MARSHAL_ROW, .count = (uint32_t)n, .first = m->items.len};
    if (!vec_reserve(&m->items, m->items.len + n + 1))
        return E_NOMEM;
    if (n)
        memcpy(m->items.data + m->items.len, r->open.data + from, n * sizeof *m->items.data);
    m->items.len += n;
    r->open.len = from;
    return add_value(r, v, ret);
}

static int read_item(struct reading *r, bool *ret_end)
{
    uint32_t value = 0;
    int rc = read_value(r, &value, ret_end);
    if (rc < 0 || *ret_end)
        return rc;
    uint32_t *slot = vec_push(&r->open);
    if (!slot)
        return E_NOMEM;
    *slot = value;
    return 0;
}

static int read_row(struct reading *r, bool is_short, uint32_t *ret)
{
    uint32_t n = 0;
    const uint8_t *p;
    int rc = is_short ? take(r, 1, &p) : take_u32(r, &n);
    if (rc < 0)
        return rc;
    if (is_short)
        n = *p;
    if (n > (size_t)(r->end - r->at))
        return E_BADPSTATS; /* an item takes a byte at least */
    size_t from = r->open.len;
    for (uint32_t i = 0; i < n; i++) {
        bool end = false;
        rc = read_item(r, &end);
        if (rc < 0 || end)
            return rc < 0 ? rc : E_BADPSTATS;
    }
    return close_row(r, from, ret);
}

/* Keys and values in turn, ended by a null in place of a key. */
static int read_dict(struct reading *r, uint32_t *ret)
{
    size_t from = r->open.len;
    for (;;) {
        bool end = false;
        int rc = read_item(r, &end);
        if (rc < 0)
            return rc;
        if (end)
            return close_row(r, from, ret);
        rc = read_item(r, &end);
        if (rc < 0 || end)
            return rc < 0 ? rc : E_BADPSTATS;
    }
}

/* --- any value --- */

static int read_kind(struct reading *r, char kind, uint32_t *ret)
{
    switch (kind) {
    case 'N':
        return add_value(r, (struct marshal_value){.kind = MARSHAL_NONE}, ret);
    case 'F':
    case 'T':
        return add_number(r, kind == 'T', ret);
    case 'i':
        return read_int(r, ret);
    case 'I':
        return read_int64(r, ret);
    case 'l':
        return read_long(r, ret);
    case 'f':
        return read_text_float(r, ret);
    case 'g':
        return read_float(r, ret);
    case 's':
    case 't':
    case 'u':
    case 'a':
    case 'A':
        return read_text(r, false, ret);
    case 'z':
    case 'Z':
        return read_text(r, true, ret);
    case '(':
    case '[':
        return read_row(r, false, ret);
    case ')':
        return read_row(r, true, ret);
    case '{':
        return read_dict(r, ret);
    default:
        return E_BADPSTATS;
    }
}

static int read_flagged(struct reading *r, uint8_t byte, uint32_t *ret)
{
    size_t ref = r->refs.len;
    bool is_ref = byte & FLAG_REF;
    if (is_ref) {
        uint32_t *slot = vec_push(&r->refs);
        if (!slot)
            return E_NOMEM;
        *slot = UNFINISHED;
    }
    int rc = read_kind(r, (char)(byte & ~FLAG_REF), ret);
    if (rc < 0)
        return rc;
    if (is_ref)
        r->refs.data[ref] = *ret;
    if (byte == 't') { /* Python 2: numbered for string references */
        uint32_t *slot = vec_push(&r->interned);
        if (!slot)
            return E_NOMEM;
        *slot = *ret;
    }
    return 0;
}

/* `ret_end` tells that a null stood there, the end of a dict. */
static int read_value(struct reading *r, uint32_t *ret, bool *ret_end)
{
    const uint8_t *p;
    int rc = take(r, 1, &p);
    if (rc < 0)
        return rc;
    if (*p == '0') {
        *ret_end = true;
        return 0;
    }
    if (*p == 'r')
        return look_up(r, r->refs.data, r->refs.len, ret);
    if (*p == 'R')
        return look_up(r, r->interned.data, r->interned.len, ret);
    if (r->depth == MARSHAL_MAX_DEPTH)
        return E_BADPSTATS;
    r->depth++;
    rc = read_flagged(r, *p, ret);
    r->depth--;
    return rc;
}

int marshal_init(struct marshal *m, const void *data, size_t len)
{
    *m = (struct marshal){0};
    struct reading r = {.m = m, .at = data, .end = (const uint8_t *)data + len};
    bool end = false;
    int rc = read_value(&r, &m->root, &end);
    if (rc == 0 && (end || r.at != r.end))
        rc = E_BADPSTATS;
    vec_release(&r.refs);
    vec_release(&r.interned);
    vec_release(&r.open);
    if (rc < 0)
        marshal_release(m);
    return rc;
}

void marshal_release(struct marshal *m)
{
    vec_release(&m->values);
    vec_release(&m->items);
}
