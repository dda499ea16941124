#include "view/check.h"

#include "base/err.h"
#include "view/culprit.h"
#include "view/quantity.h"
#include "view/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20, NUMBER_SIZE = 64 };

static const char *const VERDICTS[] = {[STATS_SAME] = "same",
                                       [STATS_WORSE] = "worse",
                                       [STATS_BETTER] = "better",
                                       [STATS_TOO_FEW] = "too few runs"};

/* --- numbers --- */

static void percent_text(double ratio, char text[NUMBER_SIZE])
{
    double percent = (ratio - 1) * 100;
    if (!isfinite(percent))
        text[0] = '\0';
    else if (fabs(percent) >= 1000)
        snprintf(text, NUMBER_SIZE, "× %.3g", ratio);
    else
        snprintf(text, NUMBER_SIZE, "%+.1f %%", percent);
}

static void interval_text(const struct stats_interval *i, char text[NUMBER_SIZE])
{
    char low[NUMBER_SIZE], high[NUMBER_SIZE];
    percent_text(i->low, low);
    percent_text(i->high, high);
    text[0] = '\0';
    if (*low && *high)
        snprintf(text, NUMBER_SIZE, "%.24s … %.24s", low, high);
}

/* Not known where there are too few runs for a test. */
static double chance(const struct stats_gate *g)
{
    return g->verdict == STATS_TOO_FEW ? (double)NAN : g->ranks.p;
}

static void chance_text(double p, char text[NUMBER_SIZE])
{
    text[0] = '\0';
    if (isfinite(p))
        snprintf(text, NUMBER_SIZE, p < 1e-4 ? "< 0.0001" : "%.4f", p);
}

/* What the row comes to, in words. */
static void verdict_text(const struct view_check_metric *m, bool is_gate, struct buf *out)
{
    const struct stats_gate *g = &m->gate;
    char number[NUMBER_SIZE];
    if (m->is_past_limit)
        buf_printf(out, "past its limit of %s", view_quantity_text(m->name, m->limit).text);
    else if (g->verdict == STATS_WORSE)
        buf_puts(out, is_gate ? "REGRESSION" : m->is_less_worse ? "less" : "more");
    else if (m->has_step)
        buf_printf(out, "REGRESSION: %s since %s",
                   (percent_text(m->step.after / m->step.before, number), number), m->step_since);
    else if (g->verdict == STATS_BETTER)
        buf_puts(out, is_gate ? "better" : m->is_less_worse ? "more" : "less");
    else if (g->verdict == STATS_TOO_FEW)
        buf_puts(out, "too few runs to tell");
    else if (isfinite(g->detectable)) {
        percent_text(g->detectable, number);
        buf_printf(out, "no change seen (%s would be)", number);
    } else
        buf_puts(out, "no change seen");
}

/* --- the table --- */

enum column { METRIC, BEFORE, AFTER, CHANGE, INTERVAL, CHANCE, VERDICT, COLUMNS };

static struct view_cell cell(const char *text)
{
    return (struct view_cell){.text = text, .len = strlen(text)};
}

void view_check_table(struct view_emit *emit, const struct view_check_metric *metric, size_t count,
                      bool is_gate)
{
    const struct view_column columns[COLUMNS] = {
        [METRIC] = {NULL, "metric", VIEW_NAME, VIEW_ONLY_TEXT},
        [BEFORE] = {NULL, is_gate ? "baseline" : "before", VIEW_WORD, VIEW_ONLY_TEXT},
        [AFTER] = {NULL, is_gate ? "now" : "after", VIEW_WORD, VIEW_ONLY_TEXT},
        [CHANGE] = {NULL, "change", VIEW_WORD, VIEW_ONLY_TEXT},
        [INTERVAL] = {NULL, "95 % interval", VIEW_WORD, VIEW_ONLY_TEXT},
        [CHANCE] = {NULL, "p", VIEW_WORD, VIEW_ONLY_TEXT},
        [VERDICT] = {NULL, "", VIEW_NAME, VIEW_ONLY_TEXT},
    };
    struct buf verdict;
    buf_init(&verdict, TEXT_MAX);
    view_emit_table_begin(emit, "metrics", columns, COLUMNS, false);
    for (size_t i = 0; i < count; i++) {
        const struct view_check_metric *m = &metric[i];
        struct view_units_text before = view_quantity_text(m->name, m->gate.before);
        struct view_units_text after = view_quantity_text(m->name, m->gate.after);
        char change[NUMBER_SIZE], interval[NUMBER_SIZE], likely[NUMBER_SIZE];
        percent_text(m->gate.ratio, change);
        interval_text(&m->interval, interval);
        chance_text(chance(&m->gate), likely);
        buf_clear(&verdict);
        verdict_text(m, is_gate, &verdict);
        const struct view_cell cells[COLUMNS] = {
            [METRIC] = cell(m->name),
            [BEFORE] = cell(before.text),
            [AFTER] = cell(after.text),
            [CHANGE] = cell(change),
            [INTERVAL] = cell(interval),
            [CHANCE] = cell(likely),
            [VERDICT] = cell(buf_cstr(&verdict)),
        };
        view_emit_row_begin(emit, cells);
        view_emit_row_end(emit);
    }
    view_emit_table_end(emit);
    buf_release(&verdict);
}

/* --- JSON --- */

static void json_step(struct json *j, const struct view_check_metric *m)
{
    json_key(j, "step");
    if (!m->has_step) {
        json_null(j);
        return;
    }
    json_object_begin(j);
    json_kv_text(j, "since", m->step_since);
    json_kv_real(j, "before", m->step.before);
    json_kv_real(j, "after", m->step.after);
    json_kv_real(j, "p", m->step.p);
    json_object_end(j);
}

void view_check_metrics_json(struct json *j, const struct view_check_metric *metric, size_t count,
                             bool is_gate)
{
    json_key(j, "metrics");
    json_array_begin(j);
    for (size_t i = 0; i < count; i++) {
        const struct view_check_metric *m = &metric[i];
        json_object_begin(j);
        json_kv_text(j, "metric", m->name);
        json_kv_real(j, "before", m->gate.before);
        json_kv_real(j, "after", m->gate.after);
        json_kv_real(j, "ratio", m->gate.ratio);
        json_kv_real(j, "ratio_low", m->interval.low);
        json_kv_real(j, "ratio_high", m->interval.high);
        json_kv_real(j, "p", chance(&m->gate));
        json_kv_bool(j, "p_exact", m->gate.ranks.is_exact);
        json_kv_text(j, "verdict", VERDICTS[m->gate.verdict]);
        json_kv_real(j, "detectable_ratio", m->gate.detectable);
        if (is_gate) {
            json_kv_real(j, "threshold_percent", m->threshold * 100);
            json_kv_bool(j, "less_is_worse", m->is_less_worse);
            json_kv_real(j, "limit", m->limit);
            json_kv_bool(j, "past_limit", m->is_past_limit);
            json_step(j, m);
            json_kv_bool(j, "regression", m->is_regression);
        }
        json_object_end(j);
    }
    json_array_end(j);
}

static void print_json(const struct view_check *c, struct view_emit *emit)
{
    struct json *j = view_emit_json(emit);
    json_kv_text(j, "command", c->command);
    json_kv_text(j, "subject", c->subject);
    json_kv_text(j, "baseline", c->baseline);
    json_kv_u64(j, "runs", c->subject_runs);
    json_kv_u64(j, "baseline_runs", c->baseline_runs);
    json_kv_bool(j, "regression", c->is_regression);
    view_check_metrics_json(j, c->metric, c->count, true);
    if (c->culprits)
        view_culprits_json(j, c->culprits);
    json_key(j, "notes");
    json_array_begin(j);
    if (c->no_culprits)
        json_text(j, c->no_culprits);
    for (size_t i = 0; i < c->notes; i++)
        json_text(j, c->note[i]);
    json_array_end(j);
}

/* --- text --- */

static void conclude(const struct view_check *c, struct buf *out)
{
    const char *comma = "";
    if (!c->is_regression) {
        bool all_few = true;
        for (size_t i = 0; i < c->count; i++)
            all_few = all_few && c->metric[i].gate.verdict == STATS_TOO_FEW;
        buf_puts(out, all_few ? "Too few runs to tell anything yet." : "No regression.");
        return;
    }
    buf_puts(out, "Regression: ");
    for (size_t i = 0; i < c->count; i++)
        if (c->metric[i].is_regression) {
            const struct view_check_metric *m = &c->metric[i];
            bool by_step = m->gate.verdict != STATS_WORSE && m->has_step;
            char number[NUMBER_SIZE];
            percent_text(by_step ? m->step.after / m->step.before : m->gate.ratio, number);
            buf_printf(out, "%s%s %s", comma, m->name,
                       m->is_past_limit ? "past its limit"
                       : *number        ? number
                                        : "worse");
            comma = ", ";
        }
    struct buf who;
    buf_init(&who, TEXT_MAX);
    if (c->culprits && view_culprit_first(c->culprits, &who))
        buf_printf(out, "; most of it in %s", buf_cstr(&who));
    buf_puts(out, ".");
    buf_release(&who);
}

static void print_text(const struct view_check *c, struct view_emit *emit, struct buf *text)
{
    view_text_escape(text, c->command, strlen(c->command));
    view_emit_line(emit, "%s", buf_cstr(text));
    view_emit_line(emit, "%s against %s", c->subject, c->baseline);
    for (size_t i = 0; i < c->notes; i++)
        view_emit_line(emit, "%s", c->note[i]);
    view_emit_line(emit, "%s", "");
    view_check_table(emit, c->metric, c->count, true);
    if (c->culprits) {
        view_emit_line(emit, "%s", "");
        view_culprits_print(emit, c->culprits);
    } else if (c->no_culprits)
        view_emit_line(emit, "\n%s", c->no_culprits);
    buf_clear(text);
    conclude(c, text);
    view_emit_line(emit, "\n%s", buf_cstr(text));
}

/* --- markdown --- */

static void put_cell(FILE *out, const char *text)
{
    fputs(" ", out);
    for (; *text; text++) /* nothing may end the cell, or begin an element */
        fputs(*text == '|' ? "\\|" : *text == '<' ? "&lt;" : (const char[]){*text, '\0'}, out);
    fputs(" |", out);
}

static void print_markdown(const struct view_check *c, FILE *out, struct buf *text)
{
    conclude(c, text);
    fprintf(out, "### %s\n\n", buf_cstr(text));
    buf_clear(text);
    view_text_escape(text, c->command, strlen(c->command));
    fprintf(out, "%s against %s.\n\n    %s\n\n", c->subject, c->baseline, buf_cstr(text));
    fputs("| metric | baseline | now | change | 95 % interval | p | |\n"
          "|---|--:|--:|--:|--:|--:|---|\n",
          out);
    for (size_t i = 0; i < c->count; i++) {
        const struct view_check_metric *m = &c->metric[i];
        char change[NUMBER_SIZE], interval[NUMBER_SIZE], likely[NUMBER_SIZE];
        percent_text(m->gate.ratio, change);
        interval_text(&m->interval, interval);
        chance_text(chance(&m->gate), likely);
        buf_clear(text);
        verdict_text(m, true, text);
        fputs("|", out);
        put_cell(out, m->name);
        put_cell(out, view_quantity_text(m->name, m->gate.before).text);
        put_cell(out, view_quantity_text(m->name, m->gate.after).text);
        put_cell(out, change);
        put_cell(out, interval);
        put_cell(out, likely);
        put_cell(out, buf_cstr(text));
        fputs("\n", out);
    }
    fputs("\n", out);
    if (c->culprits)
        view_culprits_markdown(out, c->culprits);
    else if (c->no_culprits)
        fprintf(out, "%s\n", c->no_culprits);
    for (size_t i = 0; i < c->notes; i++)
        fprintf(out, "\n%s\n", c->note[i]);
}

int view_check_print(const struct view_check *c, FILE *out, enum view_check_form form,
                     struct view_style style)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    int r = 0;
    if (form == VIEW_CHECK_MARKDOWN) {
        print_markdown(c, out, &text);
        if (fflush(out) != 0 || ferror(out))
            r = err_from_errno(errno);
    } else {
        struct view_emit emit;
        view_emit_init(&emit, out, form == VIEW_CHECK_JSON ? VIEW_JSON : VIEW_TEXT, style);
        if (form == VIEW_CHECK_JSON)
            print_json(c, &emit);
        else
            print_text(c, &emit, &text);
        r = view_emit_finish(&emit);
    }
    r = r < 0 ? r : buf_error(&text);
    buf_release(&text);
    return r;
}
