/* The end of the interpreter, and threads that it does not wait for.
 *
 * When it ends, it frees the states and frames of threads that are left (daemons), and one of these may be in a malloc of C code, without the
 * GIL, and look at its frames just then. To ask whether it ends is not enough, for a thread may lose its CPU between the question and
 * its last frame. So the last thing that the interpreter does before (what was registered first with atexit comes last) is to call
 * us: from then on nobody but the thread that ends it looks at frames without the GIL, and those that do so already are waited for.
 *
 * A look costs the thread two stores more. What orders them against the question is done by the one who waits, once: membarrier(2)
 * puts a fence into every thread of the process. */
#include "agent/memory.h"
#include "agent/pyver.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_THREADS = 4096, /* who is not among them looks at no frames without the GIL */
    TURNS = 2000,       /* of 0.1 ms: longer nobody is waited for */
    TURN_NS = 100000,
};
enum { MEMBARRIER_EXPEDITED = 1 << 3, MEMBARRIER_REGISTER = 1 << 4 };

static _Atomic bool ending;
static struct memory_thread *ender; /* who may go on */
static _Atomic bool locked;
static struct memory_thread *thread[MAX_THREADS];
static uint32_t count;

static void lock(void)
{
    while (atomic_exchange_explicit(&locked, true, memory_order_acquire))
        ;
}

static void unlock(void)
{
    atomic_store_explicit(&locked, false, memory_order_release);
}

static __attribute__((noinline, cold)) bool enroll(struct memory_thread *me)
{
    lock();
    if (count < MAX_THREADS) {
        thread[count++] = me;
        me->is_enrolled = true;
    }
    unlock();
    return me->is_enrolled;
}

void memory_end_forget(struct memory_thread *me)
{
    if (!me->is_enrolled)
        return;
    lock();
    for (uint32_t i = count; i-- > 0;)
        if (thread[i] == me)
            thread[i] = thread[--count];
    unlock();
    me->is_enrolled = false;
}

void memory_end_forked(void)
{
    count = 0;
    atomic_store(&locked, false);
    memory_me.is_enrolled = false;
}

bool memory_end_may_look(struct memory_thread *me)
{
    if (unlikely(!me->is_enrolled) && !enroll(me))
        return false;
    atomic_store_explicit(&me->looks, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (likely(!atomic_load_explicit(&ending, memory_order_relaxed)) || me == ender)
        return true;
    atomic_store_explicit(&me->looks, false, memory_order_relaxed);
    return false;
}

static bool is_anybody_looking(void)
{
    bool found = false;
    lock();
    for (uint32_t i = 0; i < count && !found; i++)
        found = thread[i] != ender && atomic_load_explicit(&thread[i]->looks, memory_order_acquire);
    unlock();
    return found;
}

static py_object *on_end(py_object *self, py_object *const *args, ptrdiff_t n)
{
    static const struct timespec turn = {.tv_nsec = TURN_NS};
    (void)self, (void)args, (void)n;
    ender = &memory_me;
    atomic_store(&ending, true);
    bool ordered = syscall(SYS_membarrier, MEMBARRIER_EXPEDITED, 0, 0) == 0;
    for (int i = 0; ordered && i < TURNS && is_anybody_looking(); i++)
        nanosleep(&turn, NULL);
    py.Py_IncRef(py.none);
    return py.none;
}

void memory_end_watch(void)
{
    static bool watched;
    if (watched || syscall(SYS_membarrier, MEMBARRIER_REGISTER, 0, 0) != 0)
        return;
    watched = true;
    memory_me.inside++;
    py_object *module = py.PyImport_ImportModule("atexit");
    py_object *enter = module ? py.PyObject_GetAttrString(module, "register") : NULL;
    py_object *call = enter ? pyver_function("pyrometer", on_end) : NULL;
    py_object *done = call ? py.PyObject_CallFunctionObjArgs(enter, call, (py_object *)NULL) : NULL;
    py_object *const ours[] = {module, enter, call, done};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ours[i])
            py.Py_DecRef(ours[i]);
    if (!done)
        py.PyErr_Clear();
    memory_me.inside--;
}
