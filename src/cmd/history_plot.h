/* `history --metric`: the runs of commands as a plot. */
#ifndef PYROMETER_CMD_HISTORY_PLOT_H
#define PYROMETER_CMD_HISTORY_PLOT_H

#include "cmd/cmd.h"

struct cmd_plot_options {
    struct cmd_each metrics; /* also what `history check` looks at */
    const char *group_by, *output;
    bool force, ascii;
};

/* clang-format off */
#define CMD_PLOT_OPTIONS(p)                                                                        \
    {"metric", 0, CMD_EACH, &(p)->metrics, NULL},                                                  \
    {"group-by", 0, CMD_TEXT, &(p)->group_by, NULL},                                               \
    {"output", 'o', CMD_TEXT, &(p)->output, NULL},                                                 \
    {"force", 0, CMD_FLAG, &(p)->force, NULL},                                                     \
    {"ascii", 0, CMD_FLAG, &(p)->ascii, NULL}
/* clang-format on */

#endif
