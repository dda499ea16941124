#include "agent/codes.h"

#include "agent/calibrate.h"
#include "agent/memory.h"

#include <stdio.h>
#include <string.h>

ptrdiff_t codes_index = -1;
bool codes_counting;
struct c_entry codes_c[C_SLOTS];
uint32_t (*codes_judge)(const struct code_facts *facts);

enum { CO_GENERATOR = 0x20, CO_COROUTINE = 0x80, CO_ASYNC_GENERATOR = 0x200 };

/* A text attribute of a Python object, or "". What it points to lives as long as `*ret_keep`. */
struct text {
    const char *at;
    ptrdiff_t len;
    py_object *keep;
};

/* A text that is no UTF-8 as bytes, NULL if it is no text: bytes of a file's name that are none either become what they were, what is
 * no character at all a question mark. */
static py_object *to_bytes(py_object *text)
{
    py_object *bytes = py.PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    if (!bytes) {
        py.PyErr_Clear();
        bytes = py.PyUnicode_AsEncodedString(text, "utf-8", "replace");
    }
    return bytes;
}

/* With no error set, before and after. */
static struct text get_text(py_object *o, const char *attribute)
{
    struct text t = {"", 0, py.PyObject_GetAttrString(o, attribute)};
    const char *at = t.keep ? py.PyUnicode_AsUTF8AndSize(t.keep, &t.len) : NULL;
    if (at) {
        t.at = at;
    } else {
        py.PyErr_Clear();
        t.len = 0;
        py_object *bytes = t.keep ? to_bytes(t.keep) : NULL;
        if (bytes) {
            size_t len;
            t.at = (const char *)pyver_bytes(bytes, &len);
            t.len = (ptrdiff_t)len;
            py.Py_DecRef(t.keep);
            t.keep = bytes;
        }
        py.PyErr_Clear();
    }
    if (t.len > RING_MAX_TEXT)
        t.len = RING_MAX_TEXT;
    return t;
}

static void drop_text(struct text *t)
{
    if (t->keep)
        py.Py_DecRef(t->keep);
}

static uint32_t new_number(void)
{
    uint32_t n = atomic_fetch_add(&guest.session->next_code, 1) + 1;
    return n <= RING_MAX_VALUE ? n : RING_MAX_VALUE; /* the last one is shared by all that follow */
}

/* Who was given a number and could not be defined gives it back. */
static void take_back(uint32_t number)
{
    if (number != RING_MAX_VALUE)
        atomic_compare_exchange_strong(&guest.session->next_code, &number, number - 1);
}

static bool define(const struct ring_code *code, const char *name, const char *qualname,
                   const char *file)
{
    const struct guest_piece pieces[] = {{code, sizeof *code},
                                         {name, code->name_len},
                                         {qualname, code->qualname_len},
                                         {file, code->file_len}};
    return guest_emit_ext(RING_EXT_CODE, pieces, 4);
}

bool codes_init(void)
{
    codes_index = py.request_extra(NULL);
    codes_counting = py.counts_calls && ring_asks_instructions(guest.instruments);
    return codes_index >= 0;
}

static uint32_t flags_of(py_object *code)
{
    uint32_t co_flags = py_u32(code, py.code_flags), flags = 0;
    if (co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
        flags |= RING_CODE_GENERATOR;
    if (co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))
        flags |= RING_CODE_COROUTINE;
    return flags;
}

/* What Python allocates for us meanwhile is not the program's. */
static code_mark meet(py_object *code)
{
    uint64_t begin = guest_now();
    py_object *type, *value, *traceback;
    py.PyErr_Fetch(&type, &value, &traceback);
    struct text name = get_text(code, "co_name");
    struct text qualname = {"", 0, NULL};
    if (py.minor >= 11)
        qualname = get_text(code, "co_qualname");
    struct text file = get_text(code, "co_filename");
    py_object *line = py.PyObject_GetAttrString(code, "co_firstlineno");
    struct code_facts facts = {.code = code,
                               .flags = flags_of(code),
                               .first_line = line ? (uint32_t)py.PyLong_AsLong(line) : 0,
                               .name = name.at,
                               .qualname = qualname.at,
                               .file = file.at};
    if (codes_judge)
        facts.flags |= codes_judge(&facts);
    if (guest.instruments & RING_ARGS && strcmp(facts.file, CALIBRATE_FILE) != 0)
        facts.flags |= CODE_NOTED;
    bool wanted = !(facts.flags & RING_CODE_LEFT_OUT); /* or nobody will ever speak of it */
    struct ring_code c = {
        .id = wanted ? new_number() : 0,
        .flags = facts.flags,
        .first_line = facts.first_line,
        .name_len = (uint32_t)name.len,
        .qualname_len = (uint32_t)qualname.len,
        .file_len = (uint32_t)file.len,
    };
    code_mark mark = (code_mark)c.id << CODE_MARK_SHIFT | c.flags;
    if (py.set_extra(code, codes_index, (void *)(uintptr_t)mark) < 0)
        py.PyErr_Clear();
    guest_leave_out(begin);
    if (wanted && !define(&c, name.at, qualname.at, file.at)) {
        take_back(c.id);
        mark = c.flags; /* the number may soon be another's */
        if (py.set_extra(code, codes_index, NULL) < 0)
            py.PyErr_Clear();
    }
    if (!wanted)
        atomic_fetch_add(&guest.session->left_out, 1);
    drop_text(&name);
    drop_text(&qualname);
    drop_text(&file);
    if (line)
        py.Py_DecRef(line);
    py.PyErr_Restore(type, value, traceback);
    return mark;
}

code_mark codes_meet(py_object *code)
{
    if (guest_me.refused)
        return 0;
    memory_me.inside++;
    code_mark mark = meet(code);
    memory_me.inside--;
    return mark;
}

/* "<built-in method time.sleep>", "<method 'append' of 'list' objects>": as cProfile says it. The second is of the type that has the
 * method, whatever object it is called of here: there is one name for all that inherit it. */
static int name_of(char *out, size_t max, py_object *callable, void *definition)
{
    const char *name = *(const char *const *)definition; /* PyMethodDef begins with its name */
    py_object *owner = NULL;
    if (py_type(callable) == py.method_descr_type) {
        owner = py_descr_owner(callable);
    } else {
        py_object *self = py_pointer(callable, 24), *module = py_pointer(callable, 32);
        ptrdiff_t len;
        const char *at = module ? py.PyUnicode_AsUTF8AndSize(module, &len) : NULL;
        if (at)
            return snprintf(out, max, "<built-in method %s.%s>", at, name);
        if (module)
            py.PyErr_Clear();
        else if (self)
            owner = pyver_method_owner(py_type(self), definition);
    }
    if (!owner)
        return snprintf(out, max, "<built-in method %s>", name);
    return snprintf(out, max, "<method '%s' of '%s' objects>", name, pyver_type_name(owner));
}

/* The table that forgets nothing, behind the small one; full is full, and then numbers repeat. */
enum { ALL_C = 1 << 15 };
static struct c_entry all_c[ALL_C];
static uint32_t all_c_used;

static struct c_entry *find_c(void *definition)
{
    uint32_t at = (uint32_t)((uintptr_t)definition * 0xff51afd7ed558ccdull >> 40);
    for (;; at++) {
        struct c_entry *e = &all_c[at % ALL_C];
        if (!e->definition || e->definition == definition)
            return e;
    }
}

code_mark codes_meet_c(py_object *callable, void *definition)
{
    struct c_entry *e = find_c(definition);
    if (!e->definition) {
        if (guest_me.refused)
            return 0;
        if (all_c_used >= ALL_C * 3 / 4)
            return 0;
        py_object *type, *value, *traceback;
        py.PyErr_Fetch(&type, &value, &traceback);
        char name[512];
        memory_me.inside++;
        int n = name_of(name, sizeof name, callable, definition);
        memory_me.inside--;
        struct ring_code c = {.id = new_number(), .flags = RING_CODE_C};
        c.name_len = n < 0 ? 0 : n < (int)sizeof name ? (uint32_t)n : (uint32_t)sizeof name - 1;
        struct code_facts facts = {.flags = c.flags, .name = name, .qualname = "", .file = ""};
        if (codes_judge)
            c.flags |= codes_judge(&facts);
        bool wanted = !(c.flags & RING_CODE_LEFT_OUT);
        bool known = !wanted || define(&c, name, "", "");
        if (!wanted)
            atomic_fetch_add(&guest.session->left_out, 1);
        py.PyErr_Restore(type, value, traceback);
        if (!known) {
            take_back(c.id);
            return 0;
        }
        *e = (struct c_entry){definition, (code_mark)c.id << CODE_MARK_SHIFT | c.flags};
        all_c_used++;
    }
    codes_c[codes_c_slot(definition)] = *e;
    return e->mark;
}
