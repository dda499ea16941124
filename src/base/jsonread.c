/* The parser. What may come next follows from the token before, the depth and whether it is an
 * object that is open, so there is no stack but one flag a level. */
#include "base/jsonread.h"

#include "base/err.h"
#include "base/utf8.h"

#include <math.h>

void jsonread_init(struct jsonread *j, const void *data, size_t len)
{
    if (!data) /* an empty text may have no place */
        data = "";
    *j = (struct jsonread){.at = data, .end = (const char *)data + len};
    buf_init(&j->text, JSONREAD_MAX_TEXT);
    static const char mark[] = "\xef\xbb\xbf"; /* a byte order mark is no reason to give up */
    if (len >= 3 && memcmp(data, mark, 3) == 0)
        j->at += 3;
}

void jsonread_release(struct jsonread *j)
{
    buf_release(&j->text);
}

bool jsonread_is(const struct jsonread *j, const char *text)
{
    return j->text.len == strlen(text) &&
           (!j->text.len || !memcmp(j->text.data, text, j->text.len));
}

static int fail(struct jsonread *j, int error)
{
    j->error = error;
    return error;
}

static void skip_blanks(struct jsonread *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\r' || *j->at == '\t'))
        j->at++;
}

/* --- strings --- */

static int read_hex4(struct jsonread *j, uint32_t *ret)
{
    uint32_t v = 0;
    if (j->end - j->at < 4)
        return E_BADJSON;
    for (int i = 0; i < 4; i++) {
        char c = *j->at++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return E_BADJSON;
        v = v << 4 | digit;
    }
    *ret = v;
    return 0;
}

static void put_utf8(struct buf *b, uint32_t c)
{
    char bytes[4];
    buf_append(b, bytes, utf8_encode(c, bytes));
}

/* After "\u". Half a surrogate pair is a character that nobody has: U+FFFD. */
static int read_unicode(struct jsonread *j)
{
    uint32_t c, low;
    int r = read_hex4(j, &c);
    if (r < 0)
        return r;
    if (c >= 0xd800 && c < 0xdc00 && j->end - j->at >= 6 && j->at[0] == '\\' && j->at[1] == 'u') {
        const char *before = j->at;
        j->at += 2;
        r = read_hex4(j, &low);
        if (r < 0)
            return r;
        if (low >= 0xdc00 && low < 0xe000)
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        else
            j->at = before;
    }
    put_utf8(&j->text, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    return 0;
}

static int read_escape(struct jsonread *j)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (j->at == j->end)
        return E_BADJSON;
    char c = *j->at++;
    if (c == 'u')
        return read_unicode(j);
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return E_BADJSON;
    buf_put_u8(&j->text, (uint8_t)to[found - from]);
    return 0;
}

/* At the opening quote. */
static int read_text(struct jsonread *j)
{
    buf_clear(&j->text);
    j->at++;
    for (;;) {
        const char *from = j->at;
        while (j->at < j->end && *j->at != '"' && *j->at != '\\' && (uint8_t)*j->at >= 0x20)
            j->at++;
        buf_append(&j->text, from, (size_t)(j->at - from));
        if (buf_error(&j->text))
            return buf_error(&j->text);
        if (j->at == j->end || (uint8_t)*j->at < 0x20)
            return E_BADJSON;
        if (*j->at++ == '"')
            return 0;
        int r = read_escape(j);
        if (r < 0)
            return r;
    }
}

/* --- the rest --- */

static int read_number(struct jsonread *j)
{
    char text[JSONREAD_MAX_NUMBER + 1];
    size_t n = 0;
    while (j->at < j->end && n < JSONREAD_MAX_NUMBER && *j->at && strchr("+-0123456789.eE", *j->at))
        text[n++] = *j->at++;
    text[n] = '\0';
    char *stop;
    j->number = strtod(text, &stop);
    bool begins_right = (text[0] >= '0' && text[0] <= '9') || (text[0] == '-' && n > 1);
    if (!n || *stop || !begins_right || n == JSONREAD_MAX_NUMBER)
        return E_BADJSON;
    if (!isfinite(j->number))
        j->number = 0;
    j->token = JSONREAD_NUMBER;
    return 0;
}

static int read_word(struct jsonread *j, const char *word, enum jsonread_token token)
{
    size_t len = strlen(word);
    if ((size_t)(j->end - j->at) < len || memcmp(j->at, word, len) != 0)
        return E_BADJSON;
    j->at += len;
    j->token = token;
    return 0;
}

static int open_level(struct jsonread *j, bool is_object)
{
    if (j->depth == JSONREAD_MAX_DEPTH)
        return E_LIMIT;
    j->is_object[j->depth++] = is_object;
    j->has_items = false;
    j->at++;
    j->token = is_object ? JSONREAD_OBJECT : JSONREAD_ARRAY;
    return 0;
}

static int read_value(struct jsonread *j)
{
    int r;
    if (j->at == j->end)
        return E_BADJSON;
    switch (*j->at) {
    case '{':
        return open_level(j, true);
    case '[':
        return open_level(j, false);
    case '"':
        r = read_text(j);
        j->token = JSONREAD_TEXT;
        break;
    case 't':
        r = read_word(j, "true", JSONREAD_TRUE);
        break;
    case 'f':
        r = read_word(j, "false", JSONREAD_FALSE);
        break;
    case 'n':
        r = read_word(j, "null", JSONREAD_NULL);
        break;
    default:
        r = read_number(j);
        break;
    }
    j->has_items = true;
    return r;
}

static int close_level(struct jsonread *j)
{
    j->token = j->is_object[--j->depth] ? JSONREAD_OBJECT_END : JSONREAD_ARRAY_END;
    j->at++;
    j->has_items = true;
    return 0;
}

/* Inside an object or an array, but not after a key. */
static int read_item(struct jsonread *j)
{
    bool in_object = j->is_object[j->depth - 1];
    if (j->at == j->end)
        return E_BADJSON;
    if (*j->at == (in_object ? '}' : ']'))
        return close_level(j);
    if (j->has_items) {
        if (*j->at != ',')
            return E_BADJSON;
        j->at++;
        skip_blanks(j);
    }
    if (!in_object)
        return read_value(j);
    if (j->at == j->end || *j->at != '"')
        return E_BADJSON;
    int r = read_text(j);
    if (r < 0)
        return r;
    skip_blanks(j);
    if (j->at == j->end || *j->at++ != ':')
        return E_BADJSON;
    j->token = JSONREAD_KEY;
    return 0;
}

int jsonread_next(struct jsonread *j)
{
    if (j->error)
        return j->error;
    skip_blanks(j);
    int r;
    if (j->token == JSONREAD_START || j->token == JSONREAD_KEY)
        r = read_value(j);
    else if (j->depth)
        r = read_item(j);
    else
        r = j->at == j->end ? (j->token = JSONREAD_END, 0) : E_BADJSON;
    return r < 0 ? fail(j, r) : 0;
}

int jsonread_skip_rest(struct jsonread *j)
{
    if (j->token != JSONREAD_OBJECT && j->token != JSONREAD_ARRAY)
        return j->error;
    unsigned depth = j->depth;
    int r = 0;
    while (r == 0 && j->depth >= depth)
        r = jsonread_next(j);
    return r;
}

int jsonread_skip(struct jsonread *j)
{
    int r = jsonread_next(j);
    return r < 0 ? r : jsonread_skip_rest(j);
}
