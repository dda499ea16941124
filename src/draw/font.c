/* The characters, as strokes. A stroke begins with its kind: '-' goes straight from point to point,
 * '~' is a smooth curve from its first to its last point, 'o' one that closes. The points between
 * only pull at a curve (a quadratic B-spline: it touches the middle of every side of the polygon).
 * A point is two digits in base 36: x from 0 to 8, y from 0 (descenders) by 4 (the base line) and
 * e (14, small letters) to i (18, capitals). A stroke of one point is a dot. */
#include "draw/font.h"

#include "base/utf8.h"
#include "draw/mask.h"

#include <math.h>

enum { FIRST = 0x20, LAST = 0x7e };

static const char *const ASCII[LAST - FIRST + 1] = {
    "",                                          /* blank */
    "-4i49 -44",                                 /* ! */
    "-2i2e -6i6e",                               /* " */
    "-3i14 -7i54 -0d8d -0989",                   /* # */
    "~8f8i4i0i0b4b8b84440407 -4k42",             /* $ */
    "-8i04 o2i0i0g0e2e4e4g4i o6848464464848688", /* % */
    "~841f1i4i6i6f0b0434748a",                   /* & */
    "-4i4e",                                     /* ' */
    "~6i2e2862",                                 /* ( */
    "~2i6e6822",                                 /* ) */
    "-4h4b -1g7c -1c7g",                         /* * */
    "-4e46 -0a8a",                               /* + */
    "-4532",                                     /* , */
    "-1a7a",                                     /* - */
    "-44",                                       /* . */
    "-7i12",                                     /* / */
    "o4i0i0b0444848b8i -4b",                     /* 0 */
    "-1f4i44 -1474",                             /* 1 */
    "~0f0i4i8i8c04 -0484",                       /* 2 */
    "~0f0i4i8i8b4b3b ~3b4b8b84440407",           /* 3 */
    "-646i0888",                                 /* 4 */
    "-8i1i1b ~1b2c4c8c84440407",                 /* 5 */
    "~7i3i0e08 o4c0c08044484888c",               /* 6 */
    "-0i8i34",                                   /* 7 */
    "o4i1i1e1b4b7b7e7i o4b0b07044484878b",       /* 8 */
    "o4i0i0e0a4a8a8e8i ~8e885414",               /* 9 */
    "-45 -4c",                                   /* : */
    "-4c -4532",                                 /* ; */
    "-7e1974",                                   /* < */
    "-0c8c -0787",                               /* = */
    "-1e7914",                                   /* > */
    "~0f0i4i8i8d4c48 -44",                       /* ? */
    "~8544040b0i4i8i8b87676d o4d2d2a2747676a6d", /* @ */
    "-044i84 -1878",                             /* A */
    "-040i ~0i4i7i7b4b0b ~0b4b8b844404",         /* B */
    "~8f8i4i0i0b04448487",                       /* C */
    "-040i ~0i3i8i8b843404",                     /* D */
    "-8i0i0484 -0b6b",                           /* E */
    "-8i0i04 -0b6b",                             /* F */
    "~8f8i4i0i0b0444848a -5a8a",                 /* G */
    "-040i -848i -0b8b",                         /* H */
    "-1i7i -4i44 -1474",                         /* I */
    "-3i7i ~7i7b74340408",                       /* J */
    "-040i -8i09 -3c84",                         /* K */
    "-0i0484",                                   /* L */
    "-040i4a8i84",                               /* M */
    "-040i848i",                                 /* N */
    "o4i0i0b0444848b8i",                         /* O */
    "-040i ~0i4i8i8a4a0a",                       /* P */
    "o4i0i0b0444848b8i -5783",                   /* Q */
    "-040i ~0i4i8i8a4a0a -4a84",                 /* R */
    "~8f8i4i0i0b4b8b84440407",                   /* S */
    "-0i8i -4i44",                               /* T */
    "~0i0b0444848b8i",                           /* U */
    "-0i448i",                                   /* V */
    "-0i244d648i",                               /* W */
    "-0i84 -048i",                               /* X */
    "-0i4b8i -4b44",                             /* Y */
    "-0i8i0484",                                 /* Z */
    "-6i2i2262",                                 /* [ */
    "-1i72",                                     /* \ */
    "-2i6i6222",                                 /* ] */
    "-1d4i7d",                                   /* ^ */
    "-0383",                                     /* _ */
    "-2i5f",                                     /* ` */
    "~1c1e4e8e8a84 ~8a4a0a04448489",             /* a */
    "-0i04 o4e0e09044484898e",                   /* b */
    "~8b8e4e0e0904448487",                       /* c */
    "-8i84 o4e0e09044484898e",                   /* d */
    "-0989 ~898e4e0e0904448486",                 /* e */
    "~7i3i3c34 -0e7e",                           /* f */
    "o4e0e09044484898e ~8e8480400002",           /* g */
    "-0i04 ~0a0e4e8e8a84",                       /* h */
    "-1e4e44 -1474 -4i",                         /* i */
    "-2e5e ~5e55502001 -5i",                     /* j */
    "-0i04 -7e08 -3b84",                         /* k */
    "-1i4i44 -1474",                             /* l */
    "-040e ~0b0e2e4e4b44 ~4b4e6e8e8b84",         /* m */
    "-040e ~0a0e4e8e8a84",                       /* n */
    "o4e0e09044484898e",                         /* o */
    "-0e00 o4e0e09044484898e",                   /* p */
    "-8e80 o4e0e09044484898e",                   /* q */
    "-1e14 ~1a1e5e8e8c",                         /* r */
    "~8c8e4e0e09498984440406",                   /* s */
    "~3i3a346475 -0e7e",                         /* t */
    "~0e080444848a -8e84",                       /* u */
    "-0e448e",                                   /* v */
    "-0e244c648e",                               /* w */
    "-0e84 -048e",                               /* x */
    "-0e44 -8e20",                               /* y */
    "-0e8e0484",                                 /* z */
    "~6i4i4e4b2a ~2a49464262",                   /* { */
    "-4i40",                                     /* | */
    "~2i4i4e4b6a ~6a49464222",                   /* } */
    "~092d4a678b",                               /* ~ */
};

struct glyph {
    uint32_t code;
    const char *strokes;
};

static const struct glyph OTHERS[] = {
    {0x00a0, ""},
    {0x00b7, "-4a"},
    {0x00d7, "-1d75 -157d"},
    {0x2013, "-1a7a"},
    {0x2014, "-0a8a"},
    {0x2018, "-4i4e"},
    {0x2019, "-4i4e"},
    {0x201c, "-2i2e -6i6e"},
    {0x201d, "-2i2e -6i6e"},
    {0x2026, "-04 -44 -84"},
    {0x2192, "-0a8a -5d8a57"},
};
static const char UNKNOWN[] = "-1g7g74141g";

/* Of the grid, for size 1: capitals are 14 steps high. */
static const double STEP = 0.0515, BEARING = 0.094, BASE = 4;
static const double PEN = 0.085, PEN_BOLD = 0.125;

/* Characters are kept as masks up to this size in pixels, for every quarter of a pixel that they can
 * begin at; sizes that differ by less than a step are one. */
enum { MASK_SIZE_MAX = 64, PHASES = 4, SIZE_STEPS = 1000 };

static const char *strokes_of(uint32_t c)
{
    if (c >= FIRST && c <= LAST)
        return ASCII[c - FIRST];
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++)
        if (OTHERS[i].code == c)
            return OTHERS[i].strokes;
    return UNKNOWN;
}

static double digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* A character's place on the canvas. */
struct spot {
    double x, y, step;
};

static struct draw_point point_at(const struct spot *s, const char *digits)
{
    return (struct draw_point){s->x + s->step * digit(digits[0]),
                               s->y - s->step * (digit(digits[1]) - BASE)};
}

static struct draw_point middle(struct draw_point a, struct draw_point b)
{
    return (struct draw_point){(a.x + b.x) / 2, (a.y + b.y) / 2};
}

/* A quadratic piece as a cubic one. */
static void curve_to(struct draw_canvas *c, struct draw_point from, struct draw_point pull,
                     struct draw_point to)
{
    draw_curve(c, (struct draw_point[]){
                      {from.x + (pull.x - from.x) * 2 / 3, from.y + (pull.y - from.y) * 2 / 3},
                      {to.x + (pull.x - to.x) * 2 / 3, to.y + (pull.y - to.y) * 2 / 3},
                      to});
}

static void add_curve(struct draw_canvas *c, const struct spot *s, const char *digits, size_t n,
                      bool closed)
{
    struct draw_point at = point_at(s, digits);
    if (closed)
        at = middle(point_at(s, digits + 2 * (n - 1)), at);
    draw_move(c, at.x, at.y);
    for (size_t i = closed ? 0 : 1; i + (closed ? 0 : 1) < n; i++) {
        struct draw_point pull = point_at(s, digits + 2 * i);
        struct draw_point next = point_at(s, digits + 2 * ((i + 1) % n));
        bool is_last = !closed && i + 2 == n;
        struct draw_point to = is_last ? next : middle(pull, next);
        curve_to(c, at, pull, to);
        at = to;
    }
}

static void add_glyph(struct draw_canvas *c, const struct spot *s, const char *strokes)
{
    while (*strokes) {
        char kind = *strokes++;
        size_t n = strcspn(strokes, " ") / 2;
        if (kind == '-') {
            struct draw_point p = point_at(s, strokes);
            draw_move(c, p.x, p.y);
            for (size_t i = 1; i < n; i++) {
                p = point_at(s, strokes + 2 * i);
                draw_line(c, p.x, p.y);
            }
        } else {
            add_curve(c, s, strokes, n, kind == 'o');
        }
        strokes += 2 * n;
        strokes += *strokes == ' ';
    }
}

static size_t next_char(const char *text, size_t len, uint32_t *ret)
{
    size_t n = utf8_decode(text, len, ret);
    if (!n)
        *ret = 0xfffd;
    return n ? n : 1;
}

/* Two columns for what is wide in a terminal: the same ranges as view/text.c, roughly. */
static size_t columns_of(uint32_t c)
{
    bool is_mark = (c >= 0x300 && c <= 0x36f) || (c >= 0xfe00 && c <= 0xfe0f);
    bool is_wide = (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xd7a3) ||
                   (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xffe6) || c >= 0x1f300;
    return is_mark ? 0 : is_wide ? 2 : 1;
}

static void stroke_glyph(struct draw_canvas *c, const struct draw_font *font,
                         const struct spot *spot, const char *strokes)
{
    add_glyph(c, spot, strokes);
    draw_stroke(c, (font->bold ? PEN_BOLD : PEN) * font->size, font->colour, 0, 0);
}

/* The mask of a character that stands `phase` / PHASES of a pixel right of one. */
static const struct draw_mask *make_mask(struct draw_canvas *c, const struct draw_font *font,
                                         const char *strokes, int phase, struct draw_mask_key key)
{
    struct draw_canvas scratch;
    double pixel = 1 / c->scale, size = font->size;
    double left = 0.2 * size, base = 1.2 * size; /* more than any stroke goes beyond */
    left = ceil(left * c->scale) * pixel;
    base = ceil(base * c->scale) * pixel;
    int r = draw_canvas_init(&scratch, left + size, base + 0.6 * size, c->scale);
    if (r < 0) {
        c->error = r;
        return NULL;
    }
    struct spot spot = {left + phase * pixel / PHASES, base, STEP * size};
    stroke_glyph(&scratch, &(struct draw_font){size, font->bold, 0}, &spot, strokes);
    const struct draw_mask *mask = NULL;
    if (scratch.error)
        c->error = scratch.error;
    else
        mask = draw_masks_add(c, key, &scratch, (int32_t)lrint(left * c->scale),
                              (int32_t)lrint(base * c->scale));
    draw_canvas_release(&scratch);
    return mask;
}

/* A character stands on whole pixels, and on parts of one from left to right. */
static void draw_glyph(struct draw_canvas *c, const struct draw_font *font, const struct spot *spot,
                       const char *strokes)
{
    double across = spot->x * c->scale, down = spot->y * c->scale;
    bool on_canvas = fabs(across) < 2 * DRAW_SIDE_MAX && fabs(down) < 2 * DRAW_SIDE_MAX;
    if (font->size * c->scale > MASK_SIZE_MAX || !on_canvas) {
        stroke_glyph(c, font, spot, strokes);
        return;
    }
    long parts = lrint(across * PHASES);
    int phase = (int)(parts & (PHASES - 1));
    struct draw_mask_key key = {(uint64_t)(uintptr_t)strokes,
                                (uint64_t)lrint(font->size * SIZE_STEPS) << 8 |
                                    (uint64_t)font->bold << 4 | (uint64_t)phase};
    const struct draw_mask *mask = draw_masks_find(c, key);
    if (!mask && !c->error)
        mask = make_mask(c, font, strokes, phase, key);
    if (mask)
        draw_mask_put(c, mask, (int32_t)((parts - phase) / PHASES), (int32_t)lrint(down),
                      font->colour);
}

void draw_text(struct draw_canvas *c, const struct draw_font *font, double x, double y,
               enum draw_align align, const char *text)
{
    size_t len = strlen(text), columns = 0;
    uint32_t code;
    for (size_t i = 0; i < len; columns += columns_of(code))
        i += next_char(text + i, len - i, &code);
    double advance = DRAW_FONT_ADVANCE * font->size, width = (double)columns * advance;
    x -= align == DRAW_CENTRE ? width / 2 : align == DRAW_RIGHT ? width : 0;
    struct spot spot = {x + BEARING * font->size, y, STEP * font->size};
    for (size_t i = 0; i < len;) {
        i += next_char(text + i, len - i, &code);
        for (size_t k = columns_of(code); k > 0; k--, spot.x += advance) {
            const char *strokes = strokes_of(code);
            if (*strokes)
                draw_glyph(c, font, &spot, strokes);
        }
    }
}
