/* Escaping and measuring. Widths come from a short table of ranges instead of wcwidth(), which
 * needs a locale the program never sets. */
#include "view/text.h"

#include "base/utf8.h"

struct range {
    uint32_t first, last;
};

static bool is_in(uint32_t c, const struct range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

static size_t char_width(uint32_t c)
{
    static const struct range zero[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},
                                        {0x610, 0x61a},   {0x64b, 0x65f},   {0x1ab0, 0x1aff},
                                        {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x20d0, 0x20ff},
                                        {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef}};
    static const struct range wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                                        {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
                                        {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
                                        {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
                                        {0x20000, 0x3fffd}};
    if (c < 0x300)
        return 1;
    if (is_in(c, zero, ARRAY_LEN(zero)))
        return 0;
    return is_in(c, wide, ARRAY_LEN(wide)) ? 2 : 1;
}

/* Characters that change how later ones are drawn. */
static bool turns_text(uint32_t c)
{
    static const struct range turners[] = {
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}, {0x61c, 0x61c}, {0xfeff, 0xfeff}};
    return c >= 0x61c && is_in(c, turners, ARRAY_LEN(turners));
}

void view_text_escape(struct buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t c = 0;
        size_t n = utf8_decode(text + i, len - i, &c);
        if (n == 0) {
            buf_printf(out, "\\x%02x", (uint8_t)text[i]);
            n = 1;
        } else if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
            buf_printf(out, "\\x%02x", c);
        } else if (turns_text(c)) {
            buf_printf(out, "\\u%04x", c);
        } else {
            buf_append(out, text + i, n);
        }
        i += n;
    }
}

/* Would the text be drawn as it is? */
static bool is_harmless(const char *text)
{
    struct buf safe;
    buf_init(&safe, SIZE_MAX);
    view_text_escape(&safe, text, strlen(text));
    bool same = strcmp(buf_cstr(&safe), text) == 0;
    buf_release(&safe);
    return same;
}

void view_text_shell(struct buf *out, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_@%+=:,./-";
    if (*path == '-' || *path == '@') /* an option, or one of the last runs */
        buf_puts(out, "./");
    if (*path && !path[strspn(path, plain)]) {
        buf_puts(out, path);
    } else if (is_harmless(path)) {
        buf_puts(out, "'");
        for (const char *c = path; *c; c++)
            if (*c == '\'')
                buf_puts(out, "'\\''");
            else
                buf_put_u8(out, (uint8_t)*c);
        buf_puts(out, "'");
    } else {
        buf_puts(out, "$'");
        for (const char *c = path; *c; c++)
            if (*c < ' ' || *c > '~' || *c == '\'' || *c == '\\')
                buf_printf(out, "\\x%02x", (uint8_t)*c);
            else
                buf_put_u8(out, (uint8_t)*c);
        buf_puts(out, "'");
    }
}

size_t view_text_width(const char *text, size_t len)
{
    size_t width = 0;
    for (size_t i = 0; i < len;) {
        uint32_t c = 0;
        size_t n = utf8_decode(text + i, len - i, &c);
        width += n ? char_width(c) : 1;
        i += n ? n : 1;
    }
    return width;
}

/* Bytes at the start of the text that take at most `width` columns. */
static size_t head_bytes(const char *text, size_t len, size_t width)
{
    size_t i = 0, used = 0;
    while (i < len) {
        uint32_t c = 0;
        size_t n = utf8_decode(text + i, len - i, &c);
        used += n ? char_width(c) : 1;
        if (used > width)
            break;
        i += n ? n : 1;
    }
    return i;
}

/* Where to begin so that the rest takes at most `width` columns, `total` being the whole. */
static size_t tail_start(const char *text, size_t len, size_t total, size_t width)
{
    size_t i = 0;
    while (i < len && total > width) {
        uint32_t c = 0;
        size_t n = utf8_decode(text + i, len - i, &c);
        total -= n ? char_width(c) : 1;
        i += n ? n : 1;
    }
    return i;
}

void view_text_fit(struct buf *out, const char *text, size_t len, size_t width,
                   enum view_text_cut cut)
{
    size_t total = view_text_width(text, len);
    if (total <= width) {
        buf_append(out, text, len);
        return;
    }
    if (width == 0)
        return;
    size_t head = cut == VIEW_CUT_LEFT ? 0 : cut == VIEW_CUT_RIGHT ? width - 1 : (width - 1) / 2;
    size_t tail = width - 1 - head;
    buf_append(out, text, head_bytes(text, len, head));
    buf_puts(out, "…");
    size_t from = tail_start(text, len, total, tail);
    buf_append(out, text + from, len - from);
}
