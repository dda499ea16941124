#include "agent/garbage.h"

#include "agent/guest.h"
#include "agent/pyver.h"

static py_object *theirs; /* the program's list, kept */
static py_object **slot;  /* the interpreter's pointer to it */
static void (*take_out_hooks)(void);

/* What the interpreter does with its list. */
static void call_theirs(py_object *phase, py_object *info)
{
    for (ptrdiff_t i = 0; i < pyver_container_length(theirs, py.list_type); i++) {
        py_object *callback = pyver_list_item(theirs, i);
        py.Py_IncRef(callback);
        py_object *result =
            py.PyObject_CallFunctionObjArgs(callback, phase, info, (py_object *)NULL);
        if (result)
            py.Py_DecRef(result);
        else
            py.PyErr_WriteUnraisable(callback);
        py.Py_DecRef(callback);
    }
}

static void tell(enum ring_ext kind, py_object *info, const char *key)
{
    py_object *number = py_type(info) == py.dict_type ? py.PyDict_GetItemString(info, key) : NULL;
    long value = number && py_type(number) == py.long_type ? py.PyLong_AsLong(number) : 0;
    uint64_t word = value > 0 ? (uint64_t)value : 0;
    if (atomic_load_explicit(&guest.on, memory_order_relaxed))
        guest_emit_ext(kind, &(struct guest_piece){&word, sizeof word}, 1);
}

static py_object *on_collection(py_object *self, py_object *const *args, ptrdiff_t n)
{
    (void)self;
    enum { THIRD = 2 }; /* letter of "start" and "stop" */
    if (n == 2) {
        bool starts = py.PyUnicode_ReadChar(args[0], THIRD) == 'a';
        if (starts)
            tell(RING_EXT_GC_BEGIN, args[1], "generation");
        call_theirs(args[0], args[1]);
        if (!starts)
            tell(RING_EXT_GC_END, args[1], "collected");
    }
    py.Py_IncRef(py.none);
    return py.none;
}

static void take_out(void)
{
    *slot = theirs;
    if (take_out_hooks)
        take_out_hooks();
}

/* A list of ours that the collector does not know, so that nobody finds it. */
static py_object *make_list(void)
{
    py_object *function = pyver_function("pyrometer", on_collection);
    py_object *list = function ? py.PyList_New(0) : NULL;
    if (!list || py.PyList_Append(list, function) < 0) {
        py.PyErr_Clear();
        return NULL;
    }
    py.PyObject_GC_UnTrack(function);
    py.PyObject_GC_UnTrack(list);
    return list;
}

static py_object *module; /* kept */

void garbage_prepare(void)
{
    module = py.PyImport_ImportModule("gc");
    py.PyErr_Clear();
}

void garbage_install(void)
{
    py_object *garbage = module ? py.PyObject_GetAttrString(module, "garbage") : NULL;
    py_object *callbacks = module ? py.PyObject_GetAttrString(module, "callbacks") : NULL;
    slot = garbage && callbacks ? pyver_gc_callbacks(garbage, callbacks) : NULL;
    py_object *ours = slot ? make_list() : NULL;
    if (ours) {
        theirs = callbacks; /* our reference, and the interpreter's stays with the list */
        *slot = ours;
        take_out_hooks = guest_take_out;
        guest_take_out = take_out;
    }
    py.PyErr_Clear();
}
