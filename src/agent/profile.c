/* Function events by the C profile function of each thread: CPython 3.8 to 3.11.
 *
 * It is set per thread, so threads have to be covered as they come: those of Python's own when their
 * state has been made and their system thread is about to be (interpose.c), those of C code when
 * their state has been made and they are about to take the GIL, and whatever is left now and then. A program that sets a
 * profile function of its own takes ours away; when it removes it again, ours comes back. */
#include "agent/codes.h"
#include "agent/deep.h"
#include "agent/hooks.h"
#include "agent/lines.h"
#include "agent/notes.h"
#include "agent/pyver_raised.h"
#include "agent/select.h"

static bool filtering; /* some code is left out, and so are the C functions it calls */

void profile_on_return(py_frame *frame, const py_object *value, void **hook)
{
    code_mark mark = codes_mark(pyver_frame_code(frame));
    if (unlikely(mark & RING_CODE_LEFT_OUT))
        return;
    enum ring_kind kind = value ? RING_LEAVE : RING_UNWIND;
    if (unlikely(mark & RING_CODE_GENERATOR) && value && pyver_frame_yields(frame))
        kind = RING_SUSPEND;
    if (unlikely(mark & CODE_NOTED) && kind == RING_SUSPEND)
        notes_yield(pyver_frame_code(frame), value);
    else if (unlikely(mark & CODE_NOTED) && value)
        notes_result(value);
    const py_object *raised =
        unlikely(kind == RING_UNWIND) && notes_are_wanted() ? pyver_raised(hook) : NULL;
    if (raised)
        notes_exception(raised);
    codes_emit(kind, mark, (uint64_t)(uintptr_t)frame);
}

static void note_begin(py_frame *frame, code_mark mark)
{
    py_object *code = pyver_frame_code(frame);
    if (mark & RING_CODE_COROUTINE && notes_are_wanted()) {
        py_frame *back = pyver_frame_back(frame);
        notes_coroutine(code, back ? pyver_frame_code(back) : NULL);
    }
    if (mark & CODE_NOTED)
        notes_arguments(code, pyver_frame_locals(frame));
}

void profile_on_call(py_frame *frame)
{
    if (unlikely((const char *)__builtin_frame_address(0) < guest_me.deep) && deep_pause())
        return;
    py_object *code = pyver_frame_code(frame);
    code_mark mark = codes_mark(code);
    if (unlikely(mark & RING_CODE_LEFT_OUT))
        return;
    if (codes_counting)
        codes_count_on(code);
    bool resumes = unlikely(mark & RING_CODE_GENERATOR) && pyver_frame_started(frame);
    if (unlikely(mark & (RING_CODE_COROUTINE | CODE_NOTED)) && !resumes)
        note_begin(frame, mark);
    codes_emit(resumes ? RING_RESUME : RING_ENTER, mark, (uint64_t)(uintptr_t)frame);
}

static inline void on_c(enum ring_kind kind, py_frame *caller, py_object *callable)
{
    void *definition = py_c_function(callable);
    if (unlikely(!definition) ||
        (unlikely(filtering) && codes_mark(pyver_frame_code(caller)) & RING_CODE_LEFT_OUT))
        return;
    code_mark mark = codes_mark_c(callable, definition);
    if (likely(!(mark & RING_CODE_LEFT_OUT)))
        guest_emit(kind, codes_number(mark));
}

static int on_event(py_object *self, py_frame *frame, int what, py_object *arg)
{
    (void)self;
    switch (what) {
    case PY_WHAT_CALL:
        profile_on_call(frame);
        break;
    case PY_WHAT_RETURN:
        profile_on_return(frame, arg, __builtin_frame_address(0));
        break;
    case PY_WHAT_C_CALL:
        on_c(RING_C_ENTER, frame, arg);
        break;
    case PY_WHAT_C_RETURN:
        on_c(RING_C_LEAVE, frame, arg);
        break;
    case PY_WHAT_C_EXCEPTION:
        on_c(RING_C_RAISE, frame, arg);
        break;
    default:
        break;
    }
    return 0;
}

/* The same without C functions: a hook of its own, so that the choice costs nothing. */
static int on_python_event(py_object *self, py_frame *frame, int what, py_object *arg)
{
    (void)self;
    if (what == PY_WHAT_CALL)
        profile_on_call(frame);
    else if (what == PY_WHAT_RETURN)
        profile_on_return(frame, arg, __builtin_frame_address(0));
    return 0;
}

/* NULL: the trace function tells all that is wanted. */
static py_tracefunc hook(void)
{
    if (trace_tells_functions())
        return NULL;
    return guest.instruments & RING_C_CALLS ? on_event : on_python_event;
}

/* While we set it, the audit hook hears of it too. */
static bool setting;

static void cover(py_tstate *t)
{
    if (!pyver_is_made(t) || deep_is_paused(t)) /* it is met when it is made: profile_meet() */
        return;
    bool was = setting;
    setting = true;
    if (hook() && !pyver_has_profile(t))
        pyver_set_profile(t, hook());
    if (lines_are_wanted())
        trace_cover(t);
    setting = was;
}

/* The first event of a thread that we could not cover while it had no GIL: now it has. */
static int on_first(py_object *self, py_frame *frame, int what, py_object *arg)
{
    py_tstate *t = py.PyThreadState_Get();
    bool was = setting, is_traced = pyver_has_trace(t);
    setting = true;
    pyver_set_profile(t, NULL);
    setting = was;
    if (!guest.on)
        return 0;
    cover(t);
    /* somebody has covered it meanwhile: the trace function has heard of this before us */
    if (is_traced && !hook())
        return 0;
    py_tracefunc now = hook() ? hook() : pyver_trace(t);
    return now ? now(self, frame, what, arg) : 0;
}

void profile_meet(py_tstate *t)
{
    /* else it is an old one: a forked child keeps it anew */
    if (guest.on && !pyver_has_profile(t) && !pyver_has_trace(t))
        pyver_set_first_profile(t, on_first);
}

static bool is_ours(void *func)
{
    return func == (void *)on_event || func == (void *)on_python_event || func == (void *)on_first;
}

static void uncover(py_tstate *t)
{
    bool was = setting;
    setting = true;
    if (is_ours(py_pointer(t, py.tstate_profilefunc)))
        pyver_set_profile(t, NULL);
    trace_take_out(t);
    setting = was;
}

static void set_on(py_tstate *t, bool on)
{
    if (on)
        cover(t);
    else
        uncover(t);
}

void profile_cover_threads(void)
{
    if (!guest.on || py.has_monitoring || !py.PyInterpreterState_ThreadHead)
        return;
    py_tstate *t = py.PyInterpreterState_ThreadHead(py.PyInterpreterState_Main());
    for (; t; t = py.PyThreadState_Next(t))
        cover(t);
}

static int cover_later(void *unused)
{
    (void)unused;
    profile_cover_threads();
    return 0;
}

void profile_others(void)
{
    if (setting || !guest.on)
        return;
    guest_emit_pause(RING_PAUSE_OTHER);
    guest_resync();
    py.Py_AddPendingCall(cover_later, NULL); /* if it was removed, we are back at once */
}

static void take_out(void)
{
    py_tstate *t = py.PyInterpreterState_ThreadHead(py.PyInterpreterState_Main());
    for (; t; t = py.PyThreadState_Next(t))
        uncover(t);
}

bool profile_install(void)
{
    filtering = select_has_filters();
    guest_chore = profile_cover_threads;
    deep_init(set_on);
    guest_take_out = take_out;
    profile_cover_threads();
    return true;
}
