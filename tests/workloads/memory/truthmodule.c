/* A real extension module: Python's three domains asked for exact sizes, by calls that allocate nothing of
 * their own (one argument, a constant; the result is None). One file serves every CPython with a GIL, for it
 * uses the stable ABI alone; its few names are declared here, so that no headers of that version are
 * needed. Each domain remembers the block it was asked for last.
 *
 *     raw.malloc(100)   raw.realloc(200)   raw.calloc(50)   raw.free(0)   raw.keep(0)
 *
 * are spelled raw_malloc and so on. */
#include <stddef.h>
#include <stdlib.h>

struct object {
    ptrdiff_t references;
    void *type;
};

struct method {
    const char *name;
    struct object *(*function)(struct object *self, struct object *argument);
    int flags;
    const char *documentation;
};

struct definition {
    struct object head;
    struct object *(*init)(void);
    ptrdiff_t index;
    struct object *copy;
    const char *name;
    const char *documentation;
    ptrdiff_t size;
    struct method *methods;
    void *slots, *traverse, *clear, *free;
};

enum { TAKES_ONE = 0x0008, ABI = 3 }; /* METH_O, PYTHON_ABI_VERSION */

extern struct object _Py_NoneStruct;
void Py_IncRef(struct object *);
size_t PyLong_AsSize_t(struct object *);
struct object *PyModule_Create2(struct definition *, int);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);

#define DOMAIN_FUNCTIONS(short, long)                                                              \
    void *long##Malloc(size_t);                                                                    \
    void *long##Calloc(size_t, size_t);                                                            \
    void *long##Realloc(void *, size_t);                                                           \
    void long##Free(void *);                                                                       \
    static void *short##_block;                                                                    \
    static struct object *short##_malloc(struct object *self, struct object *size)                 \
    {                                                                                              \
        (void)self;                                                                                \
        short##_block = long##Malloc(PyLong_AsSize_t(size));                                       \
        return none();                                                                             \
    }                                                                                              \
    static struct object *short##_calloc(struct object *self, struct object *size)                 \
    {                                                                                              \
        (void)self;                                                                                \
        short##_block = long##Calloc(1, PyLong_AsSize_t(size));                                    \
        return none();                                                                             \
    }                                                                                              \
    static struct object *short##_realloc(struct object *self, struct object *size)                \
    {                                                                                              \
        (void)self;                                                                                \
        void *block = long##Realloc(short##_block, PyLong_AsSize_t(size));                         \
        if (block)                                                                                 \
            short##_block = block;                                                                 \
        return none();                                                                             \
    }                                                                                              \
    static struct object *short##_free(struct object *self, struct object *nothing)                \
    {                                                                                              \
        (void)self, (void)nothing;                                                                 \
        long##Free(short##_block);                                                                 \
        short##_block = NULL;                                                                      \
        return none();                                                                             \
    }                                                                                              \
    static struct object *short##_keep(struct object *self, struct object *nothing)                \
    {                                                                                              \
        (void)self, (void)nothing;                                                                 \
        short##_block = NULL;                                                                      \
        return none();                                                                             \
    }

#define DOMAIN_METHODS(short)                                                                      \
    {#short "_malloc", short##_malloc, TAKES_ONE, NULL},                                           \
        {#short "_calloc", short##_calloc, TAKES_ONE, NULL},                                       \
        {#short "_realloc", short##_realloc, TAKES_ONE, NULL},                                     \
        {#short "_free", short##_free, TAKES_ONE, NULL},                                           \
    {                                                                                              \
#short "_keep", short##_keep, TAKES_ONE, NULL                                              \
    }

static struct object *none(void)
{
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

DOMAIN_FUNCTIONS(raw, PyMem_Raw)
DOMAIN_FUNCTIONS(mem, PyMem_)
DOMAIN_FUNCTIONS(object, PyObject_)

static void *volatile held; /* so that no compiler takes the block away */

/* libc from an extension, with the GIL and without it. */
static struct object *libc_malloc(struct object *self, struct object *size)
{
    (void)self;
    held = malloc(PyLong_AsSize_t(size));
    free(held);
    return none();
}

static struct object *libc_malloc_without_gil(struct object *self, struct object *size)
{
    (void)self;
    size_t bytes = PyLong_AsSize_t(size);
    void *state = PyEval_SaveThread();
    held = malloc(bytes);
    free(held);
    PyEval_RestoreThread(state);
    return none();
}

/* --- Python's allocators, replaced at run time --- */

struct allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};

enum { DOMAINS = 3 };
void PyMem_GetAllocator(int domain, struct allocator *);
void PyMem_SetAllocator(int domain, struct allocator *);

static struct allocator replaced[DOMAINS];

static void *pass_malloc(void *context, size_t size)
{
    const struct allocator *below = context;
    return below->malloc(below->context, size);
}

static void *pass_calloc(void *context, size_t count, size_t size)
{
    const struct allocator *below = context;
    return below->calloc(below->context, count, size);
}

static void *pass_realloc(void *context, void *block, size_t size)
{
    const struct allocator *below = context;
    return below->realloc(below->context, block, size);
}

static void pass_free(void *context, void *block)
{
    const struct allocator *below = context;
    below->free(below->context, block);
}

/* One that has need of libc for each block, as those have that keep books. */
static void *booking_malloc(void *context, size_t size)
{
    held = malloc(77);
    free(held);
    return pass_malloc(context, size);
}

static struct object *replace_by(void *(*function)(void *context, size_t size))
{
    for (int domain = 0; domain < DOMAINS; domain++) {
        PyMem_GetAllocator(domain, &replaced[domain]);
        struct allocator mine = {&replaced[domain], function, pass_calloc, pass_realloc, pass_free};
        PyMem_SetAllocator(domain, &mine);
    }
    return none();
}

/* Allocators of our own above those that are there, which do the work: as debuggers of memory do. */
static struct object *replace(struct object *self, struct object *nothing)
{
    (void)self, (void)nothing;
    return replace_by(pass_malloc);
}

static struct object *keep_books(struct object *self, struct object *nothing)
{
    (void)self, (void)nothing;
    return replace_by(booking_malloc);
}

static struct object *restore(struct object *self, struct object *nothing)
{
    (void)self, (void)nothing;
    for (int domain = 0; domain < DOMAINS; domain++)
        PyMem_SetAllocator(domain, &replaced[domain]);
    return none();
}

static struct method methods[] = {
    DOMAIN_METHODS(raw),
    DOMAIN_METHODS(mem),
    DOMAIN_METHODS(object),
    {"libc_malloc", libc_malloc, TAKES_ONE, NULL},
    {"libc_malloc_without_gil", libc_malloc_without_gil, TAKES_ONE, NULL},
    {"replace", replace, TAKES_ONE, NULL},
    {"keep_books", keep_books, TAKES_ONE, NULL},
    {"restore", restore, TAKES_ONE, NULL},
    {NULL, NULL, 0, NULL},
};

static struct definition definition = {
    .head = {.references = 1}, .name = "truthmodule", .size = -1, .methods = methods};

struct object *PyInit_truthmodule(void);

struct object *PyInit_truthmodule(void)
{
    return PyModule_Create2(&definition, ABI);
}
