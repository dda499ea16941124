/* Source that was never a file: what the program's linecache module holds for a name.
 *
 *     linecache.cache[file]                  → (size, mtime, [line, …], name), or lazily (loader,)
 *     linecache._interactive_cache.values()  → the same, for `python -c` and the prompt (3.13+)
 *
 * Notebooks, attrs, dataclasses' kin and debuggers register their code there so that tracebacks can
 * show it. Any step may fail: then there is no text. */
#include "base/buf.h"
#include "remote/object.h"

#include <string.h>

enum {
    LINES_MAX = 8192,       /* of one text; each costs two reads */
    LINE_BYTES_MAX = 16384, /* of one line */
    ENTRY_ITEMS = 4,
    ENTRY_LINES = 2, /* places in the tuple */
    ENTRY_NAME = 3,
    INTERACTIVE_MAX = 256, /* entries that are looked at */
    INTERPRETERS_MAX = 8,
    WORD = 8,
};
#define ENTRY_BYTES (ENTRY_ITEMS * sizeof(uint64_t))

/* The lines of an entry, joined. */
static bool read_lines(const struct remote *r, uint64_t list, struct buf *out)
{
    struct object_type type;
    uint64_t items, count;
    if (object_read_type(r, list, &type) < 0 || strcmp(type.name, "list") != 0 ||
        object_read_list(r, list, &items, &count) < 0 || count == 0 || count > LINES_MAX)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t line;
        if (mem_read_ptr(&r->mem, items + i * WORD, &line) < 0)
            return false;
        _cleanup_free_ char *text = object_read_str(r, line, LINE_BYTES_MAX);
        if (!text)
            return false;
        buf_puts(out, text);
        if (!strchr(text, '\n'))
            buf_put_u8(out, '\n');
    }
    return buf_error(out) == 0;
}

static bool read_entry(const struct remote *r, uint64_t tuple, uint64_t ret_items[ENTRY_ITEMS])
{
    struct object_type type;
    uint64_t items, count;
    return object_read_type(r, tuple, &type) == 0 && type.flags & OBJECT_FLAG_TUPLE &&
           object_read_tuple(r, tuple, &items, &count) == 0 && count == ENTRY_ITEMS &&
           mem_read(&r->mem, items, ret_items, ENTRY_BYTES) == 0;
}

static bool find_cached(const struct remote *r, uint64_t interp, const char *file, struct buf *out)
{
    uint64_t cache, tuple, items[ENTRY_ITEMS];
    struct object_dict d;
    return object_module_global(r, interp, "linecache", "cache", &cache) &&
           object_dict_open(r, cache, &d) == 0 && object_dict_find_str(r, &d, file, &tuple) &&
           read_entry(r, tuple, items) && read_lines(r, items[ENTRY_LINES], out);
}

static bool is_text(const struct remote *r, uint64_t str, const char *text)
{
    _cleanup_free_ char *got = object_read_str(r, str, 4 * strlen(text) + 4);
    return got && strcmp(got, text) == 0;
}

static bool find_interactive(const struct remote *r, uint64_t interp, const char *file,
                             struct buf *out)
{
    uint64_t cache, items[ENTRY_ITEMS];
    struct object_dict_cursor c = {0};
    struct object_item item;
    if (!object_module_global(r, interp, "linecache", "_interactive_cache", &cache) ||
        object_dict_open(r, cache, &c.dict) < 0)
        return false;
    for (int i = 0; i < INTERACTIVE_MAX && object_dict_next(r, &c, &item); i++)
        if (read_entry(r, item.value, items) && is_text(r, items[ENTRY_NAME], file))
            return read_lines(r, items[ENTRY_LINES], out);
    return false;
}

char *remote_linecache_text(struct remote *r, const char *file, size_t max, size_t *ret_len)
{
    uint64_t last = 0;
    int tried = 0;
    struct buf text;
    buf_init(&text, max);
    for (size_t i = 0; i < r->threads.len && tried < INTERPRETERS_MAX; i++) {
        uint64_t interp = r->threads.data[i]->interp;
        if (interp == last)
            continue;
        last = interp;
        tried++;
        buf_clear(&text);
        if (!find_cached(r, interp, file, &text)) {
            buf_clear(&text);
            if (!find_interactive(r, interp, file, &text))
                continue;
        }
        *ret_len = text.len;
        return buf_detach(&text);
    }
    buf_release(&text);
    return NULL;
}
