/* Recordings of two sets of runs → who is to blame for the difference. */
#ifndef PYROMETER_CMD_CULPRITS_H
#define PYROMETER_CMD_CULPRITS_H

#include "analysis/culprit.h"
#include "analysis/query.h"

struct cmd_culprits {
    struct analysis_blame *blame; /* owned */
    struct analysis_culprits found;
    size_t skipped; /* recordings that are gone, damaged, or of another kind */
    bool has_kind, is_exact;
};

/* Recordings that are no more, or that were made by other instruments, are counted and left out.
 * 0, or a negative code. */
int cmd_culprits_add(struct cmd_culprits *c, bool is_after, const char *path,
                     const struct analysis_query *query);

/* E_INVALID: one side has no recording. */
int cmd_culprits_find(struct cmd_culprits *c);
void cmd_culprits_release(struct cmd_culprits *c);

#endif
