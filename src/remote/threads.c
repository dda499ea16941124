/* The Python threads of a process: the lists that hang on its interpreters.
 *
 * The lists move while they are read. A walk stops where it meets something that is not a thread of
 * its interpreter; what it found before that is good, and the next refresh finds the rest. */
#include "base/err.h"
#include "remote/internal.h"

/* Offset of `tid` in glibc's struct pthread on x86-64; what is found there is checked against /proc. */
enum { GLIBC_PTHREAD_TID = 720 };
enum {
    IDLE_TOP_MAX =
        4096, /* bytes of a thread state and of what the interpreter has behind it, at most */
    UNBORN_STEPS = 256, /* older threads among which the one is looked for that starts another */
};

/* The kernel's id of a thread: in the thread state from 3.11 on; below, by way of the C library's own
 * thread structure, which is what the ident points to. */
static uint32_t native_id(struct remote *r, const uint8_t *tstate, uint64_t ident)
{
    uint64_t tid = 0;
    if (r->layout.tstate.native_thread_id != PYL_NONE) {
        tid = field_u64(tstate, r->layout.tstate.native_thread_id);
    } else {
        uint32_t v = 0;
        if (mem_plausible(ident) && mem_read(&r->mem, ident + GLIBC_PTHREAD_TID, &v, sizeof v) == 0)
            tid = v;
    }
    return tasks_find(&r->tasks, r->mem.pid, tid);
}

static uint64_t gil_of(const struct remote *r, uint64_t interp)
{
    uint64_t gil = 0;
    if (r->layout.interp.gil != PYL_NONE)
        return mem_read_ptr(&r->mem, interp + r->layout.interp.gil, &gil) == 0 && mem_plausible(gil)
                   ? gil
                   : 0;
    return r->layout.runtime.gil != PYL_NONE ? r->runtime + r->layout.runtime.gil : 0;
}

/* Threads are met in the same order again and again: the one after the last hit is the likely one. */
static struct thread *find_thread(struct remote *r, uint64_t tstate, uint64_t ident)
{
    for (size_t i = 0; i < r->threads.len; i++) {
        size_t at = (r->scan_hint + i) % r->threads.len;
        struct thread *t = r->threads.data[at];
        if (t->pub.tstate == tstate && t->pub.ident == ident) {
            r->scan_hint = at + 1;
            return t;
        }
    }
    return NULL;
}

static int note_thread(struct remote *r, uint64_t addr, const uint8_t *tstate, uint64_t interp,
                       uint32_t interp_id)
{
    uint64_t ident = field_u64(tstate, r->layout.tstate.thread_id);
    struct thread *t = find_thread(r, addr, ident);
    if (t && t->seen) /* the list leads in a circle */
        return E_BADMEM;
    if (t && t->ended) {
        uint32_t tid = native_id(r, tstate, ident);
        t->ended = false;
        if (tid && tid != t->pub.tid)
            t = NULL; /* another in its place; the old one is swept away */
    }
    if (t) {
        t->seen = true;
        if (!t->pub.tid) /* it may not have begun to run when it was first seen */
            t->pub.tid = native_id(r, tstate, ident);
        if (!t->gil) /* from 3.12 on an interpreter has its first thread before its lock */
            t->gil = gil_of(r, interp);
        return 0;
    }
    if (r->threads.len >= REMOTE_MAX_THREADS)
        return 0;
    t = calloc(1, sizeof *t);
    struct thread **slot = t ? vec_push(&r->threads) : NULL;
    if (!slot) {
        free(t);
        return E_NOMEM;
    }
    *slot = t;
    t->pub = (struct remote_thread){
        .tstate = addr,
        .ident = ident,
        .tid = native_id(r, tstate, ident),
        .interpreter = interp_id,
        .serial = r->next_serial++,
    };
    t->interp = interp;
    t->gil = gil_of(r, interp);
    t->seen = true;
    return 0;
}

static int remember_head(struct remote *r, uint64_t addr, uint64_t value)
{
    struct list_head *h = vec_push(&r->heads);
    if (!h)
        return E_NOMEM;
    *h = (struct list_head){addr, value};
    return 0;
}

/* Has it no frames? Then what says where they are is nothing, or a part of the thread state itself. */
static bool is_idle(const struct remote *r, uint64_t addr, const uint8_t *tstate)
{
    uint64_t top = field_u64(tstate, r->layout.tstate.frame);
    return top == 0 || (top >= addr && top - addr < IDLE_TOP_MAX);
}

/* A thread that is about to be started has a thread state already, with the ident of the thread that starts it, and stands before that
 * one in the list. It is none yet. */
static bool is_unborn(struct remote *r, uint64_t addr, const uint8_t *tstate, uint64_t interp)
{
    const struct pylayout *l = &r->layout;
    uint64_t ident = field_u64(tstate, l->tstate.thread_id);
    if (!is_idle(r, addr, tstate) || find_thread(r, addr, ident))
        return false;
    uint8_t bytes[1024];
    uint64_t next = field_u64(tstate, l->tstate.next);
    for (int i = 0; i < UNBORN_STEPS && mem_plausible(next); i++) {
        if (mem_read(&r->mem, next, bytes, l->tstate.size) < 0 ||
            field_u64(bytes, l->tstate.interp) != interp)
            break;
        if (field_u64(bytes, l->tstate.thread_id) == ident)
            return true;
        next = field_u64(bytes, l->tstate.next);
    }
    return false;
}

static int refresh_interpreter(struct remote *r, uint64_t interp, size_t *budget)
{
    const struct pylayout *l = &r->layout;
    uint64_t tstate, id = 0;
    int rc = mem_read_ptr(&r->mem, interp + l->interp.threads_head, &tstate);
    if (rc == 0)
        rc = mem_read_ptr(&r->mem, interp + l->interp.id, &id);
    if (rc == 0)
        rc = remember_head(r, interp + l->interp.threads_head, tstate);
    uint8_t bytes[1024];
    if (l->tstate.size > sizeof bytes)
        return E_BADMEM;
    while (rc == 0 && tstate && *budget) {
        (*budget)--;
        rc = mem_plausible(tstate) ? mem_read(&r->mem, tstate, bytes, l->tstate.size) : E_BADMEM;
        if (rc < 0 || field_u64(bytes, l->tstate.interp) != interp)
            break; /* the list moved under us: what was found so far is good */
        if (field_u64(bytes, l->tstate.thread_id) && !is_unborn(r, tstate, bytes, interp))
            rc = note_thread(r, tstate, bytes, interp, (uint32_t)id);
        tstate = field_u64(bytes, l->tstate.next);
    }
    return rc == E_BADMEM ? 0 : rc;
}

/* Threads that were not met any more are forgotten. */
static void sweep(struct remote *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->threads.len; i++) {
        struct thread *t = r->threads.data[i];
        if (t->seen)
            r->threads.data[kept++] = t;
        else
            thread_free(t);
    }
    r->threads.len = kept;
}

/* New threads are put at the head of their interpreter's list: equal heads, no new thread. */
bool remote_threads_may_have_changed(struct remote *r)
{
    if (!r->heads.len)
        return true;
    enum { MANY = 16 };
    struct iovec ranges[MANY];
    uint64_t found[MANY];
    if (r->heads.len > MANY)
        return true;
    for (size_t i = 0; i < r->heads.len; i++)
        ranges[i] = (struct iovec){(void *)(uintptr_t)r->heads.data[i].addr, sizeof found[0]};
    ssize_t want = (ssize_t)(r->heads.len * sizeof found[0]);
    if (mem_read_ranges(&r->mem, found, ranges, r->heads.len) != want)
        return true;
    for (size_t i = 0; i < r->heads.len; i++)
        if (found[i] != r->heads.data[i].value)
            return true;
    return false;
}

int remote_refresh_threads(struct remote *r)
{
    uint64_t interp;
    r->heads.len = 0;
    r->scan_hint = 0;
    r->tasks.fresh = false;
    int rc = mem_read_ptr(&r->mem, r->runtime + r->layout.runtime.interpreters_head, &interp);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < r->threads.len; i++)
        r->threads.data[i]->seen = false;
    rc = remember_head(r, r->runtime + r->layout.runtime.interpreters_head, interp);
    size_t budget = REMOTE_MAX_THREADS;
    for (int i = 0; rc == 0 && interp && i < REMOTE_MAX_INTERPRETERS; i++) {
        if (!mem_plausible(interp)) {
            rc = E_BADMEM;
            break;
        }
        rc = refresh_interpreter(r, interp, &budget);
        uint64_t next = 0;
        if (rc == 0)
            rc = mem_read_ptr(&r->mem, interp + r->layout.interp.next, &next);
        interp = next;
    }
    if (rc < 0)
        return rc;
    sweep(r);
    return r->threads.len ? 0 : E_NOTREADY;
}

void remote_thread_has_ended(struct remote *r, size_t index)
{
    r->threads.data[index]->ended = true;
}

size_t remote_thread_count(const struct remote *r)
{
    return r->threads.len;
}

const struct remote_thread *remote_thread(const struct remote *r, size_t index)
{
    return &r->threads.data[index]->pub;
}

bool remote_gil_range(const struct remote *r, size_t thread_index, uint64_t *ret_begin,
                      uint64_t *ret_end)
{
    const struct thread *t = r->threads.data[thread_index];
    if (!t->gil || r->layout.gil.size == PYL_NONE)
        return false;
    *ret_begin = t->gil;
    *ret_end = t->gil + r->layout.gil.size;
    return true;
}
