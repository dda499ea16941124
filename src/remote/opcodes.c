#include "remote/opcodes.h"

#include "base/attr.h"
#include "base/err.h"
#include "remote/opcodes_table.h"

#include <stdbool.h>
#include <stdlib.h>

const struct opcode_fact *opcodes_of(int major, int minor)
{
    if (major != 3)
        return NULL;
    return minor == 10 ? opcodes_3_10 : minor == 11 ? opcodes_3_11 : NULL;
}

/* Where the jump at `at` leads; `units` if nowhere in this code. */
static size_t target(const struct opcode_fact *fact, size_t next, uint64_t arg, size_t units)
{
    switch ((enum opcode_jump)fact->jump) {
    case OPCODE_JUMP_FORWARD:
    case OPCODE_JUMP_OVER:
        return arg < units - next ? next + arg : units;
    case OPCODE_JUMP_BACKWARD:
        return arg <= next ? next - arg : units;
    case OPCODE_JUMP_ABSOLUTE:
        return arg < units ? arg : units;
    case OPCODE_JUMP_NONE:
    case OPCODE_JUMP_LAST:
        break;
    }
    return units;
}

/* Walks from one instruction to the next. */
struct step {
    const struct opcode_fact *fact;
    size_t at, next;
    uint64_t arg;
};

static bool step(const struct opcode_fact *facts, const uint8_t *code, size_t units, struct step *s)
{
    if (s->next >= units)
        return false;
    uint64_t before = s->fact && s->fact->kind == OPCODE_EXTENDED ? s->arg : 0;
    s->at = s->next;
    s->fact = &facts[code[2 * s->at]];
    s->arg = (before << 8 | code[2 * s->at + 1]) & UINT32_MAX;
    s->next = s->at + 1 + s->fact->caches;
    return true;
}

/* Where blocks begin. */
static void find_blocks(const struct opcode_fact *facts, const uint8_t *code, size_t units,
                        bool *ret_begins)
{
    for (struct step s = {0}; step(facts, code, units, &s);) {
        if (s.fact->jump == OPCODE_JUMP_NONE)
            continue;
        size_t next = s.next < units ? s.next : units;
        ret_begins[target(s.fact, next, s.arg, units)] = true;
        if (s.fact->jump != OPCODE_JUMP_OVER)
            ret_begins[next] = true;
    }
}

/* 3.11 has one instruction for all operators. */
static enum opcode_kind kind_of(const struct step *s)
{
    if (!s->fact->operators)
        return (enum opcode_kind)s->fact->kind;
    return s->arg < sizeof operator_kinds ? (enum opcode_kind)operator_kinds[s->arg] : OPCODE_OTHER;
}

/* Counts what is in the block that begins at `block`; returns where the next one does. */
static size_t count_block(const struct opcode_fact *facts, const uint8_t *code, size_t units,
                          const bool *begins, size_t block, struct opcode_unit *ret)
{
    uint16_t *count = ret[block].count;
    struct step s = {.next = block};
    do {
        if (!step(facts, code, units, &s))
            break;
        enum opcode_kind kind = kind_of(&s);
        ret[s.at].kind = (uint8_t)kind;
        if (count[kind] < UINT16_MAX)
            count[kind]++;
        if (s.fact->counted && ret[block].counted < UINT16_MAX)
            ret[block].counted++;
    } while (s.next < units && !begins[s.next]);
    size_t end = s.next < units ? s.next : units;
    for (size_t i = block; i < end; i++)
        ret[i].block = (uint32_t)block;
    return end;
}

int opcodes_divide(const struct opcode_fact *facts, const uint8_t *code, size_t units,
                   struct opcode_unit *ret)
{
    _cleanup_free_ bool *begins = calloc(units + 1, sizeof *begins);
    if (!begins)
        return E_NOMEM;
    find_blocks(facts, code, units, begins);
    for (size_t i = 0; i < units; i++)
        ret[i] = (struct opcode_unit){.kind = OPCODE_OF_CALL};
    for (size_t block = 0; block < units;)
        block = count_block(facts, code, units, begins, block, ret);
    return 0;
}
