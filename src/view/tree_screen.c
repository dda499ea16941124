/* The browser. Each key changes the model, then everything is drawn again: ncurses sends only what
 * differs. Another metric or turn makes another tree, and takes the place of the old one once it is
 * there. */
#include "view/tree_screen.h"

#include "base/err.h"
#include "profile/identity.h"
#include "view/heading.h"
#include "view/run.h"
#include "view/text.h"
#include "view/tree.h"
#include "view/tree_model.h"

#include <stdio.h>

enum {
    TEXT_MAX = 64 << 20,
    PATTERN_MAX = 512, /* bytes of a search */
    MESSAGE_SIZE = 160,
    /* columns from which a part of a line is worth its place */
    WIDTH_SELF = 44,
    WIDTH_TOTAL = 64,
    WIDTH_WHERE = 90,
    INDENT = 2,
    HOT_PERCENT = 10,
    WARM_PERCENT = 2,
    NUMBER_WIDTH = 8,
};

/* A tree and the way through it. */
struct shown {
    struct analysis_calltree *tree; /* owned */
    struct tree_model model;
};

struct browser {
    struct screen *screen;
    const struct profile *profile;
    struct analysis_query query;
    struct shown now;
    size_t rows, columns;
    char message[MESSAGE_SIZE];
    bool is_typing; /* a search */
    struct buf pattern;
    regex_t match;
    bool has_match;
    struct buf raw, text, fit;
};

static const char *const HELP[] = {
    "up down  k j       one line",
    "PgUp PgDn          one page",
    "Home End  g G      first, last line",
    "right  l           open, or to the first call",
    "left  h            close, or to the caller",
    "Enter  blank       open or close",
    "*  e               down the heaviest way",
    "H                  to the hottest; again: the next",
    "/                  search (regular expression)",
    "n N                next match, the one before",
    "s                  order: total, self, name",
    "m                  next metric",
    "b                  bottom up, top down",
    "?                  this help",
    "q                  quit",
};

static void shown_release(struct shown *s)
{
    tree_model_release(&s->model);
    if (s->tree)
        analysis_calltree_release(s->tree);
    free(s->tree);
    *s = (struct shown){0};
}

/* --- drawing --- */

/* Puts (escaped) text in `width` columns; returns the column after them. */
static size_t put(struct browser *b, size_t row, size_t column, size_t width,
                  enum screen_style style, const struct buf *text, enum view_text_cut cut)
{
    if (!text->len)
        return column + width;
    buf_clear(&b->fit);
    view_text_fit(&b->fit, (const char *)text->data, text->len, width, cut);
    screen_put(b->screen, row, column, style, (const char *)b->fit.data, b->fit.len);
    return column + width;
}

static double percent_of(const struct browser *b, struct analysis_weight w)
{
    uint64_t total = max_u64(b->now.tree->weights.total.weight, 1);
    return (double)w.weight * 100 / (double)total;
}

static enum screen_style heat_style(double percent)
{
    return percent >= HOT_PERCENT    ? SCREEN_HOT
           : percent >= WARM_PERCENT ? SCREEN_WARM
                                     : SCREEN_PLAIN;
}

static bool has_self(const struct browser *b)
{
    return b->columns >= WIDTH_SELF && !b->now.tree->options.tree.bottom_up;
}

static size_t put_number(struct browser *b, size_t row, size_t column, enum screen_style style,
                         const char *number)
{
    buf_clear(&b->text);
    size_t used = view_text_width(number, strlen(number));
    for (; used < NUMBER_WIDTH; used++)
        buf_put_u8(&b->text, ' ');
    buf_puts(&b->text, number);
    return put(b, row, column, NUMBER_WIDTH, style, &b->text, VIEW_CUT_RIGHT) + 1;
}

static size_t draw_numbers(struct browser *b, size_t row, const struct analysis_tree_node *n,
                           bool is_chosen)
{
    double total = percent_of(b, n->total), self = percent_of(b, n->self);
    const struct analysis_metric *metric = b->now.tree->weights.metric;
    bool bottom_up = b->now.tree->options.tree.bottom_up;
    enum screen_style plain = is_chosen ? SCREEN_CHOSEN : SCREEN_PLAIN;
    enum screen_style heat = is_chosen ? plain : heat_style(bottom_up ? total : self);
    size_t at = put_number(b, row, 0, bottom_up ? heat : plain, view_units_percent(total).text);
    if (has_self(b))
        at = put_number(b, row, at, heat, view_units_percent(self).text);
    if (b->columns >= WIDTH_TOTAL)
        at = put_number(b, row, at, plain, view_weight_text(metric, n->total.weight).text);
    return at;
}

/* Indentation, a mark that says whether it is open, and the name. */
static void make_name(struct browser *b, struct tree_line line, size_t width)
{
    const struct analysis_tree_node *n = &b->now.tree->tree.node[line.node];
    const struct analysis_row *label = analysis_calltree_label(b->now.tree, line.node);
    size_t indent = (size_t)line.level * INDENT;
    buf_clear(&b->text);
    if (indent > width / 2) { /* too deep to be drawn: as a number */
        buf_printf(&b->text, "⋯%u ", line.level);
        indent = 0;
    }
    for (; indent; indent--)
        buf_put_u8(&b->text, ' ');
    buf_puts(&b->text, !n->first_child ? "  " : b->now.model.open[line.node] ? "▾ " : "▸ ");
    if (label)
        view_text_escape(&b->text, label->name.text, label->name.len);
    else
        buf_printf(&b->text, "… %s more", view_units_count(n->folded).text);
}

static void draw_line(struct browser *b, size_t row, struct tree_line line, bool is_chosen)
{
    const struct analysis_row *label = analysis_calltree_label(b->now.tree, line.node);
    const struct tree_model *m = &b->now.model;
    bool is_found = m->found && m->found[line.node];
    size_t at = draw_numbers(b, row, &b->now.tree->tree.node[line.node], is_chosen);
    size_t width = b->columns > at ? b->columns - at : 0;
    size_t where = b->columns >= WIDTH_WHERE ? width * 2 / 5 : 0;
    make_name(b, line, width - where);
    at = put(b, row, at, width - where - (where > 0),
             is_found    ? SCREEN_FOUND
             : is_chosen ? SCREEN_CHOSEN
             : label     ? SCREEN_PLAIN
                         : SCREEN_FAINT,
             &b->text, VIEW_CUT_MIDDLE);
    if (where) {
        buf_clear(&b->raw);
        buf_clear(&b->text);
        view_tree_where(&b->raw, label);
        view_text_escape(&b->text, (const char *)b->raw.data, b->raw.len);
        put(b, row, at + 1, where, SCREEN_FAINT, &b->text, VIEW_CUT_LEFT);
    }
    if (is_chosen)
        screen_fill(b->screen, row, 0, SCREEN_CHOSEN);
}

static void draw_header(struct browser *b)
{
    const struct analysis_weights *w = &b->now.tree->weights;
    char id[PROFILE_ID_SIZE];
    profile_id_text(b->profile, id);
    buf_clear(&b->text);
    buf_printf(&b->text, "%s %s  %s  by %s  run %.8s  ", w->metric->name,
               view_weight_text(w->metric, w->total.weight).text,
               b->now.tree->options.tree.bottom_up ? "bottom up" : "top down",
               TREE_SORT_NAMES[b->now.model.sort], id);
    view_run_command(b->profile, &b->text);
    put(b, 0, 0, b->columns, SCREEN_CHOSEN, &b->text, VIEW_CUT_RIGHT);
    screen_fill(b->screen, 0, 0, SCREEN_CHOSEN);
}

static void draw_titles(struct browser *b, size_t row)
{
    size_t at = put_number(b, row, 0, SCREEN_STRONG, "total %");
    if (has_self(b))
        at = put_number(b, row, at, SCREEN_STRONG, "self %");
    if (b->columns >= WIDTH_TOTAL)
        at = put_number(b, row, at, SCREEN_STRONG, "total");
    size_t width = b->columns > at ? b->columns - at : 0;
    screen_put(b->screen, row, at, SCREEN_STRONG, "  function", width < 10 ? width : 10);
    if (b->columns >= WIDTH_WHERE)
        screen_put(b->screen, row, b->columns - width * 2 / 5, SCREEN_STRONG, "file:line", 9);
}

/* What stands in the last line: the search that is typed, a message, or where we are. */
static void make_status(struct browser *b)
{
    const struct tree_model *m = &b->now.model;
    const struct analysis_tree *tree = &b->now.tree->tree;
    buf_clear(&b->text);
    if (b->is_typing) {
        buf_puts(&b->text, "/");
        view_text_escape(&b->text, (const char *)b->pattern.data, b->pattern.len);
        return;
    }
    if (*b->message) {
        view_text_escape(&b->text, b->message, strlen(b->message));
        return;
    }
    buf_printf(&b->text, "?=help %zu/%zu ", m->lines.len ? m->cursor + 1 : 0, m->lines.len);
    if (tree->folded)
        buf_printf(
            &b->text, " %s folded (%s) ", view_units_count(tree->folded).text,
            view_units_percent(percent_of(b, (struct analysis_weight){tree->folded_weight, 0}))
                .text);
    if (m->found)
        buf_printf(&b->text, " %s found ", view_units_count(m->found_count).text);
    buf_clear(&b->raw);
    view_tree_where(&b->raw, analysis_calltree_label(b->now.tree, tree_model_node(m)));
    buf_puts(&b->text, " ");
    view_text_escape(&b->text, (const char *)b->raw.data, b->raw.len);
}

static void draw(struct browser *b)
{
    struct tree_model *m = &b->now.model;
    screen_size(b->screen, &b->rows, &b->columns);
    screen_clear(b->screen);
    /* the tree comes first, then the status, then what stands above */
    size_t above = b->rows >= 5 ? 2 : b->rows >= 3 ? 1 : 0, below = b->rows >= 2;
    tree_model_resize(m, b->rows > above + below ? b->rows - above - below : 1);
    for (size_t i = 0; i < m->height && m->top + i < m->lines.len; i++)
        draw_line(b, above + i, m->lines.data[m->top + i], m->top + i == m->cursor);
    if (above)
        draw_header(b);
    if (above > 1)
        draw_titles(b, 1);
    if (below) {
        make_status(b);
        size_t width = view_text_width((const char *)b->text.data, b->text.len);
        enum view_text_cut cut = b->is_typing ? VIEW_CUT_LEFT : VIEW_CUT_RIGHT;
        put(b, b->rows - 1, 0, b->columns, b->is_typing ? SCREEN_PLAIN : SCREEN_FAINT, &b->text,
            cut);
        if (b->is_typing)
            screen_cursor(b->screen, b->rows - 1, width < b->columns ? width : b->columns - 1);
    }
    screen_show(b->screen);
}

static void say(struct browser *b, const char *text)
{
    snprintf(b->message, sizeof b->message, "%s", text);
}

/* --- another question --- */

/* Makes the tree for a query; *ret_tree is NULL where there is nothing of that metric. */
static int make_tree(const struct browser *b, const struct analysis_query *query,
                     const struct analysis_calltree_options *options,
                     struct analysis_calltree **ret_tree)
{
    struct analysis_calltree *tree = calloc(1, sizeof *tree);
    int r = tree ? analysis_calltree_weigh(tree, b->profile, query) : E_NOMEM;
    bool is_empty = r == 0 && !tree->weights.total.weight;
    if (r == 0 && !is_empty)
        r = analysis_calltree_grow(tree, query, options);
    if (r < 0 || is_empty) {
        if (tree)
            analysis_calltree_release(tree);
        free(tree);
        tree = NULL;
    }
    *ret_tree = tree;
    return r;
}

/* The new tree takes the old one's place; `follows`: at the same place, with the same things open. */
static int replace(struct browser *b, struct analysis_calltree *tree, bool follows)
{
    struct shown next = {.tree = tree};
    int r = tree_model_init(&next.model, tree);
    next.model.sort = b->now.model.sort;
    if (r == 0 && follows)
        r = tree_model_follow(&next.model, &b->now.model);
    else if (r == 0)
        r = tree_model_sort(&next.model, next.model.sort);
    if (r == 0 && b->has_match)
        r = tree_model_search(&next.model, &b->match);
    if (r < 0) {
        shown_release(&next);
        return r;
    }
    shown_release(&b->now);
    b->now = next;
    return 0;
}

static int next_metric(struct browser *b)
{
    struct analysis_query query = b->query;
    struct analysis_calltree *tree = NULL;
    say(b, "weighing …");
    draw(b);
    say(b, "there is no other metric in this recording");
    int r = 0;
    while (r == 0 && !tree) {
        query.metric = query.metric[1].name ? query.metric + 1 : ANALYSIS_METRICS;
        if (query.metric == b->query.metric)
            return 0;
        /* a moment is not asked for here, and what stands in for another metric is shown already */
        const struct analysis_metric *real = analysis_metric_of(b->profile, query.metric);
        if ((real->is_at && !query.has_at) || real == b->now.tree->weights.metric)
            continue;
        r = make_tree(b, &query, &b->now.tree->options, &tree);
    }
    if (r == 0)
        r = replace(b, tree, true);
    if (r == 0) {
        b->query = query;
        say(b, b->now.tree->weights.metric->text);
    }
    return r;
}

static int turn_over(struct browser *b)
{
    struct analysis_calltree_options options = b->now.tree->options;
    struct analysis_calltree *tree;
    options.tree.bottom_up = !options.tree.bottom_up;
    say(b, "turning …");
    draw(b);
    say(b,
        options.tree.bottom_up ? "bottom up: what took time; under it, who called it" : "top down");
    int r = make_tree(b, &b->query, &options, &tree);
    return r == 0 && tree ? replace(b, tree, false) : r;
}

/* --- searching --- */

/* Letters match either case, unless the pattern has capitals. */
static int search(struct browser *b)
{
    const char *pattern = buf_cstr(&b->pattern);
    bool has_capital = false;
    for (const char *p = pattern; *p; p++)
        has_capital |= *p >= 'A' && *p <= 'Z';
    if (b->has_match)
        regfree(&b->match);
    int wrong =
        regcomp(&b->match, pattern, REG_EXTENDED | REG_NOSUB | (has_capital ? 0 : REG_ICASE));
    b->has_match = !wrong;
    if (wrong) {
        char why[MESSAGE_SIZE / 2];
        regerror(wrong, &b->match, why, sizeof why);
        snprintf(b->message, sizeof b->message, "not a regular expression: %s", why);
        return 0;
    }
    int r = tree_model_search(&b->now.model, &b->match);
    if (r == 0 && !b->now.model.found_count)
        say(b, "nothing matches");
    return r == 0 ? tree_model_next(&b->now.model, false) : r;
}

static int type_key(struct browser *b, int key)
{
    if (key == SCREEN_KEY_ENTER || key == SCREEN_KEY_ESCAPE) {
        b->is_typing = false;
        return key == SCREEN_KEY_ENTER && b->pattern.len ? search(b) : 0;
    }
    if (key == SCREEN_KEY_BACKSPACE && !b->pattern.len)
        b->is_typing = false; /* one too many leaves, as in less and vi */
    screen_edit(&b->pattern, key);
    return 0;
}

static int go_on_searching(struct browser *b, bool backwards)
{
    if (!b->has_match)
        say(b, "nothing was searched for yet: / does");
    else if (!b->now.model.found_count)
        say(b, "nothing matches");
    return tree_model_next(&b->now.model, backwards);
}

/* --- keys --- */

/* Any other key than these moves by nothing. */
static void move(struct browser *b, int key)
{
    struct tree_model *m = &b->now.model;
    ptrdiff_t page = (ptrdiff_t)m->height, all = (ptrdiff_t)m->lines.len;
    const struct {
        int key, letter;
        ptrdiff_t lines;
    } moves[] = {
        {SCREEN_KEY_UP, 'k', -1},       {SCREEN_KEY_DOWN, 'j', 1},
        {SCREEN_KEY_PAGE_UP, 0, -page}, {SCREEN_KEY_PAGE_DOWN, 0, page},
        {SCREEN_KEY_HOME, 'g', -all},   {SCREEN_KEY_END, 'G', all},
    };
    for (size_t i = 0; i < ARRAY_LEN(moves); i++)
        if (key == moves[i].key || (key && key == moves[i].letter))
            tree_model_move(m, moves[i].lines);
}

static int act(struct browser *b, int key)
{
    struct tree_model *m = &b->now.model;
    switch (key) {
    case SCREEN_KEY_RIGHT:
    case 'l':
        return tree_model_right(m);
    case SCREEN_KEY_LEFT:
    case 'h':
        return tree_model_left(m);
    case SCREEN_KEY_ENTER:
    case ' ':
        return tree_model_toggle(m);
    case '*':
    case 'e':
        return tree_model_descend(m);
    case 'H':
        return tree_model_hottest(m);
    case 's':
        return tree_model_sort(m, (m->sort + 1) % TREE_SORT_COUNT);
    case 'm':
        return next_metric(b);
    case 'b':
        return turn_over(b);
    case '/':
        b->is_typing = true;
        buf_clear(&b->pattern);
        return 0;
    case 'n':
    case 'N':
        return go_on_searching(b, key == 'N');
    default:
        move(b, key);
        return 0;
    }
}

static int loop(struct browser *b)
{
    int r = 0;
    while (r == 0) {
        draw(b);
        int key = screen_key(b->screen, -1);
        if (key == SCREEN_STOP || (!b->is_typing && key == 'q'))
            break;
        if (key != SCREEN_RESIZED && key != SCREEN_KEY_NONE)
            *b->message = 0;
        if (b->is_typing)
            r = type_key(b, key);
        else if (key != '?')
            r = act(b, key);
        else if (screen_page(b->screen, HELP, ARRAY_LEN(HELP)) == SCREEN_STOP)
            break;
    }
    return r;
}

int view_tree_browse(struct screen *screen, const struct profile *profile,
                     const struct analysis_query *query, struct analysis_calltree *tree)
{
    struct browser b = {
        .screen = screen, .profile = profile, .query = *query, .now = {.tree = tree}};
    buf_init(&b.pattern, PATTERN_MAX);
    buf_init(&b.raw, TEXT_MAX);
    buf_init(&b.text, TEXT_MAX);
    buf_init(&b.fit, TEXT_MAX);
    int r = tree_model_init(&b.now.model, tree);
    if (r == 0)
        r = loop(&b);
    shown_release(&b.now);
    if (b.has_match)
        regfree(&b.match);
    buf_release(&b.pattern);
    buf_release(&b.raw);
    buf_release(&b.text);
    buf_release(&b.fit);
    return r;
}
