/* What cProfile writes, for pstats, snakeviz, gprof2dot and all else that reads it: marshal of
 *
 *     {(file, line, name): (primitive calls, calls, self s, total s, callers)}
 *     callers: {(file, line, name): (calls, primitive calls, self s, total s)}
 *
 * (mind the order of the counts). Version 2 of marshal is enough and opens in every Python:
 *
 *     dict    '{' key value … '0'             tuple  '(' u32 n, items
 *     text    'u' u32 bytes, UTF-8            float  'g' f64
 *     number  'i' i32, or 'l' i32 n, n digits of 15 bits
 *
 * all little-endian. Names are the plain ones, as cProfile has them, so that pstats can add the files
 * of both; C functions are in the file "~" at line 0. Functions that cProfile could not tell apart
 * become one. Of a sampled recording the counts are samples: there are no others. */
#include "analysis/edges.h"
#include "base/err.h"
#include "base/idxmap.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "export/source.h"

enum { DIGIT_BITS = 15, TEXT_BYTES_MAX = 1 << 20 };

/* What cProfile calls a function. */
struct key {
    struct profile_string file, name;
    uint32_t line;
};

struct function {
    struct key key;
    struct analysis_weight self, total;
    uint64_t calls, primitive_calls;
};

/* The calls from one function to another. */
struct call {
    uint32_t caller, callee; /* functions */
    uint64_t self, total, calls, primitive_calls;
};

struct writing {
    const struct export_source *source;
    VEC(struct function) functions;
    VEC(struct call) calls; /* by callee, then by caller */
    uint32_t *function_of;  /* by row */
    struct buf buf;
    FILE *out;
};

/* --- marshal --- */

static void put_u32(struct buf *b, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        buf_put_u8(b, (uint8_t)(v >> 8 * i));
}

static void put_number(struct buf *b, uint64_t v)
{
    if (v <= INT32_MAX) {
        buf_put_u8(b, 'i');
        put_u32(b, (uint32_t)v);
        return;
    }
    uint32_t digits = 0;
    for (uint64_t rest = v; rest; rest >>= DIGIT_BITS)
        digits++;
    buf_put_u8(b, 'l');
    put_u32(b, digits);
    for (; v; v >>= DIGIT_BITS) {
        buf_put_u8(b, (uint8_t)v);
        buf_put_u8(b, (uint8_t)(v >> 8 & 0x7f));
    }
}

static void put_real(struct buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    buf_put_u8(b, 'g');
    put_u32(b, (uint32_t)bits);
    put_u32(b, (uint32_t)(bits >> 32));
}

static void put_tuple(struct buf *b, uint32_t items)
{
    buf_put_u8(b, '(');
    put_u32(b, items);
}

/* A reader refuses the whole file for one byte that is not UTF-8: such a byte becomes '?'. */
static void put_text(struct buf *b, struct profile_string text)
{
    buf_put_u8(b, 'u');
    size_t at = b->len;
    put_u32(b, 0);
    for (uint32_t i = 0; i < text.len && b->len - at < TEXT_BYTES_MAX;) {
        uint32_t c;
        size_t n = utf8_decode(text.text + i, text.len - i, &c);
        if (n)
            buf_append(b, text.text + i, n);
        else
            buf_put_u8(b, '?');
        i += n ? (uint32_t)n : 1;
    }
    if (buf_error(b))
        return;
    uint32_t len = (uint32_t)(b->len - at - 4);
    for (int i = 0; i < 4; i++)
        b->data[at + (size_t)i] = (uint8_t)(len >> 8 * i);
}

/* --- functions --- */

static struct key key_of(const struct analysis_row *row, const struct record_code *code,
                         const struct profile_tables *t)
{
    struct key key = {row->file, row->name, row->line};
    if (row->is_c || row->special)
        key.file = (struct profile_string){"~", 1};
    else if (code)
        key.name = t->strings[code->name];
    return key;
}

/* Texts are interned, so equal ones are at equal places. */
static bool same_key(const struct key *a, const struct key *b)
{
    return a->name.text == b->name.text && a->file.text == b->file.text && a->line == b->line;
}

static int function_of_key(struct writing *w, struct idxmap *map, const struct key *key,
                           uint32_t *ret)
{
    uint64_t text = (uint64_t)(uintptr_t)key->name.text * 31 + (uint64_t)(uintptr_t)key->file.text;
    uint32_t hash = hash_u64(text ^ (uint64_t)key->line << 40), at;
    IDXMAP_FIND(map, hash, i, same_key(&w->functions.data[i].key, key), at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)w->functions.len;
        struct function *f = vec_push(&w->functions);
        if (!f || idxmap_insert(map, hash, at) < 0)
            return E_NOMEM;
        *f = (struct function){.key = *key};
    }
    *ret = at;
    return 0;
}

static int find_functions(struct writing *w)
{
    const struct analysis_rows *rows = &w->source->rows;
    const struct profile_tables *t = profile_tables(rows->weights->profile);
    bool counted = analysis_weights_counted(rows->weights);
    _cleanup_free_ uint32_t *code = calloc(rows->count + 1, sizeof *code); /* one of each row's */
    if (!code)
        return E_NOMEM;
    for (size_t i = 1; i < t->node_count; i++)
        code[rows->node_row[i]] = t->node_code[i];
    struct idxmap map = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < rows->count; i++) {
        const struct analysis_row *row = &rows->row[i];
        if (!row->total.samples && !row->total.weight)
            continue; /* the query left nothing of it */
        struct key key = key_of(row, code[i] ? &t->codes[code[i]] : NULL, t);
        r = function_of_key(w, &map, &key, &w->function_of[i]);
        if (r < 0)
            break;
        struct function *f = &w->functions.data[w->function_of[i]];
        analysis_weight_add(&f->self, row->self);
        analysis_weight_add(&f->total, row->total);
        f->calls += counted ? row->calls : row->total.samples;
        f->primitive_calls += counted ? row->primitive_calls : row->total.samples;
    }
    idxmap_release(&map);
    return r;
}

/* --- calls --- */

static int compare_calls(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    uint64_t i = (uint64_t)x->callee << 32 | x->caller, k = (uint64_t)y->callee << 32 | y->caller;
    return i < k ? -1 : i > k;
}

static int find_calls(struct writing *w)
{
    struct analysis_edges edges;
    int r = analysis_edges_init(&w->source->rows, &edges);
    if (r < 0)
        return r;
    bool counted = analysis_weights_counted(&w->source->weights);
    for (size_t i = 0; r == 0 && i < edges.count; i++) {
        const struct analysis_edge *e = &edges.by_callee[i];
        struct call *call = vec_push(&w->calls);
        if (!call)
            r = E_NOMEM;
        else
            *call = (struct call){w->function_of[e->caller],
                                  w->function_of[e->callee],
                                  e->self.weight,
                                  e->total.weight,
                                  counted ? e->calls : e->total.samples,
                                  counted ? e->primitive_calls : e->total.samples};
    }
    analysis_edges_release(&edges);
    if (r < 0 || !w->calls.len)
        return r;
    qsort(w->calls.data, w->calls.len, sizeof *w->calls.data, compare_calls);
    size_t kept = 0; /* those of functions that became one */
    for (size_t i = 1; i < w->calls.len; i++) {
        struct call *last = &w->calls.data[kept], *call = &w->calls.data[i];
        if (compare_calls(last, call) != 0) {
            w->calls.data[++kept] = *call;
            continue;
        }
        last->self += call->self;
        last->total += call->total;
        last->calls += call->calls;
        last->primitive_calls += call->primitive_calls;
    }
    w->calls.len = kept + 1;
    return 0;
}

/* --- the file --- */

static void put_key(struct buf *b, const struct key *key)
{
    put_tuple(b, 3);
    put_text(b, key->file);
    put_number(b, key->line);
    put_text(b, key->name);
}

static int write_all(struct writing *w)
{
    struct buf *b = &w->buf;
    double scale = w->source->weights.metric->scale;
    size_t next = 0;
    int r = 0;
    buf_put_u8(b, '{');
    for (uint32_t i = 0; r == 0 && i < w->functions.len; i++) {
        const struct function *f = &w->functions.data[i];
        put_key(b, &f->key);
        put_tuple(b, 5);
        put_number(b, f->primitive_calls);
        put_number(b, f->calls);
        put_real(b, (double)f->self.weight * scale);
        put_real(b, (double)f->total.weight * scale);
        buf_put_u8(b, '{');
        for (; next < w->calls.len && w->calls.data[next].callee == i; next++) {
            const struct call *call = &w->calls.data[next];
            put_key(b, &w->functions.data[call->caller].key);
            put_tuple(b, 4);
            put_number(b, call->calls);
            put_number(b, call->primitive_calls);
            put_real(b, (double)call->self * scale);
            put_real(b, (double)call->total * scale);
        }
        buf_put_u8(b, '0');
        r = export_drain(b, w->out, false);
    }
    buf_put_u8(b, '0');
    if (r == 0)
        r = export_drain(b, w->out, true);
    return r < 0 ? r : export_finish(w->out);
}

int export_pstats_write(const struct profile *profile, const struct export_options *options,
                        FILE *out)
{
    struct export_source source;
    int r = export_source_init(profile, &options->query, ANALYSIS_BY_FUNCTION, &source);
    if (r < 0)
        return r;
    struct writing w = {.source = &source, .out = out};
    buf_init(&w.buf, EXPORT_BUF_MAX);
    w.function_of = calloc(source.rows.count + 1, sizeof *w.function_of);
    r = w.function_of ? find_functions(&w) : E_NOMEM;
    if (r == 0)
        r = find_calls(&w);
    if (r == 0)
        r = write_all(&w);
    vec_release(&w.functions);
    vec_release(&w.calls);
    free(w.function_of);
    buf_release(&w.buf);
    export_source_release(&source);
    return r;
}
