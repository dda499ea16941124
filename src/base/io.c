#include "base/io.h"

#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int io_create(const char *path, bool force, bool *ret_is_new)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    *ret_is_new = fd >= 0;
    if (fd < 0 && errno == EEXIST && force) /* by now it may be gone again */
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0)
        return fd;
    int error = errno;
    struct stat there; /* a folder is in the way with `force`, too */
    return error == EEXIST && stat(path, &there) == 0 && S_ISDIR(there.st_mode)
               ? E_ISDIR
               : err_from_errno(error);
}

int io_write_all(int fd, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return err_from_errno(errno);
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int io_read_file(const char *path, struct buf *out)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_from_errno(errno);
    for (;;) {
        /* asks for little when little room is left, so that the maximum is exact */
        size_t want = min_u64(65536, out->max - out->len);
        if (!want)
            return E_LIMIT;
        if (!buf_reserve(out, want))
            return buf_error(out);
        ssize_t n = read(fd, out->data + out->len, want);
        if (n == 0)
            return 0;
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return err_from_errno(errno);
        }
        out->len += (size_t)n;
    }
}

int io_read_text(const char *path, char *dst, size_t size)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_from_errno(errno);
    ssize_t n = read(fd, dst, size - 1);
    if (n < 0)
        return err_from_errno(errno);
    dst[n] = 0;
    return (int)n;
}
