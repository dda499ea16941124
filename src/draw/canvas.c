/* Shapes become lines, lines become signed areas in the pixels they pass, and a running sum along
 * each row turns these into coverage. All parts of a stroke turn the same way round, so that where
 * they overlap the sum only grows, and is cut at one. */
#include "draw/canvas.h"

#include "base/err.h"
#include "draw/mask.h"

#include <math.h>

static const double FLAT = 0.1;   /* how far a flattened curve may be off, in pixels */
static const double SHARP = 0.85; /* cosine of the turn from which a corner is rounded */
enum { CURVE_STEPS_MAX = 64, DISC_STEPS_MAX = 48 };

double draw_canvas_fit(double width, double height, double scale)
{
    double by_pixels = sqrt(DRAW_PIXELS_MAX / (width * height));
    double by_side = (DRAW_SIDE_MAX - 1) / fmax(width, height);
    return fmin(scale, fmin(by_pixels, by_side));
}

int draw_canvas_init(struct draw_canvas *c, double width, double height, double scale)
{
    *c = (struct draw_canvas){.scale = scale};
    double wide = ceil(width * scale), high = ceil(height * scale);
    if (!(wide >= 1 && high >= 1 && wide <= DRAW_SIDE_MAX && high <= DRAW_SIDE_MAX))
        return E_LIMIT;
    c->width = (uint32_t)wide;
    c->height = (uint32_t)high;
    c->rgb = malloc((size_t)c->width * c->height * 3);
    c->row_from = calloc(c->height + 1, sizeof *c->row_from);
    c->row_to = calloc(c->height + 1, sizeof *c->row_to);
    if (!c->rgb || !c->row_from || !c->row_to) {
        draw_canvas_release(c);
        return E_NOMEM;
    }
    memset(c->rgb, 0xff, (size_t)c->width * c->height * 3);
    return 0;
}

void draw_canvas_release(struct draw_canvas *c)
{
    free(c->rgb);
    free(c->cover);
    free(c->row_from);
    free(c->row_to);
    draw_masks_free(c->masks);
    vec_release(&c->points);
    vec_release(&c->starts);
    *c = (struct draw_canvas){0};
}

/* --- the shape --- */

static void push(struct draw_canvas *c, double x, double y)
{
    struct draw_point *p = vec_push(&c->points);
    if (p)
        *p = (struct draw_point){x, y};
    else
        c->error = E_NOMEM;
}

static void begin(struct draw_canvas *c)
{
    uint32_t *start = vec_push(&c->starts);
    if (start)
        *start = (uint32_t)c->points.len;
    else
        c->error = E_NOMEM;
}

void draw_move(struct draw_canvas *c, double x, double y)
{
    begin(c);
    push(c, x * c->scale, y * c->scale);
}

void draw_line(struct draw_canvas *c, double x, double y)
{
    push(c, x * c->scale, y * c->scale);
}

void draw_curve(struct draw_canvas *c, const struct draw_point p[3])
{
    if (!c->points.len)
        return;
    struct draw_point a = c->points.data[c->points.len - 1], q[3];
    for (int i = 0; i < 3; i++)
        q[i] = (struct draw_point){p[i].x * c->scale, p[i].y * c->scale};
    /* second differences bound how far chords are off */
    double bend = fmax(hypot(a.x - 2 * q[0].x + q[1].x, a.y - 2 * q[0].y + q[1].y),
                       hypot(q[0].x - 2 * q[1].x + q[2].x, q[0].y - 2 * q[1].y + q[2].y));
    int steps = (int)fmin(CURVE_STEPS_MAX, ceil(sqrt(0.75 * bend / FLAT)) + 1);
    for (int i = 1; i <= steps; i++) {
        double t = (double)i / steps, u = 1 - t;
        double wa = u * u * u, wb = 3 * u * u * t, wc = 3 * u * t * t, wd = t * t * t;
        push(c, wa * a.x + wb * q[0].x + wc * q[1].x + wd * q[2].x,
             wa * a.y + wb * q[0].y + wc * q[1].y + wd * q[2].y);
    }
}

void draw_rect(struct draw_canvas *c, double x, double y, double width, double height,
               double radius)
{
    double r = fmin(radius, fmin(width, height) / 2), k = r * 0.4477; /* 1 - kappa */
    double right = x + width, bottom = y + height;
    draw_move(c, x + r, y);
    draw_line(c, right - r, y);
    draw_curve(c, (struct draw_point[]){{right - k, y}, {right, y + k}, {right, y + r}});
    draw_line(c, right, bottom - r);
    draw_curve(
        c, (struct draw_point[]){{right, bottom - k}, {right - k, bottom}, {right - r, bottom}});
    draw_line(c, x + r, bottom);
    draw_curve(c, (struct draw_point[]){{x + k, bottom}, {x, bottom - k}, {x, bottom - r}});
    draw_line(c, x, y + r);
    draw_curve(c, (struct draw_point[]){{x, y + k}, {x + k, y}, {x + r, y}});
}

/* --- coverage --- */

/* Where a shape is on the canvas; rows and columns of `cover` count from here. */
struct area {
    int32_t left, top, width, height;
};

static struct area area_of(const struct draw_canvas *c)
{
    double x0 = c->width, y0 = c->height, x1 = 0, y1 = 0;
    for (size_t i = 0; i < c->points.len; i++) {
        struct draw_point p = c->points.data[i];
        x0 = fmin(x0, p.x);
        y0 = fmin(y0, p.y);
        x1 = fmax(x1, p.x);
        y1 = fmax(y1, p.y);
    }
    struct area a = {(int32_t)fmax(0, floor(x0)), (int32_t)fmax(0, floor(y0)), 0, 0};
    a.width = (int32_t)fmin(c->width, ceil(x1)) - a.left;
    a.height = (int32_t)fmin(c->height, ceil(y1)) - a.top;
    return a;
}

/* The part of a line within one row: from x0 to x1, `d` of the row's height, signed. */
static void cover_span(float *row, double x0, double x1, double d)
{
    double left = fmin(x0, x1), right = fmax(x0, x1);
    int32_t first = (int32_t)left, last = (int32_t)ceil(right);
    if (last <= first + 1) {
        double part = 0.5 * (x0 + x1) - first;
        row[first] += (float)(d - d * part);
        row[first + 1] += (float)(d * part);
        return;
    }
    /* the area to the right of the line grows through the pixels it passes */
    double slope = d / (right - left), before = 0;
    for (int32_t x = first; x < last; x++) {
        double a = fmax(left, x), b = fmin(right, x + 1);
        double height = slope * (b - a), inside = height * (x + 1 - 0.5 * (a + b));
        row[x] += (float)(inside + before);
        before = height - inside;
    }
    row[last] += (float)before;
}

static void cover_line(struct draw_canvas *c, struct area area, struct draw_point p,
                       struct draw_point q)
{
    double sign = 1;
    if (p.y == q.y)
        return;
    if (p.y > q.y) {
        struct draw_point swap = p;
        p = q;
        q = swap;
        sign = -1;
    }
    double slope = (q.x - p.x) / (q.y - p.y);
    double top = fmax(p.y - area.top, 0), bottom = fmin(q.y - area.top, area.height);
    for (int32_t y = (int32_t)top; y < bottom; y++) {
        double y0 = fmax(y, top), y1 = fmin(y + 1, bottom);
        double x0 = p.x + (y0 + area.top - p.y) * slope - area.left;
        double x1 = p.x + (y1 + area.top - p.y) * slope - area.left;
        x0 = fmin(fmax(x0, 0), area.width);
        x1 = fmin(fmax(x1, 0), area.width);
        cover_span(c->cover + (size_t)y * ((size_t)area.width + 2), x0, x1, sign * (y1 - y0));
        int32_t from = (int32_t)fmin(x0, x1), to = (int32_t)ceil(fmax(x0, x1)) + 1;
        c->row_from[y] = from < c->row_from[y] ? from : c->row_from[y];
        c->row_to[y] = to > c->row_to[y] ? to : c->row_to[y];
    }
}

static void blend(uint8_t *pixel, uint32_t colour, float part)
{
    for (int i = 0; i < 3; i++) {
        int ink = (int)(colour >> (16 - 8 * i) & 0xff);
        pixel[i] = (uint8_t)(pixel[i] + (int)lrintf((float)(ink - pixel[i]) * part));
    }
}

/* `n` pixels of one coverage. */
static void paint_span(uint8_t *pixel, size_t n, uint32_t colour, float part)
{
    static const float NOTHING = 1e-3f, ALL = 1 - 1e-3f; /* less than half of a step of a colour */
    if (part <= NOTHING)
        return;
    if (part < ALL || n == 1) {
        for (size_t i = 0; i < n; i++)
            blend(pixel + 3 * i, colour, part);
        return;
    }
    for (int i = 0; i < 3; i++)
        pixel[i] = (uint8_t)(colour >> (16 - 8 * i));
    for (size_t done = 1;
         done < n;) { /* what is there is copied behind it, twice as much each time */
        size_t more = done < n - done ? done : n - done;
        memcpy(pixel + 3 * done, pixel, 3 * more);
        done += more;
    }
}

/* Sums along the rows, blends, and leaves `cover` zero again. Where no line passes, coverage stays. */
static void paint_area(struct draw_canvas *c, struct area area, uint32_t colour)
{
    for (int32_t y = 0; y < area.height; y++) {
        float *row = c->cover + (size_t)y * ((size_t)area.width + 2), sum = 0;
        uint8_t *pixel = c->rgb + 3 * ((size_t)(area.top + y) * c->width + (size_t)area.left);
        int32_t end = c->row_to[y] < area.width + 1 ? c->row_to[y] + 1 : area.width + 2;
        for (int32_t x = c->row_from[y]; x < end;) {
            int32_t from = x;
            sum += row[x];
            row[x++] = 0;
            while (x < end && row[x] == 0)
                x++;
            int32_t to = x < area.width ? x : area.width;
            if (to > from)
                paint_span(pixel + 3 * (size_t)from, (size_t)(to - from), colour,
                           fminf(fabsf(sum), 1));
        }
    }
}

static bool prepare(struct draw_canvas *c, struct area area)
{
    size_t need = ((size_t)area.width + 2) * (size_t)area.height;
    if (need > c->cover_size) {
        free(c->cover);
        c->cover = calloc(need, sizeof *c->cover);
        c->cover_size = c->cover ? need : 0;
        if (!c->cover) {
            c->error = E_NOMEM;
            return false;
        }
    }
    for (int32_t y = 0; y < area.height; y++) {
        c->row_from[y] = INT32_MAX;
        c->row_to[y] = -1;
    }
    return true;
}

static void forget(struct draw_canvas *c)
{
    c->points.len = c->starts.len = 0;
}

void draw_fill(struct draw_canvas *c, uint32_t colour)
{
    struct area area = area_of(c);
    if (!c->error && area.width > 0 && area.height > 0 && prepare(c, area)) {
        for (size_t i = 0; i < c->starts.len; i++) {
            uint32_t first = c->starts.data[i];
            uint32_t end = i + 1 < c->starts.len ? c->starts.data[i + 1] : (uint32_t)c->points.len;
            for (uint32_t k = first; k < end; k++)
                cover_line(c, area, c->points.data[k], c->points.data[k + 1 < end ? k + 1 : first]);
        }
        paint_area(c, area, colour);
    }
    forget(c);
}

/* --- strokes --- */

static void add_disc(struct draw_canvas *c, struct draw_point at, double radius)
{
    int steps = (int)fmin(DISC_STEPS_MAX, 8 + 2 * radius);
    begin(c);
    for (int i = 0; i < steps; i++) {
        double angle = -2 * M_PI * i / steps;
        push(c, at.x + radius * cos(angle), at.y + radius * sin(angle));
    }
}

static struct draw_point normal(struct draw_point a, struct draw_point b)
{
    double length = hypot(b.x - a.x, b.y - a.y);
    return length > 0 ? (struct draw_point){-(b.y - a.y) / length, (b.x - a.x) / length}
                      : (struct draw_point){0, 0};
}

/* One piece of the band; neighbours share an edge where the line bends softly. */
static void add_quad(struct draw_canvas *c, struct draw_point a, struct draw_point na,
                     struct draw_point b, struct draw_point nb, double half)
{
    begin(c);
    push(c, a.x + half * na.x, a.y + half * na.y);
    push(c, b.x + half * nb.x, b.y + half * nb.y);
    push(c, b.x - half * nb.x, b.y - half * nb.y);
    push(c, a.x - half * na.x, a.y - half * na.y);
}

/* The direction across a line where two parts meet. False at a sharp corner. */
static bool join(struct draw_point a, struct draw_point b, struct draw_point *ret)
{
    double cosine = a.x * b.x + a.y * b.y;
    if (cosine < SHARP)
        return false;
    *ret = (struct draw_point){(a.x + b.x) / (1 + cosine), (a.y + b.y) / (1 + cosine)};
    return true;
}

static void add_band(struct draw_canvas *c, const struct draw_point *p, size_t n, double half)
{
    if (!p || c->error)
        return;
    add_disc(c, p[0], n == 1 ? 1.35 * half : half); /* a dot is a little larger than its line */
    if (n == 1)
        return;
    struct draw_point across = normal(p[0], p[1]);
    for (size_t i = 0; i + 1 < n; i++) {
        struct draw_point own = normal(p[i], p[i + 1]), to = own, from = across;
        bool soft = i + 2 < n && join(own, normal(p[i + 1], p[i + 2]), &to);
        add_quad(c, p[i], from, p[i + 1], to, half);
        across = soft ? to : i + 2 < n ? normal(p[i + 1], p[i + 2]) : to;
        if (!soft)
            add_disc(c, p[i + 1], half);
    }
}

struct dashes {
    double dash, gap, left; /* what is left of the dash or gap that is on */
    bool on;
    VEC(struct draw_point) line;
};

static void dash_point(struct draw_canvas *c, struct dashes *d, struct draw_point p)
{
    struct draw_point *slot = vec_push(&d->line);
    if (slot)
        *slot = p;
    else
        c->error = E_NOMEM;
}

static void dash_line(struct draw_canvas *c, const struct draw_point *p, size_t n, double half,
                      struct dashes *d)
{
    for (size_t i = 0; i + 1 < n && !c->error; i++) {
        double length = hypot(p[i + 1].x - p[i].x, p[i + 1].y - p[i].y), done = 0;
        if (d->on && !d->line.len)
            dash_point(c, d, p[i]);
        while (length - done >= d->left) {
            done += d->left;
            double t = done / length;
            struct draw_point at = {p[i].x + t * (p[i + 1].x - p[i].x),
                                    p[i].y + t * (p[i + 1].y - p[i].y)};
            if (d->on) {
                dash_point(c, d, at);
                add_band(c, d->line.data, d->line.len, half);
            }
            d->line.len = 0;
            d->on = !d->on;
            d->left = d->on ? d->dash : d->gap;
            if (d->on)
                dash_point(c, d, at);
        }
        d->left -= length - done;
        if (d->on)
            dash_point(c, d, p[i + 1]);
    }
    if (d->on && d->line.len > 1)
        add_band(c, d->line.data, d->line.len, half);
}

void draw_stroke(struct draw_canvas *c, double width, uint32_t colour, double dash, double gap)
{
    double half = width * c->scale / 2;
    struct draw_canvas line = *c; /* the shape itself; what is added from here on is its outline */
    c->points.data = NULL;
    c->points.len = c->points.cap = 0;
    c->starts.data = NULL;
    c->starts.len = c->starts.cap = 0;
    for (size_t i = 0; line.points.data && i < line.starts.len; i++) {
        uint32_t first = line.starts.data[i];
        size_t end = i + 1 < line.starts.len ? line.starts.data[i + 1] : line.points.len;
        if (dash > 0) {
            struct dashes d = {.dash = dash * c->scale,
                               .gap = gap * c->scale,
                               .left = dash * c->scale,
                               .on = true};
            dash_line(c, line.points.data + first, end - first, half, &d);
            vec_release(&d.line);
        } else if (end > first) {
            add_band(c, line.points.data + first, end - first, half);
        }
    }
    draw_fill(c, colour);
    vec_release(&line.points);
    vec_release(&line.starts);
}
