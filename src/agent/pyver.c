#include "agent/pyver.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

struct pyver py;

enum { OLDEST = 8, NEWEST = 15 };
#define NOT_THERE UINT32_MAX

/* Where things lie in 64-bit builds with a GIL, read off the headers of each version; constant within
 * a minor version. (frame_started and frame_yields look at frames only below 3.12.) */
static const struct offsets {
    uint32_t code_flags, code_extra, code_bytes, code_adaptive;
    uint32_t frame_code, frame_back, frame_lasti, frame_lineno, frame_inner;
    uint32_t inner_code, inner_instr;
    uint32_t tstate_profilefunc;
    uint32_t tstate_frame, cframe_frame;
    uint32_t code_arguments, frame_locals, inner_locals, gc_callbacks;
} OFFSETS[NEWEST - OLDEST + 1] = {
#define N NOT_THERE
    /* code: flags extra bytes adaptive; frame: code back lasti lineno inner; inner: code instr;
     * thread; code: arguments; frame, inner: locals; interpreter: gc */
    {36, 144, 48, N, 32, 24, 104, 108, N, N, N, 56, N, N, 16, 360, N, 552}, /* 3.8 */
    {36, 144, 48, N, 32, 24, 104, 108, N, N, N, 56, N, N, 16, 360, N, 824},
    {36, 144, 48, N, 32, 24, 96, 100, N, N, N, 56, N, N, 16, 352, N, 824},
    {48, 176, N, 184, N, N, N, 40, 24, 32, 56, 64, N, N, 56, N, 72, 856}, /* 3.11 */
    {48, 184, N, N, N, N, N, N, N, N, N, N, 56, 0, 52, N, 72, 320},
    {48, 192, N, N, N, N, N, N, N, N, N, N, 72, N, 52, N, 72, 7608}, /* 3.13 */
    {48, 200, N, N, N, N, N, N, N, N, N, N, 72, N, 52, N, 80, 7608},
    {48, 200, N, N, N, N, N, N, N, N, N, N, 72, N, 52, N, 80, 7528},
#undef N
};

/* Fields of a thread state that follow one another in 3.8: two functions, then their objects. */
enum { TRACEFUNC_AFTER_FUNC = 8, PROFILEOBJ_AFTER_FUNC = 16, USE_TRACING_BEFORE_FUNC = 8 };
/* From 3.10 on there is a pointer before them, to where that is said. */
enum { CFRAME_BEFORE_FUNC = 8 };

/* Instructions that leave a generator without ending it; the same numbers in 3.8 to 3.11. */
enum { OP_YIELD_FROM = 72, OP_RETURN_GENERATOR = 75, OP_YIELD_VALUE = 86 };

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static void *find_either(const char *name, const char *older)
{
    void *f = find(name);
    return f ? f : find(older);
}

static bool take_version(void)
{
    const char *text = py.Py_GetVersion(); /* "3.11.7 (main, …" */
    if (strncmp(text, "3.", 2) != 0)
        return false;
    char *end;
    long minor = strtol(text + 2, &end, 10);
    if (minor < OLDEST || minor > NEWEST || *end != '.' || strstr(text, "free-threading"))
        return false;
    size_t len = strcspn(text, " ");
    if (len >= sizeof py.version)
        return false;
    memcpy(py.version, text, len);
    py.minor = (int)minor;
    py.has_monitoring = minor >= 12;
    py.slows_instructions = minor == 10 || minor == 11;
    py.counts_calls = minor == 11;
    enum { MENDED_MICRO = 3 };
    py.has_slow_lines = minor == 12 || (minor == 13 && strtol(end + 1, NULL, 10) < MENDED_MICRO);
    return true;
}

static void take_offsets(void)
{
    const struct offsets *o = &OFFSETS[py.minor - OLDEST];
    py.code_flags = o->code_flags;
    py.code_extra = o->code_extra;
    py.code_warmup = o->code_flags + (uint32_t)sizeof(int); /* behind it, in 3.11 */
    py.code_bytes = o->code_bytes;
    py.code_adaptive = o->code_adaptive;
    py.frame_code = o->frame_code;
    py.frame_back = o->frame_back;
    py.frame_lasti = o->frame_lasti;
    py.frame_lineno = o->frame_lineno;
    py.frame_inner = o->frame_inner;
    py.inner_code = o->inner_code;
    py.inner_instr = o->inner_instr;
    py.tstate_profilefunc = o->tstate_profilefunc;
    py.tstate_frame = o->tstate_frame;
    py.cframe_frame = o->cframe_frame;
    py.code_arguments = o->code_arguments;
    py.code_names = py.minor < 11 ? 72 : 96;
    py.frame_locals = o->frame_locals;
    py.inner_locals = o->inner_locals;
    py.gc_callbacks = o->gc_callbacks;
}

bool pyver_load(void)
{
#define X(name, type, args)                                                                        \
    if (!(py.name = (type(*) args)find(#name)))                                                    \
        return false;
    PYVER_NEEDED(X)
#undef X
#define X(name, type, args) py.name = (type(*) args)find(#name);
    PYVER_OPTIONAL(X)
#undef X
    py.request_extra = (ptrdiff_t(*)(void (*)(void *)))find_either(
        "PyUnstable_Eval_RequestCodeExtraIndex", "_PyEval_RequestCodeExtraIndex");
    py.set_extra = (int (*)(py_object *, ptrdiff_t, void *))find_either("PyUnstable_Code_SetExtra",
                                                                        "_PyCode_SetExtra");
    py.get_extra = (int (*)(py_object *, ptrdiff_t, void **))find_either("PyUnstable_Code_GetExtra",
                                                                         "_PyCode_GetExtra");
    py.current_thread = (py_tstate * (*)(void))
        find_either("PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet");
    py.is_finalizing = (int (*)(void))find_either("Py_IsFinalizing", "_Py_IsFinalizing");
#define X(name, symbol)                                                                            \
    if (!(py.name = find(#symbol)))                                                                \
        return false;
    PYVER_TYPES(X)
#undef X
    py.none = find("_Py_NoneStruct");
    py.cfunction_type = find("PyCFunction_Type");
    py.cmethod_type = find("PyCMethod_Type");
    py.method_descr_type = find("PyMethodDescr_Type");
    if (!py.current_thread || !py.request_extra || !py.set_extra || !py.get_extra || !py.none ||
        !py.cfunction_type || !py.method_descr_type || !take_version())
        return false;
    take_offsets();
    if (py.has_monitoring)
        return true;
    return (py.minor == 8 && py.PyThreadState_Swap) ||
           (py._PyEval_SetProfile && py._PyEval_SetTrace && py.PyFrame_GetCode &&
            py.PyFrame_GetBack);
}

void pyver_mark_debug_block(char *block, size_t size)
{
    enum { WORD = 8, FORBIDDEN = 0xfd };
    memset(block, FORBIDDEN, size + PY_DEBUG_BEFORE + PY_DEBUG_AFTER);
    for (unsigned i = 0; i < WORD; i++) /* the size, its highest byte first */
        block[i] = (char)(size >> 8 * (WORD - 1 - i));
    block[WORD] = 'r'; /* of the domain for raw memory */
}

void **pyver_find_in_runtime(const void *address)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    void **at = find("_PyRuntime");
    if (!at || !dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return NULL;
    for (void **end = at + symbol->st_size / sizeof *at; at < end; at++)
        if (*at == address)
            return at;
    return NULL;
}

const _Atomic int64_t *pyver_interpreters_made(void)
{
    void *main = py.PyInterpreterState_Main ? py.PyInterpreterState_Main() : NULL;
    /* side by side: the last that was made, the main one, the next one's number */
    void **last = main ? pyver_find_in_runtime(main) : NULL;
    return last && last[1] == main && last[2] == (void *)1 ? (const _Atomic int64_t *)&last[2]
                                                           : NULL;
}

py_object *pyver_frame_code(py_frame *frame)
{
    if (py.frame_code != NOT_THERE)
        return py_pointer(frame, py.frame_code);
    if (py.frame_inner != NOT_THERE)
        return py_pointer(py_pointer(frame, py.frame_inner), py.inner_code);
    py_object *code = py.PyFrame_GetCode(frame);
    py.Py_DecRef(code); /* the frame keeps it */
    return code;
}

py_frame *pyver_frame_back(py_frame *frame)
{
    if (py.frame_back != NOT_THERE)
        return py_pointer(frame, py.frame_back);
    py_frame *back = py.PyFrame_GetBack(frame);
    if (back)
        py.Py_DecRef((py_object *)back); /* its callee keeps it, while that runs */
    return back;
}

/* The instruction a frame is at, and its index; the index is below 0 before the first. */
static const uint8_t *instruction(py_frame *frame, int32_t *ret_index)
{
    if (py.frame_inner != NOT_THERE) {
        const char *inner = py_pointer(frame, py.frame_inner);
        const uint8_t *first = (const uint8_t *)py_pointer(inner, py.inner_code) + py.code_adaptive;
        const uint8_t *at = py_pointer(inner, py.inner_instr);
        *ret_index = (int32_t)((at - first) / 2);
        return at;
    }
    enum { BYTES_HEAD = 32 };
    int32_t lasti = (int32_t)py_u32(frame, py.frame_lasti);
    const uint8_t *first =
        (const uint8_t *)py_pointer(pyver_frame_code(frame), py.code_bytes) + BYTES_HEAD;
    *ret_index = lasti;
    return first + (py.minor >= 10 ? 2 * (ptrdiff_t)lasti : (ptrdiff_t)lasti);
}

bool pyver_frame_started(py_frame *frame)
{
    int32_t index;
    const uint8_t *at = instruction(frame, &index);
    if (py.frame_inner == NOT_THERE)
        return index >= 0;
    /* 3.11 reports the call from a RESUME instruction, whose argument is 0 at the start only; but
     * what is thrown in arrives where it had yielded */
    return index >= 0 && (at[1] != 0 || *at == OP_YIELD_VALUE);
}

bool pyver_frame_yields(py_frame *frame)
{
    int32_t index;
    const uint8_t *at = instruction(frame, &index);
    /* to wait, YIELD_FROM has stepped back before itself, so that it comes again */
    return index >= 0 && (*at == OP_YIELD_VALUE || (py.minor < 11 && at[2] == OP_YIELD_FROM));
}

bool pyver_inner_is_generator(const py_inner *frame)
{
    enum { OWNER = 69, OWNED_BY_GENERATOR = 1 };
    return ((const uint8_t *)frame)[OWNER] == OWNED_BY_GENERATOR;
}

bool pyver_inner_has_started(const py_inner *frame)
{
    /* the state says "executing" by now, but the instruction it stopped at tells: before its start that is the one that made the
     * generator. (Later it need not be a yield: what ends the awaited one by an exception steps behind the loop that waited.) */
    return *(const uint8_t *)py_pointer(frame, py.inner_instr) != OP_RETURN_GENERATOR;
}

bool pyver_inner_is_suspended(const py_inner *frame)
{
    enum { STATE_BEFORE = 5, SUSPENDED = -1 }; /* in the generator that holds the frame */
    return ((const int8_t *)frame)[-STATE_BEFORE] == SUSPENDED;
}

int pyver_depth(const py_tstate *t)
{
    enum { RECURSION_DEPTH = 32 };
    return (int)py_u32(t, RECURSION_DEPTH);
}

void pyver_set_profile(py_tstate *t, py_tracefunc func)
{
    if (py._PyEval_SetProfile) {
        if (py._PyEval_SetProfile(t, func, NULL) < 0)
            py.PyErr_Clear();
        return;
    }
    char *at = (char *)t + py.tstate_profilefunc;
    py_tracefunc tracing;
    memcpy(&tracing, at + 8, sizeof tracing); /* the trace function follows */
    memcpy(at, &func, sizeof func);
    memset(at + PROFILEOBJ_AFTER_FUNC, 0, sizeof(void *));
    int on = func || tracing;
    memcpy(at - USE_TRACING_BEFORE_FUNC, &on, sizeof on);
}

void pyver_set_first_profile(py_tstate *t, py_tracefunc func)
{
    enum { ALL_BITS = 255 }; /* 3.11 joins it to every instruction */
    char *at = (char *)t + py.tstate_profilefunc;
    char *use_tracing =
        py.minor < 10 ? at - USE_TRACING_BEFORE_FUNC : py_pointer(at - CFRAME_BEFORE_FUNC, 0);
    memcpy(at, &func, sizeof func);
    *(uint8_t *)use_tracing = ALL_BITS;
}

bool pyver_is_made(const py_tstate *t)
{
    return py.minor < 10 || py_pointer(t, py.tstate_profilefunc - CFRAME_BEFORE_FUNC) != NULL;
}

bool pyver_has_profile(py_tstate *t)
{
    return py_pointer(t, py.tstate_profilefunc) != NULL;
}

void pyver_set_trace(py_tstate *t, py_tracefunc func)
{
    if (py._PyEval_SetTrace) {
        if (py._PyEval_SetTrace(t, func, NULL) < 0)
            py.PyErr_Clear();
        return;
    }
    /* 3.8 keeps count of the threads that trace, and only the thread's own call does it right */
    py_tstate *me = py.PyThreadState_Swap(t);
    py.PyEval_SetTrace(func, NULL);
    py.PyThreadState_Swap(me);
}

py_tracefunc pyver_trace(py_tstate *t)
{
    py_tracefunc func;
    memcpy(&func, (char *)t + py.tstate_profilefunc + TRACEFUNC_AFTER_FUNC, sizeof func);
    return func;
}

bool pyver_has_trace(py_tstate *t)
{
    return pyver_trace(t) != NULL;
}

const uint8_t *pyver_bytes(const py_object *bytes, size_t *ret_len)
{
    enum { SIZE = 16, DATA = 32 };
    *ret_len = (size_t)py_pointer(bytes, SIZE);
    return (const uint8_t *)bytes + DATA;
}

/* --- values --- */

ptrdiff_t pyver_container_length(const py_object *o, const py_object *type)
{
    enum {
        SIZE = 16,
        SET_USED = 24
    }; /* the same in all versions; a dict counts its items there, too */
    uint32_t at = type == py.set_type || type == py.frozenset_type ? SET_USED : SIZE;
    bool known = at == SET_USED || type == py.list_type || type == py.tuple_type ||
                 type == py.dict_type || type == py.bytearray_type;
    return known ? (ptrdiff_t)py_pointer(o, at) : -1;
}

py_object *pyver_list_item(const py_object *list, ptrdiff_t i)
{
    enum { ITEMS = 24 };
    return ((py_object *const *)py_pointer(list, ITEMS))[i];
}

py_object *pyver_tuple_item(const py_object *tuple, uint32_t i)
{
    enum { SIZE = 16, ITEMS = 24, HASH = 8 }; /* the hash stands before the items from 3.14 on */
    if ((size_t)py_pointer(tuple, SIZE) <= i)
        return NULL;
    return py_pointer(tuple, ITEMS + (py.minor >= 14 ? HASH : 0) + 8 * i);
}

/* Each type of the order of resolution is asked for itself, since one before it may have another of that name. No code of the
 * program runs: its types' dicts are read past their classes. */
py_object *pyver_method_owner(py_object *type, const void *definition)
{
    enum { TP_MRO = 344 }; /* the same in all versions */
    const py_object *order = py_pointer(type, TP_MRO);
    py_object *name = py.PyUnicode_FromString(*(const char *const *)definition);
    py_object *owner = NULL, *t;
    if (name && order && py_type(order) == py.tuple_type)
        for (uint32_t i = 0; !owner && (t = pyver_tuple_item(order, i)); i++) {
            const py_object *found = py._PyType_Lookup(t, name);
            if (found && py_type(found) == py.method_descr_type &&
                py_c_function(found) == definition)
                owner = py_descr_owner(found);
        }
    if (name)
        py.Py_DecRef(name);
    else
        py.PyErr_Clear();
    return owner;
}

void pyver_code_arguments(const py_object *code, struct pyver_arguments *ret)
{
    enum { CO_VARARGS = 4, CO_VARKEYWORDS = 8, KEYWORD_ONLY = 8 };
    uint32_t flags = py_u32(code, py.code_flags);
    uint32_t named =
        py_u32(code, py.code_arguments) + py_u32(code, py.code_arguments + KEYWORD_ONLY);
    bool has_rest = flags & CO_VARARGS;
    *ret = (struct pyver_arguments){
        .count = named + has_rest + ((flags & CO_VARKEYWORDS) != 0),
        .named = named,
        .rest = has_rest ? named : UINT32_MAX,
    };
}

const py_object *pyver_argument_name(const py_object *code, uint32_t i)
{
    const py_object *name = pyver_tuple_item(py_pointer(code, py.code_names), i);
    return name ? name : py.none;
}

py_object *const *pyver_frame_locals(py_frame *frame)
{
    if (py.frame_inner != NOT_THERE)
        return pyver_inner_locals((uint64_t)(uintptr_t)py_pointer(frame, py.frame_inner));
    return (py_object *const *)((const char *)frame + py.frame_locals);
}

/* Below 3.11 an argument that an inner function uses has moved into a cell behind the locals. */
static const py_object *moved_argument(const py_object *code, py_object *const *locals, uint32_t i)
{
    enum { NLOCALS = 28, CELL_NAMES = 88 };
    const py_object *name = pyver_argument_name(code, i), *cells = py_pointer(code, CELL_NAMES);
    const py_object *cell_name;
    for (uint32_t k = 0; (cell_name = pyver_tuple_item(cells, k)); k++)
        if (cell_name == name)
            return locals[py_u32(code, NLOCALS) + k];
    return NULL;
}

const py_object *pyver_argument(const py_object *code, py_object *const *locals, uint32_t i)
{
    enum { CELL_CONTENT = 16, TAGS = 3 };
    const py_object *value = locals[i];
    if (!value && py.minor < 11)
        value = moved_argument(code, locals, i);
    if (py.minor >= 14) { /* references carry notes in their lowest bits */
        if (((uintptr_t)value & TAGS) == TAGS)
            return NULL;
        value = (const py_object *)((uintptr_t)value & ~(uintptr_t)TAGS);
    }
    if (value && py_type(value) == py.cell_type)
        value = py_pointer(value, CELL_CONTENT);
    return value;
}

py_object *pyver_caller_code(void)
{
    py_frame *frame = py.PyEval_GetFrame();
    py_frame *back = frame ? pyver_frame_back(frame) : NULL;
    return back ? pyver_frame_code(back) : NULL;
}

/* gc.garbage and gc.callbacks stand side by side in the interpreter's state, below 3.9 in the
 * runtime's: two pointers that are known, one after the other, near where they ought to be. */
py_object **pyver_gc_callbacks(const py_object *garbage, const py_object *callbacks)
{
    enum { AROUND = 512 }; /* bytes: what another build may have moved them by */
    char *state = py.minor == 8 ? find("_PyRuntime") : py.PyInterpreterState_Main();
    if (!state)
        return NULL;
    char *first = state + (py.gc_callbacks > AROUND ? py.gc_callbacks - AROUND : 0);
    char *end = state + py.gc_callbacks + AROUND;
    for (char *at = first; at < end; at += sizeof(void *))
        if (py_pointer(at, 0) == garbage && py_pointer(at, sizeof(void *)) == callbacks)
            return (py_object **)(at + sizeof(void *));
    return NULL;
}

struct method { /* PyMethodDef */
    const char *name;
    py_fastcall call;
    int flags;
    const char *doc;
};

py_object *pyver_function(const char *name, py_fastcall call)
{
    enum { METH_FASTCALL = 0x80 };
    static struct method methods[2]; /* the functions refer to them; there are no more */
    struct method *method = methods;
    if (method->call && method->call != call)
        method++;
    *method = (struct method){name, call, METH_FASTCALL, NULL};
    return py.PyCFunction_NewEx(method, NULL, NULL);
}

/* --- an object with a vectorcall slot and nothing else --- */

struct callback { /* a Python object: the head, then ours */
    char head[16];
    py_vectorcall call;
};

struct member { /* PyMemberDef */
    const char *name;
    int type;
    ptrdiff_t offset;
    int flags;
    const char *doc;
};

struct slot { /* PyType_Slot */
    int slot;
    void *pfunc;
};

struct spec { /* PyType_Spec */
    const char *name;
    int basicsize, itemsize;
    unsigned flags;
    const struct slot *slots;
};

static void (*callback_gone)(void);

static void on_callback_end(py_object *callback)
{
    (void)callback;
    callback_gone();
}

py_object *pyver_callback(py_vectorcall func, void (*gone)(void))
{
    enum { T_PYSSIZET = 19, READONLY = 1, TP_CALL = 50, TP_MEMBERS = 72, TP_FINALIZE = 80 };
    enum { FLAG_DEFAULT = 1 << 18, FLAG_VECTORCALL = 1 << 11 };
    static py_object *type; /* kept for good: callbacks may outlive everything */
    static const struct member members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct callback, call), READONLY, NULL},
        {0},
    };
    if (!type) {
        void *call = find("PyVectorcall_Call");
        const struct slot slots[] = {{TP_CALL, call},
                                     {TP_MEMBERS, (void *)members},
                                     {TP_FINALIZE, (void *)on_callback_end},
                                     {0}};
        callback_gone = gone;
        const struct spec spec = {"pyrometer.callback", sizeof(struct callback), 0,
                                  FLAG_DEFAULT | FLAG_VECTORCALL, slots};
        type = call ? py.PyType_FromSpec((void *)&spec) : NULL;
    }
    struct callback *c = type ? (struct callback *)py.PyType_GenericAlloc(type, 0) : NULL;
    if (!c) {
        py.PyErr_Clear();
        return NULL;
    }
    c->call = func;
    return (py_object *)c;
}
