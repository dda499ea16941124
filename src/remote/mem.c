#include "remote/mem.h"

#include "base/err.h"

#include <errno.h>

/* the kernel's limit on ranges of one call */
enum { MEM_MAX_RANGES = 1024 };

static ssize_t read_some(const struct mem *m, void *dst, size_t len, const struct iovec *ranges,
                         size_t count)
{
    if (m->fake)
        return m->fake(m->fake_ctx, dst, ranges, count);
    struct iovec local = {dst, len};
    ssize_t n = process_vm_readv(m->pid, &local, 1, ranges, count, 0);
    return n < 0 ? -errno : n;
}

ssize_t mem_read_ranges(const struct mem *m, void *dst, const struct iovec *ranges, size_t count)
{
    size_t done = 0;
    while (count) {
        size_t batch = min_u64(count, MEM_MAX_RANGES), len = 0;
        for (size_t i = 0; i < batch; i++)
            len += ranges[i].iov_len;
        ssize_t n = read_some(m, (uint8_t *)dst + done, len, ranges, batch);
        if (n == -EFAULT)
            return (ssize_t)done;
        if (n < 0)
            return err_from_errno((int)-n);
        done += (size_t)n;
        if ((size_t)n < len)
            break;
        ranges += batch;
        count -= batch;
    }
    return (ssize_t)done;
}

int mem_read(const struct mem *m, uint64_t addr, void *dst, size_t len)
{
    struct iovec range = {(void *)(uintptr_t)addr, len};
    ssize_t n = mem_read_ranges(m, dst, &range, 1);
    if (n < 0)
        return (int)n;
    return (size_t)n == len ? 0 : E_BADMEM;
}

int mem_read_ptr(const struct mem *m, uint64_t addr, uint64_t *ret)
{
    uint64_t v;
    int r = mem_read(m, addr, &v, sizeof v);
    if (r == 0)
        *ret = v;
    return r;
}
