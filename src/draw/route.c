/* The ways of the arrows, and the patches under groups.
 *
 * An arrow leaves its box at the bottom and comes in at the top; ends at one side of a box stand in
 * the order of where they go, so that they do not cross at once. Between two layers the way is one
 * piece of a Bézier curve, upright at both ends; through a layer it goes straight down at its bend,
 * where the placing has kept room for it. */
#include "base/err.h"
#include "draw/internal.h"

#include <math.h>

static const double PORT_STEP = 16, PORT_SHARE = 0.72; /* between ends; of a box's width */

struct port {
    uint32_t item, arrow;
    double towards; /* x of where it goes */
};

/* --- ports --- */

static int compare_ports(const void *a, const void *b)
{
    const struct port *x = a, *y = b;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    if (x->towards != y->towards)
        return x->towards < y->towards ? -1 : 1;
    return x->arrow < y->arrow ? -1 : x->arrow > y->arrow;
}

/* The item after the upper end, or before the lower one. */
static uint32_t next_item(const struct sketch_arrow *a, bool upper)
{
    if (!a->bend_count)
        return upper ? a->lower : a->upper;
    return upper ? a->first_bend : a->first_bend + a->bend_count - 1;
}

/* x of the upper (or lower) end of every arrow. */
static int place_ports(const struct sketch *s, bool upper, double *x)
{
    _cleanup_free_ struct port *port = malloc((s->arrows.len + 1) * sizeof *port);
    if (!port)
        return E_NOMEM;
    size_t n = s->arrows.len;
    for (uint32_t i = 0; i < n; i++) {
        const struct sketch_arrow *a = &s->arrows.data[i];
        port[i] =
            (struct port){upper ? a->upper : a->lower, i, s->items.data[next_item(a, upper)].x};
    }
    qsort(port, n, sizeof *port, compare_ports);
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && port[end].item == port[first].item;)
            end++;
        const struct sketch_item *item = &s->items.data[port[first].item];
        double room = PORT_SHARE * s->graph->box[item->box].width;
        double step = fmin(PORT_STEP, room / (double)(end - first));
        for (size_t k = first; k < end; k++)
            x[port[k].arrow] =
                item->x + ((double)(k - first) - (double)(end - first - 1) / 2) * step;
    }
    return 0;
}

/* --- ways --- */

static int add_point(struct sketch_output *out, double x, double y)
{
    struct draw_point *p = vec_push(&out->points);
    if (!p)
        return E_NOMEM;
    *p = (struct draw_point){x, y};
    return 0;
}

/* From (x0, y0) to (x, y), upright at both ends. */
static int add_piece(struct sketch_output *out, double x0, double y0, double x, double y)
{
    double reach = (y - y0) * 0.5;
    int r = add_point(out, x0, y0 + reach);
    r = r < 0 ? r : add_point(out, x, y - reach);
    return r < 0 ? r : add_point(out, x, y);
}

static void turn_round(struct draw_point *p, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct draw_point last = p[n - 1 - i];
        p[n - 1 - i] = p[i];
        p[i] = last;
    }
}

static double middle_of(const struct sketch *s, const struct sketch_item *item)
{
    return (s->top[item->layer] + s->bottom[item->layer]) / 2;
}

/* How far along a piece (0–1) it has come at `part` of its height: the inverse of y in add_piece. */
static double across_at(double part)
{
    enum { HALVINGS = 16 };
    double low = 0, high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        double t = (low + high) / 2;
        *(1.5 * t * (1 - t) + t * t * t < part ? &low : &high) = t;
    }
    return (3 - 2 * low) * low * low;
}

/* True if no box of the layer reaches into [left, right]. */
static bool is_clear(const struct sketch *s, uint32_t layer, double left, double right)
{
    uint32_t low = s->layer_at[layer], high = s->layer_at[layer + 1];
    while (low < high) {
        uint32_t k = low + (high - low) / 2;
        const struct sketch_item *item = &s->items.data[s->order[k]];
        if (item->x + item->right < left)
            low = k + 1;
        else
            high = k;
    }
    for (; low < s->layer_at[layer + 1]; low++) {
        const struct sketch_item *item = &s->items.data[s->order[low]];
        if (item->x - item->left > right)
            return true;
        if (item->box != DRAW_NONE)
            return false;
    }
    return true;
}

/* True if one piece may lead from a point to another past the layers between them. */
static bool may_skip(const struct sketch *s, struct draw_point from, struct draw_point to,
                     uint32_t first_layer, uint32_t last_layer)
{
    for (uint32_t layer = first_layer; layer < last_layer; layer++) {
        double height = to.y - from.y, way = to.x - from.x;
        double a = from.x + way * across_at((s->top[layer] - from.y) / height);
        double b = from.x + way * across_at((s->bottom[layer] - from.y) / height);
        if (!is_clear(s, layer, fmin(a, b) - SKETCH_BEND_GAP * 0.75,
                      fmax(a, b) + SKETCH_BEND_GAP * 0.75))
            return false;
    }
    return true;
}

/* The bends keep a way free; where the straight way is free too, they are not needed, and the arrow
 * swings instead of climbing stairs. The next one to go to, or bend_count for the end. */
static uint32_t next_bend(const struct sketch *s, const struct sketch_arrow *a, uint32_t bend,
                          struct draw_point from, struct draw_point end)
{
    enum { LOOK_AHEAD = 12 };
    uint32_t layer = s->items.data[a->upper].layer + 1 + bend, best = bend;
    for (uint32_t to = bend + 1; to <= a->bend_count && to <= bend + LOOK_AHEAD; to++) {
        const struct sketch_item *item = &s->items.data[a->first_bend + to];
        struct draw_point at =
            to == a->bend_count ? end : (struct draw_point){item->x, s->top[item->layer]};
        if (!may_skip(s, from, at, layer, layer + (to - bend)))
            break;
        best = to;
    }
    return best;
}

static int route_arrow(const struct sketch *s, const struct sketch_arrow *a, double from_x,
                       double to_x, struct sketch_output *out)
{
    const struct sketch_item *upper = &s->items.data[a->upper], *lower = &s->items.data[a->lower];
    size_t first = out->points.len;
    double x = from_x, y = middle_of(s, upper) + s->graph->box[upper->box].height / 2;
    int r = add_point(out, x, y);
    struct draw_point end = {to_x, middle_of(s, lower) - s->graph->box[lower->box].height / 2};
    for (uint32_t i = 0; r == 0 && i < a->bend_count; i++) {
        i = next_bend(s, a, i, (struct draw_point){x, y}, end);
        if (i == a->bend_count)
            break;
        const struct sketch_item *bend = &s->items.data[a->first_bend + i];
        r = add_piece(out, x, y, bend->x, s->top[bend->layer]);
        x = bend->x;
        y = s->bottom[bend->layer];
        if (r == 0)
            r = add_piece(out, x, s->top[bend->layer], x, y);
    }
    if (r == 0)
        r = add_piece(out, x, y, end.x, end.y);
    if (r < 0)
        return r;
    if (a->back)
        turn_round(out->points.data + first, out->points.len - first);
    out->route[a->arrow] = (struct draw_route){
        .first = (uint32_t)first, .count = (uint32_t)(out->points.len - first), .back = a->back};
    return 0;
}

/* Out at the right side above the middle, and in again below it. */
static int route_loop(const struct sketch *s, const struct sketch_item *item, uint32_t arrow,
                      struct sketch_output *out)
{
    const struct draw_box *box = &s->graph->box[item->box];
    double x = item->x + box->width / 2, y = middle_of(s, item), half = box->height / 4;
    size_t first = out->points.len;
    int r = add_point(out, x, y - half);
    r = r < 0 ? r : add_point(out, x + SKETCH_LOOP * 1.2, y - half - 4);
    r = r < 0 ? r : add_point(out, x + SKETCH_LOOP * 1.2, y + half + 4);
    r = r < 0 ? r : add_point(out, x, y + half);
    out->route[arrow] = (struct draw_route){.first = (uint32_t)first, .count = 4, .loop = true};
    return r;
}

int sketch_make_routes(const struct sketch *s, struct sketch_output *out)
{
    _cleanup_free_ double *from = calloc(s->arrows.len + 1, sizeof *from);
    _cleanup_free_ double *to = calloc(s->arrows.len + 1, sizeof *to);
    if (!from || !to)
        return E_NOMEM;
    int r = place_ports(s, true, from);
    r = r < 0 ? r : place_ports(s, false, to);
    for (size_t i = 0; r == 0 && i < s->arrows.len; i++)
        r = route_arrow(s, &s->arrows.data[i], from[i], to[i], out);
    for (size_t i = 0; i < s->box_count; i++) {
        const struct sketch_item *item = &s->items.data[i];
        out->box[item->box] = (struct draw_point){item->x, middle_of(s, item)};
    }
    for (size_t i = 0; r == 0 && i < s->loops.len; i++)
        r = route_loop(s, &s->items.data[s->loops.data[i].item], s->loops.data[i].arrow, out);
    return r;
}

/* --- patches --- */

static bool overlap(const struct draw_patch *a, double left, double right)
{
    return a->left < right && left < a->right;
}

/* The ground under one run: joined to the group's run in the layer above where both overlap. */
static int add_patch(const struct sketch *s, uint32_t layer, uint32_t group, double left,
                     double right, uint32_t *last, struct sketch_output *out)
{
    uint32_t above = last[group];
    bool is_joined = above != DRAW_NONE && layer > 0 &&
                     out->patches.data[above].bottom == s->bottom[layer - 1] + SKETCH_PATCH_PAD &&
                     overlap(&out->patches.data[above], left, right);
    struct draw_patch *p = vec_push(&out->patches);
    if (!p)
        return E_NOMEM;
    *p = (struct draw_patch){
        .group = group,
        .left = left,
        .right = right,
        .top = s->top[layer] - SKETCH_PATCH_PAD - (is_joined ? 0 : s->graph->patch_head),
        .bottom = s->bottom[layer] + SKETCH_PATCH_PAD,
        .above = is_joined ? above : DRAW_NONE,
    };
    last[group] = (uint32_t)out->patches.len - 1;
    return 0;
}

int sketch_make_patches(const struct sketch *s, struct sketch_output *out)
{
    _cleanup_free_ uint32_t *last = malloc(((size_t)s->group_count + 1) * sizeof *last);
    if (!last)
        return E_NOMEM;
    memset(last, 0xff, ((size_t)s->group_count + 1) * sizeof *last);
    int r = 0;
    for (uint32_t layer = 0; layer < s->layer_count; layer++)
        for (uint32_t k = s->layer_at[layer], end; r == 0 && k < s->layer_at[layer + 1]; k = end) {
            const struct sketch_item *item = &s->items.data[s->order[k]];
            for (end = k + 1;
                 end < s->layer_at[layer + 1] && s->items.data[s->order[end]].group == item->group;)
                end++;
            const struct sketch_item *right = &s->items.data[s->order[end - 1]];
            if (sketch_has_patch(s, item))
                r = add_patch(s, layer, item->group, item->x - item->left - SKETCH_PATCH_PAD,
                              right->x + right->right + SKETCH_PATCH_PAD, last, out);
        }
    return r;
}
