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

void threadids_tell(struct threadids *t, uint32_t id, struct threadid_fact *told)
{
    while (t->facts.len <= id)
        if (!vec_push(&t->facts))
            return;
    struct threadid_fact *known = &t->facts.data[id];
    if (told->tid)
        known->tid = told->tid;
    if (told->name)
        known->name = told->name;
    *told = *known;
}

void threadids_release(struct threadids *t)
{
    vec_release(&t->facts);
    vec_release(&t->single);
}
