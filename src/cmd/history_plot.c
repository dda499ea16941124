#include "cmd/history_plot.h"

#include "base/err.h"
#include "cmd/history.h"
#include "cmd/history_set.h"
#include "cmd/load.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "stats/sample.h"
#include "view/plot.h"
#include "view/text.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <string.h>
#include <time.h>

enum { LABEL_MAX = 4096, FACTS_SIZE = 256 };

/* Steps smaller than this are not marked. */
#define LEAST_CHANGE 0.01
static const double PNG_SCALE = 2; /* for sharp screens */

/* A command and what is known of it. */
struct source {
    char *key, *name; /* owned; the name is harmless text */
    struct cmd_run_set set;
};

struct curve {
    struct view_plot_point *point; /* owned */
    struct stats_changes *changes; /* owned */
};

/* Everything a plot is made of. */
struct plotting {
    const struct cmd_history_options *o;
    struct history_store *store;
    const char *metric[VIEW_PLOT_PANELS];
    size_t metrics;
    struct source source[VIEW_PLOT_SERIES];
    size_t sources;
    char **label; /* owned, each too */
    size_t places;
    size_t *place[VIEW_PLOT_SERIES]; /* of each run of a source; owned */
    struct curve curve[VIEW_PLOT_PANELS][VIEW_PLOT_SERIES];
    struct view_plot_series series[VIEW_PLOT_PANELS][VIEW_PLOT_SERIES];
    struct view_plot_panel panel[VIEW_PLOT_PANELS];
    char facts[FACTS_SIZE];
    uint64_t runs;
    bool is_thinned;
};

static void release(struct plotting *p)
{
    for (size_t s = 0; s < p->sources; s++) {
        free(p->source[s].key);
        free(p->source[s].name);
        cmd_run_set_release(&p->source[s].set);
        free(p->place[s]);
    }
    for (size_t i = 0; i < p->places; i++)
        free(p->label[i]);
    free(p->label);
    for (size_t m = 0; m < p->metrics; m++)
        for (size_t s = 0; s < p->sources; s++) {
            free(p->curve[m][s].point);
            free(p->curve[m][s].changes);
        }
}

/* --- which runs --- */

static int choose_metrics(struct plotting *p)
{
    const struct cmd_each *said = &p->o->plot.metrics;
    if (said->count > VIEW_PLOT_PANELS)
        return cmd_fail(CMD_USAGE, "a plot has room for %d metrics", VIEW_PLOT_PANELS);
    for (size_t i = 0; i < said->count; i++)
        p->metric[p->metrics++] = history_metric_canonical(said->use[i].value);
    return 0;
}

/* Runs of a command; 0 if there are none. */
static int add_source(struct plotting *p, char *key)
{
    struct history_filter filter;
    if (!key || p->sources == VIEW_PLOT_SERIES) {
        free(key);
        return key ? cmd_fail(CMD_USAGE, "a plot has room for %d commands", VIEW_PLOT_SERIES)
                   : cmd_fail(CMD_FAILED, "out of memory");
    }
    struct source *s = &p->source[p->sources++];
    struct buf name;
    s->key = key;
    s->set = (struct cmd_run_set){.metric = p->metric,
                                  .metrics = p->metrics,
                                  .label_by = p->o->plot.group_by,
                                  .is_light = !p->o->plot.group_by};
    buf_init(&name, LABEL_MAX);
    view_text_escape(&name, key, min_u64(strlen(key), LABEL_MAX / 8));
    s->name = buf_detach(&name);
    int status = cmd_history_filter(p->o, key, &filter);
    if (status || !s->name)
        return status ? status : cmd_fail(CMD_FAILED, "out of memory");
    int r = cmd_run_set_load(p->store, &filter, &s->set);
    return r < 0 ? cmd_run_failed(key, r) : 0;
}

static void drop_last_source(struct plotting *p)
{
    struct source *s = &p->source[--p->sources];
    free(s->key);
    free(s->name);
    cmd_run_set_release(&s->set);
}

static int add_all_commands(struct plotting *p)
{
    struct history_commands commands = {0};
    int r = history_store_commands(p->store, &commands), status = 0;
    if (r < 0)
        return cmd_run_failed("", r);
    for (size_t i = 0; !status && i < commands.list.len && i < VIEW_PLOT_SERIES; i++)
        status = add_source(p, strdup(commands.list.data[i].key));
    if (commands.list.len > VIEW_PLOT_SERIES)
        cmd_warn("only the last %d of %zu commands are plotted: name those you want",
                 VIEW_PLOT_SERIES, commands.list.len);
    history_commands_release(&commands);
    return status;
}

/* The operands are the words of one command; or, where no such command ever ran, a command each. */
static int choose_commands(struct plotting *p, int count, char **argv)
{
    if (!count)
        return add_all_commands(p);
    int status = add_source(p, cmd_history_key(count, argv));
    if (status || p->source[0].set.runs.len || count == 1)
        return status;
    drop_last_source(p);
    for (int i = 0; !status && i < count; i++) {
        status = add_source(p, cmd_history_key(1, argv + i));
        if (!status && !p->source[p->sources - 1].set.runs.len)
            status = cmd_fail(CMD_FAILED, "no runs of '%s' in the history", argv[i]);
    }
    return status;
}

/* --- the axis --- */

struct moment {
    int64_t us;
    size_t source, run;
};

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->us != y->us)
        return x->us < y->us ? -1 : 1;
    return x->source != y->source ? (x->source < y->source ? -1 : 1)
           : x->run < y->run      ? -1
                                  : x->run > y->run;
}

/* As much of the moment as tells the runs apart: of one day the time, of more the day too. */
static char *time_label(int64_t us, int64_t span_us)
{
    static const int64_t DAY_US = 86400 * 1000000ll;
    char text[32];
    time_t seconds = (time_t)(us / 1000000);
    struct tm local;
    if (!localtime_r(&seconds, &local))
        return strdup("?");
    if (span_us < DAY_US / 24)
        strftime(text, sizeof text, "%H:%M:%S", &local);
    else if (span_us < DAY_US)
        strftime(text, sizeof text, "%H:%M", &local);
    else if (span_us < 5 * DAY_US)
        strftime(text, sizeof text, "%m-%d %H:%M", &local);
    else
        strftime(text, sizeof text, "%Y-%m-%d", &local);
    return strdup(text);
}

/* Several runs share a place if there are too many for the picture. */
static int place_by_time(struct plotting *p, struct moment *moment, size_t count)
{
    size_t each = (count + VIEW_PLOT_POINTS - 1) / VIEW_PLOT_POINTS;
    int64_t span = count ? moment[count - 1].us - moment[0].us : 0;
    each = each ? each : 1;
    p->is_thinned = each > 1;
    p->label = calloc(count / each + 2, sizeof *p->label);
    if (!p->label)
        return E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        size_t place = i / each;
        p->place[moment[i].source][moment[i].run] = place;
        if (place == p->places && !(p->label[p->places++] = time_label(moment[i].us, span)))
            return E_NOMEM;
    }
    return 0;
}

/* Groups stand in the order in which they first ran. Their last one wins if there are too many. */
static int place_by_label(struct plotting *p, const struct moment *moment, size_t count)
{
    p->label = calloc(count + 1, sizeof *p->label);
    if (!p->label)
        return E_NOMEM;
    p->places = 0;
    for (size_t i = 0; i < count; i++) {
        const struct cmd_run_fact *run = &p->source[moment[i].source].set.runs.data[moment[i].run];
        const char *label = run->label ? run->label : "";
        size_t place = 0;
        struct buf harmless;
        buf_init(&harmless, LABEL_MAX);
        view_text_escape(&harmless, label, min_u64(strlen(label), LABEL_MAX / 8));
        char *text = buf_detach(&harmless);
        if (!text)
            return E_NOMEM;
        while (place < p->places && strcmp(p->label[place], text) != 0)
            place++;
        if (place == p->places)
            p->label[p->places++] = text;
        else
            free(text);
        if (p->places > VIEW_PLOT_POINTS)
            return E_LIMIT;
        p->place[moment[i].source][moment[i].run] = place;
    }
    return 0;
}

static int make_axis(struct plotting *p)
{
    size_t count = 0, at = 0;
    for (size_t s = 0; s < p->sources; s++)
        count += p->source[s].set.runs.len;
    p->runs = count;
    _cleanup_free_ struct moment *moment = malloc((count + 1) * sizeof *moment);
    if (!moment)
        return E_NOMEM;
    for (size_t s = 0; s < p->sources; s++) {
        size_t runs = p->source[s].set.runs.len;
        if (!(p->place[s] = calloc(runs + 1, sizeof **p->place)))
            return E_NOMEM;
        for (size_t i = 0; i < runs; i++)
            moment[at++] = (struct moment){p->source[s].set.runs.data[i].started_us, s, i};
    }
    qsort(moment, count, sizeof *moment, by_time);
    return p->o->plot.group_by ? place_by_label(p, moment, count) : place_by_time(p, moment, count);
}

/* --- the curves --- */

struct placed {
    size_t place;
    double value;
};

static int by_place(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* One point for each place: the median of its runs, and their range. */
static size_t gather(const struct placed *placed, size_t count, struct view_plot_point *point)
{
    size_t points = 0;
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && placed[to].place == placed[from].place;)
            to++;
        size_t middle = from + (to - from) / 2;
        double median = (to - from) % 2 ? placed[middle].value
                                        : (placed[middle - 1].value + placed[middle].value) / 2;
        bool is_one = to - from == 1;
        point[points++] = (struct view_plot_point){.at = placed[from].place,
                                                   .value = median,
                                                   .low = is_one ? NAN : placed[from].value,
                                                   .high = is_one ? NAN : placed[to - 1].value};
    }
    return points;
}

/* The changes are sought in what is shown: of many runs in their medians. */
static int make_curve(struct plotting *p, size_t metric, size_t source)
{
    const struct cmd_run_set *set = &p->source[source].set;
    struct curve *c = &p->curve[metric][source];
    size_t runs = set->runs.len, count = 0;
    _cleanup_free_ struct placed *placed = malloc((runs + 1) * sizeof *placed);
    _cleanup_free_ double *value = malloc((runs + 1) * sizeof *value);
    c->point = malloc((runs + 1) * sizeof *c->point);
    c->changes = calloc(1, sizeof *c->changes);
    if (!placed || !value || !c->point || !c->changes)
        return E_NOMEM;
    for (size_t i = 0; i < runs; i++)
        if (isfinite(set->runs.data[i].value[metric]))
            placed[count++] = (struct placed){p->place[source][i], set->runs.data[i].value[metric]};
    if (count)
        qsort(placed, count, sizeof *placed, by_place);
    size_t points = gather(placed, count, c->point);
    for (size_t i = 0; i < points; i++)
        value[i] = c->point[i].value;
    int r = stats_changes_find(value, points, LEAST_CHANGE, c->changes);
    p->series[metric][source] = (struct view_plot_series){.name = p->source[source].name,
                                                          .point = c->point,
                                                          .count = points,
                                                          .change = c->changes->change,
                                                          .changes = c->changes->count};
    return r;
}

static int make_curves(struct plotting *p)
{
    for (size_t m = 0; m < p->metrics; m++) {
        size_t points = 0;
        for (size_t s = 0; s < p->sources; s++) {
            int r = make_curve(p, m, s);
            if (r < 0)
                return cmd_fail(CMD_FAILED, "cannot make the plot: %s", err_text(r));
            points += p->series[m][s].count;
        }
        if (!points)
            return cmd_fail(CMD_FAILED,
                            "no run has the metric '%s'; `history show` lists what is known",
                            p->metric[m]);
        p->panel[m] = (struct view_plot_panel){
            .metric = p->metric[m], .series = p->series[m], .count = p->sources};
    }
    return 0;
}

/* --- out --- */

static void write_facts(struct plotting *p)
{
    char first[32], last[32];
    int64_t from = INT64_MAX, to = INT64_MIN;
    for (size_t s = 0; s < p->sources; s++) {
        const struct cmd_run_set *set = &p->source[s].set;
        if (!set->runs.len)
            continue;
        int64_t low = set->runs.data[0].started_us,
                high = set->runs.data[set->runs.len - 1].started_us;
        from = low < from ? low : from;
        to = high > to ? high : to;
    }
    cmd_time_text(from, first, sizeof first);
    cmd_time_text(to, last, sizeof last);
    int n = snprintf(p->facts, sizeof p->facts, "%s runs, %s to %s", view_units_count(p->runs).text,
                     first, last);
    if (n > 0 && (size_t)n < sizeof p->facts && p->o->plot.group_by)
        snprintf(p->facts + n, sizeof p->facts - (size_t)n, ", median and range by %.60s",
                 p->o->plot.group_by);
    else if (n > 0 && (size_t)n < sizeof p->facts && p->is_thinned)
        snprintf(p->facts + n, sizeof p->facts - (size_t)n,
                 ", median and range of neighbouring runs");
}

static int write_picture(const struct view_plot *plot, const struct cmd_plot_options *o)
{
    bool is_svg = cmd_output_has_suffix(o->output, ".svg");
    struct cmd_output output;
    int status = cmd_output_open(o->output, o->force, NULL, &output);
    if (status)
        return status;
    int r = is_svg ? view_plot_write_svg(plot, output.file)
                   : view_plot_write_png(plot, PNG_SCALE, output.file);
    return cmd_output_close(&output, r);
}

static int show(struct plotting *p)
{
    const struct cmd_plot_options *o = &p->o->plot;
    struct buf title;
    buf_init(&title, LABEL_MAX);
    if (p->sources == 1)
        buf_puts(&title, p->source[0].name);
    else
        buf_printf(&title, "%zu commands", p->sources);
    write_facts(p);
    struct view_plot plot = {.title = buf_cstr(&title),
                             .facts = p->facts,
                             .panel = p->panel,
                             .panels = p->metrics,
                             .label = (const char *const *)p->label,
                             .places = p->places,
                             .is_joined = o->group_by != NULL};
    int status;
    if (o->output) {
        status = write_picture(&plot, o);
    } else {
        struct view_style style = view_style_of(stdout);
        setlocale(LC_CTYPE, "");
        enum view_plot_marks marks =
            o->ascii ? VIEW_PLOT_ASCII : view_plot_marks_for(style, p->sources > 1);
        errno = 0;
        int r = view_plot_print(&plot, cmd_stdout(), style, marks);
        status = r < 0 ? cmd_output_failed("the plot", r, errno) : CMD_OK;
    }
    buf_release(&title);
    return status;
}

static int check_options(const struct cmd_history_options *o)
{
    if (o->json || o->csv)
        return cmd_fail(CMD_USAGE, "--metric makes a plot: --json and --csv have all metrics");
    if (o->plot.output && !cmd_output_has_suffix(o->plot.output, ".svg") &&
        !cmd_output_has_suffix(o->plot.output, ".png"))
        return cmd_fail(CMD_USAGE,
                        "-o '%s': the name ends in .svg or .png, which says what to draw",
                        o->plot.output);
    return o->plot.group_by ? cmd_run_label_check("--group-by", o->plot.group_by) : 0;
}

int cmd_history_plot(const struct cmd_history_options *o, int count, char **argv)
{
    int status = check_options(o);
    struct plotting *p = calloc(1, sizeof *p);
    _cleanup_free_ char *path = NULL;
    if (!p)
        return cmd_fail(CMD_FAILED, "out of memory");
    p->o = o;
    if (!status)
        status = choose_metrics(p);
    if (!status)
        status = cmd_history_open(o, HISTORY_READ, &path, &p->store);
    if (!status)
        status = choose_commands(p, count, argv);
    if (!status) {
        int r = make_axis(p);
        if (r < 0)
            status = r == E_LIMIT ? cmd_fail(CMD_USAGE,
                                             "--group-by %s: more than %d groups; choose some with "
                                             "--last or --since",
                                             o->plot.group_by, VIEW_PLOT_POINTS)
                                  : cmd_fail(CMD_FAILED, "cannot make the plot: %s", err_text(r));
        else if (!p->runs)
            status = cmd_fail(CMD_FAILED, "no runs with the metric '%s' in the history %s",
                              p->metric[0], path);
    }
    if (!status)
        status = make_curves(p);
    if (!status)
        status = show(p);
    history_store_close(p->store);
    release(p);
    free(p);
    return status;
}
