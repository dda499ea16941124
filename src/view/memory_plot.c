#include "view/memory_plot.h"

#include "base/err.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

#include <math.h>
#include <string.h>

enum {
    SERIES = ANALYSIS_CURVE_KINDS + 1, /* and the peak */
    LABEL_SIZE = VIEW_UNITS_SIZE,
    TITLE_MAX = 1 << 16,
    MARKS_DRAWN = 40, /* of one name: more of them would hide the curves */
    NAMES_TOLD = 8,
};

/* What a curve is called where people read it. */
static const char *const WORDS[SERIES] = {
    [ANALYSIS_CURVE_ALLOCATED] = "allocated and not given back",
    [ANALYSIS_CURVE_HEAP] = "heap of the C library",
    [ANALYSIS_CURVE_OBJECTS] = "Python's objects",
    [ANALYSIS_CURVE_RSS] = "resident (RSS)",
    [ANALYSIS_CURVE_KINDS] = "peak",
};

struct panel {
    struct view_plot_point *point[SERIES]; /* owned */
    struct view_plot_series series[SERIES];
    char *title; /* owned */
};

struct view_memory_plot {
    const struct profile_tables *t;
    const struct analysis_curves *curves;
    struct panel panel[VIEW_PLOT_PANELS];
    struct view_plot_panel panels[VIEW_PLOT_PANELS];
    bool has[SERIES]; /* one list of series for all panels: colours mean the same */
    char (*labels)[LABEL_SIZE];
    const char **label;
    struct view_plot_mark *mark;
    char **name; /* of each mark; owned */
    size_t marks;
    char *title, *facts;
    struct view_plot plot;
};

/* --- curves --- */

static int fill_series(struct view_memory_plot *p, struct panel *panel,
                       const struct analysis_curve *curve, size_t kind)
{
    size_t places = p->curves->places, n = 0;
    struct view_plot_point *point = calloc(places + 1, sizeof *point);
    panel->point[kind] = point;
    if (!point)
        return E_NOMEM;
    if (kind == ANALYSIS_CURVE_KINDS) {
        size_t at = analysis_curves_place(p->curves, curve->peak_ns);
        bool in_range = curve->peak_ns >= p->curves->from_ns && curve->peak_ns <= p->curves->to_ns;
        point[0] = (struct view_plot_point){at, (double)curve->peak_bytes, NAN, NAN};
        n = curve->peak_bytes && in_range;
    }
    for (size_t i = 0; kind < ANALYSIS_CURVE_KINDS && i < places; i++)
        if (!isnan(curve->value[kind][i]))
            point[n++] = (struct view_plot_point){i, curve->value[kind][i], NAN, NAN};
    return (int)n;
}

static char *panel_title(const struct view_memory_plot *p, const struct analysis_curve *curve)
{
    const struct record_process *process = &p->t->processes[curve->process];
    const struct profile_string *command = &p->t->strings[process->command];
    struct buf b;
    buf_init(&b, TITLE_MAX);
    buf_printf(&b, "process %u  ", process->pid);
    view_text_escape(&b, command->text, min_u64(command->len, 60));
    return buf_detach(&b);
}

static int fill_panel(struct view_memory_plot *p, size_t at)
{
    const struct analysis_curve *curve = &p->curves->curve[at];
    struct panel *panel = &p->panel[at];
    size_t count = 0;
    for (size_t kind = 0; kind < SERIES; kind++) {
        if (!p->has[kind])
            continue;
        int n = fill_series(p, panel, curve, kind);
        if (n < 0)
            return n;
        panel->series[count++] = (struct view_plot_series){
            .name = WORDS[kind], .point = panel->point[kind], .count = (size_t)n};
    }
    panel->title = panel_title(p, curve);
    p->panels[at] = (struct view_plot_panel){
        .metric = "memory_bytes", .title = panel->title, .series = panel->series, .count = count};
    return panel->title ? 0 : E_NOMEM;
}

static int fill_panels(struct view_memory_plot *p)
{
    size_t panels = min_u64(p->curves->count, VIEW_PLOT_PANELS);
    for (size_t i = 0; i < panels; i++)
        for (size_t kind = 0; kind < ANALYSIS_CURVE_KINDS; kind++)
            p->has[kind] |= p->curves->curve[i].points[kind] > 0;
    /* without Python's objects it is the first curve again, and would hide it */
    p->has[ANALYSIS_CURVE_HEAP] &= p->has[ANALYSIS_CURVE_OBJECTS];
    p->has[ANALYSIS_CURVE_KINDS] = true;
    int r = 0;
    for (size_t i = 0; r == 0 && i < panels; i++)
        r = fill_panel(p, i);
    p->plot.panel = p->panels;
    p->plot.panels = panels;
    return r;
}

/* --- the axis and the marks --- */

static int fill_labels(struct view_memory_plot *p)
{
    size_t places = p->curves->places;
    p->labels = calloc(places + 1, sizeof *p->labels);
    p->label = calloc(places + 1, sizeof *p->label);
    if (!p->labels || !p->label)
        return E_NOMEM;
    for (size_t i = 0; i < places; i++) {
        double seconds = (double)analysis_curves_time(p->curves, i) * 1e-9;
        snprintf(p->labels[i], LABEL_SIZE, "%s", view_units_seconds(seconds).text);
        p->label[i] = p->labels[i];
    }
    p->plot.label = p->label;
    p->plot.places = places;
    return 0;
}

static size_t count_of(const struct analysis_curves *c, uint32_t name)
{
    size_t n = 0;
    for (size_t i = 0; i < c->mark.len; i++)
        n += c->mark.data[i].name == name;
    return n;
}

/* Names of marks with how often each was set, the first few. */
static void tell_marks(const struct view_memory_plot *p, struct buf *out)
{
    const struct analysis_curves *c = p->curves;
    uint32_t told[NAMES_TOLD];
    size_t names = 0;
    for (size_t i = 0; i < c->mark.len; i++) {
        size_t k = 0;
        while (k < names && told[k] != c->mark.data[i].name)
            k++;
        if (k < names)
            continue;
        if (names == NAMES_TOLD) {
            buf_puts(out, ", …");
            return;
        }
        told[names++] = c->mark.data[i].name;
        size_t count = count_of(c, c->mark.data[i].name);
        const struct profile_string *name = &p->t->strings[c->mark.data[i].name];
        buf_puts(out, k ? ", " : "; marks: ");
        view_text_escape(out, name->text, min_u64(name->len, 40));
        if (count > 1)
            buf_printf(out, " ×%zu%s", count, count > MARKS_DRAWN ? " (not drawn)" : "");
    }
}

static int fill_marks(struct view_memory_plot *p)
{
    const struct analysis_curves *c = p->curves;
    p->mark = calloc(c->mark.len + 1, sizeof *p->mark);
    p->name = calloc(c->mark.len + 1, sizeof *p->name);
    if (!p->mark || !p->name)
        return E_NOMEM;
    uint32_t last = UINT32_MAX;
    bool drawn = false;
    for (size_t i = 0; i < c->mark.len; i++) {
        if (c->mark.data[i].name != last)
            drawn = count_of(c, last = c->mark.data[i].name) <= MARKS_DRAWN;
        if (!drawn)
            continue;
        const struct profile_string *name = &p->t->strings[last];
        struct buf b;
        buf_init(&b, TITLE_MAX);
        view_text_escape(&b, name->text, min_u64(name->len, 40));
        char *text = p->name[p->marks] = buf_detach(&b);
        if (!text)
            return E_NOMEM;
        p->mark[p->marks++] =
            (struct view_plot_mark){analysis_curves_place(c, c->mark.data[i].time_ns), text};
    }
    p->plot.mark = p->mark;
    p->plot.marks = p->marks;
    return 0;
}

static int fill_texts(struct view_memory_plot *p, const struct profile *profile)
{
    const struct analysis_curves *c = p->curves;
    struct buf title, facts, losses;
    buf_init(&title, TITLE_MAX << 4);
    buf_init(&losses, TITLE_MAX);
    buf_init(&facts, TITLE_MAX);
    view_run_command(profile, &title);
    p->title = buf_detach(&title);
    if (c->count)
        buf_printf(&facts, "peak %s at %s%s", view_units_bytes((double)c->curve[0].peak_bytes).text,
                   view_units_seconds((double)c->curve[0].peak_ns * 1e-9).text,
                   c->count > 1 ? " of the largest process" : "");
    if (c->count > VIEW_PLOT_PANELS)
        buf_printf(&facts, "; %zu smaller processes are left out", c->count - VIEW_PLOT_PANELS);
    tell_marks(p, &facts);
    view_run_losses(profile, 0, &losses);
    if (losses.len)
        buf_printf(&facts, "; lost: %s", buf_cstr(&losses));
    buf_release(&losses);
    p->facts = buf_detach(&facts);
    p->plot.title = p->title;
    p->plot.facts = p->facts;
    return p->title && p->facts ? 0 : E_NOMEM;
}

int view_memory_plot_new(const struct profile *profile, const struct analysis_curves *curves,
                         struct view_memory_plot **ret)
{
    struct view_memory_plot *p = calloc(1, sizeof *p);
    if (!p)
        return E_NOMEM;
    p->t = profile_tables(profile);
    p->curves = curves;
    p->plot.is_joined = p->plot.is_stepped = true;
    int r = fill_panels(p);
    if (r == 0)
        r = fill_labels(p);
    if (r == 0)
        r = fill_marks(p);
    if (r == 0)
        r = fill_texts(p, profile);
    if (r < 0) {
        view_memory_plot_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

void view_memory_plot_free(struct view_memory_plot *plot)
{
    if (!plot)
        return;
    for (size_t i = 0; i < VIEW_PLOT_PANELS; i++) {
        for (size_t k = 0; k < SERIES; k++)
            free(plot->panel[i].point[k]);
        free(plot->panel[i].title);
    }
    for (size_t i = 0; plot->name && i < plot->marks; i++)
        free(plot->name[i]);
    free(plot->name);
    free(plot->mark);
    free(plot->labels);
    free((void *)plot->label);
    free(plot->title);
    free(plot->facts);
    free(plot);
}

const struct view_plot *view_memory_plot_of(const struct view_memory_plot *plot)
{
    return &plot->plot;
}
