/* Function events by an evaluation function of our own (PEP 523): CPython 3.11, and only if C functions
 * are not wanted.
 *
 * There a profile function makes every instruction of the program slower, calls or not; this costs
 * nothing but the call. It covers all threads. What it takes is the inlining of Python calls: each
 * takes C stack again. So beyond an allowance the default function is put back, which inlines all
 * that is deeper; when the frame that did so returns, we are back as well, at the very place. That
 * is a pause of all threads, since the function is the interpreter's, and is told by the thread that
 * caused it. */
#include "agent/codes.h"
#include "agent/deep.h"
#include "agent/hooks.h"
#include "agent/notes.h"

#include <dlfcn.h>

typedef py_object *(*eval_function)(py_tstate *tstate, py_inner *frame, int throwing);

/* Bytes of C stack, of the 8 MiB that threads have as a rule; of a smaller one half. What is deeper takes none. */
enum { ALLOWANCE = 4 << 20, PART = 2 };

static eval_function evaluate_default;
static void (*set_function)(void *interpreter, eval_function function);
static void *interpreter;
static __thread const char *deep_end __attribute__((tls_model("initial-exec")));

static py_object *evaluate(py_tstate *tstate, py_inner *frame, int throwing);

static py_object *evaluate_deep(py_tstate *tstate, py_inner *frame, int throwing)
{
    guest_emit_pause(RING_PAUSE_DEEP);
    set_function(interpreter, evaluate_default);
    py_object *result = evaluate_default(tstate, frame, throwing);
    if (guest.on) {
        set_function(interpreter, evaluate);
        guest_resync();
    }
    return result;
}

static void note_begin(py_inner *frame, code_mark mark)
{
    py_object *code = py_pointer(frame, py.inner_code);
    if (mark & RING_CODE_COROUTINE && notes_are_wanted()) {
        py_frame *caller = py.PyEval_GetFrame(); /* this one does not run yet */
        notes_coroutine(code, caller ? pyver_frame_code(caller) : NULL);
    }
    if (mark & CODE_NOTED)
        notes_arguments(code, pyver_inner_locals((uint64_t)(uintptr_t)frame));
}

static void note_end(const py_object *result, code_mark mark)
{
    if (!result && notes_are_wanted())
        notes_exception(py.PyErr_Occurred());
    else if (result && mark & CODE_NOTED)
        notes_result(result);
}

/* A generator or coroutine. The call that makes one is evaluated as well, and is no call of it. */
static py_object *evaluate_generator(py_tstate *tstate, py_inner *frame, int throwing,
                                     code_mark mark)
{
    if (!pyver_inner_is_generator(frame))
        return evaluate_default(tstate, frame, throwing);
    bool resumes = pyver_inner_has_started(frame);
    if (!resumes)
        note_begin(frame, mark);
    codes_emit(resumes ? RING_RESUME : RING_ENTER, mark, (uint64_t)(uintptr_t)frame);
    py_object *result = evaluate_default(tstate, frame, throwing);
    enum ring_kind kind = result ? RING_LEAVE : RING_UNWIND;
    if (result && pyver_inner_is_suspended(frame))
        kind = RING_SUSPEND;
    if (kind != RING_SUSPEND || !(mark & RING_CODE_COROUTINE))
        note_end(result, mark);
    codes_emit(kind, mark, (uint64_t)(uintptr_t)frame);
    return result;
}

static py_object *evaluate(py_tstate *tstate, py_inner *frame, int throwing)
{
    if (unlikely(!deep_end))
        deep_end = deep_mark(ALLOWANCE, PART);
    if (unlikely((const char *)__builtin_frame_address(0) < deep_end))
        return evaluate_deep(tstate, frame, throwing);
    code_mark mark = codes_mark(py_pointer(frame, py.inner_code));
    if (unlikely(mark & RING_CODE_LEFT_OUT))
        return evaluate_default(tstate, frame, throwing);
    if (unlikely(mark & RING_CODE_GENERATOR))
        return evaluate_generator(tstate, frame, throwing, mark);
    if (unlikely(mark & CODE_NOTED))
        note_begin(frame, mark);
    guest_emit(RING_ENTER, codes_number(mark));
    py_object *result = evaluate_default(tstate, frame, throwing);
    if (unlikely(!result || mark & CODE_NOTED))
        note_end(result, mark);
    guest_emit(result ? RING_LEAVE : RING_UNWIND, codes_number(mark));
    return result;
}

static void take_out(void)
{
    set_function(interpreter, evaluate_default);
}

bool evalframe_install(void)
{
    evaluate_default = (eval_function)dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    set_function = (void (*)(void *, eval_function))dlsym(RTLD_DEFAULT,
                                                          "_PyInterpreterState_SetEvalFrameFunc");
    if (!evaluate_default || !set_function)
        return false;
    interpreter = py.PyInterpreterState_Main();
    guest_take_out = take_out;
    set_function(interpreter, evaluate);
    return true;
}
