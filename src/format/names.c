/* The names of chunk kinds and counters, from the lists in the headers. */
#include "format/format.h"
#include "format/record.h"

#include <stddef.h>

const char *format_chunk_kind_name(unsigned kind)
{
    switch (kind) {
#define X(number, name, text)                                                                      \
    case number:                                                                                   \
        return #name;
        FORMAT_CHUNK_KINDS(X)
#undef X
    default:
        return NULL;
    }
}

const char *record_stat_name(enum record_stat stat)
{
    static const char *const names[] = {
#define X(id, name, text) name,
        RECORD_STATS(X)
#undef X
    };
    return (unsigned)stat < RECORD_STAT_COUNT ? names[stat] : "";
}

const char *record_stat_text(enum record_stat stat)
{
    static const char *const texts[] = {
#define X(id, name, text) text,
        RECORD_STATS(X)
#undef X
    };
    return (unsigned)stat < RECORD_STAT_COUNT ? texts[stat] : "";
}

const char *record_note_name(uint32_t kind)
{
    static const char *const names[RECORD_NOTE_KINDS] = {
        [RECORD_NOTE_ARGUMENTS] = "args",      [RECORD_NOTE_TASK] = "task",
        [RECORD_NOTE_RESULT] = "result",       [RECORD_NOTE_EXCEPTION] = "exception",
        [RECORD_NOTE_COLLECTED] = "collected",
    };
    return kind < RECORD_NOTE_KINDS ? names[kind] : NULL;
}

const char *record_allocator_name(uint32_t allocator)
{
    static const char *const names[] = {
#define X(id, name, text) name,
        RECORD_ALLOCATORS(X)
#undef X
    };
    return allocator < RECORD_ALLOCATOR_COUNT ? names[allocator] : NULL;
}
