#include "cmd/recording.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "cmd/progress.h"
#include "format/ring.h"
#include "profile/profile.h"
#include "view/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* 31 years: what the clock's nanoseconds take with ease. */
static const double MOST_SECONDS = 1e9;
static const double LEAST_HZ = 1e-6; /* less than one look in eleven days */

static int parse_rate(const char *text, double *ret)
{
    if (!text || !*text) {
        *ret = RECORD_DEFAULT_HZ;
        return 0;
    }
    char *end;
    double hz = strtod(text, &end);
    if (end == text || *end || !isfinite(hz) || hz < LEAST_HZ || hz > RECORD_MAX_HZ)
        return cmd_fail(CMD_USAGE, "--sample needs a rate in Hz between %g and %.0f, not '%s'",
                        LEAST_HZ, RECORD_MAX_HZ, text);
    *ret = hz;
    return 0;
}

/* One item of --function, "MODULE:QUALNAME". */
static int add_function(const char *text, size_t len, struct buf *selection)
{
    const char *colon = memchr(text, ':', len);
    if (!colon || colon == text || colon == text + len - 1)
        return cmd_fail(CMD_USAGE,
                        "--function %.*s: name it as MODULE:QUALNAME, for example "
                        "json.decoder:JSONDecoder.decode",
                        (int)len, text);
    buf_printf(selection, "f:%.*s\n", (int)len, text);
    return 0;
}

static int add_functions(const char *list, struct buf *selection)
{
    int status = 0;
    for (const char *at = list; at && !status;) {
        size_t len = strcspn(at, ",");
        status = add_function(at, len, selection);
        at = at[len] ? at + len + 1 : NULL;
    }
    return status;
}

/* One item whose text is a pattern; `head` says what for. */
static int add_pattern(const char *option, const char *head, const char *pattern,
                       struct buf *selection)
{
    regex_t regex;
    int status = cmd_regex_compile(option, pattern, &regex);
    if (status)
        return status;
    regfree(&regex);
    if (!*pattern || strchr(pattern, '\n'))
        return cmd_fail(CMD_USAGE, "%s: a pattern is one line, and not empty", option);
    buf_printf(selection, "%s:%s\n", head, pattern);
    return 0;
}

static int add_filters(const struct cmd_recording *r, struct buf *selection)
{
    int status = 0;
    for (size_t i = 0; i < r->filters.count && !status; i++) {
        bool includes = strcmp(r->filters.use[i].option, "include") == 0;
        status = add_pattern(includes ? "--include" : "--exclude", includes ? "i" : "x",
                             r->filters.use[i].value, selection);
    }
    return status;
}

/* --function and --match, --include and --exclude, as the guest reads them. */
static int make_selection(struct cmd_recording *r)
{
    struct buf selection;
    buf_init(&selection, RING_MAX_SELECTION - 1);
    int status = 0;
    for (size_t i = 0; i < r->lines_of.count && !status; i++) {
        const char *text = r->lines_of.use[i].value;
        status = strcmp(r->lines_of.use[i].option, "match") == 0
                     ? add_pattern("--match", "m", text, &selection)
                     : add_functions(text, &selection);
    }
    if (!status)
        status = add_filters(r, &selection);
    const char *text = buf_cstr(&selection);
    if (!status && buf_error(&selection))
        status = cmd_fail(CMD_USAGE, "--function, --match, --include and --exclude are too long");
    if (!status && !(r->selection = strdup(text)))
        status = cmd_fail(CMD_FAILED, "out of memory");
    buf_release(&selection);
    return status;
}

/* Naming an instrument replaces the default. */
static int choose_instruments(struct cmd_recording *r, struct record_options *o)
{
    bool selects = r->lines_of.count;
    if (selects && !r->lines)
        return cmd_fail(CMD_USAGE, "--function and --match choose lines: they go with --lines");
    if (r->filters.count && !r->calls && !r->trace)
        return cmd_fail(CMD_USAGE, "--%s chooses calls: it goes with --trace or --calls",
                        r->filters.use[0].option);
    int status = selects || r->filters.count ? make_selection(r) : 0;
    o->selection = r->selection;
    if (r->calls || r->trace) /* a timeline has all that the sums need */
        o->instruments = RING_CALLS | (r->no_c_calls ? 0 : RING_C_CALLS);
    if (r->trace)
        o->instruments |= RING_TRACE | (r->args ? RING_ARGS : 0);
    if (r->memory_events && !r->memory)
        return cmd_fail(CMD_USAGE, "--memory-events keeps every event of --memory: give both");
    o->memory_events = r->memory_events;
    if (r->memory) {
        if (!r->memory[0] || strcmp(r->memory, "heap") == 0)
            o->instruments |= RING_HEAP;
        else if (strcmp(r->memory, "objects") == 0)
            o->instruments |= RING_HEAP | RING_OBJECTS;
        else if (strcmp(r->memory, "sampled") == 0)
            o->instruments |= RING_SAMPLED;
        else
            return cmd_fail(CMD_USAGE, "--memory=%s: it is heap, objects or sampled", r->memory);
    }
    /* lines of the whole program come with its calls anyway */
    if (r->lines)
        o->instruments |= RING_LINES | (selects ? 0 : RING_CALLS);
    o->sample = r->sample || !o->instruments;
    return status;
}

/* What the timeline is to leave out. */
static int choose_events(const struct cmd_recording *r, struct record_options *o)
{
    enum { MAX_DEPTH = 1 << 18 };
    if (r->args && !r->trace)
        return cmd_fail(CMD_USAGE, "--args is for the timeline: add --trace");
    if ((r->has_min_duration || r->has_max_depth) && !r->trace)
        return cmd_fail(CMD_USAGE, "%s is for the timeline: add --trace",
                        r->has_max_depth ? "--max-depth" : "--min-duration");
    if (r->has_max_depth && (r->max_depth == 0 || r->max_depth > MAX_DEPTH))
        return cmd_fail(CMD_USAGE, "--max-depth needs a number from 1 to %d", MAX_DEPTH);
    if (r->min_duration > MOST_SECONDS)
        return cmd_fail(CMD_USAGE, "--min-duration needs a number of seconds");
    if (r->has_last && !r->trace)
        return cmd_fail(CMD_USAGE, "--last is for the timeline: add --trace");
    if (r->has_last && (r->last <= 0 || r->last > MOST_SECONDS))
        return cmd_fail(CMD_USAGE, "--last needs a number of seconds above 0");
    o->last_ns = (uint64_t)(r->last * 1e9);
    o->min_ns = (uint64_t)(r->min_duration * 1e9);
    o->max_depth = (uint32_t)r->max_depth;
    return 0;
}

/* The descriptor is ours alone: the command must not find it open. */
static int keep_path_fd(uint64_t fd)
{
    int number = fd > STDERR_FILENO && fd <= INT_MAX ? (int)fd : -1;
    int flags = fcntl(number, F_GETFD);
    if (flags < 0 || fcntl(number, F_SETFD, flags | FD_CLOEXEC) < 0)
        return cmd_fail(CMD_USAGE, "--path-fd needs an open descriptor above 2, not %ju",
                        (uintmax_t)fd);
    return 0;
}

static void tell_path(const struct cmd_recording *r)
{
    if (r->has_path_fd && dprintf((int)r->path_fd, "%s\n", r->path) < 0)
        cmd_warn("cannot write the path to descriptor %ju: %s", (uintmax_t)r->path_fd,
                 strerror(errno));
}

/* Rings may be full still, and disks slow. The terminal is ours again. */
static void show_finishing(void)
{
    cmd_progress_end(); /* of the samples, if it showed them: its seconds are others */
    cmd_progress_begin();
    progress_begin("finishing the recording", 0);
}

int cmd_recording_begin(struct cmd_recording *r, struct record_options *ret)
{
    if (r->output && !*r->output)
        return cmd_fail(CMD_USAGE, "-o '': the name is empty; give the name of a file");
    struct record_options o = {.version = PYROMETER_VERSION,
                               .force = r->force,
                               .finishing = r->quiet ? NULL : show_finishing};
    int status = parse_rate(r->sample, &o.hz);
    if (status)
        return status;
    status = choose_instruments(r, &o);
    if (!status)
        status = choose_events(r, &o);
    if (status)
        return status;
    if (r->has_seconds && (r->seconds <= 0 || r->seconds > MOST_SECONDS))
        return cmd_fail(CMD_USAGE, "--for needs a number of seconds above 0, %.0f at most",
                        MOST_SECONDS);
    o.seconds = r->seconds;
    status = r->has_path_fd ? keep_path_fd(r->path_fd) : 0;
    if (status)
        return status;
    if (getrandom(o.run_id, sizeof o.run_id, 0) != (ssize_t)sizeof o.run_id)
        return cmd_fail(CMD_FAILED, "no random numbers for a run id: %s", strerror(errno));
    if (r->output)
        r->path = strdup(r->output);
    else
        status = cmd_new_run_path(o.run_id, &r->path);
    if (status)
        return status;
    if (!r->path)
        return cmd_fail(CMD_FAILED, "out of memory");
    o.path = r->path;
    /* the test that proves the consistency check is needed has to switch it off */
    o.unsafe_no_check = getenv("PYROMETER_UNSAFE_NO_CHECK") != NULL;
    *ret = o;
    return 0;
}

int cmd_recording_refused(const struct cmd_recording *r, int code)
{
    if (code == E_EXISTS)
        return cmd_fail(CMD_FAILED, "%s exists: choose another name, or use --force to replace it",
                        r->path);
    if (code == E_ISDIR)
        return cmd_fail(CMD_FAILED, "%s is a directory: -o needs the name of a file", r->path);
    if (code == E_NOAGENT)
        return cmd_fail(CMD_FAILED, "cannot trace: %s; --sample needs no library", err_text(code));
    return cmd_fail(CMD_FAILED, "cannot write %s: %s", r->path, err_text(code));
}

void cmd_recording_end(const struct cmd_recording *r, const struct record_result *result)
{
    if (result->write_error)
        cmd_warn("the recording %s is not complete: %s; what was written before can be read",
                 r->path, err_text(result->write_error));
    tell_path(r);
    if (r->quiet)
        return;
    struct profile *p = NULL;
    cmd_progress_begin();
    int rc = profile_load(r->path, &p);
    cmd_progress_end(); /* the summary goes where the line was */
    if (rc == 0)
        rc = view_summary_print(p, r->path, r->output != NULL, stderr, view_style_of(stderr));
    if (rc < 0)
        cmd_warn("no summary of %s: %s", r->path, err_text(rc));
    profile_free(p);
}

void cmd_recording_release(struct cmd_recording *r)
{
    free(r->path);
    free(r->selection);
    r->path = r->selection = NULL;
}
