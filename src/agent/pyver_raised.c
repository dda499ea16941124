/* Where the variable is depends on how the interpreter was compiled: it is one of call_trace_protected's, or, if that keeps it in a
 * register, where call_trace has saved this register; or the two are one function. What makes it safe to look there is that nothing is
 * taken for a type which only looks like one:
 *
 * - At run time the hook must return to the same instruction, and so must the function that has called the hook. The frame of a C
 *   function has one size at one instruction, so the first address says where the second one is, and both say that the variable is
 *   there and is in use. Whoever else calls the hook (code made by Cython does) returns elsewhere, and is told apart before anything of
 *   its stack is looked at.
 * - While learning, a word that equals the type may be a mere copy, or what some function has left behind: Debian's 3.11 has such a
 *   one right below the variable. The variable is the one that the interpreter puts the exception back from: so another type is put
 *   there, and has to come out.
 *
 * (The traceback could be asked whether it is of this function, but memory that may be anything can only be read by way of the kernel,
 * and a program that has forbidden itself system calls is ended for that. Nor is it always of this function: not if a bare raise
 * raises what the caller has caught.) */
#include "agent/pyver_raised.h"

#include <dlfcn.h>
#include <link.h>

enum {
    WINDOW = 48,           /* words above the hook's frame that are looked at to learn */
    RETURNS_TO = 1,        /* of these, where the hook returns to */
    SHOT_BYTES = 64 << 10, /* of stack, at most, that one of our calls takes */
    CODE_BYTES = 4 << 10,  /* of the function that calls the hook, at most */
};

/* What was learned, in words above the hook's frame. */
static struct {
    unsigned variable; /* 0: it is not known */
    unsigned caller;   /* where the function that has called the hook returns to */
    const void *hook_returns_to, *caller_returns_to;
} known;

/* Learning: what events have found. */
static struct {
    void **begin; /* of the stack, where our call was made; NULL: we do not learn now */
    py_object *wanted;
    unsigned events;
    const void *first[WINDOW]; /* what the first event has found */
    bool is_type[WINDOW];      /* every event has found the type */
    bool is_same[WINDOW];      /* every event has found what the first has */
    unsigned replace;          /* where to put `by`; 0: nowhere */
    py_object *by;
    bool wrong; /* what is known has not proven right */
} shot;

static const py_object *told(void **hook)
{
    bool is_known = known.variable && hook[RETURNS_TO] == known.hook_returns_to &&
                    hook[known.caller] == known.caller_returns_to;
    return is_known ? hook[known.variable] : NULL;
}

static void look(void **hook)
{
    size_t bytes = (size_t)((char *)shot.begin - (char *)hook);
    if (hook >= shot.begin || bytes > SHOT_BYTES)
        return; /* of another thread */
    const py_object *type = told(hook);
    shot.wrong |= type && type != shot.wanted;
    for (unsigned i = 0; i < WINDOW; i++) {
        const void *word = i < bytes / sizeof *hook ? hook[i] : NULL;
        if (!shot.events)
            shot.first[i] = word;
        shot.is_same[i] = (!shot.events || shot.is_same[i]) && word && word == shot.first[i];
        shot.is_type[i] = (!shot.events || shot.is_type[i]) && word == shot.wanted;
    }
    shot.events++;
    if (shot.replace && hook[shot.replace] == shot.wanted) {
        hook[shot.replace] = shot.by;
        py.Py_IncRef(shot.by);
        shot.replace = 0;
    }
}

const py_object *pyver_raised(void **hook)
{
    if (__builtin_expect(shot.begin == NULL, 1))
        return told(hook);
    look(hook);
    return NULL;
}

/* --- learning --- */

/* Calls a function that an exception of the type `wanted` leaves. Gives the type that arrives; only to be compared. */
__attribute__((noinline)) static const py_object *shoot(py_object *names, const char *function,
                                                        py_object *wanted)
{
    py_object *f = py.PyDict_GetItemString(names, function);
    py_object *type = NULL, *value = NULL, *traceback = NULL;
    shot.wanted = wanted;
    shot.begin = __builtin_frame_address(0);
    py_object *result = f ? py.PyObject_CallFunctionObjArgs(f, wanted, (py_object *)NULL) : NULL;
    shot.begin = NULL;
    py.PyErr_Fetch(&type, &value, &traceback);
    py_object *const all[] = {result, type, value, traceback};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            py.Py_DecRef(all[i]);
    return type;
}

/* Is it what the interpreter puts the exception back from? Both types are of those that live for ever. */
static bool is_variable(unsigned at, py_object *names, py_object *type, py_object *other)
{
    shot.replace = at;
    shot.by = other;
    bool is = shoot(names, "leaves", type) == other;
    if (!shot.replace) /* it was put there: one of the two has lost its place */
        py.Py_DecRef(is ? type : other);
    shot.replace = 0;
    return is;
}

struct text { /* instructions of whoever has `inside` */
    const uint8_t *inside, *begin, *end;
};

static int find_text(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct text *text = data;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uint8_t *begin = (const uint8_t *)(info->dlpi_addr + p->p_vaddr);
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || text->inside < begin ||
            text->inside >= begin + p->p_memsz)
            continue;
        text->begin = begin;
        text->end = begin + p->p_memsz;
        return 1;
    }
    return 0;
}

/* Is it where a function returns to that has called the hook from `from`? Then a call stands before it, of a function that begins
 * not far before `from`. */
static bool returns_from(const struct text *text, const uint8_t *from, const uint8_t *word)
{
    enum { CALL = 0xe8, CALL_BYTES = 5 }; /* the opcode, then the distance */
    int32_t distance;
    if (word < text->begin + CALL_BYTES || word >= text->end || word[-CALL_BYTES] != CALL)
        return false;
    __builtin_memcpy(&distance, word - sizeof distance, sizeof distance);
    ptrdiff_t before = from - (word + distance);
    return before > 0 && before < CODE_BYTES;
}

/* Where both return to. */
static bool find_returns(void)
{
    const uint8_t *from = shot.first[RETURNS_TO];
    struct text text = {.inside = from};
    if (!shot.is_same[RETURNS_TO] || !dl_iterate_phdr(find_text, &text))
        return false;
    for (unsigned i = RETURNS_TO + 1; i < WINDOW; i++)
        if (shot.is_same[i] && returns_from(&text, from, shot.first[i])) {
            known.caller = i;
            known.hook_returns_to = from;
            known.caller_returns_to = shot.first[i];
            return true;
        }
    return false;
}

static py_object *exception(const char *name)
{
    py_object **at = dlsym(RTLD_DEFAULT, name);
    return at ? *at : NULL;
}

void pyver_raised_learn(py_object *names)
{
    py_object *key = exception("PyExc_KeyError"), *os = exception("PyExc_OSError"),
              *end = exception("PyExc_EOFError");
    if (!key || !os || !end)
        return;
    shoot(names, "leaves", key);
    shoot(names, "passes", os);
    if (!shot.events) /* nobody is told in this way */
        return;
    bool candidate[WINDOW];
    __builtin_memcpy(candidate, shot.is_type, sizeof candidate);
    unsigned at = RETURNS_TO + 1;
    while (at < WINDOW && !(candidate[at] && is_variable(at, names, key, end)))
        at++;
    if (at == WINDOW || !find_returns())
        return;
    known.variable = at;
    shoot(names, "leaves", end);
    shoot(names, "passes", key);
    shoot(names, "misses", key);
    shoot(names, "drives", os);
    if (shot.wrong)
        known.variable = 0;
}
