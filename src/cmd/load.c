/* Loading recordings and reading query options, for report, export and info. */
#include "cmd/load.h"

#include "base/buf.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/folder.h"
#include "cmd/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdio_ext.h>

enum { LISTED_MAX = 12, LIST_BYTES_MAX = 4096 };

int cmd_load_failed(const char *path, int code)
{
    switch (code) {
    case E_FORMAT:
        return cmd_fail(CMD_FAILED, "'%s' is not a Pyrometer recording", path);
    case E_NEWER:
        return cmd_fail(CMD_FAILED,
                        "'%s' was written by a newer Pyrometer: upgrade this one to read it", path);
    case E_CORRUPT: /* of chunks it would have been counted: `verify --repair` cannot help */
        return cmd_fail(CMD_FAILED,
                        "the header of '%s' is damaged, and without it nothing can be read", path);
    case E_SHORT:
        return cmd_fail(CMD_FAILED,
                        "'%s' is cut off in its header: nothing was recorded into it, or nothing "
                        "is left",
                        path);
    case E_EMPTY:
        return cmd_fail(CMD_FAILED, "'%s' is empty: nothing was recorded into it", path);
    default:
        return cmd_fail(CMD_FAILED, "cannot read '%s': %s", path, err_text(code));
    }
}

/* Not every view has room for what is missing in it, so it is told here for all of them. */
static void warn_of_damage(const char *path, const struct profile *profile)
{
    const struct format_summary *s = profile_summary(profile);
    uint32_t damaged = profile_damaged_chunks(profile);
    uint32_t lost = damaged ? damaged : s->missing_chunks;
    if (lost)
        cmd_warn("'%s' is damaged: what stood in %" PRIu32 " chunk%s of it is missing; `pyrometer "
                 "verify` tells more",
                 path, lost, lost == 1 ? "" : "s");
    if (s->torn)
        cmd_warn("'%s' is torn: read up to its last whole chunk, %" PRIu64 " of %" PRIu64 " bytes",
                 path, s->good_bytes, s->file_bytes);
    else if (!s->finished)
        cmd_warn("'%s' was not finished, its end is missing: the disk was full, the recorder was "
                 "killed, or it still writes",
                 path);
}

int cmd_load_path(const char *path, struct profile **ret)
{
    cmd_progress_begin();
    int r = profile_load(path, ret);
    if (r == E_ISDIR)
        return cmd_folder_list(path);
    if (r < 0)
        return cmd_load_failed(path, r);
    warn_of_damage(path, *ret);
    return 0;
}

int cmd_load_run(const char *run, struct profile **ret)
{
    _cleanup_free_ char *path = NULL;
    int status = cmd_resolve_run(run, &path);
    return status ? status : cmd_load_path(path, ret);
}

int cmd_choose(const char *option, const char *word, const char *const *names)
{
    struct buf list;
    buf_init(&list, LIST_BYTES_MAX);
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], word) == 0) {
            buf_release(&list);
            return i;
        }
        buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    cmd_fail(CMD_USAGE, "%s '%s': it is one of %s", option, word, buf_cstr(&list));
    buf_release(&list);
    return -1;
}

int cmd_regex_compile(const char *option, const char *pattern, regex_t *ret)
{
    int r = regcomp(ret, pattern, REG_EXTENDED | REG_NOSUB);
    if (!r)
        return 0;
    char why[128];
    regerror(r, ret, why, sizeof why);
    return cmd_fail(CMD_USAGE, "%s '%s' is not a regular expression: %s", option, pattern, why);
}

/* A plain decimal number up to `end`. */
static bool parse_seconds(const char *text, const char *end, double *ret)
{
    char *stop;
    if (text + strspn(text, "0123456789.") < end)
        return false;
    double v = strtod(text, &stop);
    if (stop != end || !isfinite(v))
        return false;
    *ret = v;
    return true;
}

static int parse_range(const char *range, struct analysis_query *q)
{
    const char *colon = strchr(range, ':');
    const char *end = range + strlen(range);
    bool good = colon != NULL;
    if (good && colon > range)
        good = q->has_from = parse_seconds(range, colon, &q->from);
    if (good && colon + 1 < end)
        good = q->has_to = parse_seconds(colon + 1, end, &q->to);
    if (!good)
        return cmd_fail(
            CMD_USAGE,
            "--range '%s': it is A:B in seconds after the start, such as 1.5:3 or 10:", range);
    if (q->has_from && q->has_to && !(q->from < q->to))
        return cmd_fail(CMD_USAGE, "--range '%s' is empty: the first must be the smaller", range);
    return 0;
}

static int compile_filters(struct cmd_query_options *o, struct analysis_query *q)
{
    int status = 0;
    if (o->include) {
        status = cmd_regex_compile("--include", o->include, &o->include_regex);
        o->has_include = !status;
        q->include = &o->include_regex;
    }
    if (!status && o->exclude) {
        status = cmd_regex_compile("--exclude", o->exclude, &o->exclude_regex);
        o->has_exclude = !status;
        q->exclude = &o->exclude_regex;
    }
    return status;
}

/* A moment is a question about what is alive, and the other way round. */
static int choose_moment(const struct cmd_query_options *o, struct analysis_query *q)
{
    const struct analysis_metric *live = analysis_metric_find("live");
    if (o->has_at && !o->metric)
        q->metric = live;
    if (o->has_at && q->metric != live)
        return cmd_fail(CMD_USAGE, "--at asks what is alive at a moment: --metric live, not %s",
                        q->metric->name);
    if (!o->has_at && q->metric == live)
        return cmd_fail(CMD_USAGE, "--metric live needs a moment: --at SECONDS");
    if (o->has_at && o->range)
        return cmd_fail(CMD_USAGE, "--at and --range do not go together");
    q->has_at = o->has_at;
    q->at = o->at;
    return 0;
}

static void add_filter(struct buf *out, const char *name, const char *value)
{
    if (value)
        buf_printf(out, "%s%s %s", out->len ? ", " : "", name, value);
}

void cmd_query_describe(const struct cmd_query_options *options, struct buf *out)
{
    char process[24];
    snprintf(process, sizeof process, "%llu", (unsigned long long)options->process);
    add_filter(out, "thread", options->thread);
    add_filter(out, "process", options->has_process ? process : NULL);
    add_filter(out, "seconds", options->range);
    char at[32];
    snprintf(at, sizeof at, "%g s", options->at);
    add_filter(out, "at", options->has_at ? at : NULL);
    add_filter(out, "stacks with", options->include);
    add_filter(out, "stacks without", options->exclude);
}

void cmd_query_release(struct cmd_query_options *options)
{
    if (options->has_include)
        regfree(&options->include_regex);
    if (options->has_exclude)
        regfree(&options->exclude_regex);
    options->has_include = options->has_exclude = false;
}

int cmd_query_make(struct cmd_query_options *options, struct analysis_query *ret)
{
    struct analysis_query q = {.metric = ANALYSIS_METRICS, .thread = options->thread};
    if (options->metric) {
        const char *names[LISTED_MAX + 1] = {0};
        for (size_t i = 0; ANALYSIS_METRICS[i].name && i < LISTED_MAX; i++)
            names[i] = ANALYSIS_METRICS[i].name;
        int at = cmd_choose("--metric", options->metric, names);
        if (at < 0)
            return CMD_USAGE;
        q.metric = &ANALYSIS_METRICS[at];
    }
    if (options->has_process) {
        if (options->process == 0 || options->process > INT32_MAX)
            return cmd_fail(CMD_USAGE, "--process %" PRIu64 ": it is a process id",
                            options->process);
        q.has_process = true;
        q.process = (uint32_t)options->process;
    }
    int status = choose_moment(options, &q);
    if (!status && options->range)
        status = parse_range(options->range, &q);
    if (!status)
        status = compile_filters(options, &q);
    if (!status)
        *ret = q;
    return status;
}

static void list_thread(struct buf *list, const struct profile_tables *t, uint32_t i)
{
    const struct record_thread *th = &t->threads[i];
    const struct profile_string *name = &t->strings[th->name];
    buf_puts(list, list->len ? ", " : "");
    if (name->len)
        buf_append(list, name->text, min_u64(name->len, 80));
    else
        buf_printf(list, "%u", th->tid);
}

static int no_such_process(const struct analysis_query *q, const struct profile_tables *t)
{
    struct buf list;
    buf_init(&list, LIST_BYTES_MAX);
    size_t listed = 0;
    for (size_t i = 0; i < t->process_count && listed < LISTED_MAX; i++)
        if (analysis_process_is_known(t, (uint32_t)i)) {
            buf_printf(&list, "%s%u", listed ? ", " : "", t->processes[i].pid);
            listed++;
        }
    int status = cmd_fail(CMD_FAILED, "no process %u in the recording; there is %s%s", q->process,
                          listed ? buf_cstr(&list) : "none", listed == LISTED_MAX ? ", …" : "");
    buf_release(&list);
    return status;
}

int cmd_query_check(const struct analysis_query *query, const struct profile *profile)
{
    const struct analysis_metric *metric = analysis_metric_of(profile, query->metric);
    bool ranged = query->has_from || query->has_to;
    if (ranged && metric->weigh_site && !metric->is_sum)
        return cmd_fail(CMD_FAILED,
                        "%s is of one moment and has no range: leave out --range, or say --metric "
                        "allocated or count",
                        metric->name);
    const char *kind = profile_meta_value(profile, "memory.mode");
    if (strcmp(metric->name, "temporary") == 0 && kind && strcmp(kind, "sampled") == 0)
        return cmd_fail(CMD_FAILED,
                        "what was given back at once is not known of samples: record it "
                        "with --memory=heap or --memory=objects");
    if (ranged && metric->weigh_calls)
        return cmd_fail(
            CMD_FAILED,
            "exact calls are sums that know no moments: leave out --range, or ask for a "
            "sampled metric");
    return cmd_query_check_threads(query, profile);
}

int cmd_query_check_threads(const struct analysis_query *query, const struct profile *profile)
{
    const struct profile_tables *t = profile_tables(profile);
    struct analysis_query whole_process = *query;
    whole_process.thread = NULL;
    struct buf list;
    buf_init(&list, LIST_BYTES_MAX);
    size_t in_process = 0, taken = 0;
    bool has_process = !query->has_process;
    for (size_t i = 0; i < t->process_count; i++)
        has_process |= query->has_process && t->processes[i].pid == query->process;
    for (uint32_t i = 0; i < t->thread_count; i++) {
        if (!analysis_thread_is_known(t, i) || !analysis_query_takes_thread(&whole_process, t, i))
            continue;
        if (in_process++ < LISTED_MAX)
            list_thread(&list, t, i);
        taken += analysis_query_takes_thread(query, t, i);
    }
    int status = 0;
    if (!has_process)
        status = no_such_process(query, t);
    else if (!taken && query->thread)
        status =
            cmd_fail(CMD_FAILED, "no thread '%s' in the recording; there is %s%s", query->thread,
                     in_process ? buf_cstr(&list) : "none", in_process > LISTED_MAX ? ", …" : "");
    buf_release(&list);
    return status;
}

int cmd_output_failed(const char *what, int code, int os_errno)
{
    /* what could not be written is given up, or it would be tried and complained of again at exit
     */
    __fpurge(stdout);
    clearerr(stdout);
    if (os_errno == EPIPE)
        return CMD_OK;
    return cmd_fail(CMD_FAILED, "cannot write %s: %s", what, err_text(code));
}
