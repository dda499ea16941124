/* Lines by sys.monitoring: LINE events asked for code object by code object at first sight, so that
 * code outside of a selection runs as if nobody were there.
 *
 * Two things are not as simple as that.
 *
 * Backward jumps: sys.settrace has a line event for each, even within one line (an inlined
 * comprehension, a loop on one line); LINE events have not. So JUMP is asked for too: jumps that go
 * forward or to another line say DISABLE the first time and are free from then on, the others are
 * hits.
 *
 * Long functions: where the interpreter looks the line of every event up from the beginning of the
 * code's table (has_slow_lines), a LINE event of a function past some 130 lines costs 1.5 to 10 us.
 * There INSTRUCTION events are asked for, which cost a constant 50 ns each, and lines are found in
 * a table of our own, made once for the code object. An event is a hit if its line is another than
 * that of the instruction that ran before it in the same frame: that is the interpreter's rule, and
 * all it needs is each running frame's last line, kept in a small table of the thread's by the
 * frame's address. Where a frame has lost its place there, it has just come back from a call, and
 * the instruction before is the one that stands before. */
#include "agent/hooks.h"
#include "agent/lines.h"
#include "agent/memory.h"

#include <stdlib.h>

enum { NO_LINE = -1, NOWHERE = -2, UNIT = 2 /* bytes of an instruction */ };

struct table { /* behind our second slot of a code object */
    uint32_t count;
    int32_t line[]; /* of each instruction; NO_LINE: none */
};

static ptrdiff_t tables_index = -1;
static long line_event, jump_event, instruction_event, function_events;

/* --- the location table of a code object, 3.11 and later --- */

struct walk {
    const uint8_t *at, *end;
    int32_t line; /* of the entry, if it has one */
};

static uint32_t take_varint(struct walk *w)
{
    uint32_t value = 0;
    for (unsigned shift = 0; w->at < w->end && shift < 32; shift += 6) {
        uint8_t byte = *w->at++;
        value |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int32_t take_svarint(struct walk *w)
{
    uint32_t value = take_varint(w);
    return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* The next entry: its line, and how many instructions it is for; 0 at the end. */
static uint32_t next_entry(struct walk *w, int32_t *ret_line)
{
    enum { ONE_LINE_0 = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
    if (w->at >= w->end)
        return 0;
    uint8_t head = *w->at++;
    unsigned kind = head >> 3 & 15;
    if (kind == NO_COLUMNS || kind == LONG)
        w->line += take_svarint(w);
    else if (kind >= ONE_LINE_0 && kind < NO_COLUMNS)
        w->line += (int32_t)(kind - ONE_LINE_0);
    *ret_line = kind == NONE ? NO_LINE : w->line;
    while (w->at < w->end && !(*w->at & 128)) /* columns: only heads have the top bit */
        w->at++;
    return (head & 7u) + 1;
}

/* Calls `fn` for every entry, until it says false. */
static void walk_lines(const struct code_facts *f, bool (*fn)(void *, uint32_t, uint32_t, int32_t),
                       void *ctx)
{
    py_object *bytes = py.PyObject_GetAttrString(f->code, "co_linetable");
    if (!bytes) {
        py.PyErr_Clear();
        return;
    }
    size_t len;
    const uint8_t *data = pyver_bytes(bytes, &len);
    struct walk w = {data, data + len, (int32_t)f->first_line};
    uint32_t at = 0, count;
    int32_t line;
    while ((count = next_entry(&w, &line)) && fn(ctx, at, count, line))
        at += count;
    py.Py_DecRef(bytes);
}

/* --- tables --- */

static struct table *table_of(py_object *code)
{
    const struct code_extras *extras = py_pointer(code, py.code_extra);
    return extras && extras->size > tables_index ? extras->slot[tables_index] : NULL;
}

static bool count_entry(void *ctx, uint32_t at, uint32_t count, int32_t line)
{
    (void)line;
    *(uint32_t *)ctx = at + count;
    return true;
}

static bool fill_entry(void *ctx, uint32_t at, uint32_t count, int32_t line)
{
    struct table *t = ctx;
    for (uint32_t i = 0; i < count && at + i < t->count; i++)
        t->line[at + i] = line;
    return true;
}

/* Made once for a code object, and freed with it. */
static struct table *make_table(const struct code_facts *facts)
{
    uint32_t count = 0;
    walk_lines(facts, count_entry, &count);
    struct table *t = count ? malloc(sizeof *t + count * sizeof *t->line) : NULL;
    if (!t)
        return NULL;
    t->count = count;
    walk_lines(facts, fill_entry, t);
    if (py.set_extra(facts->code, tables_index, t) < 0) {
        py.PyErr_Clear();
        free(t);
        return NULL;
    }
    return t;
}

/* NULL: there is no memory for it. */
static struct table *need_table(py_object *code)
{
    struct table *t = table_of(code);
    if (likely(t))
        return t;
    memory_me.inside++; /* what is allocated here is not the program's */
    py_object *first = py.PyObject_GetAttrString(code, "co_firstlineno");
    if (first) {
        struct code_facts facts = {.code = code, .first_line = (uint32_t)py.PyLong_AsLong(first)};
        py.Py_DecRef(first);
        t = make_table(&facts);
    } else {
        py.PyErr_Clear();
    }
    memory_me.inside--;
    return t;
}

static inline int32_t line_at(const struct table *t, uint32_t index)
{
    return index < t->count ? t->line[index] : NO_LINE;
}

/* --- which code is long --- */

struct span {
    int32_t first;
    bool is_long;
};

/* The interpreter keeps for each instruction its line less what a steady pace of one line in eight
 * instructions would give, in a signed byte. */
static bool fits_entry(void *ctx, uint32_t at, uint32_t count, int32_t line)
{
    enum { FITS = 120 };
    struct span *s = ctx;
    int32_t off = line - s->first - (int32_t)((at + count) >> 3);
    s->is_long = line >= 0 && (off > FITS || off < -FITS);
    return !s->is_long;
}

uint32_t lines_arm(const struct code_facts *facts)
{
    long events = jump_event | (lines_are_alone() ? function_events : 0);
    struct span span = {(int32_t)facts->first_line, false};
    if (py.has_slow_lines)
        walk_lines(facts, fits_entry, &span);
    bool is_long = span.is_long && make_table(facts);
    monitoring_set_local(facts->code, events | (is_long ? instruction_event : line_event));
    return is_long ? CODE_LONG : 0;
}

/* --- where frames of long functions are --- */

enum { PLACES = 256 };
struct place {
    uint64_t frame;
    int32_t line;
};
static_assert(sizeof(struct place[PLACES]) <= GUEST_PAGE, "they fit the thread's page");

static inline struct place *place_of(uint64_t frame)
{
    static struct place spare[PLACES]; /* of threads that get no page; the GIL keeps them apart */
    struct guest_thread *me = &guest_me;
    if (unlikely(!me->page))
        me->page = guest_map(GUEST_PAGE, -1, 0);
    struct place *places = likely(me->page) ? me->page : spare;
    return &places[frame * 0x9e3779b97f4a7c15ull >> 56];
}

void lines_begins(void)
{
    uint64_t frame = pyver_running();
    *place_of(frame) = (struct place){frame, NOWHERE};
}

void lines_goes_on(py_object *code, const py_object *offset)
{
    const struct table *t = table_of(code);
    uint64_t frame = pyver_running();
    int32_t line = t ? line_at(t, pyver_small_int(offset) / UNIT) : NOWHERE;
    *place_of(frame) = (struct place){frame, line};
}

/* --- the callbacks --- */

static py_object *on_line(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    if (unlikely(!atomic_load_explicit(&guest.on, memory_order_relaxed)))
        return monitoring_never();
    guest_emit(RING_LINE, pyver_small_int(args[1]) & RING_MAX_VALUE);
    return py.none;
}

static py_object *on_jump(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    uint32_t from = pyver_small_int(args[1]) / UNIT, to = pyver_small_int(args[2]) / UNIT;
    if (to > from || !atomic_load_explicit(&guest.on, memory_order_relaxed))
        return monitoring_never();
    const struct table *t = need_table(args[0]);
    if (unlikely(!t))
        return py.none; /* perhaps the next time */
    int32_t line = line_at(t, to);
    if (line < 0 || line_at(t, from) != line)
        return monitoring_never();
    guest_emit(RING_LINE, (uint32_t)line & RING_MAX_VALUE);
    return py.none;
}

static py_object *on_instruction(py_object *self, py_object *const *args, size_t n,
                                 py_object *names)
{
    (void)self, (void)n, (void)names;
    const struct table *t = table_of(args[0]);
    if (unlikely(!t || !atomic_load_explicit(&guest.on, memory_order_relaxed)))
        return monitoring_never();
    uint32_t at = pyver_small_int(args[1]) / UNIT;
    uint64_t frame = pyver_running();
    struct place *place = place_of(frame);
    if (unlikely(place->frame != frame))
        *place = (struct place){frame, at ? line_at(t, at - 1) : NOWHERE};
    int32_t line = line_at(t, at);
    if (line >= 0 && line != place->line)
        guest_emit(RING_LINE, (uint32_t)line & RING_MAX_VALUE);
    place->line = line;
    return py.none;
}

const py_vectorcall lines_on_line = on_line, lines_on_jump = on_jump,
                    lines_on_instruction = on_instruction;

bool lines_monitoring_init(void)
{
    tables_index = py.request_extra(free);
    line_event = monitoring_event("LINE");
    jump_event = monitoring_event("JUMP");
    instruction_event = monitoring_event("INSTRUCTION");
    function_events = monitoring_event("PY_RETURN") | monitoring_event("PY_RESUME") |
                      monitoring_event("PY_YIELD");
    return tables_index >= 0 && line_event && jump_event;
}
