/* Values of builtin types as text. One function a type, in a table by the type's name; a builtin
 * type is a static one, which no class statement can forge.
 *
 * Cycles end by depth, and the whole by its length: each item prints at least a character, so no
 * structure however wide can make this read more than REPR_MAX_BYTES values. */
#include "remote/repr.h"

#include "base/err.h"
#include "remote/object.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    INT_BASE_BITS = 30,
    DECIMAL_STEP = 1000000000,
    DECIMAL_PARTS = 21,        /* OBJECT_INT_DIGITS_MAX digits of 30 bits, in parts of 9 decimals */
    FLOAT_MAX_PRECISION = 17,  /* decimals that tell any two doubles apart */
    FLOAT_FIXED_EXPONENT = 16, /* from 1e16 on repr() uses an exponent */
    SET_SLOTS_MAX = 1 << 16,   /* of a set's table that are looked at */
    SET_CHUNK = 64,
    SET_ENTRY = 16, /* key, hash */
};

struct repr {
    const struct remote *r;
    struct buf *out;
    size_t end; /* length of `out` that must not be passed, dots not counted */
    bool full;
};

static void put_n(struct repr *s, const char *text, size_t len)
{
    if (s->full)
        return;
    if (s->out->len + len > s->end) {
        s->full = true;
        buf_puts(s->out, "...");
        return;
    }
    buf_append(s->out, text, len);
}

static void put(struct repr *s, const char *text)
{
    put_n(s, text, strlen(text));
}

static void putf(struct repr *s, const char *fmt, ...) ATTR_PRINTF(2, 3);
static void putf(struct repr *s, const char *fmt, ...)
{
    char text[OBJECT_TYPE_NAME_MAX * 4 + 64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    put(s, text);
}

/* ---- texts ---- */

/* Characters that draw nothing of their own, or turn others round. */
static bool is_invisible(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || c == 0x61c ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f) ||
           (c >= 0x205f && c <= 0x206f) || (c >= 0xd800 && c <= 0xf8ff) || c == 0xfeff ||
           (c >= 0xfff0 && c <= 0xfffb) || (c & 0xfffe) == 0xfffe ||
           (c >= 0xe0000 && c <= 0x10ffff);
}

static void put_char(struct repr *s, uint32_t c, char quote)
{
    static const char letters[] = "\nn\rr\tt\\\\";
    if (c == (unsigned char)quote) {
        putf(s, "\\%c", quote);
        return;
    }
    for (const char *p = letters; *p; p += 2) {
        if ((unsigned char)*p == c) {
            putf(s, "\\%c", p[1]);
            return;
        }
    }
    if (is_invisible(c)) {
        putf(s, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        return;
    }
    if (c > 0x10ffff) {
        put(s, "\\?");
        return;
    }
    struct buf one;
    buf_init(&one, 8);
    object_put_utf8(&one, c);
    put_n(s, (const char *)one.data, one.len);
    buf_release(&one);
}

static void put_quoted(struct repr *s, const uint32_t *chars, size_t count, bool is_bytes)
{
    bool single = false, twofold = false;
    for (size_t i = 0; i < count; i++) {
        single |= chars[i] == '\'';
        twofold |= chars[i] == '"';
    }
    char quote = single && !twofold ? '"' : '\'';
    putf(s, "%s%c", is_bytes ? "b" : "", quote);
    for (size_t i = 0; i < count && !s->full; i++) {
        if (is_bytes && chars[i] >= 0x7f)
            putf(s, "\\x%02x", chars[i]);
        else
            put_char(s, chars[i], quote);
    }
    putf(s, "%c", quote);
}

static int repr_str(struct repr *s, uint64_t addr, unsigned depth)
{
    (void)depth;
    uint32_t chars[REPR_MAX_CHARS];
    size_t count;
    uint64_t length;
    int rc = object_read_chars(s->r, addr, chars, ARRAY_LEN(chars), &count, &length);
    if (rc < 0)
        return rc;
    put_quoted(s, chars, count, false);
    if (count < length)
        put(s, "...");
    return 0;
}

static void put_bytes(struct repr *s, const uint8_t *bytes, size_t count, uint64_t length)
{
    uint32_t chars[REPR_MAX_CHARS];
    for (size_t i = 0; i < count; i++)
        chars[i] = bytes[i];
    put_quoted(s, chars, count, true);
    if (count < length)
        put(s, "...");
}

static int repr_bytes(struct repr *s, uint64_t addr, unsigned depth)
{
    (void)depth;
    uint8_t bytes[REPR_MAX_CHARS];
    size_t count;
    uint64_t length;
    int rc = object_read_bytes(s->r, addr, bytes, sizeof bytes, &count, &length);
    if (rc == 0)
        put_bytes(s, bytes, count, length);
    return rc;
}

static int repr_bytearray(struct repr *s, uint64_t addr, unsigned depth)
{
    (void)depth;
    uint64_t head[4]; /* size, room, where that begins, where the bytes do: in every version */
    uint8_t bytes[REPR_MAX_CHARS];
    int rc = mem_read(&s->r->mem, addr + s->r->layout.bytes.ob_size, head, sizeof head);
    size_t count = rc < 0 ? 0 : min_u64(head[0], sizeof bytes);
    if (count)
        rc = mem_read(&s->r->mem, head[3], bytes, count);
    if (rc < 0)
        return rc;
    put(s, "bytearray(");
    put_bytes(s, bytes, count, head[0]);
    put(s, ")");
    return 0;
}

/* ---- numbers ---- */

static int repr_bool(struct repr *s, uint64_t addr, unsigned depth)
{
    (void)depth;
    struct object_int n;
    int rc = object_read_int(s->r, addr, &n);
    if (rc < 0)
        return rc;
    put(s, n.count && n.top ? "True" : "False");
    return 0;
}

/* From digits of 30 bits to parts of nine decimals, lowest first; destroys the digits. */
static size_t to_decimal(struct object_int *n, uint32_t parts[DECIMAL_PARTS])
{
    size_t count = 0;
    while (n->count && count < DECIMAL_PARTS) {
        uint64_t rest = 0;
        for (size_t i = n->count; i-- > 0;) {
            rest = rest << INT_BASE_BITS | (n->digits[i] & ((1u << INT_BASE_BITS) - 1));
            n->digits[i] = (uint32_t)(rest / DECIMAL_STEP);
            rest %= DECIMAL_STEP;
        }
        parts[count++] = (uint32_t)rest;
        while (n->count && !n->digits[n->count - 1])
            n->count--;
    }
    return count;
}

static int repr_int(struct repr *s, uint64_t addr, unsigned depth)
{
    (void)depth;
    struct object_int n;
    int rc = object_read_int(s->r, addr, &n);
    if (rc < 0)
        return rc;
    if (n.count > OBJECT_INT_DIGITS_MAX) {
        unsigned top_bits = n.top ? 32u - (unsigned)__builtin_clz(n.top) : 0;
        unsigned long long bits = (n.count - 1) * INT_BASE_BITS + top_bits;
        putf(s, "<%sint of %llu bits>", n.negative ? "negative " : "", bits);
        return 0;
    }
    uint32_t parts[DECIMAL_PARTS];
    size_t count = to_decimal(&n, parts);
    char text[DECIMAL_PARTS * 9 + 16];
    int len =
        snprintf(text, sizeof text, "%s%u", n.negative ? "-" : "", count ? parts[count - 1] : 0);
    while (count > 1)
        len += snprintf(text + len, sizeof text - (size_t)len, "%09u", parts[--count - 1]);
    put(s, text);
    return 0;
}

/* The shortest decimals that give the same double again, in repr()'s form, with at least so many behind the point. */
static void put_float(struct repr *s, double v, int least)
{
    char text[64];
    if (!isfinite(v)) {
        put(s, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    int precision = 0;
    do
        snprintf(text, sizeof text, "%.*e", precision, v);
    while (strtod(text, NULL) != v && ++precision < FLOAT_MAX_PRECISION);
    const char *e = strchr(text, 'e');
    int exponent = e ? atoi(e + 1) : 0;
    if (exponent >= -4 && exponent < FLOAT_FIXED_EXPONENT) {
        int decimals = precision - exponent;
        snprintf(text, sizeof text, "%.*f", decimals > least ? decimals : least, v);
    }
    put(s, text);
}

static int repr_float(struct repr *s, uint64_t addr, unsigned depth)
{
    (void)depth;
    double v;
    int rc = mem_read(&s->r->mem, addr + s->r->layout.float_.ob_fval, &v, sizeof v);
    if (rc == 0)
        put_float(s, v, 1);
    return rc;
}

static int repr_complex(struct repr *s, uint64_t addr, unsigned depth)
{
    (void)depth;
    double v[2]; /* where a float has its one */
    int rc = mem_read(&s->r->mem, addr + s->r->layout.float_.ob_fval, v, sizeof v);
    if (rc < 0)
        return rc;
    bool both = v[0] != 0 || signbit(v[0]);
    if (both) {
        put(s, "(");
        put_float(s, v[0], 0);
        put(s, signbit(v[1]) && !isnan(v[1]) ? "" : "+");
    }
    put_float(s, v[1], 0);
    put(s, both ? "j)" : "j");
    return 0;
}

/* ---- containers ---- */

static void value(struct repr *s, uint64_t addr, unsigned depth);

static int items(struct repr *s, uint64_t first, uint64_t count, unsigned depth)
{
    uint64_t pointers[REPR_MAX_ITEMS];
    size_t n = min_u64(count, REPR_MAX_ITEMS);
    int rc = n ? mem_read(&s->r->mem, first, pointers, n * sizeof pointers[0]) : 0;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n && !s->full; i++) {
        if (i)
            put(s, ", ");
        value(s, pointers[i], depth + 1);
    }
    if (n < count)
        put(s, ", ...");
    return 0;
}

static int repr_list(struct repr *s, uint64_t addr, unsigned depth)
{
    uint64_t first, count;
    int rc = object_read_list(s->r, addr, &first, &count);
    if (rc < 0)
        return rc;
    if (count && depth >= REPR_MAX_DEPTH) {
        put(s, "[...]");
        return 0;
    }
    put(s, "[");
    rc = items(s, first, count, depth);
    put(s, rc < 0 ? REPR_UNREADABLE "]" : "]");
    return 0;
}

static int repr_tuple(struct repr *s, uint64_t addr, unsigned depth)
{
    uint64_t first, count;
    int rc = object_read_tuple(s->r, addr, &first, &count);
    if (rc < 0)
        return rc;
    if (count && depth >= REPR_MAX_DEPTH) {
        put(s, "(...)");
        return 0;
    }
    put(s, "(");
    rc = items(s, first, count, depth);
    put(s, rc < 0 ? REPR_UNREADABLE ")" : count == 1 ? ",)" : ")");
    return 0;
}

/* Three objects behind the head: begin, end and step. */
static int repr_bounds(struct repr *s, uint64_t addr, unsigned depth, const char *name, bool all)
{
    uint64_t bounds[3];
    struct object_int step;
    int rc = mem_read(&s->r->mem, addr + s->r->layout.float_.ob_fval, bounds, sizeof bounds);
    if (rc < 0)
        return rc;
    if (!all) /* a step of one goes without saying */
        all = object_read_int(s->r, bounds[2], &step) < 0 || step.negative || step.count != 1 ||
              step.top != 1;
    put(s, name);
    for (size_t i = 0; i < (all ? 3 : 2) && !s->full; i++) {
        put(s, i ? ", " : "(");
        value(s, bounds[i], depth + 1);
    }
    put(s, ")");
    return 0;
}

static int repr_range(struct repr *s, uint64_t addr, unsigned depth)
{
    return repr_bounds(s, addr, depth, "range", false);
}

static int repr_slice(struct repr *s, uint64_t addr, unsigned depth)
{
    return repr_bounds(s, addr, depth, "slice", true);
}

static int repr_dict(struct repr *s, uint64_t addr, unsigned depth)
{
    struct object_dict_cursor c = {0};
    struct object_item item;
    int rc = object_dict_open(s->r, addr, &c.dict);
    if (rc < 0)
        return rc;
    put(s, "{");
    for (size_t n = 0; !s->full && object_dict_next(s->r, &c, &item); n++) {
        if (depth >= REPR_MAX_DEPTH || n == REPR_MAX_ITEMS) {
            put(s, n ? ", ..." : "...");
            break;
        }
        if (n)
            put(s, ", ");
        value(s, item.key, depth + 1);
        put(s, ": ");
        value(s, item.value, depth + 1);
    }
    put(s, "}");
    return 0;
}

/* The keys of a set in the order of its table; entry: key, hash; hash -1: deleted. */
static int set_items(struct repr *s, uint64_t table, uint64_t slots, unsigned depth)
{
    uint64_t entries[SET_CHUNK][2];
    size_t n = 0;
    for (uint64_t at = 0; at < slots && !s->full; at += SET_CHUNK) {
        size_t have = min_u64(slots - at, SET_CHUNK);
        int rc = mem_read(&s->r->mem, table + at * SET_ENTRY, entries, have * SET_ENTRY);
        if (rc < 0)
            return rc;
        for (size_t i = 0; i < have && !s->full; i++) {
            if (!entries[i][0] || entries[i][1] == UINT64_MAX)
                continue;
            if (n)
                put(s, ", ");
            if (n++ == REPR_MAX_ITEMS) {
                put(s, "...");
                return 0;
            }
            value(s, entries[i][0], depth + 1);
        }
    }
    return 0;
}

static int any_set(struct repr *s, uint64_t addr, unsigned depth, const char *begin,
                   const char *end, const char *empty)
{
    const struct pylayout *l = &s->r->layout;
    uint64_t used = 0, mask = 0, table = 0;
    int rc = mem_read_ptr(&s->r->mem, addr + l->set.used, &used);
    if (rc == 0)
        rc = mem_read_ptr(&s->r->mem, addr + l->set.mask, &mask);
    if (rc == 0)
        rc = mem_read_ptr(&s->r->mem, addr + l->set.table, &table);
    if (rc < 0 || (mask & (mask + 1)) || !mem_plausible(table))
        return rc < 0 ? rc : E_BADMEM;
    if (!used) {
        put(s, empty);
        return 0;
    }
    put(s, begin);
    if (depth >= REPR_MAX_DEPTH)
        put(s, "...");
    else if (set_items(s, table, min_u64(mask, SET_SLOTS_MAX) + 1, depth) < 0)
        put(s, REPR_UNREADABLE);
    put(s, end);
    return 0;
}

static int repr_set(struct repr *s, uint64_t addr, unsigned depth)
{
    return any_set(s, addr, depth, "{", "}", "set()");
}

static int repr_frozenset(struct repr *s, uint64_t addr, unsigned depth)
{
    return any_set(s, addr, depth, "frozenset({", "})", "frozenset()");
}

static int repr_module(struct repr *s, uint64_t addr, unsigned depth)
{
    uint64_t globals, name;
    struct object_dict d;
    struct object_type type;
    int rc = mem_read_ptr(&s->r->mem, addr + s->r->layout.module.md_dict, &globals);
    if (rc == 0)
        rc = object_dict_open(s->r, globals, &d);
    if (rc < 0)
        return rc;
    if (!object_dict_find_str(s->r, &d, "__name__", &name) ||
        object_read_type(s->r, name, &type) < 0 || !(type.flags & OBJECT_FLAG_STR))
        return E_BADMEM;
    put(s, "<module ");
    if (repr_str(s, name, depth) < 0)
        put(s, REPR_UNREADABLE);
    put(s, ">");
    return 0;
}

/* ---- all ---- */

static const struct {
    const char *type;
    int (*show)(struct repr *s, uint64_t addr, unsigned depth);
} builtins[] = {
    {"bool", repr_bool},
    {"int", repr_int},
    {"float", repr_float},
    {"complex", repr_complex},
    {"range", repr_range},
    {"slice", repr_slice},
    {"bytearray", repr_bytearray},
    {"str", repr_str},
    {"bytes", repr_bytes},
    {"list", repr_list},
    {"tuple", repr_tuple},
    {"dict", repr_dict},
    {"set", repr_set},
    {"frozenset", repr_frozenset},
    {"module", repr_module},
};

/* Types with one object. */
static const struct {
    const char *type, *text;
} singles[] = {
    {"NoneType", "None"},
    {"ellipsis", "Ellipsis"},
    {"NotImplementedType", "NotImplemented"},
};

/* Is it of a type of the interpreter's own? Then it is shown. */
static bool show_builtin(struct repr *s, uint64_t addr, const struct object_type *type,
                         unsigned depth)
{
    if (type->flags & OBJECT_FLAG_HEAP_TYPE)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(singles); i++)
        if (strcmp(type->name, singles[i].type) == 0) {
            put(s, singles[i].text);
            return true;
        }
    for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
        if (strcmp(type->name, builtins[i].type) == 0) {
            if (builtins[i].show(s, addr, depth) < 0)
                put(s, REPR_UNREADABLE);
            return true;
        }
    return false;
}

/* A type's name, which is the program's choice. */
static void put_type_name(struct repr *s, const char *name)
{
    for (const char *p = name; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == 0x7f)
            putf(s, "\\x%02x", c);
        else
            put_n(s, p, 1);
    }
}

static void value(struct repr *s, uint64_t addr, unsigned depth)
{
    struct object_type type;
    if (s->full)
        return;
    if (object_read_type(s->r, addr, &type) < 0) {
        put(s, REPR_UNREADABLE);
        return;
    }
    if (show_builtin(s, addr, &type, depth))
        return;
    struct object_type self;
    if (type.flags & OBJECT_FLAG_TYPE && object_read_type_at(s->r, addr, &self) == 0) {
        put(s, "<class '");
        put_type_name(s, self.name);
        put(s, "'>");
        return;
    }
    put(s, "<");
    put_type_name(s, type.name);
    putf(s, " object at 0x%llx>", (unsigned long long)addr);
}

void repr_object(const struct remote *r, uint64_t addr, struct buf *out)
{
    struct repr s = {.r = r, .out = out, .end = out->len + REPR_MAX_BYTES - 3};
    value(&s, addr, 0);
}
