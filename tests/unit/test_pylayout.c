/* The layouts: that every version has one that makes sense, and that what a process says about
 * itself is not believed blindly. The debug-offset blocks in data/ are the first bytes of
 * `_PyRuntime` of real interpreters: 3.13.0, 3.14.10 and 3.15.2, x86-64. Run from the root of the
 * repository. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h> /* wants the headers above */

#include "base/err.h"
#include "remote/pylayout.h"

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/unit/data"
#endif

enum {
    VERSION_AT = 8,
    FREE_THREADED_AT = 16,
    RUNTIME_FINALIZING_AT = 32, /* the same in all versions so far */
    FIRST_OFFSET_AT = RUNTIME_FINALIZING_AT,
};

struct block {
    uint8_t bytes[PYLAYOUT_PROBE_BYTES];
    size_t len;
};

static const int debug_minors[] = {13, 14, 15};
#define DEBUG_MINORS (sizeof(debug_minors) / sizeof(debug_minors[0]))

static struct block read_block(int minor)
{
    struct block block = {.len = 0};
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), TEST_DATA_DIR "/debug_offsets_3.%d.bin", minor);
    file = fopen(path, "rb");
    assert_non_null(file);
    block.len = fread(block.bytes, 1, sizeof(block.bytes), file);
    fclose(file);
    assert_in_range(block.len, 500, sizeof(block.bytes) - 1);
    return block;
}

static void put_word(struct block *block, size_t position, uint64_t word)
{
    memcpy(block->bytes + position, &word, sizeof(word));
}

static int parse(const struct block *block, struct pylayout *ret)
{
    return pylayout_from_debug_offsets(block->bytes, block->len, ret);
}

/* What holds for every layout, from whichever source. */
static void check_layout(const struct pylayout *l)
{
    int datastack = l->frames != PYL_FRAMES_HEAP;
    int own_gil = l->minor >= 12;

    assert_int_equal(l->major, 3);
    assert_in_range(l->runtime.size, l->runtime.interpreters_head + 8, 1 << 20);
    assert_in_range(l->runtime.size, l->runtime.finalizing + 8, 1 << 20);
    assert_int_equal(l->runtime.gil == PYL_NONE, own_gil);
    assert_int_equal(l->runtime.tstate_current == PYL_NONE, own_gil);
    assert_int_equal(l->interp.gil == PYL_NONE, !own_gil);
    assert_int_equal(l->interp.id_size, 8);
    assert_in_range(l->gil.size, l->gil.last_holder + 8, 4096);
    assert_in_range(l->gil.locked, l->gil.last_holder + 8, l->gil.size);

    assert_in_range(l->tstate.size, l->tstate.frame + 8, 4096);
    assert_in_range(l->tstate.size, l->tstate.thread_id + 8, 4096);
    assert_int_equal(l->tstate.native_thread_id == PYL_NONE, !datastack);
    assert_int_equal(l->tstate.datastack_chunk == PYL_NONE, !datastack);
    if (datastack) {
        assert_int_equal(l->tstate.datastack_top, l->tstate.datastack_chunk + 8);
        assert_in_range(l->tstate.size, l->tstate.datastack_top + 8, 4096);
    }
    assert_int_equal(l->cframe.current_frame == PYL_NONE, l->frames != PYL_FRAMES_CFRAME);

    assert_in_range(l->frame.size, l->frame.instr + 4, 4096);
    assert_int_equal(l->frame.size, l->frame.localsplus);
    assert_true(l->frame.code != l->frame.previous);
    assert_int_equal(l->frame.owner == PYL_NONE, !datastack);
    assert_int_equal(l->frame.generator_state, datastack ? 5 : PYL_NONE);
    assert_int_equal(l->frame.in_generator == PYL_NONE, !datastack);
    assert_int_equal(l->frame.stacktop == PYL_NONE, !(l->minor >= 11 && l->minor <= 13));
    assert_int_equal(l->frame.entry == PYL_NONE, l->minor != 11);
    assert_int_equal(l->frame.clears_code, l->minor >= 14);
    assert_int_equal(l->code.version == PYL_NONE, l->minor < 12);
    assert_in_range(l->code.size, l->code.names + 8, 4096);
    assert_in_range(l->code.size, l->code.consts + 8, 4096);
    assert_true(l->shim_owner_min <= l->shim_owner_max);
    assert_int_equal(l->shim_owner_min != 0, l->minor >= 12);

    assert_in_range(l->code.size, l->code.linetable + 8, 4096);
    assert_int_equal(l->code.code == PYL_NONE, datastack);
    assert_int_equal(l->code.code_adaptive == PYL_NONE, !datastack);
    if (datastack)
        assert_int_equal(l->code.size, l->code.code_adaptive);
    assert_int_equal(l->code.qualname == PYL_NONE, !datastack);
    assert_int_equal(l->code.cellvars == PYL_NONE, datastack);

    assert_int_equal(l->object.size, 16);
    assert_int_equal(l->object.ob_type, 8);
    assert_true(l->unicode.ascii_size < l->unicode.compact_size);
    assert_in_range(l->type.size, l->type.tp_dictoffset + 8, 4096);
    assert_int_equal(l->dictkeys.has_log2, datastack);
    assert_int_equal(l->dictkeys.kind == PYL_NONE, !datastack);
    assert_int_equal(l->long_.tagged, l->minor >= 12);
}

static void test_tables_are_complete_and_ordered(void **state)
{
    const struct pylayout *table;
    size_t count = 0;

    (void)state;
    for (; (table = pylayout_table_at(count)); count++) {
        assert_int_equal(table->minor, 8 + (int)count);
        assert_ptr_equal(pylayout_table(3, table->minor), table);
        check_layout(table);
    }
    assert_int_equal(count, 5);
    assert_null(pylayout_table_at(SIZE_MAX));
}

static void test_no_table_for_other_versions(void **state)
{
    (void)state;
    assert_null(pylayout_table(2, 7));
    assert_null(pylayout_table(3, 7));
    assert_null(pylayout_table(3, 13));
    assert_null(pylayout_table(4, 8));
}

/* Measured in live processes (feasibility report): a generator that goes wrong shows up here. */
static void test_known_offsets(void **state)
{
    (void)state;
    assert_int_equal(pylayout_table(3, 8)->tstate.frame, 24);
    assert_int_equal(pylayout_table(3, 8)->frame.instr, 104);
    assert_int_equal(pylayout_table(3, 10)->frame.instr, 96);
    assert_int_equal(pylayout_table(3, 11)->code.code_adaptive, 184);
    assert_int_equal(pylayout_table(3, 11)->cframe.current_frame, 8);
    assert_int_equal(pylayout_table(3, 12)->interp.threads_head, 72);
    assert_int_equal(pylayout_table(3, 12)->frame.owner, 70);
}

static void test_real_blocks_are_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < DEBUG_MINORS; i++) {
        struct block block = read_block(debug_minors[i]);
        struct pylayout layout;

        assert_int_equal(parse(&block, &layout), 0);
        assert_int_equal(layout.minor, debug_minors[i]);
        assert_int_equal(layout.frames, PYL_FRAMES_TSTATE);
        assert_int_equal(layout.code_tag_mask != 0, layout.minor >= 14);
        assert_int_equal(layout.tstate.frame, 72);
        check_layout(&layout);
    }
}

static void test_what_is_told_wins(void **state)
{
    struct block block = read_block(13);
    struct pylayout layout;

    (void)state;
    put_word(&block, RUNTIME_FINALIZING_AT, 4000);
    assert_int_equal(parse(&block, &layout), 0);
    assert_int_equal(layout.runtime.finalizing, 4000);
    assert_int_equal(layout.runtime.size, 4008);
}

static void test_truncated(void **state)
{
    (void)state;
    for (size_t i = 0; i < DEBUG_MINORS; i++) {
        struct block block = read_block(debug_minors[i]);
        struct pylayout layout = {.major = -1};
        size_t whole = block.len;

        for (block.len = 0; block.len < whole; block.len++)
            assert_int_equal(parse(&block, &layout), block.len < 8 ? E_NOTPYTHON : E_BADMEM);
        assert_int_equal(layout.major, -1); /* untouched */
    }
}

static void test_no_cookie(void **state)
{
    struct block block = read_block(14);
    struct pylayout layout;

    (void)state;
    block.bytes[0] ^= 1;
    assert_int_equal(parse(&block, &layout), E_NOTPYTHON);
    memset(block.bytes, 0, sizeof(block.bytes));
    assert_int_equal(parse(&block, &layout), E_NOTPYTHON);
}

static void test_unknown_builds(void **state)
{
    static const uint64_t unknown[] = {
        0,           0x030C01F0, /* 3.12 has no block */
        0x031000F0,              /* 3.16 */
        0x040D00F0,              /* 4.13 */
        0x030F00A1,              /* 3.15.0a1: not settled yet */
        0x030E00B2,              /* 3.14.0b2 */
        0x1030D00F0,             /* more than a version */
        UINT64_MAX,
    };
    struct block block = read_block(13);
    struct pylayout layout;

    (void)state;
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        put_word(&block, VERSION_AT, unknown[i]);
        assert_int_equal(parse(&block, &layout), E_VERSION);
    }
    put_word(&block, VERSION_AT, 0x030D00C1); /* a candidate is settled */
    assert_int_equal(parse(&block, &layout), 0);
    put_word(&block, FREE_THREADED_AT, 1);
    assert_int_equal(parse(&block, &layout), E_VERSION);
}

/* No word, however absurd, gets an offset past its bounds into a layout. */
static void test_absurd_offsets(void **state)
{
    static const uint64_t absurd[] = {UINT64_MAX, UINT32_MAX, 1ULL << 32, 1ULL << 63, 1 << 21};

    (void)state;
    for (size_t i = 0; i < DEBUG_MINORS; i++) {
        const struct block good = read_block(debug_minors[i]);
        struct pylayout reference, layout;
        size_t refused = 0;

        assert_int_equal(parse(&good, &reference), 0);
        for (size_t at = FIRST_OFFSET_AT; at + 8 <= good.len; at += 8) {
            for (size_t k = 0; k < sizeof(absurd) / sizeof(absurd[0]); k++) {
                struct block bad = good;
                int r;

                put_word(&bad, at, absurd[k]);
                r = parse(&bad, &layout);
                if (r == 0) /* a word that we do not use */
                    assert_memory_equal(&layout, &reference, sizeof(layout));
                else
                    assert_int_equal(r, E_BADMEM);
                refused += r != 0;
            }
        }
        assert_true(refused >= 40 * sizeof(absurd) / sizeof(absurd[0]));
    }
}

static void test_misaligned_and_doubled(void **state)
{
    struct block block = read_block(13);
    struct pylayout layout;

    (void)state;
    put_word(&block, RUNTIME_FINALIZING_AT, 609);
    assert_int_equal(parse(&block, &layout), E_BADMEM);
    memset(block.bytes + FIRST_OFFSET_AT, 0, block.len - FIRST_OFFSET_AT);
    assert_int_equal(parse(&block, &layout), E_BADMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_are_complete_and_ordered),
        cmocka_unit_test(test_no_table_for_other_versions),
        cmocka_unit_test(test_known_offsets),
        cmocka_unit_test(test_real_blocks_are_accepted),
        cmocka_unit_test(test_what_is_told_wins),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_no_cookie),
        cmocka_unit_test(test_unknown_builds),
        cmocka_unit_test(test_absurd_offsets),
        cmocka_unit_test(test_misaligned_and_doubled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
