#include "cmd/keep.h"

#include "base/err.h"
#include "base/io.h"
#include "base/vec.h"
#include "cmd/runs.h"
#include "history/jsonmetrics.h"
#include "history/store.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    COLLECT_MAX = 16 << 20,     /* bytes of a file that the program leaves */
    USER_METRICS_MAX = 4 << 20, /* of what pyrometer.metric() sends */
    PROCESSES_TEXT_MAX = 4 << 20,
};

/* A file the program may write, and how it was before. */
struct watched {
    const char *path;
    char *name; /* owned: of its output, and before its metrics */
    bool asked; /* by --collect: missing is worth a word */
    bool existed;
    struct stat before;
};

struct cmd_keep {
    const struct cmd_keep_options *options;
    char *path;   /* owned; of the store, where it is known before the command runs */
    char *folder; /* owned; the working directory */
    char group[HISTORY_UID_LEN + 1];
    VEC(struct watched) files;
    pthread_t thread;
    bool opening;
    struct history_store *store; /* the thread's until it has ended */
    int open_error;
    bool warned;
};

int cmd_history_path(const char *option, bool make, char **ret)
{
    const char *said = option ? option : getenv("PYROMETER_DB");
    if (said && *said) {
        char *copy = strdup(said);
        *ret = copy;
        return copy ? 0 : E_NOMEM;
    }
    _cleanup_free_ char *home = NULL;
    int rc = cmd_home(make, &home);
    if (rc < 0)
        return rc;
    return asprintf(ret, "%s/history.db", home) < 0 ? E_NOMEM : 0;
}

/* --- before --- */

static int check_tags(const struct cmd_each *tags)
{
    for (size_t i = 0; i < tags->count; i++) {
        const char *equals = strchr(tags->use[i].value, '=');
        if (!equals || equals == tags->use[i].value)
            return cmd_fail(CMD_USAGE, "--tag %s: write it as KEY=VALUE", tags->use[i].value);
    }
    return 0;
}

/* "out/stats.json" is "stats" */
static char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return strndup(base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

static void watch_file(struct cmd_keep *k, const char *path, bool asked)
{
    struct watched *w = vec_push(&k->files);
    if (!w)
        return;
    *w = (struct watched){.path = path, .name = stem_of(path), .asked = asked};
    if (!w->name)
        k->files.len--;
}

int cmd_keep_new(const struct cmd_keep_options *options, struct cmd_keep **ret)
{
    int status = check_tags(&options->tags);
    if (status)
        return status;
    if (options->keep_bytes > CMD_KEEP_BYTES_MAX)
        return cmd_fail(CMD_USAGE, "--keep-output: at most %d bytes of a stream are kept",
                        CMD_KEEP_BYTES_MAX);
    struct cmd_keep *k = calloc(1, sizeof *k);
    if (!k)
        return cmd_fail(CMD_FAILED, "out of memory");
    k->options = options;
    k->folder = getcwd(NULL, 0);
    watch_file(k, "tiledb_stats.json", false);
    watch_file(k, "tiledb_stats.txt", false);
    for (size_t i = 0; i < options->files.count; i++)
        watch_file(k, options->files.use[i].value, true);
    *ret = k;
    return 0;
}

void cmd_keep_free(struct cmd_keep *k)
{
    if (!k)
        return;
    if (k->opening)
        pthread_join(k->thread, NULL);
    history_store_close(k->store);
    for (size_t i = 0; i < k->files.len; i++)
        free(k->files.data[i].name);
    vec_release(&k->files);
    free(k->path);
    free(k->folder);
    free(k);
}

static void *open_store(void *ctx)
{
    struct cmd_keep *k = ctx;
    k->open_error = cmd_history_path(k->options->db, true, &k->path);
    if (k->open_error == 0)
        k->open_error = history_store_open(k->path, HISTORY_WRITE, &k->store);
    return NULL;
}

static void on_started(void *ctx)
{
    struct cmd_keep *k = ctx;
    if (k->store || k->opening || k->open_error)
        return;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    k->opening = pthread_create(&k->thread, NULL, open_store, k) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

struct meter *cmd_keep_meter(struct cmd_keep *k)
{
    const struct cmd_keep_options *o = k->options;
    for (size_t i = 0; i < k->files.len; i++) {
        struct watched *w = &k->files.data[i];
        w->existed = stat(w->path, &w->before) == 0;
    }
    struct meter_options options = {
        .capture = !o->no_capture && !o->no_history,
        .keep = o->has_keep_bytes ? o->keep_bytes : CMD_KEEP_BYTES,
        .ask_git = !o->no_history,
        .started = o->no_history ? NULL : on_started,
        .ctx = k,
    };
    struct meter *m = NULL;
    int rc = meter_new(&options, &m);
    if (rc < 0)
        cmd_warn("the command is not metered: %s", err_text(rc));
    return rc < 0 ? NULL : m;
}

/* --- after --- */

static bool was_written(const struct watched *w, const struct stat *now)
{
    const struct stat *b = &w->before;
    return !w->existed || b->st_ino != now->st_ino || b->st_dev != now->st_dev ||
           b->st_size != now->st_size || b->st_mtim.tv_sec != now->st_mtim.tv_sec ||
           b->st_mtim.tv_nsec != now->st_mtim.tv_nsec || b->st_ctim.tv_sec != now->st_ctim.tv_sec ||
           b->st_ctim.tv_nsec != now->st_ctim.tv_nsec;
}

static void collect_file(struct history_run *run, const struct watched *w)
{
    struct stat st;
    bool exists = stat(w->path, &st) == 0;
    if (!exists || !S_ISREG(st.st_mode) || !was_written(w, &st)) {
        if (w->asked)
            cmd_warn("--collect %s: the command did not write it", w->path);
        return;
    }
    struct buf b;
    buf_init(&b, COLLECT_MAX);
    int rc = io_read_file(w->path, &b);
    if (rc < 0 && rc != E_LIMIT) {
        cmd_warn("cannot collect %s: %s", w->path, err_text(rc));
    } else {
        if (rc == 0)
            history_run_add_json(run, w->name, b.data,
                                 b.len); /* what is no JSON is kept as it is */
        if (history_run_add_output(run, w->name, b.data, b.len, (uint64_t)st.st_size) < 0)
            cmd_warn("cannot keep %s: too many files", w->path);
    }
    buf_release(&b);
}

static void add_metric(void *ctx, const char *name, double value)
{
    history_run_add_metric(ctx, name, value);
}

static void add_host(void *ctx, const char *key, const char *value)
{
    history_run_add_fact(ctx, HISTORY_FACT_HOST, key, value);
}

static void add_package(void *ctx, const char *key, const char *value)
{
    history_run_add_fact(ctx, HISTORY_FACT_PACKAGE, key, value);
}

static void add_launch(void *ctx, const char *key, const char *value)
{
    history_run_add_fact(ctx, HISTORY_FACT_LAUNCH, key, value);
}

static char *copy_of(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void add_command(struct history_run *run, char *const *argv)
{
    struct buf exact;
    size_t count = 0;
    buf_init(&exact, HISTORY_MAX_COMMAND);
    for (; argv[count]; count++)
        buf_append(&exact, argv[count], strlen(argv[count]) + 1);
    run->key = history_command_key((const char *const *)argv, count);
    run->command = history_command_text((const char *const *)argv, count);
    run->argv_len = exact.len;
    run->argv = buf_error(&exact) ? NULL : buf_detach(&exact);
    if (!run->argv)
        run->argv_len = 0;
    buf_release(&exact);
}

static void add_streams(struct history_run *run, struct meter *m)
{
    static const char *const names[] = {"stdout", "stderr"};
    for (int i = 0; i < 2; i++) {
        struct buf b;
        uint64_t total = 0;
        buf_init(&b, CMD_KEEP_BYTES_MAX);
        if (meter_stream(m, i, &b, &total))
            history_run_add_output(run, names[i], b.data, b.len, total);
        buf_release(&b);
    }
    run->stderr_with_stdout = meter_streams_merged(m);
}

/* From inside the program; what the meter measured itself goes over it. */
static void add_users_metrics(struct history_run *run, struct meter *m)
{
    struct buf b;
    size_t bad = 0;
    buf_init(&b, USER_METRICS_MAX);
    if (meter_user_metrics(m, &b) == 0 && b.len)
        history_run_add_metric_lines(run, b.data, b.len, &bad);
    if (bad)
        cmd_warn("%zu metric%s of the program could not be read", bad, bad == 1 ? "" : "s");
    buf_release(&b);
}

static void add_processes(struct history_run *run, struct meter *m)
{
    struct buf b;
    buf_init(&b, PROCESSES_TEXT_MAX);
    meter_processes(m, &b);
    if (b.len && !buf_error(&b))
        history_run_add_output(run, "processes", b.data, b.len, b.len);
    buf_release(&b);
}

static void add_instruments(struct history_run *run, const struct cmd_kept *kept)
{
    char number[24];
    if (kept->instruments)
        history_run_add_fact(run, HISTORY_FACT_LAUNCH, "instruments", kept->instruments);
    snprintf(number, sizeof number, "%lld", (long long)kept->deepens);
    if (kept->deepens)
        history_run_add_fact(run, HISTORY_FACT_LAUNCH, "deepens", number);
}

static void fill(struct cmd_keep *k, struct meter *m, const struct cmd_kept *kept,
                 struct history_run *run)
{
    for (int i = 0; i < 16; i++)
        snprintf(run->uid + 2 * (size_t)i, 3, "%02x", kept->run_id[i]);
    add_command(run, kept->argv);
    run->started_us = meter_started_us(m);
    run->exit_status = kept->exit_status;
    run->has_exit_status = true;
    run->cwd = copy_of(k->folder);
    run->python = copy_of(meter_python(m));
    run->git_commit = copy_of(meter_git_commit(m));
    run->git_branch = copy_of(meter_git_branch(m));
    run->source = strdup("run");
    char real[PATH_MAX];
    if (kept->profile)
        run->profile = copy_of(realpath(kept->profile, real) ? real : kept->profile);
    if (kept->grouped) {
        if (!k->group[0])
            memcpy(k->group, run->uid, sizeof k->group);
        run->group = strdup(k->group);
        run->repeat = kept->repeat;
        run->warmup = kept->warmup;
    }
    for (size_t i = 0; i < k->files.len; i++)
        collect_file(run, &k->files.data[i]);
    add_users_metrics(run, m);
    meter_metrics(m, add_metric, run);
    add_streams(run, m);
    add_processes(run, m);
    meter_host_facts(m, add_host, run);
    run->hostname = copy_of(history_run_fact(run, HISTORY_FACT_HOST, "hostname"));
    meter_package_facts(m, add_package, run);
    meter_launch_facts(add_launch, run);
    add_instruments(run, kept);
    run->git_dirty = meter_git_dirty(m); /* last: the answer may still be on its way */
}

static void add_asked(const struct cmd_keep_options *o, struct history_run *run)
{
    for (size_t i = 0; i < o->tags.count; i++) {
        const char *text = o->tags.use[i].value, *equals = strchr(text, '=');
        _cleanup_free_ char *key = strndup(text, (size_t)(equals - text));
        if (!key || history_run_add_fact(run, HISTORY_FACT_TAG, key, equals + 1) < 0)
            cmd_warn("--tag %s is not kept: too long", text);
    }
    for (size_t i = 0; i < o->variables.count; i++) {
        const char *name = o->variables.use[i].value, *value = getenv(name);
        if (value)
            history_run_add_fact(run, HISTORY_FACT_ENV, name, value);
    }
}

static void warn(struct cmd_keep *k, int code)
{
    if (k->warned)
        return; /* of a group of runs once */
    k->warned = true;
    if (k->path)
        cmd_warn("the run is not in the history %s: %s", k->path, err_text(code));
    else
        cmd_warn("the run is not in the history: %s; name a file with --db", err_text(code));
}

int64_t cmd_keep_run(struct cmd_keep *k, struct meter *m, const struct cmd_kept *kept)
{
    struct history_run run = {.git_dirty = -1};
    fill(k, m, kept, &run);
    add_asked(k->options, &run);
    if (k->opening)
        pthread_join(k->thread, NULL);
    k->opening = false;
    int64_t id = 0;
    int rc = k->open_error;
    if (rc == 0)
        rc = k->store ? history_store_add(k->store, &run, &id) : E_SYSTEM;
    if (rc < 0)
        warn(k, rc);
    history_run_release(&run);
    return rc < 0 ? 0 : id;
}
