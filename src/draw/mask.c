/* The store of masks, and blending them. */
#include "draw/mask.h"

#include "base/err.h"

static uint32_t hash_key(struct draw_mask_key key)
{
    return hash_u64(key.shape * 31 + key.style);
}

const struct draw_mask *draw_masks_find(const struct draw_canvas *c, struct draw_mask_key key)
{
    const struct draw_masks *m = c->masks;
    uint32_t at;
    if (!m)
        return NULL;
    IDXMAP_FIND(&m->map, hash_key(key), i,
                m->mask.data[i].key.shape == key.shape && m->mask.data[i].key.style == key.style,
                at);
    return at == IDXMAP_NONE ? NULL : &m->mask.data[at];
}

/* --- taking --- */

static uint8_t alpha_at(const struct draw_canvas *c, uint32_t x, uint32_t y)
{
    return (uint8_t)(255 - c->rgb[3 * ((size_t)y * c->width + x)]);
}

/* The smallest rectangle with all ink in it. */
static void find_ink(const struct draw_canvas *c, struct draw_mask *m)
{
    uint32_t x0 = c->width, y0 = c->height, x1 = 0, y1 = 0;
    for (uint32_t y = 0; y < c->height; y++)
        for (uint32_t x = 0; x < c->width; x++) {
            if (!alpha_at(c, x, y))
                continue;
            x0 = x < x0 ? x : x0;
            y0 = y < y0 ? y : y0;
            x1 = x + 1 > x1 ? x + 1 : x1;
            y1 = y + 1;
        }
    m->left = (int32_t)x0;
    m->top = (int32_t)y0;
    m->width = x1 > x0 ? x1 - x0 : 0;
    m->height = x1 > x0 ? y1 - y0 : 0;
}

static int take(const struct draw_canvas *scratch, int32_t x, int32_t y, struct draw_mask *m)
{
    find_ink(scratch, m);
    m->alpha = malloc((size_t)m->width * m->height + 1);
    if (!m->alpha)
        return E_NOMEM;
    for (uint32_t row = 0; row < m->height; row++)
        for (uint32_t column = 0; column < m->width; column++)
            m->alpha[(size_t)row * m->width + column] =
                alpha_at(scratch, (uint32_t)m->left + column, (uint32_t)m->top + row);
    m->left -= x;
    m->top -= y;
    return 0;
}

const struct draw_mask *draw_masks_add(struct draw_canvas *c, struct draw_mask_key key,
                                       const struct draw_canvas *scratch, int32_t x, int32_t y)
{
    if (!c->masks)
        c->masks = calloc(1, sizeof *c->masks);
    struct draw_mask *slot = c->masks ? vec_push(&c->masks->mask) : NULL;
    int r = slot ? take(scratch, x, y, slot) : E_NOMEM;
    if (r == 0) {
        slot->key = key;
        r = idxmap_insert(&c->masks->map, hash_key(key), (uint32_t)c->masks->mask.len - 1);
    }
    if (r < 0) {
        c->error = r;
        return NULL;
    }
    return slot;
}

void draw_masks_free(struct draw_masks *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->mask.len; i++)
        free(m->mask.data[i].alpha);
    vec_release(&m->mask);
    idxmap_release(&m->map);
    free(m);
}

/* --- putting --- */

/* x / 255, rounded, for x up to 255². */
static uint8_t by_255(uint32_t x)
{
    x += 128;
    return (uint8_t)((x + (x >> 8)) >> 8);
}

void draw_mask_put(struct draw_canvas *c, const struct draw_mask *m, int32_t x, int32_t y,
                   uint32_t colour)
{
    const uint32_t ink[3] = {colour >> 16 & 0xff, colour >> 8 & 0xff, colour & 0xff};
    int64_t left = (int64_t)x + m->left, top = (int64_t)y + m->top;
    int64_t first = left < 0 ? -left : 0, last = m->width;
    if (left + last > c->width)
        last = c->width - left;
    if (first >= last)
        return;
    for (int64_t row = top < 0 ? -top : 0; row < m->height && top + row < c->height; row++) {
        const uint8_t *alpha = m->alpha + row * m->width;
        uint8_t *pixel = c->rgb + 3 * ((top + row) * c->width + left + first);
        for (int64_t column = first; column < last; column++, pixel += 3)
            for (int i = 0; i < 3 && alpha[column]; i++)
                pixel[i] =
                    by_255(pixel[i] * (255u - alpha[column]) + ink[i] * (uint32_t)alpha[column]);
    }
}
