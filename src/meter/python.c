#include "meter/python.h"

#include "base/clock.h"
#include "base/err.h"
#include "remote/modules.h"
#include "remote/remote.h"

#include <stdio.h>

/* A program that ends right after an import must have been looked at in between; what is in
 * sys.modules stays there until the interpreter has run its exit handlers and collected its garbage.
 * An old program is looked at less often: it takes longer to end. */
#define LOOK_MIN_NS  NS_PER_MS
#define LOOK_MAX_NS  (20 * NS_PER_MS)
#define PROBE_MIN_NS NS_PER_MS
#define PROBE_MAX_NS (500 * NS_PER_MS)
enum { LOOK_SHARE = 200, /* of the age */ PATHS_EVERY = 16 };

struct marks {
    struct remote_modules_mark modules;
    uint64_t first_ns;
    unsigned changes; /* looks that found something new */
    bool has_paths;
};

int python_init(struct python *p)
{
    *p = (struct python){0};
    p->finder = remote_finder_new();
    return packages_new(&p->packages);
}

static void forget(struct tree_process *c)
{
    remote_close(c->remote);
    free(c->marks);
    c->remote = NULL;
    c->marks = NULL;
}

void python_release(struct python *p, struct tree *t)
{
    for (size_t i = 0; i < t->list.len; i++)
        if (t->list.data[i].remote)
            forget(&t->list.data[i]);
    remote_finder_free(p->finder);
    packages_free(p->packages);
    names_release(&p->modules);
}

static void add_module(void *ctx, const char *name)
{
    struct python *p = ctx;
    /* setuptools' hook, which `site` imports wherever setuptools is installed: nobody asked for it */
    if (strcmp(name, "_distutils_hack") != 0)
        names_add(&p->modules, name, strlen(name));
}

static void add_folder(void *ctx, const char *folder)
{
    struct python *p = ctx;
    packages_add_folder(p->packages, folder);
}

static void look(struct python *p, struct tree_process *c, uint64_t now_ns)
{
    struct marks *m = c->marks;
    size_t before = p->modules.list.len;
    int rc = remote_modules_look(c->remote, &m->modules, add_module, p);
    if (rc == E_NOPROC || rc == E_BADMEM || rc == E_PERM) {
        forget(c); /* it ended, or became another program */
        c->probe_ns = now_ns + PROBE_MIN_NS;
        c->probes = 0;
        return;
    }
    if (p->modules.list.len != before)
        m->changes++;
    if (!m->has_paths || (p->modules.list.len != before && m->changes % PATHS_EVERY == 0))
        m->has_paths = remote_sys_path(c->remote, add_folder, p) == 0;
    uint64_t pause = (now_ns - m->first_ns) / LOOK_SHARE;
    c->look_ns = now_ns + min_u64(LOOK_MAX_NS, max_u64(LOOK_MIN_NS, pause));
}

static void probe(struct python *p, struct tree_process *c, uint64_t now_ns)
{
    int rc = remote_open(p->finder, c->pid, &c->remote);
    if (rc == 0) {
        struct marks *m = c->marks = calloc(1, sizeof *m);
        if (!m) {
            forget(c);
            return;
        }
        m->first_ns = now_ns;
        if (!p->version[0])
            snprintf(p->version, sizeof p->version, "%s", remote_version(c->remote));
        look(p, c, now_ns);
        return;
    }
    c->remote = NULL;
    /* it may exec or load an interpreter later: looked at ever more seldom */
    uint64_t pause = PROBE_MIN_NS << min_u64(c->probes++ / 4, 20);
    c->probe_ns = now_ns + (rc == E_NOTREADY ? PROBE_MIN_NS : min_u64(pause, PROBE_MAX_NS));
}

uint64_t python_look(struct python *p, struct tree *t, uint64_t now_ns)
{
    uint64_t next = now_ns + PROBE_MAX_NS;
    for (size_t i = 0; i < t->list.len; i++) {
        struct tree_process *c = &t->list.data[i];
        if (c->gone) {
            if (c->remote)
                forget(c);
            continue;
        }
        if (c->remote && now_ns >= c->look_ns)
            look(p, c, now_ns);
        else if (!c->remote && now_ns >= c->probe_ns)
            probe(p, c, now_ns);
        next = min_u64(next, c->remote ? c->look_ns : c->probe_ns);
    }
    return next;
}
