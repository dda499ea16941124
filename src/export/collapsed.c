/* Collapsed stacks: `main (app.py:3);f (app.py:12) 42`, root first, one line for each distinct
 * stack. The value is the number of samples, or the metric in microseconds.
 *
 * Two code objects may be the same function (a module loaded twice, two processes), and then two
 * nodes of the file's trie are the same stack for a reader of names. So equal paths are merged first,
 * by the rows of a grouping by line: then every path is a different text. A walk keeps the text of
 * the current path and writes it wherever something was seen. */
#include "analysis/merged.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/progress.h"
#include "base/vec.h"
#include "export/source.h"

enum { PATH_BYTES_MAX = 1 << 30 };
static const size_t TEXTS_BYTES_MAX = (size_t)8 << 30; /* names that differ by line only */

/* A row's frame as it stands in a line, made once: rows are few, nodes are many. */
struct frame_text {
    size_t at; /* in writing.texts */
    size_t len;
};

struct writing {
    const struct analysis_rows *rows;
    bool weighted;    /* values are the metric's, not samples */
    uint64_t time_ns; /* of all lines so far, so that their values add up to the whole, rounded */
    FILE *out;
    struct frame_text *frames; /* by row */
    struct buf texts;
    struct buf path;
    VEC(size_t) marks; /* by depth: the length of the path up to the frame there */
    struct buf buf;    /* towards the file */
};

/* A frame must not look like two, nor end the line. */
static void append_clean(struct buf *out, struct profile_string text)
{
    for (uint32_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.text[i];
        buf_put_u8(out, c == ';' ? ':' : c < 0x20 || c == 0x7f ? '_' : c);
    }
}

static void append_frame(struct buf *path, const struct analysis_row *row)
{
    append_clean(path, row->name);
    if (!row->file.len)
        return;
    buf_puts(path, " (");
    append_clean(path, row->file);
    if (row->line)
        buf_printf(path, ":%u", row->line);
    buf_put_u8(path, ')');
}

static int make_frames(struct writing *w)
{
    w->frames = calloc(w->rows->count + 1, sizeof *w->frames);
    if (!w->frames)
        return E_NOMEM;
    for (size_t i = 0; i < w->rows->count; i++) {
        if (!w->rows->row[i].total.samples && !w->rows->row[i].total.weight)
            continue; /* in no line */
        w->frames[i].at = w->texts.len;
        append_frame(&w->texts, &w->rows->row[i]);
        w->frames[i].len = w->texts.len - w->frames[i].at;
    }
    return buf_error(&w->texts);
}

static bool is_weighted(const struct analysis_weights *weights,
                        const struct export_options *options)
{
    /* in another tool's file samples mean little: what it weighs is what counts */
    return options->weighted || profile_meta_value(weights->profile, "import.unit");
}

static uint64_t to_us(uint64_t ns)
{
    return (ns + NS_PER_US / 2) / NS_PER_US;
}

static uint64_t value_of(struct writing *w, struct analysis_weight weight)
{
    if (!w->weighted)
        return weight.samples;
    if (w->rows->weights->metric->scale != 1e-9)
        return weight.weight;
    uint64_t before = to_us(w->time_ns);
    w->time_ns += weight.weight;
    return to_us(w->time_ns) - before;
}

static int write_line(struct writing *w, const void *path, size_t len,
                      struct analysis_weight weight)
{
    uint64_t value = value_of(w, weight);
    if (!value)
        return 0;
    buf_append(&w->buf, path, len);
    buf_put_u8(&w->buf, ' ');
    export_put_u64(&w->buf, value);
    buf_put_u8(&w->buf, '\n');
    return export_drain(&w->buf, w->out, false);
}

/* What every merged stack carries; the samples without a frame are not among them. */
static struct analysis_weight *weigh(const struct analysis_rows *rows,
                                     const struct analysis_merged *merged)
{
    struct analysis_weight *weight = calloc(merged->count + 1, sizeof *weight);
    size_t stacks = profile_tables(rows->weights->profile)->node_count;
    for (size_t i = 1; weight && i < stacks; i++)
        analysis_weight_add(&weight[merged->of[i]], rows->weights->node[i]);
    return weight;
}

/* The numbers of merged nodes are a walk: what is left of the path at a node is its caller's. */
static int write_walk(struct writing *w, const struct analysis_merged *merged,
                      const struct analysis_weight *weight)
{
    int r = 0;
    progress_begin("writing stacks", merged->count);
    for (size_t i = 1; r == 0 && i < merged->count; i++) {
        progress_reach(i);
        uint32_t depth = merged->depth[i];
        const struct frame_text *frame = &w->frames[merged->row[i]];
        if (!vec_reserve(&w->marks, (size_t)depth + 1))
            return E_NOMEM;
        w->path.len = depth > 1 ? w->marks.data[depth - 1] : 0;
        if (w->path.len)
            buf_put_u8(&w->path, ';');
        if (frame->len)
            buf_append(&w->path, w->texts.data + frame->at, frame->len);
        w->marks.data[depth] = w->path.len;
        r = buf_error(&w->path);
        if (r == 0)
            r = write_line(w, w->path.data, w->path.len, weight[i]);
    }
    return r;
}

static int write_stacks(const struct analysis_rows *rows, const struct export_options *options,
                        FILE *out)
{
    struct analysis_merged merged = {0};
    struct writing w = {.rows = rows, .out = out, .weighted = is_weighted(rows->weights, options)};
    buf_init(&w.path, PATH_BYTES_MAX);
    buf_init(&w.texts, TEXTS_BYTES_MAX);
    buf_init(&w.buf, (size_t)2 * PATH_BYTES_MAX);
    int r = make_frames(&w);
    if (r == 0)
        r = analysis_merged_init(rows, &merged);
    _cleanup_free_ struct analysis_weight *weight = r == 0 ? weigh(rows, &merged) : NULL;
    if (r == 0 && !weight)
        r = E_NOMEM;
    if (r == 0)
        r = write_line(&w, EXPORT_ROOTLESS, sizeof EXPORT_ROOTLESS - 1,
                       rows->weights->node[RECORD_STACK_ROOT]);
    if (r == 0)
        r = write_walk(&w, &merged, weight);
    if (r == 0)
        r = export_drain(&w.buf, out, true);
    if (r == 0)
        r = export_finish(out);
    analysis_merged_release(&merged);
    vec_release(&w.marks);
    buf_release(&w.path);
    buf_release(&w.texts);
    buf_release(&w.buf);
    free(w.frames);
    return r;
}

int export_collapsed_write(const struct profile *profile, const struct export_options *options,
                           FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_LINE, &source);
    if (r < 0)
        return r;
    r = write_stacks(&source.rows, options, out);
    export_source_release(&source);
    return r;
}
