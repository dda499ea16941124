/* What stands around a table of weights: the same words for every view. */
#include "view/heading.h"

#include "analysis/exact_lines.h"
#include "view/heading_memory.h"
#include "view/run.h"
#include "view/units.h"

enum { TEXT_MAX = 64 << 20 };

bool view_is_too_short(const struct analysis_weights *weights)
{
    /* what another tool found worth writing is worth showing */
    return weights->recorded_samples < VIEW_LEAST_SAMPLES && weights->metric->weigh_sample &&
           !weights->exact && !profile_meta_value(weights->profile, "import");
}

enum view_kind view_metric_kind(const struct analysis_metric *metric)
{
    return strcmp(metric->unit, "seconds") == 0 ? VIEW_SECONDS
           : strcmp(metric->unit, "bytes") == 0 ? VIEW_BYTES
                                                : VIEW_COUNT;
}

struct view_units_text view_weight_text(const struct analysis_metric *metric, uint64_t weight)
{
    double value = (double)weight * metric->scale;
    enum view_kind kind = view_metric_kind(metric);
    return kind == VIEW_SECONDS ? view_units_seconds(value)
           : kind == VIEW_BYTES ? view_units_bytes(value)
                                : view_units_count(weight);
}

const char *view_heading_unit(const struct analysis_weights *w, bool plural)
{
    if (w->calls)
        return plural ? "entries" : "entry";
    if (w->memory)
        return plural ? "blocks" : "block";
    return plural ? "samples" : "sample";
}

void view_heading_total(const struct analysis_metric *metric, uint64_t weight, struct buf *out)
{
    bool is_time = strcmp(metric->unit, "seconds") == 0 && !metric->weigh_calls &&
                   strcmp(metric->name, "time") != 0;
    buf_printf(out, "%s %s%s", view_weight_text(metric, weight).text, metric->name,
               is_time ? " time" : "");
}

void view_heading_samples(const struct analysis_weights *w, uint64_t samples, struct buf *out)
{
    uint64_t n = w->calls ? w->calls->total.calls : samples;
    const char *what = w->calls ? "call" : view_heading_unit(w, false);
    buf_printf(out, "%s %s%s%s", view_units_count(n).text, what, n == 1 ? "" : "s",
               w->calls ? ", exact" : "");
}

static void facts_of_calls(struct json *j, const struct analysis_calls *c)
{
    json_kv_u64(j, "calls", c->total.calls);
    json_kv_u64(j, "resumes", c->total.resumes);
    json_key(j, "probes");
    if (!c->calibrated) {
        json_null(j);
        return;
    }
    json_object_begin(j);
    json_kv_real(j, "raw", (double)c->raw_ns * 1e-9);
    json_kv_real(j, "taken_out", (double)c->taken_ns * 1e-9);
    json_kv_real(j, "error", (double)c->error_ns * 1e-9);
    json_object_end(j);
}

void view_heading_facts(struct json *j, const struct analysis_weights *w)
{
    json_kv_text(j, "metric", w->metric->name);
    json_kv_text(j, "unit", w->metric->unit);
    json_kv_real(j, "total", (double)w->total.weight * w->metric->scale);
    json_kv_u64(j, "samples", w->total.samples);
    json_kv_bool(j, "too_short", view_is_too_short(w));
    if (w->calls)
        facts_of_calls(j, w->calls);
    if (w->memory)
        view_heading_memory_facts(j, w);
}

void view_heading_run(struct view_emit *e, const struct profile *profile)
{
    char id[PROFILE_ID_SIZE];
    profile_id_text(profile, id);
    struct buf command;
    buf_init(&command, TEXT_MAX);
    view_run_command(profile, &command);
    view_emit_line(e, "run %.8s  %s", id, buf_cstr(&command));
    buf_release(&command);
}

/* A file of another tool: what it is, and how far its numbers go. */
static void print_import(struct view_emit *e, const struct analysis_weights *w, const char *format)
{
    struct view_units_text total = view_weight_text(w->metric, w->total.weight);
    if (w->exact)
        view_emit_line(e, "%s %s in %s calls, exact (%s); call trees are estimated from them",
                       w->metric->name, total.text, view_units_count(w->total.samples).text,
                       format);
    else if (profile_tables(w->profile)->counts)
        view_emit_line(e, "%s %s (%s), by a call tree that is estimated from exact counts",
                       w->metric->name, total.text, format);
    else
        view_emit_line(e, "%s %s (%s)", w->metric->name, total.text, format);
}

/* pstats' sentence, and what the probes cost. */
void view_heading_exact(struct view_emit *e, const struct analysis_weights *w, uint64_t primitive)
{
    const struct analysis_calls *c = w->calls;
    char recursive[64] = "";
    if (primitive != c->total.calls)
        snprintf(recursive, sizeof recursive, " (%s primitive calls)",
                 view_units_count(primitive).text);
    view_heading_run(e, w->profile);
    view_emit_line(e, "%s function call%s%s in %.6f seconds, exact%s",
                   view_units_count(c->total.calls).text, c->total.calls == 1 ? "" : "s", recursive,
                   (double)(c->raw_ns - c->taken_ns) * 1e-9,
                   strcmp(w->metric->name, "raw") == 0 ? " as stamped" : "");
    if (c->calibrated)
        view_emit_line(e, "probes: %s taken out of %s, ± %s; --metric raw leaves it in",
                       view_units_seconds((double)c->taken_ns * 1e-9).text,
                       view_units_seconds((double)c->raw_ns * 1e-9).text,
                       view_units_seconds((double)c->error_ns * 1e-9).text);
    else if (w->metric->corrected)
        view_emit_line(e, "probes: their cost was not measured, and is in these times");
    if (profile_meta_value(w->profile, "slowed"))
        view_emit_line(e, "instructions take longer on CPython 3.10 and 3.11 while C functions are "
                          "told: that is in these times, as a "
                          "process could not be read; try --no-c-calls");
    if (analysis_exact_lines_has(w->profile))
        view_emit_line(e, "%s", VIEW_HEADING_LINE_PROBES);
    view_emit_line(e, "%s", "");
}

void view_heading_print(struct view_emit *e, const struct analysis_weights *w, double worst_error)
{
    if (w->calls) {
        view_heading_exact(e, w, w->calls->total.calls);
        return;
    }
    view_heading_run(e, w->profile);
    if (w->memory) {
        view_heading_memory(e, w);
        view_emit_line(e, "%s", "");
        return;
    }
    const char *import = profile_meta_value(w->profile, "import");
    if (import) {
        print_import(e, w, import);
        view_emit_line(e, "%s", "");
        return;
    }
    double hz = view_run_achieved_hz(w->profile);
    char rate[48] = "";
    if (hz > 0)
        snprintf(rate, sizeof rate, " at %.0f Hz", hz);
    view_emit_line(e, "%s %s in %s sample%s%s; shares within ±%.1f points (95 %%)", w->metric->name,
                   view_weight_text(w->metric, w->total.weight).text,
                   view_units_count(w->total.samples).text, w->total.samples == 1 ? "" : "s", rate,
                   worst_error);
    view_emit_line(e, "%s", "");
}

void view_heading_losses(struct view_emit *e, const struct analysis_weights *w)
{
    struct buf losses;
    buf_init(&losses, TEXT_MAX);
    view_run_losses(w->profile, w->damaged_chunks, &losses);
    if (losses.len)
        view_emit_line(e, "\nlost: %s", buf_cstr(&losses));
    buf_release(&losses);
    uint64_t damaged = (uint64_t)profile_summary(w->profile)->damaged_chunks + w->damaged_chunks;
    if (damaged > profile_tables(w->profile)->stats.value[RECORD_STAT_CHUNKS_LOST])
        view_emit_line(e, "The recording is damaged: pyrometer verify tells more, and can save "
                          "what is good.");
}

/* Few samples, and it is not for want of time. */
static bool print_refusal(struct view_emit *e, const struct analysis_weights *w)
{
    char few[64] = "no samples";
    struct buf why;
    buf_init(&why, TEXT_MAX);
    bool refused = view_run_refusal(w->profile, &why);
    if (w->recorded_samples)
        snprintf(few, sizeof few, "too few samples (%s)",
                 view_units_count(w->recorded_samples).text);
    if (refused)
        view_emit_line(e, "There are %s: %s.", few, buf_cstr(&why));
    buf_release(&why);
    return refused;
}

void view_heading_too_short(struct view_emit *e, const struct analysis_weights *w)
{
    const struct profile *profile = w->profile;
    if (!w->recorded_samples && profile_calls_records(profile)) {
        view_emit_line(
            e, "There are no samples, but exact calls: leave out --metric, or say time, raw "
               "or calls.");
        return;
    }
    if (!w->recorded_samples && profile_has_memory(profile)) {
        view_emit_line(e, "There are no samples, but memory: leave out --metric, or say peak, "
                          "leaked, allocated or count.");
        return;
    }
    if (!w->recorded_samples && !view_run_is_sampled(profile)) {
        view_emit_line(e, "There is nothing in it: %s.", view_run_untraced(profile));
        view_heading_losses(e, w);
        return;
    }
    struct view_units_text n = view_units_count(w->recorded_samples);
    const char *plural = w->recorded_samples == 1 ? "" : "s";
    double elapsed = view_run_stat(profile, RECORD_STAT_ELAPSED_NS);
    if (print_refusal(e, w))
        return;
    if (!w->recorded_samples && view_run_stat(profile, RECORD_STAT_PROCESSES_PYTHON) == 0) {
        view_emit_line(e, "There are no samples: %s.", view_run_unsampled(profile));
        return;
    }
    if (!w->recorded_samples && !profile_summary(profile)->finished) {
        view_emit_line(e, "There are no samples: the recording was cut off before the first.");
        return;
    }
    view_emit_line(e, "The program was too short to sample: %s sample%s%s%s.", n.text, plural,
                   elapsed >= 0 ? " in " : "",
                   elapsed >= 0 ? view_units_seconds(elapsed * 1e-9).text : "");
    view_emit_line(
        e, "Record it again at a higher rate (pyrometer run --sample=10000 …) or let it run "
           "longer, or count its calls (pyrometer run --calls …), however short it is.");
}

void view_heading_nothing_left(struct view_emit *e, const struct analysis_weights *w)
{
    if (w->calls) {
        view_emit_line(e, profile_calls_records(w->profile)
                              ? "None of the calls is left by the filters."
                              : "There are no exact calls in it: record them with pyrometer run "
                                "--calls.");
        return;
    }
    if (w->memory) {
        view_emit_line(e,
                       profile_has_memory(w->profile)
                           ? "Of the memory nothing is left by the filters (metric %s)."
                           : "There is no memory in it for the metric %s: record it with "
                             "pyrometer run --memory.",
                       w->metric->name);
        return;
    }
    view_emit_line(e, "None of the %s samples is left by the filters (metric %s).",
                   view_units_count(w->recorded_samples).text, w->metric->name);
}
