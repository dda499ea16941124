#include "remote/modules.h"

#include "base/err.h"
#include "remote/object.h"

/* New interpreters stand before older ones: the main one is the last. */
static int main_interpreter(const struct remote *r, uint64_t *ret)
{
    uint64_t interp = 0, next = 0;
    int rc = mem_read_ptr(&r->mem, r->runtime + r->layout.runtime.interpreters_head, &interp);
    for (int i = 0; rc == 0 && i < REMOTE_MAX_INTERPRETERS; i++) {
        if (!mem_plausible(interp))
            return E_NOTREADY;
        rc = mem_read_ptr(&r->mem, interp + r->layout.interp.next, &next);
        if (rc == 0 && !next) {
            *ret = interp;
            return 0;
        }
        interp = next;
    }
    return rc < 0 ? rc : E_BADMEM;
}

static void tell_text(const struct remote *r, uint64_t addr, size_t max, remote_text_fn tell,
                      void *ctx)
{
    struct object_type type;
    if (object_read_type(r, addr, &type) < 0 || !(type.flags & OBJECT_FLAG_STR))
        return;
    _cleanup_free_ char *text = object_read_str(r, addr, max);
    if (text)
        tell(ctx, text);
}

int remote_modules_look(struct remote *r, struct remote_modules_mark *mark, remote_text_fn tell,
                        void *ctx)
{
    uint64_t interp, modules;
    struct object_dict_cursor c = {0};
    struct object_item item;
    int rc = main_interpreter(r, &interp);
    if (rc == 0)
        rc = mem_read_ptr(&r->mem, interp + r->layout.interp.modules, &modules);
    if (rc == 0)
        rc = mem_plausible(modules) ? object_dict_open(r, modules, &c.dict) : E_NOTREADY;
    if (rc < 0)
        return rc;
    if (c.dict.entries == mark->entries) {
        if (c.dict.count <= mark->count)
            return 0;
        c.next = mark->count; /* a table only grows at its end, until it is made anew */
    }
    for (int i = 0; i < REMOTE_MODULES_MAX && object_dict_next(r, &c, &item); i++)
        tell_text(r, item.key, REMOTE_MODULE_NAME_MAX, tell, ctx);
    *mark = (struct remote_modules_mark){c.dict.entries, c.dict.count};
    return 0;
}

int remote_sys_path(struct remote *r, remote_text_fn tell, void *ctx)
{
    uint64_t interp, sys, list, items, count;
    struct object_dict dict;
    int rc = main_interpreter(r, &interp);
    if (rc == 0)
        rc = mem_read_ptr(&r->mem, interp + r->layout.interp.sysdict, &sys);
    if (rc == 0)
        rc = mem_plausible(sys) ? object_dict_open(r, sys, &dict) : E_NOTREADY;
    if (rc < 0)
        return rc;
    if (!object_dict_find_str(r, &dict, "path", &list))
        return E_NOTREADY;
    rc = object_read_list(r, list, &items, &count);
    for (uint64_t i = 0; rc == 0 && i < min_u64(count, REMOTE_PATH_ENTRIES_MAX); i++) {
        uint64_t text;
        rc = mem_read_ptr(&r->mem, items + 8 * i, &text);
        if (rc == 0)
            tell_text(r, text, REMOTE_PATH_BYTES_MAX, tell, ctx);
    }
    return rc;
}
