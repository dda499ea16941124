/* malloc and its family, mmap and its family, as the program finds them: each calls the next definition of its name
 * (libc's, or that of another allocator that was preloaded behind us) and tells what it did.
 *
 * They are called before anything is ready: by the loader, before our constructor, and by dlsym while it looks for the
 * next definition. What is asked for then comes out of a small store of our own, and is never given back.
 *
 * A release is told before it is made and an allocation after, so that whoever gets the same address next is told
 * later (ringmem.h). */
#undef _FILE_OFFSET_BITS /* or mmap is another name for mmap64 */
#include "agent/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

/* --- the next definitions --- */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*reallocarray)(void *, size_t, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void *(*sbrk)(intptr_t);
    int (*brk)(void *);
    _Atomic bool ready;
    bool by_jump; /* see memory_libc_sample() */
} next;

static bool looking; /* before there are threads */

static void look(void)
{
    looking = true;
#define FIND(name) next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name);
    FIND(malloc)
    FIND(calloc)
    FIND(realloc)
    FIND(reallocarray)
    FIND(free)
    FIND(posix_memalign)
    FIND(aligned_alloc)
    FIND(memalign)
    FIND(valloc)
    FIND(pvalloc)
    FIND(sbrk)
    FIND(brk)
#undef FIND
    atomic_store(&next.ready, true);
    looking = false;
}

/* False: they are being looked for, by this very call. */
static inline bool is_ready(void)
{
    if (likely(atomic_load_explicit(&next.ready, memory_order_relaxed)))
        return true;
    if (looking)
        return false;
    look();
    return true;
}

/* --- before they are known --- */

static _Alignas(16) char store[64 << 10];
static size_t store_used;

static void *take_from_store(size_t size)
{
    size_t whole = (size + 15) & ~(size_t)15;
    if (whole < size || whole > sizeof store - store_used) {
        errno = ENOMEM;
        return NULL;
    }
    store_used += whole;
    return store + store_used - whole;
}

void *memory_take_for_ever(size_t size)
{
    return take_from_store(size);
}

static inline bool is_from_store(const void *p)
{
    return unlikely((const char *)p >= store && (const char *)p < store + sizeof store);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's names are not for us */

/* --- blocks --- */

/* What the next definition does by way of others is its own affair. */
#define NEXT(call)                                                                                 \
    ({                                                                                             \
        unsigned inside_ = memory_is_on();                                                         \
        memory_me.inside += inside_;                                                               \
        __auto_type given_ = (call);                                                               \
        memory_me.inside -= inside_;                                                               \
        given_;                                                                                    \
    })

static inline void *told(enum record_allocator allocator, void *block, size_t size)
{
    if (memory_is_on() && block)
        memory_allocated(allocator, block, size, MEMORY_ANY_THREAD);
    return block;
}

/* Are both of one library? */
static bool is_of(const void *function, const void *other)
{
    Dl_info a, b;
    return function && dladdr(function, &a) && dladdr(other, &b) && a.dli_fbase == b.dli_fbase;
}

bool memory_libc_has_own_new(void)
{
    return is_ready() && is_of(dlsym(RTLD_DEFAULT, "_Znwm"), (void *)next.malloc);
}

void memory_libc_tell_name(void)
{
    struct ring_session *s = guest.session;
    uint32_t none = RING_NAME_NONE;
    Dl_info info;
    if (!is_ready() || is_of((void *)next.malloc, (void *)gnu_get_libc_version) ||
        !dladdr((void *)next.malloc, &info) || !info.dli_fname ||
        !atomic_compare_exchange_strong(&s->allocator_state, &none, RING_NAME_COMES))
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash ? slash + 1 : info.dli_fname;
    memcpy(s->allocator, name, strnlen(name, sizeof s->allocator - 1));
    atomic_store(&s->allocator_state, RING_NAME_THERE);
}

/* Sampling: nearly every call has nothing to tell. It is counted beforehand, so that nothing is left to do after the next definition,
 * which is jumped to: a loop of nothing but malloc and free takes 1.16 times as long then, else 1.20. Only over libc's own, which calls
 * nothing by a name that leads to us again. */
void memory_libc_sample(void)
{
    next.by_jump = is_ready() && is_of((void *)next.malloc, (void *)gnu_get_libc_version);
}

static inline bool passes(size_t size)
{
    struct memory_thread *me = &memory_me;
    return next.by_jump && !me->inside && memory_passes(me, size);
}

PUBLIC void *malloc(size_t size)
{
    if (passes(size))
        return next.malloc(size);
    if (unlikely(!is_ready()))
        return take_from_store(size);
    return told(RECORD_ALLOCATOR_MALLOC, NEXT(next.malloc(size)), size);
}

PUBLIC void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX; /* there will be no block */
    if (passes(bytes))
        return next.calloc(count, size);
    if (unlikely(!is_ready())) /* the store is empty pages */
        return take_from_store(bytes);
    return told(RECORD_ALLOCATOR_CALLOC, NEXT(next.calloc(count, size)), bytes);
}

PUBLIC void free(void *block)
{
    if (is_from_store(block) || unlikely(!is_ready()))
        return;
    if (next.by_jump && !memory_may_be_chosen(block)) {
        next.free(block);
        return;
    }
    unsigned inside = memory_is_on();
    if (inside && block)
        memory_frees(block, MEMORY_ANY_THREAD);
    memory_me.inside += inside;
    next.free(block);
    memory_me.inside -= inside;
}

/* What was ours moves to where it can be given back. */
static void *move_out_of_store(void *block, size_t size)
{
    void *p = malloc(size);
    size_t most = (size_t)(store + sizeof store - (char *)block);
    if (p)
        memcpy(p, block, size < most ? size : most);
    return p;
}

PUBLIC void *realloc(void *block, size_t size)
{
    if (is_from_store(block))
        return move_out_of_store(block, size);
    if (unlikely(!is_ready()))
        return take_from_store(size);
    if (likely(!memory_is_on()))
        return next.realloc(block, size);
    bool freed = block && memory_frees(block, MEMORY_ANY_THREAD);
    void *p = NEXT(next.realloc(block, size));
    if (!p && freed && size)
        memory_undo(block);
    return told(RECORD_ALLOCATOR_REALLOC, p, size);
}

PUBLIC void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

PUBLIC int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (!is_ready() || !next.posix_memalign)
        return ENOMEM;
    int r = NEXT(next.posix_memalign(ret, alignment, size));
    if (r == 0)
        told(RECORD_ALLOCATOR_POSIX_MEMALIGN, *ret, size);
    return r;
}

#define ALIGNED(name, allocator)                                                                   \
    PUBLIC void *name(size_t alignment, size_t size)                                               \
    {                                                                                              \
        if (!is_ready() || !next.name) {                                                           \
            errno = ENOMEM;                                                                        \
            return NULL;                                                                           \
        }                                                                                          \
        return told(allocator, NEXT(next.name(alignment, size)), size);                            \
    }
ALIGNED(aligned_alloc, RECORD_ALLOCATOR_ALIGNED_ALLOC)
ALIGNED(memalign, RECORD_ALLOCATOR_MEMALIGN)

#define PAGED(name, allocator)                                                                     \
    PUBLIC void *name(size_t size)                                                                 \
    {                                                                                              \
        if (!is_ready() || !next.name) {                                                           \
            errno = ENOMEM;                                                                        \
            return NULL;                                                                           \
        }                                                                                          \
        return told(allocator, NEXT(next.name(size)), size);                                       \
    }
PAGED(valloc, RECORD_ALLOCATOR_VALLOC)
PAGED(pvalloc, RECORD_ALLOCATOR_PVALLOC)

/* --- pages: by the system call, which is all that libc does --- */

static size_t whole_pages(size_t size)
{
    enum { PAGE = 4096 };
    return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

PUBLIC void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    uint64_t began = memory_is_on() && flags & MAP_FIXED ? guest_now_in_order() : 0;
    long p = syscall(SYS_mmap, at, size, (long)protection, (long)flags, (long)fd, offset);
    if (memory_is_on() && p != -1) {
        if (began) /* what was there is gone */
            memory_unmapped((void *)p, whole_pages(size), began);
        memory_mapped(RECORD_ALLOCATOR_MMAP, (void *)p, whole_pages(size));
    }
    return (void *)p;
}

PUBLIC void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return mmap(at, size, protection, flags, fd, offset);
}

PUBLIC int munmap(void *at, size_t size)
{
    uint64_t began = memory_is_on() ? guest_now_in_order() : 0;
    int r = (int)syscall(SYS_munmap, at, size);
    if (r == 0 && began)
        memory_unmapped(at, whole_pages(size), began);
    return r;
}

PUBLIC void *mremap(void *at, size_t size, size_t new_size, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    /* with either of them it counts to the kernel; libc passes it on, or what is in its place */
    void *wish = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) ? va_arg(list, void *) : NULL;
    va_end(list);
    uint64_t began = memory_is_on() ? guest_now_in_order() : 0;
    long p = syscall(SYS_mremap, at, size, new_size, (long)flags, wish);
    if (p != -1 && began) {
        if (!(flags & MREMAP_DONTUNMAP)) /* else it stays, empty */
            memory_unmapped(at, whole_pages(size), began);
        if (flags & MREMAP_FIXED)
            memory_unmapped((void *)p, whole_pages(new_size), began);
        memory_mapped(RECORD_ALLOCATOR_MMAP, (void *)p, whole_pages(new_size));
    }
    return (void *)p;
}

/* The program's own use of the heap's end; malloc's goes by another way. */
static void moved_end(const char *before, const char *after, uint64_t began)
{
    if (after > before)
        memory_mapped(RECORD_ALLOCATOR_BRK, before, (size_t)(after - before));
    else if (after < before)
        memory_unmapped(after, (size_t)(before - after), began);
}

PUBLIC void *sbrk(intptr_t more)
{
    if (!is_ready() || !next.sbrk) {
        errno = ENOMEM;
        return (void *)-1;
    }
    bool on = memory_is_on() && more != 0 && !memory_me.inside;
    uint64_t began = on ? guest_now_in_order() : 0;
    char *before = next.sbrk(more);
    if (on && before != (char *)-1)
        moved_end(before, before + more, began);
    return before;
}

PUBLIC int brk(void *end)
{
    if (!is_ready() || !next.brk || !next.sbrk) {
        errno = ENOMEM;
        return -1;
    }
    bool on = memory_is_on() && !memory_me.inside;
    uint64_t began = on ? guest_now_in_order() : 0;
    const char *before = on ? next.sbrk(0) : NULL;
    int r = next.brk(end);
    if (on && r == 0)
        moved_end(before, end, began);
    return r;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
