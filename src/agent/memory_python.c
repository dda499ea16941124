/* Python's own allocators, its three domains, as ours that pass every call on; and its code objects' deaths.
 *
 * No header, no table: a block is what the allocator below gave. What that takes from malloc or mmap is not told again.
 * Blocks of the domains for objects are only touched under the GIL, those of the raw one by anybody. */
#include "agent/memory.h"
#include "agent/pyver.h"

#include <stdlib.h>
#include <string.h>

struct domain {
    struct py_allocator below, ours;
    enum record_allocator allocator;
    enum memory_order_kind order;
    bool pooled; /* its small blocks come out of Python's pools */
};
static struct domain domains[PY_DOMAINS];

/* Small blocks come out of Python's own pools, and those out of arenas, which are watched apart: so sampling may jump on to the pools, and
 * what is below is kept from telling it again all the same. */
static bool has_pools; /* and they are watched apart */
enum { SMALL = 448 };  /* 512, less what the debugging hooks add */

/* Is what we have put there still there? */
static bool is_ours(int number)
{
    const struct domain *d = &domains[number];
    struct py_allocator now;
    py.PyMem_GetAllocator(number, &now);
    return now.malloc && now.malloc == d->ours.malloc && now.ctx == d->ours.ctx;
}

/* --- are ours called? ---
 *
 * Somebody may have put his own above ours, and pass on to it: tracemalloc, begun after us. To put ours above his again would
 * close a ring of calls without end. Or he has set ours aside: what was there before us puts back, when it ends, what it had found.
 * From outside both look the same. So whoever is on top is asked for a block, and one who stands below ours for that time says
 * whether the question has come by. His context is that of the allocator that he stands for: threads without the GIL may come
 * in between. */

static struct memory_thread *asker;
static bool has_come_by;
static void *(*asked_for[PY_DOMAINS])(void *ctx, size_t size); /* by whom he passes on */

#define STAND_IN(name, number)                                                                     \
    static void *name(void *ctx, size_t size)                                                      \
    {                                                                                              \
        has_come_by |= asker == &memory_me;                                                        \
        return asked_for[number](ctx, size);                                                       \
    }
STAND_IN(stand_in_raw, PY_DOMAIN_RAW)
STAND_IN(stand_in_mem, PY_DOMAIN_MEM)
STAND_IN(stand_in_object, PY_DOMAIN_OBJECT)

/* With the GIL, and not from inside of an allocator. */
static bool is_called(int number)
{
    static void *(*const stand_in[PY_DOMAINS])(void *, size_t) = {stand_in_raw, stand_in_mem,
                                                                  stand_in_object};
    enum { QUESTION = 4096 }; /* bytes: more than pools keep, and too few to be missed */
    struct domain *d = &domains[number];
    struct py_allocator top;
    if (!d->ours.malloc || is_ours(number))
        return d->ours.malloc;
    py.PyMem_GetAllocator(number, &top);
    asked_for[number] = d->below.malloc;
    has_come_by = false;
    asker = &memory_me;
    memory_me.inside++;
    __atomic_store_n(&d->below.malloc, stand_in[number], __ATOMIC_RELEASE);
    void *block = top.malloc(top.ctx, QUESTION);
    __atomic_store_n(&d->below.malloc, asked_for[number], __ATOMIC_RELEASE);
    if (block)
        top.free(top.ctx, block);
    memory_me.inside--;
    asker = NULL;
    return has_come_by;
}

static _Atomic bool is_told; /* that one of ours is not called any more */

/* What is not seen any more is told, once. (Interpreters with a GIL of their own may come at the same time.) */
static void look_after_domains(void)
{
    static _Atomic bool looking;
    if (atomic_exchange(&looking, true))
        return;
    for (int i = 0; i < PY_DOMAINS && !is_told; i++)
        if (domains[i].ours.malloc && !is_called(i)) {
            atomic_fetch_add(&guest.session->unhooked, 1);
            is_told = true;
        }
    atomic_store(&looking, false);
}

/* Somebody who has no need of the GIL may have looked up the context that was there before ours, which is none, and then our
 * function. */
static inline const struct domain *domain_of(const void *ctx)
{
    return likely(ctx) ? ctx : &domains[PY_DOMAIN_RAW];
}

/* Also of a small block: for a new arena Python's pools ask the raw domain for their tables, which are no more the program's than the
 * arena is. */
static void *domain_malloc(void *ctx, size_t size)
{
    const struct domain *d = domain_of(ctx);
    struct memory_thread *me = &memory_me;
    me->inside++;
    void *p = d->below.malloc(d->below.ctx, size);
    me->inside--;
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

/* Asked by an allocator of Python's above, and not for the block that it was asked for itself: for a table of its own. The first of these it
 * had from libc before we were there, and that was told, so its end is to be told, too; of any other it is the end of nothing known.
 * (Unless a record is being made just now: then this is a signal's.) */
static bool is_for_tables(const struct memory_thread *me, const void *block)
{
    return me->inside && block != me->moves && me->ring &&
           !atomic_load_explicit(&me->ring->writing, memory_order_relaxed);
}

static void *domain_realloc(void *ctx, void *block, size_t size)
{
    const struct domain *d = domain_of(ctx);
    struct memory_thread *me = &memory_me;
    uint32_t inside = me->inside;
    if (unlikely(inside) && is_for_tables(me, block))
        me->inside = 0;
    bool freed = memory_is_on() && block && memory_frees(block, d->order);
    me->inside = inside + 1;
    me->moves = block;
    void *p = d->below.realloc(d->below.ctx, block, size);
    if (!p && freed) {
        me->inside = 0;
        memory_undo(block);
    }
    me->inside = inside;
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

/* --- sampling: nearly every call has nothing to tell, and must find that out in a few instructions ---
 *
 * A block that is to be told is asked for so large that it does not come out of Python's pools but from malloc, which it goes back
 * to: so its release is met there, in free(), and the domains' own stay as they are. Only over Python's own allocator; over
 * others the functions above do it. */

enum { BEYOND_POOLS = 513 };

/* Bytes before the next sample, of all domains that need the GIL: one place for all threads is reached in fewer steps than one for
 * each. (Interpreters with a GIL of their own share it, and may now and then count over each other.) */
static _Atomic int64_t until_sample;

static inline bool passes(size_t size)
{
    int64_t left = atomic_load_explicit(&until_sample, memory_order_relaxed) - (int64_t)size;
    if (unlikely(left <= 0))
        return false;
    atomic_store_explicit(&until_sample, left, memory_order_relaxed);
    return true;
}

/* The thread counts with it for a while; again: with its own. */
static void change_count(const struct domain *d, struct memory_thread *me)
{
    if (d->allocator == RECORD_ALLOCATOR_PYTHON_RAW)
        return;
    int64_t own = me->until_sample;
    me->until_sample = atomic_load_explicit(&until_sample, memory_order_relaxed);
    atomic_store_explicit(&until_sample, own, memory_order_relaxed);
}

/* Is so much to be told? Then it is asked for in this size. */
static inline size_t size_to_ask(const struct domain *d, size_t size, bool chosen)
{
    return chosen && d->pooled && size < BEYOND_POOLS ? BEYOND_POOLS : size;
}

/* False: it passes. */
static bool is_chosen(const struct domain *d, struct memory_thread *me, size_t size)
{
    if (!memory_is_on() || me->inside)
        return false;
    change_count(d, me);
    bool passed = memory_passes(me, size);
    change_count(d, me);
    return !passed;
}

static void *tell_sampled(const struct domain *d, void *block, size_t size, bool chosen)
{
    struct memory_thread *me = &memory_me;
    if (chosen && block) {
        change_count(d, me);
        memory_allocated(d->allocator, block, size, d->order);
        change_count(d, me);
    }
    return block;
}

static __attribute__((noinline)) void *sampled_malloc(const struct domain *d, size_t size)
{
    struct memory_thread *me = &memory_me;
    bool chosen = is_chosen(d, me, size);
    me->inside++;
    void *p = d->below.malloc(d->below.ctx, size_to_ask(d, size, chosen));
    me->inside--;
    return tell_sampled(d, p, size, chosen);
}

static void *sampled_calloc(const struct domain *d, size_t count, size_t each)
{
    struct memory_thread *me = &memory_me;
    size_t size = count * each; /* where that is too much there will be no block */
    bool chosen = is_chosen(d, me, size);
    bool larger = size_to_ask(d, size, chosen) != size && !(each && size / each != count);
    me->inside++;
    void *p = larger ? d->below.calloc(d->below.ctx, 1, BEYOND_POOLS)
                     : d->below.calloc(d->below.ctx, count, each);
    me->inside--;
    return tell_sampled(d, p, size, chosen);
}

static void *sampled_realloc(const struct domain *d, void *block, size_t size)
{
    struct memory_thread *me = &memory_me;
    bool freed = memory_is_on() && block && memory_frees(block, d->order);
    bool chosen = is_chosen(d, me, size);
    me->inside++;
    void *p = d->below.realloc(d->below.ctx, block, size_to_ask(d, size, chosen));
    me->inside--;
    if (!p && freed)
        memory_undo(block);
    return tell_sampled(d, p, size, chosen);
}

/* A small block of the pools that passes is counted beforehand, so that nothing is left to do after the call, which is a jump. The
 * context is that of the allocator below: its free() is called as it is. A block that is made smaller may have come from malloc,
 * and is not to be met there again. */
#define SAMPLED(name, number)                                                                      \
    static void *name##_malloc(void *ctx, size_t size)                                             \
    {                                                                                              \
        const struct domain *d = &domains[number];                                                 \
        if ((number) != PY_DOMAIN_RAW && likely(size - 1 < SMALL) && likely(passes(size)))         \
            return d->below.malloc(ctx, size);                                                     \
        return sampled_malloc(d, size);                                                            \
    }                                                                                              \
    static void *name##_calloc(void *ctx, size_t count, size_t each)                               \
    {                                                                                              \
        const struct domain *d = &domains[number];                                                 \
        if ((number) != PY_DOMAIN_RAW && likely(count <= SMALL && each <= SMALL) &&                \
            likely(count * each - 1 < SMALL) && likely(passes(count * each)))                      \
            return d->below.calloc(ctx, count, each);                                              \
        return sampled_calloc(d, count, each);                                                     \
    }                                                                                              \
    static void *name##_realloc(void *ctx, void *block, size_t size)                               \
    {                                                                                              \
        const struct domain *d = &domains[number];                                                 \
        if ((number) == PY_DOMAIN_RAW || size - 1 >= SMALL || memory_may_be_chosen(block) ||       \
            unlikely(!passes(size)))                                                               \
            return sampled_realloc(d, block, size);                                                \
        memory_me.inside++;                                                                        \
        void *p = d->below.realloc(ctx, block, size);                                              \
        memory_me.inside--;                                                                        \
        return p;                                                                                  \
    }
SAMPLED(raw, PY_DOMAIN_RAW)
SAMPLED(mem, PY_DOMAIN_MEM)
SAMPLED(object, PY_DOMAIN_OBJECT)

static const struct py_allocator sampled[PY_DOMAINS] = {
    [PY_DOMAIN_RAW] = {.malloc = raw_malloc, .calloc = raw_calloc, .realloc = raw_realloc},
    [PY_DOMAIN_MEM] = {.malloc = mem_malloc, .calloc = mem_calloc, .realloc = mem_realloc},
    [PY_DOMAIN_OBJECT] = {.malloc = object_malloc,
                          .calloc = object_calloc,
                          .realloc = object_realloc},
};

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
    if (arenas_below.alloc && (below.alloc != arenas_below.alloc ||
                               below.ctx != arenas_below.ctx)) /* ours may be below */
        return false;
    arenas_below = below;
    py.PyObject_SetArenaAllocator(&ours);
    return true;
}

/* The name of Python's allocator, as PYTHONMALLOC has it; NULL: it is none of Python's own. */
static const char *allocator_name(void)
{
    if (py._PyMem_GetCurrentAllocatorName)
        return py._PyMem_GetCurrentAllocatorName();
    const char *name = getenv("PYTHONMALLOC");
    return name && *name ? name : "pymalloc";
}

static void (*dealloc_code)(py_object *code);

/* Now and then, with the GIL and outside of all allocators; and when the interpreter ends, before it ends tracemalloc, too. */
static void on_code_death(void)
{
    enum { EVERY = 16 };
    static _Atomic uint32_t deaths;
    static _Atomic bool is_ending;
    bool ends = py.is_finalizing && py.is_finalizing();
    if (!is_told && !is_ending && (ends || ++deaths % EVERY == 0) && memory_is_on())
        look_after_domains();
    if (ends)
        is_ending = true;
}

static void code_dies(py_object *code)
{
    memory_forget_code((uintptr_t)code);
    on_code_death();
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
    /* With malloc below, an address is anybody's as soon as it is given back: then every record is stamped. And of a stranger
     * nobody knows what he takes from malloc: it is not told again, whatever the size. */
    const char *name = allocator_name();
    bool own = name && strncmp(name, "pymalloc", 8) == 0;
    bool by_jump = guest.instruments & RING_SAMPLED && own && strcmp(name, "pymalloc") == 0;
    bool stays[PY_DOMAINS], pooled = own; /* what is called still is as it was found before */
    for (int i = 0; i < PY_DOMAINS; i++) {
        stays[i] = is_called(i);
        pooled |= stays[i] && domains[i].pooled;
    }
    has_pools = pooled && watch_arenas();
    is_told = false;
    static const enum record_allocator names[PY_DOMAINS] = {
        RECORD_ALLOCATOR_PYTHON_RAW, RECORD_ALLOCATOR_PYTHON_MEM, RECORD_ALLOCATOR_PYTHON_OBJECT};
    for (int i = 0; i < PY_DOMAINS; i++) {
        struct domain *d = &domains[i];
        if (stays[i]) {
            d->pooled = d->pooled && has_pools;
            continue;
        }
        py.PyMem_GetAllocator(i, &d->below);
        d->allocator = names[i];
        d->order = i == PY_DOMAIN_RAW ? MEMORY_ANY_THREAD
                   : own              ? MEMORY_WITH_GIL
                                      : MEMORY_HOLDS_GIL;
        d->pooled = i != PY_DOMAIN_RAW && own && has_pools;
        d->ours =
            (struct py_allocator){d, domain_malloc, domain_calloc, domain_realloc, domain_free};
        if (by_jump && (d->pooled || i == PY_DOMAIN_RAW)) {
            d->ours = sampled[i];
            d->ours.ctx = d->below.ctx;
            d->ours.free = d->below.free;
        }
        py.PyMem_SetAllocator(i, &d->ours);
    }
}

void memory_leave_python(void)
{
    look_after_domains();
    for (int i = 0; i < PY_DOMAINS; i++)
        if (is_ours(i))
            py.PyMem_SetAllocator(i, &domains[i].below);
    struct py_arenas arenas = {0};
    if (arenas_below.alloc)
        py.PyObject_GetArenaAllocator(&arenas);
    if (arenas.alloc == arena_alloc)
        py.PyObject_SetArenaAllocator(&arenas_below);
}
