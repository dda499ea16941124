/* Plots: round axes, and the same points in each of the three forms. */
#include "base/attr.h"
#include "draw/axis.h"
#include "view/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_axes(void **state ATTR_UNUSED)
{
    struct draw_axis a = draw_axis_around(0, 97, 5);
    assert_true(a.low == 0 && a.high == 100 && a.ticks == 6 && a.decimals == 0);
    a = draw_axis_around(1.02, 1.13, 4);
    assert_true(a.low <= 1.02 && a.high >= 1.13 && a.decimals == 2 && a.ticks >= 3);
    assert_true(fabs(draw_axis_place(&a, a.low)) < 1e-12);
    assert_true(fabs(draw_axis_place(&a, a.high) - 1) < 1e-12);
    a = draw_axis_around(5, 5, 4);
    assert_true(a.low < 5 && a.high > 5 && a.ticks >= 2);
    a = draw_axis_around(0, 0, 4);
    assert_true(a.low == 0 && a.high == 1);
    a = draw_axis_around(NAN, INFINITY, 4);
    assert_true(isfinite(a.low) && isfinite(a.high) && a.low < a.high);
    a = draw_axis_around(-3, 8, 5);
    assert_true(a.low == -5 && a.high == 10 && a.ticks == 4 && a.tick[1] == 0);
}

static void test_quantities(void **state ATTR_UNUSED)
{
    assert_string_equal(view_quantity_text("elapsed_time_sec", 1.234).text, "1.23 s");
    assert_string_equal(view_quantity_text("max_res_set_sz_kb", 2048).text, "2.00 MiB");
    assert_string_equal(view_quantity_text("read_bytes", 1536).text, "1.50 KiB");
    assert_string_equal(view_quantity_text("pct_of_cpu", 97).text, "97.0 %");
    assert_string_equal(view_quantity_text("swaps", 12345).text, "12,345");
    assert_string_equal(view_quantity_text("score", 0.25).text, "0.25");
    assert_string_equal(view_quantity_text("score", NAN).text, "?");
    assert_string_equal(view_quantity_scale_for("max_res_set_sz_kb", 50000).unit, "MiB");
    assert_true(view_quantity_scale_for("max_res_set_sz_kb", 50000).divisor == 1024);
    assert_string_equal(view_quantity_scale_for("elapsed_time_sec", 0.5).unit, "ms");
    assert_string_equal(view_quantity_scale_for("elapsed_time_sec", 100).unit, "s");
    assert_string_equal(view_quantity_scale_for("elapsed_time_sec", 1000).unit, "min");
    assert_string_equal(view_quantity_scale_for("minor_page_faults", 9000).unit, "");
}

enum { RUNS = 30 };

struct made {
    struct view_plot_point point[RUNS];
    struct stats_change change;
    struct view_plot_series series;
    struct view_plot_panel panel;
    char texts[RUNS][16];
    const char *label[RUNS];
    struct view_plot plot;
};

static void make(struct made *m)
{
    for (int i = 0; i < RUNS; i++) {
        m->point[i] = (struct view_plot_point){(size_t)i, i < 20 ? 1 : 1.2, NAN, NAN};
        snprintf(m->texts[i], sizeof m->texts[i], "day %d", i);
        m->label[i] = m->texts[i];
    }
    m->change = (struct stats_change){.at = 20, .before = 1, .after = 1.2, .p = 0.001};
    m->series = (struct view_plot_series){"python <app>.py", m->point, RUNS, &m->change, 1};
    m->panel =
        (struct view_plot_panel){.metric = "elapsed_time_sec", .series = &m->series, .count = 1};
    m->plot = (struct view_plot){.title = "python <app>.py",
                                 .facts = "30 runs",
                                 .panel = &m->panel,
                                 .panels = 1,
                                 .label = m->label,
                                 .places = RUNS};
}

static char *print(const struct view_plot *plot, struct view_style style,
                   enum view_plot_marks marks)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(view_plot_print(plot, out, style, marks), 0);
    fclose(out);
    return text;
}

static void test_text(void **state ATTR_UNUSED)
{
    static struct made m;
    make(&m);
    char *text = print(&m.plot, (struct view_style){false, 60}, VIEW_PLOT_BRAILLE);
    assert_non_null(strstr(text, "elapsed_time_sec (s)"));
    assert_non_null(strstr(text, "\xe2\xa0"));
    assert_non_null(strstr(text, "▲ +20 %  1.00 s → 1.20 s  since day 20"));
    assert_non_null(strstr(text, "day 0"));
    assert_non_null(strstr(text, "day 29"));
    free(text);
    text = print(&m.plot, (struct view_style){false, 60}, VIEW_PLOT_ASCII);
    for (const char *p = text; *p; p++)
        assert_true((unsigned char)*p < 0x80);
    assert_non_null(strstr(text, "*"));
    assert_non_null(strstr(text, "1.00 s -> 1.20 s"));
    free(text);
    text = print(&m.plot, (struct view_style){true, 0}, VIEW_PLOT_SIGNS);
    assert_non_null(strstr(text, "●"));
    assert_non_null(strstr(text, "\033[34m"));
    free(text);
}

static void test_pictures(void **state ATTR_UNUSED)
{
    static struct made m;
    char *text = NULL;
    size_t len;
    make(&m);
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(view_plot_write_svg(&m.plot, out), 0);
    fclose(out);
    assert_non_null(strstr(text, "python &lt;app&gt;.py"));
    assert_non_null(strstr(text, "+20 %"));
    assert_non_null(strstr(text, "</svg>"));
    size_t circles = 0;
    for (const char *p = text; (p = strstr(p, "<circle")); p++)
        circles++;
    assert_int_equal(circles, RUNS);
    free(text);
    text = NULL;
    out = open_memstream(&text, &len);
    assert_int_equal(view_plot_write_png(&m.plot, 1, out), 0);
    fclose(out);
    assert_true(len > 1000 && !memcmp(text, "\x89PNG", 4));
    free(text);
}

/* One point, no points, all equal: still a plot. */
static void test_small(void **state ATTR_UNUSED)
{
    static struct made m;
    make(&m);
    m.series.changes = 0;
    m.series.count = 1;
    m.plot.places = 1;
    free(print(&m.plot, (struct view_style){false, 20}, VIEW_PLOT_BRAILLE));
    m.series.count = 0;
    free(print(&m.plot, (struct view_style){false, 1000}, VIEW_PLOT_BRAILLE));
    struct view_plot_range r = view_plot_range_of(&m.panel);
    assert_true(isnan(r.low));
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(view_plot_write_svg(&m.plot, out), 0);
    fclose(out);
    free(text);
}

/* What is equal to a tick stands in the tick's row, and each tick has a row of its own. */
static void test_rows(void **state ATTR_UNUSED)
{
    struct made m;
    make(&m);
    m.series.changes = 0;
    m.panel.metric = "score";
    for (int high = 1; high <= 100; high++) {
        for (int value = 0; value <= high; value++) {
            struct view_plot_point ends[2] = {{1, 0, NAN, NAN}, {2, high, NAN, NAN}};
            struct view_plot_point point = {0, value, NAN, NAN};
            struct view_plot_series series[2] = {{"a", &point, 1, NULL, 0},
                                                 {"b", ends, 2, NULL, 0}};
            m.panel.series = series;
            m.panel.count = 2;
            struct draw_axis axis = draw_axis_around(0, high, 4);
            char *text = print(&m.plot, (struct view_style){false, 60}, VIEW_PLOT_ASCII);
            size_t ticks = 0;
            for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest));) {
                char *tick = strstr(line, " +"), *end;
                double at = strtod(line, &end);
                if (!tick || end != tick || strstr(line, "+-"))
                    continue;
                ticks++;
                char *sign = strchr(tick, '*');
                if (fabs(at - value) < 1e-9)
                    assert_non_null(sign);
                else if (fabs(at - value) > (axis.high - axis.low) / 20 + 1e-9)
                    assert_null(sign);
            }
            assert_int_equal(ticks, axis.ticks);
            free(text);
        }
    }
}

/* A value holds until the next one: no line goes up or down but straight. And the first curve is drawn last. */
static void test_steps(void **state ATTR_UNUSED)
{
    struct made m;
    make(&m);
    m.series.changes = 0;
    m.plot.is_joined = m.plot.is_stepped = true;
    struct view_plot_series two[2] = {m.series, m.series};
    two[0].name = "first";
    two[1].name = "second";
    m.panel.series = two;
    m.panel.count = 2;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(view_plot_write_svg(&m.plot, out), 0);
    fclose(out);
    size_t lines = 0;
    for (const char *p = text; (p = strstr(p, "<path")); p++) {
        double x0, y0, x1, y1;
        if (sscanf(p, "<path d=\"M%lf %lfL%lf %lf", &x0, &y0, &x1, &y1) != 4)
            continue;
        lines++;
        assert_true(fabs(x0 - x1) < 1e-9 || fabs(y0 - y1) < 1e-9);
    }
    assert_true(lines >= RUNS);
    free(text);
    text = print(&m.plot, (struct view_style){false, 60}, VIEW_PLOT_ASCII);
    size_t first = 0, second = 0;
    for (const char *p = strchr(text, '+'); p < strstr(text, "+--"); p++) {
        first += *p == '*';
        second += *p == 'o';
    }
    assert_true(first > 20 && second == 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),  cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_text),  cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_small), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
