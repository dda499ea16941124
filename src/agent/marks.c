/* What the program says of itself: the functions that python/pyrometer calls through ctypes, with the
 * GIL held. They are the only ones that the library exports but for those it interposes. */
#include "agent/guest.h"
#include "agent/memory.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void pyrometer_agent_mark(const char *text, size_t len);
EXPORTED void pyrometer_agent_counter(const char *text, size_t len, double value);
EXPORTED uint64_t pyrometer_agent_span_begin(const char *text, size_t len);
EXPORTED void pyrometer_agent_span_end(uint64_t number);

static void emit(enum ring_ext kind, const void *head, size_t head_len, const char *text,
                 size_t len)
{
    const struct guest_piece pieces[] = {{head, head_len},
                                         {text, len < RING_MAX_TEXT ? len : RING_MAX_TEXT}};
    if (guest.on)
        guest_emit_ext(kind, pieces, 2);
}

void pyrometer_agent_mark(const char *text, size_t len)
{
    emit(RING_EXT_MARK, "", 0, text, len);
    memory_mark();
}

void pyrometer_agent_counter(const char *text, size_t len, double value)
{
    emit(RING_EXT_COUNTER, &value, sizeof value, text, len);
}

/* Its number is for its end: tasks of one thread have theirs open at the same time and end them in any order. */
uint64_t pyrometer_agent_span_begin(const char *text, size_t len)
{
    static _Atomic uint64_t last;
    uint64_t number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    emit(RING_EXT_SPAN_BEGIN, &number, sizeof number, text, len);
    return number;
}

void pyrometer_agent_span_end(uint64_t number)
{
    emit(RING_EXT_SPAN_END, &number, sizeof number, "", 0);
}
