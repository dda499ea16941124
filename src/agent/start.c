/* How the guest comes in and leaves.
 *
 * The library is preloaded into every program of the tree. In one that is no CPython we know, it does
 * nothing but pass the invitation on. In one that is, it asks to hear audit events, and when the
 * interpreter says that it is about to run the main program, the hooks go in: the interpreter is
 * ready then, and not a line of the program has run. */
#include "agent/calibrate.h"
#include "agent/codes.h"
#include "agent/deep.h"
#include "agent/garbage.h"
#include "agent/hooks.h"
#include "agent/interpose.h"
#include "agent/lines.h"
#include "agent/memory.h"
#include "agent/notes.h"
#include "agent/select.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool installed;
static bool needs_slot;  /* of the profile function, which others may take */
static bool is_embedded; /* the program is not Python's own */

/* Functions that have begun before their thread's first record: outermost first. Their list is not on the stack, all of which it can
 * be: a thread may have 32 KiB. */
static void open_frames(enum ring_kind first)
{
    enum { MAX_OPEN = 4096 };
    py_frame **frames = guest_map(MAX_OPEN * sizeof *frames, -1, 0);
    size_t n = 0;
    for (py_frame *f = frames ? py.PyEval_GetFrame() : NULL; f && n < MAX_OPEN;
         f = pyver_frame_back(f))
        frames[n++] = f;
    calibrate_tell();
    deep_new_thread();
    /* a function that begins speaks for itself, and so does one that is about to be defined; any other
     * record comes from inside a function that runs: in a forked child, mostly */
    bool begins = first == RING_ENTER || first == RING_RESUME || first == RING_EXT;
    while (n-- > begins) {
        code_mark mark = codes_mark(pyver_frame_code(frames[n]));
        if (!(mark & RING_CODE_LEFT_OUT))
            guest_emit(RING_OPEN, codes_number(mark));
    }
    if (frames)
        guest_unmap(frames, MAX_OPEN * sizeof *frames);
}

/* --- other interpreters: hooks are the main one's, and so are our tables, which rely on its GIL --- */

static const _Atomic int64_t *made; /* how many there have been; NULL: nobody says it */
static int64_t told = 1;
static void (*chore_of_hooks)(void);

static void tell_interpreters(void)
{
    int64_t now = made ? atomic_load_explicit(made, memory_order_relaxed) : 0;
    if (now > told) {
        atomic_fetch_add(&guest.session->interpreters, (uint32_t)(now - told));
        told = now;
    }
}

static void chore(void)
{
    tell_interpreters();
    if (chore_of_hooks)
        chore_of_hooks();
}

static void watch_interpreters(void)
{
    made = pyver_interpreters_made();
    chore_of_hooks = guest_chore;
    guest_chore = chore;
}

/* Those that came and went since the last thought. */
__attribute__((destructor)) static void go(void)
{
    tell_interpreters();
}

/* --- the way in --- */

static void install(void)
{
    installed = true;
    if (guest.instruments & RING_MEMORY) {
        memory_watch_python();
        memory_end_watch();
    }
    if (!(guest.instruments & RING_ANY_EVENTS)) {
        atomic_store(&guest.on, true); /* for what the program says of itself */
        return;
    }
    if (!codes_init()) {
        atomic_fetch_add(&guest.session->unhooked, 1);
        return;
    }
    if (notes_are_wanted())
        garbage_prepare(); /* what importing calls is not the program's */
    calibrate_bare();
    atomic_store(&guest.on, true);
    guest_new_thread = open_frames;
    guest_name_thread = notes_thread_name;
    bool with_lines = lines_are_wanted();
    select_init();
    if (with_lines)
        lines_init();
    else if (select_has_filters())
        codes_judge = select_judge;
    bool without_c = py.minor == 11 && !(guest.instruments & RING_C_CALLS) && !with_lines;
    bool good = py.has_monitoring ? monitoring_install()
                : without_c       ? evalframe_install()
                                  : profile_install();
    if (!good) {
        atomic_store(&guest.on, false);
        atomic_fetch_add(&guest.session->unhooked, 1);
        return;
    }
    watch_interpreters();
    calibrate_hooked();
    if (notes_are_wanted())
        garbage_install();
    needs_slot = !py.has_monitoring && !without_c;
    if (needs_slot)
        interpose_start();
}

/* Our entry in the interpreter's list of audit hooks. */
struct entry {
    struct entry *next;
};
static struct entry *entry;

/* As long as somebody listens, the interpreter makes a tuple of every event, and id() is one: it took twice as long.
 * The entry itself stays where it is: the interpreter may be just going over the list. */
static void stop_listening(void)
{
    void **place = entry ? pyver_find_in_runtime(entry) : NULL;
    if (place) /* else others are before us */
        *place = entry->next;
}

static int on_audit(const char *event, py_object *args, void *unused)
{
    (void)args, (void)unused;
    if (!installed) {
        bool main_program = strncmp(event, "cpython.run_", 12) == 0;
        /* a program that embeds Python runs what it likes: its first code object is as near */
        bool embedded = is_embedded && strcmp(event, "exec") == 0;
        if ((main_program || embedded) && py.Py_IsInitialized()) {
            install();
            if (!needs_slot)
                stop_listening();
        }
    } else if ((strcmp(event, "sys.setprofile") == 0 && needs_slot) ||
               (strcmp(event, "sys.settrace") == 0 && lines_are_wanted() && !py.has_monitoring)) {
        profile_others();
    }
    return 0;
}

static void on_fork(void)
{
    guest_forked();
    deep_forked();
    memory_forked();
}

/* Our own path, to be handed on. */
static void prepare_children(void)
{
    Dl_info info;
    if (!dladdr((void *)prepare_children, &info) || !info.dli_fname)
        return;
    int n = snprintf(interpose_preload, sizeof interpose_preload, "LD_PRELOAD=%s", info.dli_fname);
    if (n < 0 || (size_t)n >= sizeof interpose_preload)
        interpose_preload[0] = 0;
    snprintf(interpose_variable, sizeof interpose_variable, "%s=%s", RING_VARIABLE, guest.variable);
}

/* Is the program Python's own, whatever the name it was called by? */
static bool runs_python(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        return false;
    path[n] = 0;
    const char *name = strrchr(path, '/');
    return name && strncmp(name + 1, "python", 6) == 0;
}

/* Memory for the entry. We are before it has read its options: with PYTHONMALLOC=debug or -X dev it
 * gives the entry back, at its very end, to another allocator than the one it was taken from, which looks for its own marks
 * around every block (pyver.h) and ends the program if they are not there. So the entry has them. free() passes it over. */
static void *give_entry(void *ctx, size_t size)
{
    (void)ctx;
    char *block = memory_take_for_ever(size + PY_DEBUG_BEFORE + PY_DEBUG_AFTER);
    if (!block)
        return NULL;
    pyver_mark_debug_block(block, size);
    entry = (struct entry *)(block + PY_DEBUG_BEFORE);
    return entry;
}

static void listen(void)
{
    struct py_allocator below;
    py.PyMem_GetAllocator(PY_DOMAIN_RAW, &below);
    const struct py_allocator ours = {below.ctx, give_entry, below.calloc, below.realloc,
                                      below.free};
    py.PyMem_SetAllocator(PY_DOMAIN_RAW, &ours);
    py.PySys_AddAuditHook(on_audit, NULL);
    py.PyMem_SetAllocator(PY_DOMAIN_RAW, &below);
}

__attribute__((constructor)) static void come_in(void)
{
    if (!guest_enter(getenv(RING_VARIABLE)))
        return;
    prepare_children();
    if (!pyver_load())
        return;
    pthread_atfork(NULL, NULL, on_fork);
    is_embedded = !runs_python();
    listen();
    if (!(guest.instruments & RING_MEMORY) || !memory_start())
        return;
    if (memory_libc_has_own_new())
        atomic_fetch_add(&guest.session->own_new, 1);
    if (guest.instruments & RING_SAMPLED)
        memory_libc_sample();
}

/* --- by the program's own wish (python/pyrometer/_memory.py), with the GIL held --- */

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int pyrometer_agent_invite(const char *variable);
EXPORTED void pyrometer_agent_leave(void);

/* 0 if memory is watched from now on. Only Python's own allocators: libc's can only be had from the start. */
int pyrometer_agent_invite(const char *variable)
{
    static bool forks;
    if ((guest.session && !guest.left) || !guest_enter(variable))
        return -1;
    if (!pyver_load()) {
        guest_leave();
        return -1;
    }
    if (!forks)
        pthread_atfork(NULL, NULL, on_fork);
    forks = true;
    if (!memory_start()) {
        guest_leave();
        return -1;
    }
    memory_watch_python();
    memory_end_watch();
    return 0;
}

void pyrometer_agent_leave(void)
{
    memory_stop();
    guest_leave();
}
