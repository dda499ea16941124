/* Lines by the C trace function of each thread: CPython 3.8 to 3.11. It is set and covered together with
 * the profile function (profile.c).
 *
 * It is told of functions, too. So unless C functions are wanted, which only the profile function
 * hears of, it is the one hook there is: two would cost twice. */
#include "agent/hooks.h"
#include "agent/lines.h"
#include "agent/notes.h"
#include "agent/pyver_raised.h"
#include "agent/select.h"

#include <string.h>

bool trace_tells_functions(void)
{
    return lines_are_wanted() && !(guest.instruments & RING_C_CALLS);
}

static inline void on_line(py_frame *frame)
{
    guest_emit(RING_LINE, py_u32(frame, py.frame_lineno) & RING_MAX_VALUE);
}

/* --- which exception leaves a function ---
 *
 * Only for interpreters whose stack does not say it (pyver_raised.h): none that we have met.
 *
 * The interpreter tells of an exception in every function that it passes through, but not again of one that is raised once more: by a
 * bare raise, at the end of a finally or a with. So what was told is kept until the function ends, in a small table of the thread's, by
 * frame; and as a name, for by then the exception may be gone, and its type with it. If it leaves from where it was told, or if no
 * other was told, this is it. Else nobody knows, and nothing is said; so too where others took all its places in the table. */

enum { PLACES = 32, SHIFT = 64 - 5, NEAR = 8, NAME_BYTES = 112 };
struct raised {
    int32_t at;            /* the instruction */
    bool several;          /* of different names */
    char name[NAME_BYTES]; /* cut, or ended by a zero */
};
struct raised_table {
    const py_frame *frame[PLACES]; /* NULL: a free place */
    struct raised what[PLACES];
};
static_assert(PLACES == 1 << (64 - SHIFT), "a place for each hash");
static_assert(sizeof(struct raised_table) <= GUEST_PAGE, "it fits the thread's page");

static unsigned first_place(const py_frame *frame)
{
    return (unsigned)((uint64_t)(uintptr_t)frame * 0x9e3779b97f4a7c15ull >> SHIFT);
}

/* Which of the places from `first` on has it (NULL: which is free); PLACES if none. */
static unsigned find_place(const struct raised_table *t, unsigned first, const py_frame *wanted)
{
    for (unsigned i = 0; i < NEAR; i++)
        if (t->frame[(first + i) % PLACES] == wanted)
            return (first + i) % PLACES;
    return PLACES;
}

/* An exception passes through a function: (type, value, traceback). */
static void on_exception(py_frame *frame, const py_object *arg)
{
    if (pyver_raised_is_used() || !notes_are_wanted() || !arg || py_type(arg) != py.tuple_type)
        return;
    const py_object *type = pyver_tuple_item(arg, 0);
    struct guest_thread *me = &guest_me;
    if (!me->page)
        me->page = guest_map(GUEST_PAGE, -1, 0);
    if (!me->page || !type)
        return;
    struct raised_table *t = me->page;
    const char *name = pyver_type_name(type);
    unsigned first = first_place(frame), at = find_place(t, first, frame);
    bool other =
        at < PLACES && (t->what[at].several || strncmp(t->what[at].name, name, NAME_BYTES) != 0);
    if (at == PLACES)
        at = find_place(t, first, NULL);
    if (at == PLACES)
        at = first;
    t->frame[at] = frame;
    t->what[at] = (struct raised){.at = pyver_frame_place(frame), .several = other};
    memcpy(t->what[at].name, name, strnlen(name, NAME_BYTES));
}

void trace_begins(py_frame *frame)
{
    struct raised_table *t = guest_me.page;
    if (likely(!t))
        return;
    unsigned at = find_place(t, first_place(frame), frame);
    if (unlikely(at < PLACES))
        t->frame[at] = NULL; /* of a function that was there before, whose end was not told */
}

void trace_ends(py_frame *frame, bool raises)
{
    struct raised_table *t = guest_me.page;
    if (likely(!t))
        return;
    unsigned at = find_place(t, first_place(frame), frame);
    if (likely(at == PLACES))
        return;
    const struct raised *r = &t->what[at];
    if (raises && (!r->several || r->at == pyver_frame_place(frame)))
        notes_exception_name(r->name, strnlen(r->name, NAME_BYTES));
    t->frame[at] = NULL;
}

void trace_forgets(void)
{
    if (guest_me.page)
        memset(guest_me.page, 0, GUEST_PAGE);
}

/* --- the hooks --- */

/* Everybody's lines, and functions: the usual case. */
static int on_all(py_object *self, py_frame *frame, int what, py_object *arg)
{
    (void)self;
    if (likely(what == PY_WHAT_LINE))
        on_line(frame);
    else if (what == PY_WHAT_CALL)
        profile_on_call(frame);
    else if (what == PY_WHAT_RETURN)
        profile_on_return(frame, arg, __builtin_frame_address(0));
    else if (what == PY_WHAT_EXCEPTION)
        on_exception(frame, arg);
    return 0;
}

/* Lines of the selected, and functions if nobody else tells of them. */
static int on_some(py_object *self, py_frame *frame, int what, py_object *arg)
{
    (void)self;
    if (what == PY_WHAT_LINE) {
        if (!(codes_mark(pyver_frame_code(frame)) & (RING_CODE_LEFT_OUT | CODE_NO_LINES)))
            on_line(frame);
    } else if (what == PY_WHAT_EXCEPTION) {
        on_exception(frame, arg);
    } else if (trace_tells_functions()) {
        if (what == PY_WHAT_CALL)
            profile_on_call(frame);
        else if (what == PY_WHAT_RETURN)
            profile_on_return(frame, arg, __builtin_frame_address(0));
    }
    return 0;
}

void trace_cover(py_tstate *t)
{
    if (!pyver_has_trace(t))
        pyver_set_trace(t, trace_tells_functions() && select_is_everything() ? on_all : on_some);
}

void trace_take_out(py_tstate *t)
{
    py_tracefunc func = pyver_trace(t);
    if (func == on_all || func == on_some)
        pyver_set_trace(t, NULL);
}
