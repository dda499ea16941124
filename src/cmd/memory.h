/* What the parts of `pyrometer memory` share: its options, understood. */
#ifndef PYROMETER_CMD_MEMORY_H
#define PYROMETER_CMD_MEMORY_H

#include "analysis/rows.h"
#include "cmd/cmd.h"
#include "cmd/list.h"
#include "cmd/load.h"

struct cmd_memory_options {
    struct cmd_query_options query;
    struct cmd_list_options list;
    const char *by, *mark, *output;
    bool all, force, ascii;
};

struct cmd_memory {
    const struct cmd_memory_options *o;
    struct analysis_query query; /* its metric is the part's, unless one was asked for */
    enum analysis_by by;
    enum view_format format;
    const regex_t *match; /* borrowed; NULL: all */
    struct profile *profile;
};

/* The parts; 0, or the exit status after a line. */
int cmd_memory_summary(struct cmd_memory *m);
int cmd_memory_stats(struct cmd_memory *m);
int cmd_memory_leaks(struct cmd_memory *m);
int cmd_memory_temporary(struct cmd_memory *m);
int cmd_memory_lines(struct cmd_memory *m);
int cmd_memory_plot(struct cmd_memory *m);

#endif
