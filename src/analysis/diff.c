/* Rows of two runs side by side, their changes, and which of them are shown in what order. */
#include "analysis/diff.h"

#include "analysis/match.h"
#include "analysis/partners.h"
#include "base/err.h"
#include "base/progress.h"

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
    /* what was counted in both and is the same is that, surely */
    bool is_exact = before_whole.samples == UINT64_MAX && after_whole.samples == UINT64_MAX;
    c.is_noise = fabs(c.points) <= c.error_points && !(is_exact && c.weight == 0);
    c.is_whole = c.is_noise && fabs(c.weight) > weight_error;
    return c;
}

/* --- rows --- */

static int compare_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

/* What was counted has no error: it is as sure as any number of samples could make it. Sampled memory is
 * as sure as that many equal samples, whose sum would have its variance. */
static struct analysis_weight whole_of(const struct analysis_weights *w)
{
    double total = (double)w->total.weight, worth = total * total / w->total_variance;
    if (w->variance && worth < 1e18) /* false for NaN, too: then nothing is known of errors */
        return (struct analysis_weight){w->total.weight, worth < 1 ? 1 : (uint64_t)worth};
    return (struct analysis_weight){w->total.weight,
                                    w->exact ? UINT64_MAX : analysis_weights_worth(w)};
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

static int pair_all(struct analysis_diff *d)
{
    const struct analysis_rows *before = d->before, *after = d->after;
    _cleanup_free_ uint32_t *partner = malloc((before->count + 1) * sizeof *partner);
    _cleanup_free_ uint8_t *met = calloc(after->count + 1, 1);
    d->row = calloc(before->count + after->count + 1, sizeof *d->row);
    int r = partner && met && d->row ? analysis_partners_find(before, after, partner) : E_NOMEM;
    if (r < 0)
        return r;
    for (size_t i = 0; i < before->count; i++) {
        bool has = partner[i] != ANALYSIS_ROW_NONE;
        if (has)
            met[partner[i]] = 1;
        if (before->row[i].total.samples)
            d->row[d->count++] = make_row(d, &before->row[i], has ? &after->row[partner[i]] : NULL);
    }
    for (size_t i = 0; i < after->count; i++)
        if (after->row[i].total.samples && !met[i])
            d->row[d->count++] = make_row(d, NULL, &after->row[i]);
    return 0;
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
        c = analysis_compare_text(x->row->name, y->row->name);
    c = c ? c : self ? self : total;
    if (!c)
        c = analysis_compare_text(x->row->name, y->row->name);
    if (!c)
        c = analysis_compare_text(x->row->file, y->row->file);
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
    struct analysis_diff d = {.before = before, .after = after};
    progress_begin("comparing rows", 0);
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
