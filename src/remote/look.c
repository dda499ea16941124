/* What a look copies, and in which order. See look.h; the walk is in walk.c. */
#include "remote/look.h"

#include "base/clock.h"
#include "base/err.h"
#include "remote/plan.h"

#include <string.h>

enum {
    MAX_COPY_BYTES = 64 << 20, /* of one look */
    MAX_RELOOKS = 6,           /* plan repairs within one look */
    BASE_VOTES_MAX = 24,       /* more are not counted: a new base must have its chance */
    FIXED_RANGES = 2,          /* thread state, GIL */
    CLOSING_RANGES = 1,        /* the top, once more */
    MAX_BREAK_NS = 2000,       /* is no break yet */
    FEW_RANGES = 64,
    NEWEST_BYTES =
        1024, /* of the data stack before the newest frame, at least, are copied again and again */
    WHOLE_BYTES = 8 << 10, /* or all of it, if it is no more than that */
    RECENT = 4,            /* looks */
    LAST_BYTES = 64 << 10, /* of it are looked at again in the end, */
    MAX_LOOSE = 48,        /* with so many pieces of what lies elsewhere */
};

_Static_assert(ARRAY_LEN(((struct region *)0)->local) == LOOK_COPIES, "a place for each copy");

/* The ranges of a look while they are put together. */
struct ranges {
    struct iovec *list, few[FEW_RANGES];
    size_t count;
    uint32_t len;     /* bytes so far */
    uint32_t gil;     /* offset in the copy of the GIL's part; UINT32_MAX: not asked for */
    uint32_t closing; /* and of the second reading of the top */
    uint32_t fixed;   /* length of what does not depend on the plan */
};

/* Returns where it will be in the copy. */
static uint32_t add_range(struct ranges *l, uint64_t addr, uint32_t len)
{
    uint32_t at = l->len;
    l->list[l->count++] = (struct iovec){(void *)(uintptr_t)addr, len};
    l->len += len;
    return at;
}

/* Which part of the GIL's structure says who holds it. */
static uint32_t gil_window(const struct pylayout *l, uint32_t *ret_len)
{
    uint32_t begin = (uint32_t)min_u64(l->gil.last_holder, l->gil.locked);
    uint32_t end = (uint32_t)max_u64(l->gil.last_holder + 8, l->gil.locked + 4);
    *ret_len = (end - begin + 7) & ~7u;
    return begin;
}

/* The ranges that every look begins with. */
static void fixed_ranges(const struct remote *r, const struct thread *t, bool with_gil,
                         struct ranges *ranges)
{
    const struct pylayout *l = &r->layout;
    ranges->gil = UINT32_MAX;
    add_range(ranges, t->pub.tstate, (l->tstate.size + 7) & ~7u);
    if (!with_gil) {
        /* as it was a moment ago */
    } else if (l->runtime.tstate_current != PYL_NONE) {
        ranges->gil = add_range(ranges, r->runtime + l->runtime.tstate_current, 8);
    } else if (t->gil) {
        uint32_t len, begin = gil_window(l, &len);
        ranges->gil = add_range(ranges, t->gil + begin, len);
    }
    ranges->fixed = ranges->len;
}

static void note_gil(const struct remote *r, struct thread *t, const struct ranges *ranges)
{
    const struct pylayout *l = &r->layout;
    t->gil_known = ranges->gil != UINT32_MAX;
    t->holds_gil = false;
    if (!t->gil_known)
        return;
    const uint8_t *gil = t->copy + ranges->gil;
    if (l->runtime.tstate_current != PYL_NONE) {
        t->holds_gil = field_u64(gil, 0) == t->pub.tstate;
        return;
    }
    uint32_t len, begin = gil_window(l, &len);
    t->holds_gil = field_u64(gil, l->gil.last_holder - begin) == t->pub.tstate &&
                   (int32_t)field_u32(gil, l->gil.locked - begin) > 0;
}

static void copy_once(struct ranges *ranges, struct region *g)
{
    uint32_t at = add_range(ranges, g->addr, g->len);
    g->again = g->last = 0;
    for (int i = 0; i < LOOK_COPIES; i++)
        g->local[i] = at;
}

/* What is to be copied again of it goes to these copies. */
static void copy_again(struct ranges *ranges, struct region *g, enum look_copy from,
                       enum look_copy to)
{
    uint32_t at = add_range(ranges, g->addr + g->again, g->len - g->again);
    for (int i = (int)from; i <= (int)to; i++)
        g->local[i] = (int64_t)at - g->again;
}

/* And of what has been copied but once till then a good part is looked at in the end. */
static void copy_last(struct ranges *ranges, struct region *g)
{
    g->last = g->len > LAST_BYTES ? g->len - LAST_BYTES : 0;
    uint32_t at = add_range(ranges, g->addr + g->last, g->len - g->last);
    g->local[LOOK_LAST_OF_ALL] = (int64_t)at - g->last;
}

enum pass { PASS_POINTERS, PASS_LOOSE, PASS_OLD_STACK, PASS_STACK };

static enum pass pass_of(const struct thread *t, const struct region *g)
{
    if (g->loose)
        return g->pointers ? PASS_POINTERS : PASS_LOOSE;
    return t->chunks.len && g->addr == t->chunks.data[0].base ? PASS_STACK : PASS_OLD_STACK;
}

/* Where on the data stack the part begins that changes all the time: a little before the newest frame that the last walk has found. */
static uint32_t changing_part(const struct thread *t, const struct region *g)
{
    if (g->len <= WHOLE_BYTES)
        return 0;
    for (size_t i = 0; i < t->last_walk.len; i++) {
        uint64_t frame = t->last_walk.data[i].frame;
        if (frame >= g->addr && frame - g->addr < g->len)
            return frame - g->addr < NEWEST_BYTES ? 0 : (uint32_t)(frame - g->addr) - NEWEST_BYTES;
    }
    return g->len - WHOLE_BYTES;
}

/* The regions of a look that decides, in the order of look.h. */
static void deciding_ranges(struct remote *r, struct thread *t, struct ranges *ranges)
{
    size_t n = t->regions.len, loose = 0;
    struct region *newest = NULL;
    size_t first = n > 1 ? remote_random(r) % n : 0; /* none is always read late */
    for (enum pass pass = PASS_POINTERS; pass <= PASS_STACK; pass++) {
        for (size_t i = 0; i < n; i++) {
            struct region *g = &t->regions.data[(first + i) % n];
            if (pass_of(t, g) != pass)
                continue;
            copy_once(ranges, g);
            loose += pass == PASS_LOOSE && g->idle <= RECENT;
            if (pass == PASS_STACK)
                newest = g;
        }
    }
    if (!newest)
        return;
    newest->again = changing_part(t, newest);
    if (newest->again)
        copy_again(ranges, newest, LOOK_BEFORE, LOOK_BEFORE);
    copy_again(ranges, newest, LOOK_MIDDLE, LOOK_MIDDLE);
    copy_again(ranges, newest, LOOK_AFTER, LOOK_LAST_OF_ALL);
    for (size_t i = 0; loose && loose <= MAX_LOOSE && i < n; i++) {
        struct region *g = &t->regions.data[(first + i) % n];
        if (pass_of(t, g) == PASS_LOOSE && g->idle <= RECENT)
            copy_again(ranges, g, LOOK_AFTER, LOOK_LAST_OF_ALL);
    }
    if (loose || newest->again)
        copy_last(ranges, newest);
}

static void single_ranges(struct remote *r, struct thread *t, struct ranges *ranges)
{
    size_t n = t->regions.len;
    size_t first = n > 1 ? remote_random(r) % n : 0;
    for (size_t i = 0; i < n; i++)
        copy_once(ranges, &t->regions.data[(first + i) % n]);
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

/* A region turned out unreadable: takes it out of the plan. */
static int drop_unreadable(struct thread *t, size_t readable)
{
    for (size_t i = 0; i < t->regions.len; i++) {
        const struct region *g = &t->regions.data[i];
        size_t local = (size_t)g->local[LOOK_FIRST_OF_ALL];
        if (local > readable || local + g->len <= readable)
            continue;
        t->chunks.len = 0;
        return plan_drop(t, i);
    }
    return 0;
}

static bool decides(const struct remote *r, const struct thread *t, enum look_kind kind)
{
    return has_data_stack(r) && !r->unsafe && (kind == LOOK_AGAIN || t->flows);
}

static bool is_closed(const struct remote *r, enum look_kind kind)
{
    return !has_data_stack(r) && kind == LOOK_AGAIN;
}

/* Was it made without a break? The kernel may turn to something else in the middle, and then what is the same before and after is not
 * what was there all the time. `usual` is what looks of so many ranges take. */
static bool was_at_once(struct thread *t, bool first, size_t ranges, uint64_t took_ns)
{
    uint32_t *usual = &t->usual_ns[first][min_u64(ranges, ARRAY_LEN(t->usual_ns[first]) - 1)];
    bool at_once = *usual && took_ns < *usual + min_u64(*usual, MAX_BREAK_NS);
    if (!*usual)
        *usual = (uint32_t)min_u64(took_ns, UINT32_MAX / 2);
    else
        *usual = (uint32_t)((*usual * 15ull + min_u64(took_ns, 2ull * *usual)) / 16);
    return at_once;
}

static int read_ranges(struct remote *r, struct thread *t, bool first, const struct ranges *ranges)
{
    if (!ensure_copy(t, ranges->len))
        return E_LIMIT;
    bool timed = t->decides && !r->mem.fake; /* an invented process has no time of its own */
    uint64_t begin_ns = timed ? clock_mono_ns() : 0;
    ssize_t got = mem_read_ranges(&r->mem, t->copy, ranges->list, ranges->count);
    t->at_once = !timed || was_at_once(t, first, ranges->count, clock_mono_ns() - begin_ns);
    t->readable = got < 0 ? 0 : (size_t)got;
    if (got < 0)
        return (int)got;
    if (t->readable >= ranges->len)
        return 0;
    int rc = t->readable < ranges->fixed ? 0 : drop_unreadable(t, t->readable);
    return rc < 0 ? rc : E_BADMEM;
}

/* Copies what the plan says. Like all that knows of ranges it uses `few` of them while they last. */
static int copy_plan(struct remote *r, struct thread *t, enum look_kind kind, struct ranges *ranges)
{
    size_t most = FIXED_RANGES + 2 * t->regions.len + LOOK_COPIES + CLOSING_RANGES;
    _cleanup_free_ struct iovec *many = most > FEW_RANGES ? malloc(most * sizeof *many) : NULL;
    if (most > FEW_RANGES && !many)
        return E_NOMEM;
    ranges->list = many ? many : ranges->few;
    ranges->count = ranges->len = 0;
    fixed_ranges(r, t, kind == LOOK_WITH_GIL, ranges);
    t->decides = decides(r, t, kind);
    if (t->decides)
        deciding_ranges(r, t, ranges);
    else
        single_ranges(r, t, ranges);
    if (is_closed(r, kind))
        ranges->closing = add_range(ranges, t->pub.tstate + r->layout.tstate.frame, 8);
    return read_ranges(r, t, kind != LOOK_AGAIN, ranges);
}

const uint8_t *look_bytes(struct thread *t, uint64_t addr, uint32_t len, enum look_copy copy)
{
    const struct region *g = plan_find(t, addr, len);
    return g ? look_bytes_in(t, g, addr, copy) : NULL;
}

/* Where the newest frame is, by the fresh copy; LOOK_MOVED if the interpreter's C frame is where it has not been lately. */
static int newest_frame(const struct remote *r, struct thread *t, uint64_t *ret)
{
    const struct pylayout *l = &r->layout;
    uint64_t newest = field_u64(t->copy, l->tstate.frame);
    t->cframe = l->frames == PYL_FRAMES_CFRAME ? newest : 0;
    if (t->cframe) {
        const uint8_t *pointer =
            look_bytes(t, newest + l->cframe.current_frame, 8, LOOK_FIRST_OF_ALL);
        if (!pointer) {
            int rc = mem_plausible(newest) ? plan_note_cframe(t, newest) : 0;
            return rc < 0 ? rc : LOOK_MOVED;
        }
        plan_touch_cframe(t, newest);
        newest = field_u64(pointer, 0);
    }
    *ret = newest;
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

uint64_t look_top(const walked_vec *stack)
{
    size_t i = 0;
    while (i < stack->len && stack->data[i].code == WALKED_SHIM)
        i++;
    return i < stack->len ? stack->data[i].code : 0;
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

/* For the next look: what did not change, and where the end of the data stack is. */
static int remember_walk(struct thread *t)
{
    t->last_walk.len = 0;
    if (!t->now.len)
        return 0;
    if (!vec_reserve(&t->last_walk, t->now.len))
        return E_NOMEM;
    memcpy(t->last_walk.data, t->now.data, t->now.len * sizeof *t->now.data);
    t->last_walk.len = t->now.len;
    return 0;
}

/* One attempt. Also E_BADMEM, if what could not be read is out of the plan now, and LOOK_MOVED with *ret_again, if it has grown. */
static int look_once(struct remote *r, struct thread *t, enum look_kind kind, bool *ret_again)
{
    const struct pylayout *l = &r->layout;
    struct ranges ranges;
    uint64_t newest, miss = 0;
    *ret_again = false;
    int rc = copy_plan(r, t, kind, &ranges);
    if (rc < 0) {
        *ret_again = rc == E_BADMEM && t->readable >= ranges.fixed;
        return rc;
    }
    if (field_u64(t->copy, l->tstate.interp) != t->interp ||
        field_u64(t->copy, l->tstate.thread_id) != t->pub.ident)
        return E_NOTREADY; /* that thread has ended */
    if (kind == LOOK_WITH_GIL)
        note_gil(r, t, &ranges);
    if (is_closed(r, kind) &&
        field_u64(t->copy, ranges.closing) != field_u64(t->copy, l->tstate.frame))
        return LOOK_MOVED;
    uint64_t chunk = has_data_stack(r) ? field_u64(t->copy, l->tstate.datastack_chunk) : 0;
    if (chunk && (!t->chunks.len || t->chunks.data[0].base != chunk))
        rc = plan_refresh_chunks(r, t, chunk);
    if (rc == 0)
        rc = newest_frame(r, t, &newest);
    if (rc == 0)
        rc = walk_stack(r, t, newest, &miss);
    else
        *ret_again = rc == LOOK_MOVED;
    if (rc == 0 && !miss)
        t->drawn_code = look_top(&t->now);
    if (miss) {
        rc = plan_chase(r, t, miss);
        *ret_again = rc == 0;
        return rc < 0 ? rc : LOOK_MOVED;
    }
    if (rc == 0) {
        vote_base(t);
        walk_compare(r, t);
        rc = remember_walk(t);
    }
    return rc;
}

int look_take(struct remote *r, struct thread *t, enum look_kind kind)
{
    int rc = LOOK_MOVED;
    bool again = true;
    t->drawn_code = t->unmet_code = 0;
    t->now.len = 0;
    for (int i = 0; i < MAX_RELOOKS && again; i++)
        rc = look_once(r, t, kind, &again);
    if (rc != 0)
        t->now.len = t->held = 0;
    if (rc == E_BADMEM && again)
        rc = LOOK_MOVED;
    int aged = rc >= 0 && kind == LOOK_AGAIN ? plan_age(r, t) : 0;
    return aged < 0 ? aged : rc;
}
