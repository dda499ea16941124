/* Collapsed stacks: `main (app.py:3);f (app.py:12) 42`, root first, one line for each distinct
 * stack. The value is the number of samples, or the metric in microseconds.
 *
 * Two code objects may be the same function (a module loaded twice, two processes), and then two
 * nodes of the file's trie are the same stack for a reader of names. So the trie is folded first,
 * by the rows of a grouping by line, into one in which every path is a different text. A walk then
 * keeps the text of the current path and writes it wherever something was seen. */
#include "analysis/rows.h"
#include "analysis/trie.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/vec.h"
#include "export/export.h"

#include <errno.h>
#include <inttypes.h>

enum { PATH_BYTES_MAX = 1 << 30 };
static const size_t TEXTS_BYTES_MAX = (size_t)8 << 30; /* names that differ by line only */

struct folded {
    VEC(uint32_t) parent; /* parent < node, 0 the root, as in the profile */
    VEC(uint32_t) row;
    VEC(struct analysis_weight) weight;
};

/* A row's frame as it stands in a line, made once: rows are few, nodes are many. */
struct frame_text {
    size_t at; /* in writing.texts */
    size_t len;
};

struct writing {
    const struct analysis_rows *rows;
    const struct export_options *options;
    const struct folded *folded;
    FILE *out;
    struct frame_text *frames; /* by row */
    struct buf texts;
    struct buf path;
    VEC(size_t) marks; /* length of the path before each frame on it */
};

static int fold_node(struct folded *f, struct idxmap *map, uint32_t parent, uint32_t row,
                     uint32_t *ret_node)
{
    uint32_t hash = hash_u64((uint64_t)parent << 32 | row), at;
    IDXMAP_FIND(map, hash, i, f->parent.data[i] == parent && f->row.data[i] == row, at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)f->parent.len;
        uint32_t *p = vec_push(&f->parent), *r = vec_push(&f->row);
        if (!p || !r || !vec_push(&f->weight) || idxmap_insert(map, hash, at) < 0)
            return E_NOMEM;
        *p = parent;
        *r = row;
    }
    *ret_node = at;
    return 0;
}

static int fold(const struct analysis_rows *rows, struct folded *f)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    _cleanup_free_ uint32_t *to = malloc((t->node_count + 1) * sizeof *to);
    if (!to || !vec_push(&f->parent) || !vec_push(&f->row) || !vec_push(&f->weight))
        return E_NOMEM;
    struct idxmap map = {0};
    int r = 0;
    to[0] = 0;
    for (size_t i = 1; r == 0 && i < t->node_count; i++) {
        r = fold_node(f, &map, to[t->node_parent[i]], rows->node_row[i], &to[i]);
        if (r == 0)
            analysis_weight_add(&f->weight.data[to[i]], rows->weights->node[i]);
    }
    idxmap_release(&map);
    return r;
}

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

static uint64_t value_of(const struct writing *writing, struct analysis_weight w)
{
    const struct analysis_weights *weights = writing->rows->weights;
    /* in another tool's file samples mean little: what it weighs is what counts */
    if (!writing->options->weighted && !profile_meta_value(weights->profile, "import.unit"))
        return w.samples;
    bool is_time = weights->metric->scale == 1e-9;
    return is_time ? (w.weight + NS_PER_US / 2) / NS_PER_US : w.weight;
}

static int write_line(const struct writing *w, const char *path, size_t len,
                      struct analysis_weight weight)
{
    uint64_t value = value_of(w, weight);
    if (!value)
        return 0;
    fwrite(path, 1, len, w->out);
    fprintf(w->out, " %" PRIu64 "\n", value);
    return ferror(w->out) ? (errno ? err_from_errno(errno) : E_IO) : 0;
}

static int enter(void *ctx, uint32_t node)
{
    struct writing *w = ctx;
    size_t *mark = vec_push(&w->marks);
    if (!mark)
        return E_NOMEM;
    *mark = w->path.len;
    const struct frame_text *frame = &w->frames[w->folded->row.data[node]];
    if (w->path.len)
        buf_put_u8(&w->path, ';');
    if (frame->len)
        buf_append(&w->path, w->texts.data + frame->at, frame->len);
    if (buf_error(&w->path))
        return buf_error(&w->path);
    return write_line(w, (const char *)w->path.data, w->path.len, w->folded->weight.data[node]);
}

static void leave(void *ctx, uint32_t node ATTR_UNUSED)
{
    struct writing *w = ctx;
    w->path.len = w->marks.data[--w->marks.len];
}

static int write_stacks(const struct analysis_rows *rows, const struct export_options *options,
                        FILE *out)
{
    static const char rootless[] = "<no Python frame>";
    struct folded f = {0};
    struct writing w = {.rows = rows, .options = options, .folded = &f, .out = out};
    buf_init(&w.path, PATH_BYTES_MAX);
    buf_init(&w.texts, TEXTS_BYTES_MAX);
    int r = make_frames(&w);
    if (r == 0)
        r = fold(rows, &f);
    if (r == 0)
        r = write_line(&w, rootless, sizeof rootless - 1, rows->weights->node[RECORD_STACK_ROOT]);
    if (r == 0)
        r = analysis_trie_walk(f.parent.data, f.parent.len, enter, leave, &w);
    if (r == 0 && fflush(out) != 0)
        r = err_from_errno(errno);
    vec_release(&f.parent);
    vec_release(&f.row);
    vec_release(&f.weight);
    vec_release(&w.marks);
    buf_release(&w.path);
    buf_release(&w.texts);
    free(w.frames);
    return r;
}

int export_collapsed_write(const struct profile *profile, const struct export_options *options,
                           FILE *out)
{
    struct analysis_weights weights;
    int r = analysis_weights_init(profile, &options->query, &weights);
    if (r < 0)
        return r;
    struct analysis_rows rows;
    r = analysis_rows_init(&weights, ANALYSIS_BY_LINE, &rows);
    if (r == 0) {
        r = write_stacks(&rows, options, out);
        analysis_rows_release(&rows);
    }
    analysis_weights_release(&weights);
    return r;
}
