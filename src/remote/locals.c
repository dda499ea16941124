/* Local variables: the array of pointers at the end of a frame, named by its code object.
 *
 * The frame and its pointers are copied in one read together with the frame's code pointer, which
 * must be the one of the sample. While the values are read the program may rebind a variable and
 * the old value's memory may be used again; so the pointer is read once more afterwards, and a
 * value counts only if it is still the same. A variable that never holds still is shown as such. */
#include "remote/locals.h"

#include "base/buf.h"
#include "base/err.h"
#include "remote/object.h"
#include "remote/repr.h"

#include <string.h>

enum {
    NAME_MAX_BYTES = 512,
    CODE_MAX = 512,  /* bytes of a code object that are read */
    VALUE_TRIES = 4, /* readings of a variable that changes meanwhile */
    WORD = 8,
};

/* co_localspluskinds (3.11+) */
enum { KIND_HIDDEN = 0x10, KIND_CELL = 0x40, KIND_FREE = 0x80 };

/* References on the stack from 3.14 on carry a tag in their low bits. */
enum { REF_TAG_INT = 3, REF_INT_SHIFT = 2 };

#define CHANGING "<changing>"

/* What a code object says about its variables. */
struct names {
    size_t count;
    uint64_t name[REMOTE_MAX_LOCALS]; /* str objects */
    uint8_t kind[REMOTE_MAX_LOCALS];
};

/* Appends the strings of a tuple. */
static int add_names(const struct remote *r, uint64_t tuple, uint8_t kind, struct names *n)
{
    struct object_type type;
    uint64_t items = 0, count = 0;
    int rc = object_read_type(r, tuple, &type);
    if (rc == 0)
        rc =
            type.flags & OBJECT_FLAG_TUPLE ? object_read_tuple(r, tuple, &items, &count) : E_BADMEM;
    if (rc < 0)
        return rc;
    count = min_u64(count, REMOTE_MAX_LOCALS - n->count);
    rc = count ? mem_read(&r->mem, items, n->name + n->count, count * WORD) : 0;
    if (rc < 0)
        return rc;
    memset(n->kind + n->count, kind, count);
    n->count += count;
    return 0;
}

static int read_names(const struct remote *r, uint64_t code, struct names *ret)
{
    const struct pylayout *l = &r->layout;
    uint8_t head[CODE_MAX];
    ret->count = 0;
    if (l->code.size > sizeof head)
        return E_BADMEM;
    int rc = mem_read(&r->mem, code, head, l->code.size);
    if (rc == 0)
        rc = add_names(r, field_u64(head, l->code.localsplusnames), 0, ret);
    if (rc == 0 && l->code.cellvars != PYL_NONE)
        rc = add_names(r, field_u64(head, l->code.cellvars), KIND_CELL, ret);
    if (rc == 0 && l->code.freevars != PYL_NONE)
        rc = add_names(r, field_u64(head, l->code.freevars), KIND_FREE, ret);
    if (rc < 0 || l->code.localspluskinds == PYL_NONE)
        return rc;
    size_t got;
    uint64_t length;
    rc = object_read_bytes(r, field_u64(head, l->code.localspluskinds), ret->kind, ret->count, &got,
                           &length);
    return rc == 0 && got != ret->count ? E_BADMEM : rc;
}

/* The walked frame behind frame number `frame` of the last sample, and the one that called it. */
static const struct walked *find_frame(struct remote *r, const struct thread *t, uint32_t frame,
                                       uint64_t *ret_previous)
{
    uint32_t entry;
    if (!t->has_accepted)
        return NULL;
    for (size_t i = 0; i < t->accepted.len; i++) {
        const struct walked *w = &t->accepted.data[i];
        if (w->code == WALKED_SHIM ||
            (w->code != WALKED_UNREADABLE && codes_lookup(r, w->code, 0, &entry) == 0 &&
             codes_is_inner(r, entry)) ||
            frame-- > 0)
            continue;
        *ret_previous = i + 1 < t->accepted.len ? t->accepted.data[i + 1].frame : 0;
        return w->code == WALKED_UNREADABLE ? NULL : w;
    }
    return NULL;
}

/* Copies the variables of a frame if it is still the sampled one. */
static int read_slots(const struct remote *r, const struct walked *w, uint64_t previous,
                      uint64_t *slots, size_t count)
{
    const struct pylayout *l = &r->layout;
    uint32_t head = l->frame.localsplus;
    uint8_t bytes[1024 + REMOTE_MAX_LOCALS * WORD];
    if (head > 1024 || l->frame.code + WORD > head || l->frame.previous + WORD > head)
        return E_BADMEM;
    int rc = mem_read(&r->mem, w->frame, bytes, head + count * WORD);
    if (rc < 0)
        return rc;
    if ((field_u64(bytes, l->frame.code) & ~(uint64_t)l->code_tag_mask) != w->code ||
        field_u64(bytes, l->frame.previous) != previous)
        return E_NOTREADY;
    memcpy(slots, bytes + head, count * WORD);
    return 0;
}

static bool is_unbound(const struct remote *r, uint64_t slot)
{
    uint64_t mask = r->layout.code_tag_mask;
    return (slot & mask) == REF_TAG_INT ? false : (slot & ~mask) == 0;
}

/* The content of a closure's cell, or the object itself if it is none: an argument becomes a cell
 * only when its function begins to run. False for an empty cell. */
static bool open_cell(const struct remote *r, uint64_t *object)
{
    struct object_type type;
    if (object_read_type(r, *object, &type) < 0 || strcmp(type.name, "cell") != 0)
        return true;
    uint64_t content;
    if (mem_read_ptr(&r->mem, *object + r->layout.object.size, &content) < 0)
        return true;
    *object = content;
    return content != 0;
}

/* The value in a slot; false if there is none. */
static bool show_slot(const struct remote *r, uint64_t slot, uint8_t kind, struct buf *out)
{
    uint64_t mask = r->layout.code_tag_mask;
    if (mask && (slot & mask) == REF_TAG_INT) {
        buf_printf(out, "%lld", (long long)((int64_t)slot >> REF_INT_SHIFT));
        return true;
    }
    uint64_t object = slot & ~mask;
    if (kind & (KIND_CELL | KIND_FREE) && !open_cell(r, &object))
        return false;
    repr_object(r, object, out);
    return true;
}

/* Reads a value until its variable did not change meanwhile; false if it is unbound. */
static bool show_still(const struct remote *r, uint64_t addr, uint64_t slot, uint8_t kind,
                       struct buf *out)
{
    for (int i = 0; i < VALUE_TRIES; i++) {
        uint64_t now;
        buf_clear(out);
        if (is_unbound(r, slot) || !show_slot(r, slot, kind, out))
            return false;
        if (mem_read_ptr(&r->mem, addr, &now) < 0)
            break;
        if (now == slot)
            return true;
        slot = now;
    }
    buf_clear(out);
    buf_puts(out, CHANGING);
    return true;
}

/* A name's text, or what stands for it. */
static char *read_name(const struct remote *r, uint64_t name)
{
    char *text = object_read_str(r, name, NAME_MAX_BYTES);
    return text ? text : strdup("?");
}

int remote_frame_locals(struct remote *r, size_t thread_index, uint32_t frame,
                        struct remote_locals *ret)
{
    struct names names;
    uint64_t previous = 0, slots[REMOTE_MAX_LOCALS];
    const struct walked *w = find_frame(r, r->threads.data[thread_index], frame, &previous);
    if (!w)
        return E_NOTREADY;
    int rc = read_names(r, w->code, &names);
    if (rc == 0)
        rc = read_slots(r, w, previous, slots, names.count);
    if (rc < 0)
        return rc;
    struct remote_locals found = {0};
    struct buf text;
    buf_init(&text, 2ull * REPR_MAX_BYTES);
    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        uint64_t addr = w->frame + r->layout.frame.localsplus + i * WORD;
        if (names.kind[i] & KIND_HIDDEN || !show_still(r, addr, slots[i], names.kind[i], &text))
            continue;
        struct remote_local *v = vec_push(&found.list);
        if (v) {
            v->name = read_name(r, names.name[i]);
            v->value = strdup(buf_cstr(&text));
        }
        if (!v || !v->name || !v->value)
            rc = E_NOMEM;
    }
    buf_release(&text);
    if (rc < 0)
        remote_locals_release(&found);
    else
        *ret = found;
    return rc;
}

void remote_locals_release(struct remote_locals *l)
{
    for (size_t i = 0; i < l->list.len; i++) {
        free(l->list.data[i].name);
        free(l->list.data[i].value);
    }
    vec_release(&l->list);
}
