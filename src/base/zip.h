/* One member of a zip archive, as Python's zipimport would find it: stored or deflated, without
 * encryption and without the 64-bit extension. The archive is hostile: every offset is checked
 * against the file, every size against a maximum. The one place that names zlib. */
#ifndef PYROMETER_BASE_ZIP_H
#define PYROMETER_BASE_ZIP_H

#include "base/attr.h"

struct buf;

enum { ZIP_MAX_DIRECTORY_BYTES = 16 << 20 };

/* Appends the member's content to `out`, whose maximum bounds it. E_NOENT: no archive, or no such
 * member. E_LIMIT: it is too large. E_CORRUPT, E_IO, E_NOMEM. */
int zip_read_member(int fd, const char *name, size_t name_len, struct buf *out);

#endif
