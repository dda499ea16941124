/* Lines by the C trace function of each thread: CPython 3.8 to 3.11. It is set and covered together with
 * the profile function (profile.c).
 *
 * It is told of functions, too. So unless C functions are wanted, which only the profile function
 * hears of, it is the one hook there is: two would cost twice. */
#include "agent/hooks.h"
#include "agent/lines.h"
#include "agent/select.h"

bool trace_tells_functions(void)
{
    return lines_are_wanted() && !(guest.instruments & RING_C_CALLS);
}

static inline void on_line(py_frame *frame)
{
    guest_emit(RING_LINE, py_u32(frame, py.frame_lineno) & RING_MAX_VALUE);
}

/* Everybody's lines, and functions: the usual case. */
static int on_all(py_object *self, py_frame *frame, int what, py_object *arg)
{
    (void)self;
    if (likely(what == PY_WHAT_LINE))
        on_line(frame);
    else if (what == PY_WHAT_CALL)
        profile_on_call(frame);
    else if (what == PY_WHAT_RETURN)
        profile_on_return(frame, arg, __builtin_frame_address(0));
    return 0;
}

/* Lines of the selected, and functions if nobody else tells of them. */
static int on_some(py_object *self, py_frame *frame, int what, py_object *arg)
{
    (void)self;
    if (what == PY_WHAT_LINE) {
        if (!(codes_mark(pyver_frame_code(frame)) & (RING_CODE_LEFT_OUT | CODE_NO_LINES)))
            on_line(frame);
    } else if (trace_tells_functions()) {
        if (what == PY_WHAT_CALL)
            profile_on_call(frame);
        else if (what == PY_WHAT_RETURN)
            profile_on_return(frame, arg, __builtin_frame_address(0));
    }
    return 0;
}

void trace_cover(py_tstate *t)
{
    if (!pyver_has_trace(t))
        pyver_set_trace(t, trace_tells_functions() && select_is_everything() ? on_all : on_some);
}

void trace_take_out(py_tstate *t)
{
    py_tracefunc func = pyver_trace(t);
    if (func == on_all || func == on_some)
        pyver_set_trace(t, NULL);
}
