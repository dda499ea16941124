/* Blocks of events to bytes and back: the payload of an EVENTS chunk. Inside src/format and for the
 * recorder's encoder; docs/format.md draws it.
 *
 * Three things keep an event at two bytes. What happened and when stand in streams of their own, which
 * compress better apart. A function has a number of one block only, small because blocks know few. An
 * end has no number at all: the stack knows what ends. */
#ifndef PYROMETER_FORMAT_EVENTS_H
#define PYROMETER_FORMAT_EVENTS_H

#include "base/buf.h"
#include "format/reader.h"

enum {
    /* Symbols: below EVENTS_FIRST_BEGIN an end, by enum record_event_kind; from there on a begin:
     * EVENTS_FIRST_BEGIN + 2 * number + (1: resumed). 4 to 7 are kept for what is to come. */
    EVENTS_FIRST_BEGIN = 8,
    EVENTS_MAX_DEPTH = 1 << 18,
};

/* A block on its way into the file. */
struct events_block {
    uint64_t start_ns, end_ns;
    uint32_t count;  /* events */
    uint32_t *codes; /* id of each number that the symbols use */
    uint32_t code_count;
    uint32_t open_count;
    struct buf open; /* of each open call: symbol, ns since the one around it began */
    struct buf symbols, times;
    struct buf notes; /* what is known of single events: see events_put_note() */
    uint32_t note_count, note_event;
};

/* The payload. */
void events_put_block(struct buf *b, uint32_t thread, const struct events_block *block);

/* Adds a note about an event of the block, which is not before those of the notes that are there. What is
 * longer than RECORD_MAX_NOTE_BYTES is cut. */
void events_put_note(struct events_block *block, uint32_t event, enum record_note_kind kind,
                     const char *text, size_t len);

/* The payload of the NOTES chunk that follows the block. */
void events_put_notes(struct buf *b, uint32_t thread, const struct events_block *block);

/* Decodes one into the visitor's `note`. */
int events_visit_notes(const uint8_t *data, size_t len, uint32_t records,
                       const struct format_visitor *v, void *ctx);

/* Decodes a payload. The visitor's row is called once with no events, then for each batch. */
int events_visit(const uint8_t *data, size_t len, uint32_t records, const struct format_visitor *v,
                 void *ctx);

#endif
