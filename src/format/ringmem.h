/* The words of a memory ring: what a thread allocated and gave back, and on which stacks.
 *
 * The recorder knows each thread's Python stack as it was at its last allocation. Before an allocation on
 * another stack the guest says what has changed: how many of the outermost frames stay (KEEP), and those
 * above them (PUSH). Most allocations find the stack as it was, or only its innermost frame moved on (MOVE).
 *
 * Blocks are given back by other threads than allocated them, and addresses are used again, so the rings
 * of a process are read in one order: that of the stamps. An allocation is stamped after it was made, a
 * release before; no stamp is taken before the instructions that precede it are done. Only where the
 * interpreter's lock keeps threads apart (Python's own small blocks) is a stamp left out (ticks 0) until
 * another thread has written, or many records have passed.
 *
 * A word:   bits 0–3  kind (enum ringmem_kind)
 *   ALLOC, MAP      bits 4–8 allocator (enum record_allocator), 9–56 address, 57–63 bits 40 to 46 of
 *                   the size; second word: bits 0–39 of the size, 40–63 ticks since the last stamp
 *   UNMAP           the same, without an allocator
 *   FREE            bits 4–48 address / 8, 49–63 ticks
 *   UNDO            what the thread has freed last is back: a realloc has failed
 *   TIME            bits 4–63: ticks, when there are too many for the word that follows
 *   KEEP            bits 4–63: frames
 *   PUSH            bits 4–31 code number, 0: a frame of the interpreter itself, without code;
 *                   32–63 byte offset of its instruction, signed
 *   MOVE            bits 32–63 byte offset of the innermost frame's instruction
 *   EXT             bits 4–7 enum ringmem_ext, 8–31 words of the payload that follows */
#ifndef PYROMETER_FORMAT_RINGMEM_H
#define PYROMETER_FORMAT_RINGMEM_H

#include <stdint.h>

enum ringmem_kind {
    RINGMEM_NONE = 0,
    RINGMEM_ALLOC = 1,
    RINGMEM_FREE = 2,
    RINGMEM_MAP = 3,
    RINGMEM_UNMAP = 4,
    RINGMEM_UNDO = 5,
    RINGMEM_TIME = 6,
    RINGMEM_KEEP = 7,
    RINGMEM_PUSH = 8,
    RINGMEM_MOVE = 9,
    RINGMEM_EXT = 14,
};

enum ringmem_ext {
    RINGMEM_EXT_CODE = 1, /* struct ringmem_code and its texts */
    RINGMEM_EXT_MARK = 2, /* the program has set a mark: a good moment to look */
};

enum {
    RINGMEM_FREE_TICKS = 15,  /* bits */
    RINGMEM_ALLOC_TICKS = 24, /* bits */
    RINGMEM_SIZE_LOW = 40,    /* bits of the size in the second word */
    RINGMEM_MAX_LINES =
        128 << 10, /* bytes of a line table; of what lies past them lines are not known */
};

#define RINGMEM_MAX_ADDRESS ((1ull << 48) - 1)
#define RINGMEM_MAX_SIZE    ((1ull << 47) - 1)

/* How a code object's lines are written down, as its CPython does it. */
enum ringmem_lines {
    RINGMEM_LINES_LNOTAB = 0,   /* 3.8, 3.9 */
    RINGMEM_LINES_PEP626 = 1,   /* 3.10 */
    RINGMEM_LINES_LOCATION = 2, /* 3.11 and later */
};

/* Payload of RINGMEM_EXT_CODE. Name, qualified name, file and line table follow one another. */
struct ringmem_code {
    uint32_t id;
    uint32_t first_line;
    uint32_t name_len, qualname_len, file_len, lines_len;
    uint32_t lines; /* enum ringmem_lines */
    uint32_t reserved;
};

static inline uint64_t ringmem_word(enum ringmem_kind kind, uint64_t value)
{
    return value << 4 | (uint64_t)kind;
}

static inline uint64_t ringmem_push(uint32_t code, int32_t offset)
{
    return (uint64_t)(uint32_t)offset << 32 | (uint64_t)code << 4 | RINGMEM_PUSH;
}

static inline uint64_t ringmem_move(int32_t offset)
{
    return (uint64_t)(uint32_t)offset << 32 | RINGMEM_MOVE;
}

static inline uint64_t ringmem_free(uint64_t address, uint64_t ticks)
{
    return ticks << 49 | (address & RINGMEM_MAX_ADDRESS) >> 3 << 4 | RINGMEM_FREE;
}

/* The first and second word of ALLOC, MAP and UNMAP. */
static inline uint64_t ringmem_block(enum ringmem_kind kind, uint32_t allocator, uint64_t address,
                                     uint64_t size)
{
    return size >> RINGMEM_SIZE_LOW << 57 | (address & RINGMEM_MAX_ADDRESS) << 9 |
           (uint64_t)allocator << 4 | (uint64_t)kind;
}

static inline uint64_t ringmem_size(uint64_t size, uint64_t ticks)
{
    return ticks << RINGMEM_SIZE_LOW | (size & ((1ull << RINGMEM_SIZE_LOW) - 1));
}

static inline uint64_t ringmem_block_address(uint64_t first)
{
    return first >> 9 & RINGMEM_MAX_ADDRESS;
}

static inline uint64_t ringmem_block_size(uint64_t first, uint64_t second)
{
    return first >> 57 << RINGMEM_SIZE_LOW | (second & ((1ull << RINGMEM_SIZE_LOW) - 1));
}

#endif
