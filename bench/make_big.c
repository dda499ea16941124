/* Writes a large recording: make_big FILE SAMPLES STACKS DEPTH CHANGE
 *
 * SAMPLES records of one sample each, over STACKS distinct stacks of about DEPTH frames in a dozen
 * threads; functions, files and lines as many as a large program has. From one stack to the next
 * about CHANGE frames differ: 2 is a program that calls and returns, 15 is one that is all over the
 * place. No sampler is involved: this is the file that a day of sampling would leave behind, made
 * in seconds, and the same each time. Linked with src/base and src/format. */
#include "base/err.h"
#include "format/writer.h"

#include <stdio.h>
#include <stdlib.h>

enum { CODES = 5000, FILES = 300, THREADS = 12, MAX_DEPTH = 1000, PERIOD_NS = 1000000 };
enum { CALLEES = 6, LINES = 4 }; /* of a function: what it calls, and the lines it calls from */

struct shape {
    uint32_t depth, change;
};

static uint64_t rng = 88172645463325252ull;

/* xorshift: the same file each time */
static uint32_t pick(uint32_t below)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)((rng >> 32) % below);
}

static uint32_t text(struct format_writer *w, const char *shape, unsigned number)
{
    char line[64];
    int n = snprintf(line, sizeof line, shape, number);
    return format_writer_string(w, line, (size_t)n);
}

static void define_codes(struct format_writer *w, uint32_t *codes)
{
    for (unsigned i = 0; i < CODES; i++) {
        struct record_code code = {
            .name = text(w, "function_%u", i),
            .qualname = text(w, "Class.function_%u", i),
            .file = text(w, "/srv/application/package/module_%u.py", i % FILES),
            .first_line = 10 + i / FILES * 40,
        };
        codes[i] = format_writer_code(w, &code);
    }
}

/* Who calls whom: every function has a few it calls, always from the same lines. */
static struct record_stack call_from(const uint32_t *codes, uint32_t parent, uint32_t *code)
{
    uint32_t way = pick(CALLEES);
    *code = (uint32_t)((*code * 2654435761u + way * 40503u + 12345u) >> 7) % CODES;
    return (struct record_stack){
        .parent = parent,
        .code = codes[*code],
        .line = 11 + *code / FILES * 40 + pick(LINES),
    };
}

/* A stack shares its beginning with the one before it, as stacks of a program do; `change` is how
 * many of its frames are new, on average. Depths lie around `depth`. Every stack is a new one. */
static void define_stacks(struct format_writer *w, const uint32_t *codes, uint32_t *stacks,
                          uint32_t count, const struct shape *shape)
{
    uint32_t path[2 * MAX_DEPTH], code[2 * MAX_DEPTH];
    uint32_t last = 0, newest = 0;
    for (uint32_t i = 0; i < count;) {
        uint32_t depth = shape->depth / 2 + pick(shape->depth) + 1;
        uint32_t back = 1;
        while (back < last && pick(shape->change) != 0)
            back++;
        uint32_t keep = last < depth ? last : depth;
        keep = keep > back ? keep - back : 0;
        if (depth > keep + 2 * shape->change)
            depth = keep + 1 + pick(2 * shape->change);
        for (uint32_t d = keep; d < depth; d++) {
            code[d] = d ? code[d - 1] : 0;
            struct record_stack node =
                call_from(codes, d ? path[d - 1] : RECORD_STACK_ROOT, &code[d]);
            path[d] = format_writer_stack(w, &node);
        }
        last = depth;
        if (path[depth - 1] > newest)
            stacks[i++] = newest = path[depth - 1];
        if (format_writer_wants_flush(w))
            format_writer_flush(w);
    }
}

static void define_process(struct format_writer *w)
{
    struct record_process process = {
        .id = 0,
        .pid = 1000,
        .parent_pid = 1,
        .kind = RECORD_PROCESS_PYTHON,
        .command = text(w, "python big_%u.py", 1),
        .python_version = format_writer_string(w, "3.12.1", 6),
    };
    format_writer_process(w, &process);
    for (uint32_t i = 0; i < THREADS; i++) {
        struct record_thread thread = {
            .id = i,
            .process = 0,
            .tid = 1000 + i,
            .name = text(w, "worker-%u", i),
            .ident = 0x7f0000000000ull + i,
        };
        format_writer_thread(w, &thread);
    }
}

static uint64_t add_samples(struct format_writer *w, const uint32_t *stacks, uint32_t count,
                            uint64_t samples)
{
    uint64_t now = 0;
    for (uint64_t i = 0; i < samples; i++) {
        uint32_t thread = (uint32_t)(i % THREADS);
        if (thread == 0)
            now += PERIOD_NS / 2 + pick(PERIOD_NS);
        /* hot stacks and rare ones: a product of two uniform numbers leans to the small */
        uint32_t stack = (uint32_t)((uint64_t)pick(count) * pick(count) / count);
        struct record_sample sample = {
            .thread = thread,
            .stack = stacks[stack],
            .state = thread < 2 ? RECORD_ON_CPU | RECORD_HOLDS_GIL : 0,
            .count = 1,
            .start_ns = now,
            .duration_ns = PERIOD_NS,
        };
        format_writer_sample(w, &sample);
        if (format_writer_wants_flush(w))
            format_writer_flush(w);
    }
    return now + PERIOD_NS;
}

static int write_big(const char *path, uint64_t samples, uint32_t count, const struct shape *shape)
{
    struct format_writer *w = NULL;
    struct format_writer_options options = {.force = true, .run_id = {1}};
    uint32_t *codes = calloc(CODES, sizeof *codes);
    uint32_t *stacks = calloc(count, sizeof *stacks);
    int rc = codes && stacks ? format_writer_open(path, &options, &w) : E_NOMEM;
    if (rc == 0) {
        format_writer_meta(w, "command", "python big_1.py");
        define_process(w);
        define_codes(w, codes);
        define_stacks(w, codes, stacks, count, shape);
        uint64_t end = add_samples(w, stacks, count, samples);
        struct record_stats stats = {0};
        stats.value[RECORD_STAT_SAMPLES] = samples;
        stats.value[RECORD_STAT_TICKS_REQUESTED] = stats.value[RECORD_STAT_TICKS_TAKEN] =
            (samples + THREADS - 1) / THREADS;
        stats.value[RECORD_STAT_RATE_MILLIHERTZ] = 1000000;
        stats.value[RECORD_STAT_SAMPLED_NS] = stats.value[RECORD_STAT_ELAPSED_NS] = end;
        format_writer_stats(w, &stats);
        rc = format_writer_finish(w);
    }
    format_writer_free(w);
    free(codes);
    free(stacks);
    return rc;
}

int main(int argc, char **argv)
{
    uint64_t samples = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t stacks = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    uint64_t depth = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    uint64_t change = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
    if (argc != 6 || !samples || !stacks || stacks > UINT32_MAX || !depth || depth > MAX_DEPTH ||
        !change || change > depth) {
        fprintf(stderr, "usage: make_big FILE SAMPLES STACKS DEPTH CHANGE\n");
        return 2;
    }
    struct shape shape = {(uint32_t)depth, (uint32_t)change};
    int rc = write_big(argv[1], samples, (uint32_t)stacks, &shape);
    if (rc < 0)
        fprintf(stderr, "make_big: %s: error %d\n", argv[1], rc);
    return rc < 0;
}
