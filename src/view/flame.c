/* What a flame graph says in words above and below its blocks, and how it is coloured (the page's
 * script does the same: flame_model.js). */
#include "view/flame.h"

#include "base/err.h"
#include "view/colour.h"
#include "view/flame_picture.h"
#include "view/heading.h"
#include "view/run.h"
#include "view/text.h"
#include "view/units.h"

#include <inttypes.h>
#include <math.h>

enum { LINE_BYTES_MAX = 64 << 10, TITLE_BYTES = 300 };

/* --- colours --- */

double flame_change(const struct flame_picture *p, const struct flame_block *b)
{
    double now = p->total.weight ? (double)b->total.weight / (double)p->total.weight : 0;
    double was = p->before.weight ? (double)b->before_total.weight / (double)p->before.weight : 0;
    return now - was;
}

static uint32_t change_colour(const struct flame_picture *p, const struct flame_block *b)
{
    double change = flame_change(p, b);
    double t = p->largest_change > 0 ? sqrt(fmin(1, fabs(change) / p->largest_change)) : 0;
    return view_colour_oklch(0.93 - 0.25 * t, 0.01 + 0.15 * t, change < 0 ? 250 : 27);
}

static uint32_t heat_colour(const struct flame_picture *p, const struct flame_block *b)
{
    return view_colour_heat(p->hottest ? sqrt((double)b->self.weight / (double)p->hottest) : 0);
}

uint32_t flame_colour(const struct flame_picture *p, const struct flame_block *b)
{
    const struct flame_label *label = &p->labels.data[b->label];
    switch (label->kind) {
    case FLAME_ROOT:
        return view_colour_oklch(0.91, 0.008, 260);
    case FLAME_THREAD:
        return view_colour_oklch(0.87, 0.025, 260);
    case FLAME_FOLDED:
        return view_colour_oklch(0.90, 0, 0);
    case FLAME_SPECIAL:
        return view_colour_oklch(0.82, 0, 0);
    default:
        break;
    }
    if (p->flame->colour == VIEW_FLAME_CHANGE)
        return change_colour(p, b);
    if (p->flame->colour == VIEW_FLAME_HEAT)
        return heat_colour(p, b);
    double shade = (double)label->shade - (FLAME_SHADES - 1) / 2.0;
    return view_colour_oklch(0.835 + 0.014 * shade, 0.088, label->hue + 4 * shade);
}

/* --- words --- */

void flame_weight_text(const struct flame_picture *p, uint64_t weight, struct buf *out)
{
    buf_puts(out, view_weight_text(p->flame->rows->weights->metric, weight).text);
}

/* Takes the buffer's content over as one more line. */
static int add_line(struct flame_lines *lines, struct buf *b)
{
    char *line = buf_detach(b);
    char **slot = line ? vec_push(&lines->text) : NULL;
    if (!slot) {
        free(line);
        return E_NOMEM;
    }
    *slot = line;
    return 0;
}

static void put_share(struct buf *b, double share)
{
    buf_puts(b, share > 0 && share < 0.001 ? "under 0.1 %" : view_units_percent(share * 100).text);
}

static int fill_title(struct flame_picture *p)
{
    const struct view_flame *f = p->flame;
    struct buf text;
    buf_init(&text, LINE_BYTES_MAX);
    if (f->title)
        view_text_escape(&text, f->title, strnlen(f->title, LINE_BYTES_MAX / 8));
    else
        view_run_command(f->rows->weights->profile, &text);
    if (text.error == E_LIMIT) /* a command of many pages: its beginning must do */
        text.error = 0;
    if (!text.len)
        buf_puts(&text, "flame graph");
    view_text_fit(&p->title, (const char *)text.data, text.len, TITLE_BYTES, VIEW_CUT_MIDDLE);
    int r = buf_error(&text) ? buf_error(&text) : buf_error(&p->title);
    buf_release(&text);
    return r;
}

static void put_run(const struct flame_picture *p, const struct analysis_weights *w,
                    struct analysis_weight total, const char *which, struct buf *b)
{
    buf_printf(b, "%s: ", which);
    view_heading_total(p->flame->rows->weights->metric, total.weight, b);
    buf_puts(b, ", ");
    view_heading_samples(w, total.samples, b);
    size_t len = b->len;
    buf_puts(b, ", ");
    view_run_day(w->profile, b);
    if (b->len == len + 2)
        b->len = len; /* not known */
}

static int fill_diff_facts(struct flame_picture *p)
{
    const struct view_flame *f = p->flame;
    struct buf b;
    buf_init(&b, LINE_BYTES_MAX);
    put_run(p, f->before->weights, p->before, "before", &b);
    int r = add_line(&p->facts, &b);
    put_run(p, f->rows->weights, p->total, "after", &b);
    return r < 0 ? r : add_line(&p->facts, &b);
}

static int fill_run_facts(struct flame_picture *p)
{
    const struct profile *profile = p->flame->rows->weights->profile;
    struct buf b;
    buf_init(&b, LINE_BYTES_MAX);
    view_heading_total(p->flame->rows->weights->metric, p->total.weight, &b);
    int r = add_line(&p->facts, &b);
    const struct analysis_metric *metric = p->flame->rows->weights->metric;
    bool is_said = strcmp(metric->name, "samples") == 0 || profile_tables(profile)->counts;
    if (!is_said)
        view_heading_samples(p->flame->rows->weights, p->total.samples, &b);
    if (r == 0 && b.len)
        r = add_line(&p->facts, &b);
    buf_puts(&b, "Python ");
    size_t before = b.len;
    view_run_pythons(profile, &b);
    if (b.len == before)
        buf_clear(&b);
    else if (r == 0)
        r = add_line(&p->facts, &b);
    view_run_day(profile, &b);
    if (r == 0 && b.len)
        r = add_line(&p->facts, &b);
    buf_release(&b);
    return r;
}

static int fill_facts(struct flame_picture *p)
{
    const struct view_flame *f = p->flame;
    struct buf b;
    buf_init(&b, LINE_BYTES_MAX);
    int r = f->before ? fill_diff_facts(p) : fill_run_facts(p);
    if (f->by_line || f->bottom_up || f->sequence)
        buf_printf(&b, "%s%s%s", f->by_line ? "lines" : "functions",
                   f->bottom_up ? ", bottom up: callers under what they call" : "",
                   f->sequence ? ", along time" : "");
    if (r == 0 && b.len)
        r = add_line(&p->facts, &b);
    if (f->filters && *f->filters) {
        buf_puts(&b, "only ");
        view_text_escape(&b, f->filters, strnlen(f->filters, LINE_BYTES_MAX / 8));
        r = r < 0 ? r : add_line(&p->facts, &b);
    }
    buf_release(&b);
    return r;
}

static void put_tree_folds(const struct flame_picture *p, struct buf *b)
{
    const struct analysis_tree *tree = p->flame->tree;
    if (!tree->folded)
        return;
    double whole = p->total.weight ? (double)p->total.weight : 1;
    buf_printf(b, "%s small block%s folded into “…”, with all that they call: each ",
               view_units_count(tree->folded).text, tree->folded == 1 ? " is" : "s are");
    double heaviest = 100 * (double)tree->folded_heaviest / whole;
    if (heaviest < 1e-4)
        buf_puts(b, "below 0.0001 %");
    else
        buf_printf(b, "at most %.2g %%", heaviest);
    buf_puts(b, " of the whole, together ");
    put_share(b, (double)tree->folded_weight / whole);
}

static void put_sequence_folds(const struct flame_picture *p, struct buf *b)
{
    const struct analysis_sequence *s = p->flame->sequence;
    if (!s->folded && !s->dropped)
        return;
    buf_printf(b, "blocks shorter than %s are folded into “…” (%s of them)",
               view_units_seconds((double)s->shortest_ns * 1e-9).text,
               view_units_count(s->folded).text);
    if (s->dropped)
        buf_printf(b, "; %s are left out", view_units_count(s->dropped).text);
}

static int fill_notes(struct flame_picture *p)
{
    const struct view_flame *f = p->flame;
    struct buf b;
    buf_init(&b, LINE_BYTES_MAX);
    if (f->tree)
        put_tree_folds(p, &b);
    else
        put_sequence_folds(p, &b);
    int r = b.len ? add_line(&p->notes, &b) : 0;
    if (profile_tables(f->rows->weights->profile)->counts) {
        buf_puts(&b,
                 "this file holds counts of calls and no stacks: who calls what is an estimate");
        r = r < 0 ? r : add_line(&p->notes, &b);
    }
    struct buf losses;
    buf_init(&losses, LINE_BYTES_MAX);
    view_run_losses(f->rows->weights->profile, f->rows->weights->damaged_chunks, &losses);
    if (losses.len) {
        buf_printf(&b, "the recording: %s", buf_cstr(&losses));
        r = r < 0 ? r : add_line(&p->notes, &b);
    }
    buf_release(&losses);
    buf_release(&b);
    return r;
}

int flame_heading_fill(struct flame_picture *p)
{
    int r = fill_title(p);
    if (r == 0)
        r = fill_facts(p);
    return r < 0 ? r : fill_notes(p);
}
