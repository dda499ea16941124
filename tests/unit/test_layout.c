/* The layout of graphs: what draw/layout.h says always holds, on graphs made by hand and on a
 * thousand random ones; the canvas, on shapes whose coverage is known; and the compression. */
#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "draw/canvas.h"
#include "draw/deflate.h"
#include "draw/font.h"
#include "draw/internal.h"
#include "draw/layout.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

enum { BOXES_MAX = 1200, ARROWS_MAX = 6000 };

struct made {
    struct draw_box box[BOXES_MAX];
    struct draw_arrow arrow[ARROWS_MAX];
    struct draw_graph graph;
    struct draw_layout layout;
};

static uint64_t seed = 88172645463325252ull;

static uint32_t pick(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 32) % below);
}

static void box(struct made *m, double width, double height, uint32_t group)
{
    m->box[m->graph.box_count++] = (struct draw_box){width, height, group};
}

static void arrow(struct made *m, uint32_t from, uint32_t to)
{
    m->arrow[m->graph.arrow_count++] = (struct draw_arrow){from, to, 1 + pick(100)};
}

static void begin(struct made *m, size_t boxes)
{
    memset(m, 0, sizeof *m);
    m->graph.box = m->box;
    m->graph.arrow = m->arrow;
    m->graph.patch_head = 15;
    for (size_t i = 0; i < boxes; i++)
        box(m, 100, 50, DRAW_NONE);
}

static void lay(struct made *m)
{
    assert_int_equal(draw_layout_init(&m->graph, &m->layout), 0);
}

static void check_boxes(const struct made *m)
{
    for (size_t i = 0; i < m->graph.box_count; i++) {
        struct draw_point a = m->layout.box[i];
        const struct draw_box *x = &m->box[i];
        assert_true(a.x - x->width / 2 >= -1e-6 && a.x + x->width / 2 <= m->layout.width + 1e-6);
        assert_true(a.y - x->height / 2 >= -1e-6 && a.y + x->height / 2 <= m->layout.height + 1e-6);
        for (size_t k = 0; k < i; k++) {
            struct draw_point b = m->layout.box[k];
            const struct draw_box *y = &m->box[k];
            bool apart = fabs(a.x - b.x) > (x->width + y->width) / 2 ||
                         fabs(a.y - b.y) > (x->height + y->height) / 2;
            assert_true(apart);
        }
    }
}

static void check_arrow(const struct made *m, size_t i)
{
    const struct draw_arrow *a = &m->arrow[i];
    const struct draw_route *r = &m->layout.route[i];
    assert_true(r->count >= 4 && r->count % 3 == 1);
    assert_true(r->first + r->count <= m->layout.point_count);
    assert_int_equal(r->loop, a->from == a->to);
    const struct draw_point *p = m->layout.point + r->first;
    struct draw_point from = m->layout.box[a->from], to = m->layout.box[a->to];
    double half_from = m->box[a->from].height / 2, half_to = m->box[a->to].height / 2;
    if (r->loop) {
        assert_true(p[0].x >= from.x && fabs(p[3].x - p[0].x) < 1e-6);
        return;
    }
    double sign = r->back ? -1 : 1;
    assert_true(sign * (to.y - from.y) > 0);
    /* it begins and ends at the two boxes, and never turns */
    assert_true(fabs(p[0].y - (from.y + sign * half_from)) < 1e-6);
    assert_true(fabs(p[r->count - 1].y - (to.y - sign * half_to)) < 1e-6);
    assert_true(fabs(p[0].x - from.x) <= m->box[a->from].width / 2);
    assert_true(fabs(p[r->count - 1].x - to.x) <= m->box[a->to].width / 2);
    for (uint32_t k = 1; k < r->count; k++)
        assert_true(sign * (p[k].y - p[k - 1].y) >= -1e-6);
}

/* Without the arrows marked `back` there is no circle: boxes only ever go down. */
static void check(const struct made *m)
{
    check_boxes(m);
    for (size_t i = 0; i < m->graph.arrow_count; i++)
        check_arrow(m, i);
    for (size_t i = 0; i < m->layout.patch_count; i++) {
        const struct draw_patch *p = &m->layout.patch[i];
        assert_true(p->left < p->right && p->top < p->bottom);
        assert_true(p->above == DRAW_NONE || p->above < i);
    }
}

static size_t back_arrows(const struct made *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->graph.arrow_count; i++)
        n += m->layout.route[i].back;
    return n;
}

static struct made one, two;

static void test_nothing_and_one(void **state)
{
    (void)state;
    begin(&one, 0);
    lay(&one);
    draw_layout_release(&one.layout);
    begin(&one, 1);
    lay(&one);
    check(&one);
    assert_true(one.layout.width == 100 && one.layout.height == 50);
    draw_layout_release(&one.layout);
}

static void test_wrong_arrows(void **state)
{
    (void)state;
    begin(&one, 2);
    arrow(&one, 0, 2);
    assert_int_equal(draw_layout_init(&one.graph, &one.layout), E_INVALID);
    begin(&one, 2);
    one.box[1].group = 7;
    assert_int_equal(draw_layout_init(&one.graph, &one.layout), E_INVALID);
    one.graph.box_count = DRAW_BOXES_MAX + 1;
    assert_int_equal(draw_layout_init(&one.graph, &one.layout), E_LIMIT);
}

static void test_chain_is_straight(void **state)
{
    (void)state;
    begin(&one, 6);
    for (uint32_t i = 0; i + 1 < 6; i++)
        arrow(&one, i, i + 1);
    lay(&one);
    check(&one);
    for (size_t i = 1; i < 6; i++)
        assert_true(fabs(one.layout.box[i].x - one.layout.box[0].x) < 1e-6);
    assert_int_equal(one.layout.layer_count, 6);
    draw_layout_release(&one.layout);
}

static void test_circles(void **state)
{
    (void)state;
    begin(&one, 4); /* 0 → 1 → 2 → 3 → 1, and 2 calls itself */
    arrow(&one, 0, 1);
    arrow(&one, 1, 2);
    arrow(&one, 2, 3);
    arrow(&one, 3, 1);
    arrow(&one, 2, 2);
    lay(&one);
    check(&one);
    assert_int_equal(back_arrows(&one), 1);
    assert_true(one.layout.route[3].back && one.layout.route[4].loop);
    draw_layout_release(&one.layout);

    begin(&one, 3); /* nobody is first */
    arrow(&one, 0, 1);
    arrow(&one, 1, 2);
    arrow(&one, 2, 0);
    arrow(&one, 1, 0);
    lay(&one);
    check(&one);
    assert_int_equal(back_arrows(&one), 2);
    draw_layout_release(&one.layout);
}

/* K(3,3) has to cross; two crossed ladders need not. */
static void test_crossings_are_undone(void **state)
{
    (void)state;
    begin(&one, 6);
    arrow(&one, 0, 5);
    arrow(&one, 1, 4);
    arrow(&one, 2, 3);
    arrow(&one, 0, 4);
    arrow(&one, 1, 3);
    lay(&one);
    check(&one);
    const struct draw_point *b = one.layout.box;
    for (size_t i = 0; i < one.graph.arrow_count; i++)
        for (size_t k = 0; k < i; k++) {
            double tops = b[one.arrow[i].from].x - b[one.arrow[k].from].x;
            double ends = b[one.arrow[i].to].x - b[one.arrow[k].to].x;
            assert_true(tops * ends >= 0);
        }
    draw_layout_release(&one.layout);
}

static void test_groups_stand_together(void **state)
{
    (void)state;
    begin(&one, 1);
    for (uint32_t i = 0; i < 12; i++) {
        box(&one, 80, 40, i % 3);
        arrow(&one, 0, i + 1);
    }
    lay(&one);
    check(&one);
    assert_int_equal(one.layout.patch_count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct draw_patch *p = &one.layout.patch[i];
        for (size_t k = 1; k < 13; k++) {
            bool inside = one.layout.box[k].x > p->left && one.layout.box[k].x < p->right;
            assert_int_equal(inside, one.box[k].group == p->group);
        }
    }
    draw_layout_release(&one.layout);
}

static void test_a_star_is_no_ribbon(void **state)
{
    (void)state;
    begin(&one, 300);
    for (uint32_t i = 1; i < 300; i++)
        arrow(&one, 0, i);
    lay(&one);
    check(&one);
    assert_true(one.layout.width < 8000); /* in one row it would be 36,000 */
    assert_true(one.layout.layer_count > 3);
    draw_layout_release(&one.layout);
    begin(&one, 300); /* and so are parts that nothing connects */
    lay(&one);
    check(&one);
    assert_true(one.layout.width < 4000 && one.layout.height < 4000);
    draw_layout_release(&one.layout);
}

static void random_graph(struct made *m, uint32_t boxes, uint32_t arrows)
{
    begin(m, 0);
    uint32_t groups = 1 + pick(boxes);
    for (uint32_t i = 0; i < boxes; i++)
        box(m, 60 + pick(200), 30 + pick(40), pick(4) ? pick(groups) : DRAW_NONE);
    for (uint32_t i = 0; i < arrows; i++)
        arrow(m, pick(boxes), pick(boxes));
}

static void test_random_graphs(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint32_t boxes = 1 + pick(40);
        random_graph(&one, boxes, pick(3 * boxes));
        lay(&one);
        check(&one);
        draw_layout_release(&one.layout);
    }
}

static void test_large_graphs(void **state)
{
    (void)state;
    random_graph(&one, 1000, 3000);
    lay(&one);
    check(&one);
    draw_layout_release(&one.layout);
    begin(&one, 1000); /* as deep as can be, with long ways back */
    for (uint32_t i = 0; i + 1 < 1000; i++)
        arrow(&one, i, i + 1);
    for (uint32_t i = 0; i < 500; i++)
        arrow(&one, 999 - i, i);
    lay(&one);
    check(&one);
    draw_layout_release(&one.layout);
}

static void test_the_same_every_time(void **state)
{
    (void)state;
    random_graph(&one, 60, 150);
    memcpy(&two, &one, sizeof two);
    two.graph.box = two.box;
    two.graph.arrow = two.arrow;
    lay(&one);
    lay(&two);
    assert_int_equal(one.layout.point_count, two.layout.point_count);
    assert_memory_equal(one.layout.box, two.layout.box, 60 * sizeof *one.layout.box);
    assert_memory_equal(one.layout.point, two.layout.point,
                        one.layout.point_count * sizeof *one.layout.point);
    draw_layout_release(&one.layout);
    draw_layout_release(&two.layout);
}

/* --- the canvas --- */

static uint8_t red(const struct draw_canvas *c, uint32_t x, uint32_t y)
{
    return c->rgb[3 * ((size_t)y * c->width + x)];
}

static void test_coverage(void **state)
{
    (void)state;
    struct draw_canvas c;
    assert_int_equal(draw_canvas_init(&c, 20, 10, 1), 0);
    draw_rect(&c, 2.5, 2, 5, 4.25, 0);
    draw_fill(&c, 0x000000);
    assert_int_equal(red(&c, 1, 3), 255);
    assert_in_range(red(&c, 2, 3), 127, 128); /* half covered */
    assert_int_equal(red(&c, 4, 3), 0);
    assert_in_range(red(&c, 4, 6), 190, 192); /* a quarter */
    assert_int_equal(red(&c, 4, 7), 255);
    draw_move(&c, 10, 0); /* a triangle: half of its pixels on the slope */
    draw_line(&c, 20, 0);
    draw_line(&c, 20, 10);
    draw_fill(&c, 0x000000);
    assert_in_range(red(&c, 15, 5), 127, 128);
    assert_int_equal(red(&c, 18, 2), 0);
    draw_rect(&c, -50, -50, 500, 500, 0); /* beyond every side */
    draw_fill(&c, 0x808080);
    assert_int_equal(red(&c, 0, 0), 0x80);
    assert_int_equal(red(&c, 19, 9), 0x80);
    assert_int_equal(draw_canvas_error(&c), 0);
    draw_canvas_release(&c);
}

static void test_every_character_draws(void **state)
{
    (void)state;
    struct draw_canvas c;
    struct draw_font font = {20, false, 0x000000};
    for (int code = 0x21; code < 0x7f; code++) {
        assert_int_equal(draw_canvas_init(&c, 20, 30, 1), 0);
        draw_text(&c, &font, 3, 22, DRAW_LEFT, (char[]){(char)code, 0});
        unsigned ink = 0, edge = 0;
        for (uint32_t y = 0; y < c.height; y++)
            for (uint32_t x = 0; x < c.width; x++) {
                ink += red(&c, x, y) < 128;
                edge += red(&c, x, y) < 250 && (x < 3 || x > 15 || y < 2 || y > 28);
            }
        assert_true(ink > 1);
        assert_int_equal(edge, 0);
        draw_canvas_release(&c);
    }
    assert_int_equal(draw_canvas_init(&c, 20, 30, 1), 0);
    draw_text(&c, &font, 0, 20, DRAW_CENTRE, "\xff\xc0 \xe4\xb8\xad \xf0\x9f\x94\xa5 \x01");
    draw_canvas_release(&c);
    assert_int_equal(draw_canvas_init(&c, 40000, 10, 1), E_LIMIT);
    assert_true(draw_canvas_fit(40000, 10, 2) < 1);
}

/* What was drawn before is drawn alike, wherever it stands and however much of it is on the canvas. */
static void test_characters_are_kept(void **state)
{
    (void)state;
    struct draw_canvas c;
    struct draw_font font = {20, true, 0x204060};
    assert_int_equal(draw_canvas_init(&c, 60, 30, 2), 0);
    draw_text(&c, &font, 3, 22, DRAW_LEFT, "g");
    draw_text(&c, &font, 33, 22, DRAW_LEFT, "g");
    draw_text(&c, &font, 53, 22, DRAW_LEFT, "g"); /* cut on the right */
    draw_text(&c, &font, 3, -12, DRAW_LEFT, "g"); /* and above */
    draw_text(&c, &font, -7, 22, DRAW_LEFT, "g");
    draw_text(&c, &font, 3, 300, DRAW_LEFT, "g");
    for (uint32_t y = 0; y < c.height; y++)
        for (uint32_t x = 20; x < 40; x++) {
            assert_int_equal(red(&c, x, y), red(&c, x + 60, y));
            if (x + 100 < c.width)
                assert_int_equal(red(&c, x, y), red(&c, x + 100, y));
        }
    assert_int_equal(draw_canvas_error(&c), 0);
    draw_canvas_release(&c);
    /* too large to be kept */
    font.size = 100;
    assert_int_equal(draw_canvas_init(&c, 200, 200, 1), 0);
    draw_text(&c, &font, 20, 120, DRAW_LEFT, "II");
    assert_int_equal(red(&c, 50, 80), 0x20);
    assert_int_equal(red(&c, 110, 80), 0x20);
    assert_int_equal(red(&c, 80, 80), 255);
    draw_canvas_release(&c);
}

/* --- compression: whatever goes in comes out again, by zlib --- */

enum { DEFLATE_BYTES = 300000 };

/* Kinds of bytes: what a picture has, and what is hard for codes and repetitions. */
static void fill_bytes(uint8_t *bytes, size_t n, unsigned kind)
{
    for (size_t i = 0; i < n; i++) {
        unsigned few = pick(64) ? 0 : pick(256);
        unsigned halving = (unsigned)__builtin_ctz(pick(1u << 22) | 1u << 22); /* a deep tree */
        unsigned row = i >= 3001 ? bytes[i - 3001] : pick(3);
        bytes[i] = (uint8_t)(kind == 0   ? 0
                             : kind == 1 ? pick(256)
                             : kind == 2 ? few
                             : kind == 3 ? halving
                             : kind == 4 ? row
                             : kind == 5 ? i / 259
                                         : pick(2));
    }
}

static void check_inflates(const struct buf *packed, const uint8_t *bytes, size_t n)
{
    uint8_t *out = malloc(n + 1);
    z_stream z = {.next_in = packed->data,
                  .avail_in = (uInt)packed->len,
                  .next_out = out,
                  .avail_out = (uInt)n + 1};
    assert_non_null(out);
    assert_int_equal(inflateInit2(&z, -15), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, n);
    assert_int_equal(z.avail_in, 0);
    if (n)
        assert_memory_equal(out, bytes, n);
    inflateEnd(&z);
    free(out);
}

static void test_deflate(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        0, 1, 2, 3, 4, 5, 257, 258, 259, 260, 1000, 70000, DEFLATE_BYTES};
    static uint8_t bytes[DEFLATE_BYTES];
    for (unsigned kind = 0; kind < 7; kind++)
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            struct buf packed;
            buf_init(&packed, 1 << 20);
            fill_bytes(bytes, sizes[i], kind);
            /* two streams behind each other, the second in two pieces */
            size_t first = sizes[i] / 3, second = sizes[i] / 2;
            struct draw_deflate *d = draw_deflate_new(&packed);
            assert_non_null(d);
            draw_deflate_add(d, bytes, first);
            draw_deflate_end(d, false);
            draw_deflate_free(d);
            d = draw_deflate_new(&packed);
            assert_non_null(d);
            draw_deflate_add(d, bytes + first, second - first);
            draw_deflate_add(d, bytes + second, sizes[i] - second);
            draw_deflate_end(d, true);
            draw_deflate_free(d);
            assert_int_equal(buf_error(&packed), 0);
            check_inflates(&packed, bytes, sizes[i]);
            if (kind == 0 && sizes[i] == DEFLATE_BYTES)
                assert_true(packed.len < DEFLATE_BYTES / 500);
            buf_release(&packed);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_and_one),
        cmocka_unit_test(test_wrong_arrows),
        cmocka_unit_test(test_chain_is_straight),
        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_crossings_are_undone),
        cmocka_unit_test(test_groups_stand_together),
        cmocka_unit_test(test_a_star_is_no_ribbon),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_large_graphs),
        cmocka_unit_test(test_the_same_every_time),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_every_character_draws),
        cmocka_unit_test(test_characters_are_kept),
        cmocka_unit_test(test_deflate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
