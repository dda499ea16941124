/* Python objects read from outside. Inside src/remote only.
 *
 * Every address may be garbage and every object may change or die while it is read, so each
 * function checks the type it expects, bounds each length by a named maximum, and fails instead of
 * guessing. What comes out is a value that the target's memory held, not a promise that it is still
 * there. */
#ifndef PYROMETER_REMOTE_OBJECT_H
#define PYROMETER_REMOTE_OBJECT_H

#include "remote/internal.h"

struct buf;

enum {
    OBJECT_TYPE_NAME_MAX = 128,        /* bytes of tp_name that are kept */
    OBJECT_INT_DIGITS_MAX = 20,        /* 30-bit digits of an int that are read */
    OBJECT_DICT_ENTRIES_MAX = 1 << 20, /* entries of a dict that are looked at */
};

/* What tells how the objects of a type are laid out (Py_TPFLAGS_…, the same in all versions). */
#define OBJECT_FLAG_INLINE_VALUES (1ull << 2) /* 3.13+ */
#define OBJECT_FLAG_MANAGED_DICT  (1ull << 4) /* 3.11+ */
#define OBJECT_FLAG_HEAP_TYPE     (1ull << 9) /* made by a class statement, or as if by one */
#define OBJECT_FLAG_INT           (1ull << 24)
#define OBJECT_FLAG_TUPLE         (1ull << 26)
#define OBJECT_FLAG_BYTES         (1ull << 27)
#define OBJECT_FLAG_STR           (1ull << 28)
#define OBJECT_FLAG_DICT          (1ull << 29)
#define OBJECT_FLAG_TYPE          (1ull << 31)

/* --- object.c --- */

struct object_type {
    uint64_t addr;
    uint64_t flags;
    int64_t basicsize, itemsize, dictoffset;
    char name[OBJECT_TYPE_NAME_MAX]; /* tp_name: "list", "Thing", "collections.deque" */
};

/* The type of the object at `addr`; E_BADMEM if that is no object. */
int object_read_type(const struct remote *r, uint64_t addr, struct object_type *ret);

/* The same for an address that is a type itself. */
int object_read_type_at(const struct remote *r, uint64_t type, struct object_type *ret);

/* At most `max` characters of a str, as code points, and its whole length. */
int object_read_chars(const struct remote *r, uint64_t addr, uint32_t *dst, size_t max,
                      size_t *ret_count, uint64_t *ret_length);

void object_put_utf8(struct buf *b, uint32_t c);

/* The items of a tuple or a list: how many and the address of the first pointer. */
int object_read_tuple(const struct remote *r, uint64_t addr, uint64_t *ret_items,
                      uint64_t *ret_count);
int object_read_list(const struct remote *r, uint64_t addr, uint64_t *ret_items,
                     uint64_t *ret_count);

/* The bytes of a bytes object, at most `max`, and its whole length. */
int object_read_bytes(const struct remote *r, uint64_t addr, uint8_t *dst, size_t max,
                      size_t *ret_count, uint64_t *ret_length);

/* An int, or a bool: sign and 30-bit digits, lowest first. Of an int with more digits than are kept
 * only the count and the highest digit are known. */
struct object_int {
    bool negative;
    uint64_t count;
    uint32_t top; /* the highest digit */
    uint32_t digits[OBJECT_INT_DIGITS_MAX];
};
int object_read_int(const struct remote *r, uint64_t addr, struct object_int *ret);

/* --- dict.c --- */

/* A dict, or the attributes of an instance: a table of keys, and the values in it or beside it. */
struct object_dict {
    uint64_t entries; /* address of the first entry */
    uint64_t count;   /* entries, some of them empty */
    uint64_t values;  /* split: address of the array of values; 0: they are in the entries */
    uint32_t stride;
    bool hashed; /* an entry begins with the key's hash; else all keys are str */
};

struct object_item {
    uint64_t hash; /* 0 where the table has none */
    uint64_t key, value;
};

int object_dict_open(const struct remote *r, uint64_t addr, struct object_dict *ret);

/* Goes over a dict in the order of its table. Start with {.dict = …}. */
enum { OBJECT_DICT_CHUNK = 64 };
struct object_dict_cursor {
    struct object_dict dict;
    uint64_t next; /* entry to read next */
    size_t at, have;
    struct object_item items[OBJECT_DICT_CHUNK];
};
bool object_dict_next(const struct remote *r, struct object_dict_cursor *c,
                      struct object_item *ret);

/* The value for a key; false if it is not there or cannot be read. `name` is short ASCII. */
enum { OBJECT_KEY_MAX = 64 };
bool object_dict_find_str(const struct remote *r, const struct object_dict *d, const char *name,
                          uint64_t *ret);
bool object_dict_find_int(const struct remote *r, const struct object_dict *d, uint64_t key,
                          uint64_t *ret);

/* A global of a module: sys.modules[module].__dict__[name] of that interpreter. */
bool object_module_global(const struct remote *r, uint64_t interp, const char *module,
                          const char *name, uint64_t *ret);

/* An attribute of the instance itself, not of its class. */
bool object_attribute(const struct remote *r, uint64_t addr, const char *name, uint64_t *ret);

#endif
