/* Finding the interpreter in a process.
 *
 * The symbol _PyRuntime (in libpython, or in a static python) is the root of everything. Its version
 * comes from, in this order: the debug offsets it begins with (3.13+), the symbol Py_Version (3.11+),
 * the file's name, and last from trying each table until one makes sense. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "remote/elf.h"
#include "remote/instruction.h"
#include "remote/internal.h"
#include "remote/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
    MAX_MAPS_BYTES = 16 << 20,
    MAX_ELF_BYTES = 1 << 30,
    MAX_FINDINGS = 16,
    RETRY_NS = 5 * NS_PER_MS,
};

enum { SYM_RUNTIME, SYM_CODE_TYPE, SYM_VERSION, SYM_COUNT };
static const char *const symbol_names[SYM_COUNT] = {"_PyRuntime", "PyCode_Type", "Py_Version"};

/* What was found in a file, so that a hundred children of one interpreter cost one search. */
struct finding {
    dev_t dev;
    ino_t ino;
    struct timespec changed;
    uint64_t symbols[SYM_COUNT]; /* as the file has them; all 0: no interpreter */
    uint64_t vaddr;
};

struct remote_finder {
    struct finding findings[MAX_FINDINGS];
    unsigned next; /* the oldest makes room */
};

struct remote_finder *remote_finder_new(void)
{
    return calloc(1, sizeof(struct remote_finder));
}

void remote_finder_free(struct remote_finder *f)
{
    free(f);
}

static const struct finding *remembered(const struct remote_finder *f, const struct stat *st)
{
    for (unsigned i = 0; f && i < MAX_FINDINGS; i++) {
        const struct finding *e = &f->findings[i];
        if (e->ino == st->st_ino && e->dev == st->st_dev &&
            e->changed.tv_sec == st->st_ctim.tv_sec && e->changed.tv_nsec == st->st_ctim.tv_nsec)
            return e;
    }
    return NULL;
}

/* Searches the file at `path`, or remembers what was found there before. */
static int search_file(struct remote_finder *f, const char *path, struct finding *ret)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_from_errno(errno);
    if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > MAX_ELF_BYTES)
        return E_FORMAT;
    const struct finding *known = remembered(f, &st);
    if (known) {
        *ret = *known;
        return 0;
    }
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_from_errno(errno);
    size_t len = (size_t)st.st_size;
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return err_from_errno(errno);
    struct finding found = {st.st_dev, st.st_ino, st.st_ctim, {0}, 0};
    int rc = elf_symbols(data, len, symbol_names, SYM_COUNT, found.symbols, &found.vaddr);
    munmap(data, len);
    if (rc < 0)
        return rc;
    if (f)
        f->findings[f->next++ % MAX_FINDINGS] = found;
    *ret = found;
    return 0;
}

/* Has the file lost its name since it was mapped, as an upgrade does it? The kernel says so behind the name. */
static bool is_unlinked(const char *path)
{
    static const char suffix[] = " (deleted)";
    size_t len = strlen(path), n = sizeof suffix - 1;
    return len > n && strcmp(path + len - n, suffix) == 0;
}

/* Searches a mapped file, by its name in the target's own root (a container's files are not ours) or, if that was taken from
 * it, by what the kernel keeps of it: the executable for all who may look at the process, others for the privileged alone. */
static int search_mapped(struct remote_finder *f, pid_t pid, const struct maps_candidate *c,
                         const char *exe, struct finding *ret)
{
    char path[MAPS_MAX_PATH + 64];
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, c->path);
    int rc = search_file(f, path, ret);
    if (rc != E_NOENT || !is_unlinked(c->path))
        return rc;
    if (strcmp(c->path, exe) == 0)
        snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    else
        snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, c->base,
                 c->end);
    return search_file(f, path, ret) < 0 ? E_REPLACED : 0;
}

/* The symbols of a mapped file as addresses in the target. */
static int locate(struct remote_finder *f, pid_t pid, const struct maps_candidate *c,
                  const char *exe, uint64_t ret[SYM_COUNT])
{
    struct finding found = {0};
    int rc = search_mapped(f, pid, c, exe, &found);
    if (rc < 0)
        return rc;
    if (!found.symbols[SYM_RUNTIME])
        return E_NOTPYTHON;
    for (int i = 0; i < SYM_COUNT; i++)
        ret[i] = found.symbols[i] ? found.symbols[i] + c->base - found.vaddr : 0;
    return 0;
}

/* "3.11" anywhere in "libpython3.11.so.1.0" or "/usr/bin/python3.11" */
static bool version_from_name(const char *path, int *ret_major, int *ret_minor)
{
    const char *slash = strrchr(path, '/');
    const char *p = strstr(slash ? slash : path, "python");
    return p && sscanf(p, "python%d.%d", ret_major, ret_minor) == 2;
}

/* Does walking runtime → interpreter → thread → interpreter come back to where it started? */
static bool layout_fits(const struct mem *m, uint64_t runtime, const struct pylayout *l)
{
    uint64_t interp, tstate, back;
    return mem_read_ptr(m, runtime + l->runtime.interpreters_head, &interp) == 0 &&
           mem_plausible(interp) &&
           mem_read_ptr(m, interp + l->interp.threads_head, &tstate) == 0 &&
           mem_plausible(tstate) && mem_read_ptr(m, tstate + l->tstate.interp, &back) == 0 &&
           back == interp;
}

static int choose_layout(struct remote *r, const char *path, const uint64_t symbols[SYM_COUNT])
{
    uint8_t head[PYLAYOUT_PROBE_BYTES];
    int rc = mem_read(&r->mem, r->runtime, head, sizeof head);
    if (rc < 0)
        return rc;
    uint64_t hex = 0;
    int major = 0, minor = 0;
    if (symbols[SYM_VERSION] && mem_read_ptr(&r->mem, symbols[SYM_VERSION], &hex) == 0) {
        major = (int)(hex >> 24 & 0xff);
        minor = (int)(hex >> 16 & 0xff);
        snprintf(r->version, sizeof r->version, "%d.%d.%d", major, minor, (int)(hex >> 8 & 0xff));
    }
    rc = pylayout_from_debug_offsets(head, sizeof head, &r->layout);
    if (rc == 0 || rc == E_VERSION)
        return rc;
    if (!major && version_from_name(path, &major, &minor))
        snprintf(r->version, sizeof r->version, "%d.%d", major, minor);
    if (major) {
        const struct pylayout *l = pylayout_table(major, minor);
        if (l) {
            r->layout = *l;
            return 0;
        }
        /* 3.13+ fills its debug offsets in before anything runs; zeros mean it has not started */
        bool blank = head[0] == 0 && head[8] == 0;
        return major == 3 && minor >= 13 && blank ? E_NOTREADY : E_VERSION;
    }
    for (size_t i = 0;; i++) {
        const struct pylayout *l = pylayout_table_at(i);
        if (!l)
            return E_NOTREADY; /* nothing fits, perhaps not yet */
        if (layout_fits(&r->mem, r->runtime, l)) {
            r->layout = *l;
            snprintf(r->version, sizeof r->version, "%d.%d", l->major, l->minor);
            return 0;
        }
    }
}

/* A process that has ended but was not waited for: it has a number, and nothing else. */
static bool is_zombie(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (io_read_text(path, text, sizeof text) <= 0)
        return true;
    const char *p = strrchr(text, ')');
    return p && p[1] == ' ' && (p[2] == 'Z' || p[2] == 'X');
}

static int find_interpreter(struct remote *r, struct remote_finder *f, pid_t pid)
{
    char path[64], exe[MAPS_MAX_PATH];
    struct buf maps;
    buf_init(&maps, MAX_MAPS_BYTES);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    int rc = io_read_file(path, &maps);
    if (rc == E_NOENT)
        rc = E_NOPROC;
    if (rc == E_ACCESS)
        rc = E_PERM;
    if (rc == 0 && maps.len == 0 && is_zombie(pid))
        rc = E_NOPROC;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, exe, sizeof exe - 1);
    bool denied = n < 0 && errno == EACCES; /* some kernels show the maps to those with no right */
    bool replaced = false;
    exe[n > 0 ? n : 0] = 0;

    struct maps_candidate *candidates = calloc(MAPS_MAX_CANDIDATES, sizeof *candidates);
    if (!candidates)
        rc = E_NOMEM;
    size_t count = rc < 0 ? 0 : maps_candidates((char *)maps.data, maps.len, exe, candidates);
    if (rc == 0)
        rc = E_NOTPYTHON;
    for (size_t i = 0; i < count && rc == E_NOTPYTHON; i++) {
        uint64_t symbols[SYM_COUNT];
        int found = locate(f, pid, &candidates[i], exe, symbols);
        replaced |= found == E_REPLACED;
        if (found < 0)
            continue;
        r->runtime = symbols[SYM_RUNTIME];
        r->code_type = symbols[SYM_CODE_TYPE];
        rc = choose_layout(r, candidates[i].path, symbols);
    }
    free(candidates);
    buf_release(&maps);
    if (rc == E_NOTPYTHON && (denied || replaced))
        rc = denied ? E_PERM : E_REPLACED;
    return rc;
}

int remote_open(struct remote_finder *finder, pid_t pid, struct remote **ret)
{
    struct remote *r = calloc(1, sizeof *r);
    if (!r)
        return E_NOMEM;
    r->mem.pid = pid;
    r->rng = clock_mono_ns() | 1;
    tasks_init(&r->tasks, pid);
    int rc = find_interpreter(r, finder, pid);
    if (rc == 0)
        rc = remote_refresh_threads(r);
    if (rc < 0) {
        remote_close(r);
        return rc;
    }
    *ret = r;
    return 0;
}

int remote_open_patiently(pid_t pid, struct remote **ret)
{
    uint64_t end_ns = clock_mono_ns() + NS_PER_SEC;
    for (;;) {
        int rc = remote_open(NULL, pid, ret);
        if ((rc != E_NOTREADY && rc != E_BADMEM) || clock_mono_ns() >= end_ns)
            return rc;
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
    }
}

void remote_close(struct remote *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->threads.len; i++)
        thread_free(r->threads.data[i]);
    vec_release(&r->threads);
    vec_release(&r->heads);
    tasks_release(&r->tasks);
    codes_release(r);
    instruction_watch_free(r->watch);
    free(r);
}

pid_t remote_pid(const struct remote *r)
{
    return r->mem.pid;
}

const struct pylayout *remote_layout(const struct remote *r)
{
    return &r->layout;
}

const char *remote_version(const struct remote *r)
{
    return r->version;
}

void remote_set_unsafe(struct remote *r, bool unsafe)
{
    r->unsafe = unsafe;
}

void remote_set_patience(struct remote *r, uint64_t ns)
{
    r->patience_ns = ns;
}
