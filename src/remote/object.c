/* Python objects read from outside: types, texts, numbers, sequences. Dicts are in dict.c. */
#include "remote/object.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

#include <string.h>

enum {
    HEAD_MAX = 128,      /* bytes of the fixed part of any object that is read at once */
    TYPE_HEAD_MAX = 512, /* of a type */
    PAGE = 4096,         /* a text without a length is read up to the end of its page */
};
#define MAX_LENGTH (1ull << 40) /* of anything: no object is larger */

/* ---- types ---- */

/* A NUL-terminated text; E_BADMEM if there is none within `size` bytes. */
static int read_cstr(const struct remote *r, uint64_t addr, char *dst, size_t size)
{
    size_t have = 0;
    while (have < size) {
        size_t step = min_u64(size - have, PAGE - (addr + have) % PAGE);
        int rc = mem_read(&r->mem, addr + have, dst + have, step);
        if (rc < 0)
            return rc;
        if (memchr(dst + have, 0, step))
            return 0;
        have += step;
    }
    dst[size - 1] = 0; /* a long name keeps its beginning */
    return 0;
}

static int read_type_head(const struct remote *r, uint64_t type, uint8_t head[TYPE_HEAD_MAX])
{
    uint32_t size = r->layout.type.size;
    if (!mem_plausible(type) || size > TYPE_HEAD_MAX || size < r->layout.type.tp_dictoffset + 8)
        return E_BADMEM;
    return mem_read(&r->mem, type, head, size);
}

/* What a pointer to garbage gives is caught here: the type of a type must be a type's type. */
int object_read_type_at(const struct remote *r, uint64_t type, struct object_type *ret)
{
    const struct pylayout *l = &r->layout;
    uint8_t head[TYPE_HEAD_MAX], meta[TYPE_HEAD_MAX];
    int rc = read_type_head(r, type, head);
    if (rc == 0)
        rc = read_type_head(r, field_u64(head, l->object.ob_type), meta);
    if (rc < 0)
        return rc;
    if (!(field_u64(meta, l->type.tp_flags) & OBJECT_FLAG_TYPE))
        return E_BADMEM;
    struct object_type t = {
        .addr = type,
        .flags = field_u64(head, l->type.tp_flags),
        .basicsize = (int64_t)field_u64(head, l->type.tp_basicsize),
        .itemsize = (int64_t)field_u64(head, l->type.tp_itemsize),
        .dictoffset = (int64_t)field_u64(head, l->type.tp_dictoffset),
    };
    uint64_t name = field_u64(head, l->type.tp_name);
    rc = name ? read_cstr(r, name, t.name, sizeof t.name) : E_BADMEM;
    if (rc < 0)
        return rc;
    *ret = t;
    return 0;
}

int object_read_type(const struct remote *r, uint64_t addr, struct object_type *ret)
{
    uint64_t type;
    int rc = mem_plausible(addr) ? mem_read_ptr(&r->mem, addr + r->layout.object.ob_type, &type)
                                 : E_BADMEM;
    return rc < 0 ? rc : object_read_type_at(r, type, ret);
}

/* ---- str ---- */

struct text {
    uint64_t length; /* characters */
    uint64_t data;   /* address */
    unsigned kind;   /* bytes a character */
};

static int read_text_head(const struct remote *r, uint64_t addr, struct text *ret)
{
    const struct pylayout *l = &r->layout;
    uint8_t head[HEAD_MAX];
    if (!mem_plausible(addr) || l->unicode.compact_size > sizeof head)
        return E_BADMEM;
    int rc = mem_read(&r->mem, addr, head, l->unicode.ascii_size);
    if (rc < 0)
        return rc;
    uint32_t state = field_u32(head, l->unicode.state);
    unsigned kind = state >> l->unicode.state_kind_shift & 7;
    bool compact = state >> (l->unicode.state_kind_shift + 3) & 1;
    bool ascii = state >> (l->unicode.state_kind_shift + 4) & 1;
    uint64_t length = field_u64(head, l->unicode.length);
    if (!compact || (kind != 1 && kind != 2 && kind != 4) || length > MAX_LENGTH)
        return E_BADMEM;
    *ret = (struct text){
        .length = length,
        .data = addr + (ascii ? l->unicode.ascii_size : l->unicode.compact_size),
        .kind = kind,
    };
    return 0;
}

static uint32_t char_at(const uint8_t *data, size_t i, unsigned kind)
{
    return kind == 1   ? data[i]
           : kind == 2 ? (uint32_t)data[2 * i] | (uint32_t)data[2 * i + 1] << 8
                       : field_u32(data, (uint32_t)(4 * i));
}

void object_put_utf8(struct buf *b, uint32_t c)
{
    char bytes[4];
    buf_append(b, bytes, utf8_encode(c, bytes));
}

static char *to_utf8(const uint8_t *data, size_t count, unsigned kind, size_t *ret_len)
{
    struct buf b;
    buf_init(&b, count * 4 + 1);
    for (size_t i = 0; i < count; i++) {
        char bytes[4];
        buf_append(&b, bytes, utf8_encode_name(char_at(data, i, kind), bytes));
    }
    *ret_len = b.len;
    return buf_detach(&b);
}

char *object_read_text(const struct remote *r, uint64_t addr, size_t max, size_t *ret_len)
{
    struct text t;
    if (read_text_head(r, addr, &t) < 0)
        return NULL;
    size_t count = min_u64(t.length, max / 4);
    uint8_t *data = malloc(count * t.kind + 1);
    char *text = NULL;
    if (data && (count == 0 || mem_read(&r->mem, t.data, data, count * t.kind) == 0))
        text = to_utf8(data, count, t.kind, ret_len);
    free(data);
    return text;
}

char *object_read_str(const struct remote *r, uint64_t addr, size_t max)
{
    size_t len;
    return object_read_text(r, addr, max, &len);
}

int object_read_chars(const struct remote *r, uint64_t addr, uint32_t *dst, size_t max,
                      size_t *ret_count, uint64_t *ret_length)
{
    struct text t;
    int rc = read_text_head(r, addr, &t);
    if (rc < 0)
        return rc;
    size_t count = min_u64(t.length, max);
    _cleanup_free_ uint8_t *data = malloc(count * t.kind + 1);
    if (!data)
        return E_NOMEM;
    rc = count ? mem_read(&r->mem, t.data, data, count * t.kind) : 0;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++)
        dst[i] = char_at(data, i, t.kind);
    *ret_count = count;
    *ret_length = t.length;
    return 0;
}

/* ---- bytes, tuple, list ---- */

int object_read_bytes(const struct remote *r, uint64_t addr, uint8_t *dst, size_t max,
                      size_t *ret_count, uint64_t *ret_length)
{
    uint64_t length;
    int rc = mem_plausible(addr) ? mem_read_ptr(&r->mem, addr + r->layout.bytes.ob_size, &length)
                                 : E_BADMEM;
    if (rc < 0 || length > MAX_LENGTH)
        return rc < 0 ? rc : E_BADMEM;
    size_t count = min_u64(length, max);
    rc = count ? mem_read(&r->mem, addr + r->layout.bytes.ob_sval, dst, count) : 0;
    if (rc < 0)
        return rc;
    *ret_count = count;
    *ret_length = length;
    return 0;
}

int object_read_tuple(const struct remote *r, uint64_t addr, uint64_t *ret_items,
                      uint64_t *ret_count)
{
    uint64_t count;
    int rc = mem_plausible(addr) ? mem_read_ptr(&r->mem, addr + r->layout.tuple.ob_size, &count)
                                 : E_BADMEM;
    if (rc < 0 || count > MAX_LENGTH)
        return rc < 0 ? rc : E_BADMEM;
    *ret_items = addr + r->layout.tuple.ob_item;
    *ret_count = count;
    return 0;
}

int object_read_list(const struct remote *r, uint64_t addr, uint64_t *ret_items,
                     uint64_t *ret_count)
{
    uint64_t count = 0, items = 0;
    int rc = mem_plausible(addr) ? mem_read_ptr(&r->mem, addr + r->layout.list.ob_size, &count)
                                 : E_BADMEM;
    if (rc == 0)
        rc = mem_read_ptr(&r->mem, addr + r->layout.list.ob_item, &items);
    if (rc < 0 || count > MAX_LENGTH || (count && !mem_plausible(items)))
        return rc < 0 ? rc : E_BADMEM;
    *ret_items = items;
    *ret_count = count;
    return 0;
}

/* ---- int ---- */

/* lv_tag (3.12+): the count of digits above three bits, of which two are the sign */
enum { TAG_SHIFT = 3, TAG_SIGN = 3, TAG_NEGATIVE = 2 };

int object_read_int(const struct remote *r, uint64_t addr, struct object_int *ret)
{
    const struct pylayout *l = &r->layout;
    uint64_t word;
    int rc =
        mem_plausible(addr) ? mem_read_ptr(&r->mem, addr + l->long_.size_or_tag, &word) : E_BADMEM;
    if (rc < 0)
        return rc;
    struct object_int n = {0};
    if (l->long_.tagged) {
        n.count = word >> TAG_SHIFT;
        n.negative = (word & TAG_SIGN) == TAG_NEGATIVE;
    } else {
        n.negative = (int64_t)word < 0;
        n.count = n.negative ? -word : word;
    }
    if (n.count > MAX_LENGTH)
        return E_BADMEM;
    uint64_t digits = addr + l->long_.digits;
    size_t size = sizeof n.digits[0];
    if (n.count)
        rc = mem_read(&r->mem, digits + (n.count - 1) * size, &n.top, size);
    if (rc == 0 && n.count && n.count <= OBJECT_INT_DIGITS_MAX)
        rc = mem_read(&r->mem, digits, n.digits, n.count * size);
    if (rc < 0)
        return rc;
    *ret = n;
    return 0;
}
