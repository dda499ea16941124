/* One thread's stack, read while it runs.
 *
 * A *look* copies, in one system call and in this order: the thread state, the GIL's holder, the
 * predicted C frame (3.11, 3.12), and the regions of a *plan*: the data-stack chunks in use and
 * frames that live elsewhere (generators, interpreter shims, every frame below 3.11). Then it walks the copy. A frame the plan does not cover is chased by single reads, added to the plan, and
 * the look is repeated, so that a walk only ever uses bytes of one call.
 *
 * The target runs meanwhile, so a copy may be torn. A look at a new stack therefore ends by reading
 * the top once more, and a stack is believed when
 *   - two looks in a row give the same frames, code and instructions (then all of them held at the
 *     moment between the two), or
 *   - one look gives exactly what the last believed sample gave, or what was proven before (known.h), if
 *     need be with callers put back into the calls that they have just returned from (sites.h);
 * but neighbours that were never seen together need more looks, for the seam of a torn stack is such
 * a pair (edges.h), and so does a stack that does not end at the thread's outermost frame: a
 * generator that is just being left, or a frame that is just being freed, has no caller, and a copy
 * that catches one ends there.
 * Code objects whose names are remembered are checked between two looks, or before and after them
 * (codes.c). A stack that still moves after REMOTE_MAX_TRIES looks, or when time is up (a part of the
 * period between samples, in bounds), is given back as *moving*, cut to the outer part that the last two looks agree on. */
#include "base/clock.h"
#include "base/err.h"
#include "remote/known.h"
#include "remote/look.h"
#include "remote/plan.h"
#include "remote/sites.h"

#include <string.h>

enum {
    LOOKS_FOR_NEW = 6,     /* agreeing looks that make unknown neighbours believable */
    LOOKS_FOR_BASE = 15,   /* agreeing looks that make an unknown outermost frame believable */
    INSIST = 8,            /* looks that want the stack that the first one has found, */
    OFTEN_DRAWN = 4,       /* or all, if so many of the last samples began with it, too; */
    RESTING = 3,           /* unless so many agree on another one: it has moved on */
    PAUSE_TURNS = 48,      /* of the processor's pause instruction: 1 to 2 µs */
    BASE_VOTES_KNOWN = 16, /* looks that establish the outermost frame */
};

#define SETTLE_MAX_NS   (250 * NS_PER_US) /* a stack that moves that long is given up */
#define SETTLE_MIN_NS   (80 * NS_PER_US)  /* and not before this: some ten looks */
#define GIL_INTERVAL_NS (50 * NS_PER_US)  /* above 20 kHz the GIL is asked for less often */

void thread_free(struct thread *t)
{
    if (!t)
        return;
    vec_release(&t->chunks);
    vec_release(&t->regions);
    vec_release(&t->pieces);
    vec_release(&t->old_pieces);
    vec_release(&t->now);
    vec_release(&t->before);
    vec_release(&t->accepted);
    vec_release(&t->put_back);
    vec_release(&t->frames);
    vec_release(&t->spare_frames);
    free(t->copy);
    free(t);
}

/* May a stack that `agreed` looks have shown end where this one ends? Not at a generator, unless the
 * thread has never shown another end: C code may drive a generator with no Python around it. */
static bool base_is_good(struct remote *r, struct thread *t, unsigned agreed)
{
    const struct walked *base = look_base(&t->now);
    if (!base)
        return true;
    if (codes_is_generator(r, base->code))
        return !t->plain_base && agreed >= LOOKS_FOR_BASE;
    t->plain_base = true;
    return agreed >= LOOKS_FOR_BASE ||
           (t->base_votes >= BASE_VOTES_KNOWN && base->frame == t->base);
}

/* The same frames running the same code, each caller at the same instruction. Where the running
 * frame is within itself does not matter: it moves all the time, and each place is true. */
static bool same(const walked_vec *a, const walked_vec *b)
{
    if (a->len != b->len)
        return false;
    if (a->len == 0)
        return true;
    return a->data[0].frame == b->data[0].frame && a->data[0].code == b->data[0].code &&
           memcmp(a->data + 1, b->data + 1, (a->len - 1) * sizeof *a->data) == 0;
}

static void swap_looks(struct thread *t)
{
    walked_vec other = t->before;
    t->before = t->now;
    t->now = other;
}

/* Reads the names of code objects not met before. */
static void meet_codes(struct remote *r, const walked_vec *stack, uint64_t now_ns)
{
    for (size_t i = 0; i < stack->len; i++) {
        uint32_t entry;
        uint64_t code = stack->data[i].code;
        if (code != WALKED_SHIM && code != WALKED_UNREADABLE &&
            (i == 0 || code != stack->data[i - 1].code))
            codes_lookup(r, code, now_ns, &entry); /* a failure shows when it is resolved */
    }
}

/* How many frames, counted from the root, two resolved stacks have in common. */
static uint32_t shared_frames(const frame_vec *a, const frame_vec *b)
{
    uint32_t n = 0;
    while (n < a->len && n < b->len) {
        const struct remote_frame *x = &a->data[a->len - 1 - n], *y = &b->data[b->len - 1 - n];
        if (x->code != y->code || x->line != y->line || x->code == REMOTE_CODE_UNREADABLE)
            break;
        n++;
    }
    return n;
}

/* Turns a walk into frames with code and line, and compares them with the last sample's. */
static int resolve(struct remote *r, struct thread *t, const walked_vec *stack, uint64_t now_ns,
                   struct remote_sample *s)
{
    frame_vec *out = &t->spare_frames;
    out->len = 0;
    s->damaged = false;
    if (!vec_reserve(out, stack->len + 1))
        return E_NOMEM;
    for (size_t i = 0; i < stack->len; i++) {
        const struct walked *w = &stack->data[i];
        struct remote_frame frame = {REMOTE_CODE_UNREADABLE, 0};
        uint32_t entry;
        if (w->code == WALKED_SHIM)
            continue;
        if (w->code != WALKED_UNREADABLE && codes_lookup(r, w->code, now_ns, &entry) == 0) {
            if (codes_is_inner(r, entry))
                continue;
            frame.code = r->entries.data[entry].index;
            frame.line = codes_line(r, entry, w->instr);
        } else {
            s->damaged = true;
        }
        out->data[out->len++] = frame;
    }
    s->shared = shared_frames(out, &t->frames);
    s->unchanged = s->shared == out->len && out->len == t->frames.len;
    frame_vec old = t->frames;
    t->frames = *out;
    *out = old;
    return 0;
}

/* Believes the walk in t->now. */
static int accept(struct remote *r, struct thread *t, uint64_t now_ns, struct remote_sample *s)
{
    int rc = resolve(r, t, &t->now, now_ns, s);
    if (rc < 0)
        return rc;
    walked_vec old = t->accepted;
    t->accepted = t->now;
    t->now = old;
    t->has_accepted = true;
    t->accepted_damaged = s->damaged;
    t->check_ns = codes_next_check(r, &t->accepted, now_ns);
    t->bad_addr = 0;
    return plan_renew(r, t);
}

/* How many frames, counted from the root, two looks have in common. */
static size_t common_frames(const walked_vec *a, const walked_vec *b)
{
    size_t n = 0;
    while (n < a->len && n < b->len &&
           memcmp(&a->data[a->len - 1 - n], &b->data[b->len - 1 - n], sizeof *a->data) == 0)
        n++;
    return n;
}

/* Gives up: keeps the outer frames that the last two looks have in common. */
static int give_moving(struct remote *r, struct thread *t, uint64_t now_ns, struct remote_sample *s)
{
    int rc = plan_cut_back(r, t);
    if (rc < 0)
        return rc;
    size_t common = common_frames(&t->now, &t->before);
    if (common)
        memmove(t->now.data, t->now.data + (t->now.len - common), common * sizeof(struct walked));
    t->now.len = common;
    s->moving = true;
    t->has_accepted = false; /* the next sample starts afresh */
    rc = resolve(r, t, &t->now, now_ns, s);
    t->bad_addr = 0;
    return rc;
}

/* A pause of random length, up to `most` turns, so that looks cannot fall into step with the target. */
static void pause_a_little(struct remote *r, unsigned most)
{
    unsigned spins = remote_random(r) % most;
    for (unsigned i = 0; i < spins; i++)
        __builtin_ia32_pause();
}

enum edge_act { EDGES_ASK, EDGES_VOTE, EDGES_LEARN };

/* Goes over the neighbours of a walk whose code objects have been met. Asked: are all known? */
static bool over_edges(struct remote *r, const walked_vec *stack, enum edge_act act)
{
    uint32_t callee = UINT32_MAX;
    for (size_t i = 0; i < stack->len; i++) {
        uint32_t entry, caller;
        uint64_t code = stack->data[i].code;
        if (code == WALKED_SHIM)
            continue;
        if (code == WALKED_UNREADABLE || codes_lookup(r, code, 0, &entry) < 0)
            caller = UINT32_MAX;
        else
            caller = r->entries.data[entry].index;
        if (callee != UINT32_MAX && caller != UINT32_MAX && callee != caller) {
            if (act == EDGES_LEARN)
                edges_learn(&r->edges, caller, callee);
            else if (act == EDGES_VOTE)
                edges_vote(&r->edges, caller, callee);
            else if (!edges_known(&r->edges, caller, callee))
                return false;
        }
        callee = caller;
    }
    return true;
}

/* Do frames of this stack lie outside of the data stack, which is copied in one piece? */
static bool is_scattered(struct remote *r, const walked_vec *stack)
{
    if (r->layout.frames == PYL_FRAMES_HEAP)
        return true;
    for (size_t i = 0; i < stack->len; i++)
        if (stack->data[i].code > WALKED_UNREADABLE && codes_is_generator(r, stack->data[i].code))
            return true;
    return false;
}

/* Was it proven before, and does it run the code that it ran then? One look is enough for that. If it
 * runs other code, *sound becomes false. */
static bool is_known(struct remote *r, struct thread *t, uint64_t now_ns, bool *sound)
{
    if (!known_has(r, &t->now) || !codes_can_wait(r, &t->now, false, now_ns))
        return false;
    bool good = codes_check(r, &t->now, now_ns);
    *sound &= good;
    return good;
}

/* Is the first look, in t->now, at a known stack that was being returned from? Then it becomes that. A
 * caller that stands behind one call may as well be in the next one, which is not known yet: so it has to
 * be seen that it is not. Returns 1 yes, 0 no, or a negative code. */
static int was_returning(struct remote *r, struct thread *t, uint64_t now_ns)
{
    size_t outermost = sites_put_back(r, &t->now, &t->put_back);
    if (!outermost || !known_has(r, &t->put_back) ||
        !codes_can_wait(r, &t->put_back, false, now_ns))
        return 0;
    int rc = look_has_left(r, t, &t->now.data[outermost]);
    if (rc <= 0 || !codes_check(r, &t->now, now_ns))
        return rc < 0 ? rc : 0;
    walked_vec read = t->now;
    t->now = t->put_back;
    t->put_back = read;
    return 1;
}

/* Is a stack that `agreed` looks in a row have shown to be believed? */
static bool is_believable(struct remote *r, struct thread *t, unsigned agreed)
{
    if (known_has(r, &t->now))
        return true;
    if (agreed < 3 && is_scattered(r, &t->now))
        return false; /* its pieces are read one after the other: once more */
    if (!base_is_good(r, t, agreed))
        return false;
    if (over_edges(r, &t->now, EDGES_ASK))
        return true;
    if (agreed <= 3)
        over_edges(r, &t->now, EDGES_VOTE);
    return agreed >= LOOKS_FOR_NEW;
}

/* The running function's code object; 0: it has none. */
static uint64_t top_code(const walked_vec *stack)
{
    return stack->len && stack->data[0].code > WALKED_NO_CODE ? stack->data[0].code : 0;
}

/* A sample begins with an unknown stack. Have others lately, again and again? Then it is one that the thread is in, though it may never
 * hold still for as long as the proof takes: a torn copy is another one each time. Where frames lie anywhere, looks are so slow
 * that a program may rest for two of them and never for three. */
static bool is_drawn_often(const struct remote *r, struct thread *t, uint64_t hash)
{
    unsigned n = 0;
    if (r->layout.frames != PYL_FRAMES_HEAP)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(t->drawn); i++)
        n += t->drawn[i] == hash;
    t->drawn[t->draws++ % ARRAY_LEN(t->drawn)] = hash;
    return n >= OFTEN_DRAWN;
}

/* Looks again until two looks agree, or one shows what was proven before. The first look is in t->now,
 * if it was a `whole` walk.
 *
 * What it shows is a fair draw of where the program spends its time. The first stack that can be proven
 * is not: one that is read sooner, being in fewer pieces, or that lasts longer would come more often, and
 * one that is known already would leave the others no time to become so. So for some looks that very
 * stack is waited for; others are learnt meanwhile. If it is unknown and comes again and again no other one
 * takes its place at all, for of two that cannot be proven alike the known one would have all samples. */
static int settle(struct remote *r, struct thread *t, bool whole, uint64_t now_ns,
                  struct remote_sample *s)
{
    bool sound = false; /* its code objects are those that are remembered, */
    bool late = false;  /* or that is to be checked after the looks */
    /* one sample is one proof: of a stack that is wanted, and of another */
    bool learnt[2] = {false};
    unsigned agreed = 1;
    uint64_t patience = r->patience_ns ? max_u64(r->patience_ns, SETTLE_MIN_NS) : SETTLE_MAX_NS;
    patience = min_u64(patience, SETTLE_MAX_NS);
    uint64_t wanted = whole && top_code(&t->now) ? known_hash(r, &t->now) : 0;
    bool insists = wanted && !known_has(r, &t->now) && is_drawn_often(r, t, wanted);
    edges_next_round(&r->edges);
    for (s->tries = 1; s->tries <= REMOTE_MAX_TRIES; s->tries++) {
        uint64_t taken = clock_mono_ns() - now_ns;
        if (s->tries > 4 && agreed == 1 && taken > patience)
            break;
        if (agreed == 1 && whole) {
            meet_codes(r, &t->now, now_ns);
            late = codes_can_wait(r, &t->now, true, now_ns);
            sound = late || codes_check(r, &t->now, now_ns);
        }
        if (whole)
            swap_looks(t);
        int rc = look_take(r, t, LOOK_AGAIN);
        if (rc < 0)
            return rc;
        whole = rc == 0;
        bool waits = insists || (s->tries < INSIST && taken < patience / 2);
        bool other = wanted && whole && waits && known_hash(r, &t->now) != wanted;
        if (whole && !other && is_known(r, t, now_ns, &sound))
            return accept(r, t, now_ns, s);
        if (!whole || !sound || !same(&t->now, &t->before)) {
            agreed = 1;
            pause_a_little(r, s->tries < 4 ? 2 : PAUSE_TURNS << (s->tries < 6 ? s->tries - 4 : 2));
            continue;
        }
        agreed++;
        if (!is_believable(r, t, agreed)) {
            if (agreed > 3 || !is_scattered(r, &t->now))
                pause_a_little(r, PAUSE_TURNS);
            continue;
        }
        if (late && !codes_check(r, &t->now, now_ns)) {
            agreed = 1;
            continue;
        }
        if (!learnt[other]) {
            over_edges(r, &t->now, EDGES_LEARN);
            known_learn(r, &t->now);
            sites_learn(r, &t->now);
        }
        learnt[other] = true;
        if (!other || agreed >= RESTING)
            return accept(r, t, now_ns, s);
    }
    if (s->tries > REMOTE_MAX_TRIES)
        s->tries = REMOTE_MAX_TRIES;
    if (!whole)
        t->now.len = 0;
    return give_moving(r, t, now_ns, s);
}

/* The believed stack again; only the running frame may have got to another line. */
static void touch_leaf(struct remote *r, struct thread *t, struct remote_sample *s)
{
    s->shared = (uint32_t)t->frames.len;
    s->unchanged = true;
    if (!t->now.len || t->now.data[0].code <= WALKED_UNREADABLE ||
        t->now.data[0].instr == t->accepted.data[0].instr)
        return;
    uint32_t entry;
    t->accepted.data[0].instr = t->now.data[0].instr;
    if (codes_lookup(r, t->now.data[0].code, 0, &entry) < 0 || codes_is_inner(r, entry))
        return;
    int32_t line = codes_line(r, entry, t->now.data[0].instr);
    if (line != t->frames.data[0].line) {
        t->frames.data[0].line = line;
        s->unchanged = false;
        s->shared--;
    }
}

int remote_sample_thread(struct remote *r, size_t index, struct remote_sample *ret)
{
    struct thread *t = r->threads.data[index];
    struct remote_sample s = {.tries = 1};
    uint64_t now_ns = clock_mono_ns();
    bool ask_gil = now_ns - t->gil_ns >= GIL_INTERVAL_NS;
    int rc = look_take(r, t, ask_gil ? LOOK_WITH_GIL : LOOK_FIRST);
    if (rc < 0)
        return rc;
    if (ask_gil)
        t->gil_ns = now_ns;
    s.holds_gil = t->holds_gil;
    s.gil_known = t->gil_known;
    if (rc == 0 && t->has_accepted && now_ns < t->check_ns && same(&t->now, &t->accepted)) {
        s.damaged = t->accepted_damaged;
        touch_leaf(r, t, &s);
        rc = plan_held_still(t);
    } else if (r->unsafe) {
        meet_codes(r, &t->now, now_ns);
        rc = accept(r, t, now_ns, &s);
    } else if (rc == 0 && is_known(r, t, now_ns, &(bool){true})) {
        rc = accept(r, t, now_ns, &s);
    } else {
        bool whole = rc == 0;
        rc = whole ? was_returning(r, t, now_ns) : 0;
        if (rc == 1) {
            s.tries = 2;
            rc = accept(r, t, now_ns, &s);
        } else if (rc == 0) {
            if (whole)
                sites_doubt(r, &t->now);
            rc = settle(r, t, whole, now_ns, &s);
        }
    }
    if (rc < 0)
        return rc;
    s.depth = (uint32_t)t->frames.len;
    s.frames = t->frames.data;
    *ret = s;
    return 0;
}
