/* What is in a block of bytecode. Inside src/remote only.
 *
 * While a profile function is set, CPython 3.10 and 3.11 go from each instruction to the next the slow way, and 3.11 leaves its
 * specialised instructions. What each kind of instruction loses so is measured (agent/calibrate.c); how often each runs nobody counts. But
 * where a thread is found tells how much of its time passes in a block, the instructions between two jumps or targets of jumps: record/slowed.h
 * makes losses of that. */
#ifndef PYROMETER_REMOTE_OPCODES_H
#define PYROMETER_REMOTE_OPCODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opcode_kind {
    OPCODE_OTHER,     /* what the tables leave out */
    OPCODE_MOVE,      /* always does the same little */
    OPCODE_STORE,     /* so does this one, unless it frees what it replaces */
    OPCODE_ITERATION, /* to the next item */
    OPCODE_ARITHMETIC, /* sums and products: 3.11 has quicker forms, which are not used meanwhile; so it has for … */
    OPCODE_DIVISION,   /* (not for these) */
    OPCODE_COMPARISON, /* … these … */
    OPCODE_NAME,       /* … globals, which are looked up … */
    OPCODE_ATTRIBUTE,  /* … attributes … */
    OPCODE_ITEM,       /* … and items */
    OPCODE_CALL,       /* what calls cost is measured as a whole; … */
    OPCODE_OF_CALL,    /* … and this is a part of it */
    OPCODE_EXTENDED,   /* its argument is the upper part of the next one's */
    OPCODE_KINDS
};

/* Where an instruction may lead. */
enum opcode_jump {
    OPCODE_JUMP_NONE,
    OPCODE_JUMP_FORWARD, /* by so many units from the next instruction on */
    OPCODE_JUMP_BACKWARD,
    OPCODE_JUMP_ABSOLUTE,
    OPCODE_JUMP_OVER, /* forward, once at the end of a loop: what follows runs as often as it does */
    OPCODE_JUMP_LAST, /* nothing follows */
};

/* What the table of a version has, one for each number (opcodes_table.h). */
struct opcode_fact {
    uint8_t kind, jump;
    uint8_t caches; /* units behind it that are no instructions */
    bool operators; /* its argument is an operator */
    bool counted;   /* by 3.11 */
};

/* One for each unit. Those of a block that tell nothing, as they belong to calls or are no instructions, have OPCODE_CALL or
 * a later `kind`. */
struct opcode_unit {
    uint8_t kind;
    uint32_t block; /* where its block begins */
    /* of the block, where it begins: how many of each kind it has */
    uint16_t count[OPCODE_KINDS];
    uint16_t counted; /* those that 3.11 counts in co_warmup */
};

/* The table of a minor version; NULL if that version does not slow instructions down. */
const struct opcode_fact *opcodes_of(int major, int minor);

/* Fills `ret`, one for each of the `units` of two bytes. 0 or E_NOMEM. */
int opcodes_divide(const struct opcode_fact *facts, const uint8_t *code, size_t units,
                   struct opcode_unit *ret);

#endif
