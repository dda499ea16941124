#include "record/threadids.h"

enum { MAX_SINGLE = 4096 }; /* the other side will hardly come after so many others */

static void drop(struct threadids *t, size_t i)
{
    memmove(&t->single.data[i], &t->single.data[i + 1],
            (t->single.len - i - 1) * sizeof *t->single.data);
    t->single.len--;
}

uint32_t threadids_get(struct threadids *t, enum threadid_user user, uint32_t process,
                       uint64_t ident, bool *ret_new)
{
    for (size_t i = 0; i < t->single.len; i++) {
        struct threadid known = t->single.data[i];
        if (known.process == process && known.ident == ident && known.by != user) {
            drop(t, i);
            *ret_new = false;
            return known.id;
        }
    }
    if (t->single.len >= MAX_SINGLE)
        drop(t, 0);
    uint32_t id = t->next++;
    struct threadid *fresh = vec_push(&t->single);
    *ret_new = true;
    if (fresh) /* else it cannot be shared, which only makes two rows of one */
        *fresh = (struct threadid){.process = process, .ident = ident, .id = id, .by = user};
    return id;
}

void threadids_set_tid(struct threadids *t, uint32_t id, uint32_t tid)
{
    while (t->tid.len <= id)
        if (!vec_push(&t->tid))
            return;
    t->tid.data[id] = tid;
}

uint32_t threadids_tid(const struct threadids *t, uint32_t id, uint32_t otherwise)
{
    return id < t->tid.len && t->tid.data[id] ? t->tid.data[id] : otherwise;
}

void threadids_release(struct threadids *t)
{
    vec_release(&t->tid);
    vec_release(&t->single);
}
