/* `pyrometer export FORMAT [RUN]`: a recording in another tool's format. */
#include "export/export.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "profile/events.h"
#include "view/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FORMATS_MAX = 32, LOSSES_MAX = 1 << 16 };

struct export_request {
    const struct export_format *format;
    struct export_options options;
    const char *output; /* NULL: stdout */
    bool force;
};

static int choose_format(const char *name, const struct export_format **ret)
{
    const char *names[FORMATS_MAX + 1] = {0};
    for (size_t i = 0; EXPORT_TABLE[i].name && i < FORMATS_MAX; i++)
        names[i] = EXPORT_TABLE[i].name;
    int at = cmd_choose("FORMAT", name, names);
    if (at < 0)
        return CMD_USAGE;
    *ret = &EXPORT_TABLE[at];
    return 0;
}

static int write_stdout(const struct export_request *q, const struct profile *profile)
{
    FILE *out = cmd_stdout_begin();
    errno = 0;
    int r = q->format->write(profile, &q->options, out);
    int reason = errno, finished = cmd_stdout_finish(out);
    if (r == 0 && finished < 0) {
        r = finished;
        reason = errno;
    }
    return r < 0 ? cmd_output_failed("the standard output", r, reason) : CMD_OK;
}

static int write_file(const struct export_request *q, const struct profile *profile)
{
    struct cmd_output output;
    int status = cmd_output_open(q->output, q->force, profile_path(profile), &output);
    if (status)
        return status;
    return cmd_output_close(&output, q->format->write(profile, &q->options, output.file));
}

/* The formats of calls on a timeline, and not of sums. */
static bool is_timeline(const struct export_format *f)
{
    return f->write == export_chrome_write || f->write == export_perfetto_write;
}

static int check_timeline(const struct export_request *q, const struct profile *profile)
{
    if (q->options.query.include || q->options.query.exclude || q->options.weighted)
        return cmd_fail(CMD_USAGE,
                        "%s has all calls: --include, --exclude and --metric are not "
                        "for it",
                        q->format->name);
    if (!profile_has_timeline(profile))
        return cmd_fail(CMD_FAILED, "%s has no timeline: record with pyrometer run --trace",
                        profile_path(profile));
    return 0;
}

/* What the recorder was told to leave out of the timeline. */
static void tell_left_out(const struct profile *profile)
{
    struct buf words;
    buf_init(&words, LOSSES_MAX);
    view_run_left_out(profile, &words);
    if (words.len)
        cmd_warn("%s", buf_cstr(&words));
    buf_release(&words);
}

static void tell_notice(const struct export_request *q, const struct export_notice *notice)
{
    if (notice->calls)
        cmd_warn("%ju calls shorter than %.3f µs are left out: viewers of %s take about %ju; --all "
                 "keeps them, --range shows a part",
                 (uintmax_t)notice->calls, (double)notice->below_ns / 1e3, q->format->name,
                 (uintmax_t)notice->limit);
    if (q->options.losses)
        cmd_warn("the recording: %s", q->options.losses);
}

/* Of what came from inside the program each loss is a hole. Samples stand for each other, and those that
 * went wrong say so in their stacks. */
static void find_losses(struct export_request *q, const struct profile *profile, struct buf *words)
{
    if (is_timeline(q->format) ||
        !analysis_metric_of(profile, q->options.query.metric)->weigh_sample)
        view_run_losses(profile, 0, words);
    q->options.losses = words->len ? buf_cstr(words) : NULL;
}

/* Formats whose columns are calls: if they were counted, that is what is meant, not the samples beside them. Of a range, samples
 * alone can tell. */
static void prefer_calls(struct export_request *q, const struct profile *profile)
{
    struct analysis_query *query = &q->options.query;
    bool has_columns =
        q->format->write == export_pstats_write || q->format->write == export_callgrind_write;
    if (has_columns && !q->options.weighted && !query->has_from && !query->has_to &&
        profile_calls_records(profile))
        query->metric = analysis_metric_find("time");
}

static int export_run(struct export_request *q, const char *run)
{
    struct profile *profile = NULL;
    struct buf losses;
    struct stat st;
    if (stat(run, &st) == 0 && S_ISDIR(st.st_mode)) /* a list would look like an export */
        return cmd_fail(CMD_FAILED, "'%s' is a directory, not a recording", run);
    int status = cmd_load_run(run, &profile);
    if (!status)
        prefer_calls(q, profile);
    if (!status)
        status = is_timeline(q->format) ? cmd_query_check_threads(&q->options.query, profile)
                                        : cmd_query_check(&q->options.query, profile);
    if (!status && is_timeline(q->format))
        status = check_timeline(q, profile);
    else /* what was counted is weighed; what was sampled is counted, unless a metric is asked for */
        q->options.weighted |=
            !status && !analysis_metric_of(profile, q->options.query.metric)->weigh_sample;
    buf_init(&losses, LOSSES_MAX);
    if (!status)
        find_losses(q, profile, &losses);
    if (!status)
        status = q->output ? write_file(q, profile) : write_stdout(q, profile);
    if (!status)
        tell_notice(q, q->options.notice);
    if (!status && is_timeline(q->format))
        tell_left_out(profile);
    buf_release(&losses);
    profile_free(profile);
    return status;
}

int cmd_export(int argc, char **argv)
{
    struct export_notice notice = {0};
    struct export_request q = {.options.notice = &notice};
    struct cmd_query_options query = {0};
    const struct cmd_option options[] = {
        {"output", 'o', CMD_TEXT, &q.output, NULL},
        {"force", 0, CMD_FLAG, &q.force, NULL},
        {"all", 0, CMD_FLAG, &q.options.all, NULL},
        CMD_QUERY_OPTIONS(&query),
        {0},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, false, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands < 1 || operands > 2)
        return cmd_fail(CMD_USAGE,
                        "export takes a FORMAT and one RUN: pyrometer export collapsed @");
    int status = choose_format(argv[first], &q.format);
    if (!status)
        status = cmd_query_make(&query, &q.options.query);
    q.options.weighted = query.metric != NULL;
    if (q.output && strcmp(q.output, "-") == 0)
        q.output = NULL;
    if (!status)
        status = export_run(&q, operands > 1 ? argv[first + 1] : "@");
    cmd_query_release(&query);
    return status;
}
