/* A walk from the functions that nobody called, down the calls. A place is a function in one
 * context; `part` is how much of the function's whole happened there. What the walk could not place
 * (recursion, crumbs) is made up for in the end, function by function. */
#include "profile/import_tree.h"

#include "base/err.h"

enum { PLACES_MAX = 1 << 20, DEPTH_MAX = 1000 };
static const double CRUMB = 1e-5; /* of the whole: less is not followed */

struct place {
    uint32_t function;
    uint32_t stack;
    double self_ns;
};

struct step {
    uint32_t function;
    uint32_t stack;
    double part;
    size_t next; /* of its calls */
};

struct growing {
    struct import *im;
    const struct import_tree *tree;
    uint32_t *order;   /* calls sorted by caller */
    size_t *calls_at;  /* where each function's calls begin in it */
    double *whole;     /* of each function: its total, or what its callers say if that is more */
    double *placed_ns; /* of each function's own time */
    uint8_t *on_path;
    double crumb_ns;
    VEC(struct place) places;
    VEC(struct step) path;
};

static int index_calls(struct growing *g)
{
    const struct import_tree *tree = g->tree;
    size_t n = tree->functions.len, calls = tree->calls.len;
    g->order = calloc(calls + 1, sizeof *g->order);
    g->calls_at = calloc(n + 2, sizeof *g->calls_at);
    g->whole = calloc(n + 1, sizeof *g->whole);
    g->placed_ns = calloc(n + 1, sizeof *g->placed_ns);
    g->on_path = calloc(n + 1, 1);
    if (!g->order || !g->calls_at || !g->whole || !g->placed_ns || !g->on_path)
        return E_NOMEM;
    for (size_t i = 0; i < calls; i++) {
        const struct profile_call *c = &tree->calls.data[i];
        g->calls_at[c->caller + 1]++;
        if (c->caller != c->callee)
            g->whole[c->callee] += (double)c->counts.total_ns;
    }
    for (size_t i = 0; i < n; i++)
        g->calls_at[i + 1] += g->calls_at[i];
    for (size_t i = calls;
         i-- > 0;) /* backwards, from the end of each; the ends become beginnings */
        g->order[--g->calls_at[tree->calls.data[i].caller + 1]] = (uint32_t)i;
    memmove(g->calls_at, g->calls_at + 1, n * sizeof *g->calls_at);
    g->calls_at[n] = calls;
    return 0;
}

static int enter(struct growing *g, uint32_t function, uint32_t parent, double part, double self_ns)
{
    const struct import_function *f = &g->tree->functions.data[function];
    struct place *place = vec_push(&g->places);
    struct step *step = vec_push(&g->path);
    if (!place || !step)
        return E_NOMEM;
    uint32_t stack = import_stack(g->im, parent, f->code, f->line);
    *place = (struct place){function, stack, self_ns};
    *step = (struct step){function, stack, part, g->calls_at[function]};
    g->placed_ns[function] += self_ns;
    g->on_path[function] = 1;
    return 0;
}

static int walk(struct growing *g)
{
    while (g->path.len) {
        struct step *top = &g->path.data[g->path.len - 1];
        if (top->next == g->calls_at[top->function + 1]) {
            g->on_path[top->function] = 0;
            g->path.len--;
            continue;
        }
        const struct profile_call *c = &g->tree->calls.data[g->order[top->next++]];
        double ns = top->part * (double)c->counts.total_ns;
        if (g->on_path[c->callee] || ns < g->crumb_ns || g->path.len >= DEPTH_MAX ||
            g->places.len >= PLACES_MAX)
            continue;
        double whole = g->whole[c->callee];
        int r = enter(g, c->callee, top->stack, whole > 0 ? ns / whole : 0,
                      top->part * (double)c->counts.self_ns);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What of a function was not called by any function in the file. */
static int grow_from(struct growing *g, uint32_t function)
{
    const struct profile_counts *c = &g->tree->functions.data[function].counts;
    double total = (double)c->total_ns, called = g->whole[function];
    double part = called <= 0 ? 1 : total > called ? (total - called) / total : 0;
    if (part * total < g->crumb_ns && called > 0)
        return 0;
    int r = enter(g, function, RECORD_STACK_ROOT, part, part * (double)c->self_ns);
    return r < 0 ? r : walk(g);
}

static int push_places(struct growing *g)
{
    for (size_t i = 0; i < g->places.len; i++) {
        const struct place *p = &g->places.data[i];
        double self = (double)g->tree->functions.data[p->function].counts.self_ns;
        double placed = g->placed_ns[p->function];
        double ns = placed > 0 ? p->self_ns * self / placed : 0;
        import_sample(g->im, p->stack, 1, (uint64_t)(ns + 0.5));
        if (placed <= 0)
            g->placed_ns[p->function] = -1; /* seen, but its time is still to be placed */
    }
    for (size_t i = 0; i < g->tree->functions.len; i++) {
        const struct import_function *f = &g->tree->functions.data[i];
        if (g->placed_ns[i] > 0 || (g->placed_ns[i] < 0 && !f->counts.self_ns))
            continue;
        uint32_t stack = import_stack(g->im, RECORD_STACK_ROOT, f->code, f->line);
        import_sample(g->im, stack, 1, f->counts.self_ns);
    }
    return 0;
}

int import_tree_grow(struct import *im, const struct import_tree *tree)
{
    struct growing g = {.im = im, .tree = tree};
    int r = index_calls(&g);
    double all = 0;
    for (size_t i = 0; i < tree->functions.len; i++)
        all += (double)tree->functions.data[i].counts.self_ns;
    g.crumb_ns = all * CRUMB;
    for (uint32_t i = 0; r == 0 && i < tree->functions.len; i++)
        r = grow_from(&g, i);
    if (r == 0)
        r = push_places(&g);
    free(g.order);
    free(g.calls_at);
    free(g.whole);
    free(g.placed_ns);
    free(g.on_path);
    vec_release(&g.places);
    vec_release(&g.path);
    return r;
}
