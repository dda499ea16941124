/* The allocators, called with exact sizes: the oracle of the memory tests. Each function is one call (or a
 * known number of calls) of one allocator, so the line of Python that calls it must be charged with exactly
 * that. Built by the tests into a folder of their own, with -fno-builtin: the compiler would take away a
 * malloc whose block nobody reads. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- one call each --- */

void *truth_malloc(size_t size)
{
    return malloc(size);
}

void *truth_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

void *truth_realloc(void *block, size_t size)
{
    return realloc(block, size);
}

void *truth_reallocarray(void *block, size_t count, size_t size)
{
    return reallocarray(block, count, size);
}

void *truth_posix_memalign(size_t alignment, size_t size)
{
    void *block = NULL;
    return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

void *truth_aligned_alloc(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

void *truth_memalign(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

void *truth_valloc(size_t size)
{
    return valloc(size);
}

void *truth_pvalloc(size_t size)
{
    return pvalloc(size);
}

void truth_free(void *block)
{
    free(block);
}

char *truth_strdup(const char *text)
{
    return strdup(text);
}

char *truth_strndup(const char *text, size_t most)
{
    return strndup(text, most);
}

void *truth_sbrk(ptrdiff_t by)
{
    return sbrk(by);
}

/* Back to `end`, but only if nobody else has moved the end of the heap since: 0 if that worked. */
int truth_sbrk_back(void *end, ptrdiff_t by)
{
    if ((char *)sbrk(0) != (char *)end + by)
        return -1;
    return sbrk(-by) == (void *)-1 ? -1 : 0;
}

/* The same by brk(), which is told where the end shall be: where it was before, and back to there. */
void *truth_brk(ptrdiff_t by)
{
    char *end = sbrk(0);
    return brk(end + by) == 0 ? end : NULL;
}

int truth_brk_back(void *end, ptrdiff_t by)
{
    return (char *)sbrk(0) == (char *)end + by ? brk(end) : -1;
}

/* --- mappings --- */

static void *or_null(void *mapped)
{
    return mapped == MAP_FAILED ? NULL : mapped;
}

void *truth_mmap(size_t size)
{
    return or_null(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* Address space and no memory: as much as anybody could want. */
void *truth_mmap_reserve(size_t size)
{
    return or_null(mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

/* Over whatever is there. */
void *truth_mmap_fixed(void *address, size_t size)
{
    return or_null(mmap(address, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

void *truth_mmap_file(int fd, size_t size)
{
    return or_null(mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0));
}

int truth_munmap(void *address, size_t size)
{
    return munmap(address, size);
}

/* With no place given: with MREMAP_DONTUNMAP the kernel takes what is in that register for one, unasked. */
void *truth_mremap(void *address, size_t old_size, size_t new_size, int flags)
{
    return or_null(mremap(address, old_size, new_size, flags, NULL));
}

/* To another place, for sure: what lay there is given up. */
void *truth_mremap_fixed(void *address, size_t old_size, size_t new_size, void *there)
{
    return or_null(mremap(address, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, there));
}

/* --- many --- */

/* Blocks that live for no time at all. */
void truth_brief(size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++)
        free(malloc(size));
}

/* Blocks that outlive a page each: those are not temporary, for a page is memory, too. */
void truth_around(size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        void *block = malloc(size);
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        free(block);
        if (page != MAP_FAILED)
            munmap(page, 4096);
    }
}

/* `count` blocks of `size` bytes into an array of the caller's. */
void truth_fill(void **blocks, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++)
        blocks[i] = malloc(size);
}

void truth_empty(void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

/* Blocks that wander between threads: each call puts `count` fresh blocks, one after the other, into
 * slots that all threads share, and frees what it finds there. An address that one thread frees is soon
 * given to another, so events that are put in the wrong order are seen as blocks that never die. */
enum { SLOTS = 16, SIZES = 4 };
static void *slots[SLOTS];

void truth_churn(size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1103515245U + 12345U;
        void *block = malloc(100 + 16 * ((size_t)i % SIZES));
        free(__atomic_exchange_n(&slots[(seed >> 16) % SLOTS], block, __ATOMIC_ACQ_REL));
    }
}

void truth_churn_end(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        free(__atomic_exchange_n(&slots[i], NULL, __ATOMIC_ACQ_REL));
}

/* --- threads and signals of C --- */

struct order {
    size_t count, size;
    void (*callback)(void);
};

static void *obey(void *argument)
{
    const struct order *order = argument;
    for (size_t i = 0; i < order->count; i++)
        free(malloc(order->size));
    if (order->callback)
        order->callback();
    return NULL;
}

static int in_thread(struct order order)
{
    pthread_t thread;
    int r = pthread_create(&thread, NULL, obey, &order);
    return r ? r : pthread_join(thread, NULL);
}

/* In a thread that Python has never heard of. */
int truth_in_thread(size_t count, size_t size)
{
    return in_thread((struct order){.count = count, .size = size});
}

/* The same, but the thread calls Python. */
int truth_callback_in_thread(void (*callback)(void))
{
    return in_thread((struct order){.callback = callback});
}

void truth_callback(void (*callback)(void), size_t times)
{
    for (size_t i = 0; i < times; i++)
        callback();
}

static volatile size_t signal_size;
static volatile sig_atomic_t signals_seen;

static void on_signal(int number)
{
    (void)number;
    int saved = errno;
    /* Not allowed in general; here the program is known not to be in malloc. */
    free(malloc(signal_size));
    signals_seen++;
    errno = saved;
}

int truth_allocate_on_signal(int number, size_t size)
{
    signal_size = size;
    return sigaction(number, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART},
                     NULL);
}

int truth_raise(int number)
{
    return raise(number);
}

/* A storm: a thread of C signals this one while it allocates. malloc is no place to be interrupted for another
 * malloc, but pages may be mapped from anywhere: who watches both is interrupted by itself. */
static void on_storm(int number)
{
    (void)number;
    int saved = errno;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED)
        munmap(page, 4096);
    signals_seen++;
    errno = saved;
}

struct storm {
    pthread_t target;
    size_t signals;
    volatile int over;
};

static void *rain(void *argument)
{
    struct storm *storm = argument;
    for (size_t i = 0; i < storm->signals; i++)
        pthread_kill(storm->target, SIGUSR2);
    storm->over = 1;
    return NULL;
}

/* `count` blocks at least, and on until the last signal was sent. Returns how many blocks that were. */
size_t truth_storm(size_t count, size_t signals)
{
    struct storm storm = {.target = pthread_self(), .signals = signals};
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_storm, .sa_flags = SA_RESTART}, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, rain, &storm) != 0)
        return 0;
    size_t made = 0;
    for (; made < count || !storm.over; made++)
        free(malloc(48));
    pthread_join(thread, NULL);
    return made;
}

long truth_signals_seen(void)
{
    return signals_seen;
}

/* --- the end --- */

static size_t destructor_size;

/* After the interpreter's end, where no Python is left to be charged. */
void truth_allocate_at_the_end(size_t size)
{
    destructor_size = size;
}

__attribute__((destructor)) static void last_words(void)
{
    if (destructor_size > 0)
        free(malloc(destructor_size));
}

/* A thread that ends with a block in a key whose destructor gives it back; before that another, given back by the destructor of a
 * key that is only set then. */
static pthread_key_t first_key, second_key;
static size_t late_size;

static void free_late(void *block)
{
    free(block);
}

static void free_and_set(void *block)
{
    free(block);
    pthread_setspecific(second_key, malloc(late_size));
}

static void *end_late(void *argument)
{
    (void)argument;
    pthread_setspecific(first_key, malloc(late_size));
    return NULL;
}

int truth_late_threads(size_t count, size_t size)
{
    late_size = size;
    pthread_key_create(&first_key, free_and_set);
    pthread_key_create(&second_key, free_late);
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, end_late, NULL) != 0)
            return -1;
        pthread_join(thread, NULL);
    }
    return 0;
}

/* malloc and free for ever, for a thread that nobody waits for. */
void truth_for_ever(size_t size)
{
    for (;;)
        free(malloc(size));
}
