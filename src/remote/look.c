/* One copy of a thread's stack, and the walk over it. See look.h. */
#include "remote/look.h"

#include "base/err.h"
#include "remote/plan.h"

#include <string.h>

enum {
    MAX_COPY_BYTES = 64 << 20, /* of one look */
    MAX_RELOOKS = 6,           /* plan repairs within one look */
    BASE_VOTES_MAX = 24,       /* more are not counted: a new base must have its chance */
    FIXED_RANGES = 3,          /* thread state, GIL, C frame */
    CLOSING_RANGES = 3,        /* a part of the data stack, and the top, once more */
    MAX_BRACKET = 4096,        /* bytes of that part */
};

struct fixed {
    uint32_t tstate, gil, cframe; /* offsets in the copy */
    uint32_t gil_base;            /* offset of the GIL window in its structure */
    uint32_t closing;             /* offset of the second reading of the top */
    uint32_t bracket;             /* and of the data stack's end; UINT32_MAX: there is none */
    struct iovec bracketed;       /* what that is */
    const struct region *along;   /* read with the C frame; NULL: none */
    size_t count;
    size_t len;
};

/* The C frame, and on 3.12 the shim: both are variables of the interpreter's loop, a few words apart,
 * and as one range they cost one range. */
static void cframe_range(const struct remote *r, struct thread *t, struct iovec *range,
                         struct fixed *f)
{
    uint64_t addr = t->cframe + r->layout.cframe.current_frame;
    uint64_t begin = addr, end = addr + 8;
    struct region *beside = plan_beside(t, addr);
    if (beside) {
        begin = min_u64(begin, beside->addr);
        end = max_u64(end, beside->addr + beside->len);
        beside->local = (uint32_t)(f->len + (beside->addr - begin));
        f->along = beside;
    }
    f->cframe = (uint32_t)(f->len + (addr - begin));
    *range = (struct iovec){(void *)(uintptr_t)begin, end - begin};
    f->len += (end - begin);
}

/* The ranges that every look begins with. */
static void fixed_ranges(const struct remote *r, struct thread *t, bool with_gil,
                         struct iovec *ranges, struct fixed *f)
{
    const struct pylayout *l = &r->layout;
    *f = (struct fixed){.gil = UINT32_MAX, .cframe = UINT32_MAX, .bracket = UINT32_MAX};
    ranges[f->count++] = (struct iovec){(void *)(uintptr_t)t->pub.tstate, l->tstate.size};
    f->len = (l->tstate.size + 7) & ~7u;
    ranges[0].iov_len = f->len;
    if (!with_gil) {
        /* as it was a moment ago */
    } else if (l->runtime.tstate_current != PYL_NONE) {
        f->gil = (uint32_t)f->len;
        uint64_t addr = r->runtime + l->runtime.tstate_current;
        ranges[f->count++] = (struct iovec){(void *)(uintptr_t)addr, 8};
        f->len += 8;
    } else if (t->gil) {
        uint32_t end = (uint32_t)max_u64(l->gil.last_holder + 8, l->gil.locked + 4);
        f->gil_base = (uint32_t)min_u64(l->gil.last_holder, l->gil.locked);
        f->gil = (uint32_t)f->len;
        uint32_t len = (end - f->gil_base + 7) & ~7u;
        ranges[f->count++] = (struct iovec){(void *)(uintptr_t)(t->gil + f->gil_base), len};
        f->len += len;
    }
    if (l->frames == PYL_FRAMES_CFRAME && t->cframe)
        cframe_range(r, t, &ranges[f->count++], f);
}

/* With generators a stack is in pieces: their frames, and between them those on the data stack, where one caller takes the place of another
 * and what has returned stays until it is overwritten. Read one after the other they may be of different moments, and in a program that
 * goes through the same places again and again even look after look, if a look takes as long as a turn of it. So the data stack is read
 * before the generators, which have to run (is_left_behind()), and once more behind them. Returns the region to begin with; the count of
 * regions if there is nothing to be bracketed. */
static size_t bracket(const struct thread *t, enum look_kind kind, struct fixed *f)
{
    size_t n = t->regions.len;
    if (kind != LOOK_AGAIN || !t->has_generator || !t->chunks.len)
        return n;
    for (size_t i = 0; i < n; i++) {
        const struct region *g = &t->regions.data[i];
        if (g->loose || g->addr != t->chunks.data[0].base)
            continue;
        uint64_t len = min_u64(g->len, MAX_BRACKET);
        f->bracketed = (struct iovec){(void *)(uintptr_t)(g->addr + g->len - len), len};
        return i;
    }
    return n;
}

/* Are the frames there what they were? */
static bool bracket_held_still(const struct remote *r, struct thread *t, const struct fixed *f)
{
    const struct pylayout *l = &r->layout;
    uint32_t need = plan_frame_bytes(l);
    uint64_t begin = (uintptr_t)f->bracketed.iov_base, end = begin + f->bracketed.iov_len;
    for (size_t i = 0; i < t->now.len; i++) {
        const struct walked *w = &t->now.data[i];
        if (w->code <= WALKED_UNREADABLE || w->frame < begin || w->frame + need > end)
            continue;
        const uint8_t *again = t->copy + f->bracket + (w->frame - begin);
        const struct region *g = plan_find(t, w->frame, need);
        const uint8_t *once = t->copy + g->local + (w->frame - g->addr);
        if (field_u64(again, l->frame.code) != field_u64(once, l->frame.code) ||
            field_u64(again, l->frame.previous) != field_u64(once, l->frame.previous) ||
            (i > 0 && field_u64(again, l->frame.instr) != field_u64(once, l->frame.instr)))
            return false;
    }
    return true;
}

/* The ranges that every look ends with: where the newest frame is, once more. If that changed while
 * the frames were copied, the copy may show dead frames above a shorter, new stack. */
static size_t closing_ranges(const struct remote *r, const struct thread *t, struct iovec *ranges)
{
    const struct pylayout *l = &r->layout;
    size_t n = 0;
    ranges[n++] = (struct iovec){(void *)(uintptr_t)(t->pub.tstate + l->tstate.frame), 8};
    if (l->frames == PYL_FRAMES_CFRAME && t->cframe)
        ranges[n++] = (struct iovec){(void *)(uintptr_t)(t->cframe + l->cframe.current_frame), 8};
    return n;
}

static bool top_held_still(const struct remote *r, const uint8_t *copy, const struct fixed *f)
{
    const struct pylayout *l = &r->layout;
    return field_u64(copy, f->closing) == field_u64(copy, l->tstate.frame) &&
           (f->cframe == UINT32_MAX ||
            field_u64(copy, f->closing + 8) == field_u64(copy, f->cframe));
}

static bool ensure_copy(struct thread *t, size_t len)
{
    if (len <= t->copy_cap)
        return true;
    if (len > MAX_COPY_BYTES)
        return false;
    uint8_t *grown = realloc(t->copy, len * 2);
    if (!grown)
        return false;
    t->copy = grown;
    t->copy_cap = len * 2;
    return true;
}

static void note_gil(const struct remote *r, struct thread *t, const uint8_t *copy,
                     const struct fixed *f)
{
    const struct pylayout *l = &r->layout;
    t->gil_known = f->gil != UINT32_MAX;
    t->holds_gil = false;
    if (!t->gil_known)
        return;
    if (l->runtime.tstate_current != PYL_NONE) {
        t->holds_gil = field_u64(copy, f->gil) == t->pub.tstate;
        return;
    }
    const uint8_t *gil = copy + f->gil;
    t->holds_gil = field_u64(gil, l->gil.last_holder - f->gil_base) == t->pub.tstate &&
                   (int32_t)field_u32(gil, l->gil.locked - f->gil_base) > 0;
}

/* Is it the frame of a generator that does not run? Where it yielded it is kept with the callers that it had, and a copy may have it
 * together with frames of another moment. */
static bool is_left_behind(const struct pylayout *l, const struct region *g, uint64_t addr,
                           const uint8_t *frame)
{
    uint32_t before = l->frame.generator_state;
    return before != PYL_NONE && frame[l->frame.owner] == PYL_OWNER_GENERATOR &&
           addr - g->addr >= before && frame[-(ptrdiff_t)before] != 0;
}

void look_read_frame(const struct pylayout *l, const uint8_t *f, struct walked *w)
{
    bool index = l->instr == PYL_INSTR_BYTE_INDEX || l->instr == PYL_INSTR_UNIT_INDEX;
    w->code = field_u64(f, l->frame.code) & ~(uint64_t)l->code_tag_mask;
    w->instr =
        index ? (int32_t)field_u32(f, l->frame.instr) : (int64_t)field_u64(f, l->frame.instr);
}

/* Walks the copied frames. 0; LOOK_MOVED with *ret_miss = the frame that was not covered, 0 if this is no stack. */
static int walk(struct remote *r, struct thread *t, const uint8_t *copy, uint64_t addr,
                uint64_t *ret_miss)
{
    const struct pylayout *l = &r->layout;
    uint32_t need = plan_frame_bytes(l);
    struct plan_circle circle = {0};
    t->now.len = 0;
    t->last_hit = 0;
    t->has_generator = false;
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
        if (!g || g->local + g->len > t->readable) {
            *ret_miss = addr;
            return LOOK_MOVED;
        }
        const uint8_t *f = copy + g->local + (addr - g->addr);
        if (l->frame.owner != PYL_NONE && f[l->frame.owner] == PYL_OWNER_GENERATOR)
            t->has_generator = true;
        if (is_left_behind(l, g, addr, f)) {
            *ret_miss = 0;
            return LOOK_MOVED;
        }
        w->frame = addr;
        look_read_frame(l, f, w);
        if (l->shim_owner_min && f[l->frame.owner] >= l->shim_owner_min &&
            f[l->frame.owner] <= l->shim_owner_max) {
            w->code = WALKED_SHIM;
            w->instr = 0;
        } else if (w->code <= WALKED_UNREADABLE) {
            w->code = WALKED_NO_CODE; /* fails its lookup */
        }
        t->now.len++;
        addr = field_u64(f, l->frame.previous);
    }
    return 0;
}

/* A region turned out unreadable: takes it out of the plan. */
static int drop_unreadable(struct thread *t, size_t readable)
{
    for (size_t i = 0; i < t->regions.len; i++) {
        const struct region *g = &t->regions.data[i];
        if (g->local > readable || g->local + g->len <= readable)
            continue;
        t->chunks.len = 0;
        return plan_drop(t, i);
    }
    return 0;
}

/* Copies what the plan says: the fixed part, the regions, and the closing reading of the top. */
static int copy_plan(struct remote *r, struct thread *t, enum look_kind kind, struct fixed *f)
{
    size_t count = FIXED_RANGES + t->regions.len + CLOSING_RANGES;
    struct iovec stack_ranges[FIXED_RANGES + CLOSING_RANGES + 64];
    _cleanup_free_ struct iovec *heap_ranges = NULL;
    struct iovec *ranges = stack_ranges;
    if (count > ARRAY_LEN(stack_ranges)) {
        heap_ranges = malloc(count * sizeof *ranges);
        if (!heap_ranges)
            return E_NOMEM;
        ranges = heap_ranges;
    }
    fixed_ranges(r, t, kind == LOOK_WITH_GIL, ranges, f);
    size_t at = f->count, len = f->len, n = t->regions.len;
    size_t first = bracket(t, kind, f);
    bool bracketed = first < n;
    if (!bracketed) /* none is always read late, and torn more often */
        first = n > 1 ? remote_random(r) % n : 0;
    for (size_t i = 0; i < n; i++) {
        struct region *g = &t->regions.data[first + i < n ? first + i : first + i - n];
        if (f->along && g == f->along)
            continue;
        g->local = (uint32_t)len;
        ranges[at++] = (struct iovec){(void *)(uintptr_t)g->addr, g->len};
        len += g->len;
    }
    if (bracketed) {
        f->bracket = (uint32_t)len;
        ranges[at++] = f->bracketed;
        len += f->bracketed.iov_len;
    }
    f->closing = (uint32_t)len;
    size_t closing = kind == LOOK_AGAIN ? closing_ranges(r, t, ranges + at) : 0;
    at += closing;
    len += closing * 8;
    if (!ensure_copy(t, len))
        return E_LIMIT;
    ssize_t got = mem_read_ranges(&r->mem, t->copy, ranges, at);
    if (got < 0)
        return (int)got;
    t->readable = (size_t)got;
    if (t->readable < f->len)
        return E_BADMEM;
    if (t->readable < len) {
        int rc = drop_unreadable(t, t->readable);
        return rc < 0 ? rc : E_BADMEM;
    }
    return 0;
}

/* Where the newest frame is, by the fresh copy; LOOK_MOVED if the C frame was not the predicted one. */
static int current_frame(const struct remote *r, struct thread *t, const uint8_t *copy,
                         const struct fixed *f, uint64_t *ret)
{
    const struct pylayout *l = &r->layout;
    uint64_t top = field_u64(copy, l->tstate.frame);
    if (l->frames == PYL_FRAMES_CFRAME) {
        if (top != t->cframe || f->cframe == UINT32_MAX) {
            t->cframe = mem_plausible(top) ? top : 0;
            if (t->cframe)
                return LOOK_MOVED;
            top = 0;
        } else {
            top = field_u64(copy, f->cframe);
        }
    }
    *ret = top;
    return 0;
}

/* The outermost frame of a walk; NULL if it has none. */
const struct walked *look_base(const walked_vec *stack)
{
    size_t i = stack->len;
    while (i && stack->data[i - 1].code == WALKED_SHIM)
        i--;
    return i ? &stack->data[i - 1] : NULL;
}

/* A thread's outermost frame stays where it is for as long as it runs, whatever moves above it. So
 * the looks elect it, as in Boyer and Moore's majority vote; one that ends elsewhere stands out.
 * A thread that did not move has no second vote: it may have lost its CPU in the very middle of a
 * change, and then every look finds the same half of it. */
static void vote_base(struct thread *t)
{
    const struct walked *base = look_base(&t->now);
    if (!base || memcmp(&t->voter, &t->now.data[0], sizeof t->voter) == 0)
        return;
    t->voter = t->now.data[0];
    if (base->frame == t->base) {
        if (t->base_votes < BASE_VOTES_MAX)
            t->base_votes++;
    } else if (t->base_votes > 0) {
        t->base_votes--;
    } else {
        t->base = base->frame;
        t->base_votes = 1;
    }
}

int look_take(struct remote *r, struct thread *t, enum look_kind kind)
{
    const struct pylayout *l = &r->layout;
    for (int i = 0; i < MAX_RELOOKS; i++) {
        struct fixed f;
        int rc = copy_plan(r, t, kind, &f);
        if (rc < 0) {
            if (rc != E_BADMEM || (t->readable < f.len && !t->cframe))
                return rc;
            t->cframe = 0; /* the predicted C frame or a region may be what is gone */
            continue;
        }
        const uint8_t *copy = t->copy;
        if (field_u64(copy, l->tstate.interp) != t->interp ||
            field_u64(copy, l->tstate.thread_id) != t->pub.ident)
            return E_NOTREADY; /* that thread has ended */
        if (kind == LOOK_WITH_GIL)
            note_gil(r, t, copy, &f);
        uint64_t addr, miss = 0;
        rc = current_frame(r, t, copy, &f, &addr);
        if (rc == LOOK_MOVED)
            continue;
        if (kind == LOOK_AGAIN && !top_held_still(r, copy, &f)) {
            t->now.len = 0;
            return LOOK_MOVED;
        }
        if (l->tstate.datastack_chunk != PYL_NONE) {
            uint64_t newest = field_u64(copy, l->tstate.datastack_chunk);
            if (newest && (!t->chunks.len || t->chunks.data[0].base != newest)) {
                rc = plan_refresh_chunks(r, t, newest);
                if (rc < 0)
                    return rc;
            }
        }
        rc = walk(r, t, copy, addr, &miss);
        if (rc == 0 && f.bracket != UINT32_MAX && !bracket_held_still(r, t, &f))
            break;
        if (rc == 0)
            vote_base(t);
        if (rc != LOOK_MOVED)
            return rc;
        if (!miss)
            break;
        rc = plan_chase(r, t, miss);
        if (rc < 0)
            return rc;
    }
    t->now.len = 0;
    return LOOK_MOVED;
}

int look_has_left(struct remote *r, const struct thread *t, const struct walked *caller)
{
    const struct pylayout *l = &r->layout;
    uint32_t need = plan_frame_bytes(l);
    struct iovec ranges[CLOSING_RANGES + 1];
    uint8_t copy[CLOSING_RANGES * 8 + 128];
    size_t n = closing_ranges(r, t, ranges), top_bytes = n * 8;
    if (need > sizeof copy - top_bytes)
        return E_BADMEM;
    ranges[n++] = (struct iovec){(void *)(uintptr_t)caller->frame, need};
    ssize_t got = mem_read_ranges(&r->mem, copy, ranges, n);
    if (got < 0)
        return (int)got;
    if ((size_t)got < top_bytes + need)
        return 0;
    struct walked now;
    look_read_frame(l, copy + top_bytes, &now);
    if (now.code != caller->code || now.instr != caller->instr)
        return 1;
    /* or it was left itself, and stands there as it was */
    uint64_t top = field_u64(copy, 0);
    if (l->frames == PYL_FRAMES_CFRAME)
        top = top == t->cframe && top_bytes > 8 ? field_u64(copy, 8) : 0;
    const struct chunk *c = plan_chunk(t, caller->frame);
    return top && c && plan_chunk(t, top) == c && top <= caller->frame;
}
