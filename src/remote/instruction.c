/* One small read for the running thread: where its newest frame is, the pages on which the last few were, and where the newest frame is
 * once more. A frame that is the newest before or behind, and stands at a simple instruction in between, runs it then: one that has
 * called stands at the call, one that has returned at its return. So nothing needs to hold still, and what moves is not met
 * more seldom than what rests. */
#include "remote/instruction.h"

#include "base/clock.h"
#include "base/err.h"
#include "remote/look.h"
#include "remote/opcodes.h"
#include "remote/plan.h"

enum {
    PAGE = 4096,
    PAGES = 6,               /* that are remembered */
    MAX_FRAME = 512,         /* bytes of a frame that are needed, and may be on the next page */
    MAX_TRIES = 6,           /* until all that was needed was read */
    MAX_UNITS = 1 << 16,     /* of one code object */
    MAX_ALL_UNITS = 1 << 17, /* of all: 5 MB */
    MAX_RANGES = PAGES + 4,
    COUNTED_LONG = 64, /* questions, after the last one that found the thread there */
};

/* A part of a page that the next read brings. */
struct piece {
    uint64_t addr;
    uint32_t len, local;
};

struct blocks {
    struct opcode_unit *unit; /* owned */
    size_t count;
    bool asked;
};

/* A code object that counts. */
struct counted {
    uint64_t code;
    uint32_t index;
    uint64_t found; /* at which question */
};

struct instruction_watch {
    uint64_t tstate, cframe; /* of the thread that ran when we looked last */
    struct piece piece[PAGES];
    unsigned oldest;
    VEC(struct blocks) blocks; /* by index of the code object */
    size_t all_units;
    struct counted counted[REMOTE_COUNTS];
    uint64_t questions;
    uint8_t copy[MAX_RANGES * 8 + PAGES * (PAGE + MAX_FRAME)];
};

/* What one read has brought. */
struct glance {
    uint64_t running, cframe, before, behind;
};

bool remote_slows_instructions(const struct remote *r)
{
    return opcodes_of(r->layout.major, r->layout.minor) != NULL;
}

static void forget_blocks(struct instruction_watch *w)
{
    for (size_t i = 0; i < w->blocks.len; i++) {
        free(w->blocks.data[i].unit);
    }
    w->blocks.len = w->all_units = 0;
}

void instruction_watch_free(struct instruction_watch *w)
{
    if (!w)
        return;
    forget_blocks(w);
    vec_release(&w->blocks);
    free(w);
}

static struct piece *piece_of(struct instruction_watch *w, uint64_t frame, uint32_t need)
{
    for (size_t i = 0; i < PAGES; i++) {
        struct piece *p = &w->piece[i];
        if (p->len && frame >= p->addr && frame - p->addr + need <= p->len)
            return p;
    }
    return NULL;
}

static void remember(struct instruction_watch *w, uint64_t frame, uint32_t need)
{
    uint64_t page = frame / PAGE * PAGE;
    uint64_t len = max_u64(PAGE, frame + need - page);
    size_t at = 0;
    while (at < PAGES && w->piece[at].addr != page)
        at++;
    if (at == PAGES)
        at = w->oldest++ % PAGES;
    w->piece[at] = (struct piece){.addr = page, .len = (uint32_t)len};
}

/* Something is where it was not, or is not there any more. */
static void begin_anew(struct instruction_watch *w)
{
    w->tstate = w->cframe = 0;
    for (size_t i = 0; i < PAGES; i++)
        w->piece[i] = (struct piece){0};
}

static void add_range(struct iovec *ranges, size_t *n, size_t *len, uint64_t addr, size_t bytes)
{
    ranges[(*n)++] = (struct iovec){(void *)(uintptr_t)addr, bytes};
    *len += bytes;
}

/* 0; E_BADMEM if not all of it could be read; or another negative code. */
static int read_all(const struct remote *r, struct instruction_watch *w, struct glance *ret)
{
    const struct pylayout *l = &r->layout;
    bool has_cframe = l->frames == PYL_FRAMES_CFRAME;
    uint64_t top = w->tstate + l->tstate.frame;
    struct iovec ranges[MAX_RANGES];
    size_t n = 0, len = 0;
    add_range(ranges, &n, &len, r->runtime + l->runtime.tstate_current, 8);
    if (w->tstate)
        add_range(ranges, &n, &len, top, 8);
    if (w->cframe)
        add_range(ranges, &n, &len, w->cframe + l->cframe.current_frame, 8);
    for (size_t i = 0; i < PAGES && w->tstate; i++) {
        w->piece[i].local = (uint32_t)len;
        if (w->piece[i].len)
            add_range(ranges, &n, &len, w->piece[i].addr, w->piece[i].len);
    }
    size_t last = len;
    if (w->tstate && (w->cframe || !has_cframe))
        add_range(ranges, &n, &len, has_cframe ? w->cframe + l->cframe.current_frame : top, 8);
    ssize_t got = mem_read_ranges(&r->mem, w->copy, ranges, n);
    if (got < 0)
        return (int)got;
    if ((size_t)got < len)
        return E_BADMEM;
    *ret = (struct glance){.running = field_u64(w->copy, 0)};
    if (w->tstate && has_cframe)
        ret->cframe = field_u64(w->copy, 8);
    if (len > last) {
        ret->before = field_u64(w->copy, has_cframe ? 16 : 8);
        ret->behind = field_u64(w->copy, (uint32_t)last);
    }
    return 0;
}

/* Is the frame's page among what was read? Else it will be. */
static bool has_frame(struct instruction_watch *w, uint64_t frame, uint32_t need)
{
    if (!mem_plausible(frame) || piece_of(w, frame, need))
        return true;
    remember(w, frame, need);
    return false;
}

/* A code object's instructions; NULL if they cannot be had. */
static struct blocks *blocks_of(struct remote *r, struct instruction_watch *w, uint32_t entry)
{
    const struct pylayout *l = &r->layout;
    const struct code_entry *e = &r->entries.data[entry];
    if (w->all_units > MAX_ALL_UNITS)
        forget_blocks(w);
    while (w->blocks.len <= e->index)
        if (!vec_push(&w->blocks))
            return NULL;
    struct blocks *s = &w->blocks.data[e->index];
    if (s->asked)
        return s->unit ? s : NULL;
    s->asked = true;
    bool adaptive = l->code.code_adaptive != PYL_NONE;
    uint64_t at = adaptive ? e->addr : e->print.bytecode, size = 0;
    if (!mem_plausible(at) || mem_read_ptr(&r->mem, at + l->bytes.ob_size, &size) < 0)
        return NULL;
    size_t units = adaptive ? size : size / 2; /* a code object counts them, a bytes object bytes */
    if (!units || units > MAX_UNITS)
        return NULL;
    _cleanup_free_ uint8_t *code = malloc(units * 2);
    struct opcode_unit *unit = calloc(units, sizeof *unit);
    if (!code || !unit ||
        mem_read(&r->mem, at + (adaptive ? l->code.code_adaptive : l->bytes.ob_sval), code,
                 units * 2) < 0 ||
        opcodes_divide(opcodes_of(l->major, l->minor), code, units, unit) < 0) {
        free(unit);
        return NULL;
    }
    s->unit = unit;
    s->count = units;
    w->all_units += units;
    return s;
}

/* Where the thread was found just now. The one that was found the longest ago makes room for a new one. */
static void watch_count(const struct remote *r, struct instruction_watch *w, uint64_t code,
                        uint32_t entry)
{
    if (r->layout.code.warmup == PYL_NONE)
        return;
    struct counted *c = w->counted;
    for (size_t i = 0; i < REMOTE_COUNTS && c->code != code; i++)
        if (w->counted[i].code == code || w->counted[i].found < c->found)
            c = &w->counted[i];
    *c = (struct counted){code, r->entries.data[entry].index, w->questions};
}

static void read_counts(const struct remote *r, struct instruction_watch *w,
                        struct remote_instruction *ret)
{
    struct iovec ranges[REMOTE_COUNTS];
    uint8_t copy[REMOTE_COUNTS * 2];
    size_t n = 0, len = 0;
    ret->counts = 0;
    for (size_t i = 0; i < REMOTE_COUNTS; i++) {
        struct counted *c = &w->counted[i];
        if (!c->code || w->questions - c->found > COUNTED_LONG)
            continue;
        ret->count[n].code = c->index;
        add_range(ranges, &n, &len, c->code + r->layout.code.warmup, 2);
    }
    if (!n || mem_read_ranges(&r->mem, copy, ranges, n) != (ssize_t)len)
        return;
    for (size_t i = 0; i < n; i++)
        ret->count[i].count = (int16_t)(copy[2 * i] | copy[2 * i + 1] << 8);
    ret->counts = n;
}

/* What a frame runs; false if that says nothing. */
static bool judge(struct remote *r, struct instruction_watch *w, uint64_t frame, uint64_t now_ns,
                  struct remote_instruction *ret)
{
    const struct pylayout *l = &r->layout;
    const struct piece *p = mem_plausible(frame) ? piece_of(w, frame, plan_frame_bytes(l)) : NULL;
    struct walked at = {.frame = frame};
    uint32_t entry;
    if (!p)
        return false;
    look_read_frame(l, w->copy + p->local + (frame - p->addr), &at);
    const walked_vec stack = {.data = &at, .len = 1};
    if (codes_lookup(r, at.code, now_ns, &entry) < 0 || !codes_check(r, &stack, now_ns))
        return false;
    struct blocks *s = blocks_of(r, w, entry);
    int64_t offset = codes_offset(r, entry, at.instr);
    uint64_t unit = (uint64_t)offset / 2;
    if (!s || offset < 0 || unit >= s->count || s->unit[unit].kind >= OPCODE_CALL)
        return false;
    watch_count(r, w, at.code, entry);
    const uint16_t *count = s->unit[s->unit[unit].block].count;
    ret->code = r->entries.data[entry].index;
    ret->suspends = codes_suspends(r, entry);
    ret->moves = s->unit[unit].kind == OPCODE_MOVE;
    ret->block = (struct remote_block){
        .begin = s->unit[unit].block,
        .moves = count[OPCODE_MOVE],
        .stores = count[OPCODE_STORE] + count[OPCODE_EXTENDED],
        .iterations = count[OPCODE_ITERATION],
        .arithmetic = count[OPCODE_ARITHMETIC],
        .divisions = count[OPCODE_DIVISION],
        .comparisons = count[OPCODE_COMPARISON],
        .names = count[OPCODE_NAME],
        .attributes = count[OPCODE_ATTRIBUTE],
        .items = count[OPCODE_ITEM],
        .others = count[OPCODE_OTHER],
        .calls = count[OPCODE_CALL],
        .counted = s->unit[s->unit[unit].block].counted,
    };
    return true;
}

static bool find_thread(const struct remote *r, uint64_t tstate, size_t *ret)
{
    for (size_t i = 0; i < r->threads.len; i++)
        if (r->threads.data[i]->pub.tstate == tstate) {
            *ret = i;
            return true;
        }
    return false;
}

int remote_running_instruction(struct remote *r, uint64_t now_ns, struct remote_instruction *ret)
{
    const struct pylayout *l = &r->layout;
    uint32_t need = plan_frame_bytes(l);
    if (!r->watch)
        r->watch = calloc(1, sizeof *r->watch);
    struct instruction_watch *w = r->watch;
    ret->counts = 0;
    if (!w || need > MAX_FRAME || !remote_slows_instructions(r))
        return 0;
    w->questions++;
    read_counts(r, w, ret);
    for (int i = 0; i < MAX_TRIES; i++) {
        struct glance g = {0};
        int rc = read_all(r, w, &g);
        if (rc < 0 && rc != E_BADMEM)
            return rc;
        if (rc < 0 || g.running != w->tstate) {
            begin_anew(w);
            if (rc < 0)
                continue;
            if (!find_thread(r, g.running, &ret->thread))
                return 0; /* nobody runs, or one that was not met yet */
            w->tstate = g.running;
            continue;
        }
        if (l->frames == PYL_FRAMES_CFRAME && g.cframe != w->cframe) {
            w->cframe = mem_plausible(g.cframe) ? g.cframe : 0;
            if (!w->cframe)
                return 0;
            continue;
        }
        bool has_before = has_frame(w, g.before, need), has_behind = has_frame(w, g.behind, need);
        if (!has_before || !has_behind)
            continue;
        if (!find_thread(r, w->tstate, &ret->thread))
            return 0;
        return judge(r, w, g.before, now_ns, ret) ||
               (g.behind != g.before && judge(r, w, g.behind, now_ns, ret));
    }
    return 0;
}
