/* The options of `history check`. */
#ifndef PYROMETER_CMD_HISTORY_CHECK_H
#define PYROMETER_CMD_HISTORY_CHECK_H

#include "cmd/cmd.h"

struct cmd_check_options {
    const char *run, *baseline, *threshold;
    bool markdown;
};

/* clang-format off */
#define CMD_CHECK_OPTIONS(c)                                                                       \
    {"run", 0, CMD_TEXT, &(c)->run, NULL},                                                         \
    {"baseline", 0, CMD_TEXT, &(c)->baseline, NULL},                                               \
    {"threshold", 0, CMD_TEXT, &(c)->threshold, NULL},                                             \
    {"markdown", 0, CMD_FLAG, &(c)->markdown, NULL}
/* clang-format on */

struct cmd_settings;

/* What is asked of the metrics where nobody says: elapsed time, CPU time and peak memory. 0, or the
 * status after a line. */
int cmd_check_default_limits(struct cmd_settings *settings);

#endif
