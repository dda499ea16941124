/* Prints the layout of one CPython, as its own headers say it: one "field value" per line, in the
 * order and with the names of struct pylayout (src/remote/pylayout.h). From 3.13 on it also prints
 * "debug FIELD POSITION ALIGNMENT" lines: where in _Py_DebugOffsets the value of a field is to be
 * found, and what it must be a multiple of.
 *
 * Compiled by gen_pylayout.py against each version's internal headers; never linked with Python.
 * What headers do not say (structures private to a .c file, the meaning of numbers) is written here
 * by hand, with its source. */
#define Py_BUILD_CORE        1
#define Py_BUILD_CORE_MODULE 1
#include <Python.h> /* must come first */

#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#if PY_VERSION_HEX < 0x03090000
#include <internal/pycore_pystate.h>
#else
#include <internal/pycore_gil.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe_structs.h>
#endif
#if PY_VERSION_HEX >= 0x030B0000
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#else
/* Objects/dict-common.h of 3.8–3.10, which is not installed. */
struct _dictkeysobject {
    Py_ssize_t dk_refcnt;
    Py_ssize_t dk_size;
    void *dk_lookup;
    Py_ssize_t dk_usable;
    Py_ssize_t dk_nentries;
    char dk_indices[];
};
#endif
#if PY_VERSION_HEX >= 0x030A0000
#include <internal/pycore_moduleobject.h>
#else
/* Objects/moduleobject.c of 3.8 and 3.9. */
typedef struct {
    PyObject_HEAD PyObject *md_dict;
} PyModuleObject;
#endif

#define MINOR PY_MINOR_VERSION

/* Running maximum of the ends of the fields of one structure: its `size` in struct pylayout. */
static size_t covered;

static size_t cover(size_t offset, size_t size)
{
    if (offset + size > covered)
        covered = offset + size;
    return offset;
}

static void value(const char *name, size_t number)
{
    printf("%s %zu\n", name, number);
}

static void none(const char *name)
{
    printf("%s PYL_NONE\n", name);
}

static void word(const char *name, const char *text)
{
    printf("%s %s\n", name, text);
}

#define OFFSET(name, type, member)                                                                 \
    value(name, cover(offsetof(type, member), sizeof(((type *)0)->member)))

/* The structure's `size` is printed behind its fields. */
static void size_of_covered(const char *name)
{
    value(name, (covered + 7) & ~(size_t)7);
    covered = 0;
}

/* The kinds: facts of the interpreter's source, not of its headers. */
static void kinds(void)
{
    printf("major %d\nminor %d\n", PY_MAJOR_VERSION, MINOR);
    word("frames", MINOR <= 10   ? "PYL_FRAMES_HEAP"
                   : MINOR <= 12 ? "PYL_FRAMES_CFRAME"
                                 : "PYL_FRAMES_TSTATE");
    word("instr", MINOR <= 9    ? "PYL_INSTR_BYTE_INDEX"
                  : MINOR == 10 ? "PYL_INSTR_UNIT_INDEX"
                  : MINOR <= 12 ? "PYL_INSTR_PREV_PTR"
                                : "PYL_INSTR_NEXT_PTR");
    word("lines", MINOR <= 9    ? "PYL_LINES_LNOTAB"
                  : MINOR == 10 ? "PYL_LINES_PEP626"
                                : "PYL_LINES_LOCATION");
    word("dict_kind", MINOR <= 10   ? "PYL_DICT_OFFSET"
                      : MINOR == 11 ? "PYL_DICT_VALUES_311"
                      : MINOR == 12 ? "PYL_DICT_MANAGED_312"
                                    : "PYL_DICT_INLINE_313");
    /* Shim frames: 3.12 and 3.13 have the entry frame on the C stack, 3.15 has it owned by the
     * interpreter, 3.14 has both. 3.11 has none: every frame there has code. */
#if MINOR >= 15
    value("shim_owner_min", FRAME_OWNED_BY_INTERPRETER);
    value("shim_owner_max", FRAME_OWNED_BY_INTERPRETER);
#elif MINOR == 14
    value("shim_owner_min", FRAME_OWNED_BY_INTERPRETER);
    value("shim_owner_max", FRAME_OWNED_BY_CSTACK);
#elif MINOR >= 12
    value("shim_owner_min", FRAME_OWNED_BY_CSTACK);
    value("shim_owner_max", FRAME_OWNED_BY_CSTACK);
#else
    value("shim_owner_min", 0);
    value("shim_owner_max", 0);
#endif
    /* f_executable is a _PyStackRef from 3.14 on, with tag bits below the pointer. */
#if MINOR >= 14
    value("code_tag_mask", Py_TAG_BITS);
#else
    value("code_tag_mask", 0);
#endif
}

static void runtime(void)
{
    OFFSET("runtime.interpreters_head", _PyRuntimeState, interpreters.head);
#if MINOR == 8
    OFFSET("runtime.finalizing", _PyRuntimeState, finalizing);
#else
    OFFSET("runtime.finalizing", _PyRuntimeState, _finalizing);
#endif
#if MINOR <= 11
    OFFSET("runtime.tstate_current", _PyRuntimeState, gilstate.tstate_current);
    OFFSET("runtime.gil", _PyRuntimeState, ceval.gil);
#else
    none("runtime.tstate_current");
    none("runtime.gil");
#endif
    size_of_covered("runtime.size");
}

static void interp(void)
{
    OFFSET("interp.next", PyInterpreterState, next);
    OFFSET("interp.id", PyInterpreterState, id);
#if MINOR <= 10
    OFFSET("interp.threads_head", PyInterpreterState, tstate_head);
#else
    OFFSET("interp.threads_head", PyInterpreterState, threads.head);
#endif
#if MINOR <= 11
    OFFSET("interp.modules", PyInterpreterState, modules);
#else
    OFFSET("interp.modules", PyInterpreterState, imports.modules);
#endif
    OFFSET("interp.sysdict", PyInterpreterState, sysdict);
#if MINOR <= 11
    none("interp.gil");
#else
    OFFSET("interp.gil", PyInterpreterState, ceval.gil);
#endif
    value("interp.id_size", sizeof(((PyInterpreterState *)0)->id));
    covered = 0;
    value("gil.size", sizeof(struct _gil_runtime_state));
    OFFSET("gil.last_holder", struct _gil_runtime_state, last_holder);
    OFFSET("gil.locked", struct _gil_runtime_state, locked);
    covered = 0;
}

static void tstate(void)
{
    OFFSET("tstate.next", PyThreadState, next);
    OFFSET("tstate.interp", PyThreadState, interp);
    OFFSET("tstate.thread_id", PyThreadState, thread_id);
#if MINOR >= 11
    OFFSET("tstate.native_thread_id", PyThreadState, native_thread_id);
#else
    none("tstate.native_thread_id");
#endif
#if MINOR <= 10
    OFFSET("tstate.frame", PyThreadState, frame);
#elif MINOR <= 12
    OFFSET("tstate.frame", PyThreadState, cframe);
#else
    OFFSET("tstate.frame", PyThreadState, current_frame);
#endif
#if MINOR >= 11
    OFFSET("tstate.datastack_chunk", PyThreadState, datastack_chunk);
    OFFSET("tstate.datastack_top", PyThreadState, datastack_top);
#else
    none("tstate.datastack_chunk");
    none("tstate.datastack_top");
#endif
    size_of_covered("tstate.size");
#if MINOR == 11 || MINOR == 12
    OFFSET("cframe.current_frame", _PyCFrame, current_frame);
#else
    none("cframe.current_frame");
#endif
    covered = 0;
}

static void frame(void)
{
#if MINOR <= 10
    OFFSET("frame.code", PyFrameObject, f_code);
    OFFSET("frame.previous", PyFrameObject, f_back);
    OFFSET("frame.instr", PyFrameObject, f_lasti);
    none("frame.owner");
    value("frame.localsplus", cover(offsetof(PyFrameObject, f_localsplus), 0));
#else
#if MINOR <= 12
    OFFSET("frame.code", struct _PyInterpreterFrame, f_code);
    OFFSET("frame.previous", struct _PyInterpreterFrame, previous);
    OFFSET("frame.instr", struct _PyInterpreterFrame, prev_instr);
#else
    OFFSET("frame.code", struct _PyInterpreterFrame, f_executable);
    OFFSET("frame.previous", struct _PyInterpreterFrame, previous);
    OFFSET("frame.instr", struct _PyInterpreterFrame, instr_ptr);
#endif
    OFFSET("frame.owner", struct _PyInterpreterFrame, owner);
    value("frame.localsplus", cover(offsetof(struct _PyInterpreterFrame, localsplus), 0));
#endif
#if MINOR >= 11
    value("frame.in_generator", offsetof(PyGenObject, gi_iframe));
    value("frame.generator_state",
          offsetof(PyGenObject, gi_iframe) - offsetof(PyGenObject, gi_frame_state));
    value("frame.generator_runs", FRAME_EXECUTING);
#else
    none("frame.in_generator");
    none("frame.generator_state");
    none("frame.generator_runs");
#endif
#if MINOR >= 11 && MINOR <= 13
    OFFSET("frame.stacktop", struct _PyInterpreterFrame, stacktop);
#else
    /* later it keeps its last value while the frame runs, and tells nothing; */
    none("frame.stacktop");
#endif
#if MINOR == 11
    OFFSET("frame.entry", struct _PyInterpreterFrame, is_entry);
#else
    none("frame.entry");
#endif
    /* but clear_thread_frame() in ceval.c clears the code */
    value("frame.clears_code", MINOR >= 14);
    size_of_covered("frame.size");
#if MINOR >= 11
    OFFSET("chunk.previous", _PyStackChunk, previous);
    OFFSET("chunk.size", _PyStackChunk, size);
    OFFSET("chunk.top", _PyStackChunk, top);
    OFFSET("chunk.data", _PyStackChunk, data);
#else
    none("chunk.previous");
    none("chunk.size");
    none("chunk.top");
    none("chunk.data");
#endif
    covered = 0;
}

static void code(void)
{
    OFFSET("code.argcount", PyCodeObject, co_argcount);
    OFFSET("code.kwonlyargcount", PyCodeObject, co_kwonlyargcount);
    OFFSET("code.flags", PyCodeObject, co_flags);
    OFFSET("code.firstlineno", PyCodeObject, co_firstlineno);
    OFFSET("code.name", PyCodeObject, co_name);
    OFFSET("code.filename", PyCodeObject, co_filename);
    OFFSET("code.names", PyCodeObject, co_names);
    OFFSET("code.consts", PyCodeObject, co_consts);
    OFFSET("code.stacksize", PyCodeObject, co_stacksize);
#if MINOR <= 9
    OFFSET("code.linetable", PyCodeObject, co_lnotab);
#else
    OFFSET("code.linetable", PyCodeObject, co_linetable);
#endif
#if MINOR <= 10
    none("code.qualname");
    OFFSET("code.code", PyCodeObject, co_code);
    none("code.code_adaptive");
    OFFSET("code.nlocals", PyCodeObject, co_nlocals);
    OFFSET("code.localsplusnames", PyCodeObject, co_varnames);
    OFFSET("code.cellvars", PyCodeObject, co_cellvars);
    OFFSET("code.freevars", PyCodeObject, co_freevars);
    none("code.localspluskinds");
#else
    OFFSET("code.qualname", PyCodeObject, co_qualname);
    none("code.code");
    value("code.code_adaptive", cover(offsetof(PyCodeObject, co_code_adaptive), 0));
    OFFSET("code.nlocals", PyCodeObject, co_nlocalsplus);
    OFFSET("code.localsplusnames", PyCodeObject, co_localsplusnames);
    none("code.cellvars");
    none("code.freevars");
    OFFSET("code.localspluskinds", PyCodeObject, co_localspluskinds);
#endif
#if MINOR == 11
    OFFSET("code.warmup", PyCodeObject, co_warmup);
#else
    none("code.warmup");
#endif
#if MINOR >= 12
    OFFSET("code.framesize", PyCodeObject, co_framesize);
#else
    none("code.framesize");
#endif
#if MINOR >= 12
    OFFSET("code.version", PyCodeObject, co_version);
#else
    none("code.version");
#endif
    size_of_covered("code.size");
}

/* The lowest bit of state.kind, found by setting it: bit fields have no offsetof. */
static unsigned kind_shift(void)
{
    PyASCIIObject object;
    unsigned bits, shift = 0;

    memset(&object, 0, sizeof(object));
    object.state.kind = 1;
    memcpy(&bits, &object.state, sizeof(bits));
    while (!(bits >> shift & 1))
        shift++;
    return shift;
}

static void objects(void)
{
    value("object.size", sizeof(PyObject));
    OFFSET("object.ob_type", PyObject, ob_type);
    OFFSET("object.ob_refcnt", PyObject, ob_refcnt);
    covered = 0;

    OFFSET("type.tp_name", PyTypeObject, tp_name);
    OFFSET("type.tp_flags", PyTypeObject, tp_flags);
    OFFSET("type.tp_basicsize", PyTypeObject, tp_basicsize);
    OFFSET("type.tp_itemsize", PyTypeObject, tp_itemsize);
    OFFSET("type.tp_dictoffset", PyTypeObject, tp_dictoffset);
    size_of_covered("type.size");
    OFFSET("type.ht_cached_keys", PyHeapTypeObject, ht_cached_keys);

    OFFSET("bytes.ob_size", PyVarObject, ob_size);
    OFFSET("bytes.ob_sval", PyBytesObject, ob_sval);
    OFFSET("unicode.length", PyASCIIObject, length);
    OFFSET("unicode.state", PyASCIIObject, state);
    value("unicode.ascii_size", sizeof(PyASCIIObject));
    value("unicode.compact_size", sizeof(PyCompactUnicodeObject));
    value("unicode.state_kind_shift", kind_shift());
    OFFSET("tuple.ob_size", PyVarObject, ob_size);
    OFFSET("tuple.ob_item", PyTupleObject, ob_item);
    OFFSET("list.ob_size", PyVarObject, ob_size);
    OFFSET("list.ob_item", PyListObject, ob_item);
    OFFSET("float_.ob_fval", PyFloatObject, ob_fval);
#if MINOR >= 12
    OFFSET("long_.size_or_tag", PyLongObject, long_value.lv_tag);
    OFFSET("long_.digits", PyLongObject, long_value.ob_digit);
#else
    OFFSET("long_.size_or_tag", PyVarObject, ob_size);
    OFFSET("long_.digits", struct _longobject, ob_digit);
#endif
    value("long_.tagged", MINOR >= 12);
}

static void containers(void)
{
    OFFSET("dict.ma_used", PyDictObject, ma_used);
    OFFSET("dict.ma_keys", PyDictObject, ma_keys);
    OFFSET("dict.ma_values", PyDictObject, ma_values);
#if MINOR >= 11
    OFFSET("dictkeys.log2_size", struct _dictkeysobject, dk_log2_size);
    OFFSET("dictkeys.log2_index_bytes", struct _dictkeysobject, dk_log2_index_bytes);
    OFFSET("dictkeys.kind", struct _dictkeysobject, dk_kind);
#else
    OFFSET("dictkeys.log2_size", struct _dictkeysobject, dk_size);
    none("dictkeys.log2_index_bytes");
    none("dictkeys.kind");
#endif
    OFFSET("dictkeys.nentries", struct _dictkeysobject, dk_nentries);
    value("dictkeys.indices", offsetof(struct _dictkeysobject, dk_indices));
    value("dictkeys.has_log2", MINOR >= 11);
    OFFSET("set.table", PySetObject, table);
    OFFSET("set.mask", PySetObject, mask);
    OFFSET("set.used", PySetObject, used);
    OFFSET("set.fill", PySetObject, fill);
    OFFSET("module.md_dict", PyModuleObject, md_dict);
}

#if MINOR >= 13
#define DEBUG_ALIGNED(field, member, align)                                                        \
    printf("debug %s %zu %d\n", field, offsetof(struct _Py_DebugOffsets, member), align)
#define DEBUG(field, member) DEBUG_ALIGNED(field, member, 8)

/* Which fields the interpreter tells itself. The GIL's own fields are not among them: they are told
 * relative to interp->_gil, which is not the GIL that a sub-interpreter uses. */
static void debug_offsets(void)
{
    printf("debug_size %zu\n", sizeof(struct _Py_DebugOffsets));
    DEBUG("runtime.finalizing", runtime_state.finalizing);
    DEBUG("runtime.interpreters_head", runtime_state.interpreters_head);
    DEBUG("interp.id", interpreter_state.id);
    DEBUG("interp.next", interpreter_state.next);
    DEBUG("interp.threads_head", interpreter_state.threads_head);
    DEBUG("interp.modules", interpreter_state.imports_modules);
    DEBUG("interp.sysdict", interpreter_state.sysdict);
    DEBUG("interp.gil", interpreter_state.ceval_gil);
    DEBUG("tstate.next", thread_state.next);
    DEBUG("tstate.interp", thread_state.interp);
    DEBUG("tstate.frame", thread_state.current_frame);
    DEBUG("tstate.thread_id", thread_state.thread_id);
    DEBUG("tstate.native_thread_id", thread_state.native_thread_id);
    DEBUG("tstate.datastack_chunk", thread_state.datastack_chunk);
    DEBUG("frame.previous", interpreter_frame.previous);
    DEBUG("frame.code", interpreter_frame.executable);
    DEBUG("frame.instr", interpreter_frame.instr_ptr);
    DEBUG("frame.localsplus", interpreter_frame.localsplus);
    DEBUG_ALIGNED("frame.owner", interpreter_frame.owner, 1);
    DEBUG("code.filename", code_object.filename);
    DEBUG("code.name", code_object.name);
    DEBUG("code.qualname", code_object.qualname);
    DEBUG("code.linetable", code_object.linetable);
    DEBUG_ALIGNED("code.firstlineno", code_object.firstlineno, 4);
    DEBUG_ALIGNED("code.argcount", code_object.argcount, 4);
    DEBUG("code.localsplusnames", code_object.localsplusnames);
    DEBUG("code.localspluskinds", code_object.localspluskinds);
    DEBUG_ALIGNED("code.code_adaptive", code_object.co_code_adaptive, 2);
    DEBUG("object.size", pyobject.size);
    DEBUG("object.ob_type", pyobject.ob_type);
    DEBUG("type.tp_name", type_object.tp_name);
    DEBUG("type.tp_flags", type_object.tp_flags);
    DEBUG("tuple.ob_item", tuple_object.ob_item);
    DEBUG("tuple.ob_size", tuple_object.ob_size);
    DEBUG("list.ob_item", list_object.ob_item);
    DEBUG("list.ob_size", list_object.ob_size);
    DEBUG("dict.ma_keys", dict_object.ma_keys);
    DEBUG("dict.ma_values", dict_object.ma_values);
    DEBUG("float_.ob_fval", float_object.ob_fval);
    DEBUG("long_.size_or_tag", long_object.lv_tag);
    DEBUG_ALIGNED("long_.digits", long_object.ob_digit, 4);
    DEBUG("bytes.ob_size", bytes_object.ob_size);
    DEBUG_ALIGNED("bytes.ob_sval", bytes_object.ob_sval, 1);
    DEBUG_ALIGNED("unicode.state", unicode_object.state, 4);
    DEBUG("unicode.length", unicode_object.length);
    DEBUG("unicode.ascii_size", unicode_object.asciiobject_size);
#if MINOR >= 14
    DEBUG("set.table", set_object.table);
    DEBUG("set.mask", set_object.mask);
    DEBUG("set.used", set_object.used);
#endif
#if MINOR >= 15
    DEBUG("type.tp_basicsize", type_object.tp_basicsize);
    DEBUG("type.tp_dictoffset", type_object.tp_dictoffset);
    DEBUG("type.ht_cached_keys", heap_type_object.ht_cached_keys);
    DEBUG("unicode.compact_size", unicode_object.compactunicodeobject_size);
#endif
}
#endif

int main(void)
{
    printf("version %s\n", PY_VERSION);
    kinds();
    runtime();
    interp();
    tstate();
    frame();
    code();
    objects();
    containers();
#if MINOR >= 13
    debug_offsets();
#endif
    return 0;
}
