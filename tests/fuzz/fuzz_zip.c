/* The reader of zip members over arbitrary bytes: the first byte is the length of the name. */
#include "base/buf.h"
#include "base/zip.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (size < 1 || (size_t)data[0] + 1 > size)
        return 0;
    const char *name = (const char *)data + 1;
    size_t len = data[0];
    struct buf out;
    buf_init(&out, 1 << 20);
    if (ftruncate(fd, 0) == 0 &&
        pwrite(fd, data + 1 + len, size - 1 - len, 0) == (ssize_t)(size - 1 - len))
        zip_read_member(fd, name, len, &out);
    buf_release(&out);
    return 0;
}
