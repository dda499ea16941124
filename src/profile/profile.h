/* A loaded recording: tables in memory, samples on demand. Loaded once, then immutable, so any number
 * of threads may read it.
 *
 * Definitions (strings, codes, stack nodes, threads, processes) are small and stand in arrays indexed
 * by id. Samples are many: they stay compressed in the file and are pushed in batches through
 * profile_each_sample(), so memory does not grow with the length of a recording.
 *
 * Ids from a damaged file that nobody defined have been redirected while loading: a string to "<lost>",
 * a code to the code "<lost>", a stack to the node of "<lost>" under the root, a thread to a made-up
 * thread; so every id that a caller sees is in range. */
#ifndef PYROMETER_PROFILE_PROFILE_H
#define PYROMETER_PROFILE_PROFILE_H

#include "format/reader.h"
#include "format/record.h"

#include <stdbool.h>

struct profile; /* opaque */

struct profile_string {
    const char *text; /* NUL-terminated, but may hold NULs inside: use len */
    uint32_t len;
};

struct profile_meta {
    const char *key;
    const char *value;
};

/* What a deterministic profiler counted and timed of a function, or of one function's calls of
 * another. Recursion: `calls` are all, `primitive_calls` those that were not made from inside. */
struct profile_counts {
    uint64_t calls, primitive_calls;
    uint64_t self_ns, total_ns;
};

struct profile_call {
    uint32_t caller, callee; /* code ids */
    struct profile_counts counts;
};

/* The tables, open for reading, borrowed for the life of the profile. */
struct profile_tables {
    const struct profile_string *strings;
    size_t string_count;
    const struct record_code *codes;
    size_t code_count;
    const uint32_t *node_parent; /* the trie in columns; node 0 is the root; parent < node */
    const uint32_t *node_code;
    const uint32_t *node_line;
    size_t node_count;
    const struct record_process *processes; /* indexed by id; absent ids are zero */
    size_t process_count;
    const struct record_thread *threads;
    size_t thread_count;
    const struct profile_meta *meta;
    size_t meta_count;
    struct record_stats stats;
    bool stat_known[RECORD_STAT_COUNT]; /* false also of what was written but never measured */
    /* Exact counts by code id, or NULL where nothing was counted; and the calls between codes. With
     * them the stacks and samples are an estimate made from the counts (profile/import_pstats.c). */
    const struct profile_counts *counts;
    const struct profile_call *calls;
    size_t call_count;
};

/* A recording, or another tool's file: collapsed stacks, speedscope, pstats. E_FORMAT: none of them;
 * E_BADSTACKS, E_BADJSON, E_BADPSTATS: a damaged one of the latter. */
int profile_load(const char *path, struct profile **ret);

/* What a file is, by a look at its beginning: "recording", "pstats", "speedscope" or "collapsed"; NULL
 * if none of them. A guess: it may still turn out to be damaged. */
const char *profile_kind(const char *path);

int profile_load_memory(const void *data, size_t len, struct profile **ret); /* borrowed bytes */
void profile_free(struct profile *p);

const struct profile_tables *profile_tables(const struct profile *p);
const struct format_summary *profile_summary(const struct profile *p);
const char *profile_path(const struct profile *p);

/* A fact by key, or NULL. Keys are listed in docs/format.md. */
const char *profile_meta_value(const struct profile *p, const char *key);

/* Pushes every batch of samples; what the callback returns non-zero stops and is returned.
 * `ret_damaged` (may be NULL) counts chunks that had to be skipped. */
int profile_each_sample(const struct profile *p,
                        int (*fn)(void *ctx, const struct record_sample *samples, size_t n),
                        void *ctx, uint32_t *ret_damaged);

/* The same for one of `parts` equal parts of the recording, in no order of time: several threads may
 * take a part each. Each counts its records; who shares them out begins (base/progress.h). */
int profile_each_sample_part(const struct profile *p, unsigned part, unsigned parts,
                             int (*fn)(void *ctx, const struct record_sample *samples, size_t n),
                             void *ctx, uint32_t *ret_damaged);

/* How many chunks had to be, or will have to be skipped: those that loading found, and samples whose checksum does not hold, which are
 * read for it but not decoded. A timeline in a large file is left to whoever asks for it (profile/events.h). */
uint32_t profile_damaged_chunks(const struct profile *p);

/* How many runs of samples the file claims to hold; to decide how to go about them. */
uint64_t profile_sample_records(const struct profile *p);

/* Pushes every record of exact calls, ids made good. */
int profile_each_calls(const struct profile *p,
                       int (*fn)(void *ctx, const struct record_calls *calls), void *ctx,
                       uint32_t *ret_damaged);

/* How many of them the file claims to hold. */
uint64_t profile_calls_records(const struct profile *p);

/* Pushes the checkpoints of memory in the order of the file, each with its sizes and sites, ids made good; a row that
 * is NULL is skipped. */
struct profile_memory_visitor {
    int (*memory)(void *ctx, const struct record_memory *memory);
    int (*sizes)(void *ctx, const struct record_memory *memory, const struct record_sizes *sizes);
    int (*site)(void *ctx, const struct record_memory *memory, const struct record_site *site);
};
int profile_each_memory(const struct profile *p, const struct profile_memory_visitor *visitor,
                        void *ctx, uint32_t *ret_damaged);
/* The same of every event, where they were kept (`run --memory-events`), in batches. */
int profile_each_memory_event(const struct profile *p,
                              int (*fn)(void *ctx, const struct record_memory_events *block,
                                        const struct record_memory_event *events, size_t n),
                              void *ctx, uint32_t *ret_damaged);
bool profile_has_memory_events(const struct profile *p);

/* Does the file hold any? */
bool profile_has_memory(const struct profile *p);

/* The same for exact lines. */
int profile_each_line(const struct profile *p, int (*fn)(void *ctx, const struct record_line *line),
                      void *ctx, uint32_t *ret_damaged);
uint64_t profile_line_records(const struct profile *p);

/* Pushes every record of a source, in the order of the file, ids made good; the texts are borrowed
 * for the call. They are not kept in memory: most questions never ask for them. */
int profile_each_source(const struct profile *p,
                        int (*fn)(void *ctx, const struct record_source *source), void *ctx);

#endif
