/* What a recording holds: machine, command, counters, processes, threads, chunks. */
#ifndef PYROMETER_VIEW_INFO_H
#define PYROMETER_VIEW_INFO_H

#include "profile/profile.h"
#include "view/emit.h"

/* One kind of chunk in the file, counted by the command. */
struct view_info_kind {
    const char *name; /* "SAMPLES"; NULL for a kind we do not know */
    unsigned kind;
    uint64_t chunks, records;
    uint64_t stored_bytes, raw_bytes;
};

struct view_info {
    const struct profile *profile;
    const struct view_info_kind *kinds;
    size_t kind_count;
    uint64_t sample_records, samples; /* decoded from the file, whatever its counters say */
    uint64_t call_records, calls, resumes;
    struct view_info_memory {
        uint64_t checkpoints, site_records, allocations;
        bool sampled, objects; /* what was recorded of it */
    } memory;
    uint32_t damaged_chunks; /* of samples, calls and memory */
};

/* As text or JSON; 0, or why the output could not be written. */
int view_info_print(const struct view_info *info, FILE *out, enum view_format format);

#endif
