#include "base/buf.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

enum { BUF_FIRST_CAPACITY = 256 };

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_release(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->error = 0;
}

bool buf_reserve(struct buf *b, size_t extra)
{
    if (b->error)
        return false;
    if (extra <= b->cap - b->len)
        return true;
    if (extra > b->max - b->len) {
        b->error = E_LIMIT;
        return false;
    }
    size_t cap = b->cap ? b->cap : min_u64(BUF_FIRST_CAPACITY, b->max);
    while (cap < b->len + extra)
        cap = cap > b->max / 2 ? b->max : cap * 2;
    uint8_t *data = realloc(b->data, cap);
    if (!data) {
        b->error = E_NOMEM;
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
    if (!len || !buf_reserve(b, len))
        return;
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

void buf_puts(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int need = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (need >= 0 && buf_reserve(b, (size_t)need + 1)) {
        vsnprintf((char *)b->data + b->len, (size_t)need + 1, fmt, again);
        b->len += (size_t)need;
    }
    va_end(again);
}

const char *buf_cstr(struct buf *b)
{
    if (!buf_reserve(b, 1))
        return "";
    b->data[b->len] = 0;
    return (const char *)b->data;
}

char *buf_detach(struct buf *b)
{
    buf_cstr(b);
    char *text = b->error ? NULL : (char *)b->data;
    if (b->error)
        free(b->data);
    *b = (struct buf){.max = b->max};
    return text;
}
