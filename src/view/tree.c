/* Prints the call tree. One walk, parents before children, serves all outputs: JSON nests by the
 * emitter's sub-rows, CSV tells the depth, text draws lines from the branches that are open. */
#include "view/tree.h"

#include "base/err.h"
#include "base/progress.h"
#include "view/heading.h"
#include "view/heading_memory.h"
#include "view/run.h"

enum {
    TEXT_MAX = 64 << 20,
    UNITS_MAX = 24,       /* branches drawn to the left of a name; deeper ones as a number */
    FOLDED_PERMILLE = 10, /* of the total: folded nodes with less have no line in text */
};

enum column {
    DEPTH,
    NAME,
    FILE_,
    LINE,
    TOTAL_PERCENT,
    TOTAL,
    TOTAL_ERROR,
    TOTAL_BYTES_ERROR,
    SELF_PERCENT,
    SELF,
    SAMPLES,
    TOTAL_SAMPLES,
    SPECIAL,
    FOLDED,
    PID,
    TID,
    TEXT_NAME,
    TEXT_WHERE,
    COLUMN_COUNT
};

struct printer {
    const struct analysis_calltree *t;
    struct view_emit emit;
    struct view_column columns[COLUMN_COUNT];
    enum column which[COLUMN_COUNT];
    size_t column_count;
    uint32_t depth;     /* of the node being printed; the roots of the tree have 1 */
    VEC(uint8_t) units; /* open branches from the root on: 1 if it was the last of its parent */
    struct buf name, where;
};

/* --- columns --- */

static void add_column(struct printer *p, enum column which, struct view_column column)
{
    p->which[p->column_count] = which;
    p->columns[p->column_count++] = column;
}

static void choose_columns(struct printer *p)
{
    const struct analysis_calltree_options *o = &p->t->options;
    enum view_kind kind = view_metric_kind(p->t->weights.metric);
    /* bottom up, self is what begins there: of no interest but to who adds up */
    enum view_column_place self = o->tree.bottom_up ? VIEW_ONLY_DATA : VIEW_BOTH;

    add_column(p, DEPTH, (struct view_column){"depth", NULL, VIEW_ID, VIEW_ONLY_DATA});
    add_column(p, NAME, (struct view_column){"name", NULL, VIEW_NAME, VIEW_ONLY_DATA});
    add_column(p, FILE_, (struct view_column){"file", NULL, VIEW_PATH, VIEW_ONLY_DATA});
    add_column(p, LINE, (struct view_column){"line", NULL, VIEW_ID, VIEW_ONLY_DATA});
    add_column(p, TOTAL_PERCENT,
               (struct view_column){"total_percent", "total %", VIEW_PERCENT, VIEW_BOTH});
    add_column(p, TOTAL_ERROR,
               (struct view_column){"total_error_percent", NULL, VIEW_PERCENT, VIEW_ONLY_DATA});
    add_column(p, TOTAL, (struct view_column){"total", "total", kind, VIEW_BOTH});
    if (p->t->weights.variance)
        add_column(p, TOTAL_BYTES_ERROR, (struct view_column){"total_error", "±", kind, VIEW_BOTH});
    add_column(p, SELF_PERCENT, (struct view_column){"self_percent", "self %", VIEW_PERCENT, self});
    add_column(p, SELF, (struct view_column){"self", "self", kind, self});
    add_column(p, SAMPLES, (struct view_column){"samples", NULL, VIEW_COUNT, VIEW_ONLY_DATA});
    add_column(p, TOTAL_SAMPLES,
               (struct view_column){"total_samples", NULL, VIEW_COUNT, VIEW_ONLY_DATA});
    add_column(p, SPECIAL, (struct view_column){"special", NULL, VIEW_BOOL, VIEW_ONLY_DATA});
    add_column(p, FOLDED, (struct view_column){"folded", NULL, VIEW_COUNT, VIEW_ONLY_DATA});
    if (o->by_thread) {
        add_column(p, PID, (struct view_column){"pid", NULL, VIEW_ID, VIEW_ONLY_DATA});
        add_column(p, TID, (struct view_column){"tid", NULL, VIEW_ID, VIEW_ONLY_DATA});
    }
    add_column(p, TEXT_NAME, (struct view_column){NULL, "function", VIEW_NAME, VIEW_ONLY_TEXT});
    add_column(p, TEXT_WHERE, (struct view_column){NULL, "file:line", VIEW_PATH, VIEW_ONLY_TEXT});
}

/* --- which nodes have a line, and how it is drawn --- */

static bool is_shown(const struct printer *p, uint32_t node)
{
    const struct analysis_tree_node *n = &p->t->tree.node[node];
    if (!n->folded || p->emit.format != VIEW_TEXT)
        return true;
    double share = (double)n->total.weight / (double)max_u64(p->t->tree.total.weight, 1);
    return share * 1000 >= FOLDED_PERMILLE;
}

/* The next child that has a line; folded ones come last, so no loop is needed. */
static uint32_t shown_or_none(const struct printer *p, uint32_t node)
{
    return node && is_shown(p, node) ? node : 0;
}

static bool is_only_child(const struct printer *p, uint32_t node)
{
    const struct analysis_tree_node *n = p->t->tree.node;
    return n[n[node].parent].first_child == node && !shown_or_none(p, n[node].next);
}

static void draw_units(struct printer *p, bool is_branch)
{
    size_t count = p->units.len;
    if (count > UNITS_MAX)
        buf_printf(&p->name, "⋯%zu ", count);
    for (size_t i = count > UNITS_MAX ? count - 1 : 0; i < count; i++) {
        bool last = p->units.data[i], own = is_branch && i + 1 == count;
        buf_puts(&p->name, own && last ? "└ " : own ? "├ " : last ? "  " : "│ ");
    }
}

static struct view_cell drawn_name(struct printer *p, uint32_t node)
{
    const struct analysis_row *label = analysis_calltree_label(p->t, node);
    buf_clear(&p->name);
    draw_units(p, !is_only_child(p, node));
    if (label)
        buf_append(&p->name, label->name.text, label->name.len);
    else
        buf_printf(&p->name, "… %s more", view_units_count(p->t->tree.node[node].folded).text);
    const char *text = buf_cstr(&p->name);
    return (struct view_cell){.text = text, .len = p->name.len};
}

void view_tree_where(struct buf *out, const struct analysis_row *label)
{
    if (!label)
        return;
    buf_append(out, label->file.text, label->file.len);
    if (label->line)
        buf_printf(out, ":%u", label->line);
    if (label->tid)
        buf_printf(out, "tid %u of pid %u", label->tid, label->pid);
}

static struct view_cell where_cell(struct printer *p, const struct analysis_row *label)
{
    buf_clear(&p->where);
    view_tree_where(&p->where, label);
    const char *text = buf_cstr(&p->where);
    return (struct view_cell){.text = text, .len = p->where.len};
}

/* --- cells --- */

static double share_of(const struct printer *p, struct analysis_weight w)
{
    uint64_t total = p->t->weights.total.weight;
    return total ? (double)w.weight / (double)total : 0;
}

/* A tree that was estimated from exact counts has errors that nobody knows; those of sampled memory are in
 * a column of their own. */
static bool knows_error(const struct printer *p)
{
    return !profile_tables(p->t->weights.profile)->counts && !p->t->weights.variance;
}

static double error_of(const struct printer *p, struct analysis_weight w)
{
    if (p->t->weights.memory)
        return 0;
    return analysis_share_error(share_of(p, w), analysis_weights_worth(&p->t->weights));
}

static struct view_cell weight_cell(const struct printer *p, struct analysis_weight w)
{
    return (struct view_cell){.real = (double)w.weight * p->t->weights.metric->scale,
                              .count = w.weight};
}

static struct view_cell text_cell(const struct profile_string *text)
{
    if (!text || !text->len)
        return (struct view_cell){.absent = true};
    return (struct view_cell){.text = text->text, .len = text->len};
}

static struct view_cell id_cell(uint32_t id)
{
    return (struct view_cell){.count = id, .absent = id == 0};
}

static struct view_cell label_cell(struct printer *p, enum column which, uint32_t node)
{
    const struct analysis_row *label = analysis_calltree_label(p->t, node);
    switch (which) {
    case NAME:
        return label ? (struct view_cell){.text = label->name.text, .len = label->name.len}
                     : (struct view_cell){.absent = true};
    case FILE_:
        return text_cell(label ? &label->file : NULL);
    case LINE:
        return id_cell(label ? label->line : 0);
    case PID:
        return id_cell(label ? label->pid : 0);
    case TID:
        return id_cell(label ? label->tid : 0);
    case SPECIAL:
        return (struct view_cell){.count = label && label->special};
    case TEXT_NAME:
        return drawn_name(p, node);
    default:
        return where_cell(p, label);
    }
}

static struct view_cell cell_of(struct printer *p, enum column which, uint32_t node)
{
    const struct analysis_tree_node *n = &p->t->tree.node[node];
    switch (which) {
    case DEPTH:
        return (struct view_cell){.count = p->depth};
    case TOTAL_PERCENT:
        return (struct view_cell){.real = share_of(p, n->total) * 100};
    case TOTAL:
        return weight_cell(p, n->total);
    case TOTAL_ERROR:
        return (struct view_cell){.real = error_of(p, n->total), .absent = !knows_error(p)};
    case TOTAL_BYTES_ERROR: /* threads are told apart without it */
        return p->t->options.by_thread ? (struct view_cell){.absent = true}
                                       : view_memory_error_cell(n->variance);
    case SELF_PERCENT:
        return (struct view_cell){.real = share_of(p, n->self) * 100};
    case SELF:
        return weight_cell(p, n->self);
    case SAMPLES:
        return (struct view_cell){.count = n->self.samples};
    case TOTAL_SAMPLES:
        return (struct view_cell){.count = n->total.samples};
    case FOLDED:
        return (struct view_cell){.count = n->folded};
    default:
        return label_cell(p, which, node);
    }
}

/* --- the walk --- */

static void enter(struct printer *p, uint32_t node)
{
    p->depth++;
    if (p->emit.format == VIEW_TEXT && !is_only_child(p, node)) {
        uint8_t *unit = vec_push(&p->units);
        if (unit)
            *unit = !shown_or_none(p, p->t->tree.node[node].next);
        else
            p->emit.error = E_NOMEM;
    }
    struct view_cell cells[COLUMN_COUNT];
    for (size_t i = 0; i < p->column_count; i++)
        cells[i] = cell_of(p, p->which[i], node);
    view_emit_row_begin(&p->emit, cells);
    view_emit_sub_begin(&p->emit, "children", NULL, NULL);
}

static void leave(struct printer *p, uint32_t node)
{
    view_emit_sub_end(&p->emit);
    view_emit_row_end(&p->emit);
    p->depth--;
    if (p->units.len && !is_only_child(p, node))
        p->units.len--;
}

static void print_rows(struct printer *p)
{
    const struct analysis_tree_node *n = p->t->tree.node;
    view_emit_table_begin(&p->emit, "rows", p->columns, p->column_count, false);
    uint32_t node = p->t->tree.count ? shown_or_none(p, n[0].first_child) : 0;
    uint64_t rows = 0;
    progress_begin("writing the tree", p->t->tree.count);
    while (node && !p->emit.error) {
        enter(p, node);
        progress_reach(++rows);
        uint32_t next = shown_or_none(p, n[node].first_child);
        while (!next && node) {
            leave(p, node);
            next = shown_or_none(p, n[node].next);
            node = n[node].parent;
        }
        node = next;
    }
    view_emit_table_end(&p->emit);
}

/* --- what stands around it --- */

static double worst_error(const struct printer *p)
{
    double worst = 0;
    for (size_t i = 1; knows_error(p) && i < p->t->tree.count; i++) {
        double e = error_of(p, p->t->tree.node[i].total);
        worst = e > worst ? e : worst;
    }
    return worst;
}

static void print_facts(struct printer *p, struct json *j)
{
    const struct analysis_calltree *t = p->t;
    view_run_json(j, t->weights.profile);
    view_heading_facts(j, &t->weights);
    json_kv_text(j, "by", ANALYSIS_BY_NAMES[t->options.by]);
    json_kv_bool(j, "by_thread", t->options.by_thread);
    json_kv_bool(j, "bottom_up", t->options.tree.bottom_up);
    json_kv_u64(j, "folded", t->tree.folded);
    json_kv_real(j, "folded_total", (double)t->tree.folded_weight * t->weights.metric->scale);
    view_run_sampling_json(j, t->weights.profile);
    view_run_losses_json(j, t->weights.profile, t->weights.damaged_chunks);
}

static void print_footing(struct printer *p)
{
    const struct analysis_tree *tree = &p->t->tree;
    double whole = (double)max_u64(tree->total.weight, 1);
    if (tree->folded)
        view_emit_line(&p->emit,
                       "… and %s more branches, %s together, %s at most (--limit 0 shows all)",
                       view_units_count(tree->folded).text,
                       view_units_percent((double)tree->folded_weight * 100 / whole).text,
                       view_units_percent((double)tree->folded_heaviest * 100 / whole).text);
    view_heading_losses(&p->emit, &p->t->weights);
}

static void print_text(struct printer *p)
{
    const struct analysis_weights *w = &p->t->weights;
    if (view_is_too_short(w)) {
        view_heading_too_short(&p->emit, w);
    } else if (!w->total.samples) {
        view_heading_nothing_left(&p->emit, w);
    } else {
        view_heading_print(&p->emit, w, worst_error(p));
        print_rows(p);
        print_footing(p);
    }
}

int view_tree_print(const struct analysis_calltree *tree, FILE *out, enum view_format format,
                    struct view_style style)
{
    struct printer p = {.t = tree};
    buf_init(&p.name, TEXT_MAX);
    buf_init(&p.where, TEXT_MAX);
    choose_columns(&p);
    view_emit_init(&p.emit, out, format, style);
    if (view_emit_json(&p.emit))
        print_facts(&p, view_emit_json(&p.emit));
    if (format == VIEW_TEXT)
        print_text(&p);
    else
        print_rows(&p);
    int r = view_emit_finish(&p.emit);
    vec_release(&p.units);
    buf_release(&p.name);
    buf_release(&p.where);
    return r;
}
