/* Reads TOML in memory: every value is pushed to a function with the path of keys that leads to it.
 * It owns no tree, so its memory is one path and one string, whatever the input.
 *
 * All of TOML 1.0 is understood well enough to get past it, since a pyproject.toml is mostly other
 * people's; of what it means, texts, numbers and truths are given, dates are only passed over. A
 * key that is there twice is pushed twice: this is no validator. Depth and lengths have maxima; what
 * is not TOML ends with E_BADTOML and its line. */
#ifndef PYROMETER_BASE_TOML_H
#define PYROMETER_BASE_TOML_H

#include "base/attr.h"

#include <stdbool.h>

enum { TOML_MAX_BYTES = 8 << 20, TOML_MAX_PARTS = 24, TOML_MAX_TEXT = 64 << 10 };

enum toml_kind { TOML_TEXT, TOML_NUMBER, TOML_BOOL, TOML_OTHER };

struct toml_item {
    const char
        *part[TOML_MAX_PARTS]; /* of the path: "tool", "pyrometer", …; borrowed for the call */
    size_t parts;
    bool in_array; /* one of several values of the same key, or in a table of an array */
    enum toml_kind kind;
    const char *text; /* of TEXT, NUL-terminated (a text with a NUL inside is cut there); "" else */
    double number;    /* of NUMBER; 1 or 0 of BOOL */
    unsigned line;    /* of the file, from 1 */
};

/* What the function returns non-zero stops and is returned. */
typedef int (*toml_fn)(void *ctx, const struct toml_item *item);

/* 0, E_BADTOML, E_LIMIT, E_NOMEM, or what `fn` said. *ret_line (may be NULL): how far it came. */
int toml_read(const char *data, size_t len, toml_fn fn, void *ctx, unsigned *ret_line);

#endif
