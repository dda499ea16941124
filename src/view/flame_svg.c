/* The picture: nested blocks, drawn already, so that it also works where no script runs (as an
 * image in a page). The script (flame_svg.js) takes places and names from the elements. Labels are
 * set in a font of fixed width, so that what fits can be told without measuring. */
#include "base/err.h"
#include "base/utf8.h"
#include "view/assets.h"
#include "view/flame.h"
#include "view/flame_picture.h"
#include "view/flame_text.h"
#include "view/heading.h"
#include "view/text.h"
#include "view/units.h"

#include <errno.h>

enum {
    WIDTH = 1200,
    MARGIN = 12,
    ROW = 18,
    TOP = 62, /* title, facts, buttons */
    LANE_HEAD = 20,
    LINE = 16,
    DRAWN = WIDTH - 2 * MARGIN,
};

static const double CHAR_WIDTH = 6.63; /* of the 11 px font, rounded up */

struct drawing {
    struct flame_picture *p;
    FILE *out;
    double scale;
    uint32_t *lane_top; /* y of each lane */
    struct buf text;
};

static void put_text(const struct drawing *d, const char *class, int x, int y, const char *text)
{
    fprintf(d->out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    flame_put_markup(d->out, text);
    fputs("</text>\n", d->out);
}

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

/* "name (module) — file:line", and the numbers on lines of their own. */
static void put_tip(struct drawing *d, const struct flame_block *b)
{
    const struct flame_picture *p = d->p;
    const struct flame_label *l = &p->labels.data[b->label];
    struct buf *t = &d->text;
    buf_clear(t);
    buf_puts(t, l->name);
    if (b->folded)
        buf_printf(t, " (%u more)", b->folded);
    if (l->module)
        buf_printf(t, "\nmodule %s", p->modules.data[l->module].name);
    if (l->file)
        buf_printf(t, "\n%s", p->files.data[l->file]);
    if (l->file && l->line)
        buf_printf(t, ":%u", l->line);
    buf_puts(t, "\ntotal ");
    flame_weight_text(p, b->total.weight, t);
    buf_printf(t, " (%.2f %%, %s %s)", share_of(b->total.weight, p->total.weight),
               view_units_count(b->total.samples).text,
               view_heading_unit(p->flame->rows->weights, true));
    if (!b->folded && !p->flame->bottom_up) {
        buf_puts(t, "\nself ");
        flame_weight_text(p, b->self.weight, t);
        buf_printf(t, " (%.2f %%)", share_of(b->self.weight, p->total.weight));
    }
    if (p->flame->sequence) {
        buf_printf(t, "\nfrom %s", view_units_seconds((double)(p->from_ns + b->x) * 1e-9).text);
        buf_printf(t, ", for %s", view_units_seconds((double)b->width * 1e-9).text);
    }
    if (p->flame->before)
        buf_printf(t, "\nbefore %.2f %%, change %+.2f points",
                   share_of(b->before_total.weight, p->before.weight), 100 * flame_change(p, b));
    fputs("<title>", d->out);
    flame_put_markup(d->out, buf_cstr(t));
    fputs("</title>", d->out);
}

/* Bytes at the start of a name that take at most `width` columns: its beginning says most. */
static size_t head_bytes(const char *name, size_t len, size_t width)
{
    size_t at = 0, used = 0;
    while (at < len) {
        uint32_t c;
        size_t n = utf8_decode(name + at, len - at, &c);
        n = n ? n : 1;
        used += view_text_width(name + at, n);
        if (used > width)
            break;
        at += n;
    }
    return at;
}

static void put_label(struct drawing *d, const struct flame_block *b, double x, double y,
                      double width)
{
    const struct flame_label *l = &d->p->labels.data[b->label];
    size_t fits = width > 6 ? (size_t)((width - 6) / CHAR_WIDTH) : 0;
    if (fits < 3)
        return;
    struct buf *t = &d->text;
    buf_clear(t);
    size_t len = strlen(l->name);
    if (b->folded && fits > 12) {
        buf_printf(t, "… (%u more)", b->folded);
    } else if (view_text_width(l->name, len) > fits) {
        buf_append(t, l->name, head_bytes(l->name, len, fits - 1));
        buf_puts(t, "…");
    } else {
        buf_puts(t, l->name);
    }
    fprintf(d->out, "<text x=\"%.1f\" y=\"%.0f\">", x + 3, y + ROW - 5.5);
    flame_put_markup(d->out, buf_cstr(t));
    const char *module = d->p->modules.data[l->module].name;
    if (*module &&
        view_text_width(l->name, len) + 1 + view_text_width(module, strlen(module)) < fits) {
        fputs("<tspan class=\"m\" dx=\"7\">", d->out);
        flame_put_markup(d->out, module);
        fputs("</tspan>", d->out);
    }
    fputs("</text>", d->out);
}

static void put_block(struct drawing *d, const struct flame_block *b)
{
    static const char *const classes[] = {
        [FLAME_CODE] = "", [FLAME_SPECIAL] = " s", [FLAME_THREAD] = "",
        [FLAME_ROOT] = "", [FLAME_FOLDED] = " f",
    };
    const struct flame_label *l = &d->p->labels.data[b->label];
    double x = MARGIN + (double)b->x * d->scale, width = (double)b->width * d->scale;
    double y = d->lane_top[b->lane] + (double)b->depth * ROW;
    fprintf(d->out, "<g class=\"b%s%s\">", classes[l->kind], b->depth ? "" : " t");
    put_tip(d, b);
    fprintf(d->out, "<rect x=\"%.3f\" y=\"%.0f\" width=\"%.3f\" height=\"%d\" fill=\"#%06x\"/>", x,
            y, width, ROW - 1, flame_colour(d->p, b));
    put_label(d, b, x, y, width);
    fputs("</g>\n", d->out);
}

static void put_head(struct drawing *d, uint32_t height)
{
    struct flame_picture *p = d->p;
    fprintf(d->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" viewBox=\"0 0 "
            "%d %u\" role=\"img\" data-margin=\"%d\" data-char=\"%.2f\">\n<style>",
            WIDTH, height, WIDTH, height, MARGIN, CHAR_WIDTH);
    fwrite(VIEW_ASSET_FLAME_SVG_CSS.text, 1, VIEW_ASSET_FLAME_SVG_CSS.len, d->out);
    fprintf(d->out, "</style>\n<rect class=\"page\" width=\"%d\" height=\"%u\"/>\n", WIDTH, height);
    buf_clear(&d->text);
    view_text_fit(&d->text, (const char *)p->title.data, p->title.len, 120, VIEW_CUT_MIDDLE);
    put_text(d, "title", MARGIN, 24, buf_cstr(&d->text));
    buf_clear(&d->text);
    for (size_t i = 0; i < p->facts.text.len; i++)
        buf_printf(&d->text, "%s%s", i ? "  ·  " : "", p->facts.text.data[i]);
    put_text(d, "facts", MARGIN, 44, buf_cstr(&d->text));
    fprintf(d->out, "<text id=\"reset\" class=\"button\" x=\"%d\" y=\"24\">reset zoom</text>\n",
            WIDTH - MARGIN - 60);
    fprintf(d->out, "<text id=\"search\" class=\"button\" x=\"%d\" y=\"24\">search</text>\n",
            WIDTH - MARGIN);
    fprintf(d->out, "<text id=\"matched\" class=\"matched\" x=\"%d\" y=\"44\"> </text>\n",
            WIDTH - MARGIN);
}

static void put_foot(struct drawing *d, uint32_t y)
{
    for (size_t i = 0; i < d->p->notes.text.len; i++)
        put_text(d, "note", MARGIN, (int)(y + LINE + i * LINE), d->p->notes.text.data[i]);
    fputs("<script><![CDATA[\n", d->out);
    fwrite(VIEW_ASSET_FLAME_SVG_JS.text, 1, VIEW_ASSET_FLAME_SVG_JS.len, d->out);
    fputs("]]></script>\n</svg>\n", d->out);
}

static void draw(struct drawing *d)
{
    const struct flame_picture *p = d->p;
    bool has_heads = p->flame->sequence != NULL;
    uint32_t y = TOP;
    for (size_t i = 0; i < p->lanes.len; i++) {
        y += has_heads ? LANE_HEAD : 0;
        d->lane_top[i] = y;
        y += p->lanes.data[i].depth * ROW;
    }
    put_head(d, y + (uint32_t)(p->notes.text.len + 1) * LINE);
    for (size_t i = 0; has_heads && i < p->lanes.len; i++)
        put_text(d, "lane", MARGIN, (int)d->lane_top[i] - 6, p->lanes.data[i].name);
    fputs("<g id=\"blocks\">\n", d->out);
    for (size_t i = 0; i < p->blocks.len; i++)
        put_block(d, &p->blocks.data[i]);
    fputs("</g>\n", d->out);
    put_foot(d, y);
}

int view_flame_write_svg(const struct view_flame *flame, FILE *out)
{
    struct flame_picture p;
    int r = flame_picture_init(flame, &p);
    if (r < 0)
        return r;
    struct drawing d = {.p = &p, .out = out, .scale = p.span ? DRAWN / (double)p.span : 0};
    buf_init(&d.text, 1 << 20);
    d.lane_top = calloc(p.lanes.len + 1, sizeof *d.lane_top);
    errno = 0;
    if (d.lane_top)
        draw(&d);
    else
        r = E_NOMEM;
    if (r == 0 && (fflush(out) != 0 || ferror(out)))
        r = errno ? err_from_errno(errno) : E_IO;
    if (r == 0)
        r = buf_error(&d.text);
    buf_release(&d.text);
    free(d.lane_top);
    flame_picture_release(&p);
    return r;
}
