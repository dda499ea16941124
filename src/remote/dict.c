/* Dicts and instance attributes read from outside.
 *
 * A key is found by going over all entries: the hash of a str depends on a secret of the target.
 * The keys of many entries are fetched by one call, so even a large sys.modules costs few of them.
 * The hash of an int is known, which saves reading its keys at all.
 *
 * A table is keys (PyDictKeysObject: a header, an index, the entries) and values: in the entries,
 * or, where instances of one class share their keys, in an array of their own ("split"). */
#include "remote/object.h"

#include "base/err.h"

#include <string.h>

enum {
    KEYS_HEAD_MAX = 64,
    MAX_LOG2_SIZE = 40,
    SPLIT_MAX = 1024,   /* entries of a split table; CPython stops at 30 (before 3.11: more) */
    GENERAL_ENTRY = 24, /* hash, key, value */
    UNICODE_ENTRY = 16, /* key, value */
    VALUES_HEAD = 8,    /* 3.13+: capacity, size, embedded, valid; then room up to the values */
    VALUES_VALID = 3,   /* the byte in it that says whether the values are in use */
    STR_HEAD_MAX = 64,
    WORD = 8,
};

/* hash(int) is the int modulo this prime, but for -1, which idents never are */
#define INT_HASH_MODULUS ((1ull << 61) - 1)

/* Where the values begin in what a split dict or an instance points to. */
static uint32_t values_offset(const struct remote *r)
{
    return r->layout.dict_kind == PYL_DICT_INLINE_313 ? VALUES_HEAD : 0;
}

/* Values there can be: keys that the class got later have no room in older instances. */
static uint64_t values_capacity(const struct remote *r, uint64_t values)
{
    uint8_t capacity = 0;
    if (!values_offset(r))
        return SPLIT_MAX;
    return mem_read(&r->mem, values - VALUES_HEAD, &capacity, 1) == 0 ? capacity : 0;
}

/* Bytes of the index of a table, where the header does not tell. */
static uint64_t index_bytes(uint64_t size)
{
    return size <= 0xff         ? size
           : size <= 0xffff     ? 2 * size
           : size <= 0xffffffff ? 4 * size
                                : 8 * size;
}

/* The table of keys at `keys`; `values` is the address of the first value, or 0. */
static int open_keys(const struct remote *r, uint64_t keys, uint64_t values,
                     struct object_dict *ret)
{
    const struct pylayout *l = &r->layout;
    uint8_t head[KEYS_HEAD_MAX];
    if (!mem_plausible(keys) || l->dictkeys.indices > sizeof head ||
        l->dictkeys.nentries + WORD > l->dictkeys.indices)
        return E_BADMEM;
    int rc = mem_read(&r->mem, keys, head, l->dictkeys.indices);
    if (rc < 0)
        return rc;
    uint64_t size, index;
    if (l->dictkeys.has_log2) {
        unsigned log2_size = head[l->dictkeys.log2_size];
        unsigned log2_index = head[l->dictkeys.log2_index_bytes];
        if (log2_size > MAX_LOG2_SIZE || log2_index > MAX_LOG2_SIZE + 3)
            return E_BADMEM;
        size = 1ull << log2_size;
        index = 1ull << log2_index;
    } else {
        size = field_u64(head, l->dictkeys.log2_size);
        if (size > 1ull << MAX_LOG2_SIZE)
            return E_BADMEM;
        index = index_bytes(size);
    }
    uint64_t count = field_u64(head, l->dictkeys.nentries);
    if (count > size)
        return E_BADMEM;
    if (values)
        count = min_u64(count, values_capacity(r, values));
    bool hashed = l->dictkeys.kind == PYL_NONE || head[l->dictkeys.kind] == 0;
    *ret = (struct object_dict){
        .entries = keys + l->dictkeys.indices + index,
        .count = min_u64(count, OBJECT_DICT_ENTRIES_MAX),
        .values = values,
        .stride = hashed ? GENERAL_ENTRY : UNICODE_ENTRY,
        .hashed = hashed,
    };
    return 0;
}

int object_dict_open(const struct remote *r, uint64_t addr, struct object_dict *ret)
{
    struct object_type type;
    uint64_t keys = 0, values = 0;
    int rc = object_read_type(r, addr, &type);
    if (rc == 0)
        rc = type.flags & OBJECT_FLAG_DICT ? 0 : E_BADMEM;
    if (rc == 0)
        rc = mem_read_ptr(&r->mem, addr + r->layout.dict.ma_keys, &keys);
    if (rc == 0)
        rc = mem_read_ptr(&r->mem, addr + r->layout.dict.ma_values, &values);
    if (rc < 0)
        return rc;
    return open_keys(r, keys, values ? values + values_offset(r) : 0, ret);
}

/* Reads the next entries; false at the end or where memory ends. */
static bool load_chunk(const struct remote *r, struct object_dict_cursor *c)
{
    const struct object_dict *d = &c->dict;
    uint8_t bytes[OBJECT_DICT_CHUNK * GENERAL_ENTRY];
    uint64_t values[OBJECT_DICT_CHUNK] = {0};
    c->at = c->have = 0;
    if (c->next >= d->count)
        return false;
    size_t n = min_u64(d->count - c->next, OBJECT_DICT_CHUNK);
    if (mem_read(&r->mem, d->entries + c->next * d->stride, bytes, n * d->stride) < 0)
        return false;
    if (d->values && mem_read(&r->mem, d->values + c->next * WORD, values, n * WORD) < 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *entry = bytes + i * d->stride;
        uint32_t key = d->hashed ? WORD : 0;
        c->items[i] = (struct object_item){
            .hash = d->hashed ? field_u64(entry, 0) : 0,
            .key = field_u64(entry, key),
            .value = d->values ? values[i] : field_u64(entry, key + WORD),
        };
    }
    c->have = n;
    c->next += n;
    return true;
}

bool object_dict_next(const struct remote *r, struct object_dict_cursor *c, struct object_item *ret)
{
    for (;;) {
        if (c->at == c->have && !load_chunk(r, c))
            return false;
        struct object_item item = c->items[c->at++];
        if (item.key && item.value) { /* else the entry was deleted, or that instance lacks it */
            *ret = item;
            return true;
        }
    }
}

/* ---- by name ---- */

/* Is the str whose first bytes were copied this ASCII name? */
static bool is_name(const struct remote *r, const uint8_t *head, const char *name, size_t len)
{
    const struct pylayout *l = &r->layout;
    bool ascii = field_u32(head, l->unicode.state) >> (l->unicode.state_kind_shift + 4) & 1;
    return ascii && field_u64(head, l->unicode.length) == len &&
           memcmp(head + l->unicode.ascii_size, name, len) == 0;
}

/* The keys of a chunk one by one, first the head, then as much as it says. */
static bool find_slowly(const struct remote *r, const struct object_dict_cursor *c,
                        const char *name, size_t len, uint64_t *ret)
{
    uint8_t head[STR_HEAD_MAX + OBJECT_KEY_MAX];
    uint32_t head_len = r->layout.unicode.ascii_size;
    for (size_t i = 0; i < c->have; i++) {
        const struct object_item *item = &c->items[i];
        if (!item->value || !mem_plausible(item->key) ||
            mem_read(&r->mem, item->key, head, head_len) < 0 ||
            field_u64(head, r->layout.unicode.length) != len ||
            mem_read(&r->mem, item->key + head_len, head + head_len, len) < 0)
            continue;
        if (is_name(r, head, name, len)) {
            *ret = item->value;
            return true;
        }
    }
    return false;
}

/* All keys of a chunk by one call. A key shorter than the name is read past its end, which does no
 * harm but at the end of a mapping: then, and after garbage, the slow way decides. */
static bool find_in_chunk(const struct remote *r, const struct object_dict_cursor *c,
                          const char *name, size_t len, uint64_t *ret)
{
    uint8_t heads[OBJECT_DICT_CHUNK * (STR_HEAD_MAX + OBJECT_KEY_MAX)];
    struct iovec ranges[OBJECT_DICT_CHUNK];
    uint64_t values[OBJECT_DICT_CHUNK];
    size_t n = 0, each = r->layout.unicode.ascii_size + len;
    for (size_t i = 0; i < c->have; i++) {
        if (!c->items[i].value || !mem_plausible(c->items[i].key))
            continue;
        ranges[n] = (struct iovec){(void *)(uintptr_t)c->items[i].key, each};
        values[n++] = c->items[i].value;
    }
    if (!n)
        return false;
    if (mem_read_ranges(&r->mem, heads, ranges, n) != (ssize_t)(n * each))
        return find_slowly(r, c, name, len, ret);
    for (size_t i = 0; i < n; i++) {
        if (is_name(r, heads + i * each, name, len)) {
            *ret = values[i];
            return true;
        }
    }
    return false;
}

bool object_dict_find_str(const struct remote *r, const struct object_dict *d, const char *name,
                          uint64_t *ret)
{
    size_t len = strlen(name);
    struct object_dict_cursor c = {.dict = *d};
    if (len > OBJECT_KEY_MAX || r->layout.unicode.ascii_size > STR_HEAD_MAX)
        return false;
    while (load_chunk(r, &c))
        if (find_in_chunk(r, &c, name, len, ret))
            return true;
    return false;
}

static bool find_in(const struct remote *r, uint64_t dict, const char *name, uint64_t *ret)
{
    struct object_dict d;
    return object_dict_open(r, dict, &d) == 0 && object_dict_find_str(r, &d, name, ret);
}

bool object_module_global(const struct remote *r, uint64_t interp, const char *module,
                          const char *name, uint64_t *ret)
{
    uint64_t modules, object, globals;
    return mem_read_ptr(&r->mem, interp + r->layout.interp.modules, &modules) == 0 &&
           find_in(r, modules, module, &object) && mem_plausible(object) &&
           mem_read_ptr(&r->mem, object + r->layout.module.md_dict, &globals) == 0 &&
           find_in(r, globals, name, ret);
}

/* ---- by number ---- */

static bool is_int(const struct remote *r, uint64_t addr, uint64_t want)
{
    struct object_int n;
    if (object_read_int(r, addr, &n) < 0 || n.negative || n.count > 3)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < n.count; i++)
        value |= (uint64_t)n.digits[i] << 30 * i;
    return value == want;
}

bool object_dict_find_int(const struct remote *r, const struct object_dict *d, uint64_t key,
                          uint64_t *ret)
{
    struct object_dict_cursor c = {.dict = *d};
    struct object_item item;
    if (!d->hashed)
        return false;
    while (object_dict_next(r, &c, &item)) {
        if (item.hash == key % INT_HASH_MODULUS && is_int(r, item.key, key)) {
            *ret = item.value;
            return true;
        }
    }
    return false;
}

/* ---- instances ---- */

/* A dict pointer at tp_dictoffset; below zero it counts from the end of an object of variable size.
 */
static int open_dict_at_offset(const struct remote *r, uint64_t addr,
                               const struct object_type *type, struct object_dict *ret)
{
    enum { MAX_OFFSET = 1 << 20 };
    int64_t offset = type->dictoffset;
    if (offset < 0) {
        uint64_t items = 0;
        struct object_int n;
        int rc = type->flags & OBJECT_FLAG_INT
                     ? object_read_int(r, addr, &n)
                     : mem_read_ptr(&r->mem, addr + r->layout.tuple.ob_size, &items);
        if (rc < 0)
            return rc;
        if (type->flags & OBJECT_FLAG_INT)
            items = n.count;
        if (items > MAX_OFFSET || type->itemsize < 0 || type->itemsize > MAX_OFFSET ||
            type->basicsize < 0 || type->basicsize > MAX_OFFSET || offset < -MAX_OFFSET)
            return E_BADMEM;
        offset += (type->basicsize + (int64_t)items * type->itemsize + WORD - 1) & ~(WORD - 1ll);
    }
    uint64_t dict;
    if (offset < (int64_t)r->layout.object.size || offset % WORD != 0)
        return E_BADMEM;
    int rc = mem_read_ptr(&r->mem, addr + (uint64_t)offset, &dict);
    return rc < 0 ? rc : object_dict_open(r, dict, ret);
}

static int open_class_keys(const struct remote *r, const struct object_type *type, uint64_t values,
                           struct object_dict *ret)
{
    uint64_t keys;
    if (!mem_plausible(values) || r->layout.type.ht_cached_keys == PYL_NONE ||
        !(type->flags & OBJECT_FLAG_HEAP_TYPE))
        return E_BADMEM;
    int rc = mem_read_ptr(&r->mem, type->addr + r->layout.type.ht_cached_keys, &keys);
    return rc < 0 ? rc : open_keys(r, keys, values, ret);
}

/* Attributes that the interpreter keeps before the object, or right behind it. */
static int open_managed(const struct remote *r, uint64_t addr, const struct object_type *type,
                        struct object_dict *ret)
{
    uint64_t before[2]; /* words -4 and -3 */
    int rc = mem_read(&r->mem, addr - 4ull * WORD, before, sizeof before);
    if (rc < 0)
        return rc;
    uint64_t dict = before[1];
    uint8_t head[VALUES_HEAD];
    switch (r->layout.dict_kind) {
    case PYL_DICT_OFFSET:
        return E_BADMEM;
    case PYL_DICT_VALUES_311:
        if (before[0])
            return open_class_keys(r, type, before[0], ret);
        break;
    case PYL_DICT_MANAGED_312:
        if (dict & 1) /* values, kept as their address less one */
            return open_class_keys(r, type, dict + 1, ret);
        break;
    case PYL_DICT_INLINE_313:
        if (!(type->flags & OBJECT_FLAG_INLINE_VALUES))
            break;
        if (type->basicsize < (int64_t)r->layout.object.size || type->basicsize > 1 << 20)
            return E_BADMEM;
        rc = mem_read(&r->mem, addr + (uint64_t)type->basicsize, head, sizeof head);
        if (rc < 0)
            return rc;
        if (!head[VALUES_VALID])
            break;
        return open_class_keys(r, type, addr + (uint64_t)type->basicsize + VALUES_HEAD, ret);
    }
    return object_dict_open(r, dict, ret);
}

bool object_attribute(const struct remote *r, uint64_t addr, const char *name, uint64_t *ret)
{
    struct object_type type;
    struct object_dict attributes;
    if (object_read_type(r, addr, &type) < 0)
        return false;
    int rc = E_BADMEM;
    if (r->layout.dict_kind != PYL_DICT_OFFSET && type.flags & OBJECT_FLAG_MANAGED_DICT)
        rc = open_managed(r, addr, &type, &attributes);
    else if (type.dictoffset)
        rc = open_dict_at_offset(r, addr, &type, &attributes);
    return rc == 0 && object_dict_find_str(r, &attributes, name, ret);
}
