/* A malloc of the program's own, as a library: it gives out pieces of one large piece of memory and takes nothing
 * back. Preloaded, it is the malloc of the whole program; loaded at run time, that of its own code. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, ROOM = 256 << 20 };
static char room[ROOM] __attribute__((aligned(ALIGNMENT)));
static size_t used;

static size_t *size_of(void *block)
{
    return (size_t *)((char *)block - ALIGNMENT);
}

void *memalign(size_t alignment, size_t size);
void *valloc(size_t size);
void *pvalloc(size_t size);
size_t own_calls(void);
size_t own_bytes(void);
void *own_block(size_t size);
static size_t calls, bytes;

void *memalign(size_t alignment, size_t size)
{
    if (alignment < ALIGNMENT)
        alignment = ALIGNMENT;
    if (size > ROOM || alignment > ROOM) {
        errno = ENOMEM;
        return NULL;
    }
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&bytes, size, __ATOMIC_RELAXED);
    /* room for the piece wherever it falls, its size before it */
    size_t take = (size + alignment + ALIGNMENT + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    size_t at = __atomic_fetch_add(&used, take, __ATOMIC_RELAXED);
    if (at + take > ROOM) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t start = (uintptr_t)(room + at + ALIGNMENT);
    void *block = (void *)((start + alignment - 1) & ~(uintptr_t)(alignment - 1));
    *size_of(block) = size;
    return block;
}

void *malloc(size_t size)
{
    return memalign(ALIGNMENT, size);
}

void *calloc(size_t count, size_t size)
{
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole))
        return NULL;
    return malloc(whole); /* never given out before, so it is zero */
}

void *realloc(void *block, size_t size)
{
    void *fresh = malloc(size);
    if (fresh && block)
        memcpy(fresh, block, *size_of(block) < size ? *size_of(block) : size);
    return fresh;
}

void *reallocarray(void *block, size_t count, size_t size)
{
    size_t whole;
    return __builtin_mul_overflow(count, size, &whole) ? NULL : realloc(block, whole);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
    *ret = memalign(alignment, size);
    return *ret ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

void *valloc(size_t size)
{
    return memalign(4096, size);
}

void *pvalloc(size_t size)
{
    return memalign(4096, (size + 4095) & ~(size_t)4095);
}

void free(void *block)
{
    (void)block;
}

/* How often and for how much it was asked, and a block of its own: whose malloc is that? */
size_t own_calls(void)
{
    return calls;
}

size_t own_bytes(void)
{
    return bytes;
}

void *own_block(size_t size)
{
    return malloc(size);
}
