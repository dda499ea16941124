/* The selection is copied out of the shared memory once, cut into its items in place, and its patterns
 * compiled. A code object knows its file but not its module, so the module is taken from the
 * globals of the running frame, where Python keeps its name; the main program, whose module has
 * another name there, is known by its file. */
#include "agent/select.h"

#include "agent/calibrate.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ITEMS = 256, MAX_PATTERNS = 64 };

static struct function {
    const char *module, *name; /* name: qualified */
} functions[MAX_ITEMS];
static size_t function_count;
static struct patterns {
    regex_t regex[MAX_PATTERNS];
    size_t count;
} of_lines, included, excluded;
static bool said; /* something was, of lines */

static void take_function(char *text)
{
    char *colon = strchr(text, ':');
    if (!colon || function_count == MAX_ITEMS)
        return;
    *colon = 0;
    functions[function_count++] = (struct function){text, colon + 1};
}

static void take_pattern(const char *text, struct patterns *to)
{
    if (to->count < MAX_PATTERNS &&
        regcomp(&to->regex[to->count], text, REG_EXTENDED | REG_NOSUB) == 0)
        to->count++;
}

void select_init(void)
{
    static char text[RING_MAX_SELECTION];
    memcpy(text, guest.session->selection, sizeof text);
    text[sizeof text - 1] = 0;
    char *rest = text;
    for (char *item; (item = strsep(&rest, "\n"));) {
        if (strncmp(item, "f:", 2) == 0)
            take_function(item + 2);
        else if (strncmp(item, "m:", 2) == 0)
            take_pattern(item + 2, &of_lines);
        else if (strncmp(item, "i:", 2) == 0)
            take_pattern(item + 2, &included);
        else if (strncmp(item, "x:", 2) == 0)
            take_pattern(item + 2, &excluded);
    }
    said = function_count || of_lines.count;
}

bool select_is_everything(void)
{
    return !said;
}

/* Does "…/json/decoder.py" hold the module json.decoder? */
static bool is_file_of(const char *file, const char *module)
{
    size_t n = strlen(file), m = strlen(module);
    if (n < 3 || strcmp(file + n - 3, ".py") != 0)
        return false;
    n -= 3;
    if (n > 9 && memcmp(file + n - 9, "/__init__", 9) == 0)
        n -= 9;
    if (n < m || (n > m && file[n - m - 1] != '/'))
        return false;
    for (size_t i = 0; i < m; i++)
        if (file[n - m + i] != (module[i] == '.' ? '/' : module[i]))
            return false;
    return true;
}

static bool is_in_module(const struct code_facts *facts, const char *module)
{
    py_object *globals = py.PyEval_GetGlobals();
    py_object *name = globals ? py.PyDict_GetItemString(globals, "__name__") : NULL;
    ptrdiff_t len;
    const char *text = name ? py.PyUnicode_AsUTF8AndSize(name, &len) : NULL;
    if (!text)
        py.PyErr_Clear();
    if (text && strcmp(text, module) == 0)
        return true;
    return (!text || strcmp(text, "__main__") == 0) && is_file_of(facts->file, module);
}

/* --- what is written inside a function, below 3.11 ---
 *
 * Its lines are the function's, but its name does not say where it is written. The code around it knows: it has the code
 * within as constants, and runs before them. So whoever is found wanted by a name leaves a mark in a slot of our own on each, and
 * they in turn when they are found marked. */

static ptrdiff_t inside_index = -1; /* the slot; below 0: not there yet */

static bool is_inside(py_object *code)
{
    const struct code_extras *extras =
        code && inside_index >= 0 ? py_pointer(code, py.code_extra) : NULL;
    return extras && extras->size > inside_index && extras->slot[inside_index];
}

static void mark_inside(py_object *code)
{
    if (inside_index < 0)
        inside_index = py.request_extra(NULL);
    py_object *constants = inside_index < 0 ? NULL : py.PyObject_GetAttrString(code, "co_consts");
    py_object *constant;
    for (uint32_t i = 0; constants && (constant = pyver_tuple_item(constants, i)); i++)
        if (py_type(constant) == py.code_type &&
            py.set_extra(constant, inside_index, (void *)1) < 0)
            py.PyErr_Clear();
    if (constants)
        py.Py_DecRef(constants);
    else
        py.PyErr_Clear();
}

/* The body of a class or of a module is no function: what is written there has lines of its own, as from 3.11 on. */
static bool is_function(py_object *code)
{
    enum { CO_OPTIMIZED = 1 };
    return py_u32(code, py.code_flags) & CO_OPTIMIZED;
}

/* The function itself, or what is written inside it: its lines are the function's. */
static bool is_named(const struct code_facts *facts, const char *wanted)
{
    static const char inside[] = ".<locals>.";
    if (!*facts->qualname) { /* below 3.11 code does not know its class: the last part counts */
        const char *last = strrchr(wanted, '.');
        return strcmp(facts->name, last ? last + 1 : wanted) == 0;
    }
    size_t n = strlen(wanted);
    return strncmp(facts->qualname, wanted, n) == 0 &&
           (!facts->qualname[n] || strncmp(facts->qualname + n, inside, sizeof inside - 1) == 0);
}

static bool matches(const regex_t *pattern, const struct code_facts *facts)
{
    const char *name = *facts->qualname ? facts->qualname : facts->name;
    if (regexec(pattern, name, 0, NULL, 0) == 0 || regexec(pattern, facts->file, 0, NULL, 0) == 0)
        return true;
    char text[4096];
    snprintf(text, sizeof text, "%s:%u(%s)", facts->file, facts->first_line, name);
    return regexec(pattern, text, 0, NULL, 0) == 0;
}

/* A C function as the views show it too: "{built-in method time.sleep}". */
static bool matches_in_braces(const regex_t *pattern, const char *name)
{
    char text[512];
    size_t n = strlen(name);
    if (n < 2 || n >= sizeof text || name[0] != '<' || name[n - 1] != '>')
        return false;
    memcpy(text, name, n + 1);
    text[0] = '{';
    text[n - 1] = '}';
    return regexec(pattern, text, 0, NULL, 0) == 0;
}

static bool matches_any(const struct patterns *p, const struct code_facts *facts)
{
    for (size_t i = 0; i < p->count; i++)
        if (matches(&p->regex[i], facts) ||
            (facts->flags & RING_CODE_C && matches_in_braces(&p->regex[i], facts->name)))
            return true;
    return false;
}

static bool is_wanted_by_name(const struct code_facts *facts)
{
    for (size_t i = 0; i < function_count; i++)
        if (is_named(facts, functions[i].name) && is_in_module(facts, functions[i].module))
            return true;
    return false;
}

bool select_wants(const struct code_facts *facts)
{
    if (!said)
        return true;
    bool inside = is_inside(facts->code);
    if (!inside && !is_wanted_by_name(facts))
        return matches_any(&of_lines, facts);
    if (!*facts->qualname && (inside || is_function(facts->code)))
        mark_inside(facts->code);
    return true;
}

bool select_has_filters(void)
{
    return included.count || excluded.count;
}

bool select_leaves_out(const struct code_facts *facts)
{
    if (strcmp(facts->file, CALIBRATE_FILE) ==
        0) /* ours: without it nobody knows what a call costs */
        return false;
    bool is_c = facts->flags & RING_CODE_C;
    return (included.count && !is_c && !matches_any(&included, facts)) ||
           matches_any(&excluded, facts);
}

uint32_t select_judge(const struct code_facts *facts)
{
    return select_leaves_out(facts) ? RING_CODE_LEFT_OUT : 0;
}
