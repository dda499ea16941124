/* The timeline as a picture and as a page. Both have a lane for each thread and a row for each depth. The
 * page holds the JSON and draws it on a canvas; its policy lets no other script run, and names in it are
 * only ever text. */
#include "view/timeline.h"

#include "base/clock.h"
#include "base/err.h"
#include "view/assets.h"
#include "view/flame_text.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

#include <errno.h>
#include <inttypes.h>

enum {
    WIDTH = 1600,
    ROW = 16,
    LANE_HEAD = 22,
    TOP = 48,
    MARGIN = 10,
    MAX_ROWS = 120,      /* of a thread in a picture */
    MAX_PICTURE = 60000, /* boxes: more than any viewer likes */
    LETTER = 7,          /* width of one, roughly */
    LABEL_MIN = 3 * LETTER,
    COUNTER = 40, /* height of a counter's lane below its name */
    LOSSES_MAX = 1 << 16,
};

static int finish(FILE *out)
{
    if (fflush(out) != 0 || ferror(out))
        return errno ? err_from_errno(errno) : E_IO;
    return 0;
}

/* Other people's text between tags, at most `width` columns of it. */
static void put_text(FILE *out, struct profile_string text, size_t width)
{
    struct buf safe, fitted;
    buf_init(&safe, 1 << 20);
    buf_init(&fitted, 1 << 20);
    view_text_escape(&safe, text.text, min_u64(text.len, 4096));
    view_text_fit(&fitted, (const char *)safe.data, safe.len, width, VIEW_CUT_MIDDLE);
    flame_put_markup(out, buf_cstr(&fitted));
    buf_release(&safe);
    buf_release(&fitted);
}

/* --- the picture --- */

struct drawing {
    const struct analysis_timeline *t;
    const struct profile_tables *tables;
    FILE *out;
    double per_ns; /* x of a ns */
    size_t drawn, left_out;
    size_t note; /* the next of the thread's */
};

static double x_of(const struct drawing *d, uint64_t ns)
{
    return MARGIN + (double)(ns - d->t->from_ns) * d->per_ns;
}

static void draw_notes(struct drawing *d, const struct analysis_timeline_thread *thread,
                       uint32_t depth, const struct record_box *b)
{
    size_t count;
    const struct analysis_timeline_note *notes =
        view_timeline_notes(thread, depth, b, &d->note, &count);
    for (size_t i = 0; i < count; i++) {
        fprintf(d->out, "; %s: ", record_note_name(notes[i].kind));
        put_text(d->out, view_timeline_note_text(thread, &notes[i]), 200);
    }
}

static void draw_box(struct drawing *d, const struct analysis_timeline_thread *thread,
                     uint32_t depth, const struct record_box *b, unsigned y)
{
    double x = x_of(d, b->begin_ns), width = x_of(d, b->end_ns) - x;
    double shown = width < 0.5 ? 0.5 : width;
    if (d->drawn >= MAX_PICTURE) {
        d->left_out++;
        return;
    }
    d->drawn++;
    double span = (double)(b->end_ns - b->begin_ns);
    double opacity = b->calls > 1 && span > 0 ? 0.35 + 0.65 * (double)b->covered_ns / span : 1;
    fprintf(d->out,
            "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" "
            "fill=\"hsl(%u,60%%,70%%)\" fill-opacity=\"%.2f\"><title>",
            x, y, shown, ROW - 1, view_timeline_hue(d->tables, b->code), opacity);
    struct profile_string name = view_timeline_name(d->tables, b->code);
    put_text(d->out, name, 120);
    struct view_units_text length = view_units_seconds(span / (double)NS_PER_SEC);
    if (b->calls > 1)
        fprintf(d->out, " and others: %u calls in %s", b->calls, length.text);
    else
        fprintf(d->out, ": %s", length.text);
    fprintf(d->out, " at %.6f s", (double)b->begin_ns / (double)NS_PER_SEC);
    draw_notes(d, thread, depth, b);
    fputs("</title></rect>\n", d->out);
    if (width < LABEL_MIN || b->calls > 1)
        return;
    fprintf(d->out, "<text x=\"%.2f\" y=\"%u\">", x + 3, y + ROW - 5);
    put_text(d->out, name, (size_t)(width / LETTER));
    fputs("</text>\n", d->out);
}

/* What the program told of itself: spans as frames, moments as lines with a name beside them. */
static void draw_told(struct drawing *d, const struct record_box *b, unsigned y, bool is_moment)
{
    double x = x_of(d, b->begin_ns), width = is_moment ? 2 : x_of(d, b->end_ns) - x;
    struct profile_string name = d->tables->strings[b->code];
    if (d->drawn >= MAX_PICTURE) {
        d->left_out++;
        return;
    }
    d->drawn++;
    fprintf(d->out, "<rect class=\"%s\" x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\"><title>",
            is_moment ? "mark" : "span", x, y, width < 0.5 ? 0.5 : width, ROW - 1);
    put_text(d->out, name, 120);
    if (b->calls > 1)
        fprintf(d->out, " and others: %u", b->calls);
    if (!is_moment)
        fprintf(d->out, ": %s",
                view_units_seconds((double)(b->end_ns - b->begin_ns) / (double)NS_PER_SEC).text);
    fprintf(d->out, " at %.6f s</title></rect>\n", (double)b->begin_ns / (double)NS_PER_SEC);
    if (b->calls > 1 || (!is_moment && width < LABEL_MIN))
        return;
    fprintf(d->out, "<text x=\"%.2f\" y=\"%u\">", x + 4, y + ROW - 5);
    put_text(d->out, name, is_moment ? 24 : (size_t)(width / LETTER));
    fputs("</text>\n", d->out);
}

static unsigned rows_of_marks(const struct analysis_timeline_thread *thread)
{
    return (unsigned)min_u64(thread->spans.used, MAX_ROWS) + thread->moments.used;
}

static unsigned draw_marks(struct drawing *d, const struct analysis_timeline_thread *thread,
                           unsigned y)
{
    for (uint32_t row = 0; row < thread->moments.used; row++, y += ROW)
        for (size_t i = 0; i < thread->moments.rows.data[row].boxes.len; i++)
            draw_told(d, &thread->moments.rows.data[row].boxes.data[i], y, true);
    for (uint32_t row = 0; row < thread->spans.used && row < MAX_ROWS; row++, y += ROW)
        for (size_t i = 0; i < thread->spans.rows.data[row].boxes.len; i++)
            draw_told(d, &thread->spans.rows.data[row].boxes.data[i], y, false);
    return y;
}

/* A line of steps: a counter keeps its value until it is told another one. */
static unsigned draw_counter(struct drawing *d, const struct analysis_timeline_counter *c,
                             unsigned y)
{
    double least = 0, most = 0;
    for (size_t i = 0; i < c->points.len; i++) {
        double v = c->points.data[i].value;
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    double scale = most > least ? (COUNTER - 4) / (most - least) : 0;
    fprintf(d->out, "<text class=\"lane\" x=\"%d\" y=\"%u\">", MARGIN, y + LANE_HEAD - 7);
    put_text(d->out, d->tables->strings[c->name], 100);
    fprintf(d->out, " (%g to %g)</text>\n<path class=\"counter\" d=\"", least, most);
    y += LANE_HEAD;
    for (size_t i = 0; i < c->points.len; i++) {
        double at = y + COUNTER - 2 - (c->points.data[i].value - least) * scale;
        fprintf(d->out, i ? "H%.2fV%.2f" : "M%.2f %.2f", x_of(d, c->points.data[i].time_ns), at);
    }
    fprintf(d->out, "H%.2f\"/>\n", x_of(d, d->t->to_ns));
    return y + COUNTER;
}

static unsigned draw_thread(struct drawing *d, const struct analysis_timeline_thread *thread,
                            unsigned y)
{
    struct buf name;
    buf_init(&name, 1 << 20);
    view_timeline_thread(d->tables, thread->thread, &name);
    fprintf(d->out, "<text class=\"lane\" x=\"%d\" y=\"%u\">", MARGIN, y + LANE_HEAD - 7);
    put_text(d->out, (struct profile_string){buf_cstr(&name), (uint32_t)name.len}, 100);
    fputs("</text>\n", d->out);
    buf_release(&name);
    y = draw_marks(d, thread, y + LANE_HEAD);
    d->note = 0;
    for (uint32_t row = 0; row < thread->boxes.used; row++) {
        const struct lod_row *boxes = &thread->boxes.rows.data[row];
        if (row >= MAX_ROWS)
            d->left_out += boxes->boxes.len;
        for (size_t i = 0; row < MAX_ROWS && i < boxes->boxes.len; i++)
            draw_box(d, thread, row, &boxes->boxes.data[i], y + row * ROW);
    }
    return y + (unsigned)min_u64(thread->boxes.used, MAX_ROWS) * ROW;
}

static void draw_foot(struct drawing *d, unsigned y)
{
    struct buf losses;
    buf_init(&losses, LOSSES_MAX);
    view_timeline_losses(d->t, &losses);
    if (losses.len) {
        fprintf(d->out, "<text class=\"lost\" x=\"%d\" y=\"%u\">", MARGIN, y + LANE_HEAD);
        flame_put_markup(d->out, buf_cstr(&losses));
        fputs("</text>\n", d->out);
        y += ROW;
    }
    buf_release(&losses);
    if (d->left_out || d->t->deepest_cut)
        fprintf(
            d->out,
            "<text x=\"%d\" y=\"%u\">%zu boxes are not drawn: choose a shorter --range</text>\n",
            MARGIN, y + LANE_HEAD, d->left_out);
}

static void draw_head(struct drawing *d, unsigned height)
{
    struct buf command;
    buf_init(&command, 1 << 20);
    view_run_command(d->t->profile, &command);
    fprintf(d->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
            "viewBox=\"0 0 %d %u\">\n<style>text{font:11px sans-serif}.lane{font-weight:bold}"
            ".title{font-size:15px}.span{fill:#e8e8f4;stroke:#557}.mark{fill:#a00}"
            ".counter{fill:none;stroke:#06a}.lost{fill:#a00}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text class=\"title\" x=\"%d\" y=\"20\">",
            WIDTH, height, WIDTH, height, MARGIN);
    put_text(d->out, (struct profile_string){buf_cstr(&command), (uint32_t)command.len}, 150);
    fprintf(d->out, "</text>\n<text x=\"%d\" y=\"38\">%.6f s to %.6f s</text>\n", MARGIN,
            (double)d->t->from_ns / (double)NS_PER_SEC, (double)d->t->to_ns / (double)NS_PER_SEC);
    buf_release(&command);
}

int view_timeline_write_svg(const struct analysis_timeline *t, FILE *out)
{
    struct drawing d = {.t = t, .tables = profile_tables(t->profile), .out = out};
    d.per_ns = (WIDTH - 2 * MARGIN) / (double)max_u64(1, t->to_ns - t->from_ns);
    unsigned height = TOP + 2 * LANE_HEAD + ROW, y = TOP;
    for (size_t i = 0; i < t->thread_count; i++)
        height += LANE_HEAD + (rows_of_marks(&t->thread[i]) +
                               (unsigned)min_u64(t->thread[i].boxes.used, MAX_ROWS)) *
                                  ROW;
    height += (unsigned)min_u64(t->counter.len, MAX_ROWS) * (LANE_HEAD + COUNTER);
    errno = 0;
    draw_head(&d, height);
    for (size_t i = 0; i < t->thread_count; i++)
        y = draw_thread(&d, &t->thread[i], y);
    for (size_t i = 0; i < t->counter.len && i < MAX_ROWS; i++)
        y = draw_counter(&d, &t->counter.data[i], y);
    draw_foot(&d, y);
    fputs("</svg>\n", out);
    return finish(out);
}

/* --- the page --- */

/* JSON that may stand in a script element. */
static int put_data(const struct analysis_timeline *t, FILE *out)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    if (!memory)
        return E_NOMEM;
    int r = view_timeline_json(t, memory);
    if (fclose(memory) != 0 && r == 0)
        r = E_NOMEM;
    for (size_t i = 0; r == 0 && i < len; i++)
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            putc_unlocked(text[i], out);
    free(text);
    return r;
}

/* Written here and not by the script, which has only the numbers: the words are those of all views. */
static void put_losses(const struct analysis_timeline *t, FILE *out)
{
    struct buf losses;
    buf_init(&losses, LOSSES_MAX);
    view_timeline_losses(t, &losses);
    flame_put_markup(out, buf_cstr(&losses));
    buf_release(&losses);
}

static int fill_gap(const struct analysis_timeline *t, FILE *out, const char *name, size_t len)
{
    if (strncmp(name, "policy", len) == 0)
        fprintf(out,
                "default-src &#39;none&#39;; script-src &#39;sha256-%s&#39;; style-src "
                "&#39;sha256-%s&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;",
                VIEW_ASSET_TIMELINE_JS.sha256, VIEW_ASSET_TIMELINE_CSS.sha256);
    else if (strncmp(name, "style", len) == 0)
        fwrite(VIEW_ASSET_TIMELINE_CSS.text, 1, VIEW_ASSET_TIMELINE_CSS.len, out);
    else if (strncmp(name, "script", len) == 0)
        fwrite(VIEW_ASSET_TIMELINE_JS.text, 1, VIEW_ASSET_TIMELINE_JS.len, out);
    else if (strncmp(name, "losses", len) == 0)
        put_losses(t, out);
    else if (strncmp(name, "data", len) == 0)
        return put_data(t, out);
    return 0;
}

int view_timeline_write_html(const struct analysis_timeline *t, FILE *out)
{
    const char *at = VIEW_ASSET_TIMELINE_HTML.text;
    int r = 0;
    errno = 0;
    while (r == 0) {
        const char *open = strstr(at, "{{"), *close = open ? strstr(open, "}}") : NULL;
        if (!close)
            break;
        fwrite(at, 1, (size_t)(open - at), out);
        r = fill_gap(t, out, open + 2, (size_t)(close - open) - 2);
        at = close + 2;
    }
    fputs(at, out);
    return r < 0 ? r : finish(out);
}
