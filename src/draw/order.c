/* The order within the layers: few crossings, and the boxes of a group side by side.
 *
 * Sweeps down and up sort each layer by where the neighbours of its items stand (barycentres); the
 * best order seen is kept. A group moves as one: it is sorted by the mean of its members, and these
 * among themselves. At the end neighbours are swapped where that saves crossings. */
#include "base/err.h"
#include "draw/internal.h"

#include <math.h>

enum {
    SWEEPS = 24,
    SWEEPS_WITHOUT_GAIN = 6,
    SWAP_ROUNDS = 6,
    SWAP_LINKS_MAX = 2000,       /* pairs of links looked at for one swap */
    WORK_MAX = 40 * 1000 * 1000, /* links looked at in all, so that a huge graph takes no longer */
};
static const double GROUP_PULL = 0.35; /* of a group's place in the next layer, beside the links' */

struct ordering {
    struct sketch *s;
    struct place *place;    /* scratch of one layer */
    double *sum, *count;    /* by group */
    uint32_t *tree, *lower; /* for counting crossings */
    uint64_t work;
};

/* What an item is sorted by: the place of its group (or its own), then its own. */
struct place {
    double of_group, own;
    uint32_t group; /* keeps a group together where two have the same place */
    uint32_t at, item;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->of_group != y->of_group)
        return x->of_group < y->of_group ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->own != y->own)
        return x->own < y->own ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static size_t layer_size(const struct sketch *s, uint32_t layer)
{
    return s->layer_at[layer + 1] - s->layer_at[layer];
}

static void set_order(struct sketch *s, uint32_t layer)
{
    for (uint32_t k = s->layer_at[layer]; k < s->layer_at[layer + 1]; k++)
        s->items.data[s->order[k]].at = k - s->layer_at[layer];
}

/* --- crossings --- */

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Links from left to right of their upper ends; each crosses those before it whose lower end is
 * further right. A tree of sums counts them. */
static uint64_t crossings_below(struct ordering *o, uint32_t layer)
{
    const struct sketch *s = o->s;
    size_t size = layer_size(s, layer + 1);
    memset(o->tree, 0, (size + 2) * sizeof *o->tree);
    uint64_t crossings = 0, before = 0;
    for (uint32_t k = s->layer_at[layer]; k < s->layer_at[layer + 1]; k++) {
        uint32_t item = s->order[k];
        size_t n = 0;
        for (uint32_t d = s->down_at[item]; d < s->down_at[item + 1]; d++)
            o->lower[n++] = s->items.data[s->links.data[s->down[d]].lower].at;
        qsort(o->lower, n, sizeof *o->lower, compare_u32);
        for (size_t i = 0; i < n; i++) {
            uint64_t not_right = 0;
            for (size_t at = o->lower[i] + 1; at; at &= at - 1)
                not_right += o->tree[at];
            crossings += before - not_right;
        }
        for (size_t i = 0; i < n; i++, before++)
            for (size_t at = o->lower[i] + 1; at <= size; at += at & -at)
                o->tree[at]++;
        o->work += n;
    }
    return crossings;
}

static uint64_t count_crossings(struct ordering *o)
{
    uint64_t sum = 0;
    for (uint32_t layer = 0; layer + 1 < o->s->layer_count; layer++)
        sum += crossings_below(o, layer);
    return sum;
}

/* --- sweeps --- */

/* The mean place of the neighbours above (or below); its own where it has none. */
static double barycentre(const struct sketch *s, uint32_t item, bool from_above)
{
    const uint32_t *at = from_above ? s->up_at : s->down_at;
    const uint32_t *list = from_above ? s->up : s->down;
    double sum = 0;
    uint32_t n = at[item + 1] - at[item];
    for (uint32_t k = at[item]; k < at[item + 1]; k++) {
        const struct sketch_link *link = &s->links.data[list[k]];
        sum += s->items.data[from_above ? link->upper : link->lower].at;
    }
    return n ? sum / n : s->items.data[item].at;
}

static void clear_groups(struct ordering *o, uint32_t layer)
{
    const struct sketch *s = o->s;
    for (uint32_t k = s->layer_at[layer]; k < s->layer_at[layer + 1]; k++) {
        uint32_t group = s->items.data[s->order[k]].group;
        if (group != DRAW_NONE)
            o->sum[group] = o->count[group] = 0;
    }
}

/* Adds to each group of the layer where its members in the fixed layer stand. */
static void pull_groups(struct ordering *o, uint32_t layer, uint32_t fixed)
{
    const struct sketch *s = o->s;
    clear_groups(o, layer);
    clear_groups(o, fixed);
    for (uint32_t k = s->layer_at[fixed]; k < s->layer_at[fixed + 1]; k++) {
        const struct sketch_item *item = &s->items.data[s->order[k]];
        if (item->group != DRAW_NONE) {
            o->sum[item->group] += GROUP_PULL * item->at;
            o->count[item->group] += GROUP_PULL;
        }
    }
}

static void sort_layer(struct ordering *o, uint32_t layer, uint32_t fixed)
{
    struct sketch *s = o->s;
    size_t n = layer_size(s, layer);
    const uint32_t *items = s->order + s->layer_at[layer];
    pull_groups(o, layer, fixed);
    for (size_t i = 0; i < n; i++) {
        const struct sketch_item *item = &s->items.data[items[i]];
        struct place *p = &o->place[i];
        p->item = items[i];
        p->at = item->at;
        p->group = item->group;
        p->own = barycentre(s, items[i], fixed < layer);
        o->work += s->up_at[items[i] + 1] - s->up_at[items[i]] + 1;
        if (item->group != DRAW_NONE) {
            o->sum[item->group] += p->own;
            o->count[item->group] += 1;
        }
    }
    for (size_t i = 0; i < n; i++) {
        struct place *p = &o->place[i];
        p->of_group = p->group == DRAW_NONE ? p->own : o->sum[p->group] / o->count[p->group];
    }
    qsort(o->place, n, sizeof *o->place, compare_places);
    for (size_t i = 0; i < n; i++)
        s->order[s->layer_at[layer] + i] = o->place[i].item;
    set_order(s, layer);
}

static void sweep(struct ordering *o, bool down)
{
    uint32_t n = o->s->layer_count;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t layer = down ? i : n - 1 - i;
        sort_layer(o, layer, down ? layer - 1 : layer + 1);
    }
}

/* --- swaps --- */

/* Crossings of two items' links towards one side, with `a` at the left: those where a's end is
 * right of b's. */
static uint64_t pair_crossings(const struct sketch *s, uint32_t a, uint32_t b, bool above)
{
    const uint32_t *at = above ? s->up_at : s->down_at, *list = above ? s->up : s->down;
    uint64_t crossings = 0;
    for (uint32_t i = at[a]; i < at[a + 1]; i++) {
        const struct sketch_link *x = &s->links.data[list[i]];
        uint32_t x_at = s->items.data[above ? x->upper : x->lower].at;
        for (uint32_t k = at[b]; k < at[b + 1]; k++) {
            const struct sketch_link *y = &s->links.data[list[k]];
            crossings += x_at > s->items.data[above ? y->upper : y->lower].at;
        }
    }
    return crossings;
}

static uint64_t pair_cost(const struct sketch *s, uint32_t a, uint32_t b)
{
    uint64_t up = (uint64_t)(s->up_at[a + 1] - s->up_at[a]) * (s->up_at[b + 1] - s->up_at[b]);
    return up + (uint64_t)(s->down_at[a + 1] - s->down_at[a]) * (s->down_at[b + 1] - s->down_at[b]);
}

/* A swap may not tear a group: inside one, or between two that are alone. */
static bool may_swap(const struct sketch *s, uint32_t k, uint32_t first, uint32_t last)
{
    uint32_t a = s->items.data[s->order[k]].group, b = s->items.data[s->order[k + 1]].group;
    if (a == b)
        return true;
    bool a_goes_on = k > first && a != DRAW_NONE && s->items.data[s->order[k - 1]].group == a;
    bool b_goes_on = k + 2 < last && b != DRAW_NONE && s->items.data[s->order[k + 2]].group == b;
    return !a_goes_on && !b_goes_on;
}

static bool swap_in_layer(struct ordering *o, uint32_t layer)
{
    struct sketch *s = o->s;
    uint32_t first = s->layer_at[layer], last = s->layer_at[layer + 1];
    bool gained = false;
    for (uint32_t k = first; k + 1 < last; k++) {
        uint32_t a = s->order[k], b = s->order[k + 1];
        uint64_t cost = pair_cost(s, a, b);
        if (cost > SWAP_LINKS_MAX || !may_swap(s, k, first, last))
            continue;
        o->work += 2 * cost + 1;
        uint64_t now = pair_crossings(s, a, b, true) + pair_crossings(s, a, b, false);
        uint64_t then = pair_crossings(s, b, a, true) + pair_crossings(s, b, a, false);
        if (then >= now)
            continue;
        s->order[k] = b;
        s->order[k + 1] = a;
        s->items.data[b].at = k - first;
        s->items.data[a].at = k + 1 - first;
        gained = true;
    }
    return gained;
}

static void swap_neighbours(struct ordering *o)
{
    for (int round = 0; round < SWAP_ROUNDS && o->work < WORK_MAX; round++) {
        bool gained = false;
        for (uint32_t layer = 0; layer < o->s->layer_count; layer++)
            gained |= swap_in_layer(o, layer);
        if (!gained)
            return;
    }
}

/* --- all --- */

/* The first order: as a walk from the top meets them, so that what belongs together is together. */
static int order_by_walk(struct sketch *s)
{
    size_t n = s->items.len;
    _cleanup_free_ uint8_t *seen = calloc(n + 1, 1);
    _cleanup_free_ uint32_t *stack = malloc((n + s->links.len + 1) * sizeof *stack);
    _cleanup_free_ uint32_t *filled = calloc((size_t)s->layer_count + 1, sizeof *filled);
    if (!seen || !stack || !filled)
        return E_NOMEM;
    for (uint32_t root = 0; root < n; root++) {
        if (seen[root] || s->up_at[root] != s->up_at[root + 1])
            continue;
        size_t depth = 0;
        stack[depth++] = root;
        while (depth) {
            uint32_t item = stack[--depth];
            if (seen[item]++)
                continue;
            uint32_t layer = s->items.data[item].layer;
            s->order[s->layer_at[layer] + filled[layer]++] = item;
            seen[item] = 1;
            for (uint32_t k = s->down_at[item + 1]; k-- > s->down_at[item];)
                if (!seen[s->links.data[s->down[k]].lower])
                    stack[depth++] = s->links.data[s->down[k]].lower;
        }
    }
    for (uint32_t layer = 0; layer < s->layer_count; layer++)
        set_order(s, layer);
    return 0;
}

/* Groups together, at the place of their mean, before anything is counted. */
static void gather_groups(struct ordering *o)
{
    for (uint32_t layer = 0; layer < o->s->layer_count; layer++)
        sort_layer(o, layer, layer ? layer - 1 : layer);
}

static int improve(struct ordering *o)
{
    struct sketch *s = o->s;
    _cleanup_free_ uint32_t *best = malloc((s->items.len + 1) * sizeof *best);
    if (!best)
        return E_NOMEM;
    gather_groups(o);
    uint64_t least = count_crossings(o);
    memcpy(best, s->order, s->items.len * sizeof *best);
    for (int i = 0, idle = 0; i < SWEEPS && idle < SWEEPS_WITHOUT_GAIN && least; i++) {
        sweep(o, i % 2 == 0);
        uint64_t crossings = count_crossings(o);
        idle++;
        if (crossings < least) {
            least = crossings;
            memcpy(best, s->order, s->items.len * sizeof *best);
            idle = 0;
        }
        if (o->work > WORK_MAX)
            break;
    }
    memcpy(s->order, best, s->items.len * sizeof *best);
    for (uint32_t layer = 0; layer < s->layer_count; layer++)
        set_order(s, layer);
    swap_neighbours(o);
    return 0;
}

static int ordering_init(struct ordering *o, struct sketch *s)
{
    *o = (struct ordering){.s = s};
    size_t n = s->items.len + 2;
    o->place = malloc(n * sizeof *o->place);
    o->sum = calloc((size_t)s->group_count + 1, sizeof *o->sum);
    o->count = calloc((size_t)s->group_count + 1, sizeof *o->count);
    o->tree = malloc(n * sizeof *o->tree);
    o->lower = malloc((s->links.len + 1) * sizeof *o->lower);
    return o->place && o->sum && o->count && o->tree && o->lower ? 0 : E_NOMEM;
}

static void ordering_release(struct ordering *o)
{
    free(o->place);
    free(o->sum);
    free(o->count);
    free(o->tree);
    free(o->lower);
}

int sketch_make_order(struct sketch *s)
{
    struct ordering o;
    int r = ordering_init(&o, s);
    if (r == 0)
        r = order_by_walk(s);
    if (r == 0)
        r = improve(&o);
    ordering_release(&o);
    return r;
}

int sketch_count_crossings(const struct sketch *s, uint64_t *ret)
{
    struct ordering o;
    int r = ordering_init(&o, (struct sketch *)s);
    if (r == 0)
        *ret = count_crossings(&o);
    ordering_release(&o);
    return r;
}
