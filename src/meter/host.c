#include "meter/host.h"

#include "base/io.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static void tell_number(meter_fact_fn tell, void *ctx, const char *key, unsigned long long value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", value);
    tell(ctx, key, text);
}

/* The value of the first line "name : value". */
static bool field_of(const char *path, const char *name, char *dst, size_t size)
{
    char text[4096];
    if (io_read_text(path, text, sizeof text) <= 0)
        return false;
    const char *at = strstr(text, name);
    if (!at)
        return false;
    at += strlen(name);
    at += strspn(at, " \t:=\"");
    snprintf(dst, size, "%.*s", (int)strcspn(at, "\"\n"), at);
    return *dst != '\0';
}

static void tell_sizes(meter_fact_fn tell, void *ctx)
{
    static const char *const fields[][2] = {{"MemTotal", "memory_bytes"},
                                            {"SwapTotal", "swap_bytes"}};
    char text[128];
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (field_of("/proc/meminfo", fields[i][0], text, sizeof text))
            tell_number(tell, ctx, fields[i][1], strtoull(text, NULL, 10) * 1024);
}

static void tell_container(meter_fact_fn tell, void *ctx)
{
    static const char *const words[] = {"docker", "kubepods", "libpod", "lxc", "containerd"};
    const char *said = getenv("container"); /* systemd's convention */
    char text[4096];
    if (said && *said)
        tell(ctx, "container", said);
    else if (access("/.dockerenv", F_OK) == 0)
        tell(ctx, "container", "docker");
    else if (access("/run/.containerenv", F_OK) == 0)
        tell(ctx, "container", "podman");
    else if (io_read_text("/proc/1/cgroup", text, sizeof text) > 0)
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            if (strstr(text, words[i])) {
                tell(ctx, "container", words[i]);
                return;
            }
}

static void tell_load(meter_fact_fn tell, void *ctx)
{
    static const char *const keys[] = {"load_1", "load_5", "load_15"};
    char text[128];
    if (io_read_text("/proc/loadavg", text, sizeof text) <= 0)
        return;
    char *save = text;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char *word = strsep(&save, " ");
        if (word && *word)
            tell(ctx, keys[i], word);
    }
}

void host_facts(meter_fact_fn tell, void *ctx)
{
    char text[512];
    if (field_of("/proc/cpuinfo", "model name", text, sizeof text))
        tell(ctx, "cpu", text);
    tell_number(tell, ctx, "cores", (unsigned long long)sysconf(_SC_NPROCESSORS_ONLN));
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) == 0)
        tell_number(tell, ctx, "cores_usable", (unsigned long long)CPU_COUNT(&usable));
    tell_sizes(tell, ctx);
    if (field_of("/etc/os-release", "PRETTY_NAME", text, sizeof text))
        tell(ctx, "os", text);
    struct utsname u;
    if (uname(&u) == 0) {
        snprintf(text, sizeof text, "%s %s", u.sysname, u.release);
        tell(ctx, "kernel", text);
        tell(ctx, "machine", u.machine);
        tell(ctx, "hostname", u.nodename);
    }
    tell_container(tell, ctx);
    tell_load(tell, ctx);
}
