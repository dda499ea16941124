/* One thread's stack, read while it runs.
 *
 * A look (look.h) copies what a *plan* (plan.h) says, in one system call, and walks the copy. The target runs meanwhile, so
 * a copy may be torn: its outer part from one moment, its inner part from another one. A stack is believed when
 *   - one look gives exactly what the last believed sample gave, or what was proven before (known.h); or
 *   - from 3.11 on, one look shows that it is sound: it held still but for a few of its newest frames, which are of one microsecond; or
 *   - below, two looks in a row, or three, give the same frames, code and instructions (then all of them held at the
 *     moment between the two);
 * but neighbours that were never seen together need more evidence, for the seam of a torn stack is such
 * a pair (edges.h), and so does a stack that does not end at the thread's outermost frame: a
 * generator that is just being left, or a frame that is just being freed, has no caller, and a copy
 * that catches one ends there. Code objects whose names are remembered are checked after the looks (codes.c).
 *
 * A stack that still moves after REMOTE_MAX_TRIES looks, or when time is up (a part of the period between samples, in
 * bounds), is given back as *moving*, cut to the outer part that has held. */
#include "base/clock.h"
#include "base/err.h"
#include "remote/known.h"
#include "remote/look.h"
#include "remote/plan.h"

#include <string.h>

enum {
    LOOKS_FOR_PIECES = 3, /* agreeing looks that show a stack whose frames are read one by one */
    LOOKS_FOR_NEW = 6,    /* and that make unknown neighbours in it believable */
    LOOKS_FOR_BASE = 15,  /* agreeing looks that make an unknown outermost frame believable */
    INSIST = 8,           /* looks that want the stack that the first one has found, */
    OFTEN_DRAWN = 4,      /* or all, if so many of the last samples began with it, too; */
    RESTING = 6,          /* unless so many agree on another one: it has moved on */
    AT_HAND_PART = 8, /* a generator is at hand now and then, in one look of so many at least, */
    GENERATOR_LOOKS = 32,  /* or it takes so many looks, */
    GENERATOR_PART = 4,    /* and so much more of them, until its caller is believed */
    MOST_OWED = 64,        /* samples of one function */
    HOPELESS = 3,          /* agreeing looks at code objects that cannot be read */
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
    vec_release(&t->last_walk);
    vec_release(&t->climbed);
    vec_release(&t->accepted);
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
    if (base->frame == plan_root(r, t))
        return true;
    return agreed >= LOOKS_FOR_BASE ||
           (t->base_votes >= BASE_VOTES_KNOWN && base->frame == t->base);
}

static void swap_looks(struct thread *t)
{
    walked_vec other = t->before;
    t->before = t->now;
    t->now = other;
}

/* Reads the names of code objects that the last look has found and that were not met before. Returns how long that took. */
static uint64_t meet_codes(struct remote *r, struct thread *t, uint64_t now_ns)
{
    uint64_t begin_ns = 0;
    for (size_t i = 0; i <= t->now.len; i++) {
        uint32_t entry;
        uint64_t code = i < t->now.len ? t->now.data[i].code : t->unmet_code;
        if (code <= WALKED_UNREADABLE || codes_find(r, code, &entry))
            continue;
        begin_ns = begin_ns ? begin_ns : clock_mono_ns();
        if (codes_lookup(r, code, now_ns, &entry) >= 0)
            continue;
        t->no_code = code; /* which shows when it is resolved */
        if (i == t->now.len)
            t->no_frame = t->unmet_frame;
    }
    return begin_ns ? clock_mono_ns() - begin_ns : 0;
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
    if (t->accepted.len && t->accepted.data[0].frame == t->no_frame)
        t->no_frame = 0; /* it is one now */
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

/* Of the outer frames that have held: those that can be shown. None, if what they hang from is not the thread's outermost frame. */
static size_t believed_part(const struct remote *r, const struct thread *t, size_t held)
{
    const struct walked *base = look_base(&t->now);
    if (has_data_stack(r) && base && base->frame != plan_root(r, t) && base->frame != t->base)
        return 0;
    for (size_t i = 0; i < held; i++)
        if (t->now.data[t->now.len - 1 - i].code == WALKED_UNREADABLE ||
            t->now.data[t->now.len - 1 - i].code == WALKED_NO_CODE)
            return i;
    return held;
}

/* Gives up: keeps the outer frames that have held. */
static int give_moving(struct remote *r, struct thread *t, size_t held, uint64_t now_ns,
                       struct remote_sample *s)
{
    if (!codes_check(r, &t->now,
                     now_ns)) /* what was taken for another one may be why nothing was believed */
        meet_codes(r, t, now_ns);
    held = believed_part(r, t, held);
    if (held)
        memmove(t->now.data, t->now.data + (t->now.len - held), held * sizeof(struct walked));
    t->now.len = held;
    s->moving = true;
    t->has_accepted = false; /* the next sample starts afresh */
    t->bad_addr = 0;
    return resolve(r, t, &t->now, now_ns, s);
}

/* A pause of random length, up to `most` turns, so that looks cannot fall into step with the target. */
static void pause_a_little(struct remote *r, unsigned most)
{
    unsigned spins = remote_random(r) % most;
    for (unsigned i = 0; i < spins; i++)
        __builtin_ia32_pause();
}

enum edge_act { EDGES_ASK, EDGES_VOTE, EDGES_JUDGE, EDGES_LEARN };

/* Is it beyond doubt that the one calls the other? Where frames lie on a data stack the look says so of neighbours that held still, and their code
 * says whom it may call; a generator's caller has it at hand. */
static bool can_call(struct remote *r, struct thread *t, size_t caller, size_t callee,
                     uint32_t caller_entry, uint32_t callee_entry)
{
    if (!has_data_stack(r))
        return false;
    return codes_suspends(r, callee_entry) ? walk_binds(r, t, caller, callee)
                                           : codes_names(r, caller_entry, callee_entry);
}

/* What a look that decides says of two neighbours.
 *
 * Where a program advances generators in turns, and a turn takes as long as from one copy to the next, a seam may hold still in every look. But a
 * generator that now and then is at hand of its caller, in a variable, is known by that: where it is not, that is no evidence. And of one that
 * never is it takes more. */
static void judge(struct remote *r, struct thread *t, size_t caller, size_t callee,
                  uint32_t caller_entry, uint32_t callee_entry)
{
    struct code_entry *e = &r->entries.data[callee_entry];
    bool held = t->now.len - caller <= t->held && (callee > 0 || t->strict);
    uint32_t called = ++e->called;
    enum edge_evidence evidence = EDGE_NOTHING;
    if (held)
        evidence = t->now.len - callee <= t->held ? EDGE_HELD
                   : caller == callee + 1         ? EDGE_CALLER_HELD
                                                  : EDGE_THROUGH_C;
    if (codes_suspends(r, callee_entry)) {
        e->at_hand_of += walk_binds(r, t, caller, callee);
        bool is_known_by_that = (uint64_t)e->at_hand_of * AT_HAND_PART > called;
        evidence = is_known_by_that ? EDGE_NOTHING
                                    : (enum edge_evidence)min_u64(evidence, EDGE_CALLER_HELD);
        called = (uint32_t)(max_u64(called, GENERATOR_LOOKS) * GENERATOR_PART);
    }
    edges_see(&r->edges, r->entries.data[caller_entry].index, e->index, called, evidence);
}

/* Goes over the neighbours of the walk in t->now whose code objects have been met. Returns whether all are known. */
static bool over_edges(struct remote *r, struct thread *t, enum edge_act act)
{
    bool all = true, has_callee = false, guessed = false;
    uint32_t entry, callee_entry = 0;
    for (size_t i = 0, last = 0; i < t->now.len; i++) {
        if (t->now.data[i].code == WALKED_SHIM) {
            guessed |= t->now.data[i].instr == WALKED_GUESS;
            continue;
        }
        bool met = codes_find(r, t->now.data[i].code, &entry);
        if (met && codes_is_inner(r, entry))
            continue;
        uint32_t caller = met ? r->entries.data[entry].index : 0;
        uint32_t callee = has_callee ? r->entries.data[callee_entry].index : 0;
        if (met && has_callee && caller != callee) {
            if (act == EDGES_LEARN)
                edges_learn(&r->edges, caller, callee);
            else if (act == EDGES_VOTE)
                edges_vote(&r->edges, caller, callee);
            else if (act == EDGES_JUDGE && t->sound && !guessed)
                judge(r, t, i, last, entry, callee_entry);
            all &= edges_known(&r->edges, caller, callee) ||
                   can_call(r, t, i, last, entry, callee_entry);
        }
        has_callee = met;
        callee_entry = entry;
        last = i;
        guessed = false;
    }
    return all;
}

/* Was it proven before, and does it run the code that it ran then? One look is enough for that. */
static bool is_known(struct remote *r, struct thread *t, uint64_t path, uint64_t look_ns,
                     uint64_t now_ns)
{
    return known_has(r, path) && codes_confirm(r, &t->now, false, look_ns, now_ns) == CODES_YES;
}

/* Is a stack that `agreed` looks in a row have shown to be believed? */
static bool is_believable(struct remote *r, struct thread *t, uint64_t path, unsigned agreed)
{
    if (has_data_stack(r))
        return over_edges(r, t, EDGES_JUDGE) && t->sound && base_is_good(r, t, agreed);
    if (agreed < 2)
        return false;
    if (known_has(r, path))
        return true;
    if (agreed < LOOKS_FOR_PIECES || !base_is_good(r, t, agreed))
        return false;
    return over_edges(r, t, agreed == LOOKS_FOR_PIECES ? EDGES_VOTE : EDGES_ASK) ||
           agreed >= LOOKS_FOR_NEW;
}

/* A sample begins with an unknown stack. Have others lately, again and again? Then it is one that the thread is in, though it may never
 * hold still for as long as the proof takes: a torn copy is another one each time. Where frames lie anywhere, looks are so slow
 * that a program may rest for two of them and never for three. */
static bool is_drawn_often(const struct remote *r, struct thread *t, uint64_t hash)
{
    unsigned n = 0;
    if (has_data_stack(r))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(t->drawn); i++)
        n += t->drawn[i] == hash;
    t->drawn[t->draws++ % ARRAY_LEN(t->drawn)] = hash;
    return n >= OFTEN_DRAWN;
}

/* What a sample has drawn. */
struct draw {
    uint64_t path;  /* the stack, as known_hash() has it; 0: it is not known */
    uint64_t code;  /* the function that ran */
    bool is_set;    /* there was a walk that says what of it */
    size_t held;    /* so many outermost frames held still, */
    uint64_t outer; /* which are these */
};

/* The rest of it was changing while it was looked at. */
static void set_draw(const struct remote *r, const struct thread *t, size_t held, struct draw *d)
{
    d->is_set = true;
    d->held = held;
    d->outer = known_hash_of_outer(r, &t->now, held);
}

static struct code_entry *entry_of(struct remote *r, uint64_t code)
{
    uint32_t entry;
    return codes_find(r, code, &entry) ? &r->entries.data[entry] : NULL;
}

/* A function has been drawn, or is given as the one that runs. */
static void owe(struct remote *r, uint64_t code, int samples)
{
    struct code_entry *e = entry_of(r, code);
    if (e && e->owed + samples <= MOST_OWED && e->owed + samples >= -MOST_OWED)
        e->owed += samples;
}

/* What the last look has drawn, if that can be told. */
static void draw(struct remote *r, const struct thread *t, struct draw *d)
{
    if (!entry_of(r, t->drawn_code))
        return;
    d->code = t->drawn_code;
    owe(r, d->code, 1);
}

/* May the stack of this look be given for the one that was drawn? If the same function runs; or, where something moves too quickly to be
 * proven at once, below what has held in both, for a function that has been drawn before in vain. So each is given as often as it is drawn. */
static bool stands_for(struct remote *r, const struct thread *t, const struct draw *d)
{
    if (!has_data_stack(r) || !d->code || look_top(&t->now) == d->code)
        return true;
    const struct code_entry *e = entry_of(r, look_top(&t->now));
    if (!e || e->owed <= 0)
        return false;
    return d->is_set && t->now.len > d->held && t->held < t->now.len &&
           known_hash_of_outer(r, &t->now, d->held) == d->outer;
}

/* One sample's search for a stack that is to be believed. */
struct search {
    struct draw draw;
    uint64_t begin_ns, patience_ns;
    uint64_t look_ns; /* when the last look began, */
    bool walked;      /* and it was a whole walk, in t->now: */
    uint64_t path;    /* what known_hash() says of it */
    unsigned agreed;  /* looks in a row that have shown it, */
    bool checked;     /* and before the last of them its code was what is remembered */
    size_t held; /* its outermost frames that the walk before has shown, too, or that held still */
    uint64_t met_ns; /* spent on code met for the first time: none of the patience */
    bool insists;    /* on the stack that was drawn, to the end */
    bool learnt[2];  /* one sample is one proof: of a stack that is wanted, and of another */
};

/* From the first look, which was a whole walk or was not. */
static struct search begin_search(struct remote *r, struct thread *t, bool walked, uint64_t now_ns)
{
    struct search q = {.begin_ns = now_ns, .look_ns = now_ns, .walked = walked, .agreed = walked};
    uint64_t patience = r->patience_ns ? max_u64(r->patience_ns, SETTLE_MIN_NS) : SETTLE_MAX_NS;
    q.patience_ns = min_u64(patience, SETTLE_MAX_NS);
    draw(r, t, &q.draw);
    if (!walked)
        return q;
    q.met_ns = meet_codes(r, t, now_ns);
    q.path = known_hash(r, &t->now);
    if (look_top(&t->now) == q.draw.code)
        q.draw.path = q.path;
    if (t->decides)
        set_draw(r, t, t->held, &q.draw);
    q.insists = q.draw.path && !known_has(r, q.path) && is_drawn_often(r, t, q.path);
    return q;
}

static int look_again(struct remote *r, struct thread *t, struct search *q)
{
    if (q->walked)
        swap_looks(t);
    q->look_ns = clock_mono_ns();
    int rc = look_take(r, t, LOOK_AGAIN);
    q->walked = rc == 0;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    size_t common = q->agreed ? common_frames(&t->now, &t->before) : 0;
    q->held = max_u64(t->held, common);
    if (!q->draw.code)
        draw(r, t, &q->draw);
    if (!q->draw.is_set)
        set_draw(r, t, q->agreed ? common : t->held, &q->draw);
    q->agreed = q->agreed && walk_same(&t->now, &t->before) ? q->agreed + 1 : 1;
    q->checked &= q->agreed > 1;
    q->met_ns += meet_codes(r, t, q->begin_ns);
    q->path = known_hash(r, &t->now);
    return 0;
}

/* Does a stack that is to be believed run the code that is remembered? */
static bool is_confirmed(struct remote *r, struct thread *t, struct search *q)
{
    enum codes_verdict good =
        codes_confirm(r, &t->now, q->agreed >= HOPELESS, q->look_ns, q->begin_ns);
    bool confirmed = good == CODES_YES || (good == CODES_LATE && q->checked);
    q->checked = good == CODES_LATE;
    if (good == CODES_NO)
        q->met_ns += meet_codes(r, t, q->begin_ns);
    return confirmed;
}

/* Goes on from the first look until one shows a stack that is to be believed.
 *
 * What the first look shows is a fair draw of where the program spends its time. The first stack that can be proven
 * is not: one that is read sooner, being in fewer pieces, or that lasts longer would come more often, and
 * one that is known already would leave the others no time to become so. So for some looks that very
 * stack is waited for; others are learnt meanwhile. Then one that may stand for it will do. If it is unknown and comes again and again no other
 * one takes its place at all, for of two that cannot be proven alike the known one would have all samples. */
static int settle(struct remote *r, struct thread *t, bool walked, uint64_t now_ns,
                  struct remote_sample *s)
{
    struct search q = begin_search(r, t, walked, now_ns);
    edges_next_round(&r->edges);
    for (s->tries = 1;; s->tries++) {
        uint64_t taken = clock_mono_ns() - now_ns - q.met_ns;
        bool waits = q.insists || (s->tries < INSIST && taken < q.patience_ns / 2);
        bool other =
            q.walked && (q.draw.path && waits ? q.path != q.draw.path : !stands_for(r, t, &q.draw));
        bool believable = q.walked && is_believable(r, t, q.path, q.agreed);
        bool may_be_known = q.walked && !other && (t->decides || s->tries > 1);
        bool done = may_be_known && is_known(r, t, q.path, q.look_ns, now_ns);
        if (!done && believable && is_confirmed(r, t, &q)) {
            if (!q.learnt[other]) {
                over_edges(r, t, EDGES_LEARN);
                known_learn(r, &t->now);
            }
            q.learnt[other] = true;
            done = !other || q.agreed >= RESTING;
        }
        if (done) {
            owe(r, look_top(&t->now), -1);
            return accept(r, t, now_ns, s);
        }
        if (!believable && (has_data_stack(r) || q.agreed < 2 || q.agreed > LOOKS_FOR_PIECES))
            pause_a_little(r, s->tries < 4 ? 2 : PAUSE_TURNS << (s->tries < 6 ? s->tries - 4 : 2));
        if (s->tries == REMOTE_MAX_TRIES || (s->tries > 4 && q.agreed < 2 && taken > q.patience_ns))
            break;
        int rc = look_again(r, t, &q);
        if (rc < 0)
            return rc;
    }
    if (!q.walked)
        swap_looks(t); /* to the last walk */
    return give_moving(r, t, min_u64(q.held, t->now.len), now_ns, s);
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
    if (rc == 0 && t->has_accepted && now_ns < t->check_ns && walk_same(&t->now, &t->accepted)) {
        s.damaged = t->accepted_damaged;
        t->flows = false;
        touch_leaf(r, t, &s);
        rc = t->spare ? plan_age(r, t) : 0;
    } else if (r->unsafe) {
        meet_codes(r, t, now_ns);
        rc = accept(r, t, now_ns, &s);
    } else {
        bool walked = rc == 0;
        t->flows = !walked || !t->has_accepted || !walk_same(&t->now, &t->accepted);
        if (walked && !t->decides && is_known(r, t, known_hash(r, &t->now), now_ns, now_ns))
            rc = accept(r, t, now_ns, &s);
        else
            rc = settle(r, t, walked, now_ns, &s);
    }
    if (rc < 0)
        return rc;
    s.depth = (uint32_t)t->frames.len;
    s.frames = t->frames.data;
    *ret = s;
    return 0;
}
