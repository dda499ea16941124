#include "record/facts.h"

#include "base/buf.h"
#include "base/io.h"
#include "format/ring.h"
#include "record/procfs.h"
#include "record/session.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

enum { MAX_COMMAND_BYTES = 1 << 20 };

static void put_command(struct format_writer *w, const struct record_options *o)
{
    struct buf b;
    buf_init(&b, MAX_COMMAND_BYTES);
    if (o->argv) {
        for (char *const *a = o->argv; *a; a++) {
            if (b.len)
                buf_put_u8(&b, ' ');
            buf_puts(&b, *a);
        }
    } else {
        procfs_command(o->pid, &b);
    }
    format_writer_meta(w, "command", buf_cstr(&b));
    buf_release(&b);
}

/* The value of the first line "name : value" of a /proc file. */
static void put_proc_field(struct format_writer *w, const char *key, const char *path,
                           const char *name)
{
    char text[4096];
    if (io_read_text(path, text, sizeof text) <= 0)
        return;
    char *at = strstr(text, name);
    char *colon = at ? strchr(at, ':') : NULL;
    if (!colon)
        return;
    char *value = colon + 1 + strspn(colon + 1, " \t");
    value[strcspn(value, "\n")] = 0;
    format_writer_meta(w, key, value);
}

static void put_instruments(struct format_writer *w, const struct record_options *o)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{RING_CALLS, "calls"},
                 {RING_TRACE, "trace"},
                 {RING_ARGS, "args"},
                 {RING_LINES, "lines"},
                 {RING_HEAP | RING_SAMPLED, "memory"}};
    char text[64];
    int n = snprintf(text, sizeof text, "%s", o->sample ? "sample" : "");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (o->instruments & names[i].bit)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", n ? "," : "", names[i].name);
    format_writer_meta(w, "instruments", text);
    if (o->instruments & RING_MEMORY)
        format_writer_meta(w, "memory.mode",
                           o->instruments & RING_SAMPLED   ? "sampled"
                           : o->instruments & RING_OBJECTS ? "objects"
                                                           : "heap");
    if (o->instruments & RING_SAMPLED) {
        snprintf(text, sizeof text, "%d", SESSION_MEMORY_INTERVAL);
        format_writer_meta(w, "memory.interval", text);
    }
}

/* The patterns of one kind in a selection as one: "(A)|(B)". */
static void put_patterns(struct format_writer *w, const char *key, char head, const char *selection)
{
    struct buf all;
    size_t count = 0;
    buf_init(&all, (size_t)2 * RING_MAX_SELECTION);
    for (const char *at = selection; at && *at;) {
        size_t len = strcspn(at, "\n");
        if (at[0] == head && len > 2) {
            buf_printf(&all, "%s(%.*s)", count ? "|" : "", (int)(len - 2), at + 2);
            count++;
        }
        at += len + (at[len] != 0);
    }
    if (count == 1) { /* it needs no brackets */
        all.data[all.len - 1] = 0;
        format_writer_meta(w, key, (const char *)all.data + 1);
    } else if (count) {
        format_writer_meta(w, key, buf_cstr(&all));
    }
    buf_release(&all);
}

void facts_write(struct format_writer *w, const struct record_options *o, const char *mode)
{
    char text[4096];
    format_writer_meta(w, "pyrometer", o->version);
    format_writer_meta(w, "mode", mode);
    put_instruments(w, o);
    if (o->min_ns) {
        snprintf(text, sizeof text, "%ju", (uintmax_t)o->min_ns);
        format_writer_meta(w, "min_duration_ns", text);
    }
    if (o->max_depth) {
        snprintf(text, sizeof text, "%u", o->max_depth);
        format_writer_meta(w, "max_depth", text);
    }
    if (o->last_ns) {
        snprintf(text, sizeof text, "%ju", (uintmax_t)o->last_ns);
        format_writer_meta(w, "last_ns", text);
    }
    put_patterns(w, "include", 'i', o->selection);
    put_patterns(w, "exclude", 'x', o->selection);
    put_patterns(w, "lines_function", 'f', o->selection);
    put_patterns(w, "lines_match", 'm', o->selection);
    put_command(w, o);
    if (getcwd(text, sizeof text))
        format_writer_meta(w, "directory", text);
    time_t now = time(NULL);
    struct tm tm;
    if (localtime_r(&now, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &tm))
        format_writer_meta(w, "started", text);
    struct utsname u;
    if (uname(&u) == 0) {
        format_writer_meta(w, "host", u.nodename);
        snprintf(text, sizeof text, "%s %s", u.sysname, u.release);
        format_writer_meta(w, "kernel", text);
        format_writer_meta(w, "machine", u.machine);
    }
    put_proc_field(w, "cpu", "/proc/cpuinfo", "model name");
    put_proc_field(w, "memory", "/proc/meminfo", "MemTotal");
    snprintf(text, sizeof text, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    format_writer_meta(w, "cores", text);
    if (!o->sample)
        return;
    snprintf(text, sizeof text, "%g", o->hz);
    format_writer_meta(w, "sample_hz", text);
}
