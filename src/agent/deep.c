#include "agent/deep.h"

#include "agent/guest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

enum {
    ALLOWANCE = 768 << 10, /* bytes of C stack: beyond the depth that Python allows by default */
    PART =
        4, /* of a smaller stack: a traced call takes a fifth more of it, so a twentieth is lost */
    MAX_PAUSED = 64, /* threads at a time */
    LOOK_EVERY_NS = 2000000,
    LAST_MINOR = 10,
};

static void (*set_hook)(py_tstate *t, bool on);

/* Threads that are not traced for now. Under the GIL. */
static struct paused {
    py_tstate *tstate; /* NULL: free */
    int depth;         /* where it was paused */
} paused[MAX_PAUSED];
static _Atomic int paused_count;
static int (*take_gil)(void); /* the interpreter's own, not the one that passes through us */
static void (*drop_gil)(int);
static bool watching;

void deep_init(void (*set)(py_tstate *t, bool on))
{
    set_hook = set;
}

bool deep_is_paused(const py_tstate *t)
{
    for (size_t i = 0; i < MAX_PAUSED && atomic_load(&paused_count); i++)
        if (paused[i].tstate == t)
            return true;
    return false;
}

const char *deep_mark(size_t allowance, unsigned part)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return NULL;
    int failed = pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
    if (failed || !size)
        return NULL;
    /* What the C library and thread-local variables take of a thread's stack is gone before it runs. */
    const char *top = (const char *)low + size, *taken = (const char *)&guest_me;
    if (taken > (const char *)low && taken < top) {
        size -= (size_t)(top - taken);
        top = taken;
    }
    return top - (size / part < allowance ? size / part : allowance);
}

void deep_new_thread(void)
{
    if (py.minor <= LAST_MINOR)
        guest_me.deep = deep_mark(ALLOWANCE, PART);
}

static bool still_there(const py_tstate *wanted)
{
    py_tstate *t = py.PyInterpreterState_ThreadHead(py.PyInterpreterState_Main());
    for (; t; t = py.PyThreadState_Next(t))
        if (t == wanted)
            return true;
    return false;
}

/* Whoever is back from the depth is traced again. */
static void look(void)
{
    for (size_t i = 0; i < MAX_PAUSED; i++) {
        struct paused *p = &paused[i];
        if (!p->tstate)
            continue;
        bool there = still_there(p->tstate);
        if (there && pyver_depth(p->tstate) >= p->depth)
            continue;
        py_tstate *back = p->tstate;
        p->tstate = NULL;
        atomic_fetch_sub(&paused_count, 1);
        if (there && guest.on)
            set_hook(back, true);
    }
}

static void *watch(void *unused)
{
    (void)unused;
    for (;;) {
        struct timespec nap = {0, LOOK_EVERY_NS};
        nanosleep(&nap, NULL);
        if (!atomic_load(&paused_count) || !py.Py_IsInitialized())
            continue;
        int state = take_gil();
        look();
        drop_gil(state);
    }
    return NULL;
}

static bool start_watching(void)
{
    static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (watching)
        return true;
    if (!create) {
        create = (__typeof__(create))dlsym(RTLD_NEXT, "pthread_create");
        take_gil = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
        drop_gil = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    }
    if (!create || !take_gil || !drop_gil)
        return false;
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watching = create(&thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (watching)
        pthread_detach(thread);
    return watching;
}

bool deep_pause(void)
{
    struct paused *p = NULL;
    for (size_t i = 0; i < MAX_PAUSED && !p; i++)
        if (!paused[i].tstate)
            p = &paused[i];
    if (!p || !start_watching())
        return false;
    py_tstate *t = py.PyThreadState_Get();
    guest_emit_pause(RING_PAUSE_DEEP);
    guest_resync();
    *p = (struct paused){t, pyver_depth(t)};
    atomic_fetch_add(&paused_count, 1);
    set_hook(t, false);
    return true;
}

void deep_forked(void)
{
    watching = false;
    memset(paused, 0, sizeof paused);
    atomic_store(&paused_count, 0);
}
