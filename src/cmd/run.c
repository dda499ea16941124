/* pyrometer run: start a program, record it or only meter it, keep what it cost. */
#include "base/buf.h"
#include "base/err.h"
#include "base/progress.h"
#include "cmd/check.h"
#include "cmd/cmd.h"
#include "cmd/keep.h"
#include "cmd/progress.h"
#include "cmd/recording.h"
#include "view/text.h"
#include "view/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPEAT_MAX = 100000, INSTRUMENTS_SIZE = 64, SCRIPT_BYTES_MAX = 1 << 16 };

struct run {
    struct cmd_recording recording;
    struct cmd_keep_options keep_options;
    struct cmd_keep *keep;
    bool no_profile;
    uint64_t repeat, warmup;
    bool has_repeat, has_warmup;
    char **argv;               /* the command */
    const char *on_regression; /* instruments to run again with; NULL: do not look */
    char instruments[INSTRUMENTS_SIZE];
    int64_t last_kept, deepens; /* numbers in the history; 0: none */
};

static int check(const struct run *r)
{
    const struct cmd_recording *c = &r->recording;
    bool instrument = c->sample || c->calls || c->trace || c->lines || c->memory;
    if (r->no_profile && (instrument || c->output || c->has_seconds || c->has_path_fd))
        return cmd_fail(CMD_USAGE, "--no-profile makes no recording: it goes with no instrument, "
                                   "-o, --for or --path-fd");
    if (r->has_repeat && (r->repeat < 1 || r->repeat > REPEAT_MAX))
        return cmd_fail(CMD_USAGE, "--repeat needs a number from 1 to %d", REPEAT_MAX);
    if (r->has_warmup && (!r->has_repeat || r->warmup > REPEAT_MAX))
        return cmd_fail(CMD_USAGE, "--warmup goes with --repeat: how many runs before those count "
                                   "for nothing");
    if (r->has_repeat && r->repeat + r->warmup > 1 && (c->output || c->has_path_fd))
        return cmd_fail(CMD_USAGE, "--repeat makes a recording for each run: leave -o out");
    return 0;
}

struct cost {
    double elapsed, user, system, peak_kb;
};

static void take_cost(void *ctx, const char *name, double value)
{
    struct cost *c = ctx;
    double *to = !strcmp(name, "elapsed_time_sec")    ? &c->elapsed
                 : !strcmp(name, "user_time_sec")     ? &c->user
                 : !strcmp(name, "system_time_sec")   ? &c->system
                 : !strcmp(name, "max_res_set_sz_kb") ? &c->peak_kb
                                                      : NULL;
    if (to)
        *to = value;
}

/* What a run that was only metered is told in. */
static void say_cost(const struct run *r, struct meter *m)
{
    struct cost c = {0};
    meter_metrics(m, take_cost, &c);
    fprintf(stderr, "pyrometer: %s elapsed, %s CPU, %s peak memory: %s\n",
            view_units_seconds(c.elapsed).text, view_units_seconds(c.user + c.system).text,
            view_units_bytes(c.peak_kb * 1024).text, r->argv[0]);
}

/* --- one start of the command --- */

struct turn {
    int number; /* from 0; the warm-ups first */
    bool warmup;
    bool ended; /* it ran; else `status` is why not */
    int status;
};

static void keep(struct run *r, struct meter *m, const struct turn *t, const uint8_t *run_id)
{
    if (r->keep_options.no_history || !m)
        return;
    struct cmd_kept kept = {.run_id = run_id,
                            .argv = r->argv,
                            .profile = r->recording.path,
                            .exit_status = t->status,
                            .repeat = t->number,
                            .grouped = r->has_repeat && !r->deepens,
                            .warmup = t->warmup,
                            .instruments = *r->instruments ? r->instruments : NULL,
                            .deepens = r->deepens};
    cmd_progress_begin();
    progress_begin("keeping the run in the history", 0);
    int64_t id = cmd_keep_run(r->keep, m, &kept);
    cmd_progress_end();
    r->last_kept = id;
    if (id && !r->recording.quiet)
        fprintf(stderr, "run %lld in the history\n", (long long)id);
}

/* A script given as the command: a file that is there, but not where commands are, or not to be executed. */
static bool is_script(const char *path)
{
    struct stat st;
    size_t len = strlen(path);
    return len > 3 && !strcmp(path + len - 3, ".py") && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void not_started(struct run *r, struct turn *t, const struct record_result *result)
{
    const char *command = r->argv[0];
    if (!is_script(command)) {
        /* then what is not there is not the file but who is to run it: "#!" or an ELF file's interpreter */
        bool is_there =
            result->exec_error == ENOENT && strchr(command, '/') && access(command, F_OK) == 0;
        t->status = cmd_fail(result->exit_status, "cannot run %s: %s", command,
                             is_there ? "its interpreter, which its first line names, is not there"
                                      : strerror(result->exec_error));
        return;
    }
    struct buf word;
    buf_init(&word, SCRIPT_BYTES_MAX);
    view_text_shell(&word, command);
    t->status =
        cmd_fail(result->exit_status, "cannot run %s: %s; try: pyrometer run python3 %s%s", command,
                 result->exec_error == ENOENT ? "it is not on PATH" : strerror(result->exec_error),
                 buf_cstr(&word), r->argv[1] ? " …" : "");
    buf_release(&word);
}

static void turn_recorded(struct run *r, struct turn *t)
{
    struct record_options o;
    t->status = cmd_recording_begin(&r->recording, &o);
    if (t->status)
        return;
    struct record_result result;
    struct meter *m = r->keep_options.no_history ? NULL : cmd_keep_meter(r->keep);
    o.argv = r->argv;
    o.meter = m;
    int rc = record_run(&o, &result);
    if (rc < 0) {
        t->status = cmd_recording_refused(&r->recording, rc);
    } else if (result.exec_error) {
        not_started(r, t, &result);
    } else {
        t->ended = true;
        t->status = result.exit_status;
        cmd_recording_end(&r->recording, &result);
        keep(r, m, t, o.run_id);
    }
    meter_free(m);
}

static void turn_metered(struct run *r, struct turn *t)
{
    uint8_t run_id[16];
    struct record_result result;
    if (getrandom(run_id, sizeof run_id, 0) != (ssize_t)sizeof run_id) {
        t->status = cmd_fail(CMD_FAILED, "no random numbers for a run id: %s", strerror(errno));
        return;
    }
    struct meter *m = cmd_keep_meter(r->keep);
    int rc = m ? record_metered(r->argv, m, &result) : E_NOMEM;
    if (rc < 0) {
        t->status = cmd_fail(CMD_FAILED, "cannot run %s: %s", r->argv[0], err_text(rc));
    } else if (result.exec_error) {
        not_started(r, t, &result);
    } else {
        t->ended = true;
        t->status = result.exit_status;
        if (!r->recording.quiet)
            say_cost(r, m);
        keep(r, m, t, run_id);
    }
    meter_free(m);
}

/* Until one fails: a program that does not work needs no more of it. */
static int all_turns(struct run *r)
{
    uint64_t count = r->has_repeat ? r->repeat + r->warmup : 1;
    struct turn t = {0};
    for (uint64_t i = 0; i < count; i++) {
        t = (struct turn){.number = (int)i, .warmup = i < r->warmup};
        if (r->no_profile)
            turn_metered(r, &t);
        else
            turn_recorded(r, &t);
        cmd_recording_release(&r->recording);
        if (!t.ended || t.status)
            break;
    }
    return t.status;
}

/* --- again, with more instruments --- */

/* What slows the program down, so that its times are compared with their like. */
static void name_instruments(struct run *r)
{
    const struct cmd_recording *c = &r->recording;
    snprintf(r->instruments, sizeof r->instruments, "%s%s%s", c->calls ? "calls," : "",
             c->lines ? "lines," : "", c->trace ? "trace," : "");
    size_t len = strlen(r->instruments);
    if (len)
        r->instruments[len - 1] = '\0';
}

static int choose_deep(const char *said, struct cmd_recording *ret)
{
    for (const char *at = said; *at;) {
        size_t len = strcspn(at, ",");
        bool *flag = len == 5 && !strncmp(at, "calls", 5)   ? &ret->calls
                     : len == 5 && !strncmp(at, "lines", 5) ? &ret->lines
                     : len == 5 && !strncmp(at, "trace", 5) ? &ret->trace
                                                            : NULL;
        if (!flag)
            return cmd_fail(CMD_USAGE,
                            "--on-regression '%s': it is calls, lines or trace, or "
                            "several of them with commas",
                            said);
        *flag = true;
        at += len + (at[len] == ',');
    }
    return *said ? 0
                 : cmd_fail(CMD_USAGE, "--on-regression needs instruments, such as calls,lines");
}

/* The gate has tripped: once more, to see why. Whatever becomes of that, the status is the first
 * run's. */
static void run_deep(struct run *r)
{
    bool quiet = r->recording.quiet;
    struct turn t = {0};
    r->deepens = r->last_kept;
    r->recording = (struct cmd_recording){.quiet = quiet};
    if (choose_deep(r->on_regression, &r->recording) != 0)
        return;
    name_instruments(r);
    turn_recorded(r, &t);
    cmd_recording_release(&r->recording);
}

static void look_for_regression(struct run *r)
{
    char id[24];
    bool is_regression = false;
    snprintf(id, sizeof id, "%lld", (long long)r->last_kept);
    if (!r->last_kept || cmd_check_quietly(r->keep_options.db, id, &is_regression) != 0)
        return;
    if (is_regression) {
        fprintf(stderr,
                "pyrometer: regression: running it again with %s (history check --run %s "
                "tells more)\n",
                r->on_regression, id);
        run_deep(r);
    }
}

static int check_deep(const struct run *r)
{
    struct cmd_recording unused = {0};
    if (!r->on_regression)
        return 0;
    if (r->keep_options.no_history)
        return cmd_fail(CMD_USAGE,
                        "--on-regression compares with the history: leave --no-history out");
    return choose_deep(r->on_regression, &unused);
}

int cmd_run(int argc, char **argv)
{
    struct run r = {0};
    struct cmd_recording *c = &r.recording;
    const struct cmd_option options[] = {
        {"sample", 0, CMD_OPT_TEXT, &c->sample, NULL},
        {"calls", 0, CMD_FLAG, &c->calls, NULL},
        {"trace", 0, CMD_FLAG, &c->trace, NULL},
        {"min-duration", 0, CMD_REAL, &c->min_duration, &c->has_min_duration},
        {"max-depth", 0, CMD_COUNT, &c->max_depth, &c->has_max_depth},
        {"last", 0, CMD_REAL, &c->last, &c->has_last},
        {"args", 0, CMD_FLAG, &c->args, NULL},
        {"include", 0, CMD_EACH, &c->filters, NULL},
        {"exclude", 0, CMD_EACH, &c->filters, NULL},
        {"no-c-calls", 0, CMD_FLAG, &c->no_c_calls, NULL},
        {"lines", 0, CMD_FLAG, &c->lines, NULL},
        {"memory", 0, CMD_OPT_TEXT, &c->memory, NULL},
        {"memory-events", 0, CMD_FLAG, &c->memory_events, NULL},
        {"function", 0, CMD_EACH, &c->lines_of, NULL},
        {"match", 0, CMD_EACH, &c->lines_of, NULL},
        {"no-profile", 0, CMD_FLAG, &r.no_profile, NULL},
        {"output", 'o', CMD_TEXT, &c->output, NULL},
        {"force", 0, CMD_FLAG, &c->force, NULL},
        {"for", 0, CMD_REAL, &c->seconds, &c->has_seconds},
        {"repeat", 0, CMD_COUNT, &r.repeat, &r.has_repeat},
        {"warmup", 0, CMD_COUNT, &r.warmup, &r.has_warmup},
        {"on-regression", 0, CMD_TEXT, &r.on_regression, NULL},
        CMD_KEEP_OPTIONS(&r.keep_options),
        {"quiet", 0, CMD_FLAG, &c->quiet, NULL},
        {"path-fd", 0, CMD_COUNT, &c->path_fd, &c->has_path_fd},
        {NULL, 0, CMD_FLAG, NULL, NULL},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, true, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands == 0)
        return cmd_fail(CMD_USAGE, "run needs a command, for example: pyrometer run python app.py");
    if (!*argv[first])
        return cmd_fail(CMD_USAGE, "run '': the command is an empty argument; name a program, for "
                                   "example: pyrometer run python app.py");
    int status = check(&r);
    if (!status)
        status = check_deep(&r);
    if (status)
        return status;
    if (c->quiet)
        cmd_progress_never();
    status = cmd_keep_new(&r.keep_options, &r.keep);
    if (status)
        return status;
    r.argv = argv + first;
    name_instruments(&r);
    status = all_turns(&r);
    if (r.on_regression && status == 0)
        look_for_regression(&r);
    cmd_keep_free(r.keep);
    return status;
}
