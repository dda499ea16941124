#include "base/toml.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 64, PATH_BYTES_MAX = 256 << 10 };

struct reader {
    const char *at, *end;
    unsigned line;
    toml_fn fn;
    void *ctx;
    struct buf path;              /* parts one after another, each with its NUL */
    size_t start[TOML_MAX_PARTS]; /* of each part in `path` */
    size_t parts;
    struct buf text;
    unsigned depth; /* of arrays and inline tables */
    bool in_array;
};

static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static bool starts_with(const struct reader *r, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(r->end - r->at) >= len && !memcmp(r->at, text, len);
}

static void skip_blanks(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->at++;
}

static void skip_comment(struct reader *r)
{
    if (peek(r) == '#')
        while (peek(r) != -1 && peek(r) != '\n')
            r->at++;
}

/* Blanks, comments and the ends of lines. */
static void skip_all(struct reader *r)
{
    for (;;) {
        skip_blanks(r);
        skip_comment(r);
        if (peek(r) == '\n')
            r->line++;
        else if (peek(r) != '\r')
            return;
        r->at++;
    }
}

static int end_of_line(struct reader *r)
{
    skip_blanks(r);
    skip_comment(r);
    if (peek(r) == '\r')
        r->at++;
    if (peek(r) == -1)
        return 0;
    if (peek(r) != '\n')
        return E_BADTOML;
    return 0; /* the next statement skips it, and counts it */
}

/* --- texts --- */

static void append_character(struct buf *out, uint32_t c)
{
    char bytes[4];
    buf_append(out, bytes, utf8_encode(c, bytes));
}

static int read_code_point(struct reader *r, int digits, struct buf *out)
{
    uint32_t c = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        int d = peek(r);
        uint32_t v = d >= '0' && d <= '9'   ? (uint32_t)(d - '0')
                     : d >= 'a' && d <= 'f' ? (uint32_t)(d - 'a' + 10)
                     : d >= 'A' && d <= 'F' ? (uint32_t)(d - 'A' + 10)
                                            : UINT32_MAX;
        if (v == UINT32_MAX)
            return E_BADTOML;
        c = c << 4 | v;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return E_BADTOML;
    append_character(out, c);
    return 0;
}

/* After a backslash. In texts of several lines one at the end of a line joins it to the next word. */
static int read_escape(struct reader *r, bool is_long, struct buf *out)
{
    static const char from[] = "btnfre\"\\", to[] = "\b\t\n\f\r\033\"\\";
    int c = peek(r);
    const char *known = c > 0 ? strchr(from, c) : NULL;
    if (known && *known) {
        r->at++;
        buf_put_u8(out, (uint8_t)to[known - from]);
        return 0;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
        r->at++;
        return read_code_point(r, c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
    }
    if (!is_long || (c != ' ' && c != '\t' && c != '\r' && c != '\n'))
        return E_BADTOML;
    for (; (c = peek(r)) == ' ' || c == '\t' || c == '\r' || c == '\n'; r->at++)
        r->line += c == '\n';
    return 0;
}

/* Three quotes end a long text, and up to two more before them belong to it. */
static bool long_text_ends(struct reader *r, char quote, struct buf *out)
{
    size_t quotes = 0;
    while (quotes < 5 && r->at + quotes < r->end && r->at[quotes] == quote)
        quotes++;
    if (quotes < 3)
        return false;
    for (size_t i = 3; i < quotes; i++)
        buf_put_u8(out, (uint8_t)quote);
    r->at += quotes;
    return true;
}

static int read_text(struct reader *r, bool may_be_long, struct buf *out)
{
    char quote = *r->at;
    const char three[] = {quote, quote, quote, '\0'};
    bool is_long = may_be_long && starts_with(r, three);
    r->at += is_long ? 3 : 1;
    if (is_long && peek(r) == '\r')
        r->at++;
    if (is_long && peek(r) == '\n') { /* the first one is not part of it */
        r->at++;
        r->line++;
    }
    for (int code = 0;;) {
        int c = peek(r);
        if (c == -1 || (c == '\n' && !is_long) || code < 0)
            return code < 0 ? code : E_BADTOML;
        if (c == quote && !is_long) {
            r->at++;
            return buf_error(out);
        }
        if (c == quote && long_text_ends(r, quote, out))
            return buf_error(out);
        r->at++;
        r->line += c == '\n';
        if (c == '\\' && quote == '"')
            code = read_escape(r, is_long, out);
        else
            buf_put_u8(out, (uint8_t)c);
        if (buf_error(out))
            return buf_error(out);
    }
}

/* --- keys --- */

static bool is_bare(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static void drop_parts(struct reader *r, size_t parts)
{
    if (r->parts > parts) {
        r->path.len = r->start[parts];
        r->parts = parts;
    }
}

static int read_part(struct reader *r)
{
    if (r->parts == TOML_MAX_PARTS)
        return E_LIMIT;
    r->start[r->parts] = r->path.len;
    int code = 0, c = peek(r);
    if (c == '"' || c == '\'') {
        code = read_text(r, false, &r->path);
    } else if (is_bare(c)) {
        for (; is_bare(peek(r)); r->at++)
            buf_put_u8(&r->path, (uint8_t)*r->at);
    } else {
        code = E_BADTOML;
    }
    buf_put_u8(&r->path, 0);
    r->parts++;
    return code < 0 ? code : buf_error(&r->path);
}

/* a.b."c d", appended to the path. */
static int read_key(struct reader *r)
{
    for (;;) {
        skip_blanks(r);
        int code = read_part(r);
        if (code < 0)
            return code;
        skip_blanks(r);
        if (peek(r) != '.')
            return 0;
        r->at++;
    }
}

/* --- values --- */

static int read_value(struct reader *r);

static int push(struct reader *r, enum toml_kind kind, double number)
{
    struct toml_item item = {.parts = r->parts,
                             .in_array = r->in_array,
                             .kind = kind,
                             .text = kind == TOML_TEXT ? buf_cstr(&r->text) : "",
                             .number = number,
                             .line = r->line};
    buf_cstr(&r->path);
    for (size_t i = 0; i < r->parts; i++)
        item.part[i] = (const char *)r->path.data + r->start[i];
    return r->fn(r->ctx, &item);
}

/* Numbers, dates, true and false: one word. */
static int read_word(struct reader *r)
{
    char word[NUMBER_MAX];
    size_t len = 0;
    const char *from = r->at;
    while (is_bare(peek(r)) || peek(r) == '+' || peek(r) == '.' || peek(r) == ':')
        r->at++;
    if (r->at == from || r->at - from >= NUMBER_MAX)
        return E_BADTOML;
    for (const char *p = from; p < r->at; p++)
        if (*p != '_')
            word[len++] = *p;
    word[len] = '\0';
    if (!strcmp(word, "true") || !strcmp(word, "false"))
        return push(r, TOML_BOOL, word[0] == 't');
    char *end;
    bool is_octal = !strncmp(word, "0o", 2), is_binary = !strncmp(word, "0b", 2);
    double number = is_octal || is_binary ? (double)strtoull(word + 2, &end, is_octal ? 8 : 2)
                                          : strtod(word, &end);
    if (!len || end == word || (is_octal || is_binary ? end == word + 2 : false))
        return E_BADTOML;
    if (!*end)
        return push(r, TOML_NUMBER, number);
    /* a date or a time begins with a number; between them may stand one blank */
    if (*end != '-' && *end != ':')
        return E_BADTOML;
    if (peek(r) == ' ' && r->at + 1 < r->end && r->at[1] >= '0' && r->at[1] <= '9')
        for (r->at++; is_bare(peek(r)) || peek(r) == ':' || peek(r) == '.' || peek(r) == '+';)
            r->at++;
    return push(r, TOML_OTHER, 0);
}

static int read_array(struct reader *r)
{
    bool was_in_array = r->in_array;
    r->at++;
    r->in_array = true;
    for (;;) {
        skip_all(r);
        if (peek(r) == ']')
            break;
        int code = read_value(r);
        if (code)
            return code;
        skip_all(r);
        if (peek(r) == ',')
            r->at++;
        else if (peek(r) != ']')
            return E_BADTOML;
    }
    r->at++;
    r->in_array = was_in_array;
    return 0;
}

static int read_pair(struct reader *r)
{
    size_t parts = r->parts;
    int code = read_key(r);
    if (code < 0)
        return code;
    if (peek(r) != '=')
        return E_BADTOML;
    r->at++;
    skip_blanks(r);
    code = read_value(r);
    drop_parts(r, parts);
    return code;
}

static int read_inline_table(struct reader *r)
{
    r->at++;
    for (;;) {
        skip_all(r); /* newlines are TOML 1.1; they do no harm */
        if (peek(r) == '}')
            break;
        int code = read_pair(r);
        if (code)
            return code;
        skip_all(r);
        if (peek(r) == ',')
            r->at++;
        else if (peek(r) != '}')
            return E_BADTOML;
    }
    r->at++;
    return 0;
}

static int read_value(struct reader *r)
{
    if (++r->depth > TOML_MAX_PARTS)
        return E_LIMIT;
    int code, c = peek(r);
    if (c == '[') {
        code = read_array(r);
    } else if (c == '{') {
        code = read_inline_table(r);
    } else if (c == '"' || c == '\'') {
        buf_clear(&r->text);
        code = read_text(r, true, &r->text);
        code = code < 0 ? code : push(r, TOML_TEXT, 0);
    } else {
        code = read_word(r);
    }
    r->depth--;
    return code;
}

/* --- statements --- */

static int read_header(struct reader *r)
{
    r->at++;
    r->in_array = peek(r) == '[';
    r->at += r->in_array;
    drop_parts(r, 0);
    int code = read_key(r);
    if (code < 0)
        return code;
    for (int i = 0; i <= r->in_array; i++) {
        if (peek(r) != ']')
            return E_BADTOML;
        r->at++;
    }
    return end_of_line(r);
}

static int read_statements(struct reader *r)
{
    if (starts_with(r, "\xef\xbb\xbf"))
        r->at += 3;
    for (;;) {
        skip_all(r);
        if (peek(r) == -1)
            return 0;
        int code = peek(r) == '[' ? read_header(r) : read_pair(r);
        if (!code)
            code = end_of_line(r);
        if (code)
            return code;
    }
}

int toml_read(const char *data, size_t len, toml_fn fn, void *ctx, unsigned *ret_line)
{
    if (len > TOML_MAX_BYTES)
        return E_LIMIT;
    struct reader r = {.at = data, .end = data + len, .line = 1, .fn = fn, .ctx = ctx};
    buf_init(&r.path, PATH_BYTES_MAX);
    buf_init(&r.text, TOML_MAX_TEXT);
    int code = read_statements(&r);
    buf_release(&r.path);
    buf_release(&r.text);
    if (ret_line)
        *ret_line = r.line;
    return code;
}
