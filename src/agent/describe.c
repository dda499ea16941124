#include "agent/describe.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SHOWN = 40,     /* characters of a text, bytes of bytes */
    MAX_VALUE = 256,    /* bytes of one argument */
    MAX_NAME = 64,      /* characters of a name */
    MAX_ARGUMENTS = 64, /* of one function */
    ROOM_FOR_MORE = 8,  /* to say that there are more */
};

struct out {
    char *at;
    size_t len, max;
};

static void put(struct out *o, const char *text, size_t len)
{
    if (len > o->max - o->len)
        return;
    memcpy(o->at + o->len, text, len);
    o->len += len;
}

static void puts_out(struct out *o, const char *text)
{
    put(o, text, strlen(text));
}

static void put_number(struct out *o, long long number)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", number);
    put(o, text, n < 0 ? 0 : (size_t)n);
}

/* One character as UTF-8; what is none stands as a question mark. */
static void put_character(struct out *o, uint32_t c)
{
    char text[4];
    put(o, text, utf8_encode(c >= 0xd800 && c < 0xe000 ? '?' : c, text));
}

static void put_quoted(struct out *o, uint32_t c, bool is_byte)
{
    char text[8];
    if (c == '\n' || c == '\r' || c == '\t') {
        puts_out(o, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (c == '\\' || c == '\'') {
        text[0] = '\\';
        text[1] = (char)c;
        put(o, text, 2);
    } else if (c < 32 || c == 127 || (is_byte && c > 127)) {
        snprintf(text, sizeof text, "\\x%02x", c);
        puts_out(o, text);
    } else {
        put_character(o, c);
    }
}

static void put_length(struct out *o, size_t len)
{
    puts_out(o, "\xe2\x80\xa6' (");
    put_number(o, (long long)len);
    puts_out(o, ")");
}

static void put_text(struct out *o, const py_object *value)
{
    ptrdiff_t len = py.PyUnicode_GetLength((py_object *)value);
    puts_out(o, "'");
    for (ptrdiff_t i = 0; i < len && i < MAX_SHOWN; i++)
        put_quoted(o, py.PyUnicode_ReadChar((py_object *)value, i), false);
    if (len > MAX_SHOWN)
        put_length(o, (size_t)len);
    else
        puts_out(o, "'");
}

static void put_bytes(struct out *o, const py_object *value)
{
    size_t len;
    const uint8_t *bytes = pyver_bytes(value, &len);
    puts_out(o, "b'");
    for (size_t i = 0; i < len && i < MAX_SHOWN; i++)
        put_quoted(o, bytes[i], true);
    if (len > MAX_SHOWN)
        put_length(o, len);
    else
        puts_out(o, "'");
}

/* The shortest that reads back as the same number. The program's locale may write a comma. */
static void put_real(struct out *o, double value)
{
    char text[40];
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    for (int i = 0; i < n; i++)
        if (text[i] == ',')
            text[i] = '.';
    put(o, text, n < 0 ? 0 : (size_t)n);
    if (n > 0 && strspn(text, "-0123456789") == (size_t)n)
        puts_out(o, ".0");
}

static void put_integer(struct out *o, const py_object *value)
{
    int overflow = 0;
    long long number = py.PyLong_AsLongLongAndOverflow((py_object *)value, &overflow);
    if (!overflow)
        put_number(o, number);
    else
        puts_out(o, overflow > 0 ? "<int above 2**63>" : "<int below -2**63>");
}

/* list[3]; false if it is none of those whose length is known. */
static bool put_container(struct out *o, const py_object *value, const py_object *type)
{
    ptrdiff_t len = pyver_container_length(value, type);
    if (len < 0)
        return false;
    puts_out(o, pyver_type_name(type));
    puts_out(o, "[");
    put_number(o, len);
    puts_out(o, "]");
    return true;
}

static void put_value(struct out *o, const py_object *value)
{
    const py_object *type = py_type(value);
    if (value == py.none)
        puts_out(o, "None");
    else if (type == py.bool_type)
        puts_out(o, value == py.true_object ? "True" : "False");
    else if (type == py.long_type)
        put_integer(o, value);
    else if (type == py.float_type)
        put_real(o, pyver_real(value));
    else if (type == py.unicode_type)
        put_text(o, value);
    else if (type == py.bytes_type)
        put_bytes(o, value);
    else if (!put_container(o, value, type)) {
        const char *name = pyver_type_name(type);
        puts_out(o, "<");
        put(o, name, strnlen(name, MAX_NAME));
        puts_out(o, ">");
    }
}

size_t describe_value(const py_object *value, char *out, size_t max)
{
    struct out o = {out, 0, max < MAX_VALUE ? max : MAX_VALUE};
    put_value(&o, value);
    return o.len;
}

static void put_name(struct out *o, const py_object *name)
{
    ptrdiff_t len =
        py_type(name) == py.unicode_type ? py.PyUnicode_GetLength((py_object *)name) : 0;
    for (ptrdiff_t i = 0; i < len && i < MAX_NAME; i++)
        put_character(o, py.PyUnicode_ReadChar((py_object *)name, i));
}

size_t describe_arguments(py_object *code, py_object *const *locals, char *out, size_t max)
{
    struct pyver_arguments all;
    pyver_code_arguments(code, &all);
    struct out o = {out, 0, max};
    uint32_t count = all.count < MAX_ARGUMENTS ? all.count : MAX_ARGUMENTS;
    for (uint32_t i = 0; i < count; i++) {
        const py_object *value = pyver_argument(code, locals, i);
        char text[MAX_VALUE + MAX_NAME * 4 + 8];
        struct out one = {text, 0, sizeof text};
        puts_out(&one, o.len ? ", " : "");
        puts_out(&one, i < all.named ? "" : i == all.rest ? "*" : "**");
        put_name(&one, pyver_argument_name(code, i));
        puts_out(&one, "=");
        if (value) {
            struct out shown = {text + one.len, 0,
                                sizeof text - one.len < MAX_VALUE ? sizeof text - one.len
                                                                  : MAX_VALUE};
            put_value(&shown, value);
            one.len += shown.len;
        } else {
            puts_out(&one, "?");
        }
        if (o.len + one.len + ROOM_FOR_MORE > max || (i + 1 == count && count < all.count)) {
            puts_out(&o, o.len ? ", \xe2\x80\xa6" : "\xe2\x80\xa6");
            break;
        }
        put(&o, text, one.len);
    }
    return o.len;
}
