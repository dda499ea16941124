#include "record/procs.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "record/procfs.h"
#include "record/rights.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

enum {
    MAX_COMMAND_BYTES = 64 << 10,
    MAX_NEW_PIDS = 4096, /* beyond that a whole scan is cheaper */
    SCAN_STEP =
        8, /* processes at a time: a system may have thousands, and looks are not to wait for them */
};
#define FIRST_PROBE_NS  (2 * NS_PER_MS)  /* lets fork + exec get to the exec */
#define RETRY_NS        (2 * NS_PER_MS)  /* an interpreter that is starting */
#define LATER_NS        (5 * NS_PER_MS)  /* has it become another program? */
#define REPROBE_NS      (NS_PER_SEC / 2) /* has it loaded an interpreter meanwhile? */
#define SCAN_NS         (NS_PER_SEC)     /* safety net for births that were missed */
#define FORK_TO_EXEC_NS (50 * NS_PER_MS) /* a fork may stay its parent's image for so long */
#define BIRTHS_NS       (NS_PER_MS / 4)  /* births are looked for no more often than this */

struct proc {
    struct record_process record;
    struct target *target; /* while it is being sampled */
    struct procfs_image image;
    bool attached; /* the recording ends with it */
    bool named;    /* its command line has been read */
    bool gone;
    bool was_python;     /* and not only between a fork and an exec */
    uint64_t sampled_ns; /* since when */
    uint64_t born_ns, probe_ns, full_probe_ns;
    unsigned failures; /* in a row */
};

/* A process that was given a number. */
struct known {
    pid_t pid;
    uint32_t id;
};

struct procs {
    struct target_shared *shared;
    bool adopt;
    struct remote_finder *finder;
    int loadavg_fd;
    uint64_t last_pid;  /* youngest number seen */
    uint64_t births_ns; /* when it was looked at */
    uint64_t scan_ns;   /* when the last one was through */
    DIR *scan;          /* one that is under way, or NULL */
    uint32_t next_id;
    VEC(struct known) known; /* every process there was, in the order of their numbers */
    VEC(struct proc *) list; /* those alive, as far as we know */
    uint64_t ended[RECORD_PROCESS_UNSUPPORTED + 1]; /* by kind */
};

static void write_process(struct procs *p, const struct proc *c)
{
    format_writer_process(p->shared->writer, &c->record);
}

static struct proc *find(const struct procs *p, pid_t pid)
{
    for (size_t i = 0; i < p->list.len; i++)
        if ((pid_t)p->list.data[i]->record.pid == pid && !p->list.data[i]->gone)
            return p->list.data[i];
    return NULL;
}

static void read_command(struct procs *p, struct proc *c)
{
    struct buf b;
    buf_init(&b, MAX_COMMAND_BYTES);
    procfs_command((pid_t)c->record.pid, &b);
    if (b.len)
        c->record.command = format_writer_string(p->shared->writer, (char *)b.data, b.len);
    c->named = b.len > 0;
    buf_release(&b);
}

/* Best effort: without memory a guest's process gets a second number. */
static void remember(struct procs *p, pid_t pid, uint32_t id)
{
    struct known *k = vec_push(&p->known);
    if (k)
        *k = (struct known){pid, id};
}

/* ---- births ---- */

static int add(struct procs *p, pid_t pid, pid_t parent, uint64_t now_ns, struct proc **ret)
{
    struct proc *c = calloc(1, sizeof *c);
    struct proc **slot = c ? vec_push(&p->list) : NULL;
    if (!slot) {
        free(c);
        return E_NOMEM;
    }
    *slot = c;
    c->record = (struct record_process){
        .id = p->next_id++,
        .pid = (uint32_t)pid,
        .parent_pid = (uint32_t)parent,
        .start_ns = now_ns - p->shared->origin_ns,
    };
    c->born_ns = now_ns;
    c->probe_ns = now_ns + FIRST_PROBE_NS;
    p->shared->stats->value[RECORD_STAT_PROCESSES_SEEN]++;
    remember(p, pid, c->record.id);
    write_process(p, c);
    if (ret)
        *ret = c;
    return 0;
}

static bool has_number(const struct procs *p, pid_t pid, uint32_t *ret)
{
    for (size_t i = p->known.len; i-- > 0;)
        if (p->known.data[i].pid == pid) {
            *ret = p->known.data[i].id;
            return true;
        }
    return false;
}

static bool is_ours(const struct procs *p, pid_t parent)
{
    return find(p, parent) != NULL || (p->adopt && parent == getpid());
}

static void consider(struct procs *p, uint64_t pid, uint64_t now_ns)
{
    pid_t parent;
    uint32_t id;
    if (pid == (uint64_t)getpid() || find(p, (pid_t)pid))
        return;
    enum procfs_number kind = procfs_examine(pid, &parent);
    if (kind == PROCFS_GONE)
        p->shared->stats->value[RECORD_STAT_NUMBERS_VANISHED]++;
    bool is_new =
        kind == PROCFS_PROCESS || (kind == PROCFS_ENDED && !has_number(p, (pid_t)pid, &id));
    if (is_new && is_ours(p, parent))
        add(p, (pid_t)pid, parent, now_ns, NULL);
}

/* Goes on through the processes of the system, oldest number first, so that parents come before children, and looks at `most` of
 * them. */
static void scan(struct procs *p, uint64_t now_ns, size_t most)
{
    if (!p->scan)
        p->scan = opendir("/proc");
    struct dirent *e = NULL;
    while (p->scan && most && (e = readdir(p->scan))) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        consider(p, strtoull(e->d_name, NULL, 10), now_ns);
        most--;
    }
    if (e) /* there may be more */
        return;
    if (p->scan)
        closedir(p->scan);
    p->scan = NULL;
    p->scan_ns = now_ns;
}

static void scan_all(struct procs *p, uint64_t now_ns)
{
    if (p->scan)
        rewinddir(p->scan);
    scan(p, now_ns, SIZE_MAX);
}

static void notice_births(struct procs *p, uint64_t now_ns)
{
    if (now_ns - p->births_ns < BIRTHS_NS)
        return;
    p->births_ns = now_ns;
    uint64_t youngest = procfs_youngest(p->loadavg_fd);
    uint64_t before = p->last_pid;
    p->last_pid = youngest;
    if (!youngest || !before || youngest < before || youngest - before > MAX_NEW_PIDS) {
        scan_all(p, now_ns);
        return;
    }
    if (now_ns - p->scan_ns > SCAN_NS)
        scan(p, now_ns, SCAN_STEP);
    for (uint64_t pid = before + 1; pid <= youngest; pid++)
        consider(p, pid, now_ns);
}

/* ---- life ---- */

static void set_kind(struct procs *p, struct proc *c, enum record_process_kind kind)
{
    if (c->record.kind == kind)
        return;
    c->record.kind = kind;
    write_process(p, c);
}

static void stop_sampling(struct proc *c)
{
    target_free(c->target);
    c->target = NULL;
}

/* What it counts as: a process that was sampled for a while stays Python whatever it becomes. */
static enum record_process_kind final_kind(const struct proc *c)
{
    return c->was_python ? RECORD_PROCESS_PYTHON : (enum record_process_kind)c->record.kind;
}

static void end(struct procs *p, struct proc *c, uint64_t now_ns)
{
    stop_sampling(c);
    c->gone = true;
    c->record.kind = final_kind(c); /* without memory, at its end, it looked like no Python */
    p->ended[c->record.kind]++;
    c->record.end_ns = now_ns - p->shared->origin_ns;
    write_process(p, c);
}

static int begin_sampling(struct procs *p, struct proc *c, struct remote *remote)
{
    int rc = target_new(p->shared, remote, c->record.id, &c->target);
    if (rc < 0) {
        remote_close(remote);
        return rc;
    }
    const char *version = remote_version(remote);
    c->record.python_version = format_writer_string(p->shared->writer, version, strlen(version));
    c->sampled_ns = clock_mono_ns();
    c->record.kind = RECORD_PROCESS_PYTHON;
    read_command(p, c);
    write_process(p, c);
    return 0;
}

/* What the views say of processes that could not be read; one reason is enough, and they rarely have two. */
static void refuse(struct procs *p, struct proc *c, int code)
{
    char why[640];
    read_command(p, c);
    set_kind(p, c, code == E_VERSION ? RECORD_PROCESS_UNSUPPORTED : RECORD_PROCESS_REFUSED);
    if (p->shared->is_refused)
        return;
    p->shared->is_refused = true;
    rights_refusal((pid_t)c->record.pid, code, why, sizeof why);
    format_writer_meta(p->shared->writer, "refused", why);
}

static void probe(struct procs *p, struct proc *c, uint64_t now_ns)
{
    pid_t pid = (pid_t)c->record.pid;
    struct procfs_image image = procfs_image(pid);
    bool same = procfs_same_image(image, c->image);
    c->probe_ns = now_ns + LATER_NS;
    if (same && c->record.kind != RECORD_PROCESS_UNKNOWN && now_ns < c->full_probe_ns)
        return;
    c->image = image;
    /* a library may be loaded later: soon after the start often, then seldom */
    uint64_t age = now_ns - c->born_ns;
    c->full_probe_ns = now_ns + (age > NS_PER_SEC ? REPROBE_NS : age / 2 + LATER_NS);
    struct remote *remote = NULL;
    int rc = remote_open(p->finder, pid, &remote);
    if (rc == 0 && procfs_share_memory(pid, (pid_t)c->record.parent_pid)) {
        remote_close(remote);
        rc = E_NOTREADY;
    } else if (rc == 0)
        rc = begin_sampling(p, c, remote);
    switch (rc) {
    case 0:
        break;
    case E_NOPROC:
        end(p, c, now_ns);
        break;
    case E_NOTREADY:
        c->probe_ns = c->full_probe_ns = now_ns + (age > NS_PER_SEC ? REPROBE_NS : RETRY_NS);
        break;
    case E_PERM:
    case E_ACCESS:
    case E_VERSION:
    case E_REPLACED:
    case E_NOMEM:
    case E_FILES:
        refuse(p, c, rc);
        break;
    case E_NOTPYTHON:
        read_command(p, c);
        set_kind(p, c, RECORD_PROCESS_OTHER);
        break;
    default: /* memory that makes no sense, perhaps in the middle of an exec: look again */
        c->probe_ns = c->full_probe_ns = now_ns + RETRY_NS;
        break;
    }
}

/* One that is not sampled: has it become Python, or ended? */
static void seek(struct procs *p, struct proc *c, uint64_t now_ns)
{
    if (now_ns < c->probe_ns)
        return;
    if (procfs_exists((pid_t)c->record.pid))
        probe(p, c, now_ns);
    else
        end(p, c, now_ns);
}

/* It ended, is ending, or became another program: seek() finds out which. */
static void let_go(struct proc *c, uint64_t now_ns)
{
    stop_sampling(c);
    c->full_probe_ns = 0;
    c->probe_ns = now_ns + RETRY_NS;
    c->born_ns = now_ns;
}

static void look_at(struct procs *p, struct proc *c, uint64_t now_ns)
{
    if (!c->target) {
        seek(p, c, now_ns);
        return;
    }
    int rc = target_sample(c->target, now_ns);
    c->was_python |= now_ns > c->sampled_ns + FORK_TO_EXEC_NS;
    if (rc == 0)
        return;
    let_go(c, now_ns);
    if (rc == E_NOPROC)
        end(p, c, now_ns);
}

/* The same without a sample. What a forked child becomes is found out here, too, for it may be gone at the next sample;
 * of those that have been Python for a while only the end of the attached one is worth the question. */
static void watch(struct procs *p, struct proc *c, uint64_t now_ns)
{
    bool is_young = now_ns <= c->sampled_ns + FORK_TO_EXEC_NS;
    if (!c->target)
        seek(p, c, now_ns);
    else if ((is_young || c->attached) &&
             !procfs_same_image(procfs_image((pid_t)c->record.pid), c->image))
        let_go(c, now_ns);
}

static void each(struct procs *p, void (*look)(struct procs *, struct proc *, uint64_t),
                 uint64_t now_ns)
{
    notice_births(p, now_ns);
    size_t kept = 0;
    for (size_t i = 0; i < p->list.len; i++) {
        struct proc *c = p->list.data[i];
        if (!c->gone)
            look(p, c, now_ns);
        if (c->gone)
            free(c);
        else
            p->list.data[kept++] = c;
    }
    p->list.len = kept;
}

void procs_tick(struct procs *p, uint64_t now_ns)
{
    each(p, look_at, now_ns);
}

void procs_watch(struct procs *p, uint64_t now_ns)
{
    each(p, watch, now_ns);
}

/* ---- the rest ---- */

int procs_new(struct target_shared *shared, bool adopt, struct procs **ret)
{
    struct procs *p = calloc(1, sizeof *p);
    if (!p)
        return E_NOMEM;
    p->shared = shared;
    p->adopt = adopt;
    p->finder = remote_finder_new();
    p->loadavg_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    p->last_pid = procfs_youngest(p->loadavg_fd);
    p->scan_ns = clock_mono_ns(); /* who is ours is born from now on, or added by its number */
    p->next_id = 1;
    *ret = p;
    return 0;
}

int procs_add_root(struct procs *p, pid_t pid, uint64_t now_ns)
{
    struct proc *c;
    int rc = add(p, pid, getpid(), now_ns, &c);
    if (rc == 0)
        c->probe_ns = now_ns;
    return rc;
}

int procs_add_open(struct procs *p, struct remote *remote, uint64_t now_ns)
{
    pid_t parent = 0;
    struct proc *c;
    procfs_examine((uint64_t)remote_pid(remote), &parent);
    int rc = add(p, remote_pid(remote), parent, now_ns, &c);
    if (rc < 0) {
        remote_close(remote);
        return rc;
    }
    c->image = procfs_image(remote_pid(remote));
    c->attached = true;
    rc = begin_sampling(p, c, remote);
    for (int generation = 0; generation < 8;
         generation++) { /* descendants, whatever their numbers */
        size_t before = p->list.len;
        scan_all(p, now_ns);
        if (p->list.len == before)
            break;
    }
    return rc;
}

/* A guest was quicker to speak than we to look: it is met now, or it would be a second process when we do. */
static bool meet_speaker(struct procs *p, pid_t pid, uint32_t *ret)
{
    pid_t parent;
    if (procfs_examine((uint64_t)pid, &parent) != PROCFS_PROCESS)
        return false;
    scan_all(p, clock_mono_ns()); /* its parents may not have been met, either */
    struct proc *c = find(p, pid);
    if (!c)
        return false;
    c->was_python = true;
    *ret = c->record.id;
    return true;
}

uint32_t procs_id_of(struct procs *p, pid_t pid, pid_t parent, const char *python,
                     uint64_t start_ns)
{
    uint32_t id;
    if (has_number(p, pid, &id) || meet_speaker(p, pid, &id))
        return id;
    uint64_t origin = p->shared->origin_ns;
    struct proc c = {.record = {.id = p->next_id++,
                                .pid = (uint32_t)pid,
                                .parent_pid = (uint32_t)parent,
                                .kind = RECORD_PROCESS_PYTHON,
                                .start_ns = start_ns > origin ? start_ns - origin : 0}};
    c.record.python_version = format_writer_string(p->shared->writer, python, strlen(python));
    p->shared->stats->value[RECORD_STAT_PROCESSES_SEEN]++;
    p->ended[RECORD_PROCESS_PYTHON]++;
    remember(p, pid, c.record.id);
    write_process(p, &c);
    return c.record.id;
}

struct sources_place *procs_place(const struct procs *p, pid_t pid)
{
    const struct proc *c = find(p, pid);
    return c && c->target ? target_place(c->target) : NULL;
}

bool procs_alive(const struct procs *p, pid_t pid)
{
    return find(p, pid) != NULL;
}

uint64_t procs_running(const struct procs *p)
{
    uint64_t count = 0;
    for (size_t i = 0; i < p->list.len; i++) {
        const struct proc *c = p->list.data[i];
        pid_t parent;
        count += !c->gone && final_kind(c) == RECORD_PROCESS_PYTHON &&
                 procfs_examine(c->record.pid, &parent) == PROCFS_PROCESS;
    }
    return count;
}

void procs_note_exit(struct procs *p, pid_t pid, uint64_t now_ns)
{
    struct proc *c = find(p, pid);
    if (c)
        end(p, c, now_ns);
}

void procs_flush(struct procs *p)
{
    uint64_t *stats = p->shared->stats->value;
    uint64_t kinds[RECORD_PROCESS_UNSUPPORTED + 1];
    memcpy(kinds, p->ended, sizeof kinds);
    for (size_t i = 0; i < p->list.len; i++) {
        struct proc *c = p->list.data[i];
        if (c->target)
            target_flush(c->target);
        if (!c->gone) /* those gone are counted already */
            kinds[final_kind(c)]++;
    }
    stats[RECORD_STAT_PROCESSES_PYTHON] = kinds[RECORD_PROCESS_PYTHON];
    stats[RECORD_STAT_PROCESSES_OTHER] = kinds[RECORD_PROCESS_OTHER];
    stats[RECORD_STAT_PROCESSES_REFUSED] =
        kinds[RECORD_PROCESS_REFUSED] + kinds[RECORD_PROCESS_UNSUPPORTED];
    stats[RECORD_STAT_PROCESSES_SHORT] = kinds[RECORD_PROCESS_UNKNOWN];
}

void procs_free(struct procs *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->list.len; i++) {
        stop_sampling(p->list.data[i]);
        free(p->list.data[i]);
    }
    vec_release(&p->list);
    vec_release(&p->known);
    remote_finder_free(p->finder);
    if (p->loadavg_fd >= 0)
        close(p->loadavg_fd);
    if (p->scan)
        closedir(p->scan);
    free(p);
}
