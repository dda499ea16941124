/* What `run` and `attach` share: where the recording goes, how often to look, what to say at the
 * end. */
#ifndef PYROMETER_CMD_RECORDING_H
#define PYROMETER_CMD_RECORDING_H

#include "cmd/cmd.h"
#include "record/record.h"

struct cmd_recording {
    const char *sample; /* NULL: not given; "": the default rate */
    bool calls, trace, no_c_calls, lines, args;
    double min_duration; /* seconds; the timeline leaves out what is shorter */
    bool has_min_duration;
    uint64_t max_depth; /* and what is deeper */
    bool has_max_depth;
    double last; /* seconds; the timeline keeps only so much before the end */
    bool has_last;
    struct cmd_each lines_of; /* --function and --match: whose lines; none: everybody's */
    const char *memory;       /* NULL: not given; "": the heap */
    bool memory_events;
    struct cmd_each filters; /* --include and --exclude: whose calls */
    const char *output;
    bool force, quiet;
    double seconds;
    bool has_seconds;
    uint64_t path_fd; /* where to tell the path of a complete recording */
    bool has_path_fd;
    char *path;      /* owned */
    char *selection; /* owned; NULL: none */
};

/* Fills in the options every recording needs. 0, or the exit status after a line. */
int cmd_recording_begin(struct cmd_recording *r, struct record_options *ret);

/* The line for a recording that could not be begun, and the exit status. */
int cmd_recording_refused(const struct cmd_recording *r, int code);

/* Says what there is to say: a write error always, the path on --path-fd, the summary unless
 * --quiet. */
void cmd_recording_end(const struct cmd_recording *r, const struct record_result *result);

void cmd_recording_release(struct cmd_recording *r);

#endif
