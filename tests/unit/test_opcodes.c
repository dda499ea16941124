/* Blocks of bytecode written by hand, by the numbers of CPython 3.10 and 3.11: where they begin, and what is in them. */
#include "remote/opcodes.h"

#include "base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { /* both */
       LOAD_CONST = 100,
       LOAD_FAST = 124,
       STORE_FAST = 125,
       FOR_ITER = 93,
       RETURN_VALUE = 83,
       EXTENDED_ARG = 144,
       JUMP_FORWARD = 110,
       POP_TOP = 1,
};
enum { /* 3.11 */
       CACHE = 0,
       LOAD_GLOBAL = 116,
       BINARY_OP = 122,
       NB_AND = 1,
       NB_TRUE_DIVIDE = 11,
       NB_INPLACE_MULTIPLY = 18,
       BINARY_OP_ADD_INT = 5,
       LOAD_FAST__LOAD_FAST = 46,
       JUMP_BACKWARD = 140,
       JUMP_BACKWARD_QUICK = 38,
       POP_JUMP_FORWARD_IF_FALSE = 114,
       RESUME = 151,
       PRECALL = 166,
       CALL = 171,
       PUSH_NULL = 2,
};
enum { /* 3.10 */
       JUMP_ABSOLUTE = 113,
       POP_JUMP_IF_FALSE_310 = 114,
       BINARY_ADD = 23,
};

#define UNITS_OF(minor, ...)                                                                       \
    const uint8_t code[] = {__VA_ARGS__};                                                          \
    enum { UNITS = sizeof code / 2 };                                                              \
    struct opcode_unit unit[UNITS];                                                                \
    memset(unit, 0xff, sizeof unit);                                                               \
    assert_int_equal(opcodes_divide(opcodes_of(3, minor), code, UNITS, unit), 0)

/* The block that begins there has so many, and nothing else but what belongs to calls. */
static void assert_block(const struct opcode_unit *unit, unsigned begin, unsigned moves,
                         unsigned usual, unsigned arithmetic, unsigned names)
{
    assert_int_equal(unit[begin].block, begin);
    const uint16_t *count = unit[begin].count;
    assert_int_equal(count[OPCODE_MOVE], moves);
    assert_int_equal(count[OPCODE_STORE], usual);
    assert_int_equal(count[OPCODE_ARITHMETIC], arithmetic);
    assert_int_equal(count[OPCODE_NAME], names);
    assert_int_equal(count[OPCODE_OTHER], 0);
}

static void test_versions(void **state ATTR_UNUSED)
{
    assert_non_null(opcodes_of(3, 10));
    assert_non_null(opcodes_of(3, 11));
    assert_null(opcodes_of(3, 9));
    assert_null(opcodes_of(3, 12));
    assert_null(opcodes_of(4, 10));
}

/* for i in …: x += i   The loop's head goes with its body, which runs once less. Quickened as it stands in memory. */
static void test_loop(void **state ATTR_UNUSED)
{
    UNITS_OF(11, FOR_ITER, 7, STORE_FAST, 0, LOAD_FAST__LOAD_FAST, 1, LOAD_FAST, 0,
             BINARY_OP_ADD_INT, 13, CACHE, 0, STORE_FAST, 1, JUMP_BACKWARD_QUICK, 8, LOAD_FAST, 1,
             RETURN_VALUE, 0);
    assert_block(unit, 0, 3, 2, 1, 0);
    assert_int_equal(unit[0].count[OPCODE_ITERATION], 1);
    assert_int_equal(unit[0].counted, 1);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(unit[i].block, 0);
    assert_int_equal(unit[3].kind, OPCODE_MOVE);
    assert_int_equal(unit[4].kind, OPCODE_ARITHMETIC);
    assert_int_equal(unit[5].kind, OPCODE_OF_CALL); /* no instruction at all */
    assert_block(unit, 8, 1, 0, 0, 0);              /* a return is a part of the call */
}

/* What a call consists of counts for nothing, but does not part the block. */
static void test_calls(void **state ATTR_UNUSED)
{
    UNITS_OF(11, RESUME, 0, PUSH_NULL, 0, LOAD_FAST, 0, PRECALL, 0, CACHE, 0, CALL, 0, CACHE, 0,
             CACHE, 0, CACHE, 0, CACHE, 0, POP_TOP, 0, LOAD_CONST, 0, STORE_FAST, 0, RETURN_VALUE,
             0);
    assert_block(unit, 0, 2, 1, 0, 0);
    assert_int_equal(unit[0].count[OPCODE_CALL], 1);
    assert_int_equal(unit[0].counted, 1);
    assert_int_equal(unit[12].block, 0);
    assert_int_equal(unit[3].kind, OPCODE_OF_CALL);
    assert_int_equal(unit[5].kind, OPCODE_CALL);
}

static void test_names(void **state ATTR_UNUSED)
{
    UNITS_OF(11, LOAD_GLOBAL, 0, CACHE, 0, CACHE, 0, CACHE, 0, CACHE, 0, CACHE, 0, LOAD_FAST, 0,
             BINARY_OP, 0, CACHE, 0, STORE_FAST, 0, RETURN_VALUE, 0);
    assert_block(unit, 0, 1, 1, 1, 1);
}

/* 3.11 has one instruction for them all. */
static void test_operators(void **state ATTR_UNUSED)
{
    UNITS_OF(11, LOAD_FAST, 0, BINARY_OP, 0, CACHE, 0, BINARY_OP, NB_TRUE_DIVIDE, CACHE, 0,
             BINARY_OP, NB_AND, CACHE, 0, BINARY_OP, NB_INPLACE_MULTIPLY, CACHE, 0, RETURN_VALUE,
             0);
    assert_int_equal(unit[0].count[OPCODE_ARITHMETIC], 2);
    assert_int_equal(unit[0].count[OPCODE_DIVISION], 1);
    assert_int_equal(unit[0].count[OPCODE_OTHER], 1);
    assert_int_equal(unit[3].kind, OPCODE_DIVISION);
    assert_int_equal(unit[5].kind, OPCODE_OTHER);
}

/* An `if`: three blocks, of which the one that is jumped over may run more seldom than its neighbours. */
static void test_branches(void **state ATTR_UNUSED)
{
    UNITS_OF(11, LOAD_FAST, 0, POP_JUMP_FORWARD_IF_FALSE, 3, LOAD_FAST, 1, LOAD_FAST, 1, STORE_FAST,
             2, LOAD_FAST, 2, RETURN_VALUE, 0);
    assert_block(unit, 0, 1, 1, 0, 0);
    assert_block(unit, 2, 2, 1, 0, 0);
    assert_block(unit, 5, 1, 0, 0, 0);
}

static void test_3_10(void **state ATTR_UNUSED)
{
    UNITS_OF(10, LOAD_FAST, 0, POP_JUMP_IF_FALSE_310, 5, LOAD_FAST, 1, STORE_FAST, 2, JUMP_ABSOLUTE,
             0, LOAD_CONST, 2, BINARY_ADD, 0, RETURN_VALUE, 0);
    assert_block(unit, 0, 1, 1, 0, 0);
    assert_block(unit, 2, 2, 1, 0, 0);
    assert_block(unit, 5, 1, 0, 1, 0);
}

/* A jump over 256 instructions: the target is what both arguments say. */
static void test_extended(void **state ATTR_UNUSED)
{
    uint8_t code[2 * 400];
    struct opcode_unit unit[400];
    for (size_t i = 0; i < 400; i++) {
        code[2 * i] = LOAD_FAST;
        code[2 * i + 1] = 0;
    }
    code[0] = EXTENDED_ARG;
    code[1] = 1;
    code[2] = JUMP_FORWARD;
    code[3] = 0x10;
    assert_int_equal(opcodes_divide(opcodes_of(3, 11), code, 400, unit), 0);
    assert_block(unit, 0, 1, 0, 0, 0);
    assert_block(unit, 2, 0x110, 0, 0, 0);
    assert_block(unit, 2 + 0x110, 400 - 2 - 0x110, 0, 0, 0);
}

/* Bytes of another process: jumps to nowhere, arguments that overflow, an end in the middle of an instruction. */
static void test_nonsense(void **state ATTR_UNUSED)
{
    uint8_t code[2 * 64];
    struct opcode_unit unit[64];
    for (unsigned seed = 1; seed < 20000; seed++) {
        uint32_t x = seed;
        for (size_t i = 0; i < sizeof code; i++) {
            x = x * 1664525 + 1013904223;
            code[i] = (uint8_t)(x >> 24);
        }
        size_t units = seed % 65;
        assert_int_equal(opcodes_divide(opcodes_of(3, 10 + (int)seed % 2), code, units, unit), 0);
        for (size_t i = 0; i < units; i++)
            assert_true(unit[i].block <= i && unit[unit[i].block].block == unit[i].block &&
                        unit[i].kind < OPCODE_KINDS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),  cmocka_unit_test(test_loop),
        cmocka_unit_test(test_calls),     cmocka_unit_test(test_branches),
        cmocka_unit_test(test_3_10),      cmocka_unit_test(test_extended),
        cmocka_unit_test(test_nonsense),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
