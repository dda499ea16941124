/* The Python stack at an allocation, told as far as it has changed.
 *
 * Every frame is looked at every time: frame, code and instruction must be those of the last time, from the innermost
 * to the outermost, for an older caller can have changed while all above it look the same. That is a few loads a frame,
 * at addresses known beforehand. Where frames came or went, the two chains are brought together first.
 *
 * A thread's frames are its own, but for one case: when the interpreter ends, the states and frames of threads that it does not wait
 * for (daemons) are freed, and one of these may be in a malloc of C code, without the GIL. So whether it ends is asked before the
 * frames are looked at, and again after each wait for room, which may take seconds; and memory_end.c waits for those who look. */
#include "agent/memory.h"
#include "agent/pyver_walk.h"
#include "base/utf8.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAX_FRESH = 12,        /* frames above one that was there, for the quick way */
    MAX_GONE = 12,         /* and frames that have gone */
    FIRST_CAPACITY = 4096, /* frames */
    MAX_CAPACITY = 1 << 22,
    CODE_SLOTS = 1 << 16,
    MAX_PROBES = 64,
    MAX_TEXT = 2048, /* bytes of a name or a file's path */
};

/* When the interpreter ends, the states of threads that it does not wait for are freed, and they themselves are the last to
 * know. The one that ends it is nearly always the first thread of the process. */
static bool may_be_freed(const py_tstate *t)
{
    return py.is_finalizing && py.is_finalizing() && t != py.current_thread() &&
           syscall(SYS_gettid) != getpid();
}

/* After a wait: is there nothing left to look at? */
static __attribute__((noinline)) bool is_over(struct memory_thread *me)
{
    me->waited = false;
    return !memory_end_may_look(me) || may_be_freed(py.PyGILState_GetThisThreadState());
}

/* --- numbers of code objects ---
 *
 * By address, for as long as the object lives: memory_forget_code() is called when it dies. Threads that
 * do not hold the GIL look here too, but only for code that runs on their own stack, so it does not die meanwhile. */

static struct code_slot {
    _Atomic uintptr_t code; /* 0: free; FORGOTTEN: free again */
    _Atomic uint32_t number;
} * codes; /* CODE_SLOTS, in pages of our own */
enum { FORGOTTEN = 1 };
static _Atomic uint64_t deaths; /* of code objects that had a number */

static struct walk_shape shape; /* of this CPython, for what is rare */

static uint32_t slot_of(uintptr_t code)
{
    return (uint32_t)(code * 0x9e3779b97f4a7c15ull >> 40);
}

static uint32_t find_code(uintptr_t code)
{
    uint32_t at = slot_of(code);
    for (unsigned i = 0; i < MAX_PROBES; i++, at++) {
        uintptr_t key = atomic_load_explicit(&codes[at % CODE_SLOTS].code, memory_order_acquire);
        if (key == code)
            return atomic_load_explicit(&codes[at % CODE_SLOTS].number, memory_order_acquire);
        if (!key)
            break;
    }
    return 0;
}

/* False: the table is full around there, and the code gets a new number at every sight. */
static bool keep_code(uintptr_t code, uint32_t number)
{
    uint32_t at = slot_of(code);
    for (unsigned i = 0; i < MAX_PROBES; i++, at++) {
        _Atomic uintptr_t *place = &codes[at % CODE_SLOTS].code;
        uintptr_t key = atomic_load_explicit(place, memory_order_relaxed);
        if ((key == 0 || key == FORGOTTEN) && atomic_compare_exchange_strong(place, &key, code)) {
            atomic_store_explicit(&codes[at % CODE_SLOTS].number, number, memory_order_release);
            return true;
        }
    }
    return false;
}

void memory_forget_code(uintptr_t code)
{
    uint32_t at = slot_of(code);
    for (unsigned i = 0; i < MAX_PROBES; i++, at++) {
        _Atomic uintptr_t *place = &codes[at % CODE_SLOTS].code;
        uintptr_t key = atomic_load_explicit(place, memory_order_relaxed);
        if (!key)
            break;
        if (key != code)
            continue;
        atomic_store_explicit(&codes[at % CODE_SLOTS].number, 0, memory_order_relaxed);
        atomic_store_explicit(place, FORGOTTEN, memory_order_release);
        atomic_fetch_add_explicit(&deaths, 1, memory_order_relaxed);
    }
}

void memory_forget_codes(void)
{
    for (uint32_t i = 0; i < CODE_SLOTS; i++)
        if (atomic_load_explicit(&codes[i].code, memory_order_relaxed)) {
            atomic_store_explicit(&codes[i].number, 0, memory_order_relaxed);
            atomic_store_explicit(&codes[i].code, FORGOTTEN, memory_order_release);
        }
    atomic_fetch_add_explicit(&deaths, 1, memory_order_relaxed);
}

/* A text of a code object as UTF-8; returns its length. Such texts are whole and never change. */
static size_t take_text(const py_object *text, char *out)
{
    ptrdiff_t n = text ? py.PyUnicode_GetLength((py_object *)text) : 0;
    size_t len = 0;
    for (ptrdiff_t i = 0; i < n && len + 4 <= MAX_TEXT; i++)
        len += utf8_encode_name(py.PyUnicode_ReadChar((py_object *)text, i), out + len);
    return len;
}

struct texts {
    char name[MAX_TEXT], qualname[MAX_TEXT], file[MAX_TEXT];
};

static uint32_t describe_code(struct memory_thread *me, uintptr_t address, struct texts *t)
{
    const py_object *code = (const py_object *)address;
    size_t lines_len = 0;
    const py_object *table = py_pointer(code, shape.lines);
    const uint8_t *lines = table ? pyver_bytes(table, &lines_len) : NULL;
    if (lines_len > RINGMEM_MAX_LINES)
        lines_len = RINGMEM_MAX_LINES;
    struct ringmem_code c = {
        .id = atomic_fetch_add(&guest.session->next_code, 1) + 1,
        .first_line = py_u32(code, shape.first_line),
        .name_len = (uint32_t)take_text(py_pointer(code, shape.name), t->name),
        .file_len = (uint32_t)take_text(py_pointer(code, shape.file), t->file),
        .lines_len = (uint32_t)lines_len,
        .lines = py.minor >= 11   ? RINGMEM_LINES_LOCATION
                 : py.minor == 10 ? RINGMEM_LINES_PEP626
                                  : RINGMEM_LINES_LNOTAB,
    };
    if (shape.qualname)
        c.qualname_len = (uint32_t)take_text(py_pointer(code, shape.qualname), t->qualname);
    if (c.id > RING_MAX_VALUE)
        return 0;
    const struct guest_piece pieces[] = {{&c, sizeof c},
                                         {t->name, c.name_len},
                                         {t->qualname, c.qualname_len},
                                         {t->file, c.file_len},
                                         {lines, lines_len}};
    /* the line table is copied from where it lies, behind the wait if there is one */
    size_t bytes = sizeof c + c.name_len + c.qualname_len + c.file_len + lines_len;
    if (!memory_reserve(me, (uint32_t)(bytes / 8 + 2)) || (unlikely(me->waited) && is_over(me)) ||
        !memory_put_ext(me, RINGMEM_EXT_CODE, pieces, 5))
        return 0;
    keep_code(address, c.id);
    return c.id;
}

/* A code object at first sight: gets a number and is described. 0: there is no room. (Not on the C stack, which may be
 * a signal handler's small one.) */
static __attribute__((noinline)) uint32_t meet_code(struct memory_thread *me, uintptr_t address)
{
    struct texts *t = guest_map(sizeof *t, -1, 0);
    uint32_t number = t ? describe_code(me, address, t) : 0;
    if (t)
        guest_unmap(t, sizeof *t);
    return number;
}

/* --- the chain of frames --- */

static const char no_frame[1]; /* equal to none */

/* Code objects have died since: frames that are remembered with one of them are not what they were. */
static __attribute__((noinline)) void doubt_frames(struct memory_thread *me, uint64_t now)
{
    for (uint32_t i = 0; i < me->depth; i++) {
        struct memory_frame *f = &me->frames[i];
        if (f->number && find_code(f->runs & ~(uintptr_t)shape.tags) != f->number)
            f->frame = no_frame;
    }
    me->deaths = now;
}

static bool grow(struct memory_thread *me, uint32_t depth)
{
    uint32_t capacity = me->capacity ? me->capacity : FIRST_CAPACITY;
    while (capacity < depth)
        capacity *= 2;
    struct memory_frame *frames =
        capacity <= MAX_CAPACITY ? guest_map(capacity * sizeof *frames, -1, 0) : NULL;
    if (!frames)
        return false;
    if (me->frames) {
        memcpy(frames, me->frames, me->depth * sizeof *frames);
        guest_unmap(me->frames, me->capacity * sizeof *frames);
    }
    me->frames = frames;
    me->capacity = capacity;
    return true;
}

static bool push(struct memory_thread *me, struct walk_shape s)
{
    if (unlikely(me->waited) && is_over(me))
        return false;
    struct memory_frame *f = &me->frames[me->depth];
    uintptr_t code = walk_code(f->frame, s);
    uint32_t number = code ? find_code(code) : 0;
    if (code && !number) {
        if (walk_is_inner_code(code, s))
            code = 0;
        else if (!(number = meet_code(me, code)))
            return false;
    }
    if (!memory_reserve(me, 1))
        return false;
    f->number = number;
    memory_put(me, ringmem_push(number, code ? walk_offset(code, f->instr, s) : 0));
    me->depth++;
    return true;
}

/* The chain from `top` has `depth` frames, of which the `same` outermost are known: tells the others. */
static inline bool tell(struct memory_thread *me, const char *top, uint32_t same, uint32_t depth,
                        struct walk_shape s)
{
    if (depth > me->capacity && !grow(me, depth))
        return false;
    bool moved = top && depth == me->depth && same + 1 == depth && me->frames[same].frame == top &&
                 me->frames[same].runs == walk_runs(top, s);
    if (!memory_reserve(me, 2) || (unlikely(me->waited) && top && is_over(me)))
        return false;
    if (moved) {
        struct memory_frame *f = &me->frames[same];
        f->instr = walk_instr(top, s);
        if (f->number)
            memory_put(me, ringmem_move(walk_offset(walk_code(top, s), f->instr, s)));
        return true;
    }
    if (same < me->depth)
        memory_put(me, ringmem_word(RINGMEM_KEEP, same));
    me->depth = same;
    const char *f = top;
    for (uint32_t i = depth; f && i-- > same; f = walk_previous(f, s))
        me->frames[i] =
            (struct memory_frame){.frame = f, .runs = walk_runs(f, s), .instr = walk_instr(f, s)};
    while (me->depth < depth)
        if (!push(me, s))
            return false;
    return true;
}

/* The long way: counts the frames, then compares them from the innermost. */
static __attribute__((noinline)) bool sync_whole(struct memory_thread *me, const char *top,
                                                 const struct walk_shape s)
{
    uint32_t depth = 0;
    for (const char *f = top; f; f = walk_previous(f, s))
        if (++depth > MAX_CAPACITY)
            return false;
    uint32_t same = depth, i = depth;
    for (const char *f = top; f; f = walk_previous(f, s)) {
        i--;
        if (i >= me->depth || me->frames[i].frame != f || me->frames[i].runs != walk_runs(f, s) ||
            me->frames[i].instr != walk_instr(f, s))
            same = i;
    }
    return tell(me, top, same, depth, s);
}

static inline __attribute__((always_inline)) bool
sync_chain(struct memory_thread *me, const char *top, const struct walk_shape s)
{
    const struct memory_frame *known = me->frames;
    uint32_t fresh = 0, i = me->depth;
    const char *f = top;
    if (unlikely(i == 0 || known[i - 1].frame != f)) {
        for (bool met = false; f && !met;) {
            for (uint32_t gone = 0; gone < MAX_GONE && gone < me->depth && !met; gone++)
                if (known[me->depth - 1 - gone].frame == f) {
                    i = me->depth - gone;
                    met = true;
                }
            if (met)
                break;
            if (++fresh > MAX_FRESH)
                return sync_whole(me, top, s);
            f = walk_previous(f, s);
        }
        if (!f) /* nothing is as it was */
            return tell(me, top, 0, fresh, s);
    }
    /* Each frame known to be in the chain says where the next one is; if that is where it was, it is in the chain, too. So
     * all addresses are known beforehand, and the loads need not wait for each other. */
    uint32_t kept = i, same = i;
    while (i-- > 0) {
        const struct memory_frame *k = &known[i];
        if (unlikely(k->runs != walk_runs(k->frame, s) || k->instr != walk_instr(k->frame, s)))
            same = i;
        if (unlikely(walk_previous(k->frame, s) != (i ? k[-1].frame : NULL)))
            return sync_whole(me, top, s);
    }
    if (likely(same == me->depth && fresh == 0))
        return true;
    return tell(me, top, same, kept + fresh, s);
}

typedef bool sync_function(struct memory_thread *me, const py_tstate *t);

#define SYNC(name, s)                                                                              \
    static bool name(struct memory_thread *me, const py_tstate *t)                                 \
    {                                                                                              \
        return sync_chain(me, t ? walk_top(t, s) : NULL, s);                                       \
    }
SYNC(sync_38, WALK_SHAPE_38)
SYNC(sync_310, WALK_SHAPE_310)
SYNC(sync_311, WALK_SHAPE_311)
SYNC(sync_312, WALK_SHAPE_312)
SYNC(sync_313, WALK_SHAPE_313)
SYNC(sync_314, WALK_SHAPE_314)

static sync_function *sync_this;

bool memory_stack_init(void)
{
    codes = guest_map(CODE_SLOTS * sizeof *codes, -1, 0);
    static const struct {
        struct walk_shape shape;
        sync_function *sync;
    } by_minor[] = {
        [8] = {WALK_SHAPE_38, sync_38},    [9] = {WALK_SHAPE_38, sync_38},
        [10] = {WALK_SHAPE_310, sync_310}, [11] = {WALK_SHAPE_311, sync_311},
        [12] = {WALK_SHAPE_312, sync_312}, [13] = {WALK_SHAPE_313, sync_313},
        [14] = {WALK_SHAPE_314, sync_314}, [15] = {WALK_SHAPE_314, sync_314},
    };
    shape = by_minor[py.minor].shape;
    sync_this = by_minor[py.minor].sync;
    return codes != NULL;
}

/* Below 3.12 the thread that holds the GIL is known, and not which of them this is, unless it is that one. A thread
 * that has let go of the GIL still has its frames. */
static const py_tstate *this_thread(enum memory_order_kind order)
{
    bool holds_gil = order != MEMORY_ANY_THREAD || memory_me.holds_gil;
    const py_tstate *t = holds_gil || py.minor >= 12 ? py.current_thread() : NULL;
    if (t)
        return t;
    t = py.PyGILState_GetThisThreadState();
    if (py.minor < 12 && unlikely(memory_gil_may_run_other(t)))
        return NULL;
    if (!t || !memory_end_may_look(&memory_me))
        return NULL;
    return unlikely(may_be_freed(t)) ? NULL : t;
}

bool memory_sync_stack(struct memory_thread *me, enum memory_order_kind order)
{
    uint64_t now = atomic_load_explicit(&deaths, memory_order_relaxed);
    if (unlikely(me->deaths != now))
        doubt_frames(me, now);
    bool good = sync_this(me, this_thread(order));
    memory_end_looked(me);
    return good;
}
