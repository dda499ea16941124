/* pyrometer run: start a program and record it. */
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/recording.h"

#include <string.h>

int cmd_run(int argc, char **argv)
{
    struct cmd_recording r = {0};
    const struct cmd_option options[] = {
        {"sample", 0, CMD_OPT_TEXT, &r.sample, NULL},
        {"calls", 0, CMD_FLAG, &r.calls, NULL},
        {"trace", 0, CMD_FLAG, &r.trace, NULL},
        {"min-duration", 0, CMD_REAL, &r.min_duration, &r.has_min_duration},
        {"max-depth", 0, CMD_COUNT, &r.max_depth, &r.has_max_depth},
        {"last", 0, CMD_REAL, &r.last, &r.has_last},
        {"args", 0, CMD_FLAG, &r.args, NULL},
        {"include", 0, CMD_EACH, &r.filters, NULL},
        {"exclude", 0, CMD_EACH, &r.filters, NULL},
        {"no-c-calls", 0, CMD_FLAG, &r.no_c_calls, NULL},
        {"lines", 0, CMD_FLAG, &r.lines, NULL},
        {"function", 0, CMD_TEXT, &r.function, NULL},
        {"match", 0, CMD_TEXT, &r.match, NULL},
        {"output", 'o', CMD_TEXT, &r.output, NULL},
        {"force", 0, CMD_FLAG, &r.force, NULL},
        {"for", 0, CMD_REAL, &r.seconds, &r.has_seconds},
        {"quiet", 0, CMD_FLAG, &r.quiet, NULL},
        {"path-fd", 0, CMD_COUNT, &r.path_fd, &r.has_path_fd},
        {NULL, 0, CMD_FLAG, NULL, NULL},
    };
    int first;
    int operands = cmd_options_parse(argc, argv, options, true, &first);
    if (operands < 0)
        return operands == CMD_PARSED_HELP ? CMD_OK : CMD_USAGE;
    if (operands == 0)
        return cmd_fail(CMD_USAGE, "run needs a command, for example: pyrometer run python app.py");
    struct record_options o;
    int status = cmd_recording_begin(&r, &o);
    if (status == 0) {
        o.argv = argv + first;
        struct record_result result;
        int rc = record_run(&o, &result);
        if (rc < 0) {
            status = cmd_recording_refused(&r, rc);
        } else if (result.exec_error) {
            unlink(r.path);
            status = cmd_fail(result.exit_status, "cannot run %s: %s", argv[first],
                              strerror(result.exec_error));
        } else {
            cmd_recording_end(&r, &result);
            status = result.exit_status;
        }
    }
    cmd_recording_release(&r);
    return status;
}
