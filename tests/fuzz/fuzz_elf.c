/* The ELF parser over arbitrary bytes. */
#include "remote/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"_PyRuntime", "PyCode_Type", "Py_Version"};
    uint64_t found[3], vaddr;
    elf_symbols(data, size, names, 3, found, &vaddr);
    return 0;
}
