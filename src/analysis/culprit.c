#include "analysis/culprit.h"

#include "analysis/culprit_lines.h"
#include "analysis/rows.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/progress.h"
#include "base/vec.h"

#include <math.h>

enum { KEY_BYTES_MAX = 1 << 20 };

/* A function, as met in any of the recordings. */
struct function {
    char *key; /* module, NUL, name; owned */
    size_t key_len;
    char *name, *file; /* as last seen; owned */
    uint32_t first_line;
    bool is_special;
};

/* What a function weighed in one recording. */
struct entry {
    uint32_t function, run;
    struct stats_blame_cell cell;
};

struct analysis_blame {
    const struct analysis_metric *metric;
    VEC(struct function) functions;
    struct idxmap by_key;
    VEC(struct entry) entries;
    culprit_detail_vec details; /* lines and callers */
    bool is_after[ANALYSIS_CULPRIT_RUNS];
    double whole[ANALYSIS_CULPRIT_RUNS];
    double
        busy[ANALYSIS_CULPRIT_RUNS]; /* looks that came too late, as a share: others had the CPUs */
    uint32_t runs;
};

int analysis_blame_new(struct analysis_blame **ret)
{
    struct analysis_blame *b = calloc(1, sizeof *b);
    if (!b)
        return E_NOMEM;
    *ret = b;
    return 0;
}

void analysis_blame_free(struct analysis_blame *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->functions.len; i++) {
        free(b->functions.data[i].key);
        free(b->functions.data[i].name);
        free(b->functions.data[i].file);
    }
    vec_release(&b->functions);
    vec_release(&b->entries);
    vec_release(&b->details);
    idxmap_release(&b->by_key);
    free(b);
}

/* --- one recording --- */

static int make_key(const struct profile_tables *t, const struct record_code *code, struct buf *key)
{
    struct profile_string file = t->strings[code->file];
    struct profile_string name = t->strings[code->qualname ? code->qualname : code->name];
    _cleanup_free_ char *module = analysis_module_name(file.text, file.len);
    if (!module)
        return E_NOMEM;
    buf_clear(key);
    buf_append(key, module, strlen(module) + 1);
    buf_append(key, name.text, name.len);
    return buf_error(key);
}

/* Names and lines are those of the recording that was added last: the newest. */
static int name_function(struct function *f, const struct profile_tables *t,
                         const struct record_code *code)
{
    struct profile_string name = t->strings[code->qualname ? code->qualname : code->name];
    char *copy = strndup(name.text, name.len);
    char *file = strndup(t->strings[code->file].text, t->strings[code->file].len);
    if (!copy || !file) {
        free(copy);
        free(file);
        return E_NOMEM;
    }
    free(f->name);
    free(f->file);
    f->name = copy;
    f->file = file;
    f->first_line = code->first_line;
    f->is_special = code->flags & RECORD_CODE_SPECIAL;
    return 0;
}

static int find_function(struct analysis_blame *b, const struct profile_tables *t, uint32_t code,
                         struct buf *key, uint32_t *ret)
{
    int r = make_key(t, &t->codes[code], key);
    if (r < 0)
        return r;
    uint32_t hash = hash_bytes(key->data, key->len), at;
    IDXMAP_FIND(&b->by_key, hash, i,
                b->functions.data[i].key_len == key->len &&
                    !memcmp(b->functions.data[i].key, key->data, key->len),
                at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)b->functions.len;
        struct function *f = vec_push(&b->functions);
        if (!f || !(f->key = malloc(key->len + 1)) || idxmap_insert(&b->by_key, hash, at) < 0)
            return E_NOMEM;
        memcpy(f->key, key->data, key->len);
        f->key_len = key->len;
    }
    *ret = at;
    return name_function(&b->functions.data[at], t, &t->codes[code]);
}

/* The function of each code that has any weight or stands above one that has. */
static int map_codes(struct analysis_blame *b, const struct profile_tables *t, uint32_t *function)
{
    struct buf key;
    int r = 0;
    buf_init(&key, KEY_BYTES_MAX);
    for (uint32_t c = 0; r == 0 && c < t->code_count; c++)
        r = find_function(b, t, c, &key, &function[c]);
    buf_release(&key);
    return r;
}

/* --- how much a sample is worth --- */

struct evenness {
    const struct analysis_metric *metric;
    double sum, squares, samples;
};

static int on_samples(void *ctx, const struct record_sample *samples, size_t n)
{
    struct evenness *e = ctx;
    for (size_t i = 0; i < n; i++) {
        uint64_t weight;
        if (!samples[i].count || !e->metric->weigh_sample(&samples[i], &weight))
            continue;
        e->sum += (double)weight;
        e->squares += (double)weight * (double)weight / (double)samples[i].count;
        e->samples += (double)samples[i].count;
    }
    return 0;
}

/* On a busy machine looks come late, and some samples stand for a hundred times the time of others:
 * then they tell less than their number says. The factor by which, 1 for even ones. */
static double worth_of_samples(const struct analysis_weights *w)
{
    struct evenness e = {.metric = w->metric};
    if (!w->metric->weigh_sample || w->exact)
        return 1;
    int r = profile_each_sample(w->profile, on_samples, &e, NULL);
    if (r < 0 || e.squares <= 0 || e.samples <= 0)
        return 1;
    return fmin(1, e.sum * e.sum / e.squares / e.samples);
}

static int add_entries(struct analysis_blame *b, const struct analysis_weights *w,
                       const uint32_t *function)
{
    const struct profile_tables *t = profile_tables(w->profile);
    _cleanup_free_ struct stats_blame_cell *cell = calloc(b->functions.len + 1, sizeof *cell);
    if (!cell)
        return E_NOMEM;
    double worth = worth_of_samples(w);
    for (size_t n = 1; n < t->node_count; n++) {
        if (!w->node[n].weight)
            continue;
        struct stats_blame_cell *c = &cell[function[t->node_code[n]]];
        c->weight += (double)w->node[n].weight * w->metric->scale;
        c->samples += w->exact ? INFINITY : worth * (double)w->node[n].samples;
    }
    for (uint32_t f = 0; f < b->functions.len; f++) {
        if (cell[f].weight <= 0)
            continue;
        struct entry *e = vec_push(&b->entries);
        if (!e)
            return E_NOMEM;
        *e = (struct entry){f, b->runs, cell[f]};
    }
    return 0;
}

int analysis_blame_add(struct analysis_blame *b, bool is_after,
                       const struct analysis_weights *weights)
{
    const struct profile_tables *t = profile_tables(weights->profile);
    if (b->runs == ANALYSIS_CULPRIT_RUNS)
        return E_LIMIT;
    if (b->runs && strcmp(b->metric->unit, weights->metric->unit) != 0)
        return E_INVALID;
    _cleanup_free_ uint32_t *function = malloc((t->code_count + 1) * sizeof *function);
    int r = function ? map_codes(b, t, function) : E_NOMEM;
    if (r == 0)
        r = add_entries(b, weights, function);
    if (r == 0)
        r = culprit_details_add(&b->details, weights, function, b->runs);
    if (r < 0)
        return r;
    b->metric = weights->metric;
    b->is_after[b->runs] = is_after;
    b->whole[b->runs] = (double)weights->total.weight * weights->metric->scale;
    double due = (double)t->stats.value[RECORD_STAT_TICKS_REQUESTED];
    double missed = (double)t->stats.value[RECORD_STAT_TICKS_MISSED];
    b->busy[b->runs] = due > 0 ? fmin(missed / due, 1) : 0;
    b->runs++;
    return 0;
}

/* --- all of them --- */

/* Runs of the one side first, then the other's, as stats/blame.h wants them. */
struct order {
    size_t place[ANALYSIS_CULPRIT_RUNS];
    size_t before, after;
};

static struct order sort_runs(const struct analysis_blame *b)
{
    struct order o = {.before = 0};
    for (uint32_t i = 0; i < b->runs; i++)
        if (!b->is_after[i])
            o.place[i] = o.before++;
    for (uint32_t i = 0; i < b->runs; i++)
        if (b->is_after[i])
            o.place[i] = o.before + o.after++;
    return o;
}

static int judge(const struct analysis_blame *b, const struct order *o,
                 struct stats_blame_part **ret)
{
    double busy[ANALYSIS_CULPRIT_RUNS];
    for (uint32_t i = 0; i < b->runs; i++)
        busy[o->place[i]] = b->busy[i];
    struct stats_blame_part *part = malloc((b->functions.len + 1) * sizeof *part);
    _cleanup_free_ struct stats_blame_cell *cell =
        calloc(b->functions.len * b->runs + 1, sizeof *cell);
    int r = E_NOMEM;
    if (part && cell) {
        for (size_t i = 0; i < b->entries.len; i++) {
            const struct entry *e = &b->entries.data[i];
            cell[e->function * (size_t)b->runs + o->place[e->run]] = e->cell;
        }
        struct stats_blame_input input = {
            .cell = cell,
            .parts = b->functions.len,
            .before_count = o->before,
            .after_count = o->after,
            .busy = busy,
            .alpha = STATS_BLAME_ALPHA,
            .least = STATS_BLAME_LEAST,
        };
        r = stats_blame_find(&input, part);
    }
    if (r < 0)
        free(part);
    else
        *ret = part;
    return r;
}

static int describe(const struct analysis_blame *b, const struct order *o,
                    const struct stats_blame_part *part, struct analysis_culprit *ret)
{
    const struct function *f = &b->functions.data[part->part];
    struct analysis_culprit c = {
        .function = {f->name, f->file, f->first_line, part->before, part->after},
        .blame = *part,
        .is_special = f->is_special,
        .line = {"", "", 0, 0, 0},
        .caller = {"", "", 0, 0, 0},
    };
    uint32_t caller;
    int r = culprit_details_find(&b->details,
                                 &(struct culprit_question){
                                     .function = (uint32_t)part->part,
                                     .is_after = b->is_after,
                                     .before_count = o->before,
                                     .after_count = o->after,
                                     .is_growth = part->change > 0,
                                 },
                                 &c.line, &c.caller, &caller);
    if (r < 0)
        return r;
    c.line.name = f->name;
    c.line.file = f->file;
    if (c.caller.line) {
        c.caller.name = b->functions.data[caller].name;
        c.caller.file = b->functions.data[caller].file;
    }
    *ret = c;
    return 0;
}

int analysis_blame_find(const struct analysis_blame *b, struct analysis_culprits *ret)
{
    struct order o = sort_runs(b);
    if (!o.before || !o.after)
        return E_INVALID;
    struct stats_blame_part *part = NULL;
    progress_begin("finding what explains the difference", 0);
    int r = judge(b, &o, &part);
    if (r < 0)
        return r;
    struct analysis_culprits c = {.functions = b->functions.len,
                                  .before_count = o.before,
                                  .after_count = o.after,
                                  .metric = b->metric};
    size_t shown = min_u64(b->functions.len, ANALYSIS_CULPRIT_SHOWN);
    for (uint32_t i = 0; i < b->runs; i++)
        *(b->is_after[i] ? &c.after : &c.before) +=
            b->whole[i] / (double)(b->is_after[i] ? o.after : o.before);
    c.list = calloc(shown + 1, sizeof *c.list);
    r = c.list ? 0 : E_NOMEM;
    for (size_t i = 0; i < b->functions.len; i++)
        c.blamed += part[i].is_blamed;
    for (; r == 0 && c.count < shown && part[c.count].change != 0; c.count++)
        r = describe(b, &o, &part[c.count], &c.list[c.count]);
    free(part);
    if (r < 0)
        analysis_culprits_release(&c);
    else
        *ret = c;
    return r;
}

void analysis_culprits_release(struct analysis_culprits *c)
{
    free(c->list);
    *c = (struct analysis_culprits){0};
}
