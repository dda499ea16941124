/* Callgrind's format, for KCachegrind, QCachegrind and callgrind_annotate: what each line of each
 * function cost itself, and under it the calls made from that line with what they cost in all.
 * https://valgrind.org/docs/manual/cl-format.html
 *
 * Sampling does not count calls. `calls=` must hold a number, so it holds the samples in which the
 * call was seen; the header says so. A stack counts a call once, however often it stands there. */
#include "analysis/edges.h"
#include "analysis/trie.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "export/sites.h"
#include "export/source.h"

enum { NAME_BYTES_MAX = 4096 };

struct call {
    uint32_t site; /* the line that calls */
    uint32_t row;  /* the function called */
    struct analysis_weight total;
};

struct calls {
    VEC(struct call) call;
    uint32_t *node_call; /* IDXMAP_NONE: called by nobody */
    struct analysis_weight *subtree;
    uint32_t *on_stack;
    size_t *at; /* where the calls of each site begin, and of the next end */
};

struct writing {
    const struct export_source *source;
    const struct export_sites *sites;
    uint8_t *ambiguous; /* rows whose name and file are not theirs alone */
    uint32_t *file_id;  /* by row */
    uint8_t *row_named, *file_named;
    FILE *out;
    struct buf buf;
};

/* --- calls --- */

static int find_calls(const struct export_source *s, const struct export_sites *sites,
                      struct calls *c)
{
    const struct profile_tables *t = profile_tables(s->weights.profile);
    struct idxmap map = {0};
    int r = 0;
    c->node_call[0] = IDXMAP_NONE;
    for (size_t i = 1; r == 0 && i < t->node_count; i++) {
        c->node_call[i] = IDXMAP_NONE;
        if (!t->node_parent[i])
            continue;
        uint32_t site = sites->node_site[t->node_parent[i]], row = s->rows.node_row[i], at;
        uint32_t hash = hash_u64((uint64_t)site << 32 | row);
        IDXMAP_FIND(&map, hash, k, c->call.data[k].site == site && c->call.data[k].row == row, at);
        if (at == IDXMAP_NONE) {
            at = (uint32_t)c->call.len;
            struct call *call = vec_push(&c->call);
            r = call ? idxmap_insert(&map, hash, at) : E_NOMEM;
            if (r == 0)
                *call = (struct call){.site = site, .row = row};
        }
        c->node_call[i] = at;
    }
    idxmap_release(&map);
    return r;
}

static int enter(void *ctx, uint32_t node)
{
    struct calls *c = ctx;
    uint32_t at = c->node_call[node];
    if (at != IDXMAP_NONE && c->on_stack[at]++ == 0)
        analysis_weight_add(&c->call.data[at].total, c->subtree[node]);
    return 0;
}

static void leave(void *ctx, uint32_t node)
{
    struct calls *c = ctx;
    if (c->node_call[node] != IDXMAP_NONE)
        c->on_stack[c->node_call[node]]--;
}

static void calls_release(struct calls *c)
{
    vec_release(&c->call);
    free(c->node_call);
    free(c->subtree);
    free(c->on_stack);
    free(c->at);
}

/* Sorts the calls by their site, by counting: ret->at[i] is where those of site i begin. */
static int sort_calls(struct calls *c, size_t sites)
{
    size_t n = c->call.len;
    struct call *sorted = malloc((n + 1) * sizeof *sorted);
    c->at = calloc(sites + 2, sizeof *c->at);
    if (!sorted || !c->at) {
        free(sorted);
        return E_NOMEM;
    }
    size_t *next = c->at + 1; /* begins as the place of the next of site i, ends as that of i + 1 */
    for (size_t i = 0; i < n; i++)
        if (c->call.data[i].site + 1 < sites)
            next[c->call.data[i].site + 1]++;
    for (size_t i = 1; i < sites; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < n; i++)
        sorted[next[c->call.data[i].site]++] = c->call.data[i];
    free(c->call.data);
    c->call.data = sorted;
    c->call.cap = n + 1;
    return 0;
}

/* Where calls were counted, the counts: a function's calls all stand at its one line. */
static int take_counted(const struct export_source *s, const struct export_sites *sites,
                        struct calls *c)
{
    struct analysis_edges edges;
    _cleanup_free_ uint32_t *row_site = calloc(s->rows.count + 1, sizeof *row_site);
    int r = row_site ? analysis_edges_init(&s->rows, &edges) : E_NOMEM;
    if (r < 0)
        return r;
    for (size_t i = 0; i < sites->site.len; i++)
        row_site[sites->site.data[i].row] = (uint32_t)i;
    for (size_t i = 0; r == 0 && i < edges.count; i++) {
        const struct analysis_edge *e = &edges.by_caller[i];
        struct call *call = vec_push(&c->call);
        r = call ? 0 : E_NOMEM;
        if (r == 0)
            *call = (struct call){row_site[e->caller], e->callee, e->total};
    }
    analysis_edges_release(&edges);
    return r;
}

static int weigh_calls(const struct export_source *s, const struct export_sites *sites,
                       struct calls *c)
{
    const struct profile_tables *t = profile_tables(s->weights.profile);
    c->node_call = malloc((t->node_count + 1) * sizeof *c->node_call);
    c->subtree = malloc((t->node_count + 1) * sizeof *c->subtree);
    int r = c->node_call && c->subtree ? find_calls(s, sites, c) : E_NOMEM;
    if (r < 0)
        return r;
    c->on_stack = calloc(c->call.len + 1, sizeof *c->on_stack);
    memcpy(c->subtree, s->weights.node, t->node_count * sizeof *c->subtree);
    analysis_weights_accumulate(t, c->subtree);
    return c->on_stack ? analysis_trie_walk(t->node_parent, t->node_count, enter, leave, c)
                       : E_NOMEM;
}

static int calls_init(const struct export_source *s, const struct export_sites *sites,
                      struct calls *ret)
{
    struct calls c = {0};
    int r = profile_tables(s->weights.profile)->counts && s->weights.exact
                ? take_counted(s, sites, &c)
                : weigh_calls(s, sites, &c);
    if (r == 0)
        r = sort_calls(&c, sites->site.len);
    if (r < 0) {
        calls_release(&c);
        return r;
    }
    *ret = c;
    return 0;
}

/* --- names --- */

static uint32_t hash_texts(const struct analysis_row *row, bool file_only)
{
    uint64_t name = file_only ? 0 : (uint64_t)(uintptr_t)row->name.text;
    return hash_u64(name * 31 + (uint64_t)(uintptr_t)row->file.text);
}

/* Texts are interned, so equal ones are at equal places. */
static int find_names(struct writing *w)
{
    const struct analysis_rows *rows = &w->source->rows;
    struct idxmap functions = {0}, files = {0};
    uint32_t next_file = 1, at;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < rows->count; i++) {
        const struct analysis_row *row = &rows->row[i];
        uint32_t hash = hash_texts(row, false);
        IDXMAP_FIND(&functions, hash, k,
                    rows->row[k].name.text == row->name.text &&
                        rows->row[k].file.text == row->file.text,
                    at);
        if (at != IDXMAP_NONE)
            w->ambiguous[at] = w->ambiguous[i] = 1;
        else
            r = idxmap_insert(&functions, hash, i);
        hash = hash_texts(row, true);
        IDXMAP_FIND(&files, hash, k, rows->row[k].file.text == row->file.text, at);
        w->file_id[i] = at == IDXMAP_NONE ? next_file++ : w->file_id[at];
        if (r == 0 && at == IDXMAP_NONE)
            r = idxmap_insert(&files, hash, i);
    }
    idxmap_release(&functions);
    idxmap_release(&files);
    return r;
}

static void put_key(struct writing *w, const char *key, uint32_t id)
{
    buf_puts(&w->buf, key);
    buf_puts(&w->buf, "=(");
    export_put_u64(&w->buf, id);
    buf_put_u8(&w->buf, ')');
}

/* "fl=(3) app.py" the first time, "fl=(3)" from then on. */
static void put_file(struct writing *w, const char *key, uint32_t at)
{
    const struct analysis_row *row = &w->source->rows.row[at];
    uint32_t id = w->file_id[at];
    put_key(w, key, id);
    if (!w->file_named[id]) {
        buf_put_u8(&w->buf, ' ');
        if (row->file.len)
            export_put_line(&w->buf, row->file, NAME_BYTES_MAX);
        else
            buf_puts(&w->buf, "???");
        w->file_named[id] = 1;
    }
    buf_put_u8(&w->buf, '\n');
}

static void put_function(struct writing *w, const char *key, uint32_t at)
{
    const struct analysis_row *row = &w->source->rows.row[at];
    put_key(w, key, at + 1);
    if (!w->row_named[at]) {
        buf_put_u8(&w->buf, ' ');
        export_put_line(&w->buf, row->name, NAME_BYTES_MAX);
        if (w->ambiguous[at])
            buf_printf(&w->buf, ":%u", row->line);
        w->row_named[at] = 1;
    }
    buf_put_u8(&w->buf, '\n');
}

/* --- the file --- */

static void put_costs(struct writing *w, uint32_t line, struct analysis_weight cost)
{
    export_put_u64(&w->buf, line);
    buf_put_u8(&w->buf, ' ');
    export_put_u64(&w->buf, cost.weight);
    buf_put_u8(&w->buf, ' ');
    export_put_u64(&w->buf, cost.samples);
    buf_put_u8(&w->buf, '\n');
}

static void put_heading(struct writing *w, const struct profile *profile)
{
    const struct analysis_metric *m = w->source->weights.metric;
    const char *command = profile_meta_value(profile, "command");
    struct profile_string text = {command ? command : "", (uint32_t)strlen(command ? command : "")};
    const char *unit = m->scale == 1e-9 ? "ns" : m->unit;
    buf_puts(&w->buf,
             "# callgrind format\nversion: 1\ncreator: pyrometer " PYROMETER_VERSION "\ncmd: ");
    export_put_line(&w->buf, text, NAME_BYTES_MAX);
    if (!w->source->weights.exact)
        buf_puts(&w->buf, "\ndesc: Note: sampled; calls= counts the samples that saw a call");
    buf_put_u8(&w->buf, '\n');
    buf_printf(&w->buf, "positions: line\nevent: %s_%s : %s\nevent: Samples : samples\n", m->name,
               unit, m->text);
    buf_printf(&w->buf, "events: %s_%s Samples\nsummary: ", m->name, unit);
    export_put_u64(&w->buf, w->source->weights.total.weight);
    buf_put_u8(&w->buf, ' ');
    export_put_u64(&w->buf, w->source->weights.total.samples);
    buf_puts(&w->buf, "\n\n");
}

static void put_calls(struct writing *w, const struct call *call, size_t n, uint32_t from_row)
{
    for (size_t i = 0; i < n; i++) {
        if (!call[i].total.samples)
            continue;
        if (w->file_id[call[i].row] != w->file_id[from_row])
            put_file(w, "cfi", call[i].row);
        put_function(w, "cfn", call[i].row);
        buf_puts(&w->buf, "calls=");
        export_put_u64(&w->buf, call[i].total.samples);
        buf_put_u8(&w->buf, ' ');
        export_put_u64(&w->buf, w->source->rows.row[call[i].row].line);
        buf_put_u8(&w->buf, '\n');
        put_costs(w, w->sites->site.data[call[i].site].line, call[i].total);
    }
}

static int compare_sites(const void *a, const void *b, void *ctx)
{
    const struct export_sites *sites = ctx;
    const struct export_site *x = &sites->site.data[*(const uint32_t *)a];
    const struct export_site *y = &sites->site.data[*(const uint32_t *)b];
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int put_functions(struct writing *w, const struct calls *calls)
{
    const struct export_sites *sites = w->sites;
    size_t n = sites->site.len;
    _cleanup_free_ uint32_t *order = malloc((n + 1) * sizeof *order);
    if (!order)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, n, sizeof *order, compare_sites, (void *)sites);
    uint32_t open = UINT32_MAX;
    if (!calls->at)
        return E_INVALID;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct export_site *site = &sites->site.data[order[i]];
        const struct analysis_row *row = &w->source->rows.row[site->row];
        if (!row->total.samples)
            continue;
        if (site->row != open) {
            put_file(w, "\nfl", site->row);
            put_function(w, "fn", site->row);
            open = site->row;
        }
        if (site->self.samples)
            put_costs(w, site->line, w->source->weights.exact ? row->self : site->self);
        size_t from = calls->at[order[i]], to = calls->at[order[i] + 1];
        put_calls(w, calls->call.data + from, to - from, site->row);
        r = export_drain(&w->buf, w->out, false);
    }
    return r;
}

static int write_all(struct writing *w, const struct profile *profile, const struct calls *calls)
{
    const struct analysis_rows *rows = &w->source->rows;
    int r = find_names(w);
    if (r < 0)
        return r;
    put_heading(w, profile);
    r = put_functions(w, calls);
    struct analysis_weight rootless = w->source->weights.node[RECORD_STACK_ROOT];
    if (r == 0 && rootless.samples) {
        put_file(w, "\nfl", (uint32_t)rows->count - 1);
        put_function(w, "fn", (uint32_t)rows->count - 1);
        put_costs(w, 0, rootless);
    }
    if (r == 0)
        r = export_drain(&w->buf, w->out, true);
    return r < 0 ? r : export_finish(w->out);
}

int export_callgrind_write(const struct profile *profile, const struct export_options *options,
                           FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_FUNCTION, &source);
    if (r < 0)
        return r;
    struct export_sites sites = {0};
    struct calls calls = {0};
    struct writing w = {.source = &source, .sites = &sites, .out = out};
    size_t places = source.rows.count + 2;
    buf_init(&w.buf, EXPORT_BUF_MAX);
    w.ambiguous = calloc(places, 1);
    w.file_id = calloc(places, sizeof *w.file_id);
    w.row_named = calloc(places, 1);
    w.file_named = calloc(places, 1);
    r = w.ambiguous && w.file_id && w.row_named && w.file_named ? 0 : E_NOMEM;
    if (r == 0)
        r = export_sites_init(&source.rows, &sites);
    if (r == 0)
        r = calls_init(&source, &sites, &calls);
    if (r == 0)
        r = write_all(&w, profile, &calls);
    calls_release(&calls);
    export_sites_release(&sites);
    free(w.ambiguous);
    free(w.file_id);
    free(w.row_named);
    free(w.file_named);
    buf_release(&w.buf);
    export_source_release(&source);
    return r;
}
