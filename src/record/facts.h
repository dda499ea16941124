/* Facts about the machine and the command, written into a recording's META chunk. Inside src/record. */
#ifndef PYROMETER_RECORD_FACTS_H
#define PYROMETER_RECORD_FACTS_H

#include "format/writer.h"
#include "record/record.h"

/* How long the counters of a recording of this age may be old: all of them, by name, take half a KB each time, and whoever promises that a file
 * stays small promises it for a run of months, too. */
static inline uint64_t facts_stats_age(uint64_t recording_ns)
{
    return recording_ns / 100;
}

void facts_write(struct format_writer *w, const struct record_options *options, const char *mode);

#endif
