/* Python objects read from a memory that the test has made: every layout's dicts and instances, and
 * what must not happen when that memory is garbage. Real interpreters are
 * tests/e2e/test_locals.py's business. Run from the root of the repository. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h> /* wants the headers above */

#include "base/buf.h"
#include "base/err.h"
#include "remote/object.h"
#include "remote/repr.h"

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/unit/data"
#endif

/* ---- the memory ---- */

enum { ARENA_BYTES = 1 << 20, VERSIONS = 8, FIRST_MINOR = 8, DEBUG_MINOR = 13 };
#define ARENA_BASE 0x10000ull /* addresses of the target */

static struct {
    uint8_t bytes[ARENA_BYTES];
    size_t used;
    struct remote remote;
    uint64_t type, str, dict, integer, list; /* types */
} w;

static ssize_t read_arena(void *ctx, void *dst, const struct iovec *remote, size_t count)
{
    (void)ctx;
    uint8_t *out = dst;
    for (size_t i = 0; i < count; i++) {
        uint64_t addr = (uintptr_t)remote[i].iov_base;
        size_t len = remote[i].iov_len;
        if (addr < ARENA_BASE || addr >= ARENA_BASE + ARENA_BYTES ||
            len > ARENA_BASE + ARENA_BYTES - addr)
            return out == dst ? -14 /* EFAULT */ : out - (uint8_t *)dst;
        memcpy(out, w.bytes + (addr - ARENA_BASE), len);
        out += len;
    }
    return out - (uint8_t *)dst;
}

static uint64_t make(size_t size)
{
    uint64_t addr = ARENA_BASE + w.used;
    w.used += (size + 15) & ~15ull;
    assert_true(w.used <= ARENA_BYTES);
    return addr;
}

static void put_bytes(uint64_t addr, const void *data, size_t len)
{
    assert_true(addr >= ARENA_BASE && addr + len <= ARENA_BASE + ARENA_BYTES);
    memcpy(w.bytes + (addr - ARENA_BASE), data, len);
}

static void put_u64(uint64_t addr, uint64_t value)
{
    put_bytes(addr, &value, sizeof value);
}

static void put_u8(uint64_t addr, uint8_t value)
{
    put_bytes(addr, &value, sizeof value);
}

static const struct pylayout *layout(void)
{
    return &w.remote.layout;
}

static uint64_t make_object(uint64_t type, size_t size)
{
    uint64_t addr = make(size);
    put_u64(addr + layout()->object.ob_type, type);
    return addr;
}

static uint64_t make_type(const char *name, uint64_t flags)
{
    uint64_t text = make(strlen(name) + 1);
    uint64_t addr = make_object(w.type, 1024);
    put_bytes(text, name, strlen(name) + 1);
    put_u64(addr + layout()->type.tp_name, text);
    put_u64(addr + layout()->type.tp_flags, flags);
    put_u64(addr + layout()->type.tp_basicsize, layout()->object.size);
    return addr;
}

static uint64_t make_str(const char *text)
{
    const struct pylayout *l = layout();
    size_t len = strlen(text);
    uint64_t addr = make_object(w.str, l->unicode.ascii_size + len + 1);
    /* kind 1, compact, ascii */
    uint32_t state = (1u | 1u << 3 | 1u << 4) << l->unicode.state_kind_shift;
    put_u64(addr + l->unicode.length, len);
    put_bytes(addr + l->unicode.state, &state, sizeof state);
    put_bytes(addr + l->unicode.ascii_size, text, len);
    return addr;
}

static uint64_t make_int(uint64_t value)
{
    const struct pylayout *l = layout();
    uint64_t addr = make_object(w.integer, 64);
    uint32_t digits[3] = {value & 0x3fffffff, value >> 30 & 0x3fffffff, (uint32_t)(value >> 60)};
    uint64_t count = digits[2] ? 3 : digits[1] ? 2 : digits[0] ? 1 : 0;
    put_u64(addr + l->long_.size_or_tag, l->long_.tagged ? count << 3 | !count : count);
    put_bytes(addr + l->long_.digits, digits, sizeof digits);
    return addr;
}

/* An empty table of keys for 2^log2 slots; entries are 16 bytes where `unicode`, and can be. */
static uint64_t make_keys(unsigned log2_size, unsigned kind, uint64_t count, uint64_t *ret_entries,
                          uint32_t *ret_stride)
{
    const struct pylayout *l = layout();
    uint64_t size = 1ull << log2_size;
    uint64_t index = size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
    uint32_t stride = l->dictkeys.kind != PYL_NONE && kind ? 16 : 24;
    uint64_t addr = make(l->dictkeys.indices + index + size * stride);
    if (l->dictkeys.has_log2) {
        unsigned log2_index = log2_size + (size <= 0xff ? 0 : size <= 0xffff ? 1 : 2);
        put_u8(addr + l->dictkeys.log2_size, (uint8_t)log2_size);
        put_u8(addr + l->dictkeys.log2_index_bytes, (uint8_t)log2_index);
        put_u8(addr + l->dictkeys.kind, (uint8_t)kind);
    } else {
        put_u64(addr + l->dictkeys.log2_size, size);
    }
    put_u64(addr + l->dictkeys.nentries, count);
    *ret_entries = addr + l->dictkeys.indices + index;
    *ret_stride = stride;
    return addr;
}

static void put_entry(uint64_t entries, uint32_t stride, size_t i, uint64_t hash, uint64_t key,
                      uint64_t value)
{
    uint64_t at = entries + i * stride;
    if (stride == 24)
        put_u64(at, hash);
    put_u64(at + stride - 16, key);
    put_u64(at + stride - 8, value);
}

static uint64_t make_dict(uint64_t keys, uint64_t values)
{
    uint64_t addr = make_object(w.dict, 64);
    put_u64(addr + layout()->dict.ma_keys, keys);
    put_u64(addr + layout()->dict.ma_values, values);
    return addr;
}

static void use_version(int minor)
{
    memset(&w, 0, sizeof w);
    w.remote.mem.fake = read_arena;
    if (minor < DEBUG_MINOR) {
        const struct pylayout *l = pylayout_table(3, minor);
        assert_non_null(l);
        w.remote.layout = *l;
    } else {
        uint8_t block[PYLAYOUT_PROBE_BYTES];
        char path[128];
        snprintf(path, sizeof path, TEST_DATA_DIR "/debug_offsets_3.%d.bin", minor);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        size_t len = fread(block, 1, sizeof block, file);
        fclose(file);
        assert_int_equal(pylayout_from_debug_offsets(block, len, &w.remote.layout), 0);
    }
    w.type = make_type("type", OBJECT_FLAG_TYPE);
    put_u64(w.type + layout()->object.ob_type, w.type);
    w.str = make_type("str", OBJECT_FLAG_STR);
    w.dict = make_type("dict", OBJECT_FLAG_DICT);
    w.integer = make_type("int", OBJECT_FLAG_INT);
    w.list = make_type("list", 1ull << 25);
}

static const char *shown(uint64_t addr)
{
    static struct buf out;
    buf_release(&out);
    buf_init(&out, 2ull * REPR_MAX_BYTES);
    repr_object(&w.remote, addr, &out);
    assert_true(out.len <= REPR_MAX_BYTES);
    return buf_cstr(&out);
}

/* ---- dicts ---- */

/* Combined tables of both kinds and three index widths, with a hole, by name and by number. */
static void check_dicts(unsigned log2_size, unsigned kind, size_t count)
{
    uint64_t entries, value;
    uint32_t stride;
    char name[32];
    uint64_t keys = make_keys(log2_size, kind, count, &entries, &stride);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "key%zu", i);
        if (i != 1)
            put_entry(entries, stride, i, 1234567 + i, make_str(name), make_int(i));
    }
    struct object_dict d;
    assert_int_equal(object_dict_open(&w.remote, make_dict(keys, 0), &d), 0);
    assert_int_equal(d.count, count);
    snprintf(name, sizeof name, "key%zu", count - 1);
    assert_true(object_dict_find_str(&w.remote, &d, name, &value));
    struct object_int n;
    assert_int_equal(object_read_int(&w.remote, value, &n), 0);
    assert_int_equal(n.digits[0], count - 1);
    assert_false(object_dict_find_str(&w.remote, &d, "key1", &value));
    assert_false(object_dict_find_str(&w.remote, &d, "key", &value));
    assert_false(object_dict_find_str(&w.remote, &d, "other", &value));
    struct object_dict_cursor c = {.dict = d};
    struct object_item item;
    size_t found = 0;
    while (object_dict_next(&w.remote, &c, &item))
        found++;
    assert_int_equal(found, count - 1);
}

static void check_int_keys(void)
{
    static const uint64_t idents[] = {1, 0x7f0012345678, (1ull << 61) + 5, 0};
    uint64_t entries, value;
    uint32_t stride;
    uint64_t keys = make_keys(3, 0, 4, &entries, &stride);
    for (size_t i = 0; i < 4; i++)
        put_entry(entries, stride, i, idents[i] % ((1ull << 61) - 1), make_int(idents[i]),
                  1000 + i);
    struct object_dict d;
    assert_int_equal(object_dict_open(&w.remote, make_dict(keys, 0), &d), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_true(object_dict_find_int(&w.remote, &d, idents[i], &value));
        assert_int_equal(value, 1000 + i);
    }
    assert_false(object_dict_find_int(&w.remote, &d, 6, &value)); /* same hash as the third */
}

static void test_dicts(void **state)
{
    (void)state;
    for (int minor = FIRST_MINOR; minor < FIRST_MINOR + VERSIONS; minor++) {
        use_version(minor);
        for (unsigned kind = 0; kind < 2; kind++) {
            check_dicts(3, kind, 5);
            check_dicts(8, kind, 150); /* the first size with two bytes an index */
        }
        check_int_keys();
    }
}

/* ---- instances ---- */

enum { VALUES_HEAD = 8 };

/* Keys "one", "_name", "late" and values for the first two, as instances of a class share them. */
static uint64_t make_shared_keys(uint64_t values)
{
    uint64_t entries;
    uint32_t stride;
    uint64_t keys = make_keys(3, 2, 3, &entries, &stride);
    put_entry(entries, stride, 0, 11, make_str("one"), 0);
    put_entry(entries, stride, 1, 12, make_str("_name"), 0);
    put_entry(entries, stride, 2, 13, make_str("late"), 0);
    put_u64(values, make_int(1));
    put_u64(values + 8, make_str("Thread-1"));
    return keys;
}

static void expect_name(uint64_t object)
{
    uint64_t value;
    assert_true(object_attribute(&w.remote, object, "_name", &value));
    assert_string_equal(shown(value), "'Thread-1'");
    assert_false(object_attribute(&w.remote, object, "late", &value));
    assert_false(object_attribute(&w.remote, object, "absent", &value));
}

/* A split dict at tp_dictoffset, counted from the start or, with variable size, from the end. */
static void check_dict_offset(void)
{
    uint64_t head = layout()->dict_kind == PYL_DICT_INLINE_313 ? VALUES_HEAD : 0;
    uint64_t values = make(128);
    uint64_t dict = make_dict(make_shared_keys(values + head), values);
    put_u8(values, head ? 2 : ((uint8_t *)w.bytes)[values - ARENA_BASE]); /* its capacity */

    uint64_t type = make_type("Plain", OBJECT_FLAG_HEAP_TYPE);
    put_u64(type + layout()->type.tp_dictoffset, 24);
    uint64_t object = make_object(type, 64);
    put_u64(object + 24, dict);
    expect_name(object);
    assert_memory_equal(shown(object), "<Plain object at 0x", 19);

    uint64_t sized = make_type("Sized", OBJECT_FLAG_HEAP_TYPE | OBJECT_FLAG_TUPLE);
    put_u64(sized + layout()->type.tp_dictoffset, (uint64_t)-8);
    put_u64(sized + layout()->type.tp_basicsize, 32);
    put_u64(sized + layout()->type.tp_itemsize, 8);
    object = make_object(sized, 128);
    put_u64(object + layout()->tuple.ob_size, 3);
    put_u64(object + 48, dict);
    expect_name(object);
}

/* The same attributes where the interpreter keeps them by itself. */
static void check_managed(void)
{
    const struct pylayout *l = layout();
    if (l->dict_kind == PYL_DICT_OFFSET)
        return;
    uint64_t flags = OBJECT_FLAG_HEAP_TYPE | OBJECT_FLAG_MANAGED_DICT;
    bool is_inline = l->dict_kind == PYL_DICT_INLINE_313;
    uint64_t type = make_type("Managed", is_inline ? flags | OBJECT_FLAG_INLINE_VALUES : flags);
    uint64_t before = make(32), object = make_object(type, 128);
    assert_int_equal(object, before + 32);
    uint64_t apart = make(128), values = is_inline ? object + l->object.size + VALUES_HEAD : apart;
    uint64_t keys = make_shared_keys(values);
    put_u64(type + l->type.ht_cached_keys, keys);
    if (l->dict_kind == PYL_DICT_VALUES_311)
        put_u64(before, values);
    else if (l->dict_kind == PYL_DICT_MANAGED_312)
        put_u64(before + 8, values - 1);
    else
        put_bytes(object + l->object.size, "\x02\x02\x01\x01", 4); /* room for two, valid */
    expect_name(object);

    /* then somebody asked for its __dict__, and the values moved there */
    uint64_t entries;
    uint32_t stride;
    uint64_t own = make_keys(3, 1, 1, &entries, &stride);
    put_entry(entries, stride, 0, 12, make_str("_name"), make_str("Thread-1"));
    put_u64(before, 0);
    put_u64(before + 8, make_dict(own, 0));
    if (is_inline)
        put_u8(object + l->object.size + 3, 0);
    expect_name(object);
}

static void test_instances(void **state)
{
    (void)state;
    for (int minor = FIRST_MINOR; minor < FIRST_MINOR + VERSIONS; minor++) {
        use_version(minor);
        check_dict_offset();
        check_managed();
    }
}

/* ---- garbage ---- */

static void test_cycle(void **state)
{
    (void)state;
    use_version(12);
    uint64_t items = make(8), list = make_object(w.list, 64);
    put_u64(list + layout()->list.ob_size, 1);
    put_u64(list + layout()->list.ob_item, items);
    put_u64(items, list);
    assert_string_equal(shown(list), "[[[[...]]]]");
}

static void test_bad_addresses(void **state)
{
    (void)state;
    use_version(12);
    static const uint64_t bad[] = {0,       1,          8,          ARENA_BASE + 1,
                                   1 << 30, UINT64_MAX, 1ull << 63, ARENA_BASE + ARENA_BYTES - 8};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_string_equal(shown(bad[i]), REPR_UNREADABLE);
    uint64_t list = make_object(w.list, 64), value;
    put_u64(list + layout()->list.ob_size, UINT64_MAX);
    put_u64(list + layout()->list.ob_item, ARENA_BASE);
    assert_string_equal(shown(list), REPR_UNREADABLE);
    uint64_t dict = make_dict(ARENA_BASE + ARENA_BYTES - 8, 0);
    assert_string_equal(shown(dict), REPR_UNREADABLE);
    assert_false(object_attribute(&w.remote, dict, "x", &value));
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return *seed >> 16;
}

/* Real types, random everything else: addresses of the arena, small numbers, noise. The sanitized
 * build watches; here only length and end count. */
static void test_random_memory(void **state)
{
    (void)state;
    static const char *const names[] = {"NoneType", "bool",  "int",       "float",
                                        "str",      "bytes", "list",      "tuple",
                                        "dict",     "set",   "frozenset", "module"};
    enum { ROUNDS = 200, OBJECTS = 64, OBJECT_BYTES = 256 };
    uint64_t seed = 42, value;
    for (int round = 0; round < ROUNDS; round++) {
        use_version(FIRST_MINOR + round % VERSIONS);
        uint64_t types[ARRAY_LEN(names) + 1], first = 0;
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            types[i] = make_type(names[i], i == 8 ? OBJECT_FLAG_DICT : 0);
        types[ARRAY_LEN(names)] = make_type(
            "Thing", OBJECT_FLAG_HEAP_TYPE | OBJECT_FLAG_MANAGED_DICT | OBJECT_FLAG_INLINE_VALUES);
        put_u64(types[ARRAY_LEN(names)] + layout()->type.tp_dictoffset, next_random(&seed) % 64);
        for (size_t i = 0; i < OBJECTS; i++) {
            uint64_t object = make_object(types[i % ARRAY_LEN(types)], OBJECT_BYTES);
            first = first ? first : object;
            for (size_t at = 16; at < OBJECT_BYTES; at += 8) {
                uint64_t kind = next_random(&seed) % 4, noise = next_random(&seed);
                put_u64(object + at, kind == 0   ? first + noise % OBJECTS * OBJECT_BYTES
                                     : kind == 1 ? noise % 16
                                     : kind == 2 ? noise << 16
                                                 : 0x0101010101010101ull * (noise % 8));
            }
        }
        for (size_t i = 0; i < OBJECTS; i++) {
            shown(first + i * OBJECT_BYTES);
            object_attribute(&w.remote, first + i * OBJECT_BYTES, "_name", &value);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dicts),         cmocka_unit_test(test_instances),
        cmocka_unit_test(test_cycle),         cmocka_unit_test(test_bad_addresses),
        cmocka_unit_test(test_random_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
