#include "meter/tree.h"

#include "base/clock.h"
#include "base/io.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

enum {
    PROCESSES_MAX = 4096, /* kept; more are counted */
    MAX_NEW_PIDS = 4096,  /* beyond that a whole scan is cheaper */
};
#define SCAN_NS (2 * NS_PER_SEC) /* safety net for births that were missed */

void tree_init(struct tree *t)
{
    *t = (struct tree){.loadavg_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC)};
}

void tree_release(struct tree *t)
{
    vec_release(&t->list);
    if (t->loadavg_fd >= 0)
        close(t->loadavg_fd);
    t->loadavg_fd = -1;
}

static struct tree_process *find(struct tree *t, pid_t pid)
{
    for (size_t i = t->list.len; i-- > 0;)
        if (t->list.data[i].pid == pid && !t->list.data[i].gone)
            return &t->list.data[i];
    return NULL;
}

void tree_add(struct tree *t, pid_t pid, pid_t parent)
{
    struct tree_process *p = t->list.len < PROCESSES_MAX ? vec_push(&t->list) : NULL;
    if (!p) {
        t->dropped++;
        return;
    }
    p->pid = pid;
    p->parent = parent;
}

/* --- births --- */

static uint64_t status_field(const char *text, const char *name)
{
    const char *p = strstr(text, name);
    return p ? strtoull(p + strlen(name), NULL, 10) : 0;
}

static void consider(struct tree *t, uint64_t pid)
{
    char path[64], text[512];
    if (pid == (uint64_t)getpid() || find(t, (pid_t)pid))
        return;
    snprintf(path, sizeof path, "/proc/%llu/status", (unsigned long long)pid);
    if (io_read_text(path, text, sizeof text) <= 0 || status_field(text, "\nTgid:") != pid)
        return;
    pid_t parent = (pid_t)status_field(text, "\nPPid:");
    if (parent == getpid() || find(t, parent))
        tree_add(t, (pid_t)pid, parent);
}

static void scan_all(struct tree *t, uint64_t now_ns)
{
    DIR *d = opendir("/proc");
    if (!d)
        return;
    for (const struct dirent *e; (e = readdir(d));)
        if (isdigit((unsigned char)e->d_name[0]))
            consider(t, strtoull(e->d_name, NULL, 10));
    closedir(d);
    t->scan_ns = now_ns;
}

void tree_births(struct tree *t, uint64_t now_ns)
{
    char text[128];
    ssize_t n = t->loadavg_fd < 0 ? -1 : pread(t->loadavg_fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    const char *last = strrchr(text, ' ');
    uint64_t youngest = last ? strtoull(last + 1, NULL, 10) : 0, before = t->youngest;
    t->youngest = youngest;
    if (!before) {
        t->scan_ns = now_ns; /* the root was added by its number; its children come later */
        if (youngest)
            return;
    }
    if (!youngest || youngest < before || youngest - before > MAX_NEW_PIDS ||
        now_ns - t->scan_ns > SCAN_NS)
        scan_all(t, now_ns);
    else
        for (uint64_t pid = before + 1; pid <= youngest; pid++)
            consider(t, pid);
}

/* --- looks --- */

static void read_command(struct tree_process *p)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)p->pid);
    int n = io_read_text(path, p->command, sizeof p->command);
    for (int i = 0; i < n - 1; i++)
        if (p->command[i] == '\0' || iscntrl((unsigned char)p->command[i]))
            p->command[i] = ' ';
    if (n < 0)
        p->command[0] = '\0';
}

/* /proc/PID/stat: its name in brackets may hold anything, so the last bracket counts. */
static bool read_stat(struct tree_process *p)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)p->pid);
    if (io_read_text(path, text, sizeof text) <= 0)
        return false;
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close)
        return false;
    char state;
    int parent;
    unsigned long long user, system, threads, start;
    if (sscanf(close + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %llu %*d %llu",
               &state, &parent, &user, &system, &threads, &start) != 6)
        return false;
    if (p->start_ticks && p->start_ticks != start)
        return false; /* somebody else has the number now */
    size_t len = min_u64((uint64_t)(close - open - 1), sizeof p->name - 1);
    bool renamed = strncmp(p->name, open + 1, len) != 0 || p->name[len];
    memcpy(p->name, open + 1, len);
    p->name[len] = '\0';
    if (renamed) /* another program: exec */
        read_command(p);
    p->start_ticks = start;
    p->user_ticks = user;
    p->system_ticks = system;
    p->threads = max_u64(p->threads, threads);
    return state != 'Z' && state != 'X';
}

struct sizes {
    uint64_t text, data, stack, resident, swap, threads;
};

static bool read_sizes(struct tree_process *p, struct sizes *s)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)p->pid);
    if (io_read_text(path, text, sizeof text) <= 0)
        return false;
    *s = (struct sizes){
        .text = status_field(text, "\nVmExe:") + status_field(text, "\nVmLib:"),
        .data = status_field(text, "\nVmData:"),
        .stack = status_field(text, "\nVmStk:"),
        .resident = status_field(text, "\nVmRSS:"),
        .swap = status_field(text, "\nVmSwap:"),
        .threads = status_field(text, "\nThreads:"),
    };
    p->peak_kb = max_u64(p->peak_kb, status_field(text, "\nVmHWM:"));
    return s->resident > 0;
}

static void add_up(struct tree *t, const struct sizes *largest, uint64_t resident, double ns)
{
    struct tree_sums *u = &t->sums;
    u->ns += ns;
    u->text += ns * (double)largest->text;
    u->data += ns * (double)largest->data;
    u->stack += ns * (double)largest->stack;
    u->total += ns * (double)(largest->text + largest->data + largest->stack);
    u->resident += ns * (double)largest->resident;
    u->tree_resident += ns * (double)resident;
}

void tree_look(struct tree *t, uint64_t now_ns)
{
    struct sizes largest = {0};
    uint64_t resident = 0, threads = 0, swap = 0, processes = 0;
    for (size_t i = 0; i < t->list.len; i++) {
        struct tree_process *p = &t->list.data[i];
        struct sizes s;
        if (p->gone)
            continue;
        if (!read_stat(p)) {
            p->gone = true;
            continue;
        }
        if (!read_sizes(p, &s))
            continue;
        resident += s.resident;
        threads += s.threads;
        swap += s.swap;
        processes++;
        if (s.resident > largest.resident)
            largest = s;
    }
    if (processes) {
        t->looks++;
        /* a look stands for the time since the one before; the first for a moment */
        double ns = t->last_ns ? (double)(now_ns - t->last_ns) : 1;
        add_up(t, &largest, resident, ns);
        t->last_ns = now_ns;
    }
    t->peak_tree_kb = max_u64(t->peak_tree_kb, resident);
    t->peak_threads = max_u64(t->peak_threads, threads);
    t->peak_swap_kb = max_u64(t->peak_swap_kb, swap);
    t->peak_processes = max_u64(t->peak_processes, processes);
}
