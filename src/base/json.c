/* The JSON writer. Idea: `has_items` says at every depth whether a comma is due, so callers only
 * name what they write. Plain stretches of text go out in one fwrite; only what must be escaped is
 * looked at byte by byte. */
#include "base/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { REAL_TEXT_SIZE = 40 };

void json_init(struct json *j, FILE *out)
{
    *j = (struct json){.out = out};
}

/* What is due before any value or key: a comma, unless a key has just been written. */
static void separate(struct json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->has_items[j->depth])
        putc(',', j->out);
    j->has_items[j->depth] = true;
}

static void begin(struct json *j, char bracket)
{
    separate(j);
    putc(bracket, j->out);
    assert(j->depth + 1 < JSON_MAX_DEPTH);
    j->has_items[++j->depth] = false;
}

static void end(struct json *j, char bracket)
{
    assert(j->depth > 0 && !j->after_key);
    j->depth--;
    putc(bracket, j->out);
}

void json_object_begin(struct json *j)
{
    begin(j, '{');
}

void json_object_end(struct json *j)
{
    end(j, '}');
}

void json_array_begin(struct json *j)
{
    begin(j, '[');
}

void json_array_end(struct json *j)
{
    end(j, ']');
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_escaped(FILE *out, uint8_t c)
{
    static const char letters[] = "\bb\tt\nn\ff\rr\"\"\\\\";
    for (const char *p = letters; *p; p += 2) {
        if ((uint8_t)*p == c) {
            putc('\\', out);
            putc(p[1], out);
            return;
        }
    }
    fprintf(out, "\\u%04x", c);
}

static void put_string(FILE *out, const char *text, size_t len)
{
    putc('"', out);
    for (size_t i = 0; i < len;) {
        size_t start = i;
        while (i < len && is_plain((uint8_t)text[i]))
            i++;
        fwrite(text + start, 1, i - start, out);
        if (i == len)
            break;
        uint32_t c;
        size_t n = utf8_decode(text + i, len - i, &c);
        if (n > 1)
            fwrite(text + i, 1, n, out);
        else if (n == 1)
            put_escaped(out, (uint8_t)c);
        else
            fputs("\xef\xbf\xbd", out); /* U+FFFD for each byte that is not text */
        i += n ? n : 1;
    }
    putc('"', out);
}

void json_key(struct json *j, const char *key)
{
    assert(!j->after_key);
    separate(j);
    put_string(j->out, key, strlen(key));
    putc(':', j->out);
    j->after_key = true;
}

void json_text_n(struct json *j, const char *text, size_t len)
{
    separate(j);
    put_string(j->out, text, len);
}

void json_text(struct json *j, const char *text)
{
    json_text_n(j, text, strlen(text));
}

void json_u64(struct json *j, uint64_t v)
{
    separate(j);
    fprintf(j->out, "%" PRIu64, v);
}

void json_i64(struct json *j, int64_t v)
{
    separate(j);
    fprintf(j->out, "%" PRId64, v);
}

/* Short where 15 digits say it all, exact otherwise; always with a point, whatever the locale. */
void json_real(struct json *j, double v)
{
    if (!isfinite(v)) {
        json_null(j);
        return;
    }
    char text[REAL_TEXT_SIZE];
    snprintf(text, sizeof text, "%.15g", v);
    if (strtod(text, NULL) != v)
        snprintf(text, sizeof text, "%.17g", v);
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '.';
    separate(j);
    fputs(text, j->out);
}

void json_bool(struct json *j, bool v)
{
    separate(j);
    fputs(v ? "true" : "false", j->out);
}

void json_null(struct json *j)
{
    separate(j);
    fputs("null", j->out);
}

void json_kv_text(struct json *j, const char *key, const char *text)
{
    json_key(j, key);
    json_text(j, text);
}

void json_kv_u64(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

void json_kv_real(struct json *j, const char *key, double v)
{
    json_key(j, key);
    json_real(j, v);
}

void json_kv_bool(struct json *j, const char *key, bool v)
{
    json_key(j, key);
    json_bool(j, v);
}
