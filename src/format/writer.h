/* Writes a profile file: interns, encodes, hands full chunks to a thread that compresses and appends.
 *
 * Life: format_writer_open → add … → format_writer_flush now and then → format_writer_finish, then
 * _free. One thread may call (the recorder's); the writer's own thread touches only chunks that were
 * handed over. An error of the disk is remembered: adds go on doing nothing, and the next flush or
 * finish returns it. What was written before stays readable. */
#ifndef PYROMETER_FORMAT_WRITER_H
#define PYROMETER_FORMAT_WRITER_H

#include "format/events.h"
#include "format/lod.h"
#include "format/record.h"

#include <stdbool.h>

struct format_writer;

struct format_writer_options {
    bool force; /* may replace an existing file */
    uint8_t run_id[16];
    uint64_t clock_origin_ns; /* CLOCK_MONOTONIC; every time below is relative to it */
};

/* Creates the file (mode 0666 less umask) and writes its header. E_EXISTS unless `force`. */
int format_writer_open(const char *path, const struct format_writer_options *options,
                       struct format_writer **ret);

/* A fact about the recording, such as ("command", "python app.py"). Copied. */
void format_writer_meta(struct format_writer *w, const char *key, const char *value);

/* Interning: the same content gives the same id again. 0 on failure (which is then sticky). */
uint32_t format_writer_string(struct format_writer *w, const char *text, size_t len);
uint32_t format_writer_stack(struct format_writer *w, const struct record_stack *node);

/* A new code object each time: identity is the caller's affair. Returns its id. */
uint32_t format_writer_code(struct format_writer *w, const struct record_code *code);

void format_writer_process(struct format_writer *w, const struct record_process *process);
void format_writer_thread(struct format_writer *w, const struct record_thread *thread);
void format_writer_calls(struct format_writer *w, const struct record_calls *calls);
void format_writer_line(struct format_writer *w, const struct record_line *line);
void format_writer_mark(struct format_writer *w, const struct record_mark *mark);
void format_writer_counter(struct format_writer *w, const struct record_counter *counter);
/* A checkpoint of memory; goes out with the next flush, behind the definitions it uses. Copied. */
void format_writer_memory(struct format_writer *w, const struct record_memory *memory,
                          const struct record_sizes *sizes, size_t size_count,
                          const struct record_site *sites, size_t site_count);
struct memevents_block;
void format_writer_memory_events(struct format_writer *w, uint32_t process,
                                 const struct record_site *sites, uint32_t site_count,
                                 const struct memevents_block *block);
/* Chunks of their own: a block of a thread's events and behind it its notes, a summary. Copied; they go out with the next flush,
 * behind the definitions they use. */
void format_writer_events(struct format_writer *w, uint32_t thread,
                          const struct events_block *block);
void format_writer_summary(struct format_writer *w, const struct record_summary *head,
                           const struct lod *boxes);
void format_writer_sample(struct format_writer *w, const struct record_sample *sample);
/* The text is copied; what is longer than FORMAT_MAX_STRING_BYTES is the caller's mistake. */
void format_writer_source(struct format_writer *w, const struct record_source *source);
void format_writer_stats(struct format_writer *w, const struct record_stats *stats);

/* Hands everything added so far to the writing thread; does not wait. Returns the sticky error. */
int format_writer_flush(struct format_writer *w);

/* True when so much is waiting that a flush is due. */
bool format_writer_wants_flush(const struct format_writer *w);

/* Bytes of all that waits to be compressed and written. */
size_t format_writer_backlog(const struct format_writer *w);

/* Flushes, waits, appends the END chunk and closes. The sticky error, or 0. */
int format_writer_finish(struct format_writer *w);

/* CPU time the writing thread has used. */
uint64_t format_writer_cpu_ns(const struct format_writer *w);

/* Frees without finishing what was not finished (the file stays as it is on disk). NULL is fine. */
void format_writer_free(struct format_writer *w);

/* The same for a recording that came to nothing: a file that was made for it is removed. One that was there before (`force`; it may be
 * a device) stays. */
void format_writer_abandon(struct format_writer *w);

#endif
