/* Blocks of events and levels of detail: there and back, and what the encoder makes of odd programs. */
#include "base/err.h"
#include "format/events.h"
#include "format/lod.h"
#include "record/window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MAX_SEEN = 4096 };

struct seen {
    struct record_event event[MAX_SEEN];
    size_t count, open;
    uint64_t start_ns, end_ns;
};

static int on_events(void *ctx, const struct record_events *block,
                     const struct record_event *events, size_t n)
{
    struct seen *s = ctx;
    if (!n) {
        s->open = block->open_count;
        s->start_ns = block->start_ns;
        s->end_ns = block->end_ns;
    }
    assert_true(s->count + n <= MAX_SEEN);
    for (size_t i = 0; i < n; i++)
        s->event[s->count++] = events[i];
    return 0;
}

static const struct format_visitor VISITOR = {.events = on_events};

/* Decodes the oldest finished block. */
static void take(struct events *e, size_t at, struct seen *ret)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    const struct events_block *block = &e->done.data[at]->block;
    events_put_block(&b, 7, block);
    ret->count = 0;
    assert_int_equal(events_visit(b.data, b.len, block->count, &VISITOR, ret), 0);
    assert_int_equal(ret->count, block->count);
    for (size_t cut = 0; cut < b.len; cut++) { /* a short one is refused, not read past its end */
        struct seen other = {0};
        assert_int_equal(events_visit(b.data, cut, block->count, &VISITOR, &other), E_CORRUPT);
    }
    buf_release(&b);
}

static struct events encoder;
static struct seen seen;

static void begin(uint64_t min_ns, uint32_t max_depth)
{
    struct events_options options = {.min_ns = min_ns, .max_depth = max_depth};
    events_init(&encoder, &options, 100);
}

static void test_there_and_back(void **state)
{
    (void)state;
    begin(0, 0);
    events_begin(&encoder, 5, RECORD_EVENT_BEGIN, 110);
    events_begin(&encoder, 6, RECORD_EVENT_RESUME, 120);
    events_end(&encoder, 6, RECORD_EVENT_SUSPEND, 130);
    events_finish_block(&encoder, false);
    /* a block that begins with an end: what ends is among its open calls */
    events_end(&encoder, 5, RECORD_EVENT_RAISE, 150);
    events_finish_block(&encoder, true);
    take(&encoder, 0, &seen);
    assert_int_equal(seen.open, 0);
    assert_int_equal(seen.event[1].kind, RECORD_EVENT_RESUME);
    assert_int_equal(seen.event[2].begin_ns, 120);
    assert_int_equal(seen.event[2].depth, 1);
    take(&encoder, 1, &seen);
    assert_int_equal(seen.start_ns, 130);
    assert_int_equal(seen.open, 1);
    assert_int_equal(seen.event[0].kind, RECORD_EVENT_RAISE);
    assert_int_equal(seen.event[0].begin_ns, 110);
    assert_int_equal(seen.event[0].time_ns, 150);
    events_release(&encoder);
}

static void test_lost_ends(void **state)
{
    (void)state;
    begin(0, 0);
    events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 110);
    events_begin(&encoder, 2, RECORD_EVENT_BEGIN, 120);
    events_end(&encoder, 9, RECORD_EVENT_RETURN, 125); /* nobody began it */
    events_end(&encoder, 1, RECORD_EVENT_RETURN, 130); /* the end of 2 was lost */
    events_finish_block(&encoder, true);
    take(&encoder, 0, &seen);
    assert_int_equal(seen.count, 4);
    assert_int_equal(seen.event[2].kind, RECORD_EVENT_LOST);
    assert_int_equal(seen.event[3].kind, RECORD_EVENT_RETURN);
    events_release(&encoder);
}

/* What is held back is written in the order of time, or not at all. */
static void test_min_duration(void **state)
{
    (void)state;
    begin(50, 0);
    events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 100);
    events_begin(&encoder, 2, RECORD_EVENT_BEGIN, 110);
    events_end(&encoder, 2, RECORD_EVENT_RETURN, 120); /* too short */
    events_begin(&encoder, 3, RECORD_EVENT_BEGIN, 130);
    events_end(&encoder, 3, RECORD_EVENT_RETURN, 190); /* long enough, so 1 is, too */
    events_begin(&encoder, 4, RECORD_EVENT_BEGIN, 195);
    events_finish_block(&encoder, false); /* 4 is still held back: the block ends where it began */
    events_end(&encoder, 4, RECORD_EVENT_RETURN, 300);
    events_finish_block(&encoder, true);
    take(&encoder, 0, &seen);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.event[0].time_ns, 100);
    assert_int_equal(seen.event[1].code, 3);
    assert_int_equal(seen.end_ns, 195);
    take(&encoder, 1, &seen);
    assert_int_equal(seen.open, 1);
    assert_int_equal(seen.event[0].time_ns, 195);
    assert_int_equal(seen.event[1].time_ns, 300);
    assert_int_equal(encoder.left_out, 1);
    events_release(&encoder);
}

static void test_max_depth(void **state)
{
    (void)state;
    begin(0, 1);
    events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 100);
    events_begin(&encoder, 2, RECORD_EVENT_BEGIN, 110);
    events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 120);
    events_end(&encoder, 1, RECORD_EVENT_RETURN, 130);
    events_end(&encoder, 2, RECORD_EVENT_RETURN, 140);
    events_end(&encoder, 1, RECORD_EVENT_RETURN, 150);
    events_finish_block(&encoder, true);
    take(&encoder, 0, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(encoder.left_out, 2);
    events_release(&encoder);
}

/* What a forked child finds running is no deeper than what it calls itself. */
static void test_max_depth_of_open_calls(void **state)
{
    (void)state;
    enum { OPEN = 5, DEPTH = 2 };
    begin(0, DEPTH);
    for (uint32_t i = 0; i < OPEN; i++)
        events_open(&encoder, 1 + i, 110);
    assert_int_equal(encoder.left_out, OPEN - DEPTH);
    assert_int_equal(encoder.stack.len, DEPTH);
    for (uint32_t i = OPEN; i-- > 0;)
        events_end(&encoder, 1 + i, RECORD_EVENT_RETURN, 200 - i);
    events_begin(&encoder, 9, RECORD_EVENT_BEGIN, 210);
    events_end(&encoder, 9, RECORD_EVENT_RETURN, 220);
    events_finish_block(&encoder, true);
    take(&encoder, 0, &seen);
    assert_int_equal(seen.open, DEPTH);
    assert_int_equal(seen.count, DEPTH + 2);
    assert_int_equal(seen.event[0].code, 2);
    assert_int_equal(seen.event[2].code, 9);
    assert_int_equal(seen.event[2].depth, 0);
    events_release(&encoder);
}

/* A call that begins where a block ends is one call in the level above. */
static void test_begins_at_the_seam(void **state)
{
    (void)state;
    begin(0, 0);
    events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 110);
    events_begin(&encoder, 2, RECORD_EVENT_BEGIN, 120);
    events_finish_block(&encoder, false);
    events_end(&encoder, 2, RECORD_EVENT_RETURN, 130);
    events_end(&encoder, 1, RECORD_EVENT_RETURN, 140);
    events_finish_block(&encoder, true);
    const struct events_done *last = encoder.done.data[1];
    assert_int_equal(last->summary_count, 2);
    const struct lod *above = &last->summary[1].boxes;
    for (int depth = 0; depth < 2; depth++) {
        assert_int_equal(above->rows.data[depth].boxes.len, 1);
        assert_int_equal(above->rows.data[depth].boxes.data[0].calls, 1);
    }
    events_release(&encoder);
}

/* --- notes --- */

struct notes_seen {
    struct record_notes block;
    struct record_note note[16];
    char text[16][64];
    size_t count;
};

static int on_note(void *ctx, const struct record_notes *block, const struct record_note *note)
{
    struct notes_seen *s = ctx;
    s->block = *block;
    if (!note)
        return 0;
    assert_true(s->count < 16 && note->len < sizeof s->text[0]);
    s->note[s->count] = *note;
    memcpy(s->text[s->count], note->text, note->len);
    s->text[s->count++][note->len] = 0;
    return 0;
}

static struct notes_seen take_notes(const struct events *e, size_t at)
{
    static const struct format_visitor visitor = {.note = on_note};
    const struct events_block *block = &e->done.data[at]->block;
    struct notes_seen told = {0};
    struct buf b;
    buf_init(&b, 1 << 20);
    events_put_notes(&b, 7, block);
    assert_int_equal(events_visit_notes(b.data, b.len, block->note_count, &visitor, &told), 0);
    assert_int_equal(told.count, block->note_count);
    for (size_t cut = 0; cut < b.len; cut++) {
        struct notes_seen other = {0};
        assert_int_equal(events_visit_notes(b.data, cut, block->note_count, &visitor, &other),
                         E_CORRUPT);
    }
    buf_release(&b);
    return told;
}

static void note_begin(const char *text)
{
    events_note_begin(&encoder, RECORD_NOTE_ARGUMENTS, text, strlen(text));
}

static void end_with(uint32_t code, uint64_t ns, const char *text)
{
    events_end_noted(&encoder, code, RECORD_EVENT_RETURN, ns, RECORD_NOTE_RESULT, text,
                     strlen(text));
}

static void test_notes(void **state)
{
    (void)state;
    begin(0, 2);
    events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 110);
    note_begin("one");
    note_begin("again");
    events_begin(&encoder, 2, RECORD_EVENT_BEGIN, 120);
    events_begin(&encoder, 3, RECORD_EVENT_BEGIN, 130); /* too deep */
    note_begin("nobody's");
    end_with(3, 140, "nobody's");
    events_begin(&encoder, 4, RECORD_EVENT_BEGIN, 145); /* so is this */
    events_end(&encoder, 4, RECORD_EVENT_RETURN, 146);
    end_with(1, 150, "result"); /* the end of 2 was lost, and has none */
    events_finish_block(&encoder, true);
    struct notes_seen told = take_notes(&encoder, 0);
    assert_int_equal(told.block.thread, 7);
    assert_int_equal(told.block.start_ns, 100);
    assert_int_equal(told.count, 3);
    assert_string_equal(told.text[0], "one");
    assert_string_equal(told.text[1], "again");
    assert_int_equal(told.note[1].event, 0);
    assert_string_equal(told.text[2], "result");
    assert_int_equal(told.note[2].event, 3);
    assert_int_equal(told.note[2].kind, RECORD_NOTE_RESULT);
    events_release(&encoder);
}

/* Down, down, with a note for each call: more than a block may hold, before the first of them ends. */
static void test_notes_in_the_depth(void **state)
{
    (void)state;
    enum { DEEP = 60000, NOTE = 330 };
    char text[NOTE];
    memset(text, 'x', sizeof text);
    for (uint64_t min_ns = 0; min_ns <= 50; min_ns += 50) { /* with the latter, all at once */
        begin(min_ns, 0);
        for (uint64_t i = 0; i < DEEP; i++) {
            events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 100 + i);
            events_note_begin(&encoder, RECORD_NOTE_ARGUMENTS, text, sizeof text);
        }
        for (uint64_t i = 0; i < DEEP; i++)
            events_end(&encoder, 1, RECORD_EVENT_RETURN, 200 + DEEP + i);
        events_finish_block(&encoder, true);
        uint64_t notes = 0, events = 0;
        for (size_t i = 0; i < encoder.done.len; i++) {
            notes += encoder.done.data[i]->block.note_count;
            events += encoder.done.data[i]->block.count;
        }
        assert_false(encoder.failed);
        assert_int_equal(notes, DEEP);
        assert_int_equal(events, 2 * DEEP);
        assert_int_equal(events, encoder.traced);
        events_release(&encoder);
    }
}

/* Where there is no memory for the timeline, what it lacks is counted: of the block that was lost, too. */
static void test_failure_is_counted(void **state)
{
    (void)state;
    begin(0, 0);
    events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 110);
    encoder.block.notes.error = E_LIMIT;
    events_finish_block(&encoder, false);
    assert_true(encoder.failed);
    assert_int_equal(encoder.lost, 1);
    events_begin(&encoder, 2, RECORD_EVENT_BEGIN, 120);
    events_end(&encoder, 2, RECORD_EVENT_RETURN, 130);
    events_finish_block(&encoder, true);
    assert_int_equal(encoder.lost, 3);
    assert_int_equal(encoder.done.len, 0);
    events_release(&encoder);
}

/* Notes of calls that are held back come and go with them. */
static void test_notes_held_back(void **state)
{
    (void)state;
    begin(50, 0);
    events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 100);
    note_begin("outer");
    events_begin(&encoder, 2, RECORD_EVENT_BEGIN, 110);
    note_begin("short");
    end_with(2, 120, "short");
    events_begin(&encoder, 3, RECORD_EVENT_BEGIN, 130);
    note_begin("long");
    end_with(3, 190, "long");
    events_finish_block(&encoder, true);
    struct notes_seen told = take_notes(&encoder, 0);
    assert_int_equal(told.count, 3);
    assert_string_equal(told.text[0], "outer");
    assert_int_equal(told.note[0].event, 0);
    assert_string_equal(told.text[1], "long");
    assert_int_equal(told.note[1].event, 1);
    assert_int_equal(told.note[2].event, 2);
    events_release(&encoder);
}

/* --- the last seconds --- */

static void test_window(void **state)
{
    (void)state;
    begin(0, 0);
    struct feed feed = {.events = &encoder};
    struct window w = {.length_ns = 1000};
    uint64_t at = 200;
    events_begin(&encoder, 1, RECORD_EVENT_BEGIN, 110);
    for (int i = 0; i < 100; i++, at += 100) {
        events_begin(&encoder, 2, RECORD_EVENT_BEGIN, at);
        events_end(&encoder, 2, RECORD_EVENT_RETURN, at + 50);
        events_finish_block(&encoder, false);
        window_move(&w, encoder.last_ns);
        window_take(&w, &feed);
        assert_int_equal(encoder.done.len, 0);
        assert_true(encoder.kept.len <= 11);
    }
    assert_int_equal(w.start_ns, encoder.last_ns - 1000);
    assert_int_equal(w.forgotten + 2 * encoder.kept.len, 201);
    /* what was open when the window begins is told by its first block */
    window_give(&w, &feed);
    assert_int_equal(w.bytes, 0);
    assert_int_equal(encoder.kept.len, 0);
    take(&encoder, 0, &seen);
    assert_int_equal(seen.open, 1);
    assert_true(seen.end_ns >= w.start_ns);
    events_release(&encoder);
}

/* Too much for the memory: the oldest goes, and the window begins later. */
static void test_window_is_bounded(void **state)
{
    (void)state;
    begin(0, 0);
    struct feed feed = {.events = &encoder}, *feeds[] = {NULL, &feed};
    struct window w = {.length_ns = UINT64_MAX / 2};
    for (uint64_t at = 200; at < 600; at += 100) {
        events_begin(&encoder, 2, RECORD_EVENT_BEGIN, at);
        events_end(&encoder, 2, RECORD_EVENT_RETURN, at + 50);
        events_finish_block(&encoder, false);
    }
    window_take(&w, &feed);
    size_t before = w.bytes;
    w.bytes += WINDOW_MAX_BYTES - before / 2;
    window_shrink(&w, feeds, 2, NULL, 0);
    assert_in_range(encoder.kept.len, 1, 3);
    assert_int_equal(w.start_ns, encoder.kept.data[0]->block.start_ns);
    events_release(&encoder);
}

/* However coarse, a row counts every call once, and its boxes never overlap. */
static void test_levels(void **state)
{
    (void)state;
    struct lod fine, coarse;
    lod_init(&fine, 4, 100, 8);
    lod_init(&coarse, 4, 10, 8);
    for (uint64_t i = 0; i < 1000; i++) {
        struct record_box box = {.begin_ns = i * 100,
                                 .end_ns = i * 100 + 60 + i % 7,
                                 .covered_ns = 60 + i % 7,
                                 .longest_ns = 60 + i % 7,
                                 .code = i % 7 == 6 ? 2 : 1,
                                 .calls = 1};
        lod_add(&fine, 3, &box);
    }
    lod_add_all(&coarse, &fine);
    const struct lod *levels[] = {&fine, &coarse};
    for (int k = 0; k < 2; k++) {
        const struct lod_row *row = &levels[k]->rows.data[3];
        uint64_t calls = 0, covered = 0;
        assert_true(levels[k]->boxes <= levels[k]->max_boxes);
        for (size_t i = 0; i < row->boxes.len; i++) {
            calls += row->boxes.data[i].calls;
            covered += row->boxes.data[i].covered_ns;
            assert_true(!i || row->boxes.data[i - 1].end_ns <= row->boxes.data[i].begin_ns);
            assert_true(row->boxes.data[i].longest_ns < 67);
        }
        assert_int_equal(calls, 1000);
        assert_int_equal(covered, 62997);
    }
    lod_release(&fine);
    lod_release(&coarse);
}

/* A call cut at a seam becomes one again. */
static void test_seams(void **state)
{
    (void)state;
    struct lod l;
    lod_init(&l, 4, 0, 8);
    struct record_box left = {.begin_ns = 100,
                              .end_ns = 200,
                              .covered_ns = 100,
                              .code = 1,
                              .longest_ns = 100,
                              .calls = 1,
                              .flags = RECORD_BOX_CUT_RIGHT};
    struct record_box right = {.begin_ns = 200,
                               .end_ns = 210,
                               .covered_ns = 10,
                               .code = 1,
                               .longest_ns = 10,
                               .calls = 1,
                               .flags = RECORD_BOX_CUT_LEFT};
    lod_add(&l, 0, &left);
    lod_add(&l, 0, &right);
    assert_int_equal(l.rows.data[0].boxes.len, 1);
    assert_int_equal(l.rows.data[0].boxes.data[0].end_ns, 210);
    assert_int_equal(l.rows.data[0].boxes.data[0].calls, 1);
    assert_int_equal(l.rows.data[0].boxes.data[0].flags, 0);
    lod_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_lost_ends),
        cmocka_unit_test(test_min_duration),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_notes_held_back),
        cmocka_unit_test(test_notes_in_the_depth),
        cmocka_unit_test(test_failure_is_counted),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_window_is_bounded),
        cmocka_unit_test(test_max_depth),
        cmocka_unit_test(test_max_depth_of_open_calls),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_seams),
        cmocka_unit_test(test_begins_at_the_seam),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
