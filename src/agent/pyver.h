/* CPython as the guest meets it: functions by dlsym, a few offsets, and which version it is. The one
 * room of the agent that knows versions; it includes no Python header, so one library serves all.
 *
 * Python objects are `py_object *`, never looked into but through what is declared here. Everything
 * but pyver_load() needs the GIL. */
#ifndef PYROMETER_AGENT_PYVER_H
#define PYROMETER_AGENT_PYVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct py_object py_object;
typedef struct py_frame py_frame;
typedef struct py_inner py_inner; /* the interpreter's own frame, 3.11 */
typedef struct py_tstate py_tstate;

/* A C profile or trace function, and what it is called for. */
typedef int (*py_tracefunc)(py_object *obj, py_frame *frame, int what, py_object *arg);
enum py_what {
    PY_WHAT_CALL = 0,
    PY_WHAT_EXCEPTION = 1,
    PY_WHAT_LINE = 2,
    PY_WHAT_RETURN = 3,
    PY_WHAT_C_CALL = 4,
    PY_WHAT_C_EXCEPTION = 5,
    PY_WHAT_C_RETURN = 6,
    PY_WHAT_OPCODE = 7,
};

typedef py_object *(*py_vectorcall)(py_object *self, py_object *const *args, size_t nargs,
                                    py_object *names);

/* PyMemAllocatorEx, and the domains it is for. */
struct py_allocator {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t count, size_t size);
    void *(*realloc)(void *ctx, void *block, size_t size);
    void (*free)(void *ctx, void *block);
};
struct py_arenas { /* PyObjectArenaAllocator */
    void *ctx;
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *at, size_t size);
};
enum { PY_DOMAIN_RAW = 0, PY_DOMAIN_MEM = 1, PY_DOMAIN_OBJECT = 2, PY_DOMAINS = 3 };

/* name, returns, arguments. Those of the first list must be there, or the guest leaves. */
#define PYVER_NEEDED(X)                                                                            \
    X(PySys_AddAuditHook, int, (int (*)(const char *, py_object *, void *), void *))               \
    X(Py_IsInitialized, int, (void))                                                               \
    X(Py_GetVersion, const char *, (void))                                                         \
    X(PySys_GetObject, py_object *, (const char *))                                                \
    X(PyObject_GetAttrString, py_object *, (py_object *, const char *))                            \
    X(PyObject_CallFunctionObjArgs, py_object *, (py_object *, ...))                               \
    X(PyLong_FromLong, py_object *, (long))                                                        \
    X(PyLong_AsLong, long, (py_object *))                                                          \
    X(PyUnicode_AsUTF8AndSize, const char *, (py_object *, ptrdiff_t *))                           \
    X(PyUnicode_AsEncodedString, py_object *, (py_object *, const char *, const char *))           \
    X(PyErr_Fetch, void, (py_object **, py_object **, py_object **))                               \
    X(PyErr_Restore, void, (py_object *, py_object *, py_object *))                                \
    X(PyErr_Clear, void, (void))                                                                   \
    X(Py_IncRef, void, (py_object *))                                                              \
    X(Py_DecRef, void, (py_object *))                                                              \
    X(PyType_FromSpec, py_object *, (void *))                                                      \
    X(PyType_GenericAlloc, py_object *, (py_object *, ptrdiff_t))                                  \
    X(PyEval_SetProfile, void, (py_tracefunc, py_object *))                                        \
    X(PyEval_SetTrace, void, (py_tracefunc, py_object *))                                          \
    X(PyThreadState_Get, py_tstate *, (void))                                                      \
    X(PyEval_GetFrame, py_frame *, (void))                                                         \
    X(PyEval_GetBuiltins, py_object *, (void))                                                     \
    X(PyEval_GetGlobals, py_object *, (void))                                                      \
    X(PyDict_New, py_object *, (void))                                                             \
    X(PyDict_SetItemString, int, (py_object *, const char *, py_object *))                         \
    X(PyDict_GetItemString, py_object *, (py_object *, const char *))                              \
    X(Py_CompileString, py_object *, (const char *, const char *, int))                            \
    X(PyEval_EvalCode, py_object *, (py_object *, py_object *, py_object *))                       \
    X(Py_AddPendingCall, int, (int (*)(void *), void *))                                           \
    X(PyThread_get_thread_ident, unsigned long, (void))                                            \
    X(PyErr_Occurred, py_object *, (void))                                                         \
    X(PyErr_WriteUnraisable, void, (py_object *))                                                  \
    X(PyImport_ImportModule, py_object *, (const char *))                                          \
    X(PyModule_GetDict, py_object *, (py_object *))                                                \
    X(PyDict_GetItemWithError, py_object *, (py_object *, py_object *))                            \
    X(PyList_New, py_object *, (ptrdiff_t))                                                        \
    X(PyList_Append, int, (py_object *, py_object *))                                              \
    X(PyObject_GC_UnTrack, void, (void *))                                                         \
    X(PyObject_GenericGetAttr, py_object *, (py_object *, py_object *))                            \
    X(_PyType_Lookup, py_object *, (py_object *, py_object *))                                     \
    X(PyType_IsSubtype, int, (py_object *, py_object *))                                           \
    X(PyCFunction_NewEx, py_object *, (void *, py_object *, py_object *))                          \
    X(PyLong_FromUnsignedLong, py_object *, (unsigned long))                                       \
    X(PyLong_AsLongLongAndOverflow, long long, (py_object *, int *))                               \
    X(PyUnicode_FromString, py_object *, (const char *))                                           \
    X(PyUnicode_GetLength, ptrdiff_t, (py_object *))                                               \
    X(PyUnicode_ReadChar, uint32_t, (py_object *, ptrdiff_t))                                      \
    X(PyGILState_GetThisThreadState, py_tstate *, (void))                                          \
    X(PyMem_GetAllocator, void, (int domain, struct py_allocator *))                               \
    X(PyMem_SetAllocator, void, (int domain, const struct py_allocator *))

/* These by version; NULL where they are not. */
#define PYVER_OPTIONAL(X)                                                                          \
    X(_PyEval_SetProfile, int, (py_tstate *, py_tracefunc, py_object *))                           \
    X(_PyEval_SetTrace, int, (py_tstate *, py_tracefunc, py_object *))                             \
    X(PyObject_GetArenaAllocator, void, (struct py_arenas *))                                      \
    X(PyObject_SetArenaAllocator, void, (const struct py_arenas *))                                \
    X(PyFrame_GetBack, py_frame *, (py_frame *))                                                   \
    X(PyFrame_GetCode, py_object *, (py_frame *))                                                  \
    X(PyInterpreterState_Main, void *, (void))                                                     \
    X(PyInterpreterState_Head, void *, (void))                                                     \
    X(PyInterpreterState_ThreadHead, py_tstate *, (void *))                                        \
    X(PyThreadState_Next, py_tstate *, (py_tstate *))                                              \
    X(PyThreadState_Swap, py_tstate *, (py_tstate *))                                              \
    X(_PyMem_GetCurrentAllocatorName, const char *, (void))

/* Types whose exact instances the guest looks into. */
#define PYVER_TYPES(X)                                                                             \
    X(bool_type, PyBool_Type)                                                                      \
    X(long_type, PyLong_Type)                                                                      \
    X(float_type, PyFloat_Type)                                                                    \
    X(unicode_type, PyUnicode_Type)                                                                \
    X(bytes_type, PyBytes_Type)                                                                    \
    X(bytearray_type, PyByteArray_Type)                                                            \
    X(list_type, PyList_Type)                                                                      \
    X(tuple_type, PyTuple_Type)                                                                    \
    X(dict_type, PyDict_Type)                                                                      \
    X(set_type, PySet_Type)                                                                        \
    X(frozenset_type, PyFrozenSet_Type)                                                            \
    X(code_type, PyCode_Type)                                                                      \
    X(cell_type, PyCell_Type)                                                                      \
    X(module_type, PyModule_Type)                                                                  \
    X(true_object, _Py_TrueStruct)

struct pyver {
    int minor; /* 8 to 15; 0: not loaded */
    char version[32];
    bool has_monitoring;     /* 3.12+ */
    bool slows_instructions; /* 3.10, 3.11: all of them, while a profile function is set */
    bool counts_calls;       /* 3.11: of each code object, at code_warmup */
    /* Line events of long functions cost microseconds: their lines are looked up one by one. Mended
     * in 3.13.3 (gh-127953). */
    bool has_slow_lines;
#define X(name, type, args) type(*name) args;
    PYVER_NEEDED(X)
    PYVER_OPTIONAL(X)
#undef X
    /* under two names, as the versions have it */
    ptrdiff_t (*request_extra)(void (*)(void *));
    int (*set_extra)(py_object *code, ptrdiff_t index, void *value);
    int (*get_extra)(py_object *code, ptrdiff_t index, void **value);
    py_tstate *(*current_thread)(void); /* NULL where nobody holds the GIL */
    int (*is_finalizing)(void);         /* may be NULL */
    /* data */
    py_object *none;
    py_object *cfunction_type, *cmethod_type /* 3.9+ */, *method_descr_type;
#define X(name, symbol) py_object *name;
    PYVER_TYPES(X)
#undef X
    /* offsets */
    uint32_t code_arguments; /* how many, positional only, keyword only: three numbers */
    uint32_t code_names;     /* the tuple of names of locals, arguments first */
    uint32_t frame_locals;   /* 3.8 to 3.10: in the frame object */
    uint32_t inner_locals;   /* 3.11 and later: in the interpreter's frame */
    uint32_t gc_callbacks;   /* roughly: where to look in the interpreter's state for the pair */
    uint32_t code_flags, code_extra;
    uint32_t code_warmup;  /* 3.11 */
    uint32_t frame_code;   /* 3.8: in the frame object */
    uint32_t frame_back;   /* 3.8 */
    uint32_t frame_lasti;  /* 3.8 to 3.10: index of the last instruction, -1 before the first */
    uint32_t frame_lineno; /* 3.8 to 3.11: the line, while a trace function is told of it */
    uint32_t frame_inner;  /* 3.11: the interpreter frame of a frame object */
    uint32_t inner_code, inner_instr; /* 3.11 */
    uint32_t code_bytes;              /* 3.8 to 3.10: the bytes object with the instructions */
    uint32_t code_adaptive;           /* 3.11: the instructions themselves */
    uint32_t tstate_profilefunc, tstate_profileobj, tstate_use_tracing; /* 3.8 */
    uint32_t tstate_frame, cframe_frame; /* 3.12+: way to the running frame, see pyver_running() */
};

extern struct pyver py; /* the guest's one knowledge of its host; written once by pyver_load() */

/* Finds everything, before the interpreter is initialised. False: no CPython, or not one we know. */
bool pyver_load(void);

static inline py_object *py_type(const py_object *o)
{
    return *(py_object *const *)((const char *)o + 8);
}

static inline void *py_pointer(const void *o, uint32_t offset)
{
    return *(void *const *)((const char *)o + offset);
}

static inline uint32_t py_u32(const void *o, uint32_t offset)
{
    return *(const uint32_t *)((const char *)o + offset);
}

/* Does the interpreter end? What it has is let go then. */
static inline bool pyver_ends(void)
{
    return py.is_finalizing && py.is_finalizing();
}

/* Where in the interpreter's own state this address stands; NULL: nowhere. */
void **pyver_find_in_runtime(const void *address);

/* Where the interpreter keeps how many interpreters it has made; to be asked while there is one. NULL: not found. */
const _Atomic int64_t *pyver_interpreters_made(void);

/* The code object of a frame, borrowed. */
py_object *pyver_frame_code(py_frame *frame);

/* Python's debugging allocators have marks before and after each block: its size, its domain, bytes that must not change. Writes
 * those of raw memory around `size` bytes, which begin PY_DEBUG_BEFORE bytes into the block. */
enum { PY_DEBUG_BEFORE = 16, PY_DEBUG_AFTER = 16 };
void pyver_mark_debug_block(char *block, size_t size);

/* The frame that called it, or NULL; borrowed. */
py_frame *pyver_frame_back(py_frame *frame);

/* Below 3.12, for a frame of a generator's code: has it run before? And has it just yielded? */
bool pyver_frame_started(py_frame *frame);
bool pyver_frame_yields(py_frame *frame);

/* 3.11, of an interpreter frame: does a generator hold it, has that run before, is it suspended? */
bool pyver_inner_is_generator(const py_inner *frame);
bool pyver_inner_has_started(const py_inner *frame);
bool pyver_inner_is_suspended(const py_inner *frame);

/* 3.8 to 3.10: how many calls deep a thread is. */
int pyver_depth(const py_tstate *t);

/* 3.12+: what tells the running frame of this thread from others; for generators it stays the same
 * from resume to resume. */
static inline uint64_t pyver_running(void)
{
    const char *t = (const char *)py.PyThreadState_Get();
    const void *at = py_pointer(t, py.tstate_frame);
    return (uint64_t)(uintptr_t)(py.cframe_frame == UINT32_MAX ? at
                                                               : py_pointer(at, py.cframe_frame));
}

/* The definition of a C function behind a callable; NULL if it is something else. */
static inline void *py_c_function(const py_object *callable)
{
    const py_object *type = py_type(callable);
    if (type == py.cfunction_type || type == py.cmethod_type)
        return py_pointer(callable, 16);
    if (type == py.method_descr_type)
        return py_pointer(callable, 40);
    return NULL;
}

/* The type that a method descriptor belongs to, borrowed. */
static inline py_object *py_descr_owner(const py_object *descr)
{
    return py_pointer(descr, 16);
}

/* An int that fits 30 bits, without asking Python. */
static inline uint32_t pyver_small_int(const py_object *number)
{
    enum { DIGIT = 24 }; /* after the head and the size or tag, from 3.8 to 3.15 */
    return py_u32(number, DIGIT);
}

/* 3.12+: an instruction of a generator's code, by its offset: is it one of those that make the generator, where it waits until it is
 * started? They stand before the first that can be traced, whose number is kept beside the slots. */
static inline bool pyver_is_before_start(const py_object *code, const py_object *offset)
{
    enum { FIRST_BEFORE_EXTRA = 8, UNIT = 2 };
    return pyver_small_int(offset) < py_u32(code, py.code_extra - FIRST_BEFORE_EXTRA) * UNIT;
}

/* Below 3.12: has its thread finished making it? On 3.11 it is in the list before, and nobody may set anything. */
bool pyver_is_made(const py_tstate *t);

/* Sets the C profile function of another thread; the caller holds the GIL. Below 3.12. */
void pyver_set_profile(py_tstate *t, py_tracefunc func);
/* The same of a state that has just been made, by the thread whose it is and without the GIL. */
void pyver_set_first_profile(py_tstate *t, py_tracefunc func);
bool pyver_has_profile(py_tstate *t);
/* The same of the trace function. */
void pyver_set_trace(py_tstate *t, py_tracefunc func);
bool pyver_has_trace(py_tstate *t);
/* Whose it is. */
py_tracefunc pyver_trace(py_tstate *t);

/* The name of a type, as its C struct has it. */
static inline const char *pyver_type_name(const py_object *type)
{
    enum { TP_NAME = 24 };
    return py_pointer(type, TP_NAME);
}

/* The type that has the method of this definition, for an object of type `type`, which may have inherited it or have one of its
 * own in its place; NULL: none has, as it is with class methods. Borrowed. */
py_object *pyver_method_owner(py_object *type, const void *definition);

static inline double pyver_real(const py_object *real)
{
    enum { VALUE = 16 };
    double value;
    __builtin_memcpy(&value, (const char *)real + VALUE, sizeof value);
    return value;
}

/* Of an exact list, tuple, dict, set, frozenset or bytearray, whose type it is told; -1 for others. */
ptrdiff_t pyver_container_length(const py_object *o, const py_object *type);
py_object *pyver_list_item(const py_object *list, ptrdiff_t i);  /* borrowed */
py_object *pyver_tuple_item(const py_object *tuple, uint32_t i); /* borrowed; NULL past its end */

/* What a function takes: `named` arguments, then, as the case may be, the rest as a tuple (its place is
 * `rest`) and as a dict. */
struct pyver_arguments {
    uint32_t count, named, rest;
};
void pyver_code_arguments(const py_object *code, struct pyver_arguments *ret);
const py_object *pyver_argument_name(const py_object *code, uint32_t i);

/* The locals of a frame: of a frame object (below 3.12), of an interpreter frame (3.11 and later). */
py_object *const *pyver_frame_locals(py_frame *frame);
static inline py_object *const *pyver_inner_locals(uint64_t inner)
{
    return (py_object *const *)((const char *)(uintptr_t)inner + py.inner_locals);
}
/* An argument, when the function begins; NULL: it cannot be told. */
const py_object *pyver_argument(const py_object *code, py_object *const *locals, uint32_t i);

/* The code of whoever called the function that runs, NULL if nobody did; borrowed. */
py_object *pyver_caller_code(void);

/* Where the interpreter keeps its pointer to gc.callbacks; NULL: not found. */
py_object **pyver_gc_callbacks(const py_object *garbage, const py_object *callbacks);

/* A builtin function that takes arguments by position; NULL with an error set. */
typedef py_object *(*py_fastcall)(py_object *self, py_object *const *args, ptrdiff_t n);
py_object *pyver_function(const char *name, py_fastcall call);

/* The bytes in a bytes object. */
const uint8_t *pyver_bytes(const py_object *bytes, size_t *ret_len);

/* An object that is called as `func`, by the quickest way; NULL on failure, with no error set. Whenever one of them is let go by
 * all who had it, `gone` is called, which is the same for all. */
py_object *pyver_callback(py_vectorcall func, void (*gone)(void));

#endif
