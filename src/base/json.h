/* A streaming JSON writer over a FILE: commas, nesting and escaping are its business. Text is taken
 * as UTF-8; bytes that are not valid UTF-8 come out as U+FFFD, so the output is always valid JSON.
 * Calls must nest; that is asserted. */
#ifndef PYROMETER_BASE_JSON_H
#define PYROMETER_BASE_JSON_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdio.h>

/* What old readers still take (jq 1.6): a call tree may nest deep. */
enum { JSON_MAX_DEPTH = 256 };

struct json {
    FILE *out; /* borrowed */
    int depth;
    bool has_items[JSON_MAX_DEPTH]; /* at each depth: a comma is due before the next */
    bool after_key;
};

void json_init(struct json *j, FILE *out);
void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);
void json_text(struct json *j, const char *text);
void json_text_n(struct json *j, const char *text, size_t len);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_real(struct json *j, double v); /* NaN and infinities become null */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

/* key and value in one call */
void json_kv_text(struct json *j, const char *key, const char *text);
void json_kv_u64(struct json *j, const char *key, uint64_t v);
void json_kv_real(struct json *j, const char *key, double v);
void json_kv_bool(struct json *j, const char *key, bool v);

#endif
