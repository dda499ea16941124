#include "record/threadids.h"

enum { MAX_SINGLE = 4096 }; /* the other side will hardly come after so many others */

static void drop(struct threadids *t, size_t i)
{
    memmove(&t->single.data[i], &t->single.data[i + 1],
            (t->single.len - i - 1) * sizeof *t->single.data);
    t->single.len--;
}

uint32_t threadids_get(struct threadids *t, enum threadid_user user, uint32_t process,
                       uint64_t ident, uint32_t tid, bool *ret_new)
{
    enum { ALL = THREADID_SAMPLER | THREADID_EVENTS | THREADID_MEMORY };
    for (size_t i = 0; i < t->single.len; i++) {
        struct threadid *known = &t->single.data[i];
        bool same = known->process == process && known->ident == ident &&
                    (!tid || !known->tid || known->tid == tid);
        if (same && !(known->met_by & user)) {
            uint32_t id = known->id;
            known->met_by |= user;
            known->tid = tid ? tid : known->tid;
            if (known->met_by == ALL)
                drop(t, i);
            *ret_new = false;
            return id;
        }
    }
    if (t->single.len >= MAX_SINGLE)
        drop(t, 0);
    uint32_t id = t->next++;
    struct threadid *fresh = vec_push(&t->single);
    *ret_new = true;
    if (fresh) /* else it cannot be shared, which only makes two rows of one */
        *fresh = (struct threadid){
            .process = process, .ident = ident, .tid = tid, .id = id, .met_by = user};
    return id;
}

void threadids_leave(struct threadids *t, enum threadid_user user, uint32_t id)
{
    for (size_t i = 0; i < t->single.len; i++)
        if (t->single.data[i].id == id)
            t->single.data[i].met_by &= ~(uint32_t)user;
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
