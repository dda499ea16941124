/* Runs of the history as tables, JSON and CSV. */
#ifndef PYROMETER_VIEW_HISTORY_H
#define PYROMETER_VIEW_HISTORY_H

#include "history/store.h"
#include "view/emit.h"

/* The 22 metrics that every run has, in the order in which they are told; NULL ends the list. */
extern const char *const VIEW_HISTORY_METRICS[];

/* "2026-11-15 12:54:07", local time; "2026-11-15T11:54:07.123456Z". */
struct view_history_time {
    char text[40];
};
struct view_history_time view_history_local(int64_t us);
struct view_history_time view_history_utc(int64_t us);

/* Commands with their counts. */
int view_history_commands(const char *path, const struct history_commands *commands,
                          enum view_format format, FILE *out, struct view_style style);

/* A table of runs: begin, then add each (as a history_run_fn: ctx is the table), then end. JSON is
 * an array of runs; CSV has `names` of metrics beside the 22. */
struct view_history_runs {
    enum view_format format;
    const struct history_names *names; /* borrowed; CSV only */
    struct view_emit emit;
    struct json json;
    FILE *out;
    uint64_t count;
};
void view_history_runs_begin(struct view_history_runs *v, enum view_format format, FILE *out,
                             struct view_style style, const struct history_names *names);
int view_history_runs_add(void *ctx, const struct history_run *run);
int view_history_runs_end(struct view_history_runs *v);

/* One run as a JSON object; as pandas' columns; for people. */
void view_history_run_json(struct json *j, const struct history_run *run);
int view_history_columns(const struct history_run *const *runs, size_t count, FILE *out);
int view_history_show(const struct history_run *run, enum view_format format, FILE *out,
                      struct view_style style);

#endif
