/* A pull parser for JSON in memory: one call, one token. It owns no tree, so its memory is one
 * string, whatever the input. Depth, the length of a string and of a number have maxima; what is
 * not JSON ends with E_BADJSON, and then for ever. Input need not be UTF-8: bytes pass through.
 *
 *     struct jsonread j;
 *     jsonread_init(&j, data, len);
 *     while ((r = jsonread_next(&j)) == 0 && j.token != JSONREAD_END) …
 *     jsonread_release(&j);
 */
#ifndef PYROMETER_BASE_JSONREAD_H
#define PYROMETER_BASE_JSONREAD_H

#include "base/buf.h"

enum { JSONREAD_MAX_DEPTH = 64, JSONREAD_MAX_TEXT = 16 << 20, JSONREAD_MAX_NUMBER = 64 };

enum jsonread_token {
    JSONREAD_START, /* before the first call */
    JSONREAD_OBJECT,
    JSONREAD_OBJECT_END,
    JSONREAD_ARRAY,
    JSONREAD_ARRAY_END,
    JSONREAD_KEY,  /* its text */
    JSONREAD_TEXT, /* its text */
    JSONREAD_NUMBER,
    JSONREAD_TRUE,
    JSONREAD_FALSE,
    JSONREAD_NULL,
    JSONREAD_END, /* of the input, after one whole value */
};

struct jsonread {
    const char *at, *end; /* borrowed input, and how far it was read */
    enum jsonread_token token;
    struct buf text; /* of KEY and TEXT, unescaped, until the next call */
    double number;   /* of NUMBER */
    int error;       /* sticky */
    unsigned depth;
    bool is_object[JSONREAD_MAX_DEPTH];
    bool has_items; /* at the current depth something stands before */
};

void jsonread_init(struct jsonread *j, const void *data, size_t len);
void jsonread_release(struct jsonread *j);

/* The next token into j->token: 0, E_BADJSON, E_LIMIT or E_NOMEM. */
int jsonread_next(struct jsonread *j);

/* After a KEY or before an element: passes over one whole value. */
int jsonread_skip(struct jsonread *j);

/* Passes over what is left of the value whose first token has just been read. */
int jsonread_skip_rest(struct jsonread *j);

/* Is the current KEY or TEXT this? */
bool jsonread_is(const struct jsonread *j, const char *text);

#endif
