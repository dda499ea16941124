#include "profile/events.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/progress.h"
#include "base/vec.h"
#include "profile/internal.h"

/* --- ids made good --- */

struct event_pass {
    const struct profile *profile;
    const struct profile_place_visitor *visitor;
    void *ctx;
    VEC(struct record_event) mended;
    VEC(struct record_open) open;
    size_t chunk; /* the block's */
    VEC(struct record_note) notes;
    struct buf note_text; /* theirs, one after the other */
};

/* --- notes --- */

enum { OF_ANOTHER = 1 }; /* the notes that follow are not this block's */

struct note_pass {
    struct event_pass *pass;
    const struct record_events *block;
};

static int on_note(void *ctx, const struct record_notes *about, const struct record_note *note)
{
    struct note_pass *n = ctx;
    if (!note)
        return about->thread == n->block->thread && about->start_ns == n->block->start_ns
                   ? 0
                   : OF_ANOTHER;
    struct record_note *slot = vec_push(&n->pass->notes);
    if (!slot)
        return E_NOMEM;
    *slot = *note;
    buf_append(&n->pass->note_text, note->text, note->len);
    return buf_error(&n->pass->note_text);
}

/* They stand right behind the block. Damaged ones are not worth the block. */
static int read_notes(struct event_pass *pass, const struct record_events *block)
{
    static const struct format_visitor visitor = {.note = on_note};
    const struct format_reader *reader = profile_reader(pass->profile);
    struct note_pass n = {pass, block};
    pass->notes.len = 0;
    buf_clear(&pass->note_text);
    if (pass->chunk + 1 >= format_reader_chunk_count(reader) ||
        format_reader_chunk(reader, pass->chunk + 1)->kind != FORMAT_CHUNK_NOTES)
        return 0;
    int r = format_reader_visit_chunk(reader, pass->chunk + 1, &visitor, &n);
    const char *text = buf_cstr(&pass->note_text); /* all may be empty */
    for (size_t i = 0; i < pass->notes.len; i++) {
        pass->notes.data[i].text = text;
        text += pass->notes.data[i].len;
    }
    return r == E_NOMEM ? r : 0;
}

/* --- events --- */

static int on_events(void *ctx, const struct record_events *block,
                     const struct record_event *events, size_t n)
{
    struct event_pass *pass = ctx;
    struct record_events head = *block;
    int r = n ? 0 : read_notes(pass, block);
    if (r < 0)
        return r;
    head.thread = profile_mend_thread(pass->profile, block->thread);
    head.notes = pass->notes.data;
    head.note_count = pass->notes.len;
    if (!vec_reserve(&pass->mended, n + 1) || !vec_reserve(&pass->open, block->open_count + 1))
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        pass->mended.data[i] = events[i];
        pass->mended.data[i].code = profile_mend_code(pass->profile, events[i].code);
    }
    for (size_t i = 0; !n && i < block->open_count; i++) {
        pass->open.data[i] = block->open[i];
        pass->open.data[i].code = profile_mend_code(pass->profile, block->open[i].code);
    }
    head.open = pass->open.data;
    return pass->visitor->events(pass->ctx, &head, pass->mended.data, n);
}

static int on_summary(void *ctx, const struct record_summary *summary)
{
    struct event_pass *pass = ctx;
    return pass->visitor->summary ? pass->visitor->summary(pass->ctx, summary) : 0;
}

static int on_box(void *ctx, const struct record_summary *summary, uint32_t depth,
                  const struct record_box *box)
{
    (void)summary;
    struct event_pass *pass = ctx;
    struct record_box mended = *box;
    mended.code = profile_mend_code(pass->profile, box->code);
    return pass->visitor->box(pass->ctx, depth, &mended);
}

static int visit(struct event_pass *pass, size_t chunk)
{
    const struct format_visitor visitor = {.events = pass->visitor->events ? on_events : NULL,
                                           .summary = on_summary,
                                           .box = pass->visitor->box ? on_box : NULL};
    pass->chunk = chunk;
    if (!pass->note_text.max)
        buf_init(&pass->note_text, FORMAT_MAX_CHUNK_BYTES);
    return format_reader_visit_chunk(profile_reader(pass->profile), chunk, &visitor, pass);
}

static void release(struct event_pass *pass)
{
    vec_release(&pass->mended);
    vec_release(&pass->open);
    vec_release(&pass->notes);
    buf_release(&pass->note_text);
}

int profile_each_event(const struct profile *p,
                       int (*fn)(void *ctx, const struct record_events *block,
                                 const struct record_event *events, size_t n),
                       void *ctx, uint32_t *ret_damaged)
{
    const struct format_reader *reader = profile_reader(p);
    const struct profile_place_visitor visitor = {.events = fn};
    struct event_pass pass = {.profile = p, .visitor = &visitor, .ctx = ctx};
    uint32_t damaged = 0;
    int r = 0;
    progress_begin("reading calls", profile_event_records(p));
    for (size_t i = 0; r == 0 && i < format_reader_chunk_count(reader); i++) {
        if (format_reader_chunk(reader, i)->kind != FORMAT_CHUNK_EVENTS)
            continue;
        r = visit(&pass, i);
        progress_add(format_reader_chunk(reader, i)->records);
        if (r == E_CORRUPT) {
            damaged++;
            r = 0;
        }
    }
    release(&pass);
    if (ret_damaged)
        *ret_damaged = damaged;
    return r;
}

uint64_t profile_event_records(const struct profile *p)
{
    const struct format_reader *reader = profile_reader(p);
    uint64_t n = 0;
    for (size_t i = 0; i < format_reader_chunk_count(reader); i++)
        if (format_reader_chunk(reader, i)->kind == FORMAT_CHUNK_EVENTS)
            n += format_reader_chunk(reader, i)->records;
    return n;
}

bool profile_has_arguments(const struct profile *p)
{
    const char *instruments = profile_meta_value(p, "instruments");
    return instruments && strstr(instruments, "args");
}

uint64_t profile_window_start(const struct profile *p)
{
    const char *text = profile_meta_value(p, "window_start_ns");
    return text ? strtoull(text, NULL, 10) : 0;
}

bool profile_has_timeline(const struct profile *p)
{
    const char *instruments = profile_meta_value(p, "instruments");
    return (instruments && strstr(instruments, "trace")) || profile_event_records(p) > 0;
}

int profile_visit_place(const struct profile *p, const struct record_place *place,
                        const struct profile_place_visitor *visitor, void *ctx, uint64_t *ret_bytes)
{
    const struct format_reader *reader = profile_reader(p);
    size_t chunk = format_reader_find(reader, place->sequence);
    unsigned kind = place->level ? FORMAT_CHUNK_INDEX : FORMAT_CHUNK_EVENTS;
    if (chunk == SIZE_MAX || format_reader_chunk(reader, chunk)->kind != kind)
        return E_CORRUPT;
    if (ret_bytes)
        *ret_bytes = format_reader_chunk(reader, chunk)->stored_bytes;
    struct event_pass pass = {.profile = p, .visitor = visitor, .ctx = ctx};
    int r = visit(&pass, chunk);
    release(&pass);
    return r;
}

/* --- marks --- */

struct mark_pass {
    const struct profile *profile;
    const struct profile_mark_visitor *visitor;
    void *ctx;
};

static int on_mark(void *ctx, const struct record_mark *mark)
{
    struct mark_pass *pass = ctx;
    struct record_mark mended = *mark;
    mended.thread = profile_mend_thread(pass->profile, mark->thread);
    mended.name = profile_mend_string(pass->profile, mark->name);
    return pass->visitor->mark(pass->ctx, &mended);
}

static int on_counter(void *ctx, const struct record_counter *counter)
{
    struct mark_pass *pass = ctx;
    struct record_counter mended = *counter;
    mended.thread = profile_mend_thread(pass->profile, counter->thread);
    mended.name = profile_mend_string(pass->profile, counter->name);
    return pass->visitor->counter(pass->ctx, &mended);
}

int profile_each_mark(const struct profile *p, const struct profile_mark_visitor *visitor,
                      void *ctx)
{
    const struct format_visitor rows = {.mark = visitor->mark ? on_mark : NULL,
                                        .counter = visitor->counter ? on_counter : NULL};
    struct mark_pass pass = {p, visitor, ctx};
    return format_reader_visit(profile_reader(p), &rows, &pass, NULL);
}

/* --- where everything is --- */

enum { FOUND = 1 }; /* the head of a chunk is enough */

struct place_pass {
    VEC(struct record_place) places;
    uint32_t sequence; /* of the chunk */
    uint32_t previous; /* of the directory before the one that was read, plus 1 */
    bool is_directory;
};

static int add_place(struct place_pass *pass, const struct record_place *place)
{
    struct record_place *slot = vec_push(&pass->places);
    if (!slot)
        return E_NOMEM;
    *slot = *place;
    return 0;
}

static int place_of_events(void *ctx, const struct record_events *block,
                           const struct record_event *events, size_t n)
{
    (void)events, (void)n;
    struct place_pass *pass = ctx;
    struct record_place place = {.thread = block->thread,
                                 .sequence = pass->sequence,
                                 .start_ns = block->start_ns,
                                 .end_ns = block->end_ns};
    int r = add_place(pass, &place);
    return r < 0 ? r : FOUND;
}

static int place_of_summary(void *ctx, const struct record_summary *s)
{
    struct place_pass *pass = ctx;
    struct record_place place = {.thread = s->thread,
                                 .level = s->level,
                                 .shift = s->shift,
                                 .sequence = pass->sequence,
                                 .start_ns = s->start_ns,
                                 .end_ns = s->end_ns};
    int r = add_place(pass, &place);
    return r < 0 ? r : FOUND;
}

static int on_directory(void *ctx, uint32_t sequence, uint32_t previous)
{
    struct place_pass *pass = ctx;
    (void)sequence;
    pass->previous = previous;
    pass->is_directory = true;
    return 0;
}

static int on_place(void *ctx, const struct record_place *place)
{
    return add_place(ctx, place);
}

static int compare(const void *a, const void *b)
{
    const struct record_place *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* From the end of the file to the last directory: what no directory knows. Then from one to the one
 * before it. A directory that cannot be read leaves its part to be looked for, too. */
static int find_places(const struct format_reader *reader, struct place_pass *pass)
{
    static const struct format_visitor visitor = {.events = place_of_events,
                                                  .summary = place_of_summary,
                                                  .directory = on_directory,
                                                  .place = on_place};
    progress_begin("looking for the timeline", format_reader_chunk_count(reader));
    for (size_t i = format_reader_chunk_count(reader); i-- > 0;) {
        progress_reach(format_reader_chunk_count(reader) - i);
        const struct format_chunk *chunk = format_reader_chunk(reader, i);
        if (chunk->kind != FORMAT_CHUNK_EVENTS && chunk->kind != FORMAT_CHUNK_INDEX)
            continue;
        pass->sequence = chunk->sequence;
        pass->is_directory = false;
        size_t before = pass->places.len;
        int r = format_reader_visit_chunk(reader, i, &visitor, pass);
        if (r < 0 && r != E_CORRUPT)
            return r;
        if (!pass->is_directory)
            continue;
        if (r == E_CORRUPT) {
            pass->places.len = before;
            continue;
        }
        if (!pass->previous)
            return 0;
        size_t next = format_reader_find(reader, pass->previous - 1);
        if (next < i) /* else it is lost, and the search goes on here */
            i = next + 1;
    }
    return 0;
}

int profile_places_init(const struct profile *p, struct profile_places *ret)
{
    struct place_pass pass = {0};
    int r = find_places(profile_reader(p), &pass);
    if (r < 0) {
        vec_release(&pass.places);
        return r;
    }
    for (size_t i = 0; i < pass.places.len; i++)
        pass.places.data[i].thread = profile_mend_thread(p, pass.places.data[i].thread);
    if (pass.places.len)
        qsort(pass.places.data, pass.places.len, sizeof *pass.places.data, compare);
    *ret = (struct profile_places){pass.places.data, pass.places.len};
    return 0;
}

void profile_places_release(struct profile_places *places)
{
    free(places->place);
    *places = (struct profile_places){0};
}
