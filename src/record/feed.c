#include "record/feed.h"

#include "base/clock.h"
#include "base/err.h"

#include <stdio.h>

static uint64_t start_of(const struct ring_header *ring, uint64_t origin_ns)
{
    return ring->start_ns > origin_ns ? ring->start_ns - origin_ns : 0;
}

int feed_new(uint32_t slot, struct ring_header *ring, bool has_lines,
             const struct events_options *trace, uint64_t origin_ns, struct feed **ret)
{
    struct feed *f = calloc(1, sizeof *f);
    if (!f || calltree_init(&f->tree) < 0 || linetree_init(&f->lines) < 0) {
        if (f)
            calltree_release(&f->tree);
        free(f);
        return E_NOMEM;
    }
    f->has_lines = has_lines;
    if (trace) {
        f->events = malloc(sizeof *f->events);
        if (!f->events) {
            feed_free(f);
            return E_NOMEM;
        }
        events_init(f->events, trace, start_of(ring, origin_ns));
    }
    f->origin_ns = origin_ns;
    f->slot = slot;
    f->ring = ring;
    f->words = (const uint64_t *)((const char *)ring + RING_HEADER_BYTES);
    f->tail = atomic_load(&ring->tail);
    f->tick = ring->start_tick;
    ring_owner_read(ring, &f->owner);
    *ret = f;
    return 0;
}

void feed_free(struct feed *f)
{
    if (!f)
        return;
    calltree_release(&f->tree);
    linetree_release(&f->lines);
    for (size_t i = 0; i < f->marks.len; i++)
        feed_mark_release(&f->marks.data[i]);
    for (size_t i = 0; i < f->spans.len; i++)
        feed_mark_release(&f->spans.data[i]);
    vec_release(&f->marks);
    vec_release(&f->spans);
    for (size_t i = 0; i < f->tasks.len; i++)
        free(f->tasks.data[i]);
    vec_release(&f->tasks);
    vec_release(&f->free_tasks);
    free(f->name);
    if (f->events)
        events_release(f->events);
    free(f->events);
    free(f);
}

void feed_code_release(struct feed_code *c)
{
    free(c->name);
    free(c->qualname);
    free(c->file);
}

static inline uint64_t word_at(const struct feed *f, uint64_t n)
{
    return f->words[n & (RING_WORDS - 1)];
}

/* Copies `len` bytes of a payload that begins at word `first`, from byte `at`. */
static void copy_payload(const struct feed *f, uint64_t first, size_t at, void *to, size_t len)
{
    for (size_t i = 0; i < len; i++, at++)
        ((uint8_t *)to)[i] = (uint8_t)(word_at(f, first + at / 8) >> 8 * (at % 8));
}

static char *copy_text(const struct feed *f, uint64_t first, size_t *at, uint32_t len)
{
    char *text = malloc((size_t)len + 1);
    if (text) {
        copy_payload(f, first, *at, text, len);
        text[len] = 0;
    }
    *at += len;
    return text;
}

static void take_code(struct feed *f, struct feed_codes *codes, uint64_t first, size_t bytes)
{
    struct ring_code c;
    if (bytes < sizeof c)
        return;
    copy_payload(f, first, 0, &c, sizeof c);
    size_t texts = bytes - sizeof c;
    if (c.name_len > texts || c.qualname_len > texts - c.name_len ||
        c.file_len > texts - c.name_len - c.qualname_len || c.id == 0 || c.id > RING_MAX_VALUE) {
        f->nonsense++;
        return;
    }
    struct feed_code *code = vec_push(&codes->fresh);
    if (!code)
        return;
    size_t at = sizeof c;
    *code = (struct feed_code){.id = c.id,
                               .flags = c.flags,
                               .first_line = c.first_line,
                               .name_len = c.name_len,
                               .qualname_len = c.qualname_len,
                               .file_len = c.file_len,
                               .pid = f->owner.pid};
    code->name = copy_text(f, first, &at, c.name_len);
    code->qualname = copy_text(f, first, &at, c.qualname_len);
    code->file = copy_text(f, first, &at, c.file_len);
    if (!code->name || !code->qualname || !code->file) {
        feed_code_release(code);
        codes->fresh.len--;
    }
}

/* A tick as ns after the origin; the future is a lie. */
static inline uint64_t ns_of(const struct feed *f, const struct session_clock *clock, uint64_t tick)
{
    double ago = (double)(int64_t)(clock->tick - tick) * clock->ns_per_tick;
    uint64_t now = clock->ns - f->origin_ns;
    if (unlikely(ago < -(double)NS_PER_MS || ago > (double)now))
        return ago < 0 ? now : 0;
    return (uint64_t)((double)now - ago);
}

/* So many wait at most; a program that marks more between two flushes is told it lost some. */
enum { MAX_MARKS = 1 << 18, MAX_SPANS = 1 << 12 };

void feed_mark_release(struct feed_mark *m)
{
    free(m->text);
}

/* A text to the end of the payload, whose last word may be filled up with zeros. */
static void take_text(struct feed *f, uint64_t first, size_t at, size_t bytes,
                      struct feed_mark *ret)
{
    size_t len = bytes > at ? bytes - at : 0;
    ret->text = copy_text(f, first, &at, (uint32_t)len);
    while (ret->text && len && !ret->text[len - 1])
        len--;
    ret->len = ret->text ? (uint32_t)len : 0;
}

/* Which of the open ones ends. A number that is not there is of one that was entered again, here or by another thread,
 * before it was left: such are inside of each other. */
static size_t open_span(const struct feed *f, uint64_t number)
{
    size_t at = f->spans.len;
    while (at && f->spans.data[at - 1].number != number)
        at--;
    return (at ? at : f->spans.len) - 1;
}

static void end_span(struct feed *f, uint64_t number, uint64_t ns)
{
    struct feed_mark *m = f->spans.len && f->marks.len < MAX_MARKS ? vec_push(&f->marks) : NULL;
    if (!m) {
        f->nonsense++;
        return;
    }
    size_t at = open_span(f, number);
    *m = f->spans.data[at];
    f->spans.len--;
    memmove(f->spans.data + at, f->spans.data + at + 1,
            (f->spans.len - at) * sizeof *f->spans.data);
    m->kind = RING_EXT_SPAN_END;
    m->end_ns = ns;
}

static void take_mark(struct feed *f, const struct session_clock *clock, enum ring_ext kind,
                      uint64_t first, size_t bytes)
{
    uint64_t ns = ns_of(f, clock, f->tick), number = 0;
    bool is_span = kind == RING_EXT_SPAN_BEGIN;
    if ((is_span || kind == RING_EXT_SPAN_END) && bytes >= sizeof number)
        copy_payload(f, first, 0, &number, sizeof number);
    if (kind == RING_EXT_SPAN_END) {
        end_span(f, number, ns);
        return;
    }
    struct feed_mark *m = NULL;
    if (is_span && f->spans.len < MAX_SPANS)
        m = vec_push(&f->spans);
    else if (!is_span && f->marks.len < MAX_MARKS)
        m = vec_push(&f->marks);
    if (!m) {
        f->nonsense++;
        return;
    }
    *m = (struct feed_mark){.kind = kind, .begin_ns = ns, .end_ns = ns, .number = number};
    size_t at = kind == RING_EXT_COUNTER ? sizeof m->value : is_span ? sizeof number : 0;
    if (kind == RING_EXT_COUNTER && bytes >= at)
        copy_payload(f, first, 0, &m->value, sizeof m->value);
    take_text(f, first, at, bytes, m);
}

static void take_note(const struct feed *f, uint64_t first, size_t bytes, struct feed_note *ret)
{
    ret->len = (uint32_t)min_u64(bytes, sizeof ret->text);
    copy_payload(f, first, 0, ret->text, ret->len);
    while (ret->len && !ret->text[ret->len - 1])
        ret->len--;
}

static void take_name(struct feed *f, uint64_t first, size_t bytes)
{
    struct feed_mark name = {0};
    take_text(f, first, 0, bytes, &name);
    free(f->name);
    f->name = name.text;
    f->name_len = name.len;
}

/* A garbage collection is on the timeline like a call, for it happens inside of one and may call others. In
 * the sums it is time of the function that it interrupts. */
static void take_collection(struct feed *f, const struct session_clock *clock, enum ring_ext kind,
                            uint64_t number)
{
    uint64_t ns = ns_of(f, clock, f->tick);
    if (kind == RING_EXT_GC_BEGIN) {
        f->gc_code = EVENTS_GC_CODE + (uint32_t)min_u64(number, EVENTS_GC_KINDS - 1);
        events_begin(f->events, f->gc_code, RECORD_EVENT_BEGIN, ns);
    } else if (f->gc_code) {
        char text[24];
        int n = snprintf(text, sizeof text, "%ju", (uintmax_t)number);
        events_end_noted(f->events, f->gc_code, RECORD_EVENT_RETURN, ns, RECORD_NOTE_COLLECTED,
                         text, n < 0 ? 0 : (size_t)n);
        f->gc_code = 0;
    }
}

/* What is of interest on a timeline only. */
static void take_traced(struct feed *f, const struct session_clock *clock, enum ring_ext kind,
                        uint64_t first, uint32_t words)
{
    size_t bytes = (size_t)words * 8;
    if (!f->events || f->ignoring)
        return;
    switch (kind) {
    case RING_EXT_EXCEPTION:
        take_note(f, first, bytes, &f->exception);
        break;
    case RING_EXT_TASK:
        take_note(f, first, bytes, &f->task);
        break;
    case RING_EXT_ARGUMENTS:
        take_note(f, first, bytes, &f->arguments);
        break;
    case RING_EXT_RESULT:
        take_note(f, first, bytes, &f->result);
        break;
    case RING_EXT_GC_BEGIN:
    case RING_EXT_GC_END:
        take_collection(f, clock, kind, words ? word_at(f, first) : 0);
        break;
    default:
        break;
    }
}

/* What runs now follows; what ran before has ended unseen, or will be told to go on. */
static void restart(struct feed *f, uint64_t ns)
{
    f->tree.stack.len = 1;
    f->tree.skipped = 0;
    if (f->has_lines)
        linetree_finish(&f->lines);
    struct events *e = f->events;
    if (!e)
        return;
    e->skipped = 0; /* the ends of those never come: the first end is that of the top */
    for (size_t n = e->stack.len; n > 0; n--)
        events_end(e, e->stack.data[n - 1].code, RECORD_EVENT_LOST, ns);
}

/* An extended record of `words` words behind its head at `first`. */
static void take_ext(struct feed *f, struct feed_codes *codes, const struct session_clock *clock,
                     enum ring_ext kind, uint64_t first, uint32_t words)
{
    switch (kind) {
    case RING_EXT_CODE:
        take_code(f, codes, first, (size_t)words * 8);
        break;
    case RING_EXT_PAUSE:
        f->ignoring = words && word_at(f, first) == RING_PAUSE_CALIBRATION;
        if (!f->paused_at && !f->ignoring)
            f->paused_at = f->tick;
        break;
    case RING_EXT_GO:
        if (f->paused_at)
            f->paused_ticks += f->tick - f->paused_at;
        f->paused_at = 0;
        if (!f->ignoring)
            restart(f, ns_of(f, clock, f->tick));
        f->ignoring = false;
        break;
    case RING_EXT_CALIBRATION:
        if ((size_t)words * 8 >= sizeof f->calibration) {
            copy_payload(f, first, 0, &f->calibration, sizeof f->calibration);
            f->has_calibration = true;
        }
        break;
    case RING_EXT_MARK:
    case RING_EXT_COUNTER:
    case RING_EXT_SPAN_BEGIN:
    case RING_EXT_SPAN_END:
        take_mark(f, clock, kind, first, (size_t)words * 8);
        break;
    case RING_EXT_THREAD_NAME:
        take_name(f, first, (size_t)words * 8);
        break;
    default: /* also of instruments that this recording does not have */
        take_traced(f, clock, kind, first, words);
        break;
    }
}

static void forget_task(struct feed *f, struct calltree_open *o)
{
    if (!o || !o->task)
        return;
    free(f->tasks.data[o->task]);
    f->tasks.data[o->task] = NULL;
    uint32_t *place = vec_push(&f->free_tasks);
    if (place)
        *place = o->task;
    o->task = 0;
}

static void keep_task(struct feed *f, struct calltree_open *o)
{
    enum { MAX_TASKS = 1 << 22 };
    if (!f->tasks.len && !vec_push(&f->tasks))
        return;
    uint32_t at = (uint32_t)f->tasks.len;
    if (f->free_tasks.len)
        at = f->free_tasks.data[--f->free_tasks.len];
    else if (at >= MAX_TASKS || !vec_push(&f->tasks))
        return;
    f->tasks.data[at] = strndup(f->task.text, f->task.len);
    o->task = f->tasks.data[at] ? at : 0;
}

/* The outermost coroutine of a task begins or goes on: on the timeline it says so each time. */
static void note_task(struct feed *f, const struct calltree_open *o)
{
    if (f->events && o && o->task)
        events_note_begin(f->events, RECORD_NOTE_TASK, f->tasks.data[o->task],
                          strlen(f->tasks.data[o->task]));
}

static void begin_coroutine(struct feed *f, uint64_t frame)
{
    if (f->tasks.len) /* the end of one that was there may have been lost */
        forget_task(f, calltree_find_open(&f->tree, frame));
    calltree_begins(&f->tree, frame, f->entered, f->tick);
    struct calltree_open *o = f->task.len ? calltree_find_open(&f->tree, frame) : NULL;
    if (o)
        keep_task(f, o);
    f->task.len = 0;
    note_task(f, o);
}

/* Which coroutine the record before was about. */
static void take_frame(struct feed *f, uint64_t frame)
{
    if (f->last == RING_ENTER)
        begin_coroutine(f, frame);
    else if (f->tasks.len && f->last == RING_RESUME)
        note_task(f, calltree_find_open(&f->tree, frame));
    if (f->last == RING_LEAVE || f->last == RING_UNWIND) {
        if (f->tasks.len)
            forget_task(f, calltree_find_open(&f->tree, frame));
        calltree_ends(&f->tree, frame, f->tick);
    }
    struct calltree_open *o = f->has_lines ? calltree_find_open(&f->tree, frame) : NULL;
    if (o && f->last == RING_SUSPEND)
        o->line_cell = f->lines.left;
    else if (o && f->last == RING_RESUME)
        linetree_goes_on_in(&f->lines, o->line_cell);
}

/* Time passes. */
static inline void pass(struct feed *f, uint64_t ticks)
{
    f->tick += ticks;
    if (unlikely(f->paused_at))
        return;
    calltree_time(&f->tree, ticks);
    if (f->has_lines)
        linetree_time(&f->lines, ticks);
}

void feed_finish(struct feed *f, const struct session_clock *clock, uint64_t tick)
{
    bool runs = f->tree.stack.len > 1 && !f->ignoring;
    if (f->paused_at)
        f->paused_ticks += tick > f->paused_at ? tick - f->paused_at : 0;
    else if (runs && tick > f->tick)
        pass(f, tick - f->tick);
    f->paused_at = 0;
    calltree_finish(&f->tree, f->tick);
    linetree_finish(&f->lines);
    if (f->events && runs)
        events_reach(f->events, ns_of(f, clock, f->tick));
}

static inline void enter(struct feed *f, uint32_t code, bool resumes)
{
    calltree_enter(&f->tree, code, resumes);
    if (f->has_lines)
        linetree_enter(&f->lines, code, resumes);
}

static inline void leave(struct feed *f, uint32_t code)
{
    calltree_leave(&f->tree, code);
    if (f->has_lines)
        linetree_leave(&f->lines, code);
}

/* Waits shorter than this are of no interest to anybody. */
#define WAIT_SHOWN_NS (10 * NS_PER_US)

static void trace_wait(struct feed *f, const struct session_clock *clock, uint64_t ticks)
{
    uint64_t end = ns_of(f, clock, f->tick), begin = ns_of(f, clock, f->tick - ticks);
    if (begin + WAIT_SHOWN_NS > end)
        return;
    events_begin(f->events, EVENTS_WAITING_CODE, RECORD_EVENT_BEGIN, begin);
    events_end(f->events, EVENTS_WAITING_CODE, RECORD_EVENT_RETURN, end);
}

static void trace_end(struct feed *f, uint32_t code, enum record_event_kind kind, uint64_t ns,
                      enum record_note_kind what, struct feed_note *note)
{
    if (likely(!note->len)) {
        events_end(f->events, code, kind, ns);
        return;
    }
    events_end_noted(f->events, code, kind, ns, what, note->text, note->len);
    note->len = 0;
}

/* The same record again, for the timeline. */
static inline void trace(struct feed *f, const struct session_clock *clock, enum ring_kind kind,
                         uint32_t value)
{
    struct events *e = f->events;
    uint64_t ns = ns_of(f, clock, f->tick);
    switch (kind) {
    case RING_ENTER:
        events_begin(e, value, RECORD_EVENT_BEGIN, ns);
        if (unlikely(f->arguments.len))
            events_note_begin(e, RECORD_NOTE_ARGUMENTS, f->arguments.text, f->arguments.len);
        f->arguments.len = 0;
        break;
    case RING_C_ENTER:
        events_begin(e, value, RECORD_EVENT_BEGIN, ns);
        break;
    case RING_RESUME:
        events_begin(e, value, RECORD_EVENT_RESUME, ns);
        break;
    case RING_LEAVE:
        trace_end(f, value, RECORD_EVENT_RETURN, ns, RECORD_NOTE_RESULT, &f->result);
        break;
    case RING_C_LEAVE:
        events_end(e, value, RECORD_EVENT_RETURN, ns);
        break;
    case RING_UNWIND:
        trace_end(f, value, RECORD_EVENT_RAISE, ns, RECORD_NOTE_EXCEPTION, &f->exception);
        break;
    case RING_C_RAISE:
        events_end(e, value, RECORD_EVENT_RAISE, ns);
        break;
    case RING_SUSPEND:
        trace_end(f, value, RECORD_EVENT_SUSPEND, ns, RECORD_NOTE_RESULT, &f->result);
        break;
    case RING_OPEN:
        events_open(e, value, ns);
        break;
    default:
        break;
    }
}

uint64_t feed_waiting(const struct feed *f)
{
    return atomic_load_explicit(&f->ring->head, memory_order_acquire) - f->tail;
}

int64_t feed_take(struct feed *f, struct feed_codes *codes, const struct session_clock *clock,
                  uint64_t most)
{
    struct calltree *t = &f->tree;
    uint64_t waiting = feed_waiting(f), begin = f->tail;
    if (waiting > RING_WORDS)
        return E_CORRUPT;
    uint64_t end = begin + waiting, stop = begin + min_u64(waiting, most), at = begin;
    while (at < stop) {
        uint64_t word = word_at(f, at++);
        enum ring_kind kind = word & 15;
        uint32_t value = (uint32_t)word >> 4;
        uint64_t ticks = word >> 32;
        if (unlikely(f->ignoring) && kind != RING_EXT && kind != RING_TIME && kind != RING_WAIT) {
            f->tick += kind == RING_FRAME ? 0 : ticks;
            continue;
        }
        if (likely(kind <= RING_LINE || kind >= RING_EXT))
            pass(f, ticks);
        switch (kind) {
        case RING_LINE:
            if (f->has_lines)
                linetree_line(&f->lines, value);
            break;
        case RING_ENTER:
            enter(f, value, false);
            f->entered = calltree_top(t);
            break;
        case RING_C_ENTER:
            calltree_enter(t, value, false);
            break;
        case RING_RESUME:
            enter(f, value, true);
            break;
        case RING_ASIDE:
            calltree_aside(t);
            break;
        case RING_LEAVE:
        case RING_UNWIND:
        case RING_SUSPEND:
            leave(f, value);
            break;
        case RING_C_LEAVE:
        case RING_C_RAISE:
            calltree_leave(t, value);
            break;
        case RING_OPEN:
            calltree_push_open(t, value);
            if (f->has_lines)
                linetree_enter(&f->lines, value, true);
            break;
        case RING_TIME:
            ticks |= (uint64_t)value << 32;
            pass(f, ticks);
            break;
        case RING_WAIT:
            ticks |= (uint64_t)value << 32;
            f->tick += ticks;
            f->waited_ticks += ticks;
            if (f->events)
                trace_wait(f, clock, ticks);
            break;
        case RING_FRAME:
            take_frame(f, (uint64_t)value << 32 | ticks);
            break;
        case RING_EXT: {
            uint32_t words = value >> 8;
            if (words > end - at)
                return E_CORRUPT;
            take_ext(f, codes, clock, value & 0xff, at, words);
            at += words;
            break;
        }
        default:
            f->nonsense++;
            break;
        }
        if (f->events)
            trace(f, clock, kind, value);
        f->last = kind;
        f->records++;
    }
    f->tail = at;
    f->lost = atomic_load_explicit(&f->ring->lost, memory_order_relaxed);
    f->pace_ticks = atomic_load_explicit(&f->ring->pace_ticks, memory_order_relaxed);
    f->pace_count = atomic_load_explicit(&f->ring->pace_count, memory_order_relaxed);
    f->room_ticks = atomic_load_explicit(&f->ring->waited_ticks, memory_order_relaxed);
    atomic_store_explicit(&f->ring->tail, at, memory_order_release);
    return (int64_t)(at - begin);
}
