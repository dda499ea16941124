/* `diff` of runs and groups of the history: metrics side by side, then who is to blame. */
#ifndef PYROMETER_CMD_DIFF_GROUPS_H
#define PYROMETER_CMD_DIFF_GROUPS_H

#include "analysis/query.h"
#include "cmd/cmd.h"
#include "view/emit.h"

struct cmd_diff_group_options {
    const char *db;
    uint64_t last; /* of a group */
    bool has_last;
};

/* clang-format off */
#define CMD_DIFF_GROUP_OPTIONS(g)                                                                  \
    {"db", 0, CMD_TEXT, &(g)->db, NULL},                                                           \
    {"last", 0, CMD_COUNT, &(g)->last, &(g)->has_last}
/* clang-format on */

/* Does the operand name runs of the history: a number, or group:RUN, tag:…, branch:…, commit:…?
 * Anything else is a recording. */
bool cmd_diff_is_group(const struct cmd_diff_group_options *o, const char *operand);

/* Both must name runs of the history; `after` NULL is the last run or group. */
int cmd_diff_groups(const struct cmd_diff_group_options *o, const struct analysis_query *query,
                    enum view_format format, const char *before, const char *after);

#endif
