/* More interpreters than one, below 3.12: which of them runs in this thread?
 *
 * There Python knows of a thread just the state of its first interpreter, and what runs by the GIL alone: the one state that has it, for all
 * threads. Nor does a state say whose it is: its number is that of the thread that made it, and another may run it. So while other
 * interpreters are there, a thread's frames are known if its own state is the one that has the GIL, for nobody else runs that; and if
 * somebody says that this thread has the GIL. Else it may have let go of it in either interpreter, and no line is charged.
 *
 * Those who can say it are Python's allocators of memory and objects. Where they are not watched (=heap) they are from the moment on at
 * which another interpreter is met: a new one's first thread state is allocated while its maker still runs. */
#include "agent/memory.h"
#include "agent/pyver.h"

static struct py_allocator below[PY_DOMAINS];

#define WITH_GIL(call)                                                                             \
    ({                                                                                             \
        const struct py_allocator *b = ctx;                                                        \
        memory_me.holds_gil++;                                                                     \
        void *given_ = (call);                                                                     \
        memory_me.holds_gil--;                                                                     \
        given_;                                                                                    \
    })

static void *witness_malloc(void *ctx, size_t size)
{
    return WITH_GIL(b->malloc(b->ctx, size));
}

static void *witness_calloc(void *ctx, size_t count, size_t size)
{
    return WITH_GIL(b->calloc(b->ctx, count, size));
}

static void *witness_realloc(void *ctx, void *block, size_t size)
{
    return WITH_GIL(b->realloc(b->ctx, block, size));
}

static void witness_free(void *ctx, void *block)
{
    const struct py_allocator *b = ctx;
    b->free(b->ctx, block);
}

/* With the GIL. Once: whoever comes above ours later passes on to it, and to stand above him, too, would close a ring of calls. */
static void call_witnesses(void)
{
    static bool called;
    if (called || guest.instruments & (RING_OBJECTS | RING_SAMPLED))
        return;
    called = true;
    for (int i = PY_DOMAIN_MEM; i <= PY_DOMAIN_OBJECT; i++) {
        py.PyMem_GetAllocator(i, &below[i]);
        const struct py_allocator ours = {&below[i], witness_malloc, witness_calloc,
                                          witness_realloc, witness_free};
        py.PyMem_SetAllocator(i, &ours);
    }
}

/* New ones come first in the list of interpreters. */
bool memory_gil_may_run_other(const py_tstate *own)
{
    if (likely(py.PyInterpreterState_Head() == py.PyInterpreterState_Main()))
        return false;
    if (!own || own != py.current_thread())
        return true;
    call_witnesses();
    return false;
}
