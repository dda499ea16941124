/* The metrics and the filters. */
#include "analysis/query.h"

#include "base/attr.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

static bool weigh_wall(const struct record_sample *sample, uint64_t *ret_weight)
{
    *ret_weight = sample->duration_ns;
    return true;
}

static bool weigh_cpu(const struct record_sample *sample, uint64_t *ret_weight)
{
    *ret_weight = sample->duration_ns;
    return sample->state & RECORD_ON_CPU;
}

static bool weigh_gil(const struct record_sample *sample, uint64_t *ret_weight)
{
    *ret_weight = sample->duration_ns;
    return sample->state & RECORD_HOLDS_GIL;
}

static uint64_t weigh_time(const struct record_calls *calls)
{
    return calls->self_ns;
}

static uint64_t weigh_count(const struct record_calls *calls)
{
    return calls->calls;
}

const struct analysis_metric ANALYSIS_METRICS[] = {
    {"wall", "seconds", 1e-9, "time that passed, waiting included", weigh_wall, NULL, false},
    {"cpu", "seconds", 1e-9, "time on a CPU or ready for one", weigh_cpu, NULL, false},
    {"gil", "seconds", 1e-9, "time with the interpreter lock held", weigh_gil, NULL, false},
    {"time", "seconds", 1e-9, "time between call and return, the probes' left out", NULL,
     weigh_time, true},
    {"raw", "seconds", 1e-9, "time between call and return, as stamped", NULL, weigh_time, false},
    {"calls", "count", 1, "calls, counted", NULL, weigh_count, false},
    {0},
};

/* What stands in for the default metric in profiles of other tools, by their fact `import.unit`. */
static const struct analysis_metric IMPORTED[] = {
    {"samples", "count", 1, "samples, or whatever the file counts", weigh_wall, NULL, false},
    {"bytes", "bytes", 1, "bytes", weigh_wall, NULL, false},
    {"time", "seconds", 1e-9, "time as the profiler measured it", weigh_wall, NULL, false},
    {0},
};

const struct analysis_metric *analysis_metric_of(const struct profile *profile,
                                                 const struct analysis_metric *asked)
{
    const char *unit = profile_meta_value(profile, "import.unit");
    if (asked == ANALYSIS_METRICS && !profile_sample_records(profile) &&
        profile_calls_records(profile))
        return analysis_metric_find("time");
    if (!unit || asked != ANALYSIS_METRICS)
        return asked;
    for (const struct analysis_metric *m = IMPORTED; m->name; m++)
        if (strcmp(m->name, unit) == 0)
            return m;
    return asked;
}

const struct analysis_metric *analysis_metric_find(const char *name)
{
    for (const struct analysis_metric *m = ANALYSIS_METRICS; m->name; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

bool analysis_process_is_known(const struct profile_tables *t, uint32_t process)
{
    return process < t->process_count && t->processes[process].pid != 0;
}

bool analysis_thread_is_known(const struct profile_tables *t, uint32_t thread)
{
    if (thread >= t->thread_count)
        return false;
    const struct record_thread *th = &t->threads[thread];
    bool defined = th->id == thread && (th->tid || th->ident || th->name || th->start_ns);
    /* the stand-in for lost threads is the last row, and belongs to the stand-in process */
    return defined && (thread + 1 < t->thread_count || th->tid || th->ident);
}

bool analysis_query_takes_thread(const struct analysis_query *q, const struct profile_tables *t,
                                 uint32_t thread)
{
    const struct record_thread *th = &t->threads[thread];
    if (q->has_process && t->processes[th->process].pid != q->process)
        return false;
    if (!q->thread)
        return true;
    const struct profile_string *name = &t->strings[th->name];
    if (name->len == strlen(q->thread) && memcmp(name->text, q->thread, name->len) == 0)
        return true;
    char tid[16];
    snprintf(tid, sizeof tid, "%u", th->tid);
    return th->tid && strcmp(tid, q->thread) == 0;
}

/* Seconds to ns, within what fits; a range may be given far past the end. */
static uint64_t to_ns(double seconds)
{
    if (!(seconds > 0))
        return 0;
    return seconds >= 1.8e10 ? UINT64_MAX : (uint64_t)(seconds * (double)NS_PER_SEC);
}

bool analysis_query_clip(const struct analysis_query *q, struct record_sample *sample)
{
    uint64_t from = q->has_from ? to_ns(q->from) : 0;
    uint64_t to = q->has_to ? to_ns(q->to) : UINT64_MAX;
    uint64_t start = sample->start_ns;
    uint64_t end = start + min_u64(sample->duration_ns, UINT64_MAX - start);
    uint64_t first = max_u64(start, from), last = min_u64(end, to);
    if (start == end)
        return start >= from && start < to;
    if (first >= last)
        return false;
    if (first == start && last == end)
        return true;
    /* samples are spread evenly over their run; of what is left, at least one was seen */
    double part = (double)(last - first) / (double)(end - start);
    uint32_t count = (uint32_t)(part * sample->count + 0.5);
    sample->count = count ? count : 1;
    sample->start_ns = first;
    sample->duration_ns = last - first;
    return true;
}
