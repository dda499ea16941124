/* The answer of the gate: for people, for a pull request (markdown), as JSON (docs/json.md). */
#ifndef PYROMETER_VIEW_CHECK_H
#define PYROMETER_VIEW_CHECK_H

#include "analysis/culprit.h"
#include "stats/bootstrap.h"
#include "stats/gate.h"
#include "view/emit.h"

struct view_check_metric {
    const char *name;
    double threshold; /* a share */
    bool is_less_worse;
    double limit; /* that must not be passed, whatever the baseline; NaN: none */
    bool is_past_limit;
    struct stats_gate gate;
    struct stats_interval interval; /* of the ratio of medians, 95 % */
    bool has_step;                  /* the series changed for the worse, not long ago */
    struct stats_change step;
    const char *step_since; /* what run began it */
    bool is_regression;
};

struct view_check {
    const char *command;
    const char *subject, *baseline; /* what is compared: "run 31 of …", "the last 20 runs" */
    size_t subject_runs, baseline_runs;
    const struct view_check_metric *metric;
    size_t count;
    bool is_regression;
    const struct analysis_culprits *culprits; /* NULL: not asked, or see why */
    const char *no_culprits;                  /* why there are none; NULL */
    const char *const *note;
    size_t notes;
};

enum view_check_form { VIEW_CHECK_TEXT, VIEW_CHECK_MARKDOWN, VIEW_CHECK_JSON };

int view_check_print(const struct view_check *c, FILE *out, enum view_check_form form,
                     struct view_style style);

/* The row of a metric beside its partner, for `diff` of groups too. */
void view_check_table(struct view_emit *emit, const struct view_check_metric *metric, size_t count,
                      bool is_gate);
void view_check_metrics_json(struct json *j, const struct view_check_metric *metric, size_t count,
                             bool is_gate);

#endif
