/* Reads a profile file from memory, chunk by chunk, and pushes records through a visitor.
 *
 * Nothing in the file is trusted: every length is checked against its maximum and against what is
 * there, every checksum is verified before a byte is decoded. A damaged chunk is counted and skipped
 * (if its length can be believed) or ends the reading (if not). */
#ifndef PYROMETER_FORMAT_READER_H
#define PYROMETER_FORMAT_READER_H

#include "format/format.h"
#include "format/record.h"

#include <stdbool.h>

struct format_reader;

/* A whole chunk in the file. */
struct format_chunk {
    uint64_t offset; /* of its header */
    uint16_t kind;
    uint16_t flags;
    uint32_t sequence;
    uint32_t stored_bytes;
    uint32_t raw_bytes;
    uint32_t records;
    bool damaged; /* framing is sound, content is not */
};

/* What is known after opening. */
struct format_summary {
    struct format_file_header header;
    uint64_t file_bytes;
    uint64_t good_bytes; /* up to the end of the last whole chunk */
    uint32_t chunks;
    uint32_t damaged_chunks;
    uint32_t missing_chunks; /* gaps in the sequence */
    bool finished;           /* ends with an END chunk */
    bool torn;               /* bytes follow the last whole chunk */
};

/* Rows of callbacks; a NULL row skips that kind. Returning non-zero stops and is passed on.
 * Pointers are borrowed for the call. */
struct format_visitor {
    int (*meta)(void *ctx, const char *key, size_t key_len, const char *value, size_t value_len);
    int (*string)(void *ctx, uint32_t id, const char *text, size_t len);
    int (*code)(void *ctx, uint32_t id, const struct record_code *code);
    int (*stack)(void *ctx, uint32_t id, const struct record_stack *node);
    int (*process)(void *ctx, const struct record_process *process);
    int (*thread)(void *ctx, const struct record_thread *thread);
    int (*stat)(void *ctx, enum record_stat stat, uint64_t value);
    int (*source)(void *ctx, const struct record_source *source);
    int (*mark)(void *ctx, const struct record_mark *mark);
    int (*counter)(void *ctx, const struct record_counter *counter);
    int (*calls)(void *ctx, const struct record_calls *calls);
    int (*line)(void *ctx, const struct record_line *line);
    /* a checkpoint of memory, then its sizes and sites */
    int (*memory)(void *ctx, const struct record_memory *memory);
    int (*sizes)(void *ctx, const struct record_memory *memory, const struct record_sizes *sizes);
    int (*site)(void *ctx, const struct record_memory *memory, const struct record_site *site);
    /* events of memory, in batches of one block */
    int (*memory_events)(void *ctx, const struct record_memory_events *block,
                         const struct record_memory_event *events, size_t n);
    /* samples come in batches: `n` records of one chunk */
    int (*samples)(void *ctx, const struct record_sample *samples, size_t n);
    /* and so do events: first none, to begin the block, then batches of it */
    int (*events)(void *ctx, const struct record_events *block, const struct record_event *events,
                  size_t n);
    /* the block they are about, with no note, then each note */
    int (*note)(void *ctx, const struct record_notes *block, const struct record_note *note);
    /* a summary, then its boxes, row by row; a directory, then its places */
    int (*summary)(void *ctx, const struct record_summary *summary);
    int (*box)(void *ctx, const struct record_summary *summary, uint32_t depth,
               const struct record_box *box);
    int (*directory)(void *ctx, uint32_t sequence, uint32_t previous);
    int (*place)(void *ctx, const struct record_place *place);
};

/* Maps the file and finds its chunks (headers are read, payloads are not checked yet). E_EMPTY,
 * E_FORMAT, E_NEWER, E_CORRUPT (the header itself), E_SHORT (it is not all there), E_ISDIR, E_NOTFILE
 * (a pipe or a device: told at once, without waiting for what comes out of it), or the system's
 * reason. */
int format_reader_open(const char *path, struct format_reader **ret);

/* The same over bytes in memory, borrowed until free. For tests and fuzzers. */
int format_reader_open_memory(const void *data, size_t len, struct format_reader **ret);

void format_reader_free(struct format_reader *r);

const struct format_summary *format_reader_summary(const struct format_reader *r);
size_t format_reader_chunk_count(const struct format_reader *r);
const struct format_chunk *format_reader_chunk(const struct format_reader *r, size_t index);

/* The place of the chunk with that number in the file, or SIZE_MAX. */
size_t format_reader_find(const struct format_reader *r, uint32_t sequence);

/* Does the chunk's checksum hold? Nothing is decoded. */
bool format_reader_chunk_is_sound(const struct format_reader *r, size_t index);

/* Verifies and decodes one chunk into the visitor. E_CORRUPT if its checksum or content is wrong
 * (records before the fault have been delivered); the caller decides whether to go on. Safe to call
 * from several threads at once for different chunks. */
int format_reader_visit_chunk(const struct format_reader *r, size_t index,
                              const struct format_visitor *visitor, void *ctx);

/* Visits every chunk of the kinds the visitor has rows for; damaged chunks are skipped and counted
 * in `ret_damaged` (may be NULL). Returns what a row returned, or E_NOMEM. */
int format_reader_visit(const struct format_reader *r, const struct format_visitor *visitor,
                        void *ctx, uint32_t *ret_damaged);

#endif
