#include "cmd/list.h"

#include "analysis/exact_lines.h"
#include "analysis/weights.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "view/run.h"

#include <string.h>

enum {
    TEXT_LIMIT = 30, /* rows of a text table when the user does not say */
    LOSSES_MAX = 1 << 16,
};

int cmd_list_make(struct cmd_list_options *options, enum view_format *ret_format,
                  const regex_t **ret_match)
{
    if (options->json && options->csv)
        return cmd_fail(CMD_USAGE, "--json and --csv are one too many");
    if (options->min_percent > 100)
        return cmd_fail(CMD_USAGE, "--min-percent %g: it is between 0 and 100",
                        options->min_percent);
    if (options->match) {
        int status = cmd_regex_compile("--match", options->match, &options->regex);
        if (status)
            return status;
        options->has_regex = true;
    }
    *ret_format = options->json ? VIEW_JSON : options->csv ? VIEW_CSV : VIEW_TEXT;
    *ret_match = options->has_regex ? &options->regex : NULL;
    return 0;
}

void cmd_list_release(struct cmd_list_options *options)
{
    if (options->has_regex)
        regfree(&options->regex);
    options->has_regex = false;
}

uint64_t cmd_list_limit(const struct cmd_list_options *options, enum view_format format)
{
    if (options->has_limit)
        return options->limit;
    return format == VIEW_TEXT ? TEXT_LIMIT : 0;
}

void cmd_list_warn(enum view_format format, const struct analysis_weights *weights)
{
    if (format != VIEW_CSV || !weights->exact)
        return;
    struct buf losses;
    buf_init(&losses, LOSSES_MAX);
    view_run_losses(weights->profile, weights->damaged_chunks, &losses);
    if (losses.len)
        cmd_warn("the recording: %s", buf_cstr(&losses));
    buf_release(&losses);
}

int cmd_list_no_exact_lines(const struct profile *profile, const char *style)
{
    const char *instruments = profile_meta_value(profile, "instruments");
    if (instruments && strstr(instruments, "lines"))
        return cmd_fail(
            CMD_FAILED, "%s was recorded with --lines, but has none: %s", profile_path(profile),
            profile_calls_records(profile) ? VIEW_RUN_UNSELECTED : view_run_untraced(profile));
    return cmd_fail(CMD_FAILED, "%s%s%s%s has no exact lines: record with pyrometer run --lines%s",
                    style ? "--style " : "", style ? style : "", style ? ": " : "",
                    profile_path(profile), style ? "" : " (or --sample)");
}

int cmd_list_check_lines(const struct analysis_weights *weights)
{
    const struct profile *profile = weights->profile;
    if (!weights->calls || !profile_calls_records(profile)) /* without any, the view says so */
        return 0;
    if (analysis_exact_lines_has(profile))
        return cmd_fail(CMD_FAILED, "exact lines have no stacks and no metric but time: leave out "
                                    "--include, --exclude and --metric; --match chooses lines");
    if (profile_sample_records(profile))
        return cmd_fail(CMD_FAILED, "%s has lines of samples alone: leave out --metric %s",
                        profile_path(profile), weights->metric->name);
    return cmd_list_no_exact_lines(profile, NULL);
}

int cmd_list_status(const char *what, int code, bool in_output, int os_errno)
{
    if (code == 0)
        return CMD_OK;
    if (in_output)
        return cmd_output_failed(what, code, os_errno);
    return cmd_fail(CMD_FAILED, "cannot make %s: %s", what, err_text(code));
}
