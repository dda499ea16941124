/* Function events by sys.monitoring (PEP 669).
 *
 * Each callback is an object of our own type whose vectorcall slot is one of the functions below:
 * quicker than a builtin function by a few ns, and this is a matter of ns. Callbacks get borrowed
 * arguments, and give back None, which is immortal here and needs no counting. */
#include "agent/codes.h"
#include "agent/hooks.h"
#include "agent/lines.h"
#include "agent/notes.h"
#include "agent/select.h"

static py_object *monitoring;              /* the module, kept */
static py_object *tool_number, *tool_name; /* kept */
static bool installed;                     /* and nobody else has taken us out */
static py_object *never;                   /* sys.monitoring.DISABLE, kept */
static bool filtering; /* some code is left out, and so are the C functions it calls */

enum { FIRST_ARG = 0, OFFSET_ARG = 1, CALLABLE_ARG = 2, VALUE_ARG = 2 };

/* --- the callbacks --- */

/* From 3.13 on C code fires events of its own, and what it gives for a code object can be anything (PEP 669: "code-like").
 * Only real ones have a slot and a name. */
static inline code_mark mark_of(py_object *const *args)
{
    if (unlikely(py_type(args[FIRST_ARG]) != py.code_type))
        return RING_CODE_LEFT_OUT;
    return codes_mark(args[FIRST_ARG]);
}

static py_object *on_start(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    code_mark mark = mark_of(args);
    if (unlikely(mark & (RING_CODE_LEFT_OUT | CODE_LONG | CODE_NOTED | RING_CODE_COROUTINE))) {
        if (mark & RING_CODE_LEFT_OUT)
            return monitoring_never();
        if (mark & CODE_LONG)
            lines_begins();
        if (mark & RING_CODE_COROUTINE && notes_are_wanted())
            notes_coroutine(args[FIRST_ARG], pyver_caller_code());
        if (mark & CODE_NOTED)
            notes_arguments(args[FIRST_ARG], pyver_inner_locals(pyver_running()));
    }
    codes_emit(RING_ENTER, mark, pyver_running());
    return py.none;
}

static py_object *on_return(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    code_mark mark = mark_of(args);
    if (unlikely(mark & (RING_CODE_LEFT_OUT | CODE_NOTED))) {
        if (mark & RING_CODE_LEFT_OUT)
            return monitoring_never();
        notes_result(args[VALUE_ARG]);
    }
    codes_emit(RING_LEAVE, mark, pyver_running());
    return py.none;
}

static py_object *on_unwind(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    code_mark mark = mark_of(args);
    if (mark & RING_CODE_LEFT_OUT) /* comes for everybody: it cannot be asked for one by one */
        return py.none;
    if (notes_are_wanted())
        notes_exception(py_type(args[VALUE_ARG]));
    codes_emit(RING_UNWIND, mark, pyver_running());
    return py.none;
}

static py_object *on_yield(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    code_mark mark = mark_of(args);
    if (unlikely(mark & (RING_CODE_LEFT_OUT | CODE_NOTED))) {
        if (mark & RING_CODE_LEFT_OUT)
            return monitoring_never();
        notes_yield(args[FIRST_ARG], args[VALUE_ARG]);
    }
    codes_emit(RING_SUSPEND, mark, pyver_running());
    return py.none;
}

static py_object *on_resume(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    code_mark mark = mark_of(args);
    if (mark & RING_CODE_LEFT_OUT)
        return monitoring_never();
    if (mark & CODE_LONG)
        lines_goes_on(args[FIRST_ARG], args[OFFSET_ARG]);
    codes_emit(RING_RESUME, mark, pyver_running());
    return py.none;
}

/* throw(), which like an unwinding comes for everybody. Into one that has not started it is the only call there will be. */
static py_object *on_throw(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    if (mark_of(args) & RING_CODE_LEFT_OUT)
        return py.none;
    if (pyver_is_before_start(args[FIRST_ARG], args[OFFSET_ARG]))
        return on_start(self, args, n, names);
    return on_resume(self, args, n, names);
}

static inline bool caller_is_left_out(py_object *const *args)
{
    return unlikely(filtering) && mark_of(args) & RING_CODE_LEFT_OUT;
}

/* CALL comes for every callable. Python functions tell of themselves. Types and other objects are not
 * told, as in cProfile, but their end is counted: it comes for them too, and what both events cost
 * must not be taken for the caller's own time. */
static inline py_object *on_c(enum ring_kind kind, py_object *const *args)
{
    py_object *callable = args[CALLABLE_ARG];
    void *definition = py_c_function(callable);
    if (caller_is_left_out(args))
        return py.none;
    code_mark mark = definition ? codes_mark_c(callable, definition) : 0;
    if (likely(definition && !(mark & RING_CODE_LEFT_OUT)))
        guest_emit(kind, codes_number(mark));
    else if (kind != RING_C_ENTER)
        guest_emit(RING_ASIDE, 0);
    return py.none;
}

static py_object *on_call(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    if (caller_is_left_out(args))
        return monitoring_never();
    return on_c(RING_C_ENTER, args);
}

static py_object *on_c_return(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    return on_c(RING_C_LEAVE, args);
}

static py_object *on_c_raise(py_object *self, py_object *const *args, size_t n, py_object *names)
{
    (void)self, (void)n, (void)names;
    return on_c(RING_C_RAISE, args);
}

enum { FUNCTIONS = RING_CALLS | RING_LINES };

/* How an event is asked for. */
enum reach {
    GLOBAL,    /* of all code */
    SELECTED,  /* so too, but of the selected functions only if nothing else wants it: lines.h */
    LOCAL,     /* code by code */
    WITH_CALL, /* comes with CALL */
};

static const struct event {
    const char *name;
    uint32_t instrument; /* any of these wants it */
    enum reach reach;
    const py_vectorcall *call;
} EVENTS[] = {
    {"PY_START", FUNCTIONS, GLOBAL, &(const py_vectorcall){on_start}},
    {"PY_RETURN", FUNCTIONS, SELECTED, &(const py_vectorcall){on_return}},
    {"PY_RESUME", FUNCTIONS, SELECTED, &(const py_vectorcall){on_resume}},
    {"PY_YIELD", FUNCTIONS, SELECTED, &(const py_vectorcall){on_yield}},
    {"PY_THROW", FUNCTIONS, GLOBAL, &(const py_vectorcall){on_throw}},
    {"PY_UNWIND", FUNCTIONS, GLOBAL, &(const py_vectorcall){on_unwind}},
    {"CALL", RING_C_CALLS, GLOBAL, &(const py_vectorcall){on_call}},
    {"C_RETURN", RING_C_CALLS, WITH_CALL, &(const py_vectorcall){on_c_return}},
    {"C_RAISE", RING_C_CALLS, WITH_CALL, &(const py_vectorcall){on_c_raise}},
    {"LINE", RING_LINES, LOCAL, &lines_on_line},
    {"JUMP", RING_LINES, LOCAL, &lines_on_jump},
    {"INSTRUCTION", RING_LINES, LOCAL, &lines_on_instruction},
};
enum { EVENT_COUNT = sizeof EVENTS / sizeof *EVENTS };

/* --- installing --- */

/* Calls monitoring.NAME(a, b, c); NULL arguments end the list. True if it worked. */
static bool ask(const char *name, py_object *a, py_object *b, py_object *c, py_object **ret)
{
    py_object *method = py.PyObject_GetAttrString(monitoring, name);
    py_object *result =
        method ? py.PyObject_CallFunctionObjArgs(method, a, b, c, (py_object *)NULL) : NULL;
    if (method)
        py.Py_DecRef(method);
    if (!result)
        py.PyErr_Clear();
    else if (ret)
        *ret = result;
    else
        py.Py_DecRef(result);
    return result != NULL;
}

/* The number of an event, which is not the same in all versions; 0 if there is none. */
static long event_number(const char *name)
{
    py_object *events = py.PyObject_GetAttrString(monitoring, "events");
    py_object *number = events ? py.PyObject_GetAttrString(events, name) : NULL;
    long n = number ? py.PyLong_AsLong(number) : 0;
    if (events)
        py.Py_DecRef(events);
    if (number)
        py.Py_DecRef(number);
    else
        py.PyErr_Clear();
    return n;
}

/* Takes a tool number that nobody uses. The last first: 0 to 2 are meant for debuggers, coverage and
 * profilers, and others take 3 and 4. */
static bool take_tool(void)
{
    static const char order[] = {5, 4, 3, 2, 1, 0};
    tool_name = py.PyUnicode_FromString("pyrometer");
    bool found = false;
    for (size_t i = 0; tool_name && i < sizeof order && !found; i++) {
        py_object *number = py.PyLong_FromLong(order[i]), *user = NULL;
        if (ask("get_tool", number, NULL, NULL, &user)) {
            found = user == py.none && ask("use_tool_id", number, tool_name, NULL, NULL);
            py.Py_DecRef(user);
        }
        if (found)
            tool_number = number;
        else
            py.Py_DecRef(number);
    }
    return found;
}

static bool set_events(long mask)
{
    py_object *number = py.PyLong_FromLong(mask);
    bool good = ask("set_events", tool_number, number, NULL, NULL);
    py.Py_DecRef(number);
    return good;
}

/* The number may be another's by now, whose events are its own. */
static void take_out(void)
{
    py_object *user = NULL;
    if (!ask("get_tool", tool_number, NULL, NULL, &user))
        return;
    if (user == tool_name) {
        set_events(0);
        ask("free_tool_id", tool_number, NULL, NULL, NULL);
    }
    py.Py_DecRef(user);
}

/* The program has given our number free, or to somebody else: told once. */
static bool tell_taken_out(void)
{
    if (!installed || !guest.on || pyver_ends())
        return false;
    installed = false;
    atomic_fetch_add(&guest.session->unhooked, 1);
    return true;
}

/* The interpreter lets a callback go: as a rule no event comes any more, and then nobody knows what runs. */
static void on_callback_gone(void)
{
    if (tell_taken_out()) {
        guest_emit_pause(RING_PAUSE_OTHER);
        guest_resync();
    }
}

bool monitoring_set_local(py_object *code, long mask)
{
    py_object *number = py.PyLong_FromLong(mask);
    bool good = ask("set_local_events", tool_number, code, number, NULL);
    py.Py_DecRef(number);
    if (!good) /* up to 3.13 events go on for a number that is free, but no more can be asked for */
        tell_taken_out();
    return good;
}

long monitoring_event(const char *name)
{
    return event_number(name);
}

py_object *monitoring_never(void)
{
    py.Py_IncRef(never);
    return never;
}

static bool is_global(const struct event *e)
{
    return e->reach == GLOBAL ||
           (e->reach == SELECTED && (!lines_are_alone() || select_is_everything()));
}

bool monitoring_install(void)
{
    filtering = select_has_filters();
    monitoring = py.PySys_GetObject("monitoring"); /* borrowed from sys, which outlives us */
    if (!monitoring || !take_tool())
        return false;
    never = py.PyObject_GetAttrString(monitoring, "DISABLE");
    if (!never || (lines_are_wanted() && !lines_monitoring_init()))
        return false;
    long mask = 0;
    for (size_t i = 0; i < EVENT_COUNT; i++) {
        if (!(EVENTS[i].instrument & guest.instruments))
            continue;
        long number = event_number(EVENTS[i].name);
        py_object *event = py.PyLong_FromLong(number),
                  *call = pyver_callback(*EVENTS[i].call, on_callback_gone);
        if (number && call && ask("register_callback", tool_number, event, call, NULL) &&
            is_global(&EVENTS[i]))
            mask |= number;
        if (call)
            py.Py_DecRef(call);
        py.Py_DecRef(event);
    }
    guest_take_out = take_out;
    installed = set_events(mask);
    return installed;
}
