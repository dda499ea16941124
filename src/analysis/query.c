/* The metrics and the filters. */
#include "analysis/query.h"

#include "analysis/memory.h"
#include "base/attr.h"
#include "base/clock.h"

#include <math.h>
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

static struct analysis_site_weight weigh_peak(const struct analysis_site *site)
{
    return (struct analysis_site_weight){site->peak_bytes, site->peak_count, site->peak_variance};
}

static struct analysis_site_weight weigh_live(const struct analysis_site *site)
{
    return (struct analysis_site_weight){site->live_bytes, site->live_count, site->live_variance};
}

static struct analysis_site_weight weigh_allocated(const struct analysis_site *site)
{
    return (struct analysis_site_weight){site->bytes, site->count, site->variance};
}

static struct analysis_site_weight weigh_blocks(const struct analysis_site *site)
{
    return (struct analysis_site_weight){site->count, site->count, NAN};
}

static struct analysis_site_weight weigh_brief(const struct analysis_site *site)
{
    return (struct analysis_site_weight){site->brief_bytes, site->brief, NAN};
}

const struct analysis_metric ANALYSIS_METRICS[] = {
    {"wall", "seconds", 1e-9, "time that passed, waiting included", .weigh_sample = weigh_wall},
    {"cpu", "seconds", 1e-9, "time on a CPU or ready for one", .weigh_sample = weigh_cpu},
    {"gil", "seconds", 1e-9, "time with the interpreter lock held", .weigh_sample = weigh_gil},
    {"time", "seconds", 1e-9, "time between call and return, the probes' left out",
     .weigh_calls = weigh_time, .corrected = true},
    {"raw", "seconds", 1e-9, "time between call and return, as stamped", .weigh_calls = weigh_time},
    {"calls", "count", 1, "calls, counted", .weigh_calls = weigh_count},
    {"peak", "bytes", 1, "memory alive when its process had most", .weigh_site = weigh_peak},
    {"leaked", "bytes", 1, "memory never given back", .weigh_site = weigh_live},
    {"allocated", "bytes", 1, "memory ever allocated", .weigh_site = weigh_allocated,
     .is_sum = true},
    {"count", "count", 1, "allocations", .weigh_site = weigh_blocks, .is_sum = true},
    {"temporary", "bytes", 1, "memory given back before anything else was allocated",
     .weigh_site = weigh_brief, .is_sum = true},
    {"live", "bytes", 1, "memory alive at a moment", .weigh_site = weigh_live, .is_at = true},
    {0},
};

/* What stands in for the default metric in profiles of other tools, by their fact `import.unit`. */
static const struct analysis_metric IMPORTED[] = {
    {"samples", "count", 1, "samples, or whatever the file counts", .weigh_sample = weigh_wall},
    {"bytes", "bytes", 1, "bytes", .weigh_sample = weigh_wall},
    {"time", "seconds", 1e-9, "time as the profiler measured it", .weigh_sample = weigh_wall},
    {0},
};

const struct analysis_metric *analysis_metric_of(const struct profile *profile,
                                                 const struct analysis_metric *asked)
{
    const char *unit = profile_meta_value(profile, "import.unit");
    if (asked == ANALYSIS_METRICS && !profile_sample_records(profile)) {
        if (profile_calls_records(profile))
            return analysis_metric_find("time");
        if (profile_has_memory(profile))
            return analysis_metric_find("peak");
    }
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

uint64_t analysis_query_ns(double seconds)
{
    if (!(seconds > 0))
        return 0;
    return seconds >= 1.8e10 ? UINT64_MAX : (uint64_t)(seconds * (double)NS_PER_SEC + 0.5);
}

bool analysis_query_clip(const struct analysis_query *q, struct record_sample *sample)
{
    uint64_t from = q->has_from ? analysis_query_ns(q->from) : 0;
    uint64_t to = q->has_to ? analysis_query_ns(q->to) : UINT64_MAX;
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
