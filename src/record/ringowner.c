#include "record/ringowner.h"

#include "record/procs.h"
#include "record/target.h"

void ring_owner_read(const struct ring_header *ring, struct ring_owner *ret)
{
    *ret = (struct ring_owner){
        .pid = ring->pid,
        .parent_pid = ring->parent_pid,
        .tid = ring->tid,
        .ident = ring->ident,
        .start_ns = ring->start_ns,
        .thread = UINT32_MAX,
        .is_memory = ring->content == RING_CONTENT_MEMORY,
    };
    memcpy(ret->python, ring->python, sizeof ret->python);
    ret->python[sizeof ret->python - 1] = 0;
}

void ring_owner_put(const struct ring_owner *o, struct target_shared *shared, uint32_t name)
{
    struct record_thread record = {
        .id = o->thread,
        .process = o->process,
        .tid = o->tid,
        .name = name,
        .ident = o->ident,
        .start_ns = o->start_ns > shared->origin_ns ? o->start_ns - shared->origin_ns : 0,
    };
    format_writer_thread(shared->writer, &record);
}

void ring_owner_meet(struct ring_owner *o, struct target_shared *shared, struct procs *procs)
{
    if (o->thread != UINT32_MAX)
        return;
    bool is_new;
    o->process = procs_id_of(procs, (pid_t)o->pid, (pid_t)o->parent_pid, o->python, o->start_ns);
    o->thread = threadids_get(shared->threads, o->is_memory ? THREADID_MEMORY : THREADID_EVENTS,
                              o->process, o->ident, o->tid, &is_new);
    shared->stats->value[RECORD_STAT_THREADS_SEEN] += is_new;
    struct threadid_fact fact = {.tid = o->tid};
    threadids_tell(shared->threads, o->thread, &fact);
    const char *name = o->tid == o->pid ? "MainThread" : "";
    ring_owner_put(o, shared,
                   fact.name ? fact.name
                             : format_writer_string(shared->writer, name, strlen(name)));
}
