/* The walk over a look's copies, and what they say about each other. See look.h.
 *
 * Which frame is the newest is read first, a microsecond before the frames. By then it may have called another one or may have returned,
 * and what quick functions are found in then is not a stack of any moment. So the walk corrects the beginning: the stack is that of the moment
 * at which the data stack was copied. Otherwise a function that is quicker than a look would be seen too seldom, being over when
 * its frame is copied, and its caller too often. A frame tells whether it is there:
 *   - 3.11 to 3.13: one that runs, or is in C, keeps no stack top; one that has called another one of Python's, or has returned, or has not begun, does;
 *   - 3.14 and later: one that has returned has no code any more;
 *   - a generator's says whether it runs. Where it yielded it is kept with the callers that it had. */
#include "base/err.h"
#include "remote/look.h"
#include "remote/plan.h"

#include <string.h>

enum {
    STRETCH = 4096, /* bytes that are copied as quickly as they are to be believed together */
    TSTATE_BYTES = 4096,
    C_STACK_BYTES = 128 << 10, /* of its outer end, where entry frames are looked for */
    MAX_CLIMB = 1024,          /* frames of the data stack */
    MAX_NEST = 16,             /* generators that run each other, */
    MAX_ASKED = 64,            /* of so many that are asked */
    MAX_FRAME_BYTES = 4096,    /* that are searched for a generator */
};
#define TAG_BITS 7ull /* of a reference, from 3.14 on */

static bool is_generator(const struct pylayout *l, const uint8_t *frame)
{
    return l->frame.owner != PYL_NONE && frame[l->frame.owner] == PYL_OWNER_GENERATOR;
}

static bool is_on_data_stack(const struct pylayout *l, const uint8_t *frame)
{
    return l->frame.owner != PYL_NONE && frame[l->frame.owner] == PYL_OWNER_THREAD;
}

static bool is_shim(const struct pylayout *l, const uint8_t *frame)
{
    return l->shim_owner_min && frame[l->frame.owner] >= l->shim_owner_min &&
           frame[l->frame.owner] <= l->shim_owner_max;
}

/* Does a generator run, in that copy? One whose state was not copied does, for all that is known. */
static bool generator_runs(const struct pylayout *l, struct thread *t, uint64_t addr,
                           enum look_copy copy)
{
    uint32_t before = l->frame.generator_state;
    const uint8_t *state = look_bytes(t, addr - before, 1, copy);
    return !state || *state == l->frame.generator_runs;
}

/* Can a frame of the data stack say whether it is there? */
static bool frames_tell(const struct remote *r)
{
    return !r->unsafe && (r->layout.frame.stacktop != PYL_NONE || r->layout.frame.clears_code);
}

/* 3.11 to 3.13: it runs, or is in C. */
static bool runs(const struct pylayout *l, const uint8_t *frame)
{
    return l->frame.stacktop != PYL_NONE && (int32_t)field_u32(frame, l->frame.stacktop) < 0;
}

static bool has_code(const struct pylayout *l, const uint8_t *frame)
{
    return field_u64(frame, l->frame.code) & ~(uint64_t)l->code_tag_mask;
}

/* Is it there for certain? One that is being made may have the caller of what was there before. */
static bool is_alive(const struct remote *r, const uint8_t *frame)
{
    const struct pylayout *l = &r->layout;
    if (!l->frame.clears_code)
        return runs(l, frame);
    uint64_t code = field_u64(frame, l->frame.code) & ~(uint64_t)l->code_tag_mask;
    return code && field_u64(frame, l->frame.instr) != code + l->code.code_adaptive;
}

void look_read_frame(const struct pylayout *l, const uint8_t *f, struct walked *w)
{
    bool index = l->instr == PYL_INSTR_BYTE_INDEX || l->instr == PYL_INSTR_UNIT_INDEX;
    w->code = field_u64(f, l->frame.code) & ~(uint64_t)l->code_tag_mask;
    w->instr =
        index ? (int32_t)field_u32(f, l->frame.instr) : (int64_t)field_u64(f, l->frame.instr);
}

/* The frame of the data stack that runs a generator, as far as the plan knows. */
static uint64_t driver(const struct remote *r, struct thread *t, uint64_t frame)
{
    const struct pylayout *l = &r->layout;
    for (int i = 0; i < MAX_NEST; i++) {
        const uint8_t *f = look_bytes(t, frame, plan_frame_bytes(l), LOOK_MIDDLE);
        frame = f ? field_u64(f, l->frame.previous) : 0;
        if (!frame || plan_chunk(t, frame))
            return frame;
    }
    return 0;
}

/* The generator frames that `top` runs, by the copies: one calls the other, in any order. Returns how many; more than MAX_NEST: it cannot be told. */
static size_t running_generators(const struct remote *r, struct thread *t, uint64_t top,
                                 uint64_t frames[static MAX_NEST])
{
    const struct pylayout *l = &r->layout;
    uint32_t lead = plan_frame_lead(l), need = plan_frame_bytes(l);
    size_t n = 0;
    if (t->pieces.len > MAX_ASKED)
        return MAX_NEST + 1;
    for (size_t i = 0; i < t->pieces.len; i++) {
        uint64_t frame = t->pieces.data[i].addr + lead;
        const uint8_t *f = t->pieces.data[i].loose ? look_bytes(t, frame, need, LOOK_MIDDLE) : NULL;
        if (!f || !is_generator(l, f) || !has_code(l, f) || driver(r, t, frame) != top)
            continue;
        bool before = generator_runs(l, t, frame, LOOK_MIDDLE),
             after = generator_runs(l, t, frame, LOOK_AFTER);
        if ((before || after) && (before != after || n == MAX_NEST))
            return MAX_NEST + 1;
        if (before)
            frames[n++] = frame;
    }
    return n;
}

/* A frame of the data stack that looks as if it were the newest may be in C and run a generator. Returns the newest of all; 0: it cannot be told. */
static uint64_t innermost(const struct remote *r, struct thread *t, uint64_t top)
{
    const struct pylayout *l = &r->layout;
    uint32_t need = plan_frame_bytes(l);
    uint64_t frames[MAX_NEST], newest = 0;
    size_t n = running_generators(r, t, top, frames);
    if (n == 0)
        return top;
    for (size_t i = 0; n <= MAX_NEST && i < n; i++) {
        bool calls = false;
        for (size_t k = 0; k < n; k++)
            calls |= field_u64(look_bytes(t, frames[k], need, LOOK_MIDDLE), l->frame.previous) ==
                     frames[i];
        if (calls)
            continue;
        if (newest)
            return 0;
        newest = frames[i];
    }
    return newest && is_alive(r, look_bytes(t, newest, need, LOOK_MIDDLE)) &&
                   is_alive(r, look_bytes(t, newest, need, LOOK_AFTER))
               ? newest
               : 0;
}

/* Is it where entry frames are? None is above the outermost one. */
static bool is_on_c_stack(const struct thread *t, uint64_t addr)
{
    return addr <= t->entries_end && t->entries_end - addr < C_STACK_BYTES;
}

/* Who has called the last frame of the walk through C, if its entry frame is not to be seen? That was copied before the data stack was, and may be younger.
 * It is the frame below it, if that is in C and runs no generator. 0: it cannot be told. */
static uint64_t caller_in_c(const struct remote *r, struct thread *t)
{
    const struct walked *w = t->now.len ? &t->now.data[t->now.len - 1] : NULL;
    if (!w || r->layout.frame.clears_code)
        return 0;
    for (size_t i = t->climbed.len; i-- > 1;) {
        if (t->climbed.data[i] != w->frame)
            continue;
        uint64_t caller = t->climbed.data[i - 1];
        if (plan_chunk(t, caller) != plan_chunk(t, w->frame))
            return 0; /* what is last in a chunk may have been left there */
        const uint8_t *f = look_bytes(t, caller, plan_frame_bytes(&r->layout), LOOK_MIDDLE);
        return f && runs(&r->layout, f) && innermost(r, t, caller) == caller ? caller : 0;
    }
    return 0;
}

/* Has what a frame has called in the same turn of the interpreter's loop been returned from? When it runs itself it has no callee but through C. */
static bool has_returned(const struct pylayout *l, const uint8_t *caller)
{
    return is_on_data_stack(l, caller) && runs(l, caller);
}

/* Is it what a frame of the data stack has left there? */
static bool has_ended(const struct remote *r, const uint8_t *frame)
{
    const struct pylayout *l = &r->layout;
    return l->frame.clears_code && is_on_data_stack(l, frame) && !has_code(l, frame);
}

/* Can one be there? What the pointer says may be gone, and where an entry frame was on the C stack may be anything. */
static bool is_frame(const struct pylayout *l, const struct region *g, const uint8_t *f)
{
    return g->loose ? is_generator(l, f) || is_shim(l, f) : is_on_data_stack(l, f);
}

static int walk_down(struct remote *r, struct thread *t, uint64_t addr, uint64_t *ret_miss)
{
    const struct pylayout *l = &r->layout;
    uint32_t need = plan_frame_bytes(l);
    struct plan_circle circle = {0};
    bool tell = frames_tell(r), has_inline_callee = false;
    t->now.len = 0;
    t->last_hit = 0;
    while (addr) {
        if (!vec_reserve(&t->now, t->now.len + 1))
            return E_NOMEM;
        struct walked *w = &t->now.data[t->now.len];
        if (!mem_plausible(addr) || addr == t->bad_addr || t->now.len >= REMOTE_MAX_FRAMES ||
            plan_is_circle(&circle, addr)) {
            *w = (struct walked){.frame = addr, .code = WALKED_UNREADABLE};
            t->now.len++;
            return 0;
        }
        const struct region *g = plan_find(t, addr, need);
        const uint8_t *f = g ? look_bytes_in(t, g, addr, LOOK_MIDDLE) : NULL;
        bool fits = f && (!tell || is_frame(l, g, f));
        uint64_t caller = !fits && is_on_c_stack(t, addr) ? caller_in_c(r, t) : 0;
        if (caller) {
            *w = (struct walked){.frame = addr, .code = WALKED_SHIM, .instr = WALKED_GUESS};
            t->now.len++;
            has_inline_callee = false;
            addr = caller;
            continue;
        }
        if (!f) {
            *ret_miss = addr;
            return LOOK_MOVED;
        }
        if (!fits || (tell && is_generator(l, f) && !generator_runs(l, t, addr, LOOK_MIDDLE)))
            return LOOK_MOVED;
        if (tell && has_ended(r, f)) {
            t->now.len = 0; /* and with it what it called */
            has_inline_callee = false;
            addr = field_u64(f, l->frame.previous);
            continue;
        }
        w->frame = addr;
        look_read_frame(l, f, w);
        if (is_shim(l, f)) {
            w->code = WALKED_SHIM;
            w->instr = 0;
            has_inline_callee = false;
        } else {
            if (w->code <= WALKED_UNREADABLE)
                w->code = WALKED_NO_CODE; /* fails its lookup */
            if (tell && has_inline_callee && has_returned(l, f)) {
                t->now.data[0] = *w;
                t->now.len = 0;
            }
            has_inline_callee = l->frame.entry == PYL_NONE || !f[l->frame.entry];
        }
        t->now.len++;
        addr = field_u64(f, l->frame.previous);
    }
    return 0;
}

/* Behind the newest frame anything may be left, and it may change all the time. Where what looked like code was none it is not asked for again. */
static bool may_be_met(const struct thread *t, uint64_t frame, uint64_t code)
{
    return mem_plausible(code) && code != t->no_code && frame != t->no_frame;
}

/* The frame at that place of the data stack, if one can be there; with its size. Code that was never met may be met there. */
static const uint8_t *frame_at(const struct remote *r, struct thread *t, uint64_t at,
                               uint64_t *ret_bytes)
{
    const struct pylayout *l = &r->layout;
    const uint8_t *f = look_bytes(t, at, plan_frame_bytes(l), LOOK_MIDDLE);
    struct walked w;
    uint32_t entry;
    if (!f || !is_on_data_stack(l, f) || !plan_chunk(t, at))
        return NULL;
    look_read_frame(l, f, &w);
    if (!codes_find(r, w.code, &entry)) {
        if (is_alive(r, f) && may_be_met(t, at, w.code)) {
            t->unmet_code = w.code;
            t->unmet_frame = at;
        }
        return NULL;
    }
    if (!codes_has_place(r, entry, w.instr))
        return NULL;
    *ret_bytes = codes_frame_bytes(r, entry);
    return f;
}

/* Where the first frame of the next newer chunk is, if there is one: what is called by the last frames of a chunk is there. Else 0. */
static uint64_t next_chunk(const struct remote *r, const struct thread *t, uint64_t frame)
{
    const struct chunk *c = plan_chunk(t, frame);
    return c && c > t->chunks.data ? c[-1].base + r->layout.chunk.data : 0;
}

/* From a frame of the data stack upwards to what it has called, and that in turn: each follows the one before at once. `previous` is what the
 * first of them is called by: that frame itself, or a generator that it runs. Returns where the newest is, which is there for certain; 0: none of
 * these is, or there are too many, or the next chunk was not copied, which is told. */
static uint64_t climb(const struct remote *r, struct thread *t, uint64_t at, uint64_t previous,
                      uint64_t *ret_miss)
{
    const struct pylayout *l = &r->layout;
    uint64_t newest = 0, bytes;
    const uint8_t *f = frame_at(r, t, at, &bytes);
    t->climbed.len = 0;
    if (!vec_reserve(&t->climbed, MAX_CLIMB))
        return 0;
    if (f && at == previous && is_alive(r, f))
        newest = at;
    while (f) {
        if (t->climbed.len == MAX_CLIMB)
            return 0;
        bool may_be_in_c = l->frame.clears_code || runs(l, f);
        uint64_t here = at;
        t->climbed.data[t->climbed.len++] = at;
        at += bytes;
        f = frame_at(r, t, at, &bytes);
        uint64_t caller = f ? field_u64(f, l->frame.previous) : 0;
        if (f && (caller == previous || (may_be_in_c && !plan_chunk(t, caller)))) {
            if (is_alive(r, f))
                newest = at;
        } else { /* the last one of its chunk, or of all */
            at = next_chunk(r, t, here);
            if (at && !plan_find(t, at, plan_frame_bytes(l))) {
                *ret_miss = at;
                return 0;
            }
            f = at ? frame_at(r, t, at, &bytes) : NULL;
            if (at)
                newest = f && is_alive(r, f) ? at : 0;
        }
        previous = at;
    }
    return newest;
}

/* Where to climb from: the newest frame of the walk that lies on the data stack; 0: none does. */
static uint64_t foothold(const struct thread *t)
{
    size_t i = 0;
    while (i < t->now.len && !plan_chunk(t, t->now.data[i].frame))
        i++;
    return i < t->now.len ? t->now.data[i].frame : 0;
}

/* Can the newest frame of the walk not be found on the data stack? A generator's is not there, and those in a walk run; and code that was not
 * met yet, or is none, has no size. */
static bool ends_elsewhere(const struct remote *r, struct thread *t)
{
    const struct pylayout *l = &r->layout;
    uint64_t code = t->now.data[0].code;
    uint32_t entry;
    const uint8_t *f = look_bytes(t, t->now.data[0].frame, plan_frame_bytes(l), LOOK_MIDDLE);
    return code > WALKED_NO_CODE && (!codes_find(r, code, &entry) || (f && is_generator(l, f)));
}

/* What ran when the look began: a fair draw, though it may be over by the time its frame is copied. */
static void note_draw(const struct remote *r, struct thread *t, uint64_t newest)
{
    const uint8_t *f = look_bytes(t, newest, plan_frame_bytes(&r->layout), LOOK_MIDDLE);
    struct walked w;
    if (t->drawn_code || !f || is_shim(&r->layout, f))
        return;
    look_read_frame(&r->layout, f, &w);
    t->drawn_code = w.code;
}

/* May "no frame" be what has been left in a C frame that is gone? The outermost one stays: it is a part of the thread state. */
static bool is_stale_pointer(const struct thread *t)
{
    return t->cframe && t->cframe - t->pub.tstate >= TSTATE_BYTES;
}

bool walk_same(const walked_vec *a, const walked_vec *b)
{
    if (a->len != b->len)
        return false;
    if (a->len == 0)
        return true;
    return a->data[0].frame == b->data[0].frame && a->data[0].code == b->data[0].code &&
           memcmp(a->data + 1, b->data + 1, (a->len - 1) * sizeof *a->data) == 0;
}

int walk_stack(struct remote *r, struct thread *t, uint64_t newest, uint64_t *ret_miss)
{
    t->newest = newest;
    t->climbed.len = 0;
    int rc = walk_down(r, t, newest, ret_miss);
    if (rc == 0 && !t->decides && t->has_accepted && walk_same(&t->now, &t->accepted))
        return 0; /* where it was */
    if (rc != 0)
        note_draw(r, t, newest);
    if (!frames_tell(r) || rc < 0 || *ret_miss || (!newest && !is_stale_pointer(t)))
        return rc;
    bool found = rc == 0 && t->now.len;
    uint64_t top = found ? climb(r, t, foothold(t), t->now.data[0].frame, ret_miss) : 0;
    uint64_t root = plan_root(r, t);
    if (!top && !*ret_miss && !t->unmet_code && root && !(found && ends_elsewhere(r, t))) {
        top = climb(r, t, root, root, ret_miss); /* the newest has gone: up all of the data stack */
        if (top)
            top = innermost(r, t, top);
    }
    if (*ret_miss || (!top && !t->now.len && is_stale_pointer(t)))
        return LOOK_MOVED;
    return !top || (found && top == t->now.data[0].frame) ? rc : walk_down(r, t, top, ret_miss);
}

/* Was the same frame there in two copies? */
static bool is_alike(const struct pylayout *l, const uint8_t *a, const uint8_t *b)
{
    return field_u64(a, l->frame.code) == field_u64(b, l->frame.code) &&
           field_u64(a, l->frame.previous) == field_u64(b, l->frame.previous) &&
           a[l->frame.owner] == b[l->frame.owner];
}

/* What was copied but once has to be what the last look has shown there. */
static bool was_there(const struct thread *t, size_t i)
{
    size_t depth = t->now.len - i;
    return t->last_walk.len >= depth &&
           memcmp(&t->now.data[i], &t->last_walk.data[t->last_walk.len - depth],
                  sizeof *t->now.data) == 0;
}

/* Is it the same in that copy? */
static bool is_in_copy(const struct remote *r, struct thread *t, size_t i, enum look_copy copy)
{
    const struct pylayout *l = &r->layout;
    uint64_t frame = t->now.data[i].frame;
    uint32_t need = plan_frame_bytes(l);
    const uint8_t *there = look_bytes(t, frame, need, copy),
                  *middle = look_bytes(t, frame, need, LOOK_MIDDLE);
    return there && middle && is_alike(l, there, middle) &&
           (!is_generator(l, middle) || generator_runs(l, t, frame, copy));
}

/* Does a frame of the data stack follow the next older one there at once? Where calls go through C what links them is on the C stack, and
 * is not looked at again. */
static bool is_adjacent(const struct remote *r, struct thread *t, size_t i)
{
    const struct chunk *c = plan_chunk(t, t->now.data[i].frame);
    size_t older = i + 1;
    uint32_t entry;
    while (older < t->now.len && !plan_chunk(t, t->now.data[older].frame))
        older++;
    if (!c || older == t->now.len || plan_chunk(t, t->now.data[older].frame) != c)
        return true;
    if (!codes_find(r, t->now.data[older].code, &entry)) /* and it may be none at all */
        return was_there(t, i);
    return codes_has_place(r, entry, t->now.data[older].instr) &&
           t->now.data[older].frame + codes_frame_bytes(r, entry) == t->now.data[i].frame;
}

static bool has_held(const struct remote *r, struct thread *t, size_t i, bool calls_generator)
{
    uint64_t frame = t->now.data[i].frame;
    uint32_t need = plan_frame_bytes(&r->layout);
    if (t->now.data[i].code == WALKED_SHIM)
        return true;
    if (!is_adjacent(r, t, i))
        return false;
    const uint8_t *first = look_bytes(t, frame, need, LOOK_FIRST_OF_ALL);
    if (t->now.data[i].code == WALKED_UNREADABLE)
        return was_there(t, i);
    if (first == look_bytes(t, frame, need, LOOK_LAST_OF_ALL))
        return plan_chunk(t, frame) && was_there(t, i);
    if ((calls_generator || first == look_bytes(t, frame, need, LOOK_MIDDLE)) &&
        (!is_in_copy(r, t, i, LOOK_FIRST_OF_ALL) || !is_in_copy(r, t, i, LOOK_LAST_OF_ALL)))
        return false;
    return is_in_copy(r, t, i, LOOK_BEFORE) && is_in_copy(r, t, i, LOOK_AFTER);
}

/* Was the newest frame there in the middle, with the caller that it shows? One that is being made may still have the caller of what was there
 * before: the parts of a frame are of different moments, too. */
static bool newest_is_true(const struct remote *r, struct thread *t)
{
    const struct pylayout *l = &r->layout;
    uint64_t frame = t->now.data[0].frame;
    uint32_t need = plan_frame_bytes(l);
    const uint8_t *middle = look_bytes(t, frame, need, LOOK_MIDDLE),
                  *before = look_bytes(t, frame, need, LOOK_BEFORE),
                  *after = look_bytes(t, frame, need, LOOK_AFTER);
    if (t->held == t->now.len || !before || !after || !middle)
        return t->held == t->now.len;
    return is_alike(l, before, middle) || is_alike(l, after, middle) ||
           (!has_code(l, after) &&
            field_u64(after, l->frame.previous) == field_u64(middle, l->frame.previous));
}

/* Was it there at all? */
static bool newest_is_there(const struct remote *r, struct thread *t)
{
    const struct pylayout *l = &r->layout;
    uint64_t frame = t->now.data[0].frame;
    uint32_t need = plan_frame_bytes(l);
    const uint8_t *middle = look_bytes(t, frame, need, LOOK_MIDDLE);
    bool held = t->held == t->now.len;
    if (t->now.data[0].code <= WALKED_NO_CODE || !middle || !is_on_data_stack(l, middle))
        return held;
    if (middle == look_bytes(t, frame, need, LOOK_BEFORE))
        return false; /* the stack ends elsewhere by now, and its end was copied too seldom */
    return is_alive(r, middle) || (held && l->frame.clears_code);
}

/* Are the frames that have changed, or were not there, during the look all in one short stretch, each behind its caller? */
static bool is_one_stretch(const struct remote *r, struct thread *t)
{
    size_t changed = t->now.len - t->held;
    uint64_t end = t->now.data[0].frame + plan_frame_bytes(&r->layout);
    for (size_t i = 0; i < changed; i++) {
        const struct walked *w = &t->now.data[i];
        if (w->code != WALKED_SHIM &&
            (w->code <= WALKED_NO_CODE || w->frame > end || end - w->frame > STRETCH ||
             !plan_chunk(t, w->frame) || !is_adjacent(r, t, i)))
            return false;
    }
    return true;
}

void walk_compare(const struct remote *r, struct thread *t)
{
    size_t n = t->now.len, generator = 0;
    t->held = 0;
    t->sound = t->strict = false;
    if (!t->decides)
        return;
    if (!n) { /* a thread that is in no Python at all says so by one pointer */
        t->sound = t->strict = !t->newest && !is_stale_pointer(t);
        return;
    }
    while (generator < n && (t->now.data[generator].code == WALKED_SHIM ||
                             plan_chunk(t, t->now.data[generator].frame)))
        generator++;
    while (t->held < n && has_held(r, t, n - 1 - t->held, n - 1 - t->held > generator))
        t->held++;
    for (size_t i = n - t->held; i < n; i++)
        if (t->now.data[i].code == WALKED_SHIM)
            t->entries_end = max_u64(t->entries_end, t->now.data[i].frame);
    t->sound = t->at_once && !t->unmet_code && newest_is_there(r, t) && is_one_stretch(r, t);
    t->strict = t->sound && newest_is_true(r, t);
}

/* Does that copy of a frame hold a reference to the object? */
static bool holds(const uint8_t *f, uint32_t head, uint64_t bytes, uint64_t object)
{
    for (uint64_t at = head; f && at + 8 <= bytes; at += 8)
        if ((field_u64(f, (uint32_t)at) & ~TAG_BITS) == object)
            return true;
    return false;
}

bool walk_binds(const struct remote *r, struct thread *t, size_t caller, size_t callee)
{
    const struct pylayout *l = &r->layout;
    const struct walked *w = &t->now.data[caller];
    uint64_t generator = t->now.data[callee].frame - l->frame.in_generator;
    uint32_t entry;
    if (l->frame.in_generator == PYL_NONE || !codes_find(r, w->code, &entry))
        return false;
    /* in each of the copies: the parts of one may be of different moments */
    uint32_t bytes = (uint32_t)min_u64(codes_frame_bytes(r, entry), MAX_FRAME_BYTES);
    for (enum look_copy copy = LOOK_FIRST_OF_ALL; copy < LOOK_COPIES; copy++)
        if (!holds(look_bytes(t, w->frame, bytes, copy), l->frame.localsplus, bytes, generator))
            return false;
    return true;
}
