/* pstats files (cProfile, profile, yappi): marshal of
 *
 *     {(file, line, name): (primitive calls, calls, self s, total s, callers)}
 *     callers: {(file, line, name): (calls, primitive calls, self s, total s)}
 *
 * (mind the order of the counts; `profile` writes a bare number of calls for a caller). It knows
 * functions and who called them, but no stacks. So the counts are kept as they are, for tables, and
 * a tree is estimated from them, for pictures: import_tree.c. */
#include "profile/import_tree.h"
#include "profile/marshal.h"

#include "base/err.h"
#include "base/progress.h"

enum { FUNCTION_FIELDS = 5, KEY_FIELDS = 3, CALL_FIELDS = 4 };

struct reading {
    struct import *im;
    struct marshal m;
    struct import_tree tree;
    struct idxmap by_code;
};

/* Seconds to ns and numbers to counts; what is negative or absurd is none. */
static uint64_t to_count(const struct marshal_value *v, double scale)
{
    double x = v->kind == MARSHAL_NUMBER ? v->number * scale + 0.5 : 0;
    return x > 0 && x < 9e18 ? (uint64_t)x : 0;
}

static struct import_text text_of(const struct marshal_value *v)
{
    return (struct import_text){v->text, v->count};
}

/* The function of a key; a new one, without counts, if nobody named it yet. */
static int find_function(struct reading *rd, const struct marshal_value *key, uint32_t *ret)
{
    const struct marshal *m = &rd->m;
    if (key->kind != MARSHAL_ROW || key->count != KEY_FIELDS)
        return E_BADPSTATS;
    const struct marshal_value *file = marshal_item(m, key, 0), *line = marshal_item(m, key, 1);
    const struct marshal_value *name = marshal_item(m, key, 2);
    if (file->kind != MARSHAL_TEXT || line->kind != MARSHAL_NUMBER || name->kind != MARSHAL_TEXT)
        return E_BADPSTATS;
    struct import_text path = text_of(file);
    if (path.len == 1 && path.text[0] == '~')
        path.len = 0; /* a builtin */
    uint32_t number = line->number > 0 && line->number < 1e9 ? (uint32_t)line->number : 0;
    uint32_t code = import_code(rd->im, text_of(name), path, number), at;
    IDXMAP_FIND(&rd->by_code, hash_u64(code), i, rd->tree.functions.data[i].code == code, at);
    if (at == IDXMAP_NONE) {
        at = (uint32_t)rd->tree.functions.len;
        struct import_function *f = vec_push(&rd->tree.functions);
        if (!f || idxmap_insert(&rd->by_code, hash_u64(code), at) < 0)
            return E_NOMEM;
        *f = (struct import_function){.code = code, .line = number};
    }
    *ret = at;
    return 0;
}

/* A caller's share: a tuple of four, or the number of calls alone. */
static int read_call(struct reading *rd, uint32_t callee, const struct marshal_value *key,
                     const struct marshal_value *v)
{
    uint32_t caller;
    int r = find_function(rd, key, &caller);
    if (r < 0)
        return r;
    struct profile_call call = {.caller = caller, .callee = callee};
    if (v->kind == MARSHAL_ROW && v->count == CALL_FIELDS) {
        call.counts.calls = to_count(marshal_item(&rd->m, v, 0), 1);
        call.counts.primitive_calls = to_count(marshal_item(&rd->m, v, 1), 1);
        call.counts.self_ns = to_count(marshal_item(&rd->m, v, 2), 1e9);
        call.counts.total_ns = to_count(marshal_item(&rd->m, v, 3), 1e9);
    } else if (v->kind == MARSHAL_NUMBER) {
        call.counts.calls = call.counts.primitive_calls = to_count(v, 1);
        rd->tree.functions.data[callee].untimed_calls += call.counts.calls;
    } else {
        return E_BADPSTATS;
    }
    struct profile_call *slot = vec_push(&rd->tree.calls);
    if (!slot)
        return E_NOMEM;
    *slot = call;
    return 0;
}

static int read_function(struct reading *rd, const struct marshal_value *key,
                         const struct marshal_value *v)
{
    const struct marshal *m = &rd->m;
    uint32_t at;
    if (v->kind != MARSHAL_ROW || v->count != FUNCTION_FIELDS)
        return E_BADPSTATS;
    int r = find_function(rd, key, &at);
    if (r < 0)
        return r;
    struct profile_counts *counts = &rd->tree.functions.data[at].counts;
    counts->primitive_calls += to_count(marshal_item(m, v, 0), 1);
    counts->calls += to_count(marshal_item(m, v, 1), 1);
    counts->self_ns += to_count(marshal_item(m, v, 2), 1e9);
    counts->total_ns += to_count(marshal_item(m, v, 3), 1e9);
    const struct marshal_value *callers = marshal_item(m, v, 4);
    if (callers->kind != MARSHAL_ROW || callers->count % 2)
        return E_BADPSTATS;
    for (uint32_t i = 0; r == 0 && i < callers->count; i += 2)
        r = read_call(rd, at, marshal_item(m, callers, i), marshal_item(m, callers, i + 1));
    return r;
}

/* Where a file gives calls alone, a function's time is spread over its callers by calls. */
static void time_calls(struct import_tree *tree)
{
    for (size_t i = 0; i < tree->calls.len; i++) {
        struct profile_call *call = &tree->calls.data[i];
        const struct import_function *f = &tree->functions.data[call->callee];
        if (!f->untimed_calls)
            continue;
        double part = (double)call->counts.calls / (double)f->untimed_calls;
        call->counts.self_ns = (uint64_t)((double)f->counts.self_ns * part);
        call->counts.total_ns = (uint64_t)((double)f->counts.total_ns * part);
    }
}

/* The counts by code id, as the profile wants them. */
static int hand_over(struct reading *rd)
{
    struct import *im = rd->im;
    struct import_tree *tree = &rd->tree;
    uint32_t last = 0;
    for (size_t i = 0; i < im->codes.len; i++)
        last = im->codes.data[i].id > last ? im->codes.data[i].id : last;
    im->counts = calloc((size_t)last + 2, sizeof *im->counts); /* and one for the lost */
    if (!im->counts)
        return E_NOMEM;
    for (size_t i = 0; i < tree->functions.len; i++)
        im->counts[tree->functions.data[i].code] = tree->functions.data[i].counts;
    for (size_t i = 0; i < tree->calls.len; i++) {
        struct profile_call *call = &tree->calls.data[i];
        call->caller = tree->functions.data[call->caller].code;
        call->callee = tree->functions.data[call->callee].code;
    }
    im->calls = tree->calls.data;
    im->call_count = tree->calls.len;
    tree->calls.data = NULL;
    return 0;
}

static int read_all(struct reading *rd)
{
    const struct marshal_value *root = &rd->m.values.data[rd->m.root];
    if (root->kind != MARSHAL_ROW || root->count % 2)
        return E_BADPSTATS;
    int r = root->count ? 0 : E_EMPTY;
    for (uint32_t i = 0; r == 0 && i < root->count; i += 2)
        r = read_function(rd, marshal_item(&rd->m, root, i), marshal_item(&rd->m, root, i + 1));
    if (r < 0)
        return r;
    time_calls(&rd->tree);
    import_unit(rd->im, "time");
    import_thread(rd->im, (struct import_text){"all threads", 11});
    r = import_tree_grow(rd->im, &rd->tree);
    return r < 0 ? r : hand_over(rd);
}

int import_pstats(struct import *im)
{
    struct reading rd = {.im = im};
    progress_begin("importing functions", 0);
    int r = marshal_init(&rd.m, im->data, im->len);
    if (r < 0)
        return r;
    r = read_all(&rd);
    marshal_release(&rd.m);
    vec_release(&rd.tree.functions);
    vec_release(&rd.tree.calls);
    idxmap_release(&rd.by_code);
    return r;
}
