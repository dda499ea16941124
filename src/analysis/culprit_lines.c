#include "analysis/culprit_lines.h"

#include "base/err.h"
#include "base/idxmap.h"
#include "profile/source.h"

#include <math.h>

/* Lines below this share of a recording are not worth their text. */
#define TEXT_LEAST 0.001

/* --- the text of lines --- */

/* The source of one file, with where its lines begin. */
struct source {
    uint32_t file; /* string id */
    struct profile_source text;
    VEC(uint32_t) starts;
};

struct sources {
    struct profile_sources *found; /* NULL: none to be had */
    const struct profile_tables *t;
    VEC(struct source) list;
    struct idxmap by_file;
};

static void sources_release(struct sources *s)
{
    for (size_t i = 0; i < s->list.len; i++) {
        vec_release(&s->list.data[i].starts);
        profile_source_release(&s->list.data[i].text);
    }
    vec_release(&s->list);
    idxmap_release(&s->by_file);
    profile_sources_free(s->found);
}

static int split_lines(struct source *s)
{
    /* a file that is not what ran has other lines */
    bool is_it = s->text.text && (!s->text.changed || s->text.origin == PROFILE_SOURCE_KEPT);
    for (size_t at = 0; is_it && at < s->text.len;) {
        uint32_t *start = vec_push(&s->starts);
        if (!start)
            return E_NOMEM;
        *start = (uint32_t)at;
        const char *end = memchr(s->text.text + at, '\n', s->text.len - at);
        at = end ? (size_t)(end - s->text.text) + 1 : s->text.len;
    }
    return 0;
}

static int find_source(struct sources *s, uint32_t file, struct source **ret)
{
    uint32_t at;
    IDXMAP_FIND(&s->by_file, hash_u64(file), i, s->list.data[i].file == file, at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)s->list.len;
        struct source *new_one = vec_push(&s->list);
        if (!new_one || idxmap_insert(&s->by_file, hash_u64(file), at) < 0)
            return E_NOMEM;
        new_one->file = file;
        int r = profile_source_find(s->found, s->t->strings[file], &new_one->text);
        r = r < 0 ? r : split_lines(new_one);
        if (r < 0)
            return r;
    }
    *ret = &s->list.data[at];
    return 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A hash of the line without the blanks around it; 0 if it is not to be had. */
static int hash_line(struct sources *s, uint32_t file, uint32_t line, uint32_t *ret)
{
    struct source *source;
    *ret = 0;
    if (!s->found || !line)
        return 0;
    int r = find_source(s, file, &source);
    if (r < 0 || line > source->starts.len)
        return r;
    const char *from = source->text.text + source->starts.data[line - 1];
    const char *to = source->text.text +
                     (line < source->starts.len ? source->starts.data[line] : source->text.len);
    while (from < to && is_blank(*from))
        from++;
    while (to > from && is_blank(to[-1]))
        to--;
    *ret = hash_bytes(from, (size_t)(to - from)) | 1;
    return 0;
}

/* --- one recording --- */

/* The nearest caller that is another function: recursion is no caller. */
static void find_caller(const struct profile_tables *t, const uint32_t *function, size_t node,
                        struct culprit_detail *d)
{
    d->caller = UINT32_MAX;
    for (uint32_t up = t->node_parent[node]; up; up = t->node_parent[up])
        if (function[t->node_code[up]] != d->function) {
            d->caller = function[t->node_code[up]];
            d->caller_line = t->node_line[up];
            return;
        }
}

static int add_node(culprit_detail_vec *details, const struct analysis_weights *w, size_t node,
                    const uint32_t *function, uint32_t run, struct sources *sources)
{
    const struct profile_tables *t = sources->t;
    const struct record_code *code = &t->codes[t->node_code[node]];
    struct culprit_detail *d = vec_push(details);
    if (!d)
        return E_NOMEM;
    *d = (struct culprit_detail){.function = function[t->node_code[node]],
                                 .run = run,
                                 .line = t->node_line[node],
                                 .weight = (double)w->node[node].weight * w->metric->scale};
    d->offset = d->line - code->first_line;
    find_caller(t, function, node, d);
    bool is_worth = (double)w->node[node].weight >= TEXT_LEAST * (double)w->total.weight;
    return is_worth ? hash_line(sources, code->file, d->line, &d->text) : 0;
}

int culprit_details_add(culprit_detail_vec *details, const struct analysis_weights *w,
                        const uint32_t *function, uint32_t run)
{
    struct sources sources = {.t = profile_tables(w->profile)};
    int r = profile_sources_new(w->profile, &sources.found);
    for (size_t n = 1; r == 0 && n < sources.t->node_count; n++)
        if (w->node[n].weight)
            r = add_node(details, w, n, function, run, &sources);
    sources_release(&sources);
    return r;
}

/* --- the answer --- */

struct sum {
    uint32_t key;
    uint32_t line; /* as last seen, later runs over earlier ones */
    uint32_t function;
    bool line_is_after;
    double before, after;
};
typedef VEC(struct sum) sum_vec;

static int add_to(sum_vec *sums, const struct culprit_detail *d, uint32_t key, uint32_t line,
                  const struct culprit_question *q)
{
    struct sum *s = NULL;
    for (size_t i = 0; !s && i < sums->len; i++)
        if (sums->data[i].key == key)
            s = &sums->data[i];
    if (!s) {
        if (!(s = vec_push(sums)))
            return E_NOMEM;
        *s = (struct sum){.key = key, .line = line};
    }
    bool is_after = q->is_after[d->run];
    if (is_after || !s->line_is_after) {
        s->line = line;
        s->function = d->caller;
        s->line_is_after = is_after;
    }
    *(is_after ? &s->after : &s->before) +=
        d->weight / (double)(is_after ? q->after_count : q->before_count);
    return 0;
}

static struct sum largest(const sum_vec *sums, bool is_growth)
{
    struct sum best = {0};
    double most = 0;
    for (size_t i = 0; i < sums->len; i++) {
        double change = sums->data[i].after - sums->data[i].before;
        if ((is_growth ? change : -change) > most) {
            most = fabs(change);
            best = sums->data[i];
        }
    }
    return best;
}

/* Texts can only tell lines apart if every recording has them. */
static bool has_texts(const culprit_detail_vec *details, uint32_t function)
{
    double with = 0, all = 0;
    for (size_t i = 0; i < details->len; i++)
        if (details->data[i].function == function) {
            all += details->data[i].weight;
            with += details->data[i].text ? details->data[i].weight : 0;
        }
    return with > 0.9 * all;
}

int culprit_details_find(const culprit_detail_vec *details, const struct culprit_question *q,
                         struct analysis_place *ret_line, struct analysis_place *ret_caller,
                         uint32_t *ret_caller_function)
{
    sum_vec lines = {0}, callers = {0};
    bool by_text = has_texts(details, q->function);
    int r = 0;
    for (size_t i = 0; r == 0 && i < details->len; i++) {
        const struct culprit_detail *d = &details->data[i];
        if (d->function != q->function)
            continue;
        r = add_to(&lines, d, by_text && d->text ? d->text : d->offset, d->line, q);
        if (r == 0 && d->caller != UINT32_MAX)
            r = add_to(&callers, d, hash_u64((uint64_t)d->caller << 32 | d->caller_line),
                       d->caller_line, q);
    }
    if (r == 0) {
        struct sum line = largest(&lines, q->is_growth), caller = largest(&callers, q->is_growth);
        ret_line->line = line.line;
        ret_line->before = line.before;
        ret_line->after = line.after;
        ret_caller->line = caller.line;
        ret_caller->before = caller.before;
        ret_caller->after = caller.after;
        *ret_caller_function = caller.function;
    }
    vec_release(&lines);
    vec_release(&callers);
    return r;
}
