/* From a tree or a sequence to blocks and labels. Texts are made harmless and cut here, once, so
 * that the writers only have to quote them for their format. */
#include "view/flame_picture.h"

#include "base/err.h"
#include "base/idxmap.h"
#include "base/utf8.h"
#include "view/colour.h"
#include "view/text.h"

#include <stdio.h>

enum {
    NAME_MAX_BYTES = 320,      /* of a name or a path, before escaping */
    NAME_MIN_BYTES = 24,       /* names are not cut below this to save room */
    NAMES_BYTES_MAX = 6 << 20, /* all names of a picture together: 20 MB hold them and the blocks */
    TEXT_BYTES_MAX = 64 << 10,
};

const char *const VIEW_FLAME_COLOURS[VIEW_FLAME_COLOUR_COUNT + 1] = {
#define X(id, name) [VIEW_FLAME_##id] = (name),
    VIEW_FLAME_COLOUR_LIST(X)
#undef X
};

struct making {
    const struct view_flame *f;
    struct flame_picture *p;
    uint32_t *label_of; /* for each row of the forest, plus one; 0: none yet */
    size_t row_count;
    uint32_t root_label, folded_label;
    size_t name_limit;
    struct idxmap module_map, file_map;
};

/* --- texts --- */

static bool is_continuation(char c)
{
    return ((uint8_t)c & 0xc0) == 0x80;
}

/* Escapes; what is longer than `limit` loses its middle, where `head_of_4` quarters stay in front.
 */
static char *harmless(struct profile_string s, size_t limit, size_t head_of_4)
{
    struct buf b;
    buf_init(&b, TEXT_BYTES_MAX);
    if (s.len <= limit) {
        view_text_escape(&b, s.text, s.len);
        return buf_detach(&b);
    }
    size_t head = limit * head_of_4 / 4, tail = s.len - (limit - head);
    for (int i = 0; i < 3 && head > 0 && is_continuation(s.text[head]); i++)
        head--;
    for (int i = 0; i < 3 && tail < s.len && is_continuation(s.text[tail]); i++)
        tail++;
    view_text_escape(&b, s.text, head);
    buf_puts(&b, "…");
    view_text_escape(&b, s.text + tail, s.len - tail);
    return buf_detach(&b);
}

static int intern_file(struct making *m, struct profile_string s, uint32_t *ret)
{
    char *text = harmless(s, m->name_limit, 1);
    if (!text)
        return E_NOMEM;
    uint32_t hash = hash_bytes(text, strlen(text)), at;
    IDXMAP_FIND(&m->file_map, hash, i, strcmp(m->p->files.data[i], text) == 0, at);
    if (at != IDXMAP_NONE) {
        free(text);
        *ret = at;
        return 0;
    }
    char **slot = vec_push(&m->p->files);
    if (!slot) {
        free(text);
        return E_NOMEM;
    }
    *slot = text;
    *ret = (uint32_t)m->p->files.len - 1;
    return idxmap_insert(&m->file_map, hash, *ret);
}

static int intern_module(struct making *m, struct profile_string file, uint32_t *ret)
{
    _cleanup_free_ char *dotted = analysis_module_name(file.text, file.len);
    if (!dotted)
        return E_NOMEM;
    struct profile_string s = {dotted, (uint32_t)strlen(dotted)};
    char *text = harmless(s, m->name_limit, 1);
    if (!text)
        return E_NOMEM;
    uint32_t hash = hash_bytes(text, strlen(text)), at;
    IDXMAP_FIND(&m->module_map, hash, i, strcmp(m->p->modules.data[i].name, text) == 0, at);
    if (at != IDXMAP_NONE) {
        free(text);
        *ret = at;
        return 0;
    }
    struct flame_module *slot = vec_push(&m->p->modules);
    if (!slot) {
        free(text);
        return E_NOMEM;
    }
    *slot = (struct flame_module){text, view_colour_module_hue(dotted)};
    *ret = (uint32_t)m->p->modules.len - 1;
    return idxmap_insert(&m->module_map, hash, *ret);
}

/* --- labels --- */

static int add_label(struct making *m, struct flame_label label, uint32_t *ret)
{
    struct flame_label *slot = label.name ? vec_push(&m->p->labels) : NULL;
    if (!slot) {
        free(label.name);
        return E_NOMEM;
    }
    *slot = label;
    *ret = (uint32_t)m->p->labels.len - 1;
    return 0;
}

static char *thread_name(const struct profile_tables *t, uint32_t thread, bool with_process)
{
    const struct record_thread *th = &t->threads[thread];
    struct buf b;
    buf_init(&b, TEXT_BYTES_MAX);
    char *name = harmless(t->strings[th->name], NAME_MAX_BYTES, 3);
    if (name && *name)
        buf_puts(&b, name);
    else
        buf_printf(&b, "thread %u", th->tid);
    free(name);
    if (with_process)
        buf_printf(&b, " (process %u)", t->processes[th->process].pid);
    return buf_detach(&b);
}

static bool has_many_processes(const struct analysis_weights *w)
{
    size_t seen = 0, count = profile_tables(w->profile)->process_count;
    for (size_t i = 0; i < count; i++)
        seen += w->process[i].samples != 0;
    return seen > 1;
}

static const struct analysis_row *code_row(const struct view_flame *f, uint32_t row)
{
    bool is_before = f->before && row >= f->rows->count;
    return is_before ? &f->before->row[row - f->rows->count] : &f->rows->row[row];
}

static int make_label(struct making *m, uint32_t row, uint32_t *ret)
{
    const struct view_flame *f = m->f;
    struct flame_label label = {0};
    if (f->by_thread && row >= f->rows->count) {
        const struct analysis_weights *w = f->rows->weights;
        label.kind = FLAME_THREAD;
        label.name = thread_name(profile_tables(w->profile), row - (uint32_t)f->rows->count,
                                 has_many_processes(w));
        return add_label(m, label, ret);
    }
    const struct analysis_row *r = code_row(f, row);
    label.kind = r->special ? FLAME_SPECIAL : FLAME_CODE;
    label.line = r->line;
    int rc = 0;
    if (r->file.len)
        rc = intern_file(m, r->file, &label.file);
    if (rc == 0 && r->file.len && !r->special)
        rc = intern_module(m, r->file, &label.module);
    if (rc < 0)
        return rc;
    uint32_t hash = hash_bytes(r->name.text, r->name.len);
    label.shade = hash % FLAME_SHADES;
    label.hue = label.module ? m->p->modules.data[label.module].hue : hash / FLAME_SHADES % 360;
    label.name = harmless(r->name, m->name_limit, 3);
    return add_label(m, label, ret);
}

static int label_of(struct making *m, uint32_t row, uint32_t folded, uint32_t *ret)
{
    if (folded || row == ANALYSIS_ROW_NONE) {
        *ret = folded ? m->folded_label : m->root_label;
        return 0;
    }
    if (!m->label_of[row]) {
        uint32_t label;
        int r = make_label(m, row, &label);
        if (r < 0)
            return r;
        m->label_of[row] = label + 1;
    }
    *ret = m->label_of[row] - 1;
    return 0;
}

/* Names together must fit: where they would not, every one is cut shorter. */
static size_t choose_limit(const struct making *m, const uint8_t *used)
{
    size_t limit = NAME_MAX_BYTES;
    for (; limit > NAME_MIN_BYTES; limit = limit * 2 / 3) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < m->row_count && bytes <= NAMES_BYTES_MAX; i++) {
            if (!used[i] || (m->f->by_thread && i >= m->f->rows->count))
                continue;
            const struct analysis_row *row = code_row(m->f, (uint32_t)i);
            bytes += 32 + min_u64(row->name.len, limit) + min_u64(row->file.len, limit) / 4;
        }
        if (bytes <= NAMES_BYTES_MAX)
            break;
    }
    return limit;
}

static void mark_used(const struct view_flame *f, uint8_t *used)
{
    for (size_t i = 0; f->tree && i < f->tree->count; i++)
        if (f->tree->node[i].row != ANALYSIS_ROW_NONE)
            used[f->tree->node[i].row] = 1;
    for (size_t i = 0; f->sequence && i < f->sequence->count; i++)
        if (f->sequence->block[i].row != ANALYSIS_ROW_NONE)
            used[f->sequence->block[i].row] = 1;
}

static int begin_labels(struct making *m)
{
    const struct view_flame *f = m->f;
    const struct profile_tables *t = profile_tables(f->rows->weights->profile);
    m->row_count = f->rows->count + (f->before ? f->before->count : t->thread_count);
    m->label_of = calloc(m->row_count + 1, sizeof *m->label_of);
    _cleanup_free_ uint8_t *used = calloc(m->row_count + 1, 1);
    if (!m->label_of || !used)
        return E_NOMEM;
    mark_used(f, used);
    m->name_limit = choose_limit(m, used);
    struct flame_module *none = vec_push(&m->p->modules);
    char **no_file = vec_push(&m->p->files);
    if (!none || !no_file)
        return E_NOMEM;
    none->name = strdup("");
    *no_file = strdup("");
    if (!none->name || !*no_file)
        return E_NOMEM;
    int r = add_label(m, (struct flame_label){.kind = FLAME_ROOT, .name = strdup("all")},
                      &m->root_label);
    if (r == 0)
        r = add_label(m, (struct flame_label){.kind = FLAME_FOLDED, .name = strdup("…")},
                      &m->folded_label);
    return r;
}

/* --- blocks --- */

static int add_block(struct making *m, struct flame_block block, uint32_t row)
{
    int r = label_of(m, row, block.folded, &block.label);
    struct flame_block *slot = r == 0 ? vec_push(&m->p->blocks) : NULL;
    if (!slot)
        return r < 0 ? r : E_NOMEM;
    *slot = block;
    struct flame_lane *lane = &m->p->lanes.data[block.lane];
    lane->depth = (uint32_t)max_u64(lane->depth, block.depth + 1);
    if (!block.folded)
        m->p->hottest = max_u64(m->p->hottest, block.self.weight);
    if (row != ANALYSIS_ROW_NONE && m->f->before) {
        double change = flame_change(m->p, &block);
        change = change < 0 ? -change : change;
        if (change > m->p->largest_change)
            m->p->largest_change = change;
    }
    return 0;
}

static struct flame_block block_of(const struct analysis_tree *tree, uint32_t node)
{
    const struct analysis_tree_node *n = &tree->node[node];
    struct flame_block b = {
        .folded = n->folded, .width = n->total.weight, .self = n->self, .total = n->total};
    if (tree->before_self) {
        b.before_self = tree->before_self[node];
        b.before_total = tree->before_total[node];
    }
    return b;
}

/* Children stand side by side from the left edge of their parent; what remains is its self. */
static int lay_tree(struct making *m)
{
    const struct analysis_tree *tree = m->f->tree;
    struct flame_lane *lane = vec_push(&m->p->lanes);
    _cleanup_free_ uint64_t *edge = calloc(tree->count + 1, sizeof *edge);
    _cleanup_free_ uint32_t *depth = calloc(tree->count + 1, sizeof *depth);
    if (!lane || !edge || !depth)
        return E_NOMEM;
    lane->name = strdup("");
    m->p->total = lane->total = tree->total;
    m->p->before = tree->before;
    m->p->span = tree->total.weight;
    int r = lane->name ? 0 : E_NOMEM;
    uint32_t node = 0;
    do {
        if (r < 0)
            return r;
        struct flame_block b = block_of(tree, node);
        uint32_t parent = tree->node[node].parent;
        if (node) {
            depth[node] = depth[parent] + 1;
            b.x = edge[parent];
            edge[parent] += b.width;
        }
        edge[node] = b.x;
        b.depth = depth[node];
        r = add_block(m, b, tree->node[node].row);
        node = analysis_tree_next(tree, node);
    } while (node);
    return r;
}

static int lay_sequence(struct making *m)
{
    const struct analysis_sequence *s = m->f->sequence;
    const struct analysis_weights *w = m->f->rows->weights;
    bool many = has_many_processes(w);
    m->p->total = w->total;
    m->p->span = s->to_ns - s->from_ns;
    m->p->from_ns = s->from_ns;
    for (size_t i = 0; i < s->lane_count; i++) {
        struct flame_lane *lane = vec_push(&m->p->lanes);
        if (!lane)
            return E_NOMEM;
        lane->name = thread_name(profile_tables(w->profile), s->lane[i].thread, many);
        lane->total = s->lane[i].total;
        if (!lane->name)
            return E_NOMEM;
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->count; i++) {
        const struct analysis_block *b = &s->block[i];
        r = add_block(m,
                      (struct flame_block){.depth = b->depth,
                                           .lane = b->lane,
                                           .folded = b->folded,
                                           .x = b->start_ns - s->from_ns,
                                           .width = b->end_ns - b->start_ns,
                                           .self = b->self,
                                           .total = b->total},
                      b->row);
    }
    return r;
}

int flame_picture_init(const struct view_flame *flame, struct flame_picture *ret)
{
    struct flame_picture p = {.flame = flame};
    struct making m = {.f = flame, .p = &p};
    buf_init(&p.title, TEXT_BYTES_MAX);
    int r = begin_labels(&m);
    if (r == 0)
        r = flame->tree ? lay_tree(&m) : lay_sequence(&m);
    if (r == 0)
        r = flame_heading_fill(&p);
    free(m.label_of);
    idxmap_release(&m.module_map);
    idxmap_release(&m.file_map);
    if (r < 0) {
        flame_picture_release(&p);
        return r;
    }
    *ret = p;
    return 0;
}

void flame_picture_release(struct flame_picture *p)
{
    for (size_t i = 0; i < p->labels.len; i++)
        free(p->labels.data[i].name);
    for (size_t i = 0; i < p->modules.len; i++)
        free(p->modules.data[i].name);
    for (size_t i = 0; i < p->files.len; i++)
        free(p->files.data[i]);
    for (size_t i = 0; i < p->lanes.len; i++)
        free(p->lanes.data[i].name);
    for (size_t i = 0; i < p->facts.text.len; i++)
        free(p->facts.text.data[i]);
    for (size_t i = 0; i < p->notes.text.len; i++)
        free(p->notes.text.data[i]);
    vec_release(&p->labels);
    vec_release(&p->modules);
    vec_release(&p->files);
    vec_release(&p->lanes);
    vec_release(&p->facts.text);
    vec_release(&p->notes.text);
    vec_release(&p->blocks);
    buf_release(&p->title);
}
