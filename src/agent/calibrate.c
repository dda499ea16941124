#include "agent/calibrate.h"

#include "agent/guest.h"
#include "agent/notes.h"
#include "agent/pace.h"
#include "agent/pyver_raised.h"
#include "agent/slowdown.h"

#include <stddef.h>
#include <stdlib.h>

enum {
    CALLS = 200, /* in one round; as many as the program below says */
    ROUNDS = 17,
    LOOP_ROUNDS = 9,             /* of each of many loops: what one is off, others make good */
    WORDS = 12 * CALLS * ROUNDS, /* in the ring, of all rounds of all loops */
    PAGE_WORDS = GUEST_PAGE / 8,
    FILE_INPUT = 257,
};

/* The function has a body, as those of programs have: with nothing to do besides, the processor would hide a part of what the
 * events cost. Its numbers have to be allocated, as most are. */
#define BODY(indent)                                                                               \
    indent "c = a + b\n" indent "if c > 10000: c -= a\n" indent "c = c * b % 1009\n"
/* What runs there, by kind as slowdown.h counts, and in the loops that call: the body is no part of it. */
static const uint8_t body_counts[RING_SLOWED_KINDS] = {8, 3, 0, 2, 1, 1};
static const uint8_t python_counts[RING_SLOWED_KINDS] = {2, 1, 1, [RING_SLOWED_CALL] = 1};
static const uint8_t c_counts[RING_SLOWED_KINDS] = {3, 1, 1, [RING_SLOWED_CALL] = 1};

static const char PROGRAM[] = "def small(a=3000, b=4000):\n" BODY("    ") /**/
    "def python(numbers, f):\n"
    "    for _ in numbers: f()\n"
    "def inline(numbers, f, a=3000, b=4000):\n"
    "    for _ in numbers:\n" BODY("        ") /**/
    "def loop(numbers, f):\n"
    "    for _ in numbers: pass\n"
    "def c(numbers, f):\n"
    "    for _ in numbers: f(numbers)\n"
    "def each(numbers, f):\n"
    "    for i in numbers: f(i)\n"
    "def part(n, f=len, kind=range):\n"
    "    c = f(numbers) + n\n"
    "    for a in kind(1): c += a\n"
    "    return c\n"
    "numbers = range(1 << 20, (1 << 20) + 200)\n"
    "some = range(57, 257)\n" /* which exist already, as most of what programs loop over */
    "f = len\n"
    "kind = range\n" /**/ PYVER_RAISED_PROGRAM;
/* The thing is of a class that was written in Python and is there: a new one would be among object.__subclasses__() for a while. */
static const char SLOWED_PROGRAM[] =
    "thing = type(__import__('sys').__spec__)('thing', None, origin=3)\n" SLOWDOWN_PROGRAM;
/* The functions hold the names, which hold them. */
static const char LAST_PROGRAM[] = "globals().clear()\n";

/* Of a bare call, what is taken to be the called one's part of the calling. */
#define CALLED_PART (1.0 / 3)

/* What one call takes, by the reference work's measure (pace.h): the rounds' middle, and half of what the middle half of them
 * spread over. */
struct measured {
    double call, error;
    double pace;  /* the mean meanwhile */
    double ticks; /* of all calls together */
};

static py_object *names; /* the program's globals; NULL: it could not be run */
static struct measured bare_python, bare_c, bare_aside, bare_mixed;
static double bare_slowed[SLOWDOWN_COUNT];
static double python_body; /* what a call of Python does between its stamps, bare */
static struct ring_calibration result;
static bool has_result;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Each round is set against the reference work right before and after it: the machine may change its speed between any two. */
static struct measured measure_with(const char *loop, const char *function, const char *range,
                                    int count)
{
    py_object *call = py.PyDict_GetItemString(names, loop);
    py_object *f = py.PyDict_GetItemString(names, function);
    py_object *numbers = py.PyDict_GetItemString(names, range);
    struct measured m = {0};
    double rounds[ROUNDS] = {0};
    uint64_t before = pace_measure();
    for (int i = 0; call && f && numbers && i < count; i++) {
        uint64_t begin = guest_now();
        py_object *none = py.PyObject_CallFunctionObjArgs(call, numbers, f, (py_object *)NULL);
        uint64_t ticks = guest_now() - begin;
        uint64_t after = pace_measure();
        double pace = (double)(before + after + 1) / 2;
        before = after;
        rounds[i] = (double)ticks / CALLS / pace;
        m.pace += pace / count;
        m.ticks += (double)ticks;
        if (none)
            py.Py_DecRef(none);
        else
            py.PyErr_Clear();
    }
    qsort(rounds, (size_t)count, sizeof *rounds, compare);
    m.call = rounds[count / 2];
    m.error = (rounds[count * 3 / 4] - rounds[count / 4]) / 2;
    return m;
}

static struct measured measure(const char *loop, const char *function)
{
    return measure_with(loop, function, "numbers", ROUNDS);
}

static double measure_loop(size_t which)
{
    return measure_with(slowdown_functions[which], "small", "some", LOOP_ROUNDS).call;
}

/* Is each instruction of the program going to take longer? */
static bool is_slowed(void)
{
    return py.slows_instructions && ring_asks_instructions(guest.instruments);
}

/* Has its functions among the names; false if that cannot be. */
static bool run_text(const char *text)
{
    py_object *code = py.Py_CompileString(text, CALIBRATE_FILE, FILE_INPUT);
    py_object *none = code ? py.PyEval_EvalCode(code, names, names) : NULL;
    if (code)
        py.Py_DecRef(code);
    if (none)
        py.Py_DecRef(none);
    else
        py.PyErr_Clear();
    return none != NULL;
}

static bool run_program(void)
{
    names = py.PyDict_New();
    if (names && py.PyDict_SetItemString(names, "__builtins__", py.PyEval_GetBuiltins()) == 0 &&
        run_text(PROGRAM) && (!is_slowed() || run_text(SLOWED_PROGRAM)))
        return true;
    py.PyErr_Clear();
    if (names)
        py.Py_DecRef(names);
    names = NULL;
    return false;
}

void calibrate_bare(void)
{
    if (!run_program())
        return;
    measure("python",
            "small"); /* the interpreter adapts its code first, as the program's will be */
    bare_python = measure("python", "small");
    double bare_inline = measure("inline", "small").call;
    double bare_loop = measure("loop", "small").call;
    python_body = bare_inline - bare_loop;
    if (bare_inline < bare_python.call)
        python_body += (bare_python.call - bare_inline) * CALLED_PART;
    for (size_t i = 0; i < SLOWDOWN_COUNT && is_slowed(); i++)
        bare_slowed[i] = measure_loop(i);
    bare_c = measure("c", "f");
    bare_aside = measure("each", "kind");
    bare_mixed = measure("each", "part");
}

/* Ticks from enter to leave, summed up over what was written since `from`. */
static double sum_inside(uint64_t from, enum ring_kind enter, enum ring_kind leave)
{
    const struct guest_thread *me = &guest_me;
    uint64_t sum = 0;
    for (uint64_t at = from; at + 1 < me->head; at++) {
        uint64_t a = me->words[at & (RING_WORDS - 1)], b = me->words[(at + 1) & (RING_WORDS - 1)];
        if ((a & 15) == enter && (b & 15) == leave)
            sum += b >> 32;
    }
    return (double)sum;
}

/* Ticks at the pace that the result names. */
static uint32_t scaled(double call)
{
    double ticks = call * result.pace;
    return ticks <= 0 ? 0 : (uint32_t)ticks;
}

static int32_t scaled_lost(double lost)
{
    return lost < 0 ? -(int32_t)scaled(-lost) : (int32_t)scaled(lost);
}

static struct slowdown measure_slowdown(void)
{
    struct slowdown s = {0};
    double slowed[SLOWDOWN_COUNT];
    if (!is_slowed())
        return s;
    for (size_t i = 0; i < SLOWDOWN_COUNT; i++)
        slowed[i] = measure_loop(i);
    s = slowdown_fit(bare_slowed, slowed);
    /* that of a type tells of nothing, and yet takes longer */
    double each = measure("each", "kind").call;
    double call = each - bare_aside.call - slowdown_of(&s, c_counts);
    if (call > 0)
        s.slower[RING_SLOWED_CALL] = call < each / 2 ? call : each / 2;
    for (size_t i = 0; i < RING_SLOWED_KINDS; i++)
        result.slowed[i] = (struct ring_slowed){scaled(s.takes[i]), scaled_lost(s.slower[i])};
    return s;
}

/* Splits the cost of a call's events. `body` is what lies between their stamps when there are none, `slowed` what the call takes longer for
 * another reason. */
static void split(struct measured bare, double body, struct measured hooked, double slowed,
                  double inside, uint32_t *ret_inside, uint32_t *ret_outside)
{
    double cost = hooked.call - bare.call - slowed;
    if (cost < 0)
        cost = 0;
    if (!(hooked.ticks > 0)) /* it could not be measured */
        return;
    double in = hooked.call * inside / hooked.ticks - body;
    if (in < 0)
        in = 0;
    if (in > cost)
        in = cost;
    *ret_inside = scaled(in);
    *ret_outside = scaled(cost - in);
}

/* Where each event has a callback of its own, a processor foresees the next one in a loop with one kind of them, and less so where
 * kinds take turns: they cost `times` as much there. Programs are in between, and nearer to the loop. */
static void stretch(double times)
{
    const double most = 1.5; /* what is more was the machine */
    if (!py.has_monitoring || !(guest.instruments & RING_C_CALLS) || !(times > 1))
        return;
    double factor = (3 + (times < most ? times : most)) / 4;
    uint32_t *costs[] = {&result.python_inside, &result.python_outside, &result.c_inside,
                         &result.c_outside, &result.aside};
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        *costs[i] = (uint32_t)(*costs[i] * factor);
}

/* The first word on a page of a new ring has to wait for the kernel to make that page. To the program this happens once for each of
 * them; here it would be a tenth of what is measured. In the first turn of the ring nobody reads what lies ahead of the head. */
static void touch_ring(void)
{
    const struct guest_thread *me = &guest_me;
    uint64_t end = me->head + WORDS < RING_WORDS ? me->head + WORDS : RING_WORDS;
    for (uint64_t at = me->head + PAGE_WORDS; me->ring && at < end; at += PAGE_WORDS)
        me->words[at] = 0;
}

void calibrate_hooked(void)
{
    if (!names)
        return;
    guest_emit_pause(RING_PAUSE_CALIBRATION);
    touch_ring();
    measure("python", "small");
    uint64_t from = guest_me.head;
    struct measured python = measure("python", "small");
    result.pace = (uint32_t)(python.pace * RING_CALIBRATION_SCALE);
    double inside = sum_inside(from, RING_ENTER, RING_LEAVE);
    /* what instructions lose is taken out by instruction, not by call */
    struct slowdown slowed = measure_slowdown();
    double body = slowdown_of(&slowed, body_counts);
    split(bare_python, python_body + body, python, slowdown_of(&slowed, python_counts) + body,
          inside, &result.python_inside, &result.python_outside);
    result.error = scaled(python.error + bare_python.error);
    from = guest_me.head;
    struct measured c = measure("c", "f");
    split(bare_c, bare_c.call * CALLED_PART, c, slowdown_of(&slowed, c_counts),
          sum_inside(from, RING_C_ENTER, RING_C_LEAVE), &result.c_inside, &result.c_outside);
    double aside = measure("each", "kind").call - bare_aside.call;
    result.aside = scaled(aside);
    double cost = python.call - bare_python.call + c.call - bare_c.call + aside;
    stretch((measure("each", "part").call - bare_mixed.call) / cost);
    if (notes_are_wanted() && !py.has_monitoring)
        pyver_raised_learn(names);
    run_text(LAST_PROGRAM);
    guest_emit_ext(RING_EXT_GO, NULL, 0);
    has_result = guest_me.ring != NULL;
    py.Py_DecRef(names);
    names = NULL;
    calibrate_tell();
}

void calibrate_tell(void)
{
    const struct guest_piece piece = {&result, sizeof result};
    if (has_result)
        guest_emit_ext(RING_EXT_CALIBRATION, &piece, 1);
}
