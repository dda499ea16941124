/* Thread names: threading._active, from outside.
 *
 *     interpreter → sys.modules["threading"].__dict__["_active"][ident]._name
 *
 * Any step may fail (threading was never imported, the dict is being resized this moment): then the
 * thread has no name for now. */
#include "base/utf8.h"
#include "remote/object.h"

#include <string.h>

/* Copies as many whole characters as fit. */
static void copy_text(char *dst, size_t size, const char *text)
{
    size_t len = strlen(text), at = 0;
    while (at < len) {
        uint32_t c;
        size_t n = utf8_decode(text + at, len - at, &c);
        n = n ? n : 1;
        if (at + n >= size)
            break;
        at += n;
    }
    memcpy(dst, text, at);
    dst[at] = 0;
}

static bool find_ident(const struct remote *r, uint64_t active, uint64_t ident, uint64_t *ret)
{
    struct object_dict threads;
    return object_dict_open(r, active, &threads) == 0 &&
           object_dict_find_int(r, &threads, ident, ret);
}

/* The Thread object of an ident. The way to _active is long and always the same, so its end is
 * remembered; if it leads nowhere any more, the way is gone again. */
static bool find_thread_object(struct remote *r, uint64_t interp, uint64_t ident, uint64_t *ret)
{
    uint64_t active;
    if (r->names_active && r->names_interp == interp && find_ident(r, r->names_active, ident, ret))
        return true;
    if (!object_module_global(r, interp, "threading", "_active", &active) ||
        !find_ident(r, active, ident, ret))
        return false;
    r->names_interp = interp;
    r->names_active = active;
    return true;
}

bool remote_thread_name(struct remote *r, size_t thread_index, char *dst, size_t size)
{
    const struct thread *t = r->threads.data[thread_index];
    uint64_t thread, name;
    struct object_type type;
    if (!size || !find_thread_object(r, t->interp, t->pub.ident, &thread) ||
        !object_attribute(r, thread, "_name", &name) || object_read_type(r, name, &type) < 0 ||
        !(type.flags & OBJECT_FLAG_STR))
        return false;
    _cleanup_free_ char *text = object_read_str(r, name, size * 4); /* four bytes a character */
    if (!text || !*text)
        return false;
    copy_text(dst, size, text);
    return true;
}
