/* Metering: what a command was, what it cost, what it printed. The interface of this folder.
 *
 *     meter_new → [in the child: meter_enter] → meter_started → meter_wait … → meter_ended →
 *     meter_metrics, meter_host_facts, … → meter_free
 *
 * Whoever starts the command calls these; a thread of the meter's own looks at the program's
 * processes meanwhile, from outside (docs/history.md says how each metric is obtained). All calls
 * are for the thread that made the meter. Nothing here can fail the command: what could not be
 * measured is not known. */
#ifndef PYROMETER_METER_METER_H
#define PYROMETER_METER_METER_H

#include "base/buf.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct meter;

struct meter_options {
    bool capture;               /* pass the standard streams on and keep them */
    size_t keep;                /* bytes kept of each */
    bool ask_git;               /* commit, branch and changes of the working directory */
    void (*started)(void *ctx); /* called when the command has been started; NULL: nobody */
    void *ctx;
};

/* Before the command is started, and before this process becomes a subreaper. */
int meter_new(const struct meter_options *options, struct meter **ret);
void meter_free(struct meter *m); /* NULL is fine */

/* In the forked child, last thing before exec. */
void meter_enter(const struct meter *m);

/* In the parent, after the fork: the command runs (0: it could not be started). */
void meter_started(struct meter *m, pid_t child);

/* As wait4(-1, …, WNOHANG): notes what the child cost before it is gone. `m` may be NULL. */
pid_t meter_wait(struct meter *m, int *ret_status, struct rusage *ret_usage);

/* The command has ended with this status, as a shell would see it, and was reaped. Waits until its
 * output is passed on. */
void meter_ended(struct meter *m, int exit_status);

/* --- afterwards --- */

typedef void (*meter_metric_fn)(void *ctx, const char *name, double value); /* NaN: not known */
typedef void (*meter_fact_fn)(void *ctx, const char *key, const char *value);

void meter_metrics(struct meter *m, meter_metric_fn tell, void *ctx);
void meter_host_facts(struct meter *m, meter_fact_fn tell, void *ctx);
void meter_package_facts(struct meter *m, meter_fact_fn tell, void *ctx);
void meter_launch_facts(meter_fact_fn tell, void *ctx);

int64_t meter_started_us(const struct meter *m);     /* UTC */
const char *meter_python(const struct meter *m);     /* version; NULL: no Python was seen */
const char *meter_git_commit(const struct meter *m); /* NULL: not known */
const char *meter_git_branch(const struct meter *m);
int meter_git_dirty(struct meter *m); /* 1, 0, -1 not known */

/* What the program printed: false if nothing was kept. `stream` is 0 for stdout, 1 for stderr. */
bool meter_stream(struct meter *m, int stream, struct buf *ret, uint64_t *ret_total);
bool meter_streams_merged(const struct meter *m);

/* Lines of JSON that the program sent by pyrometer.metric(). */
int meter_user_metrics(struct meter *m, struct buf *ret);

/* Every process that was seen, as a JSON array. */
void meter_processes(struct meter *m, struct buf *ret);

#endif
