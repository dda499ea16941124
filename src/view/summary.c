/* The summary after a recording. Text only: scripts have `report --json`. */
#include "view/summary.h"

#include "analysis/exact_lines.h"
#include "analysis/rows.h"
#include "analysis/select.h"
#include "base/err.h"
#include "profile/events.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

#include <string.h>

enum {
    SUMMARY_ROWS = 5,
    SUMMARY_MIN_SAMPLES = 20, /* below that, shares mean nothing */
};

static double stat_seconds(const struct profile *p, enum record_stat stat)
{
    double ns = view_run_stat(p, stat);
    return ns < 0 ? 0 : ns / 1e9;
}

static void bold(const struct view_style *style, FILE *out, const char *text)
{
    fprintf(out, style->colour ? "\x1b[1m%s\x1b[0m" : "%s", text);
}

/* The file as seen from the directory that the program was started in. */
static struct profile_string from_here(const struct profile *p, struct profile_string file)
{
    const char *here = profile_meta_value(p, "directory");
    size_t len = here ? strlen(here) : 0;
    if (len > 1 && file.len > len + 1 && !memcmp(file.text, here, len) && file.text[len] == '/') {
        file.text += len + 1;
        file.len -= (uint32_t)len + 1;
    }
    return file;
}

/* "function  file:line" of a row, with the path shortened to fit the line. */
static void print_row(const struct analysis_rows *rows, uint32_t index, FILE *out, unsigned width)
{
    const struct analysis_row *row = &rows->row[index];
    double share = rows->weights->total.weight
                       ? (double)row->self.weight / (double)rows->weights->total.weight
                       : 0;
    double error = rows->weights->exact
                       ? 0
                       : analysis_share_error(share, analysis_weights_worth(rows->weights));
    struct buf text;
    buf_init(&text, 1 << 20);
    view_text_escape(&text, row->name.text, row->name.len);
    if (row->file.len) {
        buf_puts(&text, "  ");
        struct profile_string file = from_here(rows->weights->profile, row->file);
        view_text_escape(&text, file.text, file.len);
        if (row->line)
            buf_printf(&text, ":%u", row->line);
    }
    if (rows->weights->calls)
        buf_printf(&text, ", %s call%s", view_units_count(row->calls).text,
                   row->calls == 1 ? "" : "s");
    struct buf fitted;
    buf_init(&fitted, 1 << 20);
    view_text_fit(&fitted, (const char *)text.data, text.len, width ? width - 18 : SIZE_MAX,
                  VIEW_CUT_MIDDLE);
    fprintf(out, "  %5.1f %% ", 100 * share);
    if (error >= 1)
        fprintf(out, "± %-4.1f", error);
    else
        fputs("      ", out);
    fprintf(out, " %s\n", buf_cstr(&fitted));
    buf_release(&text);
    buf_release(&fitted);
}

static int print_hottest(const struct analysis_weights *weights, enum analysis_by by, FILE *out,
                         unsigned width)
{
    struct analysis_rows rows;
    int rc = analysis_rows_init(weights, by, &rows);
    if (rc < 0)
        return rc;
    struct analysis_select select = {.sort = ANALYSIS_SORT_SELF, .limit = SUMMARY_ROWS};
    struct analysis_selection selection;
    rc = analysis_selection_init(&rows, &select, &selection);
    if (rc == 0) {
        for (size_t i = 0; i < selection.count; i++)
            if (rows.row[selection.row[i]].self.weight)
                print_row(&rows, selection.row[i], out, width);
        analysis_selection_release(&selection);
    }
    analysis_rows_release(&rows);
    return rc;
}

/* "function  file:line" of an exact line, and how often it was reached. */
static void print_line(const struct analysis_exact_lines *e, const struct analysis_file *file,
                       const struct analysis_line *line, FILE *out, unsigned width)
{
    struct buf text, fitted;
    buf_init(&text, 1 << 20);
    buf_init(&fitted, 1 << 20);
    view_text_escape(&text, line->function.text, line->function.len);
    buf_puts(&text, "  ");
    struct profile_string path = from_here(e->weights.profile, file->path);
    view_text_escape(&text, path.text, path.len);
    buf_printf(&text, ":%u", line->line);
    view_text_fit(&fitted, (const char *)text.data, text.len, width ? width - 28 : SIZE_MAX,
                  VIEW_CUT_MIDDLE);
    fprintf(out, "  %5.1f %% %11s %-5s %s\n",
            100 * (double)line->self.weight / (double)e->weights.total.weight,
            view_units_count(line->self.samples).text, line->self.samples == 1 ? "hit" : "hits",
            buf_cstr(&fitted));
    buf_release(&text);
    buf_release(&fitted);
}

/* Equally heavy ones in the order they stand in, so that each has a place of its own. */
static bool comes_before(const struct analysis_line *a, const struct analysis_line *b)
{
    return a->self.weight != b->self.weight ? a->self.weight > b->self.weight : a < b;
}

static int print_hottest_exact(const struct profile *p, FILE *out, unsigned width)
{
    struct analysis_query query = {.metric = &ANALYSIS_METRICS[0]};
    struct analysis_exact_lines e;
    int rc = analysis_exact_lines_init(p, &query, &e);
    if (rc < 0)
        return rc;
    const struct analysis_line *above = NULL; /* the heaviest first: a few passes are no sort */
    for (int n = 0; n < SUMMARY_ROWS; n++) {
        const struct analysis_file *file = NULL;
        const struct analysis_line *line = NULL;
        for (size_t i = 0; i < e.lines.file_count; i++)
            for (size_t k = 0; k < e.lines.file[i].count; k++) {
                const struct analysis_line *l = &e.lines.line[e.lines.file[i].first + k];
                if ((!above || comes_before(above, l)) && (!line || comes_before(l, line))) {
                    file = &e.lines.file[i];
                    line = l;
                }
            }
        if (!line || !line->self.weight)
            break;
        print_line(&e, file, line, out, width);
        above = line;
    }
    analysis_exact_lines_release(&e);
    return rc;
}

static void print_cost(const struct profile *p, FILE *out)
{
    double elapsed = view_run_stat(p, RECORD_STAT_ELAPSED_NS);
    double cpu = stat_seconds(p, RECORD_STAT_USER_NS) + stat_seconds(p, RECORD_STAT_SYSTEM_NS);
    if (elapsed >= 0)
        fprintf(out, "%s elapsed", view_units_seconds(elapsed / 1e9).text);
    else
        fputs("cut off before its end", out);
    if (cpu > 0)
        fprintf(out, ", %s CPU", view_units_seconds(cpu).text);
    double rss = view_run_stat(p, RECORD_STAT_PEAK_RSS_BYTES);
    if (rss > 0)
        fprintf(out, ", %s peak memory", view_units_bytes(rss).text);
    double processes = view_run_stat(p, RECORD_STAT_PROCESSES_SEEN);
    double python = view_run_stat(p, RECORD_STAT_PROCESSES_PYTHON);
    double threads = view_run_stat(p, RECORD_STAT_THREADS_SEEN);
    fprintf(out, ", %.0f process%s", processes, processes == 1 ? "" : "es");
    if (python != processes)
        fprintf(out, " (%.0f Python)", python);
    fprintf(out, ", %.0f Python thread%s\n", threads, threads == 1 ? "" : "s");
}

static void print_sampling(const struct profile *p, const struct analysis_weights *w,
                           uint64_t calls, FILE *out)
{
    double cpu = stat_seconds(p, RECORD_STAT_SAMPLER_CPU_NS) +
                 stat_seconds(p, RECORD_STAT_WRITER_CPU_NS) +
                 stat_seconds(p, RECORD_STAT_DRAIN_CPU_NS);
    double rate = view_run_achieved_hz(p);
    if (view_run_is_sampled(p)) {
        fprintf(out, "%s sample%s", view_units_count(w->recorded_samples).text,
                w->recorded_samples == 1 ? "" : "s");
        if (rate > 0)
            fprintf(out, " at %.0f Hz", rate);
        fputs(", ", out);
    }
    if (profile_calls_records(p))
        fprintf(out, "%s calls, exact, ", view_units_count(calls).text);
    fprintf(out, "%s CPU of our own", view_units_seconds(cpu).text);
    double waited = view_run_stat(p, RECORD_STAT_EVENT_WAIT_NS);
    if (waited >= 1e6) /* below a millisecond it is nobody's concern */
        fprintf(out, ", %s waited for us (left out)", view_units_seconds(waited / 1e9).text);
    struct buf losses;
    buf_init(&losses, 1 << 16);
    view_run_losses(p, w->damaged_chunks, &losses);
    if (losses.len)
        fprintf(out, "; %s", buf_cstr(&losses));
    fputc('\n', out);
    buf_release(&losses);
}

static int add_calls(void *ctx, const struct record_calls *calls)
{
    *(uint64_t *)ctx += calls->calls;
    return 0;
}

static int count_calls(const struct profile *p, const struct analysis_weights *w, uint64_t *ret)
{
    if (!w->calls)
        return profile_each_calls(p, add_calls, ret, NULL);
    *ret = w->calls->total.calls;
    return 0;
}

/* Who had the memory when there was most of it. */
static int print_memory(const struct profile *p, FILE *out, struct view_style style)
{
    struct analysis_query query = {.metric = analysis_metric_find("peak")};
    struct analysis_weights weights;
    int rc = analysis_weights_init(p, &query, &weights);
    if (rc < 0)
        return rc;
    bold(&style, out, "most memory at the peak");
    fprintf(out, " (own share of %s%s)\n", view_units_bytes((double)weights.total.weight).text,
            weights.memory->sampled ? ", estimated" : "");
    rc = print_hottest(&weights, ANALYSIS_BY_LINE, out, style.width);
    analysis_weights_release(&weights);
    return rc;
}

/* Is there anything to look at? A short Python program that was sampled at least says so in every view. */
static bool has_anything(const struct profile *p)
{
    bool is_python = view_run_stat(p, RECORD_STAT_PROCESSES_PYTHON) != 0 ||
                     view_run_stat(p, RECORD_STAT_PROCESSES_SHORT) > 0;
    return (view_run_is_sampled(p) && is_python) || profile_calls_records(p) ||
           profile_has_memory(p) || analysis_exact_lines_has(p);
}

/* What could not be looked at, and why; false if there is no such thing. */
static bool print_refusal(const struct profile *p, FILE *out)
{
    struct buf why;
    buf_init(&why, 1 << 16);
    bool refused = view_run_refusal(p, &why);
    if (refused)
        fprintf(out, "%s\n", buf_cstr(&why));
    buf_release(&why);
    return refused;
}

/* Which functions and lines the time went to. */
static int print_times(const struct profile *p, const struct analysis_weights *weights,
                       bool refused, FILE *out, struct view_style style)
{
    int rc = 0;
    bool sampled =
        !weights->calls && !weights->memory && weights->total.samples >= SUMMARY_MIN_SAMPLES;
    if (weights->calls || sampled) {
        bold(&style, out, "hottest functions");
        fputs(weights->calls ? " (own share of the time in calls)\n"
                             : " (own share of wall time)\n",
              out);
        rc = print_hottest(weights, ANALYSIS_BY_FUNCTION, out, style.width);
    }
    if (rc < 0)
        return rc;
    if (analysis_exact_lines_has(p)) {
        bold(&style, out, "hottest lines");
        fputs(" (own share of the time in all lines)\n", out);
        return print_hottest_exact(p, out, style.width);
    }
    if (!weights->calls && !sampled) {
        if (!view_run_is_sampled(p))
            fprintf(out, "nothing was traced: %s\n", view_run_untraced(p));
        else if (!refused)
            fprintf(out, "%s\n", view_run_unsampled(p));
        return 0;
    }
    if (weights->calls) /* of lines they know those that functions begin in */
        return 0;
    bold(&style, out, "hottest lines");
    fputs("\n", out);
    return print_hottest(weights, ANALYSIS_BY_LINE, out, style.width);
}

/* "pyrometer report", with the recording's name where it has one. */
static void add_step(struct buf *line, const char *command, const char *run, const char *options)
{
    buf_printf(line, "%s pyrometer %s", line->len ? "," : "next:", command);
    if (run) {
        buf_puts(line, " ");
        view_text_shell(line, run);
    }
    buf_puts(line, options);
}

/* The views that this recording has most to say in. */
static void print_next(const struct profile *p, const struct analysis_weights *weights,
                       const char *run, FILE *out)
{
    bool timeline = profile_has_timeline(p), memory_only = weights->memory != NULL;
    struct buf line;
    buf_init(&line, 1 << 20);
    if (!memory_only)
        add_step(&line, "report", run, "");
    if (timeline)
        add_step(&line, "timeline", run, " -o timeline.html");
    if (profile_has_memory(p))
        add_step(&line, "memory", run, "");
    if (memory_only)
        add_step(&line, "memory leaks", run, "");
    else if (!weights->calls || analysis_exact_lines_has(p))
        add_step(&line, "lines", run, "");
    add_step(&line, "flame", run, " -o flame.html");
    if (timeline)
        add_step(&line, "export perfetto", run, " -o out.pftrace");
    else if (weights->calls)
        add_step(&line, "export pstats", run, " -o out.prof");
    fprintf(out, "%s\n", buf_cstr(&line));
    buf_release(&line);
}

int view_summary_print(const struct profile *p, const char *path, bool named, FILE *out,
                       struct view_style style)
{
    struct analysis_query query = {.metric = &ANALYSIS_METRICS[0]};
    struct analysis_weights weights;
    int rc = analysis_weights_init(p, &query, &weights);
    if (rc < 0)
        return rc;
    struct buf command;
    buf_init(&command, 1 << 20);
    view_run_command(p, &command);
    fputs("\n", out);
    bold(&style, out, "pyrometer");
    fprintf(out, ": %.*s\n", style.width ? (int)style.width * 2 : 400, buf_cstr(&command));
    buf_release(&command);
    print_cost(p, out);
    uint64_t calls = 0;
    rc = count_calls(p, &weights, &calls);
    print_sampling(p, &weights, calls, out);
    bool refused = print_refusal(p, out);
    if (rc == 0 && (!weights.memory || analysis_exact_lines_has(p)))
        rc = print_times(p, &weights, refused, out, style);
    if (rc == 0 && profile_has_memory(p))
        rc = print_memory(p, out, style);
    fprintf(out, "recorded in %s\n", path);
    if (has_anything(p))
        print_next(p, &weights, named ? path : NULL, out);
    analysis_weights_release(&weights);
    return rc;
}
