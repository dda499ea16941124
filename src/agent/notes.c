#include "agent/notes.h"

#include "agent/describe.h"

#include <string.h>

static void emit(enum ring_ext kind, const char *text, size_t len)
{
    const struct guest_piece piece = {text, len < RING_MAX_NOTE ? len : RING_MAX_NOTE};
    guest_emit_ext(kind, &piece, 1);
}

void notes_exception(const py_object *type)
{
    const char *name = pyver_type_name(type);
    emit(RING_EXT_EXCEPTION, name, strnlen(name, RING_MAX_NOTE));
}

/* --- arguments and results --- */

void notes_arguments(py_object *code, py_object *const *locals)
{
    uint64_t begin = guest_now();
    char text[RING_MAX_NOTE];
    size_t len = describe_arguments(code, locals, text, sizeof text);
    guest_leave_out(begin);
    if (len)
        emit(RING_EXT_ARGUMENTS, text, len);
}

void notes_result(const py_object *value)
{
    uint64_t begin = guest_now();
    char text[RING_MAX_NOTE];
    size_t len = describe_value(value, text, sizeof text);
    guest_leave_out(begin);
    emit(RING_EXT_RESULT, text, len);
}

enum { CO_COROUTINE = 0x80, CO_ASYNC_GENERATOR = 0x200 };

void notes_yield(const py_object *code, const py_object *value)
{
    if (!(py_u32(code, py.code_flags) & (CO_COROUTINE | CO_ASYNC_GENERATOR)))
        notes_result(value);
}

/* --- names --- */

/* A module that the program has imported, as its names; NULL if it has not. Borrowed. */
static py_object *names_of(const char *module)
{
    py_object *modules = py.PySys_GetObject("modules");
    if (!modules || py_type(modules) != py.dict_type)
        return NULL;
    py_object *found = py.PyDict_GetItemString(modules, module);
    py_object *names =
        found && py_type(found) == py.module_type ? py.PyModule_GetDict(found) : NULL;
    return names && py_type(names) == py.dict_type ? names : NULL;
}

static bool emit_text(enum ring_ext kind, py_object *text)
{
    ptrdiff_t len;
    const char *at =
        text && py_type(text) == py.unicode_type ? py.PyUnicode_AsUTF8AndSize(text, &len) : NULL;
    if (at)
        emit(kind, at, (size_t)len);
    return at != NULL;
}

/* What PyErr_Fetch took away. */
struct pending {
    py_object *type, *value, *traceback;
};

static struct pending set_aside(void)
{
    struct pending p;
    py.PyErr_Fetch(&p.type, &p.value, &p.traceback);
    return p;
}

static void put_back(const struct pending *p)
{
    py.PyErr_Restore(p->type, p->value, p->traceback);
}

/* threading._active[ident]._name, past whatever the class of the thread object makes of attributes. */
bool notes_thread_name(void)
{
    static py_object *name;
    struct pending p = set_aside();
    if (!name)
        name = py.PyUnicode_FromString("_name");
    py_object *names = names_of("threading");
    py_object *active = names ? py.PyDict_GetItemString(names, "_active") : NULL;
    py_object *ident = py.PyLong_FromUnsignedLong(py.PyThread_get_thread_ident());
    py_object *thread = name && ident && active && py_type(active) == py.dict_type
                            ? py.PyDict_GetItemWithError(active, ident)
                            : NULL;
    py_object *text = thread && !py._PyType_Lookup(py_type(thread), name)
                          ? py.PyObject_GenericGetAttr(thread, name)
                          : NULL;
    bool told = emit_text(RING_EXT_THREAD_NAME, text);
    if (ident)
        py.Py_DecRef(ident);
    if (text)
        py.Py_DecRef(text);
    put_back(&p);
    return told;
}

/* --- tasks --- */

/* What asyncio's C half offers; kept for good once it is there. Tasks written in Python have no name here. */
static struct {
    py_object *task_type, *get_name;
    py_object *current_task;                 /* 3.12 and later */
    py_object *running_loop, *tasks_by_loop; /* below */
} asyncio;

static bool find_asyncio(void)
{
    if (asyncio.get_name)
        return true;
    py_object *names = names_of("_asyncio");
    if (!names)
        return false;
    asyncio.task_type = py.PyDict_GetItemString(names, "Task");
    asyncio.current_task = py.PyDict_GetItemString(names, "current_task");
    asyncio.running_loop = py.PyDict_GetItemString(names, "_get_running_loop");
    asyncio.tasks_by_loop = py.PyDict_GetItemString(names, "_current_tasks");
    if (!asyncio.task_type || (!asyncio.current_task && !asyncio.tasks_by_loop))
        return false;
    asyncio.get_name = py.PyObject_GetAttrString(asyncio.task_type, "get_name");
    if (!asyncio.get_name)
        return false;
    /* the module may give them up, or be given up */
    py_object *const kept[] = {asyncio.task_type, asyncio.current_task, asyncio.running_loop,
                               asyncio.tasks_by_loop};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (kept[i])
            py.Py_IncRef(kept[i]);
    return true;
}

/* The task that runs, as a new reference; NULL: none does. */
static py_object *running_task(void)
{
    if (asyncio.current_task && py_c_function(asyncio.current_task))
        return py.PyObject_CallFunctionObjArgs(asyncio.current_task, (py_object *)NULL);
    if (!asyncio.running_loop || !py_c_function(asyncio.running_loop) || !asyncio.tasks_by_loop ||
        py_type(asyncio.tasks_by_loop) != py.dict_type)
        return NULL;
    py_object *loop = py.PyObject_CallFunctionObjArgs(asyncio.running_loop, (py_object *)NULL);
    py_object *task = loop ? py.PyDict_GetItemWithError(asyncio.tasks_by_loop, loop) : NULL;
    if (task)
        py.Py_IncRef(task);
    if (loop)
        py.Py_DecRef(loop);
    return task;
}

void notes_coroutine(py_object *code, py_object *caller)
{
    if (!(py_u32(code, py.code_flags) & CO_COROUTINE) ||
        (caller && py_u32(caller, py.code_flags) & CO_COROUTINE))
        return;
    uint64_t begin = guest_now();
    struct pending p = set_aside();
    py_object *task = find_asyncio() ? running_task() : NULL, *name = NULL;
    if (task && py.PyType_IsSubtype(py_type(task), asyncio.task_type))
        name = py.PyObject_CallFunctionObjArgs(asyncio.get_name, task, (py_object *)NULL);
    guest_leave_out(begin);
    emit_text(RING_EXT_TASK, name);
    if (name)
        py.Py_DecRef(name);
    if (task)
        py.Py_DecRef(task);
    put_back(&p);
}
