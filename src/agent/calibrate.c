#include "agent/calibrate.h"

#include "agent/guest.h"
#include "agent/pace.h"
#include "agent/pyver.h"

#include <stdlib.h>

enum {
    CALLS = 100, /* in one round; as many as the program below says */
    ROUNDS = 21,
    FILE_INPUT = 257,
};

static const char PROGRAM[] = "def empty():\n"
                              "    pass\n"
                              "def python(numbers, f):\n"
                              "    for _ in numbers: f()\n"
                              "def c(numbers, f):\n"
                              "    for _ in numbers: f(numbers)\n"
                              "def c_type(numbers, f):\n"
                              "    for i in numbers: f(i)\n"
                              "numbers = range(100)\n"
                              "f = len\n"
                              "kind = range\n";

/* Ticks for one call, of the rounds' middle, and half of what the middle half of them spread over; and
 * the pace meanwhile. */
struct measured {
    double call, error, pace;
};

static py_object *names; /* the program's globals; NULL: it could not be run */
static struct measured bare_python, bare_c, bare_aside;
static struct ring_calibration result;
static bool has_result;

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct measured measure(const char *loop, const char *function)
{
    py_object *call = py.PyDict_GetItemString(names, loop);
    py_object *f = py.PyDict_GetItemString(names, function);
    py_object *numbers = py.PyDict_GetItemString(names, "numbers");
    uint64_t ticks[ROUNDS] = {0}, pace[ROUNDS] = {0};
    for (int i = 0; call && f && numbers && i < ROUNDS; i++) {
        uint64_t begin = guest_now();
        py_object *none = py.PyObject_CallFunctionObjArgs(call, numbers, f, (py_object *)NULL);
        ticks[i] = guest_now() - begin;
        pace[i] = pace_measure();
        if (none)
            py.Py_DecRef(none);
        else
            py.PyErr_Clear();
    }
    qsort(ticks, ROUNDS, sizeof *ticks, compare);
    qsort(pace, ROUNDS, sizeof *pace, compare);
    enum { MIDDLE = ROUNDS / 2, LOW = ROUNDS / 4, HIGH = ROUNDS * 3 / 4 };
    return (struct measured){(double)ticks[MIDDLE] / CALLS,
                             (double)(ticks[HIGH] - ticks[LOW]) / (2.0 * CALLS),
                             pace[MIDDLE] ? (double)pace[MIDDLE] : 1};
}

static bool run_program(void)
{
    py_object *code = py.Py_CompileString(PROGRAM, "<pyrometer>", FILE_INPUT);
    names = py.PyDict_New();
    py_object *none = NULL;
    if (code && names &&
        py.PyDict_SetItemString(names, "__builtins__", py.PyEval_GetBuiltins()) == 0)
        none = py.PyEval_EvalCode(code, names, names);
    if (code)
        py.Py_DecRef(code);
    if (!none) {
        py.PyErr_Clear();
        if (names)
            py.Py_DecRef(names);
        names = NULL;
        return false;
    }
    py.Py_DecRef(none);
    return true;
}

void calibrate_bare(void)
{
    if (!run_program())
        return;
    measure("python",
            "empty"); /* the interpreter adapts its code first, as the program's will be */
    bare_python = measure("python", "empty");
    bare_c = measure("c", "f");
    bare_aside = measure("c_type", "kind");
}

/* Mean ticks from enter to leave over what was written since `from`. */
static double mean_inside(uint64_t from, enum ring_kind enter, enum ring_kind leave)
{
    const struct guest_thread *me = &guest_me;
    uint64_t sum = 0, n = 0;
    for (uint64_t at = from; at + 1 < me->head; at++) {
        uint64_t a = me->words[at & (RING_WORDS - 1)], b = me->words[(at + 1) & (RING_WORDS - 1)];
        if ((a & 15) == enter && (b & 15) == leave) {
            sum += b >> 32;
            n++;
        }
    }
    return n ? (double)sum / (double)n : 0;
}

static uint32_t scaled(double ticks)
{
    return ticks <= 0 ? 0 : (uint32_t)(ticks * RING_CALIBRATION_SCALE);
}

/* What was measured, as if at that pace. */
static struct measured at_pace(struct measured m, double pace)
{
    return (struct measured){m.call / m.pace * pace, m.error / m.pace * pace, pace};
}

/* Splits the cost of a call's events. Of the bare call a third is taken to lie between the stamps: the
 * function's own part of its calling. */
static void split(struct measured bare, struct measured hooked, double inside, uint32_t *ret_inside,
                  uint32_t *ret_outside)
{
    double cost = hooked.call - bare.call;
    double in = inside - bare.call / 3;
    if (in < 0)
        in = 0;
    if (in > cost)
        in = cost;
    *ret_inside = scaled(in);
    *ret_outside = scaled(cost - in);
}

void calibrate_hooked(void)
{
    if (!names)
        return;
    guest_emit_pause(RING_PAUSE_CALIBRATION);
    measure("python", "empty");
    uint64_t from = guest_me.head;
    struct measured python = measure("python", "empty");
    double pace = python.pace;
    split(at_pace(bare_python, pace), python, mean_inside(from, RING_ENTER, RING_LEAVE),
          &result.python_inside, &result.python_outside);
    result.error = scaled(python.error + at_pace(bare_python, pace).error);
    result.pace = scaled(pace);
    from = guest_me.head;
    struct measured c = measure("c", "f");
    double inside = mean_inside(from, RING_C_ENTER, RING_C_LEAVE) / c.pace * pace;
    split(at_pace(bare_c, pace), at_pace(c, pace), inside, &result.c_inside, &result.c_outside);
    struct measured aside = at_pace(measure("c_type", "kind"), pace);
    result.aside = scaled(aside.call - at_pace(bare_aside, pace).call);
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
