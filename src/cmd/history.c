/* pyrometer history: the runs that were kept. */
#include "cmd/history.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/progress.h"
#include "cmd/keep.h"
#include "cmd/load.h"
#include "cmd/progress.h"
#include "view/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *word;
    int (*run)(const struct cmd_history_options *o, int count, char **argv);
} parts[] = {
    {"show", cmd_history_show},     {"rm", cmd_history_rm},       {"gc", cmd_history_gc},
    {"import", cmd_history_import}, {"check", cmd_history_check},
};

/* --- shared --- */

int cmd_history_failed(const char *path, int code)
{
    if (code == E_NEWER)
        return cmd_fail(CMD_FAILED, "the history %s was written by a newer Pyrometer: use that one",
                        path);
    return cmd_fail(CMD_FAILED, "cannot use the history %s: %s", path, err_text(code));
}

int cmd_history_open(const struct cmd_history_options *o, enum history_access access,
                     char **ret_path, struct history_store **ret)
{
    char *path = NULL;
    int rc = cmd_history_path(o->db, false, &path);
    if (rc == E_NOENT ||
        (rc == 0 && !o->db && !getenv("PYROMETER_DB") && faccessat(AT_FDCWD, path, F_OK, 0) < 0)) {
        free(path);
        return cmd_fail(CMD_FAILED,
                        "there is no history yet; make one first: pyrometer run python app.py");
    }
    if (rc < 0)
        return cmd_fail(CMD_FAILED, "cannot look for the history: %s", err_text(rc));
    struct history_store *s = NULL;
    cmd_progress_begin();
    progress_begin("looking into the history", 0);
    rc = history_store_open(path, access, &s);
    if (rc < 0) {
        int status = cmd_history_failed(path, rc);
        free(path);
        return status;
    }
    *ret = s;
    *ret_path = path;
    return 0;
}

enum view_format cmd_history_format(const struct cmd_history_options *o)
{
    return o->json ? VIEW_JSON : o->csv ? VIEW_CSV : VIEW_TEXT;
}

static int64_t unit_us(char unit)
{
    switch (unit) {
    case 's':
        return 1000000;
    case 'm':
        return 60ll * 1000000;
    case 'h':
        return 3600ll * 1000000;
    case 'd':
        return 86400ll * 1000000;
    case 'w':
        return 7 * 86400ll * 1000000;
    default:
        return 0;
    }
}

bool cmd_history_parse_time(const char *text, int64_t *ret_us)
{
    enum { MAX_COUNT = 1000000 };
    char *end;
    errno = 0;
    unsigned long count = strtoul(text, &end, 10);
    if (end != text && end[0] && !end[1] && unit_us(end[0]) && count <= MAX_COUNT) {
        *ret_us = (int64_t)(clock_real_ns() / NS_PER_US) - (int64_t)count * unit_us(end[0]);
        return true;
    }
    static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
                                          "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *rest = strptime(text, formats[i], &tm);
        time_t t = rest && !*rest ? mktime(&tm) : -1;
        if (t != -1) {
            *ret_us = (int64_t)t * 1000000;
            return true;
        }
    }
    return false;
}

int cmd_history_filter(const struct cmd_history_options *o, const char *key,
                       struct history_filter *ret)
{
    struct history_filter f = {.key = key,
                               .tag = o->tag,
                               .commit = o->commit,
                               .branch = o->branch,
                               .last = o->last,
                               .with_warmups = o->all};
    if (o->since && !cmd_history_parse_time(o->since, &f.since_us))
        return cmd_fail(CMD_USAGE,
                        "--since %s: write a day as 2026-01-31, or an age as 7d, 36h or 30m",
                        o->since);
    if (o->has_last && !o->last)
        return cmd_fail(CMD_USAGE, "--last needs a number above 0");
    *ret = f;
    return 0;
}

int cmd_history_find(struct history_store *s, const char *path, const char *text, int64_t *ret)
{
    int rc = history_store_find(s, text, ret);
    if (rc == E_NOENT)
        return cmd_fail(CMD_FAILED, "there is no run '%s' in the history %s", text, path);
    if (rc == E_AMBIGUOUS)
        return cmd_fail(CMD_FAILED, "'%s' fits more than one run: write more of it", text);
    if (rc == E_INVALID)
        return cmd_fail(CMD_USAGE,
                        "'%s' names no run: write its number, its id, @ for the last one, or @~1 "
                        "for the one before",
                        text);
    return rc < 0 ? cmd_history_failed(path, rc) : 0;
}

char *cmd_history_key(int count, char **argv)
{
    struct buf text;
    buf_init(&text, HISTORY_MAX_COMMAND);
    for (int i = 0; i < count; i++)
        buf_printf(&text, "%s%s", i ? " " : "", argv[i]);
    char *key = buf_error(&text) ? NULL : history_command_key_of_text(buf_cstr(&text));
    buf_release(&text);
    return key;
}

/* --- lists --- */

static int list_commands(const struct cmd_history_options *o, struct history_store *s,
                         const char *path)
{
    struct history_commands commands = {0};
    int rc = history_store_commands(s, &commands);
    if (rc < 0)
        return cmd_history_failed(path, rc);
    errno = 0;
    rc = view_history_commands(path, &commands, cmd_history_format(o), cmd_stdout(),
                               view_style_of(stdout));
    int reason = errno;
    history_commands_release(&commands);
    return rc < 0 ? cmd_output_failed("the list", rc, reason) : CMD_OK;
}

/* --json=columns: field by field, so all runs at once. */
struct loaded {
    struct history_store *store;
    VEC(struct history_run *) runs;
};

static int load_one(void *ctx, const struct history_run *run)
{
    struct loaded *l = ctx;
    struct history_run *copy = calloc(1, sizeof *copy);
    struct history_run **slot = copy ? vec_push(&l->runs) : NULL;
    if (!slot) {
        free(copy);
        return E_NOMEM;
    }
    *slot = copy;
    return history_store_run(l->store, run->id, copy);
}

static int print_columns(struct history_store *s, const struct history_filter *f)
{
    struct loaded l = {.store = s};
    int rc = history_store_runs(s, f, false, load_one, &l);
    if (rc == 0)
        rc = view_history_columns((const struct history_run *const *)l.runs.data, l.runs.len,
                                  cmd_stdout());
    for (size_t i = 0; i < l.runs.len; i++) {
        history_run_release(l.runs.data[i]);
        free(l.runs.data[i]);
    }
    vec_release(&l.runs);
    return rc;
}

static int note_one(void *ctx, const struct history_run *run ATTR_UNUSED)
{
    *(bool *)ctx = true;
    return 0;
}

/* Asked before anything is printed: an empty table is no answer. */
static int has_runs(struct history_store *s, struct history_filter f, bool *ret)
{
    f.last = 1;
    *ret = false;
    return history_store_runs(s, &f, false, note_one, ret);
}

static int print_runs(const struct cmd_history_options *o, struct history_store *s,
                      const struct history_filter *f)
{
    enum view_format format = cmd_history_format(o);
    struct history_names names = {0};
    int rc = format == VIEW_CSV ? history_store_metrics(s, f->key, &names) : 0;
    if (rc < 0)
        return rc;
    struct view_history_runs v;
    view_history_runs_begin(&v, format, cmd_stdout(), view_style_of(stdout), &names);
    rc = history_store_runs(s, f, format == VIEW_JSON, view_history_runs_add, &v);
    int end = view_history_runs_end(&v);
    history_names_release(&names);
    return rc < 0 ? rc : end;
}

static int list_runs(const struct cmd_history_options *o, struct history_store *s, const char *path,
                     const char *command)
{
    _cleanup_free_ char *key = history_command_key_of_text(command);
    struct history_filter f = {0};
    if (!key)
        return cmd_fail(CMD_FAILED, "out of memory");
    int status = cmd_history_filter(o, key, &f);
    if (status)
        return status;
    bool any;
    int rc = has_runs(s, f, &any);
    if (rc == 0 && !any && !o->json && !o->csv)
        return cmd_fail(CMD_FAILED, "no runs of '%s' in the history %s", command, path);
    errno = 0;
    if (rc == 0)
        rc = o->json && !strcmp(o->json, "columns") ? print_columns(s, &f) : print_runs(o, s, &f);
    if (rc < 0)
        return rc == E_IO ? cmd_output_failed("the runs", rc, errno) : cmd_history_failed(path, rc);
    return CMD_OK;
}

static int list(const struct cmd_history_options *o, int count, char **argv)
{
    char *path = NULL;
    struct history_store *s = NULL;
    int status = cmd_history_open(o, HISTORY_READ, &path, &s);
    if (status)
        return status;
    if (count == 0) {
        status = list_commands(o, s, path);
    } else { /* the words of a command may stand alone or in quotes */
        struct buf text;
        buf_init(&text, HISTORY_MAX_COMMAND);
        for (int i = 0; i < count; i++)
            buf_printf(&text, "%s%s", i ? " " : "", argv[i]);
        status = list_runs(o, s, path, buf_cstr(&text));
        buf_release(&text);
    }
    history_store_close(s);
    free(path);
    return status;
}

int cmd_history_show(const struct cmd_history_options *o, int count, char **argv)
{
    if (count > 1)
        return cmd_fail(CMD_USAGE, "history show takes one run");
    if (o->csv)
        return cmd_fail(CMD_USAGE,
                        "history show has no --csv: a run is no table; --json has all of it");
    char *path = NULL;
    struct history_store *s = NULL;
    int64_t id;
    int status = cmd_history_open(o, HISTORY_READ, &path, &s);
    if (status)
        return status;
    status = cmd_history_find(s, path, count ? argv[0] : "@", &id);
    struct history_run run = {0};
    int rc = status ? 0 : history_store_run(s, id, &run);
    if (rc < 0)
        status = cmd_history_failed(path, rc);
    errno = 0;
    if (!status && (rc = view_history_show(&run, cmd_history_format(o), cmd_stdout(),
                                           view_style_of(stdout))) < 0)
        status = cmd_output_failed("the run", rc, errno);
    history_run_release(&run);
    history_store_close(s);
    free(path);
    return status;
}

int cmd_history(int argc, char **argv)
{
    struct cmd_history_options o = {0};
    const struct cmd_option options[] = {
        {"db", 0, CMD_TEXT, &o.db, NULL},
        {"json", 0, CMD_OPT_TEXT, &o.json, NULL},
        {"csv", 0, CMD_FLAG, &o.csv, NULL},
        {"since", 0, CMD_TEXT, &o.since, NULL},
        {"last", 0, CMD_COUNT, &o.last, &o.has_last},
        {"tag", 0, CMD_TEXT, &o.tag, NULL},
        {"commit", 0, CMD_TEXT, &o.commit, NULL},
        {"branch", 0, CMD_TEXT, &o.branch, NULL},
        {"all", 0, CMD_FLAG, &o.all, NULL},
        {"max-size", 0, CMD_TEXT, &o.max_size, NULL},
        {"older-than", 0, CMD_TEXT, &o.older_than, NULL},
        {"dry-run", 0, CMD_FLAG, &o.dry_run, NULL},
        {"keep-profiles", 0, CMD_FLAG, &o.keep_profiles, NULL},
        CMD_PLOT_OPTIONS(&o.plot),
        CMD_CHECK_OPTIONS(&o.check),
        {NULL, 0, CMD_FLAG, NULL, NULL},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (o.json && *o.json && strcmp(o.json, "columns") != 0)
        return cmd_fail(CMD_USAGE, "--json=%s: it is --json, or --json=columns", o.json);
    if (o.json && o.csv)
        return cmd_fail(CMD_USAGE, "--json and --csv are one too many");
    for (size_t i = 0; operands && i < ARRAY_LEN(parts); i++)
        if (!strcmp(argv[first], parts[i].word))
            return parts[i].run(&o, operands - 1, argv + first + 1);
    if (o.plot.metrics.count)
        return cmd_history_plot(&o, operands, argv + first);
    return list(&o, operands, argv + first);
}
