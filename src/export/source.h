/* What the formats share: the query's weights and rows, the names of threads, numbers as text, and
 * how an output's fate is told. Inside src/export only. */
#ifndef PYROMETER_EXPORT_SOURCE_H
#define PYROMETER_EXPORT_SOURCE_H

#include "analysis/rows.h"
#include "base/buf.h"
#include "base/json.h"
#include "export/export.h"

/* Stands for the samples of threads that ran no Python; has a row of its own, too. */
#define EXPORT_ROOTLESS "<no Python frame>"

/* One chunk of output is gathered before it goes to the stream. */
enum { EXPORT_CHUNK_BYTES = 64 << 10, EXPORT_BUF_MAX = 1 << 30 };

struct export_source {
    struct analysis_query query; /* with the metric that the profile really has */
    struct analysis_weights weights;
    struct analysis_rows rows; /* borrows weights: do not move the whole */
};

int export_source_init(const struct profile *profile, const struct analysis_query *query,
                       enum analysis_by by, struct export_source *ret);
void export_source_release(struct export_source *s);

/* Flushes; 0, or why the stream could not take it all. */
int export_finish(FILE *out);

/* Writes the buffer out if it is long (or `all` is set) and empties it; a sticky error of the
 * buffer or of the stream is returned. */
int export_drain(struct buf *b, FILE *out, bool all);

/* Name of a thread for people: "MainThread", "thread 12", "MainThread [pid 7]" where the recording
 * has several processes. Text goes to `out`, which is cleared first. */
void export_thread_name(const struct profile_tables *t, uint32_t thread, struct buf *out);

void export_put_u64(struct buf *b, uint64_t v);

/* The metric's integer in its unit: ns as seconds without useless zeros, all else as it is. */
void export_put_weight(struct buf *b, const struct analysis_metric *metric, uint64_t weight);

/* Text on one line: control characters become '_', bytes that are not UTF-8 '?'. At most `max`
 * bytes, with "…" where it was cut. */
void export_put_line(struct buf *b, struct profile_string text, size_t max);

#endif
