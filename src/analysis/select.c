/* Sorting and choosing rows. Every comparison ends in the row's place, so the order is total and
 * the same recording always prints the same table. */
#include "analysis/select.h"

#include "analysis/match.h"
#include "base/buf.h"
#include "base/err.h"

#include <assert.h>
#include <stdio.h>

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* As pstats has it: builtins are in the file "~". */
static struct profile_string file_of(const struct analysis_row *row)
{
    return row->is_c ? (struct profile_string){"~", 1} : row->file;
}

/* "file:line(name)" against "file:line(name)", without making either. */
static int compare_standard(const struct analysis_row *a, const struct analysis_row *b)
{
    if (a->is_c != b->is_c)
        return a->is_c ? 1 : -1; /* "{built-in …}": the brace is behind all that paths begin with */
    size_t shared = min_u64(a->file.len, b->file.len);
    int c = memcmp(a->file.text, b->file.text, shared);
    if (c == 0 && a->file.len != b->file.len) /* the shorter one goes on with a colon */
        c = a->file.len < b->file.len ? compare_u64(':', (uint8_t)b->file.text[shared])
                                      : compare_u64((uint8_t)a->file.text[shared], ':');
    if (c == 0) {
        char x[16], y[16];
        snprintf(x, sizeof x, "%u(", a->line);
        snprintf(y, sizeof y, "%u(", b->line);
        c = strcmp(x, y);
    }
    return c ? c : analysis_compare_text(a->name, b->name);
}

static int compare_on(enum analysis_sort sort, const struct analysis_row *a,
                      const struct analysis_row *b)
{
    switch (sort) {
    case ANALYSIS_SORT_SELF:
        return compare_u64(b->self.weight, a->self.weight);
    case ANALYSIS_SORT_TOTAL:
        return compare_u64(b->total.weight, a->total.weight);
    case ANALYSIS_SORT_SAMPLES:
        return compare_u64(b->self.samples, a->self.samples);
    case ANALYSIS_SORT_NAME:
        return analysis_compare_text(a->name, b->name);
    case ANALYSIS_SORT_FILE:
        return analysis_compare_text(file_of(a), file_of(b));
    case ANALYSIS_SORT_LINE:
        return compare_u64(a->line, b->line);
    case ANALYSIS_SORT_CALLS:
        return compare_u64(b->calls, a->calls);
    case ANALYSIS_SORT_PCALLS:
        return compare_u64(b->primitive_calls, a->primitive_calls);
    case ANALYSIS_SORT_STDNAME:
        return compare_standard(a, b);
    default:
        return 0;
    }
}

static const enum analysis_sort NFL[] = {ANALYSIS_SORT_NAME, ANALYSIS_SORT_FILE,
                                         ANALYSIS_SORT_LINE};
static const enum analysis_sort AT_LAST[] = {ANALYSIS_SORT_SELF, ANALYSIS_SORT_TOTAL,
                                             ANALYSIS_SORT_NAME, ANALYSIS_SORT_FILE,
                                             ANALYSIS_SORT_LINE};
enum { KEYS_MAX = (1 + ANALYSIS_SORT_MORE_MAX) * ARRAY_LEN(NFL) + ARRAY_LEN(AT_LAST) };

struct order {
    const struct analysis_row *row;
    enum analysis_sort keys[KEYS_MAX];
    size_t count;
};

static void add_keys(struct order *o, const enum analysis_sort *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (keys[i] == ANALYSIS_SORT_NFL)
            add_keys(o, NFL, ARRAY_LEN(NFL));
        else
            o->keys[o->count++] = keys[i];
}

static struct order order_of(const struct analysis_rows *rows, const struct analysis_select *select)
{
    struct order o = {.row = rows->row};
    assert(select->more_count <= ANALYSIS_SORT_MORE_MAX);
    add_keys(&o, &select->sort, 1);
    add_keys(&o, select->more, select->more_count);
    add_keys(&o, AT_LAST, ARRAY_LEN(AT_LAST));
    return o;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct order *order = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    for (size_t i = 0; i < order->count; i++) {
        int c = compare_on(order->keys[i], &order->row[x], &order->row[y]);
        if (c)
            return c;
    }
    return compare_u64(x, y);
}

static bool matches(const struct analysis_row *row, const regex_t *match, struct buf *text)
{
    if (!match || analysis_match_code(match, row->name, row->file, row->line, text))
        return true;
    return row->is_c && analysis_match_c(match, row->name, text);
}

static uint64_t rows_of_limit(const struct analysis_restriction *r, size_t count)
{
    if (r->part > 0)
        return (uint64_t)((double)count * r->part + 0.5);
    return r->limit ? r->limit : count;
}

/* Row by row in their order; what the limits leave out is still tried, to count what matches. */
static int apply(const struct analysis_rows *rows, const struct analysis_select *select,
                 struct analysis_selection *s, struct buf *text)
{
    _cleanup_free_ uint8_t *matching = malloc(s->count + 1);
    s->left = calloc(select->restriction_count + 1, sizeof *s->left);
    if (!matching || !s->left)
        return E_NOMEM;
    memset(matching, 1, s->count + 1);
    s->left[0] = s->matched = s->count;
    _cleanup_free_ uint32_t *all = malloc((s->count + 1) * sizeof *all);
    if (!all)
        return E_NOMEM;
    memcpy(all, s->row, s->count * sizeof *all);
    for (size_t k = 0; k < select->restriction_count; k++) {
        const struct analysis_restriction *r = &select->restriction[k];
        size_t kept = 0;
        if (r->match) {
            for (size_t i = 0; i < s->left[0]; i++)
                matching[i] &= matches(&rows->row[all[i]], r->match, text);
            for (size_t i = 0; i < s->count; i++)
                if (matches(&rows->row[s->row[i]], r->match, text))
                    s->row[kept++] = s->row[i];
            s->count = kept;
        } else {
            s->count = min_u64(s->count, rows_of_limit(r, s->count));
        }
        s->left[k + 1] = s->count;
    }
    s->matched = 0;
    for (size_t i = 0; i < s->left[0]; i++)
        s->matched += matching[i];
    return 0;
}

int analysis_selection_init(const struct analysis_rows *rows, const struct analysis_select *select,
                            struct analysis_selection *ret)
{
    struct analysis_selection s = {.row = malloc((rows->count + 1) * sizeof *s.row)};
    if (!s.row)
        return E_NOMEM;
    struct buf text;
    buf_init(&text, ANALYSIS_MATCH_BYTES_MAX);
    double least = select->min_percent / 100 * (double)rows->weights->total.weight;
    for (size_t i = 0; i < rows->count; i++) {
        const struct analysis_row *row = &rows->row[i];
        /* the time before a function's first line has no hits */
        bool seen = row->total.samples || row->total.weight;
        if (seen && (double)row->total.weight >= least && matches(row, select->match, &text))
            s.row[s.count++] = (uint32_t)i;
    }
    struct order order = order_of(rows, select);
    qsort_r(s.row, s.count, sizeof *s.row, compare_rows, &order);
    int r = apply(rows, select, &s, &text);
    if (r == 0)
        r = buf_error(&text);
    buf_release(&text);
    if (r < 0) {
        analysis_selection_release(&s);
        return r;
    }
    if (select->limit && s.count > select->limit)
        s.count = select->limit;
    *ret = s;
    return 0;
}

void analysis_selection_release(struct analysis_selection *s)
{
    free(s->row);
    free(s->left);
    *s = (struct analysis_selection){0};
}
