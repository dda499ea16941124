/* Which moment the numbers are of, in words: a peak is one of each process, and what is alive is known
 * at checkpoints only. */
#include "view/heading_memory.h"

#include "view/heading.h"

#include <math.h>
#include <string.h>

enum { WORDS_MAX = 4096 };

/* The span of a moment over the processes that have one. */
struct moments {
    uint64_t first, last; /* ns */
    uint32_t processes;
};

static bool is_of(const struct analysis_weights *w, const char *metric)
{
    return strcmp(w->metric->name, metric) == 0;
}

/* Processes that the filters leave something of. */
static struct moments find_moments(const struct analysis_weights *w)
{
    const struct profile_tables *t = profile_tables(w->profile);
    struct moments m = {.first = UINT64_MAX};
    for (size_t i = 0; i < t->process_count; i++) {
        const struct analysis_memory_process *p = &w->memory->process[i];
        uint64_t ns = is_of(w, "peak")   ? p->last.peak_ns
                      : is_of(w, "live") ? p->at_ns
                                         : p->last.time_ns;
        if (!p->checkpoints || !w->process[i].samples || !ns)
            continue;
        m.first = min_u64(m.first, ns);
        m.last = max_u64(m.last, ns);
        m.processes++;
    }
    return m;
}

static void say_moment(const struct analysis_weights *w, struct buf *out)
{
    struct moments m = find_moments(w);
    if (!m.processes || w->metric->is_sum)
        return;
    const char *first = view_units_seconds((double)m.first * 1e-9).text;
    if (m.processes == 1 && !is_of(w, "leaked"))
        buf_printf(out, ", at %s", first);
    else if (is_of(w, "peak"))
        buf_printf(out, "; each of %u processes at its own peak", m.processes);
    else if (is_of(w, "live"))
        buf_printf(out, "; each of %u processes at its last checkpoint by then", m.processes);
    else if (is_of(w, "leaked"))
        buf_printf(out, w->memory->unfinished ? ", alive where the recording ends"
                                              : ", not given back by the end");
}

void view_heading_memory(struct view_emit *e, const struct analysis_weights *w)
{
    struct buf text;
    buf_init(&text, WORDS_MAX);
    buf_printf(&text, "%s %s in %s block%s", w->metric->name,
               view_weight_text(w->metric, w->total.weight).text,
               view_units_count(w->total.samples).text, w->total.samples == 1 ? "" : "s");
    say_moment(w, &text);
    view_emit_line(e, "%s", buf_cstr(&text));
    buf_release(&text);
    if (w->memory->sampled) {
        double error = analysis_memory_error(w->total_variance);
        view_emit_line(e,
                       isfinite(error) ? "estimated from a sample of the allocations, ± %s (95 %%)"
                                       : "estimated from a sample of the allocations%.0s",
                       view_units_bytes(error).text);
    }
}

static void real_or_null(struct json *j, const char *key, double value, bool known)
{
    json_key(j, key);
    if (known)
        json_real(j, value);
    else
        json_null(j);
}

void view_heading_memory_facts(struct json *j, const struct analysis_weights *w)
{
    struct moments m = find_moments(w);
    double error = analysis_memory_error(w->total_variance);
    json_key(j, "memory");
    json_object_begin(j);
    json_kv_bool(j, "sampled", w->memory->sampled);
    real_or_null(j, "error", w->memory->sampled ? error : 0, isfinite(error));
    json_kv_u64(j, "processes", w->memory->processes_taken);
    real_or_null(j, "moment", (double)m.first * 1e-9, m.processes == 1 && !w->metric->is_sum);
    json_kv_bool(j, "unfinished", w->memory->unfinished);
    json_object_end(j);
}

struct view_cell view_memory_error_cell(double variance)
{
    double error = analysis_memory_error(variance);
    return (struct view_cell){.real = error, .absent = !isfinite(error)};
}
