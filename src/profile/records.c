/* The records of a recording beside its samples, on demand: ids made good, in the order of the file. */
#include "base/err.h"
#include "profile/internal.h"

#include <stdlib.h>

/* --- counts --- */

static uint64_t count_records(const struct profile *p, enum format_chunk_kind kind)
{
    uint64_t n = 0;
    for (size_t i = 0; i < format_reader_chunk_count(profile_reader(p)); i++)
        if (format_reader_chunk(profile_reader(p), i)->kind == kind)
            n += format_reader_chunk(profile_reader(p), i)->records;
    return n;
}

uint64_t profile_sample_records(const struct profile *p)
{
    return count_records(p, FORMAT_CHUNK_SAMPLES);
}

/* --- exact calls --- */

struct calls_pass {
    const struct profile *profile;
    int (*fn)(void *ctx, const struct record_calls *calls);
    void *ctx;
};

static int on_calls(void *ctx, const struct record_calls *calls)
{
    struct calls_pass *pass = ctx;
    const struct profile *p = pass->profile;
    struct record_calls mended = *calls;
    mended.stack = profile_mend_stack(p, mended.stack);
    mended.thread = profile_mend_thread(p, mended.thread);
    return pass->fn(pass->ctx, &mended);
}

int profile_each_calls(const struct profile *p,
                       int (*fn)(void *ctx, const struct record_calls *calls), void *ctx,
                       uint32_t *ret_damaged)
{
    static const struct format_visitor visitor = {.calls = on_calls};
    struct calls_pass pass = {p, fn, ctx};
    return format_reader_visit(profile_reader(p), &visitor, &pass, ret_damaged);
}

uint64_t profile_calls_records(const struct profile *p)
{
    return count_records(p, FORMAT_CHUNK_CALLS);
}

/* --- memory --- */

struct memory_pass {
    const struct profile *profile;
    const struct profile_memory_visitor *visitor;
    void *ctx;
};

static struct record_memory mend_memory(const struct profile *p, const struct record_memory *memory)
{
    struct record_memory mended = *memory;
    mended.process = profile_mend_process(p, mended.process);
    return mended;
}

static int on_memory(void *ctx, const struct record_memory *memory)
{
    struct memory_pass *pass = ctx;
    struct record_memory mended = mend_memory(pass->profile, memory);
    return pass->visitor->memory ? pass->visitor->memory(pass->ctx, &mended) : 0;
}

static int on_sizes(void *ctx, const struct record_memory *memory, const struct record_sizes *sizes)
{
    struct memory_pass *pass = ctx;
    struct record_memory mended = mend_memory(pass->profile, memory);
    return pass->visitor->sizes ? pass->visitor->sizes(pass->ctx, &mended, sizes) : 0;
}

static int on_site(void *ctx, const struct record_memory *memory, const struct record_site *site)
{
    struct memory_pass *pass = ctx;
    struct record_memory owner = mend_memory(pass->profile, memory);
    struct record_site mended = *site;
    mended.stack = profile_mend_stack(pass->profile, mended.stack);
    mended.thread = profile_mend_thread(pass->profile, mended.thread);
    return pass->visitor->site ? pass->visitor->site(pass->ctx, &owner, &mended) : 0;
}

int profile_each_memory(const struct profile *p, const struct profile_memory_visitor *visitor,
                        void *ctx, uint32_t *ret_damaged)
{
    static const struct format_visitor all = {
        .memory = on_memory, .sizes = on_sizes, .site = on_site};
    struct memory_pass pass = {p, visitor, ctx};
    return format_reader_visit(profile_reader(p), &all, &pass, ret_damaged);
}

static bool has_chunk(const struct profile *p, enum format_chunk_kind kind)
{
    for (size_t i = 0; i < format_reader_chunk_count(profile_reader(p)); i++)
        if (format_reader_chunk(profile_reader(p), i)->kind == kind)
            return true;
    return false;
}

bool profile_has_memory(const struct profile *p)
{
    return has_chunk(p, FORMAT_CHUNK_ALLOCATIONS);
}

bool profile_has_memory_events(const struct profile *p)
{
    return has_chunk(p, FORMAT_CHUNK_MEMORY_EVENTS);
}

struct memory_event_pass {
    const struct profile *profile;
    int (*fn)(void *ctx, const struct record_memory_events *block,
              const struct record_memory_event *events, size_t n);
    void *ctx;
    struct record_memory_site *sites; /* of this block, made good */
    const struct record_memory_site *from;
    size_t room;
};

static int on_memory_events(void *ctx, const struct record_memory_events *block,
                            const struct record_memory_event *events, size_t n)
{
    struct memory_event_pass *pass = ctx;
    if (pass->room < block->site_count) {
        free(pass->sites);
        pass->sites = malloc(block->site_count * sizeof *pass->sites);
        pass->room = pass->sites ? block->site_count : 0;
        if (!pass->sites)
            return E_NOMEM;
    }
    for (size_t i = 0; i < block->site_count; i++)
        pass->sites[i] = (struct record_memory_site){
            profile_mend_thread(pass->profile, block->sites[i].thread),
            profile_mend_stack(pass->profile, block->sites[i].stack), block->sites[i].allocator};
    struct record_memory_events mended = *block;
    mended.sites = pass->sites;
    return pass->fn(pass->ctx, &mended, events, n);
}

int profile_each_memory_event(const struct profile *p,
                              int (*fn)(void *ctx, const struct record_memory_events *block,
                                        const struct record_memory_event *events, size_t n),
                              void *ctx, uint32_t *ret_damaged)
{
    static const struct format_visitor visitor = {.memory_events = on_memory_events};
    struct memory_event_pass pass = {.profile = p, .fn = fn, .ctx = ctx};
    int r = format_reader_visit(profile_reader(p), &visitor, &pass, ret_damaged);
    free(pass.sites);
    return r;
}

/* --- exact lines --- */

struct line_pass {
    const struct profile *profile;
    int (*fn)(void *ctx, const struct record_line *line);
    void *ctx;
};

static int on_line(void *ctx, const struct record_line *line)
{
    struct line_pass *pass = ctx;
    const struct profile *p = pass->profile;
    struct record_line mended = *line;
    mended.code = profile_mend_code(p, mended.code);
    if (mended.callee) /* else the line itself is meant */
        mended.callee = profile_mend_code(p, mended.callee);
    mended.thread = profile_mend_thread(p, mended.thread);
    return pass->fn(pass->ctx, &mended);
}

int profile_each_line(const struct profile *p, int (*fn)(void *ctx, const struct record_line *line),
                      void *ctx, uint32_t *ret_damaged)
{
    static const struct format_visitor visitor = {.line = on_line};
    struct line_pass pass = {p, fn, ctx};
    return format_reader_visit(profile_reader(p), &visitor, &pass, ret_damaged);
}

uint64_t profile_line_records(const struct profile *p)
{
    return count_records(p, FORMAT_CHUNK_LINES);
}

/* --- sources --- */

struct source_pass {
    const struct profile *profile;
    int (*fn)(void *ctx, const struct record_source *source);
    void *ctx;
};

static int on_source(void *ctx, const struct record_source *source)
{
    struct source_pass *pass = ctx;
    struct record_source mended = *source;
    mended.path = profile_mend_string(pass->profile, mended.path);
    return pass->fn(pass->ctx, &mended);
}

int profile_each_source(const struct profile *p,
                        int (*fn)(void *ctx, const struct record_source *source), void *ctx)
{
    static const struct format_visitor visitor = {.source = on_source};
    struct source_pass pass = {p, fn, ctx};
    return format_reader_visit(profile_reader(p), &visitor, &pass, NULL);
}
