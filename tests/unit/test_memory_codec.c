/* Checkpoints of memory, there and back: what was written is what is read. */
#include "base/attr.h"
#include "format/writer.h"
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char path[] = "/tmp/pyrometer-test-XXXXXX";

struct heard {
    struct record_memory memory[2];
    struct record_sizes sizes[2];
    struct record_site sites[4];
    size_t memories, size_count, site_count;
};

static int hear_memory(void *ctx, const struct record_memory *memory)
{
    struct heard *h = ctx;
    assert_true(h->memories < ARRAY_LEN(h->memory));
    h->memory[h->memories++] = *memory;
    return 0;
}

static int hear_sizes(void *ctx, const struct record_memory *memory,
                      const struct record_sizes *sizes)
{
    struct heard *h = ctx;
    assert_memory_equal(memory, &h->memory[h->memories - 1], sizeof *memory);
    assert_true(h->size_count < ARRAY_LEN(h->sizes));
    h->sizes[h->size_count++] = *sizes;
    return 0;
}

static int hear_site(void *ctx, const struct record_memory *memory, const struct record_site *site)
{
    struct heard *h = ctx;
    assert_memory_equal(memory, &h->memory[h->memories - 1], sizeof *memory);
    assert_true(h->site_count < ARRAY_LEN(h->sites));
    h->sites[h->site_count++] = *site;
    return 0;
}

/* Every field, small and as large as it can be, with and without what may be absent. */
static void test_round_trip(void **state ATTR_UNUSED)
{
    static const struct profile_memory_visitor visitor = {hear_memory, hear_sizes, hear_site};
    const uint64_t most = UINT64_MAX;
    struct format_writer *w;
    struct format_writer_options options = {.force = true};
    assert_int_equal(format_writer_open(path, &options, &w), 0);
    for (uint32_t i = 1; i <= 2; i++) {
        format_writer_process(w, &(struct record_process){.id = i, .pid = 100 * i});
        format_writer_thread(w, &(struct record_thread){.id = i, .process = i, .tid = 100 * i});
    }
    uint32_t code = format_writer_code(w, &(struct record_code){.first_line = 1});
    uint32_t n_main = format_writer_stack(w, &(struct record_stack){0, code, 5});
    uint32_t n_grow = format_writer_stack(w, &(struct record_stack){n_main, code, 6});
    uint32_t n_leaf = format_writer_stack(w, &(struct record_stack){n_grow, code, 7});
    struct record_memory one = {.process = 2,
                                .time_ns = 7,
                                .live_bytes = 1,
                                .live_count = 2,
                                .peak_bytes = 3,
                                .peak_ns = 4};
    struct record_memory two = {.process = 1,
                                .flags =
                                    RECORD_MEMORY_SAMPLED | RECORD_MEMORY_MARK | RECORD_MEMORY_LAST,
                                .time_ns = most,
                                .live_bytes = most,
                                .live_count = most,
                                .peak_bytes = most,
                                .peak_ns = most};
    struct record_sizes sizes[] = {{0, 0, 1, 1}, {31, 63, most, most}};
    struct record_site plain[] = {
        {.thread = 2, .stack = n_leaf, .allocator = 31, .count = 5, .bytes = 6},
        {.thread = 1,
         .stack = 0,
         .allocator = RECORD_ALLOCATOR_MMAP,
         .freed = 1,
         .freed_bytes = 2,
         .brief = 3,
         .brief_bytes = 4,
         .peak_count = 5,
         .peak_bytes = 6}};
    struct record_site estimated[] = {{.thread = 1,
                                       .stack = n_main,
                                       .count = most,
                                       .bytes = most,
                                       .freed = most,
                                       .freed_bytes = most,
                                       .brief = most,
                                       .brief_bytes = most,
                                       .peak_count = most,
                                       .peak_bytes = most,
                                       .variance = 1e300,
                                       .live_variance = 0.5,
                                       .peak_variance = 1e-300},
                                      {.thread = 1, .stack = n_grow}};
    format_writer_memory(w, &one, sizes, 2, plain, 2);
    format_writer_memory(w, &two, NULL, 0, estimated, 2);
    assert_int_equal(format_writer_finish(w), 0);
    format_writer_free(w);
    struct profile *p = NULL;
    assert_int_equal(profile_load(path, &p), 0);
    struct heard h = {0};
    uint32_t damaged = 1;
    assert_int_equal(profile_each_memory(p, &visitor, &h, &damaged), 0);
    assert_int_equal(damaged, 0);
    assert_int_equal(h.memories, 2);
    assert_memory_equal(&h.memory[0], &one, sizeof one);
    assert_memory_equal(&h.memory[1], &two, sizeof two);
    assert_memory_equal(h.sizes, sizes, sizeof sizes);
    assert_memory_equal(h.sites, plain, sizeof plain);
    assert_memory_equal(h.sites + 2, estimated, sizeof estimated);
    profile_free(p);
}

int main(void)
{
    close(mkstemp(path));
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
