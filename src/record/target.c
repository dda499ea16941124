/* Samples of one process, run-length encoded per thread.
 *
 * A thread has at most one open run: the stack and state it was last seen with, and for how long. A
 * sample that agrees makes it longer; one that does not closes it into the file. Time is charged
 * backwards: a sample stands for the gap since the look before it. */
#include "record/target.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"
#include "record/threadstate.h"

#include <string.h>

enum {
    MAX_THREAD_NAME = 256,
};
#define LIST_CHECK_NS      (NS_PER_MS / 4)  /* new threads are looked for no more often than this */
#define LIST_REFRESH_NS    (16 * NS_PER_MS) /* and the whole list is read anew this often at least */
#define INSTRUCTION_MIN_NS (NS_PER_MS / 10) /* between two questions for the running instruction */
/* Names are given after a thread has started: ask soon, then seldom. */
#define NAME_FIRST_NS (20 * NS_PER_MS)
#define NAME_MAX_NS   (10 * NS_PER_SEC)
#define STATE_MIN_NS                                                                               \
    (50 * NS_PER_US) /* above 20 kHz the state is asked for less often than the stack */

struct track {
    uint32_t serial; /* of the remote thread */
    uint32_t id;     /* in the file */
    bool seen;
    /* A thread that goes into a sub-interpreter has a state in each of the two. They are one thread: the state in the interpreter with
     * the lower number is its home and speaks for it, the other has its id. */
    struct track *home; /* NULL: this one is it */
    bool has_guests;    /* it is the home of others */
    struct threadstate os;
    VEC(uint32_t) nodes; /* trie nodes of the last stack, root first */
    uint64_t last_ns;    /* of the last sample */
    uint64_t state_ns;   /* when `os_state` was read */
    unsigned os_state;
    bool asleep;              /* blocked when last looked at: worth the cheap question first */
    struct record_sample run; /* count 0: none */
    uint64_t name_due_ns, name_wait_ns;
    char name[MAX_THREAD_NAME];
};

struct target {
    struct target_shared *shared;
    struct remote *remote;       /* owned */
    struct sources_place *place; /* owned; NULL if its files cannot be had */
    uint32_t process;
    VEC(struct track *) tracks; /* in the order of the remote's threads */
    VEC(uint32_t) code_ids;     /* remote code index -> file id, 0 = not yet */
    bool is_slowed;             /* its instructions are asked for, each time after … */
    uint64_t instruction_ns;    /* … this one; 0: never yet */
    uint64_t list_ns;           /* when the thread list was last known to be good */
    uint64_t refresh_ns;        /* when it was last read; 0: read it now */
};

/* ---- code objects of all processes, once each ---- */

struct code_ids {
    VEC(struct record_code) codes; /* content; the id is the index + first */
    VEC(uint32_t) ids;
    struct idxmap map;
};

uint32_t target_intern_code(struct target_shared *s, const struct record_code *code)
{
    struct code_ids *c = s->codes;
    uint32_t hash = hash_bytes(code, sizeof *code), at;
    IDXMAP_FIND(&c->map, hash, i, !memcmp(&c->codes.data[i], code, sizeof *code), at);
    if (at != IDXMAP_NONE)
        return c->ids.data[at];
    at = (uint32_t)c->codes.len;
    struct record_code *slot = vec_push(&c->codes);
    uint32_t *id = slot ? vec_push(&c->ids) : NULL;
    if (!id || idxmap_insert(&c->map, hash, at) < 0)
        return RECORD_CODE_UNKNOWN;
    *slot = *code;
    *id = format_writer_code(s->writer, code);
    return *id;
}

static uint32_t special_code(struct target_shared *s, const char *name)
{
    struct record_code code = {
        .name = format_writer_string(s->writer, name, strlen(name)),
        .flags = RECORD_CODE_SPECIAL,
    };
    return target_intern_code(s, &code);
}

int target_shared_init(struct target_shared *s)
{
    s->codes = calloc(1, sizeof *s->codes);
    if (!s->codes)
        return E_NOMEM;
    s->moving_code = special_code(s, "<moving>");
    s->unreadable_code = special_code(s, "<unreadable>");
    return 0;
}

void target_shared_release(struct target_shared *s)
{
    if (!s->codes)
        return;
    vec_release(&s->codes->codes);
    vec_release(&s->codes->ids);
    idxmap_release(&s->codes->map);
    free(s->codes);
    s->codes = NULL;
}

/* ---- threads ---- */

static void close_run(struct target *t, struct track *k)
{
    if (k->run.count)
        format_writer_sample(t->shared->writer, &k->run);
    k->run.count = 0;
}

/* A thread that is not found has not always ended: in a child that has just been forked the list of them is made anew. */
static void track_drop(struct target *t, struct track *k)
{
    close_run(t, k);
    if (!k->home && !threadstate_has_ended(&k->os))
        threadids_leave(t->shared->threads, THREADID_SAMPLER, k->id);
    threadstate_close(&k->os);
    vec_release(&k->nodes);
    free(k);
}

static void write_thread(struct target *t, const struct track *k, const struct remote_thread *r,
                         uint64_t start_ns)
{
    struct format_writer *w = t->shared->writer;
    struct threadid_fact fact = {.name = format_writer_string(w, k->name, strlen(k->name))};
    threadids_tell(t->shared->threads, k->id, &fact);
    struct record_thread record = {
        .id = k->id,
        .process = t->process,
        .tid = fact.tid ? fact.tid : r->tid,
        .name = fact.name,
        .ident = r->ident,
        .interpreter = r->interpreter,
        .start_ns = start_ns,
    };
    format_writer_thread(w, &record);
}

/* Does the kernel know the thread by the number that the interpreter has? In a forked child that is old, in another namespace it is
 * another's. */
static bool has_task(const struct track *k)
{
    return k->os.syscall_fd >= 0 || k->os.stat_fd >= 0;
}

static struct track *track_new(struct target *t, const struct remote_thread *r, struct track *home,
                               uint64_t now_ns)
{
    struct track *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->serial = r->serial;
    threadstate_open(&k->os, remote_pid(t->remote), r->tid);
    if (home) {
        k->home = home;
        k->id = home->id;
        return k;
    }
    bool is_new;
    k->id = threadids_get(t->shared->threads, THREADID_SAMPLER, t->process, r->ident,
                          has_task(k) ? r->tid : 0, &is_new);
    k->name_wait_ns = NAME_FIRST_NS;
    k->name_due_ns = now_ns + NAME_FIRST_NS;
    t->shared->stats->value[RECORD_STAT_THREADS_SEEN] += is_new;
    write_thread(t, k, r, now_ns - t->shared->origin_ns);
    return k;
}

/* A thread may be met a moment before it has noted the kernel's number for it: who does not ask again takes it for running for ever. */
static void meet_task(struct target *t, struct track *k, const struct remote_thread *r,
                      uint64_t now_ns)
{
    if (has_task(k) || !r->tid)
        return;
    threadstate_close(&k->os);
    threadstate_open(&k->os, remote_pid(t->remote), r->tid);
    if (has_task(k) && !k->home)
        write_thread(t, k, r, now_ns - t->shared->origin_ns);
}

static void update_name(struct target *t, size_t index, struct track *k, uint64_t now_ns)
{
    if (k->home || now_ns < k->name_due_ns)
        return;
    k->name_due_ns = now_ns + k->name_wait_ns;
    k->name_wait_ns = min_u64(k->name_wait_ns * 2, NAME_MAX_NS);
    char name[MAX_THREAD_NAME] = "";
    const struct remote_thread *r = remote_thread(t->remote, index);
    if (!remote_thread_name(t->remote, index, name, sizeof name) &&
        (pid_t)r->tid == remote_pid(t->remote) && r->interpreter == 0)
        memcpy(name, "MainThread", sizeof "MainThread"); /* `threading` was never imported */
    if (!name[0] || !strcmp(name, k->name))
        return;
    /* names go by ident, and the next thread may have it by now */
    if (has_task(k) && !threadstate_letter(remote_pid(t->remote), r->tid))
        return;
    memcpy(k->name, name, sizeof name);
    write_thread(t, k, remote_thread(t->remote, index), now_ns - t->shared->origin_ns);
}

static struct track *find_track(const struct target *t, uint32_t serial, size_t *hint)
{
    for (size_t i = 0; i < t->tracks.len; i++) {
        struct track *k = t->tracks.data[(*hint + i) % t->tracks.len];
        if (k->serial == serial) {
            *hint += i + 1;
            return k;
        }
    }
    return NULL;
}

/* The track, of those there are, of the same thread in the interpreter with the lowest number; NULL if that is this one. */
static struct track *find_home(const struct target *t, struct track *const *tracks, size_t index)
{
    const struct remote_thread *own = remote_thread(t->remote, index);
    size_t best = index;
    for (size_t i = 0, n = remote_thread_count(t->remote); i < n; i++) {
        const struct remote_thread *r = remote_thread(t->remote, i);
        if (tracks[i] && r->ident == own->ident &&
            r->interpreter < remote_thread(t->remote, best)->interpreter)
            best = i;
    }
    return best == index ? NULL : tracks[best];
}

/* Tracks for the threads that have none, those of the main interpreter first: they are homes. */
static int meet_threads(struct target *t, struct track **tracks, bool in_main, uint64_t now_ns)
{
    for (size_t i = 0, n = remote_thread_count(t->remote); i < n; i++) {
        const struct remote_thread *r = remote_thread(t->remote, i);
        if ((r->interpreter == 0) != in_main)
            continue;
        struct track *home = in_main ? NULL : find_home(t, tracks, i);
        if (!tracks[i])
            tracks[i] = track_new(t, r, home, now_ns);
        else
            meet_task(t, tracks[i], r, now_ns);
        if (!tracks[i])
            return E_NOMEM;
        tracks[i]->home = home;
        tracks[i]->has_guests = false;
        if (home)
            home->has_guests = true;
    }
    return 0;
}

/* Brings the tracks into step with the remote's threads: tracks[i] belongs to thread i. */
static int align_tracks(struct target *t, uint64_t now_ns)
{
    size_t n = remote_thread_count(t->remote);
    VEC(struct track *) next = {0};
    if (!vec_reserve(&next, n))
        return E_NOMEM;
    for (size_t i = 0; i < t->tracks.len; i++)
        t->tracks.data[i]->seen = false;
    for (size_t i = 0, hint = 0; i < n; i++) {
        next.data[i] = find_track(t, remote_thread(t->remote, i)->serial, &hint);
        if (next.data[i])
            next.data[i]->seen = true;
    }
    int rc = meet_threads(t, next.data, true, now_ns);
    if (rc == 0)
        rc = meet_threads(t, next.data, false, now_ns);
    for (size_t i = 0; i < t->tracks.len; i++)
        if (!t->tracks.data[i]->seen)
            track_drop(t, t->tracks.data[i]);
    for (size_t i = 0; i < n; i++) /* without memory some have none */
        if (next.data[i])
            next.data[next.len++] = next.data[i];
    free(t->tracks.data);
    memcpy(&t->tracks, &next, sizeof next);
    return rc;
}

/* ---- stacks ---- */

/* A code object met by us, as it goes into the file. */
static struct record_code code_of(struct target *t, const struct remote_code *c)
{
    struct format_writer *w = t->shared->writer;
    return (struct record_code){
        .name = format_writer_string(w, c->name, c->name_len),
        .qualname = format_writer_string(w, c->qualname, c->qualname_len),
        .file = format_writer_string(w, c->file, c->file_len),
        .first_line = c->first_line,
    };
}

static uint32_t code_id(struct target *t, uint32_t index)
{
    if (index == REMOTE_CODE_UNREADABLE)
        return t->shared->unreadable_code;
    while (t->code_ids.len <= index)
        if (!vec_push(&t->code_ids))
            return RECORD_CODE_UNKNOWN;
    uint32_t *id = &t->code_ids.data[index];
    if (!*id) {
        const struct remote_code *c = remote_code(t->remote, index);
        if (!c) /* replaced meanwhile */
            return RECORD_CODE_UNKNOWN;
        struct record_code code = code_of(t, c);
        *id = target_intern_code(t->shared, &code);
        if (t->shared->sources)
            sources_want(t->shared->sources, t->place, code.file, c->file);
    }
    return *id;
}

/* The trie node of a sample. Frames shared with the thread's last sample keep their nodes. */
static uint32_t stack_node(struct target *t, struct track *k, const struct remote_sample *s)
{
    struct format_writer *w = t->shared->writer;
    size_t keep = min_u64(s->shared, k->nodes.len);
    k->nodes.len = keep;
    uint32_t parent = keep ? k->nodes.data[keep - 1] : RECORD_STACK_ROOT;
    for (size_t i = keep; i < s->depth; i++) {
        const struct remote_frame *f = &s->frames[s->depth - 1 - i];
        struct record_stack node = {
            .parent = parent,
            .code = code_id(t, f->code),
            .line = f->line > 0 ? (uint32_t)f->line : 0,
        };
        parent = format_writer_stack(w, &node);
        uint32_t *slot = vec_push(&k->nodes);
        if (!slot)
            return RECORD_STACK_ROOT;
        *slot = parent;
    }
    if (s->moving) {
        struct record_stack node = {.parent = parent, .code = t->shared->moving_code};
        return format_writer_stack(w, &node);
    }
    return parent;
}

static void extend_run(struct target *t, struct track *k, uint32_t stack, unsigned state,
                       uint64_t now_ns)
{
    struct target_shared *s = t->shared;
    uint64_t gap = k->last_ns ? now_ns - k->last_ns : s->period_ns;
    gap = min_u64(gap, s->max_gap_ns);
    k->last_ns = now_ns;
    s->stats->value[RECORD_STAT_SAMPLES]++;
    if (k->run.count && k->run.stack == stack && k->run.state == state &&
        k->run.count < UINT32_MAX) {
        k->run.count++;
        k->run.duration_ns += gap;
        return;
    }
    close_run(t, k);
    uint64_t end = now_ns - s->origin_ns;
    k->run = (struct record_sample){
        .thread = k->id,
        .stack = stack,
        .state = state,
        .count = 1,
        .start_ns = end > gap ? end - gap : 0,
        .duration_ns = gap,
    };
}

static unsigned state_bits(struct target *t, size_t index, struct track *k,
                           const struct remote_sample *s, uint64_t now_ns)
{
    if (now_ns - k->state_ns >= STATE_MIN_NS) {
        uint64_t begin = 0, end = 0;
        remote_gil_range(t->remote, index, &begin, &end);
        k->os_state = threadstate_read(&k->os, begin, end);
        k->state_ns = now_ns;
    }
    unsigned state = k->os_state;
    if (s->holds_gil) {
        /* the stack was read first: it is the moment that counts, not the wait that came after */
        state |= RECORD_HOLDS_GIL;
        if (state & RECORD_WAITS_GIL)
            state ^= RECORD_WAITS_GIL | RECORD_ON_CPU;
    }
    if (s->moving)
        state |= RECORD_MOVING;
    if (s->damaged)
        state |= RECORD_DAMAGED;
    return state;
}

/* A thread that was blocked and has not had a CPU since is exactly where it was. To ask for that costs a third of reading a stack. */
static bool still_asleep(struct track *k)
{
    return k->run.count && k->asleep && threadstate_slept(&k->os);
}

/* No Python code runs in this state of a thread just now. */
static void rest(struct target *t, struct track *k, uint64_t now_ns)
{
    close_run(t, k);
    k->nodes.len = 0;
    k->last_ns = now_ns;
}

static bool has_code(const struct remote_sample *s)
{
    return s->depth || s->moving;
}

/* Books what was seen of a thread. */
static int take_sample(struct target *t, size_t index, const struct remote_sample *s,
                       uint64_t now_ns)
{
    struct track *k = t->tracks.data[index];
    uint64_t *stats = t->shared->stats->value;
    stats[RECORD_STAT_SAMPLES_RETRIED] += s->tries > 1;
    stats[RECORD_STAT_SAMPLES_MARKED] += s->moving;
    stats[RECORD_STAT_SAMPLES_DAMAGED] += s->damaged;
    unsigned state = state_bits(t, index, k, s, now_ns);
    if (k->os.ended) { /* what was read is of a thread that came after it, or of nobody */
        threadstate_close(&k->os);
        k->os.ended = false;
        remote_thread_has_ended(t->remote, index);
        return E_NOTREADY;
    }
    k->asleep = !(state & (RECORD_ON_CPU | RECORD_HOLDS_GIL | RECORD_MOVING));
    if (!has_code(s)) { /* a thread about to start or to end */
        rest(t, k, now_ns);
        return 0;
    }
    uint32_t stack = s->unchanged && k->run.count && !(k->run.state & RECORD_MOVING) && !s->moving
                         ? k->run.stack
                         : stack_node(t, k, s);
    extend_run(t, k, stack, state, now_ns);
    update_name(t, index, k, now_ns);
    return 0;
}

static int sample_thread(struct target *t, size_t index, uint64_t now_ns)
{
    struct track *k = t->tracks.data[index];
    if (still_asleep(k)) { /* never in <moving>: that is no stack to have stayed in */
        t->shared->stats->value[RECORD_STAT_SAMPLES_DAMAGED] +=
            (k->run.state & RECORD_DAMAGED) != 0;
        extend_run(t, k, k->run.stack, k->run.state, now_ns);
        update_name(t, index, k, now_ns);
        return 0;
    }
    struct remote_sample s;
    int rc = remote_sample_thread(t->remote, index, &s);
    return rc < 0 ? rc : take_sample(t, index, &s, now_ns);
}

/* A thread with states in several interpreters runs in one of them: in the one whose lock it has, else in the one it went into last,
 * which has the highest number of those with frames. Below 3.12 a thread may lend its state to another one that goes into the
 * interpreter it made: the lock tells that, and so every thread is counted once all the same. */
static int sample_states(struct target *t, size_t home, uint64_t now_ns)
{
    struct remote_sample best = {0}, s;
    size_t chosen = home;
    for (size_t i = 0; i < t->tracks.len; i++) {
        if (i != home && t->tracks.data[i]->home != t->tracks.data[home])
            continue;
        int rc = remote_sample_thread(t->remote, i, &s);
        if (rc < 0)
            return rc;
        bool better =
            !has_code(&best) || s.holds_gil > best.holds_gil ||
            (s.holds_gil == best.holds_gil && remote_thread(t->remote, i)->interpreter >
                                                  remote_thread(t->remote, chosen)->interpreter);
        if (has_code(&s) && better) {
            best = s;
            chosen = i;
        }
    }
    for (size_t i = 0; i < t->tracks.len; i++)
        if (i != chosen && (i == home || t->tracks.data[i]->home == t->tracks.data[home]))
            rest(t, t->tracks.data[i], now_ns);
    update_name(t, home, t->tracks.data[home], now_ns);
    return take_sample(t, chosen, &best, now_ns);
}

/* ---- what a profile function slows down ---- */

static uint32_t instruction_code(struct target *t, const struct remote_code *c, bool suspends)
{
    struct record_code code = code_of(t, c);
    code.flags = suspends ? RECORD_CODE_GENERATOR : 0; /* as the guest tells it */
    return target_intern_code(t->shared, &code);
}

/* The running thread is found at an instruction, which stands for the time since the last question. */
static int ask_instruction(struct target *t, uint64_t now_ns)
{
    struct remote_instruction found;
    uint64_t gap = t->instruction_ns ? now_ns - t->instruction_ns : 0;
    if (gap && gap < INSTRUCTION_MIN_NS)
        return 0;
    t->instruction_ns = now_ns;
    int rc = remote_running_instruction(t->remote, now_ns, &found);
    for (size_t i = 0; rc >= 0 && i < found.counts; i++)
        slowed_count(t->shared->slowed, t->process, found.count[i].code, found.count[i].count,
                     now_ns);
    const struct remote_code *c = rc > 0 ? remote_code(t->remote, found.code) : NULL;
    if (!c || gap > t->shared->max_gap_ns || found.thread >= t->tracks.len)
        return rc < 0 ? rc : 0;
    if (remote_thread(t->remote, found.thread)->interpreter)
        return 0; /* the hooks are in the main one */
    const struct slowed_block add = {
        .process = t->process,
        .thread = t->tracks.data[found.thread]->id,
        .code = instruction_code(t, c, found.suspends),
        .object = found.code,
        .block = found.block,
        .found_ns = (double)gap,
        .moves = found.moves,
    };
    slowed_add(t->shared->slowed, &add, now_ns);
    return 0;
}

int target_new(struct target_shared *shared, struct remote *remote, uint32_t process_id,
               struct target **ret)
{
    struct target *t = calloc(1, sizeof *t);
    if (!t)
        return E_NOMEM;
    t->shared = shared;
    t->remote = remote;
    t->process = process_id;
    t->place = shared->sources ? sources_place_new(remote_pid(remote)) : NULL;
    t->is_slowed = shared->slowed && remote_slows_instructions(remote);
    shared->slowing += t->is_slowed;
    remote_set_unsafe(remote, shared->unsafe);
    remote_set_patience(remote, shared->period_ns * 4 / 5);
    *ret = t;
    return 0;
}

/* Sees to it that the tracks are those of the threads there are now. */
static int update_threads(struct target *t, uint64_t now_ns)
{
    bool due = now_ns - t->refresh_ns >= LIST_REFRESH_NS;
    if (!due && now_ns - t->list_ns < LIST_CHECK_NS)
        return 0;
    t->list_ns = now_ns;
    if (!due && !remote_threads_may_have_changed(t->remote))
        return 0;
    t->refresh_ns = now_ns;
    int rc = remote_refresh_threads(t->remote);
    return rc < 0 ? rc : align_tracks(t, now_ns);
}

int target_sample(struct target *t, uint64_t now_ns)
{
    int rc = update_threads(t, now_ns);
    if (rc == 0 && t->is_slowed)
        rc = ask_instruction(t, now_ns);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < t->tracks.len; i++) {
        if (!t->shared->sample) {
            update_name(t, i, t->tracks.data[i], now_ns);
            continue;
        }
        if (t->tracks.data[i]->home) /* it is looked at with its home */
            continue;
        rc = t->tracks.data[i]->has_guests ? sample_states(t, i, now_ns)
                                           : sample_thread(t, i, now_ns);
        if (rc == E_NOTREADY || rc == E_BADMEM) {
            t->shared->stats->value[RECORD_STAT_SAMPLES_FAILED]++;
            t->refresh_ns = 0; /* that thread has ended */
        } else if (rc < 0) {
            return rc;
        }
    }
    if (t->shared->sources)
        sources_ask(t->shared->sources, t->place, t->remote, now_ns);
    return 0;
}

struct sources_place *target_place(const struct target *t)
{
    return t->place;
}

void target_flush(struct target *t)
{
    for (size_t i = 0; i < t->tracks.len; i++)
        close_run(t, t->tracks.data[i]);
}

void target_free(struct target *t)
{
    if (!t)
        return;
    t->shared->slowing -= t->is_slowed;
    for (size_t i = 0; i < t->tracks.len; i++)
        track_drop(t, t->tracks.data[i]);
    vec_release(&t->tracks);
    vec_release(&t->code_ids);
    sources_place_free(t->place);
    remote_close(t->remote);
    free(t);
}
