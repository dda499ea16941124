/* Files read whole and written whole: the loops around read and write that finish the job. */
#ifndef PYROMETER_BASE_IO_H
#define PYROMETER_BASE_IO_H

#include "base/attr.h"

#include <stdbool.h>

struct buf;

/* A file to write: a new one, or with `force` one that is there, emptied. *ret_is_new tells which it is: only what is new is the
 * caller's to remove if it comes to nothing. A descriptor (closed on exec), or E_EXISTS and the like. */
int io_create(const char *path, bool force, bool *ret_is_new);

/* Writes all of it, through EINTR and short writes. */
int io_write_all(int fd, const void *data, size_t len);

/* Appends the file's content to `out`, whose maximum bounds it. For /proc and other small files. */
int io_read_file(const char *path, struct buf *out);

/* One read into `dst` (at most size - 1 bytes, NUL-terminated); the length or a negative code. */
int io_read_text(const char *path, char *dst, size_t size);

#endif
