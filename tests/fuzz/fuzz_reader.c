/* The file reader and verify's census, over arbitrary bytes: raw, resealed, reframed. */
#include "base/err.h"
#include "format/reader.h"
#include "reseal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink; /* so that nothing that is delivered goes unread */

static void touch(const void *p, size_t len)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < len; i++)
        sum += ((const uint8_t *)p)[i];
    sink += sum;
}

static int on_meta(void *ctx, const char *key, size_t key_len, const char *value, size_t len)
{
    (void)ctx;
    touch(key, key_len);
    touch(value, len);
    return 0;
}

static int on_string(void *ctx, uint32_t id, const char *text, size_t len)
{
    (void)ctx;
    require(id < FORMAT_MAX_IDS && len <= FORMAT_MAX_STRING_BYTES);
    touch(text, len);
    return 0;
}

static int on_code(void *ctx, uint32_t id, const struct record_code *c)
{
    (void)ctx;
    require(id < FORMAT_MAX_IDS && c->name < FORMAT_MAX_IDS && c->qualname < FORMAT_MAX_IDS &&
            c->file < FORMAT_MAX_IDS);
    touch(c, sizeof *c);
    return 0;
}

static int on_stack(void *ctx, uint32_t id, const struct record_stack *n)
{
    (void)ctx;
    require(id < FORMAT_MAX_IDS && n->parent < id && n->code < FORMAT_MAX_IDS);
    touch(n, sizeof *n);
    return 0;
}

static int on_process(void *ctx, const struct record_process *p)
{
    (void)ctx;
    require(p->id < FORMAT_MAX_IDS);
    touch(p, sizeof *p);
    return 0;
}

static int on_thread(void *ctx, const struct record_thread *t)
{
    (void)ctx;
    require(t->id < FORMAT_MAX_IDS && t->process < FORMAT_MAX_IDS);
    touch(&t->id, sizeof t->id);
    return 0;
}

static int on_stat(void *ctx, enum record_stat stat, uint64_t value)
{
    (void)ctx, (void)value;
    require((unsigned)stat < RECORD_STAT_COUNT);
    return 0;
}

static int on_samples(void *ctx, const struct record_sample *s, size_t n)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        require(s[i].stack < FORMAT_MAX_IDS && s[i].thread < FORMAT_MAX_IDS &&
                s[i].state <= RECORD_STATE_MASK);
    touch(s, n * sizeof *s);
    return 0;
}

static int on_source(void *ctx, const struct record_source *s)
{
    (void)ctx;
    require(s->path < FORMAT_MAX_IDS && s->text_len <= FORMAT_MAX_STRING_BYTES);
    require(!(s->flags & RECORD_SOURCE_TEXT) == !s->text);
    touch(s->text, s->text_len);
    return 0;
}

static int on_events(void *ctx, const struct record_events *block,
                     const struct record_event *events, size_t n)
{
    (void)ctx;
    static size_t depth; /* of the stack, as the events have it */
    if (!n)
        depth = block->open_count;
    require(block->start_ns <= block->end_ns);
    for (size_t i = 0; i < n; i++) {
        bool ends = events[i].kind <= RECORD_EVENT_LOST;
        require(events[i].depth == (ends ? depth - 1 : depth));
        require(events[i].time_ns >= block->start_ns && events[i].time_ns <= block->end_ns);
        require(events[i].begin_ns <= events[i].time_ns && events[i].code < FORMAT_MAX_IDS);
        depth = ends ? depth - 1 : depth + 1;
    }
    return 0;
}

static int on_note(void *ctx, const struct record_notes *block, const struct record_note *note)
{
    (void)ctx;
    static uint32_t last; /* notes come in the order of events */
    require(block->thread < FORMAT_MAX_IDS);
    if (note) {
        require(note->event >= last && note->len <= RECORD_MAX_NOTE_BYTES);
        touch(note->text, note->len);
    }
    last = note ? note->event : 0;
    return 0;
}

static int on_mark(void *ctx, const struct record_mark *m)
{
    (void)ctx;
    require(m->thread < FORMAT_MAX_IDS && m->name < FORMAT_MAX_IDS);
    return 0;
}

static int on_counter(void *ctx, const struct record_counter *c)
{
    (void)ctx;
    require(c->thread < FORMAT_MAX_IDS && c->name < FORMAT_MAX_IDS);
    return 0;
}

static int on_summary(void *ctx, const struct record_summary *s)
{
    (void)ctx;
    require(s->start_ns <= s->end_ns && s->shift < 64);
    return 0;
}

static int on_box(void *ctx, const struct record_summary *s, uint32_t depth,
                  const struct record_box *b)
{
    (void)ctx;
    require(depth < s->rows && b->begin_ns >= s->start_ns && b->end_ns <= s->end_ns);
    require(b->begin_ns <= b->end_ns && b->covered_ns <= b->end_ns - b->begin_ns);
    require(b->longest_ns <= b->covered_ns && b->code < FORMAT_MAX_IDS);
    return 0;
}

static int on_place(void *ctx, const struct record_place *p)
{
    (void)ctx;
    require(p->start_ns <= p->end_ns && p->thread < FORMAT_MAX_IDS);
    return 0;
}

static int on_memory(void *ctx, const struct record_memory *m)
{
    (void)ctx;
    require(m->process < FORMAT_MAX_IDS);
    return 0;
}

static int on_sizes(void *ctx, const struct record_memory *m, const struct record_sizes *s)
{
    require(s->allocator < RECORD_MAX_ALLOCATORS && s->bin < 64);
    return on_memory(ctx, m);
}

static int on_site(void *ctx, const struct record_memory *m, const struct record_site *s)
{
    require(s->thread < FORMAT_MAX_IDS && s->stack < FORMAT_MAX_IDS);
    require(s->allocator < RECORD_MAX_ALLOCATORS);
    require(s->variance >= 0 && s->live_variance >= 0 && s->peak_variance >= 0);
    return on_memory(ctx, m);
}

static int on_memory_events(void *ctx, const struct record_memory_events *block,
                            const struct record_memory_event *events, size_t n)
{
    (void)ctx;
    require(block->process < FORMAT_MAX_IDS && block->start_ns <= block->end_ns);
    for (size_t i = 0; i < block->site_count; i++)
        require(block->sites[i].thread < FORMAT_MAX_IDS && block->sites[i].stack < FORMAT_MAX_IDS &&
                block->sites[i].allocator < RECORD_MAX_ALLOCATORS);
    for (size_t i = 0; i < n; i++) {
        require(events[i].time_ns >= block->start_ns && events[i].time_ns <= block->end_ns);
        require(events[i].site < block->site_count || events[i].kind != RECORD_MEMORY_ALLOCATE);
        require(events[i].slot < 1u << 30);
    }
    return 0;
}

static const struct format_visitor visitor = {
    .memory_events = on_memory_events,
    .memory = on_memory,
    .sizes = on_sizes,
    .site = on_site,
    .events = on_events,
    .note = on_note,
    .mark = on_mark,
    .counter = on_counter,
    .summary = on_summary,
    .box = on_box,
    .place = on_place,
    .source = on_source,
    .meta = on_meta,
    .string = on_string,
    .code = on_code,
    .stack = on_stack,
    .process = on_process,
    .thread = on_thread,
    .stat = on_stat,
    .samples = on_samples,
};

static void read_all(const uint8_t *data, size_t size)
{
    struct format_reader *r = NULL;
    int rc = format_reader_open_memory(data, size, &r);
    if (rc < 0) {
        require(rc == E_EMPTY || rc == E_SHORT || rc == E_FORMAT || rc == E_NEWER ||
                rc == E_CORRUPT);
        return;
    }
    const struct format_summary *s = format_reader_summary(r);
    require(s->chunks == format_reader_chunk_count(r) && s->good_bytes <= size);
    uint32_t damaged = 0;
    require(format_reader_visit(r, &visitor, NULL, &damaged) == 0);
    require(damaged <= s->chunks);
    for (size_t i = 0; i < s->chunks; i++) {
        const struct format_chunk *c = format_reader_chunk(r, i);
        require(c->offset + sizeof(struct format_chunk_header) + c->stored_bytes <= size);
        rc = format_reader_visit_chunk(r, i, &visitor, NULL);
        require(rc == 0 || rc == E_CORRUPT);
    }
    format_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size);
    for (int reframe = 0; reframe < 2; reframe++) {
        uint8_t *copy = resealed_copy(data, size, reframe);
        read_all(copy, size);
        free(copy);
    }
    return 0;
}
