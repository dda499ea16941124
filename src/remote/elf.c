#include "remote/elf.h"

#include "base/err.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

/* A table in the file, checked to lie in it. */
struct span {
    const uint8_t *p;
    size_t len;
};

static bool take(const uint8_t *data, size_t len, uint64_t offset, uint64_t size, struct span *ret)
{
    if (offset > len || size > len - offset)
        return false;
    *ret = (struct span){data + offset, (size_t)size};
    return true;
}

static void search(struct span symbols, struct span strings, const char *const *names, size_t count,
                   uint64_t *found)
{
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.len; at += sizeof(Elf64_Sym)) {
        Elf64_Sym s;
        memcpy(&s, symbols.p + at, sizeof s);
        if (s.st_shndx == SHN_UNDEF || s.st_value == 0 || s.st_name >= strings.len)
            continue;
        const char *name = (const char *)strings.p + s.st_name;
        size_t room = strings.len - s.st_name;
        if (name[0] != '_' && name[0] != 'P') /* ours all begin so: spares most compares */
            continue;
        for (size_t i = 0; i < count; i++) {
            size_t n = strlen(names[i]) + 1;
            if (!found[i] && n <= room && !memcmp(name, names[i], n))
                found[i] = s.st_value;
        }
    }
}

static bool section(const uint8_t *data, size_t len, const Elf64_Ehdr *e, uint64_t index,
                    Elf64_Shdr *ret)
{
    struct span s;
    if (index >= e->e_shnum || e->e_shentsize != sizeof *ret ||
        !take(data, len, e->e_shoff + index * sizeof *ret, sizeof *ret, &s))
        return false;
    memcpy(ret, s.p, sizeof *ret);
    return true;
}

static void search_sections(const uint8_t *data, size_t len, const Elf64_Ehdr *e, uint32_t type,
                            const char *const *names, size_t count, uint64_t *found)
{
    for (uint64_t i = 0; i < e->e_shnum; i++) {
        Elf64_Shdr table, text;
        struct span symbols, strings;
        if (section(data, len, e, i, &table) && table.sh_type == type &&
            section(data, len, e, table.sh_link, &text) &&
            take(data, len, table.sh_offset, table.sh_size, &symbols) &&
            take(data, len, text.sh_offset, text.sh_size, &strings)) {
            search(symbols, strings, names, count, found);
            return; /* there is one of each: a thousand sections over the same bytes are a trap */
        }
    }
}

/* The lowest PT_LOAD tells where file offset 0 wants to be. */
static uint64_t first_vaddr(const uint8_t *data, size_t len, const Elf64_Ehdr *e)
{
    for (uint64_t i = 0; i < e->e_phnum && e->e_phentsize == sizeof(Elf64_Phdr); i++) {
        struct span s;
        Elf64_Phdr p;
        if (!take(data, len, e->e_phoff + i * sizeof p, sizeof p, &s))
            break;
        memcpy(&p, s.p, sizeof p);
        if (p.p_type == PT_LOAD)
            return (p.p_vaddr - p.p_offset) & ~0xfffull;
    }
    return 0;
}

int elf_symbols(const uint8_t *data, size_t len, const char *const *names, size_t count,
                uint64_t *ret, uint64_t *ret_vaddr)
{
    Elf64_Ehdr e;
    if (len < sizeof e)
        return E_FORMAT;
    memcpy(&e, data, sizeof e);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_ident[EI_DATA] != ELFDATA2LSB)
        return E_FORMAT;
    memset(ret, 0, count * sizeof *ret);
    search_sections(data, len, &e, SHT_DYNSYM, names, count, ret);
    if (count && !ret[0]) /* the first name is the one that matters: look among the private too */
        search_sections(data, len, &e, SHT_SYMTAB, names, count, ret);
    *ret_vaddr = first_vaddr(data, len, &e);
    return 0;
}
