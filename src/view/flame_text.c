/* Quoting. */
#include "view/flame_text.h"

#include <string.h>

/* U+FFFE and U+FFFF are valid UTF-8, but no document of XML may hold them. */
static size_t noncharacter(const char *p)
{
    return memcmp(p, "\xef\xbf", 2) == 0 && ((uint8_t)p[2] == 0xbe || (uint8_t)p[2] == 0xbf) ? 3
                                                                                             : 0;
}

void flame_put_markup(FILE *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '&')
            fputs("&amp;", out);
        else if (*p == '<')
            fputs("&lt;", out);
        else if (*p == '>')
            fputs("&gt;", out);
        else if (*p == '"')
            fputs("&quot;", out);
        else if (*p == '\'')
            fputs("&#39;", out);
        else if ((uint8_t)*p == 0xef && p[1] && noncharacter(p)) {
            fputs("\xef\xbf\xbd", out);
            p += 2;
        } else
            putc_unlocked(*p, out);
    }
}

void flame_put_json(FILE *out, const char *text)
{
    putc('"', out);
    for (const char *p = text; *p; p++) {
        uint8_t c = (uint8_t)*p;
        if (c < 0x20 || strchr("\"\\<>&'", c))
            fprintf(out, "\\u%04x", c);
        else
            putc_unlocked(c, out);
    }
    putc('"', out);
}

void flame_put_u64(FILE *out, uint64_t v)
{
    char digits[20];
    size_t n = sizeof digits;
    do {
        digits[--n] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    fwrite_unlocked(digits + n, 1, sizeof digits - n, out);
}
