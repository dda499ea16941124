/* What every kind of plot needs: ranges, and the words for a change. */
#include "view/plot.h"

#include <langinfo.h>
#include <math.h>
#include <stdio.h>

/* Values that come this near to zero, as a share of the largest, are shown with it. */
#define NEAR_ZERO 0.35
/* Room above and below otherwise, as a share of the range. */
#define ROOM 0.08

/* A range below this share of the values is widened: a wobble of a thousandth is not to look like a
 * mountain. */
#define LEAST_RANGE 0.08

struct view_plot_range view_plot_range_of(const struct view_plot_panel *panel)
{
    struct view_plot_range r = {NAN, NAN};
    for (size_t s = 0; s < panel->count; s++)
        for (size_t i = 0; i < panel->series[s].count; i++) {
            const struct view_plot_point *p = &panel->series[s].point[i];
            r.low = fmin(r.low, fmin(p->value, p->low)); /* fmin leaves NaN aside */
            r.high = fmax(r.high, fmax(p->value, p->high));
        }
    if (r.low >= 0 && r.low <= NEAR_ZERO * r.high) {
        r.low = 0;
    } else if (r.low <= r.high) {
        double room = ROOM * (r.high - r.low),
               least = LEAST_RANGE * fmax(fabs(r.low), fabs(r.high));
        if (r.high - r.low + 2 * room < least)
            room = (least - (r.high - r.low)) / 2;
        r.low = r.low >= 0 ? fmax(0, r.low - room) : r.low - room;
        r.high += room;
    }
    return r;
}

size_t view_plot_series_nth(const struct view_plot_panel *panel, size_t nth)
{
    for (int points = 0; points < 2; points++)
        for (size_t i = panel->count; i-- > 0;)
            if ((panel->series[i].count == 1) == points && nth-- == 0)
                return i;
    return 0;
}

struct view_units_text view_plot_change_text(const struct stats_change *change)
{
    struct view_units_text t;
    if (change->before == 0 || change->before * change->after < 0) {
        snprintf(t.text, sizeof t.text, change->after > change->before ? "up" : "down");
        return t;
    }
    double percent = (change->after / change->before - 1) * 100;
    if (percent >= 900)
        snprintf(t.text, sizeof t.text, "× %.3g", percent / 100 + 1);
    else
        snprintf(t.text, sizeof t.text, "%+.*f %%", fabs(percent) < 9.95 ? 1 : 0, percent);
    return t;
}

enum view_plot_marks view_plot_marks_for(struct view_style style, bool has_several)
{
    const char *set = nl_langinfo(CODESET), *kind = getenv("TERM");
    /* the console's own font has no dots */
    bool is_plain = kind && !strcmp(kind, "linux");
    if (strcmp(set, "UTF-8") != 0)
        return VIEW_PLOT_ASCII;
    return is_plain || (has_several && !style.colour) ? VIEW_PLOT_SIGNS : VIEW_PLOT_BRAILLE;
}
