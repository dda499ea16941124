/* Symbols out of ELF files: real ones, and one made by hand whose every byte is known. */
#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "remote/elf.h"
#include "remote/maps.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Looked for below, in this very program: elf.c only looks at names that begin like Python's. */
__attribute__((used, visibility("default"))) int PyTest_Landmark = 42;

/* Where the file at `path` begins in our own memory, by /proc/self/maps; 0 if it is not there. */
static uint64_t base_of(const char *path)
{
    struct buf maps;
    buf_init(&maps, 16 << 20);
    assert_int_equal(io_read_file("/proc/self/maps", &maps), 0);
    const char *cursor = (char *)maps.data;
    struct maps_line l;
    uint64_t base = 0;
    while (!base && maps_next(&cursor, (char *)maps.data + maps.len, &l))
        if (l.offset == 0 && !strcmp(l.path, path))
            base = l.start;
    buf_release(&maps);
    return base;
}

/* The mapped file that holds an address. */
static bool file_of(const void *address, char path[MAPS_MAX_PATH])
{
    struct buf maps;
    buf_init(&maps, 16 << 20);
    assert_int_equal(io_read_file("/proc/self/maps", &maps), 0);
    const char *cursor = (char *)maps.data;
    struct maps_line l;
    bool found = false;
    while (!found && maps_next(&cursor, (char *)maps.data + maps.len, &l)) {
        found = l.start <= (uintptr_t)address && (uintptr_t)address < l.end && l.path[0] == '/';
        if (found)
            memcpy(path, l.path, sizeof l.path);
    }
    buf_release(&maps);
    return found;
}

static void check_real(const char *path, const char *name, const void *address)
{
    struct buf file;
    buf_init(&file, 256 << 20);
    assert_int_equal(io_read_file(path, &file), 0);
    const char *names[] = {name, "_there_is_no_such_symbol"};
    uint64_t found[2], vaddr = 1;
    assert_int_equal(elf_symbols(file.data, file.len, names, 2, found, &vaddr), 0);
    assert_true(found[0] != 0);
    assert_true(found[1] == 0);
    assert_true(base_of(path) + found[0] - vaddr == (uintptr_t)address);
    buf_release(&file);
}

static void test_this_program(void **state ATTR_UNUSED)
{
    char exe[MAPS_MAX_PATH];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    assert_true(n > 0);
    exe[n] = 0;
    check_real(exe, "PyTest_Landmark", &PyTest_Landmark); /* in .symtab */
}

static void test_libc(void **state ATTR_UNUSED)
{
    char path[MAPS_MAX_PATH];
    extern char *__progname; /* a libc variable whose name begins with an underscore */
    extern int *__h_errno_location(void);
    (void)__progname;
    if (!file_of((const void *)(uintptr_t)__h_errno_location, path) || !strstr(path, "libc"))
        skip();
    check_real(path, "__h_errno_location", (const void *)(uintptr_t)__h_errno_location);
}

/* --- by hand --- */

struct image {
    Elf64_Ehdr e;
    Elf64_Phdr p[2];
    Elf64_Shdr s[4]; /* null, .dynsym, .dynstr, .symtab */
    Elf64_Sym dynsym[3];
    Elf64_Sym symtab[2];
    char strings[64];
};

static struct image image(void)
{
    struct image m;
    memset(&m, 0, sizeof m);
    memcpy(m.e.e_ident, ELFMAG, SELFMAG);
    m.e.e_ident[EI_CLASS] = ELFCLASS64;
    m.e.e_ident[EI_DATA] = ELFDATA2LSB;
    m.e.e_phoff = offsetof(struct image, p);
    m.e.e_phnum = 2;
    m.e.e_phentsize = sizeof m.p[0];
    m.e.e_shoff = offsetof(struct image, s);
    m.e.e_shnum = 4;
    m.e.e_shentsize = sizeof m.s[0];
    m.p[0].p_type = PT_NOTE;
    m.p[1] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x400000};
    memcpy(m.strings, "\0_PyRuntime\0PyCode_Type\0_PyPrivate\0other", 41);
    m.s[1] = (Elf64_Shdr){.sh_type = SHT_DYNSYM,
                          .sh_offset = offsetof(struct image, dynsym),
                          .sh_size = sizeof m.dynsym,
                          .sh_link = 2};
    m.s[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
                          .sh_offset = offsetof(struct image, strings),
                          .sh_size = sizeof m.strings};
    m.s[3] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                          .sh_offset = offsetof(struct image, symtab),
                          .sh_size = sizeof m.symtab,
                          .sh_link = 2};
    m.dynsym[1] = (Elf64_Sym){.st_name = 1, .st_value = 0x401000, .st_shndx = 5};
    m.dynsym[2] = (Elf64_Sym){.st_name = 12, .st_value = 0x402000, .st_shndx = 5};
    m.symtab[1] = (Elf64_Sym){.st_name = 24, .st_value = 0x403000, .st_shndx = 5};
    return m;
}

static const char *const NAMES[] = {"_PyRuntime", "PyCode_Type", "_PyPrivate"};

static int look(const struct image *m, size_t len, uint64_t found[3], uint64_t *vaddr)
{
    uint8_t *copy = malloc(len ? len : 1); /* exactly as long, for the sanitizer */
    memcpy(copy, m, len);
    int rc = elf_symbols(copy, len, NAMES, 3, found, vaddr);
    free(copy);
    return rc;
}

static void test_synthetic(void **state ATTR_UNUSED)
{
    struct image m = image();
    uint64_t found[3], vaddr = 0;
    assert_int_equal(look(&m, sizeof m, found, &vaddr), 0);
    assert_true(found[0] == 0x401000 && found[1] == 0x402000);
    assert_true(found[2] == 0); /* private: not looked for, since the first one is public */
    assert_true(vaddr == 0x400000);

    m.dynsym[1].st_shndx = SHN_UNDEF; /* imported: then the private table is searched as well */
    m.symtab[0] = (Elf64_Sym){.st_name = 1, .st_value = 0x409000, .st_shndx = 5};
    assert_int_equal(look(&m, sizeof m, found, &vaddr), 0);
    assert_true(found[0] == 0x409000 && found[1] == 0x402000 && found[2] == 0x403000);
}

static void test_not_ours(void **state ATTR_UNUSED)
{
    uint64_t found[3], vaddr;
    struct image m = image();
    m.e.e_ident[EI_CLASS] = ELFCLASS32;
    assert_int_equal(look(&m, sizeof m, found, &vaddr), E_FORMAT);
    m = image();
    m.e.e_ident[EI_DATA] = ELFDATA2MSB;
    assert_int_equal(look(&m, sizeof m, found, &vaddr), E_FORMAT);
    assert_int_equal(elf_symbols((const uint8_t *)"#!/bin/sh\n", 10, NAMES, 3, found, &vaddr),
                     E_FORMAT);
    assert_int_equal(elf_symbols(NULL, 0, NAMES, 3, found, &vaddr), E_FORMAT);
}

/* Cut anywhere, and with every 8-byte field turned into something absurd: an answer, no crash. */
static void test_damaged(void **state ATTR_UNUSED)
{
    uint64_t found[3], vaddr;
    struct image m = image();
    for (size_t len = 0; len < sizeof m; len++)
        look(&m, len, found, &vaddr);
    static const uint64_t absurd[] = {
        0,       1, 7, 0xffff, UINT32_MAX, UINT64_MAX, UINT64_MAX - 63, INT64_MAX, sizeof m - 1,
        sizeof m};
    for (size_t at = 0; at + 8 <= sizeof m; at += 2) {
        for (size_t i = 0; i < ARRAY_LEN(absurd); i++) {
            m = image();
            memcpy((uint8_t *)&m + at, &absurd[i], 8);
            look(&m, sizeof m, found, &vaddr);
        }
    }
    /* a name that runs to the end of the strings without its NUL is no match */
    m = image();
    m.s[2].sh_size = 11;
    m.s[3].sh_type = SHT_NULL;
    assert_int_equal(look(&m, sizeof m, found, &vaddr), 0);
    assert_true(found[0] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_this_program), cmocka_unit_test(test_libc),
        cmocka_unit_test(test_synthetic),    cmocka_unit_test(test_not_ours),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
