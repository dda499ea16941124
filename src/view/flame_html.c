/* The page: the template flame.html with its gaps filled in. The blocks are columns of numbers in a
 * JSON text that the script reads; totals and places follow from the selves and the order, so they
 * are not written. */
#include "base/err.h"
#include "view/assets.h"
#include "view/flame.h"
#include "view/flame_picture.h"
#include "view/flame_text.h"
#include "view/heading.h"

#include <errno.h>
#include <inttypes.h>

/* --- data --- */

static void put_list(FILE *out, const char *key, char *const *texts, size_t count)
{
    fprintf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < count; i++) {
        if (i)
            putc(',', out);
        flame_put_json(out, texts[i]);
    }
    putc(']', out);
}

static void put_labels(FILE *out, const struct flame_picture *p)
{
    fputs(",\"modules\":[", out);
    for (size_t i = 0; i < p->modules.len; i++) {
        if (i)
            putc(',', out);
        flame_put_json(out, p->modules.data[i].name);
    }
    putc(']', out);
    put_list(out, "files", p->files.data, p->files.len);
    fputs(",\n\"labels\":[", out);
    for (size_t i = 0; i < p->labels.len; i++) {
        const struct flame_label *l = &p->labels.data[i];
        fputs(i ? ",\n[" : "\n[", out);
        flame_put_json(out, l->name);
        fprintf(out, ",%d,%u,%u,%u,%u,%u]", (int)l->kind, l->module, l->file, l->line, l->hue,
                l->shade);
    }
    putc(']', out);
}

static void put_lanes(FILE *out, const struct flame_picture *p)
{
    fputs(",\n\"lanes\":[", out);
    for (size_t i = 0; i < p->lanes.len; i++) {
        const struct flame_lane *l = &p->lanes.data[i];
        fputs(i ? ",[" : "[", out);
        flame_put_json(out, l->name);
        fprintf(out, ",%u,%" PRIu64 ",%" PRIu64 "]", l->depth, l->total.weight, l->total.samples);
    }
    putc(']', out);
}

enum column {
    COLUMN_DEPTH,
    COLUMN_LABEL,
    COLUMN_SELF,
    COLUMN_SAMPLES,
    COLUMN_TREE_ENDS, /* the rest is along time, or in two runs only */
    COLUMN_LANE = COLUMN_TREE_ENDS,
    COLUMN_START,
    COLUMN_WIDTH,
    COLUMN_TOTAL,
    COLUMN_TOTAL_SAMPLES,
    COLUMN_TIME_ENDS,
    COLUMN_BEFORE = COLUMN_TIME_ENDS,
    COLUMN_BEFORE_SAMPLES,
    COLUMN_COUNT,
};

static uint64_t cell(const struct flame_block *b, enum column column)
{
    switch (column) {
    case COLUMN_DEPTH:
        return b->depth;
    case COLUMN_LABEL:
        return b->label;
    case COLUMN_SELF:
        return b->self.weight;
    case COLUMN_SAMPLES:
        return b->self.samples;
    case COLUMN_LANE:
        return b->lane;
    case COLUMN_START:
        return b->x;
    case COLUMN_WIDTH:
        return b->width;
    case COLUMN_TOTAL:
        return b->total.weight;
    case COLUMN_TOTAL_SAMPLES:
        return b->total.samples;
    case COLUMN_BEFORE:
        return b->before_self.weight;
    default:
        return b->before_self.samples;
    }
}

static void put_column(FILE *out, const struct flame_picture *p, enum column column)
{
    static const char *const names[COLUMN_COUNT] = {
        [COLUMN_DEPTH] = "depth",
        [COLUMN_LABEL] = "label",
        [COLUMN_SELF] = "self",
        [COLUMN_SAMPLES] = "samples",
        [COLUMN_LANE] = "lane",
        [COLUMN_START] = "start",
        [COLUMN_WIDTH] = "width",
        [COLUMN_TOTAL] = "total",
        [COLUMN_TOTAL_SAMPLES] = "totalSamples",
        [COLUMN_BEFORE] = "before",
        [COLUMN_BEFORE_SAMPLES] = "beforeSamples",
    };
    fprintf(out, ",\n\"%s\":[", names[column]);
    for (size_t i = 0; i < p->blocks.len; i++) {
        if (i)
            putc_unlocked(',', out);
        flame_put_u64(out, cell(&p->blocks.data[i], column));
    }
    putc(']', out);
}

static void put_blocks(FILE *out, const struct flame_picture *p)
{
    for (enum column c = 0; c < COLUMN_TREE_ENDS; c++)
        put_column(out, p, c);
    for (enum column c = COLUMN_LANE; p->flame->sequence && c < COLUMN_TIME_ENDS; c++)
        put_column(out, p, c);
    for (enum column c = COLUMN_BEFORE; p->flame->before && c < COLUMN_COUNT; c++)
        put_column(out, p, c);
    fputs(",\n\"folded\":[", out);
    bool any = false;
    for (size_t i = 0; i < p->blocks.len; i++)
        if (p->blocks.data[i].folded) {
            fprintf(out, "%s[%zu,%u]", any ? "," : "", i, p->blocks.data[i].folded);
            any = true;
        }
    putc(']', out);
}

static void put_data(FILE *out, struct flame_picture *p)
{
    const struct view_flame *f = p->flame;
    const struct analysis_metric *metric = f->rows->weights->metric;
    fputs("{\"title\":", out);
    flame_put_json(out, buf_cstr(&p->title));
    put_list(out, "facts", p->facts.text.data, p->facts.text.len);
    put_list(out, "notes", p->notes.text.data, p->notes.text.len);
    fprintf(out, ",\n\"kind\":\"%s\",\"diff\":%s,\"bottomUp\":%s,\"colour\":\"%s\"",
            f->sequence ? "time" : "tree", f->before ? "true" : "false",
            f->bottom_up ? "true" : "false", VIEW_FLAME_COLOURS[f->colour]);
    fprintf(out, ",\"metric\":\"%s\",\"unit\":\"%s\",\"scale\":%.17g", metric->name, metric->unit,
            metric->scale);
    fprintf(out, ",\"noun\":[\"%s\",\"%s\"]", view_heading_unit(f->rows->weights, false),
            view_heading_unit(f->rows->weights, true));
    fprintf(out, ",\"span\":%" PRIu64 ",\"from\":%" PRIu64, p->span, p->from_ns);
    fprintf(out, ",\"whole\":%" PRIu64 ",\"wholeSamples\":%" PRIu64, p->total.weight,
            p->total.samples);
    fprintf(out, ",\"wholeBefore\":%" PRIu64 ",\"wholeBeforeSamples\":%" PRIu64, p->before.weight,
            p->before.samples);
    put_labels(out, p);
    put_lanes(out, p);
    put_blocks(out, p);
    putc('}', out);
}

/* --- the page --- */

static void put_asset(FILE *out, const struct view_asset *asset)
{
    fwrite(asset->text, 1, asset->len, out);
}

/* Only our own script and style, and no way out. */
static void put_policy(FILE *out)
{
    fprintf(out,
            "default-src &#39;none&#39;; script-src &#39;sha256-%s&#39;; style-src "
            "&#39;sha256-%s&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;",
            VIEW_ASSET_FLAME_JS.sha256, VIEW_ASSET_FLAME_CSS.sha256);
}

static void fill_gap(FILE *out, struct flame_picture *p, const char *name, size_t len)
{
    if (strncmp(name, "policy", len) == 0)
        put_policy(out);
    else if (strncmp(name, "title", len) == 0)
        flame_put_markup(out, buf_cstr(&p->title));
    else if (strncmp(name, "style", len) == 0)
        put_asset(out, &VIEW_ASSET_FLAME_CSS);
    else if (strncmp(name, "script", len) == 0)
        put_asset(out, &VIEW_ASSET_FLAME_JS);
    else if (strncmp(name, "data", len) == 0)
        put_data(out, p);
}

/* Copies the template; a gap is {{name}}. */
static void put_page(FILE *out, struct flame_picture *p)
{
    const char *at = VIEW_ASSET_FLAME_HTML.text;
    for (;;) {
        const char *open = strstr(at, "{{"), *close = open ? strstr(open, "}}") : NULL;
        if (!close)
            break;
        fwrite(at, 1, (size_t)(open - at), out);
        fill_gap(out, p, open + 2, (size_t)(close - open) - 2);
        at = close + 2;
    }
    fputs(at, out);
}

int view_flame_write_html(const struct view_flame *flame, FILE *out)
{
    struct flame_picture p;
    int r = flame_picture_init(flame, &p);
    if (r < 0)
        return r;
    errno = 0;
    put_page(out, &p);
    flame_picture_release(&p);
    if (fflush(out) != 0 || ferror(out))
        return errno ? err_from_errno(errno) : E_IO;
    return 0;
}
