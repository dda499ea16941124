/* One thread's stack, read while it runs.
 *
 * A *look* copies, in one system call and in this order: the thread state, the GIL's holder, the
 * predicted C frame (3.11, 3.12), and the regions of a *plan*: the data-stack chunks in use and, one
 * by one, frames that live elsewhere (generators, interpreter shims, every frame below 3.11). Then it
 * walks the copy. A frame the plan does not cover is chased by single reads, added to the plan, and
 * the look is repeated, so that a walk only ever uses bytes of one call.
 *
 * The target runs meanwhile, so a copy may be torn. Each look therefore ends by reading the top of
 * the stack once more, and a stack is believed when
 *   - two looks in a row give the same frames, code and instructions (then all of them held at the
 *     moment between the two), or
 *   - one look gives exactly what the last believed sample gave;
 * but neighbours that were never seen together need more looks, for the seam of a torn stack is such
 * a pair (edges.h), and so does a stack that does not end at the thread's outermost frame: a
 * generator that is just being left, or a frame that is just being freed, has no caller, and a copy
 * that catches one ends there.
 * Code objects whose names are remembered are checked between the two looks (codes.c). A stack that
 * still moves after REMOTE_MAX_TRIES looks is given back as *moving*, cut to the outer part that the
 * last two looks agree on. */
#include "base/clock.h"
#include "base/err.h"
#include "remote/internal.h"

#include <string.h>

enum {
    STACK_MARGIN = 1024,        /* bytes read above the last known top of the data stack */
    MAX_CHUNKS = 4096,          /* data-stack chunks of one thread */
    MAX_CHUNK_BYTES = 64 << 20, /* of one chunk */
    MAX_COPY_BYTES = 64 << 20,  /* of one look */
    MAX_FRAME_GAP = 1024,       /* bytes between two frames that are read along */
    MAX_LOOSE = 64 << 10,       /* of one region of such frames */
    MAX_RELOOKS = 6,            /* plan repairs within one look */
    MAX_CHECKS = 512,           /* code objects checked in one look */
    LOOKS_FOR_NEW = 6,          /* agreeing looks that make unknown neighbours believable */
    LOOKS_FOR_BASE = 15,        /* agreeing looks that make an unknown outermost frame believable */
    PAUSE_TURNS = 48,           /* of the processor's pause instruction: 1 to 2 µs */
    BASE_VOTES_KNOWN = 16,      /* looks that establish the outermost frame */
    BASE_VOTES_MAX = 24,        /* more are not counted: a new base must have its chance */
    FIXED_RANGES = 3,           /* thread state, GIL, C frame */
    CLOSING_RANGES = 2,         /* top of the stack once more */
};

/* A first look mostly finds what was there before, and then needs no closing reading of the top; it
 * asks who holds the GIL unless that was asked a moment ago. The looks that decide about a new stack
 * have the closing reading. */
enum look_kind { LOOK_FIRST, LOOK_WITH_GIL, LOOK_AGAIN };

#define GIL_INTERVAL_NS (50 * NS_PER_US) /* above 20 kHz the GIL is asked for less often */

/* look(): 0 a whole walk, LOOK_MOVED the plan could not keep up, or a negative code */
enum { LOOK_MOVED = 1 };

void thread_free(struct thread *t)
{
    if (!t)
        return;
    vec_release(&t->chunks);
    vec_release(&t->regions);
    vec_release(&t->now);
    vec_release(&t->before);
    vec_release(&t->accepted);
    vec_release(&t->frames);
    vec_release(&t->spare_frames);
    free(t->copy);
    free(t);
}

/* Bytes of a frame that the walk needs. */
static uint32_t frame_bytes(const struct pylayout *l)
{
    uint32_t end = l->frame.code + 8;
    if (l->frame.previous + 8 > end)
        end = l->frame.previous + 8;
    if (l->frame.instr + 8 > end)
        end = l->frame.instr + 8;
    if (l->frame.owner != PYL_NONE && l->frame.owner + 1 > end)
        end = l->frame.owner + 1;
    return (end + 7) & ~7u;
}

/* ---- the plan ---- */

static struct region *find_region_of(struct thread *t, size_t n, uint64_t addr, uint32_t len)
{
    /* frames follow each other in one region, or region by region */
    for (size_t i = 0; i < n; i++) {
        size_t at = t->last_hit + i;
        if (at >= n)
            at -= n;
        struct region *g = &t->regions.data[at];
        if (addr >= g->addr && addr - g->addr + len <= g->len) {
            t->last_hit = at;
            return g;
        }
    }
    return NULL;
}

static struct region *find_region(struct thread *t, uint64_t addr, uint32_t len)
{
    return find_region_of(t, t->regions.len, addr, len);
}

static const struct chunk *find_chunk(const struct thread *t, uint64_t addr)
{
    for (size_t i = 0; i < t->chunks.len; i++)
        if (addr >= t->chunks.data[i].base &&
            addr - t->chunks.data[i].base < t->chunks.data[i].size)
            return &t->chunks.data[i];
    return NULL;
}

/* Reads the list of data-stack chunks anew. */
static int refresh_chunks(struct remote *r, struct thread *t, uint64_t newest)
{
    const struct pylayout *l = &r->layout;
    t->chunks.len = 0;
    uint8_t head[64];
    uint32_t head_bytes = l->chunk.data;
    if (head_bytes > sizeof head)
        return E_BADMEM;
    for (uint64_t at = newest; at && t->chunks.len < MAX_CHUNKS;) {
        int rc = mem_plausible(at) ? mem_read(&r->mem, at, head, head_bytes) : E_BADMEM;
        if (rc < 0)
            return rc == E_BADMEM ? 0 : rc;
        uint64_t size = field_u64(head, l->chunk.size);
        if (size < head_bytes || size > MAX_CHUNK_BYTES)
            return 0;
        struct chunk *c = vec_push(&t->chunks);
        if (!c)
            return E_NOMEM;
        *c = (struct chunk){at, size};
        at = field_u64(head, l->chunk.previous);
    }
    return 0;
}

static int add_region(struct thread *t, uint64_t addr, uint64_t len)
{
    struct region *g = vec_push(&t->regions);
    if (!g)
        return E_NOMEM;
    *g = (struct region){.addr = addr, .len = (uint32_t)len};
    return 0;
}

/* Adds a frame outside of the chunks. Frames that were allocated one after the other lie side by
 * side: what is between two near ones is read along, since a range costs more than its bytes. */
static int add_frame(struct thread *t, uint64_t addr, uint32_t need)
{
    struct region *last = t->regions.len ? &t->regions.data[t->regions.len - 1] : NULL;
    if (last && last->loose) {
        uint64_t begin = min_u64(last->addr, addr);
        uint64_t end = max_u64(last->addr + last->len, addr + need);
        if (end - begin <= (uint64_t)last->len + need + MAX_FRAME_GAP && end - begin <= MAX_LOOSE) {
            last->addr = begin;
            last->len = (uint32_t)(end - begin);
            return 0;
        }
    }
    int rc = add_region(t, addr, need);
    if (rc == 0)
        t->regions.data[t->regions.len - 1].loose = true;
    return rc;
}

/* Makes the plan cover the frame at `addr`: its chunk up to it, or the frame alone. */
static int cover(struct thread *t, uint64_t addr, uint32_t need)
{
    const struct chunk *c = find_chunk(t, addr);
    if (!c)
        return add_frame(t, addr, need);
    uint64_t len = min_u64(addr - c->base + need + STACK_MARGIN, c->size);
    for (size_t i = 0; i < t->regions.len; i++) {
        struct region *g = &t->regions.data[i];
        if (g->addr == c->base) {
            if (g->len < len)
                g->len = (uint32_t)len;
            return 0;
        }
    }
    return add_region(t, c->base, len);
}

/* Follows the frames from `addr` by single reads, only to learn where they are. */
static int chase(struct remote *r, struct thread *t, uint64_t addr)
{
    const struct pylayout *l = &r->layout;
    uint32_t need = frame_bytes(l);
    uint8_t bytes[128];
    size_t planned = t->regions.len; /* those added below cannot be met again */
    if (need > sizeof bytes)
        return E_BADMEM;
    for (int i = 0; addr && i < REMOTE_MAX_FRAMES; i++) {
        if (find_chunk(t, addr)) {
            /* a chunk holds many frames: the next look brings them all */
            return cover(t, addr, need);
        }
        int rc = mem_plausible(addr) ? mem_read(&r->mem, addr, bytes, need) : E_BADMEM;
        if (rc == E_BADMEM) {
            t->bad_addr = addr;
            return 0;
        }
        if (rc == 0)
            rc = cover(t, addr, need);
        if (rc < 0)
            return rc;
        addr = field_u64(bytes, l->frame.previous);
        if (find_region_of(t, planned, addr, need))
            return 0;
    }
    return 0;
}

/* After a believed walk: the plan for the next look is what this one used, in the order of use. */
static int replan(struct remote *r, struct thread *t)
{
    uint32_t need = frame_bytes(&r->layout);
    t->regions.len = 0;
    t->last_hit = 0;
    for (size_t i = 0; i < t->accepted.len; i++) {
        uint64_t frame = t->accepted.data[i].frame;
        if (t->accepted.data[i].code == WALKED_UNREADABLE)
            break;
        if (find_chunk(t, frame) && find_region(t, frame, need)) /* its chunk is planned already */
            continue;
        int rc = cover(t, frame, need);
        if (rc < 0)
            return rc;
    }
    t->last_hit = 0;
    return 0;
}

/* ---- a look ---- */

struct fixed {
    uint32_t tstate, gil, cframe; /* offsets in the copy */
    uint32_t gil_base;            /* offset of the GIL window in its structure */
    uint32_t closing;             /* offset of the second reading of the top */
    size_t count;
    size_t len;
};

/* The ranges that every look begins with. */
static void fixed_ranges(const struct remote *r, const struct thread *t, bool with_gil,
                         struct iovec *ranges, struct fixed *f)
{
    const struct pylayout *l = &r->layout;
    *f = (struct fixed){.gil = UINT32_MAX, .cframe = UINT32_MAX};
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
    if (l->frames == PYL_FRAMES_CFRAME && t->cframe) {
        f->cframe = (uint32_t)f->len;
        uint64_t addr = t->cframe + l->cframe.current_frame;
        ranges[f->count++] = (struct iovec){(void *)(uintptr_t)addr, 8};
        f->len += 8;
    }
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

/* Walks the copied frames. 0; LOOK_MOVED with *ret_miss = the frame that was not covered. */
static int walk(struct remote *r, struct thread *t, const uint8_t *copy, uint64_t addr,
                uint64_t *ret_miss)
{
    const struct pylayout *l = &r->layout;
    uint32_t need = frame_bytes(l);
    bool index = l->instr == PYL_INSTR_BYTE_INDEX || l->instr == PYL_INSTR_UNIT_INDEX;
    t->now.len = 0;
    t->last_hit = 0;
    while (addr) {
        if (!vec_reserve(&t->now, t->now.len + 1))
            return E_NOMEM;
        struct walked *w = &t->now.data[t->now.len];
        if (!mem_plausible(addr) || addr == t->bad_addr || t->now.len >= REMOTE_MAX_FRAMES) {
            *w = (struct walked){.frame = addr, .code = WALKED_UNREADABLE};
            t->now.len++;
            return 0;
        }
        const struct region *g = find_region(t, addr, need);
        if (!g || g->local + g->len > t->readable) {
            *ret_miss = addr;
            return LOOK_MOVED;
        }
        const uint8_t *f = copy + g->local + (addr - g->addr);
        w->frame = addr;
        w->code = field_u64(f, l->frame.code) & ~(uint64_t)l->code_tag_mask;
        w->instr =
            index ? (int32_t)field_u32(f, l->frame.instr) : (int64_t)field_u64(f, l->frame.instr);
        if (l->shim_owner_min && f[l->frame.owner] >= l->shim_owner_min &&
            f[l->frame.owner] <= l->shim_owner_max) {
            w->code = WALKED_SHIM;
            w->instr = 0;
        } else if (w->code <= WALKED_UNREADABLE) {
            w->code = 2; /* never a code object: fails its lookup */
        }
        t->now.len++;
        addr = field_u64(f, l->frame.previous);
    }
    return 0;
}

/* A region turned out unreadable: take it out of the plan. */
static void drop_unreadable(struct thread *t, size_t readable)
{
    for (size_t i = 0; i < t->regions.len; i++) {
        if (t->regions.data[i].local + t->regions.data[i].len <= readable)
            continue;
        t->bad_addr = t->regions.data[i].addr;
        t->chunks.len = 0;
        t->regions.data[i] = t->regions.data[t->regions.len - 1];
        t->regions.len--;
        return;
    }
}

struct checks {
    size_t count;
    size_t bytes;
    struct code_check check[MAX_CHECKS];
    struct iovec ranges[MAX_CHECKS * CODE_RANGES];
};

/* Scratch for the checks of one look; kept by struct remote because it is too large for a stack. */
struct check_room {
    struct checks c;
};

/* Copies what the plan says: first the code objects to check, then the fixed part, then the regions.
 * The copy's first byte is the first check's. */
static int copy_plan(struct remote *r, struct thread *t, enum look_kind kind,
                     const struct checks *checks, struct fixed *f)
{
    size_t check_ranges = checks ? checks->count * CODE_RANGES : 0;
    size_t count = check_ranges + FIXED_RANGES + t->regions.len + CLOSING_RANGES;
    struct iovec stack_ranges[FIXED_RANGES + CLOSING_RANGES + 64];
    _cleanup_free_ struct iovec *heap_ranges = NULL;
    struct iovec *ranges = stack_ranges;
    if (count > ARRAY_LEN(stack_ranges)) {
        heap_ranges = malloc(count * sizeof *ranges);
        if (!heap_ranges)
            return E_NOMEM;
        ranges = heap_ranges;
    }
    if (check_ranges)
        memcpy(ranges, checks->ranges, check_ranges * sizeof *ranges);
    fixed_ranges(r, t, kind == LOOK_WITH_GIL, ranges + check_ranges, f);
    size_t at = check_ranges + f->count, len = f->len, before = checks ? checks->bytes : 0;
    for (size_t i = 0; i < t->regions.len; i++) {
        struct region *g = &t->regions.data[i];
        g->local = (uint32_t)len;
        ranges[at++] = (struct iovec){(void *)(uintptr_t)g->addr, g->len};
        len += g->len;
    }
    f->closing = (uint32_t)len;
    size_t closing = kind == LOOK_AGAIN ? closing_ranges(r, t, ranges + at) : 0;
    at += closing;
    len += closing * 8;
    if (!ensure_copy(t, before + len))
        return E_LIMIT;
    ssize_t n = mem_read_ranges(&r->mem, t->copy, ranges, at);
    if (n < 0)
        return (int)n;
    t->readable = (size_t)n > before ? (size_t)n - before : 0;
    if (t->readable < f->len)
        return E_BADMEM;
    if (t->readable < len) {
        drop_unreadable(t, t->readable);
        return E_BADMEM;
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
static const struct walked *base_of(const walked_vec *stack)
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
    const struct walked *base = base_of(&t->now);
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

/* May a stack that `agreed` looks have shown end where this one ends? Not at a generator, unless the
 * thread has never shown another end: C code may drive a generator with no Python around it. */
static bool base_is_good(struct remote *r, struct thread *t, unsigned agreed)
{
    const struct walked *base = base_of(&t->now);
    if (!base)
        return true;
    if (codes_is_generator(r, base->code))
        return !t->plain_base && agreed >= LOOKS_FOR_BASE;
    t->plain_base = true;
    return agreed >= LOOKS_FOR_BASE ||
           (t->base_votes >= BASE_VOTES_KNOWN && base->frame == t->base);
}

static int look(struct remote *r, struct thread *t, enum look_kind kind,
                const struct checks *checks)
{
    const struct pylayout *l = &r->layout;
    size_t before = checks ? checks->bytes : 0;
    for (int i = 0; i < MAX_RELOOKS; i++) {
        struct fixed f;
        int rc = copy_plan(r, t, kind, checks, &f);
        if (rc < 0) {
            if (rc != E_BADMEM || (t->readable < f.len && !t->cframe))
                return rc;
            t->cframe = 0; /* the predicted C frame or a region may be what is gone */
            continue;
        }
        const uint8_t *copy = t->copy + before;
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
                rc = refresh_chunks(r, t, newest);
                if (rc < 0)
                    return rc;
            }
        }
        rc = walk(r, t, copy, addr, &miss);
        if (rc == 0)
            vote_base(t);
        if (rc != LOOK_MOVED)
            return rc;
        rc = chase(r, t, miss);
        if (rc < 0)
            return rc;
    }
    t->now.len = 0;
    return LOOK_MOVED;
}

/* ---- from looks to a sample ---- */

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
    t->check_ns = codes_next_check(r, &t->accepted);
    t->bad_addr = 0;
    return replan(r, t);
}

/* Gives up: keeps the outer frames that the last two looks have in common. */
static int give_moving(struct remote *r, struct thread *t, uint64_t now_ns, struct remote_sample *s)
{
    size_t common = 0;
    while (common < t->now.len && common < t->before.len &&
           memcmp(&t->now.data[t->now.len - 1 - common],
                  &t->before.data[t->before.len - 1 - common], sizeof(struct walked)) == 0)
        common++;
    if (common)
        memmove(t->now.data, t->now.data + (t->now.len - common), common * sizeof(struct walked));
    t->now.len = common;
    s->moving = true;
    t->has_accepted = false; /* the next sample starts afresh */
    int rc = resolve(r, t, &t->now, now_ns, s);
    t->bad_addr = 0;
    return rc;
}

/* A pause of random length, up to `most` turns, so that looks cannot fall into step with the target. */
static void pause_a_little(struct remote *r, unsigned most)
{
    r->rng = r->rng * 6364136223846793005ull + 1442695040888963407ull;
    unsigned spins = (unsigned)(r->rng >> 33) % most;
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

/* Looks again until two looks agree. The first look is in t->now, if it was a `whole` walk. */
static int settle(struct remote *r, struct thread *t, bool whole, uint64_t now_ns,
                  struct remote_sample *s)
{
    struct checks *checks = &r->checks->c;
    bool checked = false; /* its code objects were checked since it was first seen */
    unsigned agreed = 1;
    edges_next_round(&r->edges);
    for (s->tries = 1; s->tries <= REMOTE_MAX_TRIES; s->tries++) {
        checks->count = 0;
        if (!checked) {
            meet_codes(r, &t->now, now_ns);
            checks->count =
                codes_plan_check(r, &t->now, now_ns, checks->check, checks->ranges, MAX_CHECKS);
        }
        checks->bytes = codes_check_bytes(r, checks->count);
        if (whole)
            swap_looks(t);
        int rc = look(r, t, LOOK_AGAIN, checks);
        if (rc < 0)
            return rc;
        whole = rc == 0;
        if (!whole || !same(&t->now, &t->before)) {
            checked = false;
            agreed = 1;
            pause_a_little(r, s->tries < 4 ? 2 : PAUSE_TURNS);
            continue;
        }
        if (codes_finish_check(r, checks->check, checks->count, t->copy, now_ns)) {
            checked = true;
            agreed++;
            bool strong = base_is_good(r, t, agreed);
            if (strong && over_edges(r, &t->now, EDGES_ASK))
                return accept(r, t, now_ns, s);
            if (strong && agreed == 2)
                over_edges(r, &t->now, EDGES_VOTE);
            if (strong && agreed >= LOOKS_FOR_NEW) {
                over_edges(r, &t->now, EDGES_LEARN);
                return accept(r, t, now_ns, s);
            }
            pause_a_little(r, PAUSE_TURNS);
        }
    }
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
    if (codes_lookup(r, t->now.data[0].code, 0, &entry) < 0)
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
    if (!r->checks && !(r->checks = calloc(1, sizeof *r->checks)))
        return E_NOMEM;
    struct remote_sample s = {.tries = 1};
    uint64_t now_ns = clock_mono_ns();
    bool ask_gil = now_ns - t->gil_ns >= GIL_INTERVAL_NS;
    int rc = look(r, t, ask_gil ? LOOK_WITH_GIL : LOOK_FIRST, NULL);
    if (rc < 0)
        return rc;
    if (ask_gil)
        t->gil_ns = now_ns;
    s.holds_gil = t->holds_gil;
    s.gil_known = t->gil_known;
    if (rc == 0 && t->has_accepted && now_ns < t->check_ns && same(&t->now, &t->accepted)) {
        s.damaged = t->accepted_damaged;
        touch_leaf(r, t, &s);
    } else if (r->unsafe) {
        meet_codes(r, &t->now, now_ns);
        rc = accept(r, t, now_ns, &s);
    } else {
        rc = settle(r, t, rc == 0, now_ns, &s);
    }
    if (rc < 0)
        return rc;
    s.depth = (uint32_t)t->frames.len;
    s.frames = t->frames.data;
    *ret = s;
    return 0;
}
