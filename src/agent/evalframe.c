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
#include "agent/hooks.h"

#include <dlfcn.h>
#include <pthread.h>

struct frame; /* _PyInterpreterFrame */

typedef py_object *(*eval_function)(py_tstate *tstate, struct frame *frame, int throwing);

enum {
    ALLOWANCE = 4 << 20, /* bytes of C stack, of the 8 MiB that threads have as a rule */
    FRAME_CODE = 32,
    FRAME_INSTRUCTION = 56,
    FRAME_OWNER = 69,
    OWNED_BY_GENERATOR = 1,
    GENERATOR_STATE_BEFORE = 5, /* bytes before the frame, in the generator that holds it */
    STATE_SUSPENDED = -1,
    OP_YIELD_VALUE = 86,
};

static eval_function evaluate_default;
static void (*set_function)(void *interpreter, eval_function function);
static void *interpreter;
static __thread const char *deep_end __attribute__((tls_model("initial-exec")));

static bool is_generator(const struct frame *f)
{
    return ((const uint8_t *)f)[FRAME_OWNER] == OWNED_BY_GENERATOR;
}

static int generator_state(const struct frame *f)
{
    return ((const int8_t *)f)[-GENERATOR_STATE_BEFORE];
}

/* The state says "executing" by now, but the instruction it stopped at tells. */
static bool has_yielded(const struct frame *f)
{
    return *(const uint8_t *)py_pointer(f, FRAME_INSTRUCTION) == OP_YIELD_VALUE;
}

static void emit(enum ring_kind kind, code_mark mark, const struct frame *f)
{
    if (unlikely(mark & RING_CODE_COROUTINE))
        guest_emit_frame(kind, codes_number(mark), (uint64_t)(uintptr_t)f);
    else
        guest_emit(kind, codes_number(mark));
}

/* Where this thread's allowance ends. */
static const char *find_end(void)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &low, &size);
        pthread_attr_destroy(&attr);
    }
    size_t half = size / 2 < ALLOWANCE ? size / 2 : ALLOWANCE;
    return (const char *)low + (size - half);
}

static py_object *evaluate(py_tstate *tstate, struct frame *frame, int throwing);

static py_object *evaluate_deep(py_tstate *tstate, struct frame *frame, int throwing)
{
    uint64_t why = RING_PAUSE_DEEP;
    const struct guest_piece piece = {&why, sizeof why};
    guest_emit_ext(RING_EXT_PAUSE, &piece, 1);
    set_function(interpreter, evaluate_default);
    py_object *result = evaluate_default(tstate, frame, throwing);
    if (guest.on) {
        set_function(interpreter, evaluate);
        guest_resync();
    }
    return result;
}

/* A generator or coroutine. The call that makes one is evaluated as well, and is no call of it. */
static py_object *evaluate_generator(py_tstate *tstate, struct frame *frame, int throwing,
                                     code_mark mark)
{
    if (!is_generator(frame))
        return evaluate_default(tstate, frame, throwing);
    emit(has_yielded(frame) ? RING_RESUME : RING_ENTER, mark, frame);
    py_object *result = evaluate_default(tstate, frame, throwing);
    enum ring_kind kind = result ? RING_LEAVE : RING_UNWIND;
    if (result && generator_state(frame) == STATE_SUSPENDED)
        kind = RING_SUSPEND;
    emit(kind, mark, frame);
    return result;
}

static py_object *evaluate(py_tstate *tstate, struct frame *frame, int throwing)
{
    if (unlikely(!deep_end))
        deep_end = find_end();
    if (unlikely((const char *)__builtin_frame_address(0) < deep_end))
        return evaluate_deep(tstate, frame, throwing);
    code_mark mark = codes_mark(py_pointer(frame, FRAME_CODE));
    if (unlikely(mark & RING_CODE_GENERATOR))
        return evaluate_generator(tstate, frame, throwing, mark);
    guest_emit(RING_ENTER, codes_number(mark));
    py_object *result = evaluate_default(tstate, frame, throwing);
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
