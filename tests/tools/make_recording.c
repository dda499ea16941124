/* Makes a recording of memory out of a text, so that tests can ask the views about numbers that were
 * worked out on paper. One record a line, words separated by blanks, times in ns:
 *
 *     meta KEY VALUE
 *     process ID PID COMMAND [END]
 *     thread ID PROCESS TID NAME
 *     code NAME FILE FIRST_LINE            numbered 1, 2, …
 *     stack PARENT CODE LINE               numbered 1, 2, …; 0 is the root
 *     sample THREAD STACK START DURATION COUNT
 *     mark THREAD NAME START DURATION      DURATION 0: a moment
 *     counter THREAD NAME TIME VALUE
 *     checkpoint PROCESS FLAGS TIME LIVE_BYTES LIVE_COUNT PEAK_BYTES PEAK_NS
 *     sizes ALLOCATOR BIN COUNT BYTES      of the checkpoint above
 *     site THREAD STACK ALLOCATOR COUNT BYTES FREED FREED_BYTES BRIEF BRIEF_BYTES PEAK_COUNT PEAK_BYTES
 *          [VARIANCE LIVE_VARIANCE PEAK_VARIANCE]
 *     torn                                 the file is left without its end */
#include "base/attr.h"
#include "base/vec.h"
#include "format/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096, WORDS_MAX = 16 };

struct making {
    struct format_writer *writer;
    struct record_memory memory;
    bool has_memory, torn;
    VEC(struct record_sizes) sizes;
    VEC(struct record_site) sites;
    VEC(uint32_t) codes, stacks; /* the writer's ids by the text's numbers, from 1 on */
    char *word[WORDS_MAX];
    size_t words;
};

static void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

static uint64_t number(const struct making *m, size_t i)
{
    return i < m->words ? strtoull(m->word[i], NULL, 10) : 0;
}

static uint32_t id(const struct making *m, size_t i)
{
    return (uint32_t)number(m, i);
}

static uint32_t text(const struct making *m, size_t i)
{
    const char *word = i < m->words ? m->word[i] : "";
    return format_writer_string(m->writer, word, strlen(word));
}

static void end_checkpoint(struct making *m)
{
    if (m->has_memory)
        format_writer_memory(m->writer, &m->memory, m->sizes.data, m->sizes.len, m->sites.data,
                             m->sites.len);
    m->has_memory = false;
    m->sizes.len = m->sites.len = 0;
}

static void on_meta(struct making *m)
{
    format_writer_meta(m->writer, m->word[1], m->word[2]);
}

static void on_process(struct making *m)
{
    format_writer_process(m->writer, &(struct record_process){.id = id(m, 1),
                                                              .pid = id(m, 2),
                                                              .command = text(m, 3),
                                                              .end_ns = number(m, 4)});
}

static void on_thread(struct making *m)
{
    format_writer_thread(
        m->writer, &(struct record_thread){
                       .id = id(m, 1), .process = id(m, 2), .tid = id(m, 3), .name = text(m, 4)});
}

static void on_code(struct making *m)
{
    uint32_t name = text(m, 1);
    *(uint32_t *)must(vec_push(&m->codes)) = format_writer_code(
        m->writer, &(struct record_code){
                       .name = name, .qualname = name, .file = text(m, 2), .first_line = id(m, 3)});
}

static void on_stack(struct making *m)
{
    uint32_t parent = id(m, 1) ? m->stacks.data[id(m, 1) - 1] : 0;
    struct record_stack node = {parent, m->codes.data[id(m, 2) - 1], id(m, 3)};
    *(uint32_t *)must(vec_push(&m->stacks)) = format_writer_stack(m->writer, &node);
}

static uint32_t stack_of(const struct making *m, size_t i)
{
    return id(m, i) ? m->stacks.data[id(m, i) - 1] : 0;
}

static void on_sample(struct making *m)
{
    struct record_sample s = {.thread = id(m, 1),
                              .stack = stack_of(m, 2),
                              .start_ns = number(m, 3),
                              .duration_ns = number(m, 4),
                              .count = id(m, 5),
                              .state = RECORD_ON_CPU};
    format_writer_sample(m->writer, &s);
}

static void on_mark(struct making *m)
{
    struct record_mark mark = {.thread = id(m, 1),
                               .kind = number(m, 4) ? RECORD_MARK_SPAN : RECORD_MARK_MOMENT,
                               .name = text(m, 2),
                               .start_ns = number(m, 3),
                               .duration_ns = number(m, 4)};
    format_writer_mark(m->writer, &mark);
}

static void on_counter(struct making *m)
{
    struct record_counter c = {.thread = id(m, 1),
                               .name = text(m, 2),
                               .time_ns = number(m, 3),
                               .value = (double)number(m, 4)};
    format_writer_counter(m->writer, &c);
}

static void on_checkpoint(struct making *m)
{
    end_checkpoint(m);
    m->has_memory = true;
    m->memory = (struct record_memory){.process = id(m, 1),
                                       .flags = id(m, 2),
                                       .time_ns = number(m, 3),
                                       .live_bytes = number(m, 4),
                                       .live_count = number(m, 5),
                                       .peak_bytes = number(m, 6),
                                       .peak_ns = number(m, 7)};
}

static void on_sizes(struct making *m)
{
    *(struct record_sizes *)must(vec_push(&m->sizes)) =
        (struct record_sizes){id(m, 1), id(m, 2), number(m, 3), number(m, 4)};
}

static void on_site(struct making *m)
{
    *(struct record_site *)must(vec_push(&m->sites)) =
        (struct record_site){.thread = id(m, 1),
                             .stack = stack_of(m, 2),
                             .allocator = id(m, 3),
                             .count = number(m, 4),
                             .bytes = number(m, 5),
                             .freed = number(m, 6),
                             .freed_bytes = number(m, 7),
                             .brief = number(m, 8),
                             .brief_bytes = number(m, 9),
                             .peak_count = number(m, 10),
                             .peak_bytes = number(m, 11),
                             .variance = (double)number(m, 12),
                             .live_variance = (double)number(m, 13),
                             .peak_variance = (double)number(m, 14)};
}

static void on_torn(struct making *m)
{
    m->torn = true;
}

static const struct {
    const char *word;
    void (*fn)(struct making *m);
    size_t words; /* at least */
} KINDS[] = {
    {"meta", on_meta, 3},   {"process", on_process, 4}, {"thread", on_thread, 5},
    {"code", on_code, 4},   {"stack", on_stack, 4},     {"sample", on_sample, 6},
    {"mark", on_mark, 5},   {"counter", on_counter, 5}, {"checkpoint", on_checkpoint, 8},
    {"sizes", on_sizes, 5}, {"site", on_site, 12},      {"torn", on_torn, 1},
};

static bool take_line(struct making *m, char *line)
{
    char *rest = line;
    m->words = 0;
    for (char *word; m->words < WORDS_MAX && (word = strtok_r(rest, " \t\n", &rest));)
        m->word[m->words++] = word;
    if (!m->words)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        if (strcmp(KINDS[i].word, m->word[0]) == 0 && m->words >= KINDS[i].words) {
            KINDS[i].fn(m);
            return true;
        }
    fprintf(stderr, "not understood: %s\n", m->word[0]);
    return false;
}

int main(int argc, char **argv)
{
    struct making m = {0};
    struct format_writer_options options = {.force = true, .run_id = {0xab, 0xcd}};
    if (argc != 2 || format_writer_open(argv[1], &options, &m.writer) < 0)
        return 2;
    char line[LINE_MAX_BYTES];
    bool good = true;
    while (good && fgets(line, sizeof line, stdin))
        good = take_line(&m, line);
    end_checkpoint(&m);
    if (m.torn)
        good = format_writer_flush(m.writer) == 0 && good;
    else
        good = format_writer_finish(m.writer) == 0 && good;
    format_writer_free(m.writer);
    vec_release(&m.sizes);
    vec_release(&m.sites);
    vec_release(&m.codes);
    vec_release(&m.stacks);
    return good ? 0 : 1;
}
