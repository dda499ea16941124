/* The calls of the timeline one after the other, for formats of slices: begins and ends of each thread
 * properly nested and in the order of time, the query's threads and range only, and thinned where a
 * viewer could not take them all: then calls shorter than a limit are left out. Inside src/export only.
 *
 * Memory is that of the open calls, however long the recording. */
#ifndef PYROMETER_EXPORT_SLICES_H
#define PYROMETER_EXPORT_SLICES_H

#include "export/source.h"
#include "profile/events.h"

/* What is known of a call beside its times. */
struct export_note {
    const char *name; /* "args" */
    struct profile_string text;
};
enum { EXPORT_MAX_NOTES = 8 }; /* of one call */

struct export_slice {
    uint32_t thread, code;
    uint64_t begin_ns, end_ns; /* the end is not known yet where it begins */
    enum record_event_kind began, ended;
    struct export_note note[EXPORT_MAX_NOTES];
    size_t begin_notes, notes; /* those of the begin come first */
    bool cut;                  /* it began before what is shown */
    bool unfinished; /* never seen to end: it was still running, or its thread was killed */
};

struct export_slices_visitor {
    int (*begin)(void *ctx, const struct export_slice *slice); /* may be NULL */
    int (*end)(void *ctx, const struct export_slice *slice);
};

/* Pushes all; of calls, at most about `max`, unless the options want all. The notice is filled in. */
int export_slices_each(const struct profile *profile, const struct export_options *options,
                       uint64_t max, const struct export_slices_visitor *visitor, void *ctx);

/* The threads of the query that have events: marks by id; owned by the caller. */
int export_slices_threads(const struct profile *profile, const struct analysis_query *query,
                          uint8_t **ret);

/* Does the query take this moment of this thread? */
bool export_slices_takes(const struct profile_tables *t, const struct analysis_query *query,
                         uint32_t thread, uint64_t ns);

struct profile_string export_slices_name(const struct profile_tables *t, uint32_t code);

/* Where the function stands: its file, and its first line or 0. False where there is no file: a C function. */
bool export_slices_place(const struct profile_tables *t, uint32_t code,
                         struct profile_string *ret_file, uint32_t *ret_line);

#endif
