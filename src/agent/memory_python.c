/* Python's own allocators, its three domains, as ours that pass every call on; and its code objects' deaths.
 *
 * No header, no table: a block is what the allocator below gave. What that takes from malloc or mmap is not told again.
 * Blocks of the domains for objects are only touched under the GIL, those of the raw one by anybody. */
#include "agent/memory.h"
#include "agent/pyver.h"

#include <stdlib.h>
#include <string.h>

struct domain {
    struct py_allocator below;
    enum record_allocator allocator;
    enum memory_order_kind order;
    bool pooled; /* its small blocks come out of Python's pools */
};
static struct domain domains[PY_DOMAINS];

/* Small blocks come out of Python's own pools, and those out of arenas, which are watched apart: nothing below is told twice,
 * and nobody need be kept from it. */
static bool has_pools; /* and they are watched apart */
enum { SMALL = 448 };  /* 512, less what the debugging hooks add */

/* Does the request go on to another allocator? One of no bytes does, too. */
static inline bool goes_on(const struct domain *d, size_t size)
{
    return size - 1 >= SMALL || !d->pooled;
}

/* Somebody who has no need of the GIL may have looked up the context that was there before ours, which is none, and then our
 * function. */
static inline const struct domain *domain_of(const void *ctx)
{
    return likely(ctx) ? ctx : &domains[PY_DOMAIN_RAW];
}

static void *domain_malloc(void *ctx, size_t size)
{
    const struct domain *d = domain_of(ctx);
    struct memory_thread *me = &memory_me;
    unsigned nested = goes_on(d, size);
    me->inside += nested;
    void *p = d->below.malloc(d->below.ctx, size);
    me->inside -= nested;
    if (memory_is_on() && likely(p))
        memory_allocated(d->allocator, p, size, d->order);
    return p;
}

static void *domain_calloc(void *ctx, size_t count, size_t size)
{
    const struct domain *d = domain_of(ctx);
    struct memory_thread *me = &memory_me;
    me->inside++;
    void *p = d->below.calloc(d->below.ctx, count, size);
    me->inside--;
    if (memory_is_on() && p)
        memory_allocated(d->allocator, p, count * size, d->order);
    return p;
}

static void *domain_realloc(void *ctx, void *block, size_t size)
{
    const struct domain *d = domain_of(ctx);
    struct memory_thread *me = &memory_me;
    bool freed = memory_is_on() && block && memory_frees(block, d->order);
    me->inside++;
    void *p = d->below.realloc(d->below.ctx, block, size);
    me->inside--;
    if (!p && freed)
        memory_undo(block);
    if (memory_is_on() && p)
        memory_allocated(d->allocator, p, size, d->order);
    return p;
}

static void domain_free(void *ctx, void *block)
{
    const struct domain *d = domain_of(ctx);
    struct memory_thread *me = &memory_me;
    if (memory_is_on() && block)
        memory_frees(block, d->order);
    me->inside++;
    d->below.free(d->below.ctx, block);
    me->inside--;
}

/* --- sampling: nearly every call has nothing to tell, and must find that out in a few instructions --- */

static __attribute__((noinline)) void *sampled_slowly(const struct domain *d, size_t size)
{
    struct memory_thread *me = &memory_me;
    unsigned nested = goes_on(d, size);
    me->inside += nested;
    void *p = d->below.malloc(d->below.ctx, size);
    me->inside -= nested;
    if (memory_passes(me, size) || !p || !memory_is_on())
        return p;
    memory_allocated(d->allocator, p, size, d->order);
    return p;
}

/* A small block of the pools that passes: counted beforehand, so that nothing is left to do after the call, which is a jump. */
static void *sampled_malloc(void *ctx, size_t size)
{
    const struct domain *d = ctx;
    if (likely(size - 1 < SMALL && d->pooled) && likely(memory_passes(&memory_me, size)))
        return d->below.malloc(d->below.ctx, size);
    return sampled_slowly(d, size);
}

/* (libc's free() below would ask again, and find that it is not to be told.) */
static void sampled_free(void *ctx, void *block)
{
    const struct domain *d = ctx;
    if (unlikely(memory_may_be_chosen(block)) && block && memory_is_on())
        memory_frees(block, d->order);
    d->below.free(d->below.ctx, block);
}

/* --- arenas --- */

static struct py_arenas arenas_below;

static void *arena_alloc(void *ctx, size_t size)
{
    (void)ctx;
    memory_me.inside++;
    void *p = arenas_below.alloc(arenas_below.ctx, size);
    memory_me.inside--;
    return p;
}

static void arena_free(void *ctx, void *at, size_t size)
{
    (void)ctx;
    memory_me.inside++;
    arenas_below.free(arenas_below.ctx, at, size);
    memory_me.inside--;
}

static bool watch_arenas(void)
{
    static const struct py_arenas ours = {NULL, arena_alloc, arena_free};
    if (!py.PyObject_GetArenaAllocator || !py.PyObject_SetArenaAllocator)
        return false;
    struct py_arenas below;
    py.PyObject_GetArenaAllocator(&below);
    if (below.alloc == arena_alloc) /* ours is there still */
        return true;
    arenas_below = below;
    py.PyObject_SetArenaAllocator(&ours);
    return true;
}

/* With malloc below, an address is anybody's as soon as it is given back: then every record is stamped. */
static bool has_small_blocks_of_its_own(void)
{
    const char *name =
        py._PyMem_GetCurrentAllocatorName ? py._PyMem_GetCurrentAllocatorName() : NULL;
    if (name) /* it has none where somebody has put an allocator before Python's */
        return strncmp(name, "pymalloc", 8) == 0;
    const char *choice = getenv("PYTHONMALLOC");
    return !choice || !*choice || strncmp(choice, "pymalloc", 8) == 0;
}

static void (*dealloc_code)(py_object *code);

static void code_dies(py_object *code)
{
    memory_forget_code((uintptr_t)code);
    dealloc_code(code);
}

/* From the very beginning: code that runs while the interpreter starts dies early. The type is static, and has been
 * there since the program was loaded. */
void memory_watch_code(void)
{
    enum { TP_DEALLOC = 48 };
    if (dealloc_code)
        return;
    char *place = (char *)py.code_type + TP_DEALLOC;
    void (*ours)(py_object *) = code_dies;
    memcpy(&dealloc_code, place, sizeof dealloc_code);
    memcpy(place, &ours, sizeof ours);
}

void memory_watch_python(void)
{
    if (!(guest.instruments & (RING_OBJECTS | RING_SAMPLED)))
        return;
    bool own = has_small_blocks_of_its_own(), sampled = guest.instruments & RING_SAMPLED;
    has_pools = own && watch_arenas();
    static const enum record_allocator names[PY_DOMAINS] = {
        RECORD_ALLOCATOR_PYTHON_RAW, RECORD_ALLOCATOR_PYTHON_MEM, RECORD_ALLOCATOR_PYTHON_OBJECT};
    for (int i = 0; i < PY_DOMAINS; i++) {
        struct domain *d = &domains[i];
        struct py_allocator below;
        py.PyMem_GetAllocator(i, &below);
        if (below.ctx == d) /* ours is there still */
            continue;
        d->below = below;
        d->allocator = names[i];
        d->order = i != PY_DOMAIN_RAW && own ? MEMORY_WITH_GIL : MEMORY_ANY_THREAD;
        d->pooled = i != PY_DOMAIN_RAW && has_pools;
        const struct py_allocator ours = {d, sampled ? sampled_malloc : domain_malloc,
                                          domain_calloc, domain_realloc,
                                          sampled ? sampled_free : domain_free};
        py.PyMem_SetAllocator(i, &ours);
    }
}

void memory_leave_python(void)
{
    for (int i = 0; i < PY_DOMAINS && domains[i].below.free; i++) {
        struct py_allocator now;
        py.PyMem_GetAllocator(i, &now);
        if (now.ctx == &domains[i])
            py.PyMem_SetAllocator(i, &domains[i].below);
    }
    struct py_arenas arenas = {0};
    if (has_pools)
        py.PyObject_GetArenaAllocator(&arenas);
    if (arenas.alloc == arena_alloc)
        py.PyObject_SetArenaAllocator(&arenas_below);
}
