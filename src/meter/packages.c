#include "meter/packages.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    FOLDERS_MAX = 256,
    DISTRIBUTIONS_MAX = 20000,
    RECORD_MAX = 16 << 20, /* bytes of the list of a distribution's files */
    TOP_LEVEL_MAX = 64 << 10,
    PATIENCE_S = 2, /* at the end, for folders that are still being read */
};

struct distribution {
    char *path;           /* owned; of its .dist-info or .egg-info */
    char *name, *version; /* owned */
    struct names tops;    /* modules without a dot that it brought */
};

struct packages {
    pthread_mutex_t lock; /* guards `folders` and `closing` */
    pthread_cond_t more;
    struct names folders;
    bool closing;
    pthread_t thread;
    bool running;
    VEC(struct distribution) found; /* the thread's, until it has ended */
};

/* --- one distribution --- */

/* The module that a file in a list belongs to, as a dotted name into `dst`; false: none. */
static bool module_of_file(const char *path, size_t len, char *dst, size_t size)
{
    static const char *const ends[] = {"/__init__.py", ".py", ".so"};
    size_t cut = 0;
    if (len >= size || (len && (path[0] == '.' || path[0] == '/')))
        return false;
    for (size_t i = 0; !cut && i < ARRAY_LEN(ends); i++) {
        size_t n = strlen(ends[i]);
        if (len > n && !memcmp(path + len - n, ends[i], n))
            cut = len - n;
    }
    if (!cut)
        return false;
    for (size_t i = 0; i < cut; i++)
        dst[i] = path[i] == '/' ? '.' : path[i];
    /* "x.cpython-312-x86_64-linux-gnu": what follows the module's own name is not its name */
    size_t from = cut;
    while (from > 0 && path[from - 1] != '/')
        from--;
    const char *dot = memchr(path + from, '.', cut - from);
    dst[dot ? (size_t)(dot - path) : cut] = '\0';
    return dst[0] != '\0';
}

typedef bool (*module_fn)(void *ctx, const char *module);

/* Each module in RECORD (or SOURCES of an egg); false if the visitor ended it. */
static bool each_file(const char *folder, module_fn visit, void *ctx)
{
    static const char *const lists[] = {"RECORD", "installed-files.txt", "SOURCES.txt"};
    char path[4352], module[1024];
    struct buf b;
    buf_init(&b, RECORD_MAX);
    for (size_t i = 0; !b.len && i < ARRAY_LEN(lists); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, lists[i]);
        io_read_file(path, &b);
    }
    bool go_on = true;
    const char *at = (const char *)b.data, *end = at + b.len;
    while (go_on && at && at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end ? line_end : end;
        const char *comma = memchr(at, ',', (size_t)(line_end - at));
        if (module_of_file(at, (size_t)((comma ? comma : line_end) - at), module, sizeof module))
            go_on = visit(ctx, module);
        at = line_end + 1;
    }
    buf_release(&b);
    return go_on;
}

static bool add_top(void *ctx, const char *module)
{
    names_add(ctx, module, strcspn(module, "."));
    return true;
}

static void read_tops(struct distribution *d)
{
    char path[4352];
    struct buf b;
    buf_init(&b, TOP_LEVEL_MAX);
    snprintf(path, sizeof path, "%s/top_level.txt", d->path);
    if (io_read_file(path, &b) == 0 && b.len) {
        for (const char *at = buf_cstr(&b); *at;) {
            size_t len = strcspn(at, "\r\n");
            if (len)
                names_add(&d->tops, at, len);
            at += len + strspn(at + len, "\r\n");
        }
    } else {
        each_file(d->path, add_top, &d->tops);
    }
    buf_release(&b);
}

/* "NAME-VERSION.dist-info", "NAME-VERSION-py3.11.egg-info", "NAME.egg-info" */
static bool split_name(const char *entry, struct distribution *d)
{
    size_t len = strlen(entry);
    const char *end = len > 10 && !strcmp(entry + len - 10, ".dist-info") ? entry + len - 10
                      : len > 9 && !strcmp(entry + len - 9, ".egg-info")  ? entry + len - 9
                                                                          : NULL;
    const char *dash = end ? memchr(entry, '-', (size_t)(end - entry)) : NULL;
    if (!end || !dash)
        return false;
    const char *second = memchr(dash + 1, '-', (size_t)(end - dash - 1));
    d->name = strndup(entry, (size_t)(dash - entry));
    d->version = strndup(dash + 1, (size_t)((second ? second : end) - dash - 1));
    return true;
}

/* --- the thread --- */

static void read_folder(struct packages *p, const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (const struct dirent *e; (e = readdir(dir)) && p->found.len < DISTRIBUTIONS_MAX;) {
        struct distribution d = {0};
        if (e->d_name[0] == '.' || !split_name(e->d_name, &d))
            continue;
        if (asprintf(&d.path, "%s/%s", folder, e->d_name) < 0)
            d.path = NULL;
        struct distribution *slot = d.path && d.name && d.version ? vec_push(&p->found) : NULL;
        if (!slot) {
            free(d.path);
            free(d.name);
            free(d.version);
            continue;
        }
        read_tops(&d);
        *slot = d;
    }
    closedir(dir);
}

static void *read_folders(void *ctx)
{
    struct packages *p = ctx;
    pthread_mutex_lock(&p->lock);
    for (size_t done = 0;;) {
        if (done < p->folders.list.len) {
            const char *folder = p->folders.list.data[done++]; /* texts stay where they are */
            pthread_mutex_unlock(&p->lock);
            read_folder(p, folder);
            pthread_mutex_lock(&p->lock);
        } else if (p->closing) {
            break;
        } else {
            pthread_cond_wait(&p->more, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

int packages_new(struct packages **ret)
{
    struct packages *p = calloc(1, sizeof *p);
    if (!p)
        return E_NOMEM;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    *ret = p;
    return 0;
}

/* Signals are for the thread that runs the recording. */
static void start_thread(struct packages *p)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    p->running = pthread_create(&p->thread, NULL, read_folders, p) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void packages_add_folder(struct packages *p, const char *folder)
{
    if (folder[0] != '/')
        return; /* "" and relative ones hold the program's own modules */
    pthread_mutex_lock(&p->lock);
    if (p->folders.list.len < FOLDERS_MAX && !p->closing) {
        names_add(&p->folders, folder, strlen(folder));
        if (!p->running)
            start_thread(p);
        pthread_cond_signal(&p->more);
    }
    pthread_mutex_unlock(&p->lock);
}

/* False: a file system that does not answer holds it; the thread keeps what it needs. */
static bool close_thread(struct packages *p)
{
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (p->running && pthread_timedjoin_np(p->thread, NULL, &until) != 0)
        return false;
    p->running = false;
    return true;
}

/* --- matching --- */

static bool is_not_imported(void *ctx, const char *module)
{
    return !names_has(ctx, module, strlen(module));
}

/* How many distributions brought this name. */
static size_t owners(const struct packages *p, const char *top)
{
    size_t n = 0;
    for (size_t i = 0; i < p->found.len; i++)
        n += names_has(&p->found.data[i].tops, top, strlen(top));
    return n;
}

static bool was_imported(const struct packages *p, const struct distribution *d,
                         const struct names *modules)
{
    for (size_t i = 0; i < d->tops.list.len; i++) {
        const char *top = d->tops.list.data[i];
        if (!names_has(modules, top, strlen(top)))
            continue;
        if (owners(p, top) == 1 || !each_file(d->path, is_not_imported, (void *)modules))
            return true;
    }
    return false;
}

void packages_match(struct packages *p, const struct names *modules, packages_fn tell, void *ctx)
{
    if (!close_thread(p))
        return;
    for (size_t i = 0; i < p->found.len; i++)
        if (was_imported(p, &p->found.data[i], modules))
            tell(ctx, p->found.data[i].name, p->found.data[i].version);
}

void packages_free(struct packages *p)
{
    if (!p || !close_thread(p))
        return;
    for (size_t i = 0; i < p->found.len; i++) {
        struct distribution *d = &p->found.data[i];
        free(d->path);
        free(d->name);
        free(d->version);
        names_release(&d->tops);
    }
    vec_release(&p->found);
    names_release(&p->folders);
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
