/* Harmless text (view/text.h) quoted for what it stands in. The input is valid UTF-8 without
 * control characters; the output can neither end the element nor the string it is in. */
#ifndef PYROMETER_VIEW_FLAME_TEXT_H
#define PYROMETER_VIEW_FLAME_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* In HTML or XML, between tags or in a quoted attribute. */
void flame_put_markup(FILE *out, const char *text);

/* A JSON string with its quotes, that may stand in a <script> element. */
void flame_put_json(FILE *out, const char *text);

/* A number, faster than printf: there are a million of them. */
void flame_put_u64(FILE *out, uint64_t v);

#endif
