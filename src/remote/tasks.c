#include "remote/tasks.h"

#include "base/io.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TASKS = 1 << 16 };

uint32_t tasks_inner_number(const char *status, size_t *ret_count)
{
    const char *p = strstr(status, "\nNSpid:");
    uint32_t number = 0;
    *ret_count = 0;
    for (p = p ? p + strlen("\nNSpid:") : NULL; p;) {
        char *end;
        p += strspn(p, " \t");
        if (!isdigit((unsigned char)*p))
            break;
        number = (uint32_t)strtoul(p, &end, 10);
        p = end;
        (*ret_count)++;
    }
    return number;
}

/* As tasks_inner_number, of the status file at `path`. */
static uint32_t read_inner(const char *path, size_t *ret_count)
{
    char text[2048];
    *ret_count = 0;
    return io_read_text(path, text, sizeof text) <= 0 ? 0 : tasks_inner_number(text, ret_count);
}

void tasks_init(struct tasks *t, pid_t pid)
{
    char path[64];
    size_t count;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    read_inner(path, &count);
    t->nested = count > 1;
}

void tasks_release(struct tasks *t)
{
    vec_release(&t->list);
}

static bool exists(pid_t pid, uint64_t tid)
{
    char path[64];
    if (tid == 0 || tid > INT32_MAX)
        return false;
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)pid, (int)tid);
    return access(path, F_OK) == 0;
}

static void gather(struct tasks *t, pid_t pid)
{
    char path[64 + sizeof((struct dirent *)0)->d_name];
    t->list.len = 0;
    t->fresh = true;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && t->list.len < MAX_TASKS && (e = readdir(d));) {
        size_t count;
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, e->d_name);
        uint32_t inner = isdigit((unsigned char)e->d_name[0]) ? read_inner(path, &count) : 0;
        struct task_number *n = inner ? vec_push(&t->list) : NULL;
        if (n)
            *n = (struct task_number){inner, (uint32_t)strtoul(e->d_name, NULL, 10)};
    }
    if (d)
        closedir(d);
}

static uint32_t look_up(const struct tasks *t, uint64_t inner)
{
    for (size_t i = 0; i < t->list.len; i++)
        if (t->list.data[i].inner == inner)
            return t->list.data[i].outer;
    return 0;
}

uint32_t tasks_find(struct tasks *t, pid_t pid, uint64_t tid)
{
    if (!t->nested)
        return exists(pid, tid) ? (uint32_t)tid : 0;
    uint32_t found = look_up(t, tid);
    if (!t->fresh &&
        !exists(pid, found)) { /* not met yet, or gone and its number another's by now */
        gather(t, pid);
        found = look_up(t, tid);
    }
    return found;
}
