/* A Python source cut into lines, and where its functions end. Not a parser: it follows strings,
 * brackets and indentation, which is enough to find the end of a block, and is fooled at worst into
 * a block that is too long or too short. Pure; the text is borrowed. */
#ifndef PYROMETER_ANALYSIS_PYSOURCE_H
#define PYROMETER_ANALYSIS_PYSOURCE_H

#include "base/attr.h"

#include <stdbool.h>

struct analysis_pyline {
    uint32_t at, len;   /* in the text, without the end of the line */
    uint16_t indent;    /* columns before the first character */
    bool begins : 1;    /* a statement begins here */
    bool continues : 1; /* it stands in a string, in brackets, or behind a backslash */
    bool decorates : 1; /* it is a decorator */
    bool opens : 1;     /* it is a def or a class */
};

struct analysis_pysource {
    const char *text;             /* borrowed */
    struct analysis_pyline *line; /* owned; line number n is line[n - 1] */
    uint32_t count;
};

enum { ANALYSIS_PYSOURCE_MAX_BYTES = 64 << 20 };

/* 0, E_NOMEM, or E_LIMIT for a text past the maximum. */
int analysis_pysource_init(const char *text, size_t len, struct analysis_pysource *ret);
void analysis_pysource_release(struct analysis_pysource *s);

/* The last line (from 1) of what begins at line `first`: of the block of a def or a class, its
 * decorators included; of anything else the end of the statement. `first` if it is not there. */
uint32_t analysis_pysource_end(const struct analysis_pysource *s, uint32_t first);

#endif
