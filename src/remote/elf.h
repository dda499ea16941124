/* Symbols of a 64-bit ELF file, from its bytes. Pure and bounded: the bytes are hostile. Inside
 * src/remote only. */
#ifndef PYROMETER_REMOTE_ELF_H
#define PYROMETER_REMOTE_ELF_H

#include <stddef.h>
#include <stdint.h>

/* Looks for `count` names in .dynsym, then in .symtab; ret[i] is the symbol's value or 0. Also the
 * virtual address of the first byte of the file (0 for most shared objects), so that
 *     address in memory = base of the mapping + ret[i] - *ret_vaddr.
 * E_FORMAT if it is not a 64-bit little-endian ELF. */
int elf_symbols(const uint8_t *data, size_t len, const char *const *names, size_t count,
                uint64_t *ret, uint64_t *ret_vaddr);

#endif
