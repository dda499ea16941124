/* Numbers over runs as a plot: in the terminal, as .svg and as .png.
 *
 * A plot has one panel for each metric, one above the other over the same runs; a panel has one
 * series for each command. Runs stand at equal distances, in the order of time, for they come in
 * bursts. Where a series changed its level for good, the place is marked, and the levels are drawn
 * through the points. Everything is borrowed and must outlive the call. */
#ifndef PYROMETER_VIEW_PLOT_H
#define PYROMETER_VIEW_PLOT_H

#include "stats/changes.h"
#include "view/emit.h"
#include "view/quantity.h"

/* Of points a caller should give no more than a picture has room for. */
enum { VIEW_PLOT_POINTS = 1200, VIEW_PLOT_PANELS = 16, VIEW_PLOT_SERIES = 12 };

struct view_plot_point {
    size_t at; /* the place on the axis: 0 … places - 1 */
    double value;
    double low, high; /* of the runs that it stands for; NaN: of one */
};

struct view_plot_series {
    const char *name;
    const struct view_plot_point *point; /* by `at`, ascending */
    size_t count;
    const struct stats_change *change; /* `at` is the index of a point */
    size_t changes;
};

struct view_plot_panel {
    const char *metric;                    /* whose end tells the unit */
    const char *title;                     /* shown in its place; NULL: the metric itself */
    const struct view_plot_series *series; /* where they meet, the earlier one is seen */
    size_t count;
};

/* A place that the program has named. */
struct view_plot_mark {
    size_t at;
    const char *name;
};

struct view_plot {
    const char *title;
    const char *facts; /* a line below the title; NULL: none */
    const struct view_plot_panel *panel;
    size_t panels;
    const char *const *label; /* of each place on the axis */
    size_t places;
    const struct view_plot_mark *mark; /* by `at`, ascending */
    size_t marks;
    bool is_joined;  /* points are few and stand for groups: a line through them */
    bool is_stepped; /* and a value holds until the next is known */
};

/* How a terminal can draw. */
enum view_plot_marks {
    VIEW_PLOT_BRAILLE, /* eight dots in a character */
    VIEW_PLOT_SIGNS,   /* one sign for each series: where colours are missing to tell them apart */
    VIEW_PLOT_ASCII,
};

/* All fail with E_NOMEM, or why the output could not be written. `width` 0 is 80 columns. */
int view_plot_print(const struct view_plot *plot, FILE *out, struct view_style style,
                    enum view_plot_marks marks);
int view_plot_write_svg(const struct view_plot *plot, FILE *out);
int view_plot_write_png(const struct view_plot *plot, double scale, FILE *out);

/* What the terminal behind `out` can show, by the character set of the locale and the kind of
 * terminal; without colours several series need signs. */
enum view_plot_marks view_plot_marks_for(struct view_style style, bool has_several);

/* --- what all three share --- */

struct view_plot_range {
    double low, high;
};

/* Of all that a panel shows. From zero if the values come near it; NaN without any. */
struct view_plot_range view_plot_range_of(const struct view_plot_panel *panel);

/* The series that is drawn as the `nth`: a single point last, for it hides nothing, and the first one over the others. */
size_t view_plot_series_nth(const struct view_plot_panel *panel, size_t nth);

/* "+12.3 %", "−5.0 %", or "from 0". */
struct view_units_text view_plot_change_text(const struct stats_change *change);

#endif
