/* A code object read from outside: names as text and the line table, decoded on demand. */
#ifndef PYROMETER_REMOTE_CODE_H
#define PYROMETER_REMOTE_CODE_H

#include "remote/pylayout.h"

struct remote_code {
    char *name;     /* owned, UTF-8, NUL-terminated; never NULL */
    char *qualname; /* "" where the version has none */
    char *file;
    size_t name_len, qualname_len, file_len; /* they may hold NULs inside */
    uint32_t first_line;
    uint8_t *lines; /* the raw line table; owned; NULL if it could not be read */
    uint32_t lines_len;
    enum pyl_lines encoding;
};

/* The line of the instruction at a byte offset into the code's instructions; 0 if there is none. */
int32_t remote_code_line(const struct remote_code *c, int64_t byte_offset);

/* The decoders behind it, each bounded by its table. */
int32_t line_from_lnotab(const uint8_t *table, size_t len, int32_t first, int64_t offset);
int32_t line_from_pep626(const uint8_t *table, size_t len, int32_t first, int64_t offset);
int32_t line_from_locations(const uint8_t *table, size_t len, int32_t first, int64_t offset);

#endif
