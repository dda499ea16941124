/* An invented CPython process in a buffer, built by a layout: one interpreter, one thread, a stack
 * of frames. What test_stack.c walks, and the seeds of tests/fuzz/fuzz_walker.c.
 *
 * The target may run while it is read: `run` is called before every word that a read copies. */
#ifndef PYROMETER_TESTS_FAKEPYTHON_H
#define PYROMETER_TESTS_FAKEPYTHON_H

#include "remote/internal.h"

#include <errno.h>
#include <string.h>

enum {
    FAKE_BASE = 0x10000, /* as in fuzz_walker.c */
    FAKE_CODE_TYPE = FAKE_BASE + 0x100,
    FAKE_BYTES = 1 << 16,
    FAKE_SLOT = 128, /* room of one frame */
    FAKE_FRAMES = 64,
    FAKE_UNITS = 64,     /* instructions of a code object */
    FAKE_IDENT = 0x7f00, /* threading.get_ident() */
    FAKE_SHIM = -1,      /* a frame of the interpreter's own */
};

struct fake {
    struct pylayout l;
    uint8_t memory[FAKE_BYTES];
    uint64_t used;
    uint64_t interp, tstate, cframe, gil, chunk;
    uint64_t slots;   /* of the data stack: one frame after the other, each of FAKE_SLOT bytes */
    uint64_t c_stack; /* where the shim is, if the root is one */
    bool has_shim;
    int frames; /* that were ever written */
    uint32_t codes;
    void (*run)(struct fake *f);
    int fails;               /* -errno for every read, or 0 */
    uint64_t hole, hole_end; /* memory that is gone */
    uint64_t calls;
    size_t ranges; /* of the largest read */
    uint64_t rng;
    void *ctx;
};

static inline uint8_t *fake_at(struct fake *f, uint64_t addr)
{
    if (addr < FAKE_BASE || addr - FAKE_BASE > FAKE_BYTES - 8)
        abort();
    return f->memory + (addr - FAKE_BASE);
}

static inline void fake_put(struct fake *f, uint64_t addr, uint32_t offset, uint64_t v)
{
    if (offset != PYL_NONE)
        memcpy(fake_at(f, addr + offset), &v, 8);
}

static inline void fake_put32(struct fake *f, uint64_t addr, uint32_t offset, uint32_t v)
{
    if (offset != PYL_NONE)
        memcpy(fake_at(f, addr + offset), &v, 4);
}

static inline uint64_t fake_get(struct fake *f, uint64_t addr, uint32_t offset)
{
    uint64_t v;
    memcpy(&v, fake_at(f, addr + offset), 8);
    return v;
}

static inline uint64_t fake_new(struct fake *f, size_t size)
{
    uint64_t addr = FAKE_BASE + f->used;
    f->used += (size + 15) & ~15ull;
    if (f->used > FAKE_BYTES)
        abort();
    return addr;
}

static inline uint64_t fake_random(struct fake *f)
{
    f->rng ^= f->rng << 13;
    f->rng ^= f->rng >> 7;
    f->rng ^= f->rng << 17;
    return f->rng;
}

/* What struct mem.fake points to. */
static inline ssize_t fake_read(void *ctx, void *dst, const struct iovec *ranges, size_t count)
{
    struct fake *f = ctx;
    size_t done = 0;
    f->calls++;
    f->ranges = f->ranges > count ? f->ranges : count;
    if (f->fails)
        return f->fails;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = (uintptr_t)ranges[i].iov_base - (uint64_t)FAKE_BASE;
        if (at > f->used || ranges[i].iov_len > f->used - at ||
            (at + FAKE_BASE < f->hole_end && at + FAKE_BASE + ranges[i].iov_len > f->hole))
            return done ? (ssize_t)done : -EFAULT;
        for (size_t k = 0; k < ranges[i].iov_len; k += 8) {
            if (f->run)
                f->run(f);
            size_t n = min_u64(8, ranges[i].iov_len - k);
            memcpy((uint8_t *)dst + done + k, f->memory + at + k, n);
        }
        done += ranges[i].iov_len;
    }
    return (ssize_t)done;
}

static inline uint64_t fake_str(struct fake *f, const char *text)
{
    const struct pylayout *l = &f->l;
    enum { ONE_BYTE = 1, COMPACT = 1 << 3, ASCII = 1 << 4 };
    uint64_t addr = fake_new(f, l->unicode.compact_size + strlen(text) + 1);
    fake_put(f, addr, l->unicode.length, strlen(text));
    fake_put(f, addr, l->unicode.length + 8, hash_bytes(text, strlen(text)));
    fake_put32(f, addr, l->unicode.state,
               (uint32_t)(ONE_BYTE | COMPACT | ASCII) << l->unicode.state_kind_shift);
    memcpy(fake_at(f, addr + l->unicode.ascii_size), text, strlen(text));
    return addr;
}

/* A code object of two lines: instructions from byte 0 are on `first`, from byte 4 on the next. */
static inline uint64_t fake_code(struct fake *f, const char *name, uint32_t first)
{
    static const uint8_t lnotab[] = {0, 0, 4, 1};
    static const uint8_t pep626[] = {4, 0, 40, 1};
    static const uint8_t location[] = {0x80 | 13 << 3 | 1, 0, 0x80 | 13 << 3 | 7, 2};
    const struct pylayout *l = &f->l;
    const uint8_t *table = l->lines == PYL_LINES_LNOTAB   ? lnotab
                           : l->lines == PYL_LINES_PEP626 ? pep626
                                                          : location;
    uint64_t addr = fake_new(f, l->code.size + 64), lines = fake_new(f, l->bytes.ob_sval + 8);
    fake_put(f, lines, l->bytes.ob_size, sizeof lnotab);
    memcpy(fake_at(f, lines + l->bytes.ob_sval), table, sizeof lnotab);
    fake_put(f, addr, l->object.ob_type, FAKE_CODE_TYPE);
    fake_put(f, addr, l->code.name, fake_str(f, name));
    fake_put(f, addr, l->code.filename, fake_str(f, "app.py"));
    if (l->code.qualname != PYL_NONE)
        fake_put(f, addr, l->code.qualname, fake_get(f, addr, l->code.name));
    fake_put(f, addr, l->code.linetable, lines);
    fake_put32(f, addr, l->code.firstlineno, first);
    fake_put(f, addr, l->tuple.ob_size, FAKE_UNITS);
    fake_put32(f, addr, l->code.version, ++f->codes);
    /* a frame fills its slot */
    fake_put32(f, addr, l->code.framesize, FAKE_SLOT / 8);
    if (l->code.framesize == PYL_NONE)
        fake_put32(f, addr, l->code.stacksize, (FAKE_SLOT - l->frame.localsplus) / 8);
    return addr;
}

/* What a frame keeps for an instruction at a byte offset. */
static inline uint64_t fake_instr(const struct fake *f, uint64_t code, uint32_t offset)
{
    switch (f->l.instr) {
    case PYL_INSTR_BYTE_INDEX:
        return offset;
    case PYL_INSTR_UNIT_INDEX:
        return offset / 2;
    case PYL_INSTR_PREV_PTR:
    case PYL_INSTR_NEXT_PTR:
        return code + f->l.code.code_adaptive + offset;
    }
    return 0;
}

static inline uint64_t fake_slot(const struct fake *f, int depth)
{
    if (f->has_shim && depth == 0)
        return f->c_stack;
    return f->slots + (uint64_t)(depth - f->has_shim) * FAKE_SLOT;
}

/* As the interpreter leaves it in a frame that runs, or that waits for what it has called, or has returned. */
static inline void fake_running(struct fake *f, int depth, bool runs)
{
    if (depth >= f->has_shim)
        fake_put32(f, fake_slot(f, depth), f->l.frame.stacktop, runs ? UINT32_MAX : 1);
}

/* Writes the frame at a depth; the stack does not end there yet. `code` FAKE_SHIM, at the root: a shim. */
static inline void fake_frame(struct fake *f, int depth, int64_t code, uint32_t offset)
{
    const struct pylayout *l = &f->l;
    bool shim = code == FAKE_SHIM;
    f->has_shim |= shim;
    if (depth >= f->frames)
        f->frames = depth + 1;
    uint64_t at = fake_slot(f, depth);
    if (l->frame.owner != PYL_NONE)
        *fake_at(f, at + l->frame.owner) = shim ? l->shim_owner_min : PYL_OWNER_THREAD;
    fake_put(f, at, l->frame.code, shim ? 0 : (uint64_t)code);
    uint64_t instr = fake_instr(f, (uint64_t)code, offset);
    if (l->instr == PYL_INSTR_BYTE_INDEX || l->instr == PYL_INSTR_UNIT_INDEX)
        fake_put32(f, at, l->frame.instr, (uint32_t)instr);
    else
        fake_put(f, at, l->frame.instr, instr);
    fake_put(f, at, l->frame.previous, depth ? fake_slot(f, depth - 1) : 0);
}

/* The newest frame is the one at this depth; -1: no Python code runs. Those above have returned. */
static inline void fake_top(struct fake *f, int depth)
{
    uint64_t frame = depth < 0 ? 0 : fake_slot(f, depth);
    for (int above = depth + 1; above < f->frames; above++) {
        fake_running(f, above, false);
        if (f->l.frame.clears_code && above >= f->has_shim)
            fake_put(f, fake_slot(f, above), f->l.frame.code, 0);
    }
    for (int below = 0; below < depth; below++)
        fake_running(f, below, false);
    if (depth >= 0)
        fake_running(f, depth, true);
    if (f->l.frames == PYL_FRAMES_CFRAME)
        fake_put(f, f->cframe, f->l.cframe.current_frame, frame);
    else
        fake_put(f, f->tstate, f->l.tstate.frame, frame);
}

static inline uint64_t fake_end_of(const uint32_t *offsets, size_t count)
{
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++)
        if (offsets[i] != PYL_NONE && offsets[i] + 8u > end)
            end = offsets[i] + 8u;
    return end;
}

/* `debug`: the first bytes of a real runtime, for versions that describe themselves; or NULL. */
static inline void fake_init(struct fake *f, const struct pylayout *l, const uint8_t *debug,
                             size_t debug_len)
{
    memset(f, 0, sizeof *f);
    f->l = *l;
    f->rng = 88172645463325252ull;
    uint64_t runtime = fake_new(f, max_u64(debug_len, l->runtime.size) + 64);
    const uint32_t fields[] = {l->interp.next,    l->interp.id,  l->interp.threads_head,
                               l->interp.modules, l->interp.gil, l->interp.sysdict};
    f->interp = fake_new(f, fake_end_of(fields, ARRAY_LEN(fields)));
    f->tstate = fake_new(f, l->tstate.size + 64);
    f->cframe =
        f->tstate + ((uint64_t)l->tstate.size + 7) / 8 * 8; /* the outermost one is a part of it */
    f->c_stack = fake_new(f, FAKE_SLOT);
    f->gil = fake_new(f, l->gil.size);
    f->chunk = fake_new(f, 64 + FAKE_FRAMES * FAKE_SLOT);
    f->slots = f->chunk + (l->tstate.datastack_chunk == PYL_NONE ? 64 : l->chunk.data + 8);
    if (debug_len)
        memcpy(f->memory, debug, debug_len);

    fake_put(f, runtime, l->runtime.interpreters_head, f->interp);
    fake_put(f, runtime, l->runtime.tstate_current, f->tstate);
    fake_put(f, f->interp, l->interp.threads_head, f->tstate);
    fake_put(f, f->interp, l->interp.gil, f->gil);
    fake_put(f, f->gil, l->gil.last_holder, f->tstate);
    fake_put32(f, f->gil, l->gil.locked, 1);
    fake_put(f, f->tstate, l->tstate.interp, f->interp);
    fake_put(f, f->tstate, l->tstate.thread_id, FAKE_IDENT);
    if (l->frames == PYL_FRAMES_CFRAME)
        fake_put(f, f->tstate, l->tstate.frame, f->cframe);
    if (l->tstate.datastack_chunk != PYL_NONE) {
        fake_put(f, f->tstate, l->tstate.datastack_chunk, f->chunk);
        fake_put(f, f->chunk, l->chunk.size, 64 + FAKE_FRAMES * FAKE_SLOT);
    }
}

/* The process seen from outside, as remote_open would give it. Close it with remote_close. */
static inline struct remote *fake_open(struct fake *f)
{
    struct remote *r = calloc(1, sizeof *r);
    r->mem = (struct mem){.fake = fake_read, .fake_ctx = f};
    r->layout = f->l;
    r->runtime = FAKE_BASE;
    r->code_type = FAKE_CODE_TYPE;
    r->rng = 1;
    return r;
}

#endif
