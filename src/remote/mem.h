/* Reading another process's memory. Inside src/remote only.
 *
 * One call, many places: process_vm_readv takes remote ranges in order, so what stands last in the
 * list is read last. Nothing is ever written. */
#ifndef PYROMETER_REMOTE_MEM_H
#define PYROMETER_REMOTE_MEM_H

#include "base/attr.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

/* A target: a process, or (for tests and fuzzers) a function that plays one. */
struct mem {
    pid_t pid;
    /* NULL in production: reads like process_vm_readv with one local range. Returns bytes or -errno. */
    ssize_t (*fake)(void *ctx, void *dst, const struct iovec *remote, size_t count);
    void *fake_ctx;
};

/* Reads the ranges one after the other into dst. Returns the number of bytes read: less than asked
 * for when a range is not readable (what came before it is valid); or a negative code. */
ssize_t mem_read_ranges(const struct mem *m, void *dst, const struct iovec *ranges, size_t count);

/* All of it or an error: E_BADMEM for an unreadable address, E_NOPROC, E_PERM. */
int mem_read(const struct mem *m, uint64_t addr, void *dst, size_t len);

int mem_read_ptr(const struct mem *m, uint64_t addr, uint64_t *ret);

/* True for an address a user-space object can have. */
static inline bool mem_plausible(uint64_t addr)
{
    return addr >= 4096 && addr < (1ull << 56) && (addr & 7) == 0;
}

/* Little-endian fields of a copied structure. */
static inline uint64_t field_u64(const uint8_t *base, uint32_t offset)
{
    uint64_t v;
    __builtin_memcpy(&v, base + offset, sizeof v);
    return v;
}
static inline uint32_t field_u32(const uint8_t *base, uint32_t offset)
{
    uint32_t v;
    __builtin_memcpy(&v, base + offset, sizeof v);
    return v;
}

#endif
