/* What is asked of a profile: which metric, and which part of the recording. Filters are questions
 * at view time, never modes at capture time.
 *
 * A metric is a row in a table: its name, its unit, and how much of it one record carries. */
#ifndef PYROMETER_ANALYSIS_QUERY_H
#define PYROMETER_ANALYSIS_QUERY_H

#include "profile/profile.h"

#include <regex.h>
#include <stdbool.h>

struct analysis_site; /* analysis/memory.h */

/* What a site of memory weighs: in bytes or blocks, how many blocks that is, and the variance of the
 * weight where it is an estimate; NaN: not known. */
struct analysis_site_weight {
    uint64_t weight, blocks;
    double variance;
};

struct analysis_metric {
    const char *name; /* as the user types it */
    const char *unit; /* "seconds", "bytes" or "count": the unit of a weight times `scale` */
    double scale;     /* from the integer weight (ns, bytes, 1) to the unit */
    const char *text; /* what it says, for help and headers */
    /* True if the sample carries this metric, and how much. A metric over another kind of record
     * (exact calls, allocations) leaves this NULL and gets a column of its own here. */
    bool (*weigh_sample)(const struct record_sample *sample, uint64_t *ret_weight);
    /* The same of a record of exact calls: then samples are calls, and nothing is estimated. */
    uint64_t (*weigh_calls)(const struct record_calls *calls);
    bool corrected; /* the cost of the probes is taken out of the calls first (calibration.h) */
    /* The same of a site of memory: then samples are blocks. */
    struct analysis_site_weight (*weigh_site)(const struct analysis_site *site);
    bool is_sum; /* of a site: adds up over time, so that a range can be cut out of it */
    bool is_at;  /* of a site: is of the query's moment, and of the end without one */
};

/* The table, ended by a row without a name. The first is the default. */
extern const struct analysis_metric ANALYSIS_METRICS[];

/* The row of that name, or NULL. */
const struct analysis_metric *analysis_metric_find(const char *name);

/* The metric that a profile really has when `asked` is wanted: an import weighed in samples or bytes,
 * or timed by another clock, has a metric of its own in the place of the default one. */
const struct analysis_metric *analysis_metric_of(const struct profile *profile,
                                                 const struct analysis_metric *asked);

/* Zero-initialised but for `metric`, it asks for everything. */
struct analysis_query {
    const struct analysis_metric *metric;
    const char *thread; /* a thread's name or kernel id as text; NULL: all. Borrowed. */
    bool has_process;
    uint32_t process; /* a pid */
    bool has_from, has_to;
    double from, to; /* seconds after the start of the recording */
    bool has_at;
    double at; /* the moment that the metric `live` is of, in the same seconds */
    /* Only samples whose stack has a frame that matches the one, and none that matches the other
     * (analysis/match.h says how); NULL: any stack. Compiled by the caller, borrowed. */
    const regex_t *include, *exclude;
    bool skips_runtime; /* leave out stacks that are the interpreter's own (runtime.h) */
};

/* False for the holes in the tables and for the stand-ins of what was lost in a damaged file. */
bool analysis_thread_is_known(const struct profile_tables *t, uint32_t thread);
bool analysis_process_is_known(const struct profile_tables *t, uint32_t process);

/* Does the query take samples of this thread? */
bool analysis_query_takes_thread(const struct analysis_query *q, const struct profile_tables *t,
                                 uint32_t thread);

/* Seconds to ns, within what fits; a range may be given far past the end. */
uint64_t analysis_query_ns(double seconds);

/* Cuts a run of samples to the query's time range, in proportion. False: nothing is left. */
bool analysis_query_clip(const struct analysis_query *q, struct record_sample *sample);

#endif
