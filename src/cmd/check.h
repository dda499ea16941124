/* A run or a group against its baseline: what `history check` and `run --on-regression` ask. */
#ifndef PYROMETER_CMD_CHECK_H
#define PYROMETER_CMD_CHECK_H

#include "cmd/culprits.h"
#include "cmd/history_set.h"
#include "cmd/settings.h"
#include "view/check.h"

/* Runs of the series that are looked at for a step, and the baseline's if nobody says. */
enum { CMD_CHECK_SERIES = 120, CMD_CHECK_LAST = 20, CMD_CHECK_NOTES = 4 };

struct cmd_check_request {
    const char *key;                     /* normalised command; NULL: that of the run */
    const char *run;                     /* NULL: the last one (of the command) */
    const char *baseline;                /* NULL: the runs before it */
    uint64_t last;                       /* of the baseline */
    const struct cmd_settings *settings; /* with at least one limit */
};

/* The answer, and what it is made of. Release it. */
struct cmd_check {
    struct view_check view;
    struct view_check_metric metric[CMD_LIMITS_MAX];
    struct cmd_run_set subject, baseline, series;
    struct cmd_culprits culprits;
    char *command, *subject_text, *baseline_text; /* owned */
    char *since[CMD_LIMITS_MAX];                  /* owned */
    char *note[CMD_CHECK_NOTES];                  /* owned */
    size_t notes;
    const char *note_list[CMD_CHECK_NOTES];
};

/* 0, or the status after a line. A regression is no failure here: it is in ret->view. */
int cmd_check_make(struct history_store *store, const struct cmd_check_request *request,
                   struct cmd_check *ret);
void cmd_check_release(struct cmd_check *c);

/* The same for `run`, by what the project's settings say: only whether it is a regression. 0, or the
 * status after a line. */
int cmd_check_quietly(const char *db, const char *run, bool *ret_is_regression);

#endif
