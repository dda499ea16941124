/* Partners are found level by level, from the strictest sameness to the loosest: what is left of
 * both sides is sorted by the level's key and merged. Within a key rows pair up in the order of
 * their lines, so that the second <lambda> of a file meets the second. */
#include "analysis/diff.h"

#include "analysis/match.h"
#include "base/err.h"

#include <math.h>

const char *const ANALYSIS_DIFF_SORT_NAMES[ANALYSIS_DIFF_SORT_COUNT + 1] = {
#define X(id, name) [ANALYSIS_DIFF_SORT_##id] = (name),
    ANALYSIS_DIFF_SORTS(X)
#undef X
};

/* --- the change --- */

static double share(struct analysis_weight part, struct analysis_weight whole)
{
    return whole.weight ? (double)part.weight / (double)whole.weight : 0;
}

struct analysis_change analysis_change_of(struct analysis_weight before,
                                          struct analysis_weight after,
                                          struct analysis_weight before_whole,
                                          struct analysis_weight after_whole)
{
    double p = share(before, before_whole), q = share(after, after_whole);
    double p_error = analysis_share_error(p, before_whole.samples);
    double q_error = analysis_share_error(q, after_whole.samples);
    /* two estimates that do not know of each other: their errors add as squares */
    double weight_error = hypot(p_error / 100 * (double)before_whole.weight,
                                q_error / 100 * (double)after_whole.weight);
    struct analysis_change c = {
        .before = before,
        .after = after,
        .weight = (double)after.weight - (double)before.weight,
        .points = (q - p) * 100,
        .error_points = sqrt(p_error * p_error + q_error * q_error),
    };
    c.is_noise = fabs(c.points) <= c.error_points;
    c.is_whole = c.is_noise && fabs(c.weight) > weight_error;
    return c;
}

/* --- partners --- */

enum where { NOWHERE, BY_FILE, BY_MODULE };
enum name { NAMELESS, BY_NAME, BY_LAST_PART };

struct level {
    enum name name;
    enum where where;
    bool by_line;
};

enum { LEVELS_MAX = 4 };
static const struct level LEVELS[ANALYSIS_BY_COUNT][LEVELS_MAX + 1] = {
    [ANALYSIS_BY_FUNCTION] = {{BY_NAME, BY_FILE, true},
                              {BY_NAME, BY_FILE, false},
                              {BY_NAME, BY_MODULE, false},
                              {BY_LAST_PART, BY_MODULE, false}},
    [ANALYSIS_BY_LINE] = {{BY_NAME, BY_FILE, true},
                          {BY_NAME, BY_MODULE, true},
                          {BY_LAST_PART, BY_MODULE, true}},
    [ANALYSIS_BY_FILE] = {{BY_NAME, BY_FILE, false}, {NAMELESS, BY_MODULE, false}},
    [ANALYSIS_BY_MODULE] = {{BY_NAME, NOWHERE, false}},
    [ANALYSIS_BY_THREAD] = {{BY_NAME, NOWHERE, false}},
    [ANALYSIS_BY_PROCESS] = {{BY_NAME, NOWHERE, false}},
};

struct item {
    const struct analysis_row *row;
    struct profile_string name, where; /* the level's */
    char *module;                      /* owned; NULL while not needed */
};

struct side {
    struct item *item; /* those without a partner; owned */
    size_t count;
};

static int compare_text(struct profile_string a, struct profile_string b)
{
    int c = memcmp(a.text, b.text, min_u64(a.len, b.len));
    return c ? c : a.len < b.len ? -1 : a.len > b.len;
}

static int compare_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_keys(const struct item *a, const struct item *b, const struct level *level)
{
    int c = compare_text(a->name, b->name);
    if (!c)
        c = compare_text(a->where, b->where);
    return c || !level->by_line ? c : compare_u32(a->row->line, b->row->line);
}

static int compare_items(const void *a, const void *b, void *ctx)
{
    const struct item *x = a, *y = b;
    int c = compare_keys(x, y, ctx);
    if (!c)
        c = compare_u32(x->row->line, y->row->line);
    return c ? c : x->row < y->row ? -1 : x->row > y->row;
}

/* "C.f.<locals>.g" → "g"; "<lambda>" stays. */
static struct profile_string last_part(struct profile_string name)
{
    const char *dot = memrchr(name.text, '.', name.len);
    if (!dot)
        return name;
    uint32_t skipped = (uint32_t)(dot + 1 - name.text);
    return (struct profile_string){dot + 1, name.len - skipped};
}

/* Before 3.11 code objects have plain names only. */
static bool has_qualified_names(const struct analysis_rows *rows)
{
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    for (size_t i = 0; i < t->code_count; i++)
        if (t->codes[i].qualname)
            return true;
    return false;
}

static int prepare(struct side *side, const struct level *level)
{
    for (size_t i = 0; i < side->count; i++) {
        struct item *item = &side->item[i];
        struct profile_string file = item->row->file;
        item->name = level->name == NAMELESS       ? (struct profile_string){"", 0}
                     : level->name == BY_LAST_PART ? last_part(item->row->name)
                                                   : item->row->name;
        item->where = (struct profile_string){"", 0};
        if (level->where == BY_FILE) {
            item->where = file;
        } else if (level->where == BY_MODULE) {
            if (!item->module)
                item->module = analysis_module_name(file.text, file.len);
            if (!item->module)
                return E_NOMEM;
            item->where = (struct profile_string){item->module, (uint32_t)strlen(item->module)};
        }
    }
    qsort_r(side->item, side->count, sizeof *side->item, compare_items, (void *)level);
    return 0;
}

/* What was counted has no error: it is as sure as any number of samples could make it. */
static struct analysis_weight whole_of(const struct analysis_weights *w)
{
    return (struct analysis_weight){w->total.weight, w->exact ? UINT64_MAX : w->total.samples};
}

static struct analysis_diff_row make_row(const struct analysis_diff *d,
                                         const struct analysis_row *before,
                                         const struct analysis_row *after)
{
    static const struct analysis_row nothing = {0};
    const struct analysis_row *b = before ? before : &nothing, *a = after ? after : &nothing;
    struct analysis_weight before_whole = whole_of(d->before->weights);
    struct analysis_weight after_whole = whole_of(d->after->weights);
    return (struct analysis_diff_row){
        .row = after ? after : before,
        .in_before = before != NULL,
        .in_after = after != NULL,
        .self = analysis_change_of(b->self, a->self, before_whole, after_whole),
        .total = analysis_change_of(b->total, a->total, before_whole, after_whole),
    };
}

/* Pairs up what agrees at this level; the rest stays. */
static void pair(struct analysis_diff *d, struct side *before, struct side *after,
                 const struct level *level)
{
    size_t i = 0, j = 0, kept_i = 0, kept_j = 0;
    while (i < before->count || j < after->count) {
        int c = i == before->count  ? 1
                : j == after->count ? -1
                                    : compare_keys(&before->item[i], &after->item[j], level);
        if (c < 0) {
            before->item[kept_i++] = before->item[i++];
        } else if (c > 0) {
            after->item[kept_j++] = after->item[j++];
        } else {
            d->row[d->count++] = make_row(d, before->item[i].row, after->item[j].row);
            free(before->item[i++].module);
            free(after->item[j++].module);
        }
    }
    before->count = kept_i;
    after->count = kept_j;
}

static int side_init(const struct analysis_rows *rows, struct side *ret)
{
    ret->item = calloc(rows->count + 1, sizeof *ret->item);
    if (!ret->item)
        return E_NOMEM;
    for (size_t i = 0; i < rows->count; i++)
        if (rows->row[i].total.samples)
            ret->item[ret->count++].row = &rows->row[i];
    return 0;
}

static void side_release(struct side *side)
{
    for (size_t i = 0; i < side->count; i++)
        free(side->item[i].module);
    free(side->item);
}

static int pair_all(struct analysis_diff *d)
{
    struct side before = {0}, after = {0};
    int r = side_init(d->before, &before);
    if (r == 0)
        r = side_init(d->after, &after);
    d->row = r == 0 ? calloc(before.count + after.count + 1, sizeof *d->row) : NULL;
    if (r == 0 && !d->row)
        r = E_NOMEM;
    const struct level *level = LEVELS[d->before->by];
    bool same_names = has_qualified_names(d->before) == has_qualified_names(d->after);
    for (; r == 0 && (level->name || level->where); level++) {
        if (level->name == BY_LAST_PART && same_names)
            continue;
        r = prepare(&before, level);
        if (r == 0)
            r = prepare(&after, level);
        if (r == 0)
            pair(d, &before, &after, level);
    }
    for (size_t i = 0; r == 0 && i < before.count; i++)
        d->row[d->count++] = make_row(d, before.item[i].row, NULL);
    for (size_t i = 0; r == 0 && i < after.count; i++)
        d->row[d->count++] = make_row(d, NULL, after.item[i].row);
    side_release(&before);
    side_release(&after);
    return r;
}

/* --- choosing and sorting --- */

static int compare_changes(double a, double b)
{
    return fabs(a) > fabs(b) ? -1 : fabs(a) < fabs(b);
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct analysis_diff_row *x = a, *y = b;
    enum analysis_diff_sort sort = *(const enum analysis_diff_sort *)ctx;
    int self = compare_changes(x->self.weight, y->self.weight);
    int total = compare_changes(x->total.weight, y->total.weight);
    int c = sort == ANALYSIS_DIFF_SORT_SELF ? self : sort == ANALYSIS_DIFF_SORT_TOTAL ? total : 0;
    if (!c && sort == ANALYSIS_DIFF_SORT_NAME)
        c = compare_text(x->row->name, y->row->name);
    c = c ? c : self ? self : total;
    if (!c)
        c = compare_text(x->row->name, y->row->name);
    if (!c)
        c = compare_text(x->row->file, y->row->file);
    if (!c)
        c = compare_u32(x->row->line, y->row->line);
    return c ? c : x->row < y->row ? -1 : x->row > y->row;
}

static int choose(struct analysis_diff *d, const struct analysis_diff_select *select)
{
    struct buf scratch;
    buf_init(&scratch, ANALYSIS_MATCH_BYTES_MAX);
    size_t kept = 0;
    for (size_t i = 0; i < d->count; i++) {
        const struct analysis_row *row = d->row[i].row;
        if (!select->match ||
            analysis_match_code(select->match, row->name, row->file, row->line, &scratch))
            d->row[kept++] = d->row[i];
    }
    int r = buf_error(&scratch);
    buf_release(&scratch);
    d->count = d->matched = kept;
    enum analysis_diff_sort sort = select->sort;
    qsort_r(d->row, d->count, sizeof *d->row, compare_rows, &sort);
    if (select->limit && d->count > select->limit)
        d->count = select->limit;
    return r;
}

int analysis_diff_init(const struct analysis_rows *before, const struct analysis_rows *after,
                       const struct analysis_diff_select *select, struct analysis_diff *ret)
{
    if (before->by != after->by || before->by >= ANALYSIS_BY_COUNT)
        return E_INVALID;
    struct analysis_diff d = {.before = before, .after = after};
    int r = pair_all(&d);
    if (r == 0)
        r = choose(&d, select);
    if (r < 0) {
        analysis_diff_release(&d);
        return r;
    }
    *ret = d;
    return 0;
}

void analysis_diff_release(struct analysis_diff *d)
{
    free(d->row);
    *d = (struct analysis_diff){0};
}
